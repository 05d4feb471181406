"""The vectors that all languages answer alike, tests/vectors, through the package."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from run_vectors import LEFT_OUT  # type: ignore[import-not-found]

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
# Each file names the driver that it is of.
pytestmark = pytest.mark.skipif(
    os.environ.get("GCX_DRIVER", "").partition("@")[2] not in ("", "13.0"),
    reason="another driver's run has it",
)
FILES = sorted((ROOT / "tests" / "vectors").glob("*.tsv"))


def run(path: Path) -> subprocess.CompletedProcess[str]:
    """A process for each file, since a process opens one driver."""
    environment = {name: value for name, value in os.environ.items() if name != "GCX_DRIVER"}
    return subprocess.run(
        [sys.executable, HERE / "run_vectors.py", path],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_there_are_files() -> None:
    assert FILES


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_vectors_agree(path: Path) -> None:
    done = run(path)
    assert done.returncode == 0, done.stdout + done.stderr
    words = done.stdout.splitlines()[-1].split()
    assert int(words[1]) > 2 * int(words[-3]), "more than a third is left out"


def test_what_differs_is_noticed() -> None:
    left_out = [word for need in sorted(LEFT_OUT) for word in ("--left-out", need)]
    notice = [sys.executable, "-m", "tests.vectors.notice", *left_out]
    done = subprocess.run(
        [*notice, sys.executable, HERE / "run_vectors.py"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(done.stdout.split()[0]) > 70

"""The vectors of tests/vectors, which all languages run, through the package."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from run_vectors import LEFT_OUT  # type: ignore[import-not-found]

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
# Each file names its driver.
pytestmark = pytest.mark.skipif(
    os.environ.get("GCX_DRIVER", "").partition("@")[2] not in ("", "13.0"),
    reason="the run of another driver covers it",
)
FILES = sorted((ROOT / "tests" / "vectors" / "generated").glob("*.tsv"))
assert FILES


def run(path: Path) -> subprocess.CompletedProcess[str]:
    """Runs a process for each file, since a process opens one driver."""
    environment = {name: value for name, value in os.environ.items() if name != "GCX_DRIVER"}
    return subprocess.run(
        [sys.executable, HERE / "run_vectors.py", path],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_vectors_agree(path: Path) -> None:
    done = run(path)
    assert done.returncode == 0, done.stdout + done.stderr
    words = done.stdout.splitlines()[-1].split()
    assert int(words[1]) > 2 * int(words[-3]), "more than a third is left out"


def test_vectors_changed_differ() -> None:
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

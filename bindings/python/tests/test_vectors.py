"""The vectors of tests/vectors, which all languages run, through the package."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from work import run_program  # type: ignore[import-not-found]

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
# Each file names its driver.
pytestmark = pytest.mark.skipif(
    os.environ.get("GCX_DRIVER", "").partition("@")[2] not in ("", "13.0"),
    reason="the run of another driver covers it",
)
FILES = sorted((ROOT / "tests" / "vectors" / "generated").glob("*.tsv"))
assert FILES
# What the package can't do, see "Needs" in tests/vectors/README.md: it checks numbers itself, maps
# a family whose SM ids are requested, allows closing twice, and lacks `supplemental` and `ahead`.
LEFT_OUT = [
    word
    for need in ("number", "unmapped", "twice", "supplemental", "ahead")
    for word in ("--left-out", need)
]
ANSWERER = [sys.executable, str(HERE / "run_vectors.py")]
ASK = [sys.executable, "-m", "tests.vectors.ask", *LEFT_OUT, *ANSWERER]


def run(*words: str | Path) -> str:
    done = run_program(*words, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout  # type: ignore[no-any-return]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_vectors_agree(path: Path) -> None:
    words = run(*ASK, path).splitlines()[-1].split()
    assert int(words[1]) > 2 * int(words[-3]), "more than a third is left out"


def test_vectors_changed_differ() -> None:
    notice = [sys.executable, "-m", "tests.vectors.notice", *LEFT_OUT, "--"]
    assert int(run(*notice, *ASK).split()[0]) > 70

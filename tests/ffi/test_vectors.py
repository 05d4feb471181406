"""The runner of the vectors in Go refuses invalid files.

That it notices what differs, tests/vectors/notice.py shows.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

RUNNER = os.environ["GCX_GO_VECTORS"]
RIGHT = """\
vector\topens
open\tGCX_SUCCESS\tsim:h100@13.0
vector\tsplits
resource\tGCX_SUCCESS\t0\tsm\td
split\tGCX_SUCCESS\td\t-\t24\tp\t24\t108
context\tGCX_SUCCESS\tp.0\t-\tc
"""


def run(file: Path, text: str) -> tuple[int, list[str]]:
    file.write_text(text, encoding="utf-8")
    done = subprocess.run(
        [RUNNER, file], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    return done.returncode, (done.stdout + done.stderr).splitlines()


def test_what_is_right(tmp_path: Path) -> None:
    file = tmp_path / "right.tsv"
    assert run(file, RIGHT) == (0, [f"{file}: 2 vectors agree, 0 differ, 0 left out"])


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ("p.0", "p.1", "p.1 is no object that can be used so"),
        ("context\t", "contexts\t", "no such operation"),
        ("\tsm\t", "\tsms\t", "sms"),
    ],
)
def test_what_means_nothing(tmp_path: Path, right: str, wrong: str, said: str) -> None:
    assert RIGHT.count(right) == 1
    file = tmp_path / "wrong.tsv"
    status, lines = run(file, RIGHT.replace(right, wrong))
    assert status == 1
    assert lines[-1] == f"{file}: 1 vectors agree, 1 differ, 0 left out"
    assert lines[0].startswith(f"{file}:")
    assert said in lines[0]


def test_nothing_agrees(tmp_path: Path) -> None:
    assert run(tmp_path / "empty.tsv", "# nothing\n")[0] == 1
    assert run(tmp_path / "none.tsv", "split\tGCX_SUCCESS\n")[0] == 1

"""The map of SMs is drawn in two places, here and in the command: both draw the same."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import gcx
import pytest

DRAW = """
import json, sys, gcx
proof = gcx.verify(json.loads(sys.argv[1]), family=sys.argv[2])
json.dump([str(proof), proof.svg(), proof.problems, proof.ok], sys.stdout)
"""


def drawn_by_the_command(
    counts: list[int | None], family: str, path: Path, env: dict[str, str]
) -> tuple[str, str, list[str], bool]:
    """Text without the lines above the map, picture, problems, and whether all is well."""
    sms = ",".join("rest" if count is None else str(count) for count in counts)
    command = [sys.executable, "-m", "gcx", "verify", "--sms", sms, "--family", family]

    def run(*more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*command, *more], env=env, capture_output=True, text=True, check=False
        )

    text = run("--svg", str(path)).stdout.replace(f"wrote {path}\n", "")
    document: dict[str, Any] = json.loads(run("--json").stdout)
    return text, path.read_text(), document["problems"], document["ok"]


def compare(counts: list[int | None], family: str, path: Path, **more: str) -> bool:
    """Draws it twice; returns whether all was well."""
    env = {**os.environ, **more}
    done = subprocess.run(
        [sys.executable, "-c", DRAW, json.dumps(counts), family],
        env=env, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    text, picture, problems, ok = json.loads(done.stdout)
    its_text, its_picture, its_problems, its_ok = drawn_by_the_command(counts, family, path, env)
    # Above the map the command names the family, and says on standard error what doesn't hold.
    lines = text.splitlines()[: -len(problems) or None]
    assert lines[2:] == its_text.splitlines()[2:]
    assert picture == its_picture
    assert (problems, ok) == (its_problems, its_ok)
    return bool(ok)


@pytest.mark.parametrize(
    ("counts", "family"),
    [
        ([24, None], "coscheduled"),
        ([108, 24], "coscheduled"),
        ([132], "coscheduled"),
        ([10, 17], "coscheduled"),
        ([8] * 15, "coscheduled"),
        ([2] * 66, "fine"),
        ([2] * 30, "fine"),
        ([1, None, None], "fine"),
        ([24, 30], "max-cluster"),
    ],
)
def test_the_command_draws_the_same(counts: list[int | None], family: str, tmp_path: Path) -> None:
    assert compare(counts, family, tmp_path / "map.svg")


def test_the_command_draws_the_same_of_any_split(tmp_path: Path) -> None:
    dice = random.Random(1)
    for _ in range(12):
        counts: list[int | None] = [dice.randint(1, 30) for _ in range(dice.randint(1, 4))]
        counts += [None] * dice.randint(0, 1)
        assert compare(counts, "fine", tmp_path / "map.svg")


@pytest.mark.parametrize("lie", ["fewer", "shared", "none"])
def test_the_command_draws_the_same_of_a_driver_that_lies(lie: str, tmp_path: Path) -> None:
    """What a driver does that breaks its promises, see tests/cli/bad_driver.c."""
    source = Path(__file__).resolve().parents[3] / "tests" / "cli" / "bad_driver.c"
    library = tmp_path / "libbad_driver.so"
    subprocess.run(
        ["gcc", "-std=c99", "-D_GNU_SOURCE", "-shared", "-fPIC", "-o", library, source, "-ldl"],
        check=True,
    )
    simulation = Path(gcx.__file__).parent / "lib" / "gcx" / "libgcx-sim.so"
    bad_driver = {
        "BAD_DRIVER_LIBRARY": str(simulation),
        "GCX_SIM": "h100@13.0",
        "BAD_DRIVER_FAULT": lie,
    }
    layouts: list[list[int | None]] = [[16, 8], [16, 8, 24, None]]
    for counts in layouts:
        path = tmp_path / "map.svg"
        assert not compare(counts, "coscheduled", path, GCX_DRIVER=str(library), **bad_driver)
    # More problems than there is room for in C.
    assert not compare([2] * 66, "fine", path, GCX_DRIVER=str(library), **bad_driver)

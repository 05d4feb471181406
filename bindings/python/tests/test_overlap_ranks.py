"""The ranks of examples/python/two_batch_overlap.py, as threads: how they agree and end."""

from __future__ import annotations

import argparse
import subprocess
import sys
from typing import Any

import pytest
from two_batches import (  # type: ignore[import-not-found]
    EXAMPLES,
    Group,
    Table,
    arm,
    module,
    once,
    program,
    told,
)

pytestmark = once
arms, measure, ranks, report = (module(name) for name in ("arms", "measure", "ranks", "report"))


def test_a_run_takes_as_long_as_the_slowest_rank() -> None:
    group = [arm("plain"), arm("sequence")]

    def work(member: Any) -> Any:
        machine = Table({"plain": 1.0 + member.rank, "sequence": 9.0 - member.rank})
        return measure.in_turns(machine, member, group, 3), machine.used

    for times, used in Group(3).run(work):
        assert times == {"plain": [3.0] * 3, "sequence": [9.0] * 3}
        assert used == ["plain", "sequence"] * 3


def test_an_arm_that_one_rank_can_not_run_is_left_out_by_all() -> None:
    group = [arm("plain"), arm("split-4"), arm("plain-copies"), arm("split-8")]

    def work(member: Any) -> Any:
        cannot = {"split-8": "no such split"}
        if member.rank == 1:
            cannot["split-4"] = "clusters"
        if member.rank == 0:
            cannot["plain-copies together"] = "no peers"
        refused: dict[str, str] = {}
        able = measure.ready(Table({}, cannot), member, group, refused)
        return [one.name for one in able], refused

    for able, refused in Group(2).run(work):
        assert able == ["plain"]
        assert refused == {
            "split-4": "rank 1: clusters",
            "plain-copies": "rank 0: no peers",
            "split-8": "no such split",
        }


def test_all_ranks_end_with_the_problem_of_one(capsys: pytest.CaptureFixture[str]) -> None:
    def work(member: Any) -> None:
        def machine() -> None:
            if member.rank == 2:
                raise MemoryError("8192 tokens need 200 GiB\nand a trace of its own")

        _, problem = ranks.attempt(machine)
        ranks.agree(member, problem)

    ends = Group(4).run(work)
    assert [type(end) for end in ends] == [SystemExit] * 4
    assert {end.code for end in ends} == {2}
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert err.endswith(": rank 2: 8192 tokens need 200 GiB\n")
    assert Group(3).run(lambda member: ranks.agree(member, "")) == [None] * 3


def test_a_rank_that_fails_later_ends_at_once() -> None:
    code = f"""
import sys, threading
sys.path.insert(0, {str(EXAMPLES)!r})
sys.argv = ["two_batch_overlap.py"]
from twobatch.ranks import fail
threading.Thread(target=threading.Event().wait).start()  # As a library would, for ever.
try:
    raise RuntimeError("CUDA error: unspecified launch failure\\nCompile with ...")
except RuntimeError as error:
    fail(3, error)
"""
    done = subprocess.run(
        [sys.executable, "-B", "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert done.stderr == (
        "two_batch_overlap.py: FAILED: rank 3: RuntimeError: CUDA error: unspecified launch "
        "failure\n"
    )


def test_what_torchrun_tells() -> None:
    assert ranks.place_of(told()) == (1, 4, 1)
    assert ranks.place_of({**told("0", "2", "0", "2"), "OTHER": "x"}) == (0, 2, 0)


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({}, "needs 2 or more GPUs of one host.*torchrun --nproc-per-node"),
        (told("0", "1", "0", "1"), "2, 4 or 8 GPUs .* not 1: needs 2 or more"),
        (told("0", "3", "0", "3"), "2, 4 or 8 GPUs .* not 3"),
        (told("0", "8", "0", "4"), "4 of 8 processes are on this host"),
        (told("4"), "rank 4, local rank 1 of 4"),
        (told(device="7"), "rank 1, local rank 7 of 4"),
        (told(world="many"), "WORLD_SIZE is 'many'"),
        ({"RANK": "0"}, "WORLD_SIZE is ''"),
    ],
)
def test_what_is_no_place(environment: dict[str, str], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        ranks.place_of(environment)


# A whole run, but for GPUs.


def arguments(**changes: Any) -> argparse.Namespace:
    given: dict[str, Any] = {
        "layer": ["products"],
        "tokens": [2048],
        "sms": [8, 16],
        "arms": [arm("sequence"), arm("plain"), arm("split-24")],
        "repeats": 2,
        "sweep_repeats": 1,
    }
    return argparse.Namespace(**{**given, **changes})


TIMES = {
    **{"sequence": 10.0, "plain": 9.0, "split-24": 12.0},
    **{"split-8": 11.0, "split-8-target": 8.0, "split-16": 9.5, "split-16-target": 9.6},
}


def test_ranks_come_to_the_same() -> None:
    machines: list[Any] = []

    def work(member: Any) -> Any:
        machine = Table(TIMES, {"split-16": "no"} if member.rank == 1 else {})
        machines.append(machine)
        lines: list[str] = []
        cells = program.run(lambda *_: machine, member, arguments(), lines.append)
        return cells, lines

    found = Group(2).run(work)
    assert found[0] == found[1]
    ((cell,), lines) = found[0]
    assert cell["chosen"] == "split-8-target"
    # The chosen one, and the same without a target, beside what was asked for.
    assert [*cell["arms"]] == ["sequence", "plain", "split-24", "split-8-target", "split-8"]
    assert cell["refused"] == {"split-16": "rank 1: no"}
    assert [*cell["spans"]] == [*cell["arms"]]
    assert "products, T = 2048: sweep: split-8-target is chosen" in lines
    assert all(machine.used[-1] == "close" for machine in machines)
    assert machines[0].used[:3] == ["split-8", "split-8-target", "split-16-target"]


def test_a_device_without_any_of_the_splits() -> None:
    names = [one.name for one in arms.candidates([8])]
    machine = Table(TIMES, dict.fromkeys(names, "too few SMs"))
    lines: list[str] = []
    asked = arguments(sms=[8], arms=[arm("sequence"), arm("plain")])
    (cell,) = program.run(lambda *_: machine, ranks.Alone(), asked, lines.append)
    assert (cell["chosen"], cell["sweep"]) == ("", {})
    assert report.verdict(cell).text == "overlap pays: plain takes 0.90 of sequence"
    assert set(cell["refused"].values()) == {"too few SMs"}

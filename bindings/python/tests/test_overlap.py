"""examples/python/two_batch_overlap.py without GPUs: schedule, arms, choice, ranks as threads."""

from __future__ import annotations

import argparse
import importlib
import json
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import gcx
import pytest

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "python"
sys.path.insert(0, str(EXAMPLES))
program: Any = importlib.import_module("two_batch_overlap")
arms, lanes, measure, ranks, report, schedule, timeline = (
    importlib.import_module(f"twobatch.{name}")
    for name in ("arms", "lanes", "measure", "ranks", "report", "schedule", "timeline")
)
arm: Any = arms.arm_of

pytestmark = pytest.mark.skipif(
    gcx.driver_info().version != (13, 0), reason="it does not depend on the driver's version"
)


class Clocked:
    """A lane that takes time: an event is the moment when it completes."""

    def __init__(self) -> None:
        self.free = 0.0

    def wait_event(self, event: float) -> None:
        self.free = max(self.free, event)

    def record_event(self) -> float:
        return self.free


@pytest.mark.parametrize("only", ["", "compute", "exchange"])
@pytest.mark.parametrize("one_lane", [False, True])
def test_submitted_steps_run_as_scheduled(one_lane: bool, only: str) -> None:
    def cost(step: Any) -> float:
        return float(1 + 0.5 * step.layer + 0.3 * step.batch + 0.1 * len(step.part))

    compute = Clocked()
    exchange = compute if one_lane else Clocked()
    spans = []

    def do(step: Any, lane: Clocked) -> None:
        assert lane is (compute if step.lane == "compute" else exchange)
        spans.append(schedule.Span(step, lane.free, lane.free + cost(step)))
        lane.free += cost(step)

    schedule.submit(3, compute, exchange, do, only=only)
    expected = schedule.lay_out(3, cost, one_lane=one_lane, only=only)
    assert [span.step for span in spans] == [span.step for span in expected]
    for span, wanted in zip(spans, expected):
        assert span[1:] == pytest.approx(wanted[1:])
    for batch in (0, 1):  # Each step comes after those that it waits for.
        mine = [span for span in expected if span.step.batch == batch]
        assert all(one.end <= other.start + 1e-9 for one, other in zip(mine, mine[1:]))


def test_arms_have_names() -> None:
    swept = arms.candidates([4, 8, 8])
    names = [*(one.name for one in (*arms.ARMS, *swept)), "split-8-target-ctas16"]
    for name in names:
        assert arm(name).name == name
    assert [one.name for one in swept] == ["split-4", "split-4-target", "split-8", "split-8-target"]
    assert arm("split-8").other() == arm("split-8-target")
    assert [arm(name).fine for name in ("split-4", "split-8", "plain")] == [True, False, False]
    for name, words in (
        ("magic", "is none of compute, exchange, sequence"),
        ("split-0", "is none of"),
        ("plain-8", "only splits have SMs"),
        ("plain-target", "without a split"),
        ("split-8-target-told", "need no target"),
        ("split-8-copies", "copy engines need no SMs"),
        ("plain-ctas8-copies", "copy engines have no blocks"),
        ("compute-ctas8", "nothing is communicated"),
    ):
        with pytest.raises(ValueError, match=words):
            arm(name)


@pytest.mark.parametrize(
    ("medians", "best"),
    [
        ({"split-8": 11.5, "split-8-target": 8.8, "split-16-target": 9.9}, "split-8-target"),
        ({"split-8": 8.85, "split-8-target": 8.8, "split-16-target": 8.82}, "split-8"),
        ({"split-16": 8.8, "split-6": 8.85, "split-4": 9.1}, "split-6"),
    ],
)
def test_best_split_is_chosen_and_of_equals_the_simplest(
    medians: dict[str, float], best: str
) -> None:
    times = {name: [took] * 3 for name, took in medians.items()}
    assert measure.choose(report.arms_of(times), times).name == best


@pytest.mark.parametrize(
    ("medians", "best", "partition", "overlap"),
    [
        ((10.0, 9.3, 8.5), "split-8", True, True),
        ((36.6, 35.58, 37.8), "plain", False, True),
        ((10.0, 9.0, 8.9), "plain", False, True),
        ((10.0, 9.9, 9.85), "sequence", False, False),
    ],
)
def test_verdict_follows_from_the_medians(
    medians: tuple[float, ...], best: str, partition: bool, overlap: bool
) -> None:
    times = {name: [took] * 5 for name, took in zip(("sequence", "plain", "split-8"), medians)}
    found = measure.judge(report.arms_of(times), times)
    assert (found.best, found.partition, found.overlap) == (best, partition, overlap)
    noisy = {name: [0.8 * took[0], *took[1:4], 1.2 * took[0]] for name, took in times.items()}
    noisy["plain"] = noisy["split-8"] = [0.97 * took for took in noisy["sequence"]]
    assert not measure.judge(report.arms_of(noisy), noisy).overlap


def test_lanes_share_no_sm() -> None:
    splits = lanes.Splits(0)
    try:
        for name in ("split-4", "split-8", "split-12-target"):
            exchange, compute = splits.parts(arm(name))
            assert (exchange.sm_count, compute.sm_count) == (arm(name).sms, 132 - arm(name).sms)
            assert exchange.resource.isdisjoint(compute.resource)
        for name in ("split-132", "split-7"):
            with pytest.raises(gcx.Error):
                splits.parts(arm(name))
    finally:
        splits.close()


class Group:
    """Ranks that are threads of this process."""

    def __init__(self, world: int) -> None:
        self.world = world
        self._barrier = threading.Barrier(world, timeout=30)
        self._values: list[Any] = [None] * world

    def run(self, work: Callable[[Any], Any]) -> list[Any]:
        """Returns each rank's result, or the exception that ended it."""
        found: list[Any] = [None] * self.world

        def one(rank: int) -> None:
            try:
                found[rank] = work(Member(self, rank))
            except BaseException as error:
                found[rank] = error

        threads = [threading.Thread(target=one, args=(rank,)) for rank in range(self.world)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return found

    def gather(self, rank: int, mine: Any) -> list[Any]:
        self._values[rank] = mine
        self._barrier.wait()
        found = [*self._values]
        self._barrier.wait()
        return found


class Member:
    def __init__(self, group: Group, rank: int) -> None:
        self.rank, self.world, self._group = rank, group.world, group

    def gather(self, mine: Any) -> list[Any]:
        return self._group.gather(self.rank, mine)


class Table:
    """A machine that takes the times of a table."""

    sm_count = 132

    def __init__(self, times: dict[str, float], cannot: dict[str, str] | None = None) -> None:
        self.times, self.cannot = times, cannot or {}
        self.used: list[str] = []

    def prepare(self, one: Any) -> str:
        return self.cannot.get(one.name, "")

    def warm_up(self, one: Any) -> str:
        return self.cannot.get(f"{one.name} together", "")

    def once(self, one: Any) -> float:
        self.used.append(one.name)
        return self.times[one.name]

    def trace(self, one: Any) -> list[Any]:
        found: list[Any] = schedule.lay_out(1, lambda step: 1.0, one_lane=one.kind == "sequence")
        return found

    def close(self) -> None:
        self.used.append("close")


def test_ranks_agree_on_arms_times_and_results(capsys: pytest.CaptureFixture[str]) -> None:
    times = {
        **{"sequence": 10.0, "plain": 9.0, "split-24": 12.0, "plain-copies": 1.0},
        **{"split-8": 11.0, "split-8-target": 8.0, "split-16": 9.5, "split-16-target": 9.6},
    }
    given = argparse.Namespace(
        layer=["products"], tokens=[2048], sms=[8, 16], repeats=2, sweep_repeats=1,
        arms=[arm(name) for name in ("sequence", "plain", "split-24", "plain-copies")],
    )  # fmt: skip
    machines: list[Table] = []

    def work(member: Any) -> Any:
        slower = {name: took + 0.01 * member.rank for name, took in times.items()}
        cannot = {"split-16": "no"} if member.rank == 1 else {"plain-copies together": "no peers"}
        machine = Table(slower, cannot)
        machines.append(machine)
        return program.run(lambda *_: machine, member, given, lambda line: None)

    found = Group(2).run(work)
    assert found[0] == found[1]
    (cell,) = found[0]
    assert cell["chosen"] == "split-8-target"
    assert [*cell["arms"]] == ["sequence", "plain", "split-24", "split-8-target", "split-8"]
    assert cell["arms"]["plain"] == [9.01, 9.01]  # The slowest rank's.
    assert cell["refused"] == {"split-16": "rank 1: no", "plain-copies": "rank 0: no peers"}
    assert all(machine.used[-1] == "close" for machine in machines)
    results = {"device": "a GPU", "world": 2, "sm_count": 132, "software": {}, "layers": 6}
    results["cells"] = [cell]
    report.table(results)
    printed = capsys.readouterr().out
    assert "the sweep chose 8 SMs for communication and 124 for compute" in printed
    assert "overlap pays, on partitions: split-8-target takes 0.89 of plain" in printed
    root = ElementTree.fromstring(timeline.draw(results))
    bars = root.findall("{http://www.w3.org/2000/svg}g")
    assert len(bars) == sum(map(len, cell["spans"].values())) == 5 * 8


def test_all_ranks_end_with_the_problem_of_one(capsys: pytest.CaptureFixture[str]) -> None:
    def work(member: Any) -> None:
        def machine() -> None:
            if member.rank == 2:
                raise MemoryError("8192 tokens need 200 GiB\nand a trace")

        ranks.agree(member, ranks.attempt(machine)[1])

    ends = Group(4).run(work)
    assert [(type(end), end.code) for end in ends] == [(SystemExit, 2)] * 4
    assert capsys.readouterr().err.endswith(": rank 2: 8192 tokens need 200 GiB\n")
    assert Group(3).run(lambda member: ranks.agree(member, "")) == [None] * 3


def test_place_is_that_of_torchrun() -> None:
    names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")

    def place(*values: str) -> Any:
        return ranks.place_of(dict(zip(names, values)))

    assert place("1", "4", "1", "4") == (1, 4, 1)
    for values, words in (
        ((), "needs 2 or more GPUs of one host.*torchrun --nproc-per-node"),
        (("0", "3", "0", "3"), "2, 4 or 8 GPUs .* not 3"),
        (("0", "8", "0", "4"), "4 of 8 processes are on this host"),
        (("4", "4", "1", "4"), "rank 4, local rank 1 of 4"),
        (("1", "many", "1", "4"), "WORLD_SIZE is 'many'"),
        (("0",), "WORLD_SIZE is ''"),
    ):
        with pytest.raises(ValueError, match=words):
            place(*values)


CELL = {"layer": "products", "tokens": 2048, "refused": {}, "chosen": "split-8-target", "spans": {}}
MEDIANS = {"sequence": 10.28, "plain": 9.32, "split-8-target": 8.83}


@pytest.mark.parametrize(
    ("results", "status", "words"),
    [
        ({"cells": [{**CELL, "sweep": {}, "arms": {**MEDIANS, "split-8-told": 8.5}}]}, 0, "chosen"),
        ({"cells": [{**CELL, "sweep": {}, "arms": MEDIANS}]}, 1, "split-8-target takes 0.9"),
        ({"beside": 2.0, "window": 1.0}, 0, "| 8 MiB | 2.00 ms | 1.00 ms |"),
        ({"beside": 2.0, "window": 1.9}, 1, "at best 1.05 times as fast"),
    ],
)
def test_figures_of_the_pages_are_checked(
    results: dict[str, Any], status: int, words: str, tmp_path: Path
) -> None:
    """tests/gpu/overlap_figures.py, with the results of both examples."""
    if "cells" in results:
        (cell,) = results["cells"]
        arms = {name: [took] for name, took in cell["arms"].items()}
        results = {"device": "a GPU", "world": 4, "layers": 6, "software": {}}
        results["cells"] = [{**cell, "arms": arms}]
    else:
        times = {name: [[took, 0.0]] for name, took in results.items()}
        results = {"device": "a GPU", "patterns": {"walk": {"8": times}}}
    file = tmp_path / "results.json"
    file.write_text(json.dumps(results), encoding="utf-8")
    script = EXAMPLES.parent.parent / "tests" / "gpu" / "overlap_figures.py"
    done = subprocess.run(
        [sys.executable, script, file], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (status, "")
    assert words in done.stdout

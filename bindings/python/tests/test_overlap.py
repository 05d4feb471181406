"""examples/python/two_batch_overlap.py as far as it goes without a GPU: schedule, arms, sweep and
verdict on simulated machines, ranks as threads, partitions on the simulated driver."""

from __future__ import annotations

import argparse
import importlib
import json
import os
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
if str(EXAMPLES) not in sys.path:
    sys.path.insert(0, str(EXAMPLES))

# What it does knows no driver's version: one run has it.
pytestmark = pytest.mark.skipif(
    gcx.driver_info().version != (13, 0), reason="another driver's run has it"
)
arms, lanes, measure, ranks, report, schedule, simulated, timeline = (
    importlib.import_module(f"twobatch.{name}")
    for name in (
        *("arms", "lanes", "measure", "ranks", "report", "schedule", "simulated", "timeline"),
    )
)
program: Any = importlib.import_module("two_batch_overlap")


def arm(name: str) -> Any:
    return arms.arm_of(name)


# The schedule.


def test_each_step_comes_after_what_it_waits_for() -> None:
    order = schedule.steps(3)
    assert len(set(order)) == len(order) == 3 * 2 * 4
    for batch in (0, 1):
        mine = [step for step in order if step.batch == batch]
        assert [step.part for step in mine] == [*schedule.LANES] * 3
        assert [step.layer for step in mine] == [0] * 4 + [1] * 4 + [2] * 4


@pytest.mark.parametrize(
    ("compute", "exchange", "total"),
    [
        # Communication hides behind the other batch's compute, but for the last.
        (2.0, 1.0, 2 * 2 * 2 * 6 + 1.0),
        (2.0, 2.0, 2 * 2 * 2 * 6 + 2.0),
        # The first compute is not hidden where communication is longer.
        (1.0, 3.0, 1.0 + 3.0 * 2 * 2 * 6),
    ],
)
def test_two_batches_hide_each_other(compute: float, exchange: float, total: float) -> None:
    def cost(step: Any) -> float:
        return compute if step.lane == "compute" else exchange

    spans = schedule.lay_out(6, cost)
    assert schedule.length(spans) == pytest.approx(total)
    in_order = schedule.lay_out(6, cost, one_lane=True)
    assert schedule.length(in_order) == pytest.approx(24 * (compute + exchange))
    alone = schedule.lay_out(6, cost, only="exchange")
    assert schedule.length(alone) == pytest.approx(24 * exchange)
    for lane in ("compute", "exchange"):
        mine = [span for span in spans if span.step.lane == lane]
        assert all(one.end <= other.start + 1e-9 for one, other in zip(mine, mine[1:]))
    for batch in (0, 1):
        mine = [span for span in spans if span.step.batch == batch]
        assert all(one.end <= other.start + 1e-9 for one, other in zip(mine, mine[1:]))


# The arms.


def test_names_of_arms() -> None:
    names = [
        *(one.name for one in arms.ARMS),
        *(one.name for one in arms.candidates([4, 8, 8, 12])),
        *simulated.TABLE,
        "split-8-target-ctas16",
        "sequence-copies",
    ]
    for name in names:
        assert arm(name).name == name
    assert [one.name for one in arms.candidates([4, 8, 8])] == [
        *("split-4", "split-4-target", "split-8", "split-8-target"),
    ]
    assert arm("split-8").other() == arm("split-8-target")
    assert arm("split-8-target").other() == arm("split-8")
    assert [arm(name).fine for name in ("split-4", "split-12", "split-8", "plain")] == [
        *(True, True, False, False),
    ]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("magic", "is none of compute, exchange, sequence"),
        ("split", "the SMs for communication are of a split"),
        ("split-0", "is none of"),
        ("plain-8", "the SMs for communication are of a split"),
        ("plain-target", "without a split there is nothing to tell"),
        ("split-8-target-told", "need no target"),
        ("split-8-copies", "copy engines need no SMs"),
        ("priority-copies", "copy engines need no SMs"),
        ("plain-ctas8-copies", "copy engines have no blocks"),
        ("compute-ctas8", "nothing is communicated"),
        ("plain-ctas8-target", "is none of"),
        ("", "is none of"),
    ],
)
def test_what_is_no_arm(name: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        arms.arm_of(name)


# Ranks, as threads.


class Group:
    """Ranks that are threads of this process."""

    def __init__(self, world: int) -> None:
        self.world = world
        self._barrier = threading.Barrier(world, timeout=30)
        self._brought: list[Any] = [None] * world

    def run(self, work: Callable[[Any], Any]) -> list[Any]:
        """What each rank gave, or the exception that ended it."""
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
        self._brought[rank] = mine
        self._barrier.wait()
        found = [*self._brought]
        self._barrier.wait()
        return found


class Member:
    def __init__(self, group: Group, rank: int) -> None:
        self.rank, self.world, self._group = rank, group.world, group

    def gather(self, mine: Any) -> list[Any]:
        return self._group.gather(self.rank, mine)


class Table:
    """A machine that takes what it is told, and tells in which order it was used."""

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


def told(rank: str = "1", world: str = "4", device: str = "1", here: str = "4") -> dict[str, str]:
    return {"RANK": rank, "WORLD_SIZE": world, "LOCAL_RANK": device, "LOCAL_WORLD_SIZE": here}


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


# The choice, and what to do.


def chosen(**medians: float) -> str:
    times = {name.replace("_", "-"): [took] * 3 for name, took in medians.items()}
    name: str = measure.choose(report.arms_of(times), times).name
    return name


def test_the_best_split_is_chosen_and_of_equals_the_simplest() -> None:
    assert chosen(split_8=11.5, split_8_target=8.8, split_16_target=9.9) == "split-8-target"
    assert chosen(split_8=8.85, split_8_target=8.8, split_16_target=8.82) == "split-8"
    assert chosen(split_16=8.8, split_6=8.85, split_4=9.1) == "split-6"


def judged(noise: float = 0.0, **medians: float) -> Any:
    shape = (1 - noise, 1.0, 1.0, 1.0, 1 + noise)
    times = {
        name.replace("_", "-"): [took * factor for factor in shape]
        for name, took in medians.items()
    }
    return measure.judge(report.arms_of(times), times)


def test_verdicts() -> None:
    found = judged(sequence=10.0, plain=9.3, split_8_target=8.5, compute=7.0)
    assert (found.best, found.partition, found.overlap) == ("split-8-target", True, True)
    assert "split-8-target takes 0.91 of plain, 0.85 of sequence" in found.text
    found = judged(sequence=36.6, plain=36.8, priority=35.58, split_8=37.8, split_8_target=36.7)
    assert (found.best, found.partition, found.overlap) == ("priority", False, True)
    assert "overlap pays, but don't partition: priority takes 0.97 of sequence" in found.text
    found = judged(sequence=10.0, plain=9.0, split_8=8.9)
    assert (found.best, found.partition) == ("plain", False)
    assert "the same, so partitions are not needed" in found.text
    found = judged(sequence=10.0, plain=9.9, split_8=9.85, compute=7.0)
    assert (found.best, found.overlap) == ("sequence", False)
    assert found.text == "overlap does not pay: split-8 takes 0.98 of sequence"
    # Of sequences and of plain ones the best counts, and one side alone is judged too.
    found = judged(sequence=10.0, sequence_copies=8.0, plain=9.0, split_8=8.5)
    assert (found.best, found.overlap) == ("sequence-copies", False)
    found = judged(sequence=10.0, split_8=8.5)
    assert found == ("split-8", True, True, "overlap pays: split-8 takes 0.85 of sequence")


def test_what_is_less_than_the_noise_is_nothing() -> None:
    assert judged(0.0, sequence=10.0, plain=9.5).overlap
    wild = {"sequence": [8.0, 9.0, 10.0, 11.0, 12.0], "plain": [7.5, 8.5, 9.5, 10.5, 11.5]}
    assert not measure.judge(report.arms_of(wild), wild).overlap


# Partitions.


def test_the_lanes_share_no_sm() -> None:
    splits = lanes.Splits(0)
    try:
        for name in ("split-4", "split-6", "split-8", "split-12-target", "split-24"):
            exchange, compute = splits.parts(arm(name))
            sms = arm(name).sms
            assert (exchange.sm_count, compute.sm_count) == (sms, 132 - sms)
            assert not {*exchange.stream.sm_ids()} & {*compute.stream.sm_ids()}
        assert splits.parts(arm("split-8-target")) == splits.parts(arm("split-8"))
        for name in ("split-132", "split-7"):
            with pytest.raises(gcx.Error):
                splits.parts(arm(name))
    finally:
        splits.close()
    assert gcx.cache_stats().in_use == 0


# The whole, but for GPUs.


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


def test_the_simulation_is_the_table() -> None:
    for column, tokens in enumerate(simulated.TOKENS):
        machine = simulated.Simulated(tokens, noise=0)
        for name, took in simulated.TABLE.items():
            assert machine.prepare(arm(name)) == ""
            assert machine.once(arm(name)) == took[column]
            assert schedule.length(machine.trace(arm(name))) == pytest.approx(took[column])
        assert machine.prepare(arm("split-4")) == "not in the table"


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Status, standard output and standard error of the program, which is run here."""

    def one(*given: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["two_batch_overlap.py", *given])
        status: Any = 0
        try:
            program.common.run(program.main)
        except SystemExit as end:
            status = end.code
        return status, *capsys.readouterr()

    return one


def test_the_program(tmp_path: Path, run: Run) -> None:
    file, picture = tmp_path / "results.json", tmp_path / "timeline.svg"
    few = ("--arms", "compute", "exchange", "sequence", "plain", "priority", "plain-copies")
    status, out, err = run(
        "--simulate", *few, "--sms", "4", "8", "--json", str(file), "--timeline", str(picture)
    )
    assert (status, err) == (0, "")
    assert out.startswith("SIMULATED: no GPU is involved; by what 4 x NVIDIA H200 took\n")
    assert "products, T = 8192: round 10 of 10\n" in out
    tables = out[out.index("products, 2 batches of 2048 tokens") :]
    assert tables.count("the sweep chose 8 SMs for communication and 124 for compute") == 2
    assert "overlap pays, on partitions: split-8-target takes 0.9" in tables
    assert "overlap pays, but don't partition: priority takes 0.97 of sequence" in tables
    assert "plain-copies: not in the table" in tables
    results = json.loads(file.read_text(encoding="utf-8"))
    assert results["simulated"] is True
    assert [len(cell["arms"]["plain"]) for cell in results["cells"]] == [10, 10]
    check_picture(picture, results)
    # What was written is read again.
    again = tmp_path / "again.svg"
    status, out, _ = run("--from", str(file), "--timeline", str(again))
    assert status == 0
    assert out.replace(again.name, picture.name) == tables
    assert again.read_bytes() == picture.read_bytes()


def check_picture(file: Path, results: Any) -> None:
    root = ElementTree.parse(file).getroot()
    space = "{http://www.w3.org/2000/svg}"
    width, height = map(float, root.attrib["viewBox"].split()[2:])
    spans = sum(len(rows) for cell in results["cells"] for rows in cell["spans"].values())
    groups = root.findall(f"{space}g")
    # 24 steps of 2 batches in 6 layers make a bar each, in 5 arms of 2 cells.
    assert len(groups) == spans == 2 * 5 * 48
    for group in groups:
        (bar,) = group.findall(f"{space}rect")
        assert float(bar.attrib["x"]) >= 0
        assert float(bar.attrib["x"]) + float(bar.attrib["width"]) <= width
        assert float(bar.attrib["y"]) + float(bar.attrib["height"]) <= height
    words = "\n".join(text.text or "" for text in root.iter(f"{space}text"))
    assert "rank 0 of SIMULATED 4 x NVIDIA H200" in words
    assert "split-8-target: 124 SMs" in words
    assert "split-8-target: 8 SMs" in words


def test_started_without_torchrun(monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    for name in told():
        monkeypatch.delenv(name, raising=False)
    status, out, err = run()
    assert status == 2
    assert out.startswith("SIMULATED")
    assert err.startswith("two_batch_overlap.py: needs a GPU: ")


@pytest.mark.parametrize("rank", ["0", "1"])
def test_of_several_ranks_one_says_what_is_wrong(rank: str) -> None:
    done = subprocess.run(
        [sys.executable, "-B", str(EXAMPLES / "two_batch_overlap.py")],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, **told(rank, "2", rank, "2")},
    )
    said = done.stdout + done.stderr
    assert done.returncode == 2
    assert ("needs a GPU: the simulated driver" in said) if rank == "0" else said == ""


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("--arms", "magic"), "'magic' is none of compute"),
        (("--arms", "split-8-copies"), "copy engines need no SMs"),
        (("--tokens", "1000"), "a multiple of 256, not 1000"),
        (("--repeats", "0"), "from 1 on, not '0'"),
        (("--simulate", "--tokens", "256"), "the table has T = 2048 and 8192, not 256"),
        (("--simulate", "--layer", "experts"), "the table has plain products alone"),
        (("--from", "/nowhere/results.json"), "--from: "),
    ],
)
def test_wrong_arguments(given: tuple[str, ...], words: str, run: Run) -> None:
    status, _, err = run(*given)
    assert status == 2
    assert words in err


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"cells": 1}', "not JSON", '"text"', '{"cells": [{"arms": 3}]}']
)
def test_a_file_that_it_has_not_written(tmp_path: Path, text: str, run: Run) -> None:
    file = tmp_path / "results.json"
    file.write_text(text, encoding="utf-8")
    status, out, err = run("--from", str(file))
    assert (status, out) == (2, "")
    assert err.startswith("two_batch_overlap.py: --from: ")

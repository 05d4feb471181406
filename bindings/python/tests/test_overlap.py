"""examples/python/two_batch_overlap.py without a GPU: its schedule, its arms, what it chooses and
advises, and its partitions on the simulated driver."""

from __future__ import annotations

from typing import Any

import gcx
import pytest
from two_batches import arm, module, once, schedule  # type: ignore[import-not-found]

pytestmark = once
arms, lanes, measure, report, simulated = (
    module(name) for name in ("arms", "lanes", "measure", "report", "simulated")
)


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


class Clocked:
    """A lane that takes time: an event is the moment when it comes."""

    def __init__(self) -> None:
        self.free = 0.0
        self.waits = 0

    def wait_event(self, event: float) -> None:
        self.free = max(self.free, event)
        self.waits += 1

    def record_event(self) -> float:
        return self.free


@pytest.mark.parametrize("only", ["", "compute", "exchange"])
@pytest.mark.parametrize("one_lane", [False, True])
def test_what_is_submitted_runs_as_the_schedule_says(one_lane: bool, only: str) -> None:
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
    # No lane waits for itself, and each step but the first of a batch waits once.
    waits = 0 if one_lane or only else 3 * 4 * 2 - 2
    assert compute.waits + (0 if one_lane else exchange.waits) == waits


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

"""Measures arms in turns, chooses a split, and judges the results."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import NamedTuple, Protocol

from twobatch.arms import Arm
from twobatch.ranks import Ranks
from twobatch.schedule import Span

Times = dict[str, list[float]]  # Milliseconds by an arm's name.
Say = Callable[[str], None]

# Smaller differences count as equal, and the simpler arm wins.
SAME = 0.02


class Machine(Protocol):
    """Runs two batches."""

    @property
    def sm_count(self) -> int: ...

    def prepare(self, arm: Arm) -> str:
        """Prepares an arm on this rank; returns why it can't run here, or ""."""

    def warm_up(self, arm: Arm) -> str:
        """Runs it with the other ranks until nothing is compiled any more, and checks its results;
        returns why the ranks can't run it together, or ""."""

    def once(self, arm: Arm) -> float:
        """Runs it once; returns this rank's milliseconds."""

    def trace(self, arm: Arm) -> list[Span]:
        """Runs it once; returns when each step ran."""

    def close(self) -> None: ...


def ready(machine: Machine, ranks: Ranks, arms: list[Arm], refused: dict[str, str]) -> list[Arm]:
    """Returns the arms that every rank can run, warmed up, and notes the reasons of the others. All
    ranks return the same."""
    able = []
    for arm in arms:
        why = _first(ranks.gather(machine.prepare(arm)))
        if not why:
            why = _first(ranks.gather(machine.warm_up(arm)))
        if why:
            refused[arm.name] = why
        else:
            able.append(arm)
    return able


def _first(reasons: list[str]) -> str:
    """Returns the first reason, with its rank unless all agree."""
    if len(set(reasons)) == 1:
        return reasons[0]
    return next(f"rank {rank}: {why}" for rank, why in enumerate(reasons) if why)


def in_turns(
    machine: Machine, ranks: Ranks, arms: list[Arm], repeats: int, say: Say = lambda line: None
) -> Times:
    """Runs every arm once in each round, so that slow changes, as of the clocks, affect all
    equally. A run takes as long as the slowest rank."""
    times: Times = {arm.name: [] for arm in arms}
    for repeat in range(repeats):
        for arm in arms:
            times[arm.name].append(max(ranks.gather(machine.once(arm))))
        say(f"round {repeat + 1} of {repeats}")
    return times


def median(times: list[float]) -> float:
    return statistics.median(times)


def spread(times: list[float]) -> float:
    """Returns the interquartile range relative to the median."""
    if len(times) < 4:
        return (max(times) - min(times)) / median(times)
    low, _, high = statistics.quantiles(times, n=4)
    return (high - low) / median(times)


def choose(arms: list[Arm], times: Times) -> Arm:
    """Returns the best split; of equal ones that without a target and with the fewest SMs for
    communication."""
    best = min(median(times[arm.name]) for arm in arms)
    good = [arm for arm in arms if median(times[arm.name]) <= best * (1 + SAME / 2)]
    return min(good, key=lambda arm: (arm.target, arm.sms, arm.name))


class Verdict(NamedTuple):
    """What the results recommend."""

    best: str  # The arm.
    partition: bool
    overlap: bool
    text: str


def judge(arms: list[Arm], times: Times) -> Verdict:
    """Decides whether overlapping pays, and whether partitions do. Needs a sequence and an arm that
    overlaps."""

    def best_of(some: list[Arm]) -> str:
        return min((arm.name for arm in some), key=lambda name: median(times[name]))

    splits = [arm for arm in arms if arm.is_split]
    loose = [arm for arm in arms if arm.overlaps and not arm.is_split]
    in_order = best_of([arm for arm in arms if arm.kind == "sequence"])
    beside = best_of([*splits, *loose])
    share = median(times[beside]) / median(times[in_order])
    if not _better(times, beside, in_order):
        text = f"overlap does not pay: {beside} takes {share:.2f} of {in_order}"
        return Verdict(in_order, False, False, text)
    pays = f"{share:.2f} of {in_order}"
    if not splits or not loose:
        return Verdict(beside, bool(splits), True, f"overlap pays: {beside} takes {pays}")
    split, without = best_of(splits), best_of(loose)
    ratio = median(times[split]) / median(times[without])
    if _better(times, split, without):
        text = f"overlap pays, on partitions: {split} takes {ratio:.2f} of {without}, {pays}"
        return Verdict(split, True, True, text)
    share = median(times[without]) / median(times[in_order])
    pays = f"{share:.2f} of {in_order}"
    if _better(times, without, split):
        text = (
            f"overlap pays, but don't partition: {without} takes {pays}; {split} takes "
            f"{ratio:.2f} of {without}"
        )
    else:
        text = (
            f"overlap pays: {without} takes {pays}; {split} takes {ratio:.2f} of that, which is "
            "the same, so partitions are not needed"
        )
    return Verdict(without, False, True, text)


def _better(times: Times, one: str, other: str) -> bool:
    """Returns whether one is better by more than SAME and by more than the noise of both."""
    noise = max(SAME, spread(times[one]), spread(times[other]))
    return median(times[one]) < median(times[other]) * (1 - noise)

"""Repeats in turns, a short sweep of splits, and what follows from the figures."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import NamedTuple, Protocol

from twobatch.arms import Arm
from twobatch.ranks import Ranks
from twobatch.schedule import Span

Times = dict[str, list[float]]  # Milliseconds by an arm's name.
Say = Callable[[str], None]

# What differs by less is the same: the simpler way is taken.
SAME = 0.02


class Machine(Protocol):
    """What runs two batches: GPUs, or their simulation."""

    @property
    def sm_count(self) -> int: ...

    def prepare(self, arm: Arm) -> str:
        """Makes an arm ready, without the other ranks; gives why it can't run here, or nothing."""

    def warm_up(self, arm: Arm) -> str:
        """Runs it, with the other ranks, until nothing is new, and checks what it computes; gives
        why the ranks can't run it together, or nothing."""

    def once(self, arm: Arm) -> float:
        """Runs it once: milliseconds, on this rank."""

    def trace(self, arm: Arm) -> list[Span]:
        """Runs it once, and notes what was when."""

    def close(self) -> None: ...


def ready(machine: Machine, ranks: Ranks, arms: list[Arm], refused: dict[str, str]) -> list[Arm]:
    """Those that every rank can run, warm. Of the others the reason is noted. All ranks give the
    same."""
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
    """The first reason, and whose it is if not everybody's."""
    if len(set(reasons)) == 1:
        return reasons[0]
    return next(f"rank {rank}: {why}" for rank, why in enumerate(reasons) if why)


def in_turns(
    machine: Machine, ranks: Ranks, arms: list[Arm], repeats: int, say: Say = lambda line: None
) -> Times:
    """Every arm so often, side by side: one of each in every round, so that what changes slowly, as
    the clocks, meets all of them. A run takes as long as the slowest rank."""
    times: Times = {arm.name: [] for arm in arms}
    for repeat in range(repeats):
        for arm in arms:
            times[arm.name].append(max(ranks.gather(machine.once(arm))))
        say(f"round {repeat + 1} of {repeats}")
    return times


def median(times: list[float]) -> float:
    return statistics.median(times)


def spread(times: list[float]) -> float:
    """Half of them lie in so much of their median."""
    if len(times) < 4:
        return (max(times) - min(times)) / median(times)
    low, _, high = statistics.quantiles(times, n=4)
    return (high - low) / median(times)


def choose(arms: list[Arm], times: Times) -> Arm:
    """The best split; of those that are the same as it the simplest: without a target, and with the
    fewest SMs for communication."""
    best = min(median(times[arm.name]) for arm in arms)
    good = [arm for arm in arms if median(times[arm.name]) <= best * (1 + SAME / 2)]
    return min(good, key=lambda arm: (arm.target, arm.sms, arm.name))


class Verdict(NamedTuple):
    """What to do, by the figures."""

    best: str  # The arm.
    partition: bool
    overlap: bool
    text: str


def judge(arms: list[Arm], times: Times) -> Verdict:
    """Whether overlapping pays, and whether partitions do; there have to be a sequence and an arm
    that overlaps."""

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
    """By more than what is the same, and more than the runs themselves differ."""
    noise = max(SAME, spread(times[one]), spread(times[other]))
    return median(times[one]) < median(times[other]) * (1 - noise)

"""A policy for decode next to prefill: prefills as fast as a promised time per token allows.

While prompts wait, each promised time has two parts. First prefill has all SMs and decode waits;
then a decode step runs on few SMs and prefill has the others. The cost of the step limits the first
part, and the split is the one that prefills most within the promise. Without prompts decode has all
SMs.

This beats the smallest split that keeps the promise: a few SMs can't use the memory bandwidth that
decode needs, so prefill gets more from a larger split for part of the time.

It knows no CUDA. examples/python/serving.py and gcx.engines.sglang run what it chooses.
"""

from __future__ import annotations

import dataclasses
import math
from bisect import insort
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

AHEAD = 2  # Pieces in flight, so that the GPU finds the next one when one ends.
STARVED = 8  # Steps while pieces wait, after which one runs even if a token is late.


@dataclass
class Costs:
    """Measured costs in milliseconds. A split is the number of decode's SMs; prefill has the
    others. With the split 0 prefill has all SMs; with sm_count decode has all.

    Attributes:
        sm_count: SMs of the device.
        shares: The share of each piece in a prompt's time; they add up to 1. A prompt can arrive
            with others.
        decode_alone: A decode step by split.
        decode: The same while prefill runs.
        prefill_alone: A prompt by split.
        prefill: The same while decode runs step after step.
    """

    sm_count: int
    shares: tuple[float, ...]
    decode_alone: dict[int, float]
    decode: dict[int, float]
    prefill_alone: dict[int, float]
    prefill: dict[int, float]

    def prefill_rate(self, split: int, promise: float) -> float:
        """Returns prompts per millisecond within a promise: during a step prefill has the other
        SMs, and all SMs for the rest of the promised time. Negative if the step is too slow."""
        step = self.decode.get(split, self.decode_alone[self.sm_count])
        if step > promise:
            return promise - step
        during = step / self.prefill[split] if split < self.sm_count else 0.0
        return (during + (promise - step) / self.prefill_alone[0]) / promise


class Piece(NamedTuple):
    """A piece of a prompt."""

    number: int  # Within the prompt.
    share: float  # Of the time of the prompt of the costs.
    last: bool


class Launch(NamedTuple):
    """A decode step or a piece of a prompt."""

    at: float
    split: int
    piece: int  # Its number within the prompt; -1 for a decode step.
    share: float = 0.0
    last: bool = False


class Schedule:
    """The waiting prompts and the work in flight. choose() says what to launch.

    Times are milliseconds of the caller's clock. Steps run in order, and so do pieces.

    Args:
        shares: The shares of the pieces of a prompt that arrives without shares of its own.
    """

    def __init__(self, shares: Sequence[float]) -> None:
        self.shares = shares
        self.begin(0.0)

    def begin(self, now: float) -> None:
        self.now = self.last_token = self.last_piece = now
        self.decoding: deque[Launch] = deque()
        self.prefilling: deque[Launch] = deque()
        self.waiting: deque[Piece] = deque()
        self.unanswered = 0  # Prompts without their first token.
        self.passed = 0  # Steps since the last piece was launched.
        self.in_a_row = False  # Whether there was decode from the last token on.

    @property
    def step(self) -> Launch | None:
        """The last decode step in flight."""
        return self.decoding[-1] if self.decoding else None

    def prompt_arrived(self, shares: Sequence[float] | None = None) -> None:
        pieces = self.shares if shares is None else shares
        self.waiting += [
            Piece(number, share, number + 1 == len(pieces)) for number, share in enumerate(pieces)
        ]
        self.unanswered += 1

    def next(self, now: float) -> Launch | None:
        """Returns what to launch now. Call it until it returns None, whenever something arrived or
        ended."""
        choice = self.choose(now)
        return None if choice is None else self.launched(*choice)

    def choose(self, now: float, has_decode: bool = True) -> tuple[bool, int] | None:
        """Returns whether to launch a decode step (or else a piece), and the split. Call launched
        if you do.

        Args:
            has_decode: Whether there are sequences to decode. Without them prefill has all SMs.
        """
        self.now = now
        if has_decode:
            return self.decide()
        self.in_a_row = False
        can = self.waiting and not self.decoding and len(self.prefilling) < AHEAD
        return (False, 0) if can else None

    def launched(self, is_step: bool, split: int) -> Launch:
        """Notes that the choice was launched."""
        self.passed = self.passed + 1 if is_step else 0
        if is_step:
            launch = Launch(self.now, split, -1)
            self.decoding.append(launch)
        else:
            launch = Launch(self.now, split, *self.waiting.popleft())
            self.prefilling.append(launch)
        return launch

    def decide(self) -> tuple[bool, int] | None:
        """Returns as choose does, if there are sequences to decode."""
        raise NotImplementedError

    def step_ended(self, at: float) -> int:
        """Notes that the first decode step in flight ended, and returns how many prompts have their
        first token."""
        step = self.decoding.popleft()
        start, self.last_token = max(step.at, self.last_token), at
        self.step_took(step, start, at)
        return 0

    def piece_ended(self, at: float) -> int:
        """Notes that the first piece in flight ended. Returns as step_ended does; call this first
        if both have ended."""
        launch = self.prefilling.popleft()
        # On all SMs it began behind a decode step that had some of them.
        behind = self.last_token if launch.split == 0 and launch.at <= self.last_token else 0.0
        self.piece_took(launch, max(launch.at, self.last_piece, behind), at)
        self.last_piece = at
        self.unanswered -= launch.last
        return int(launch.last)

    def step_took(self, launch: Launch, start: float, end: float) -> None:
        """Learns from the earliest possible start and the end of a decode step."""

    def piece_took(self, launch: Launch, start: float, end: float) -> None:
        """Learns from the earliest possible start and the end of a piece."""


class StepTimes:
    """The times of decode steps of one split: the mean and the slowest of the last few hundred."""

    KEPT, FEWEST = 300, 20

    def __init__(self, expected: float) -> None:
        self.mean = expected
        self._margin = 0.05 * expected  # Used until enough steps were seen.
        self._times: deque[float] = deque()
        self._sorted: list[float] = []

    def add(self, took: float) -> None:
        self._times.append(took)
        insort(self._sorted, took)
        if len(self._times) > self.KEPT:
            self._sorted.remove(self._times.popleft())
        self.mean += 0.05 * (took - self.mean)

    def scale(self, factor: float) -> None:
        """Expects other times than before, since steps on all SMs take other times."""
        self.mean *= factor
        self._margin *= factor
        self._times = deque(factor * took for took in self._times)
        self._sorted = [factor * took for took in self._sorted]

    def forget_slowest(self) -> None:
        """So that a split which was slow once is tried again."""
        if self._sorted:
            self._times.remove(self._sorted.pop())

    def slow(self, level: float) -> float:
        """Returns a time that this part of the steps does not exceed."""
        if len(self._sorted) < self.FEWEST:
            return max([self.mean + self._margin, *self._sorted[-1:]])
        return self._sorted[int(level * len(self._sorted))]


class Policy(Schedule):
    """Serves within a promised time per token.

    Args:
        costs: Measured costs, corrected while serving.
        promise: Milliseconds from a token to the next, for 99 of 100.
        guard: A margin for launching and for slow pieces.
        lead: Milliseconds before the expected end of a step in which the next one is launched, if
            its split is the same. It covers the host's time for a launch, during which the GPU
            would have nothing to run. Call choose() again within that time.

    Raises:
        ValueError: A step alone takes longer than the promise, or no piece of a prompt fits.
    """

    LATE = 0.006  # The part of the tokens that may be late: less than 1 in 100.
    MOST = 0.993  # The largest part of a split's steps that must be in time to use it,
    FEWEST = 0.8  # and the smallest. Steps that are not next to a prompt are in time too.

    def __init__(self, costs: Costs, promise: float, guard: float = 0.1, lead: float = 0.0) -> None:
        super().__init__(costs.shares)
        whole = self.whole = costs.sm_count
        alone = costs.decode_alone[whole]
        if promise < alone + guard:
            raise ValueError(
                f"{promise:g} ms a token can't be promised: a decode step alone on all {whole} SMs "
                f"takes {alone:.2f} ms"
            )
        self.target, self.lead = promise - guard, lead
        self.steps = {split: StepTimes(took) for split, took in sorted(costs.decode.items())}
        self.steps[whole] = StepTimes(alone)
        self.load = alone  # The time of a step on all SMs to which the other times belong.
        self.used: set[int] = set()  # Splits of the steps since the last prompt arrived.
        self.pieces_seen: dict[int, int] = {}  # By split.
        self.costs = dataclasses.replace(
            costs, prefill_alone=dict(costs.prefill_alone), prefill=dict(costs.prefill)
        )
        self._find_split()
        self.level = self.MOST
        time = self.target - self.steps[whole].slow(self.level)
        if time < max(costs.shares) * costs.prefill_alone[0] and all(
            times.slow(self.level) > self.target
            for split, times in self.steps.items()
            if split < whole
        ):
            raise ValueError(
                f"{promise:g} ms a token can't be promised: after a decode step on all {whole} SMs "
                f"{max(time, 0.0):.2f} ms remain, which is less than a piece of a prompt takes"
            )
        self.expected_end = 0.0  # Of the decode step in flight.
        self.waits_for: Launch | None = None  # The piece that this step waits for.
        self.waited_until = 0.0

    def _find_split(self) -> None:
        """Finds the split that prefills most, by what is known of the steps."""
        step = {split: times.mean for split, times in self.steps.items()}
        costs = self.costs = dataclasses.replace(self.costs, decode=step)
        self.split = max(step, key=lambda split: costs.prefill_rate(split, self.target))
        self.rate = costs.prefill_rate(self.split, self.target)

    def prompt_arrived(self, shares: Sequence[float] | None = None) -> None:
        for split, times in self.steps.items():
            if self.used and split not in self.used:  # Once for prompts that arrive together.
                times.forget_slowest()
        self.used.clear()
        self._find_split()
        super().prompt_arrived(shares)

    def decide(self) -> tuple[bool, int] | None:
        early = self.lead > 0 and self.now >= self.expected_end - self.lead
        due = not self.decoding or (early and len(self.decoding) == 1)
        if self.unanswered == 0:
            self.passed = 0
            return self._decode(self.whole) if due else None
        free = self._prefill_end()
        if due and self.step is not None and self.step.split < self.whole:
            end, split = max(self.expected_end, self.now), self.step.split
            if self._plan(max(free, end), end) == (0, split):
                return self._decode(split)
        if self.step is None:
            if not self.waiting:
                return self._decode(self._last_split(free))
            pieces, split = self._plan(free, self.last_token)
            if pieces == 0 and (self.prefilling or self.passed < STARVED):
                return self._decode(split)
            pieces = max(pieces, 1)
        elif not self.waiting or len(self.prefilling) >= AHEAD:
            return None
        else:
            end, split = max(self.expected_end, self.now), self.step.split
            # Concurrently with the step, unless so much of the piece would run after it that
            # waiting for all SMs is better.
            if split < self.whole and free + self._after(split) * self._piece_time(
                self.waiting[0].share, split
            ) <= end:  # fmt: skip
                return False, split
            pieces, following = self._plan(max(free, end), end)
            if pieces == 0 and (self.passed or self.lead) and following <= split < self.whole:
                return False, split  # Too long for the time between steps; the next one can run.
        if pieces == 0 or len(self.prefilling) >= AHEAD:
            return None  # A piece in flight ends in time.
        return False, 0

    def _plan(self, start: float, token: float) -> tuple[int, int]:
        """Returns how many pieces prefill runs on all SMs after the token, and the split of the
        step after them: the choice that prefills most and keeps the promise."""
        deadline = token + self.target
        choices = [
            (split, times.slow(self.level), self._during(split) - self.rate * (times.mean - token))
            for split, times in self.steps.items()
        ]
        on_all = self.costs.prefill_alone[0]
        best, found = -math.inf, (0, self.split)
        clear = min((one.split for one in self.prefilling), default=self.whole)
        soonest = max(self.now, token)
        least = math.inf
        work = 0.0
        for pieces, piece in enumerate(self.waiting):
            for split, slow, value in choices:
                # Without further pieces it waits only for those that run on its SMs.
                begin = start if pieces or split > clear else soonest
                score = work + value - self.rate * begin
                if begin + slow <= deadline:
                    if score > best:
                        best, found = score, (pieces, split)
                elif best == -math.inf and begin + slow < least:
                    least, found = begin + slow, (pieces, split)  # Too late, by the least.
            start += piece.share * on_all
            if start > deadline:
                return found
            work += piece.share
        # All waiting work fits before a step on all SMs.
        return (
            (len(self.waiting), self.whole) if start + self._slow(self.whole) <= deadline else found
        )

    def _during(self, split: int) -> float:
        """Returns how much of a prompt is prefilled during a step."""
        return self.steps[split].mean / self.costs.prefill[split] if split < self.whole else 0.0

    def _last_split(self, free: float) -> int:
        """Returns the split for the last pieces: waiting for all SMs can be quicker than few."""
        on_all = max(free, self.now) + self._slow(self.whole)
        on_few = self.now + self._slow(self.split)
        in_time = on_all <= self.last_token + self.target
        quicker = on_all <= on_few or self.prefilling[-1].split == 0
        if in_time and quicker:
            return self.whole
        # A split with more SMs than they leave waits for them.
        if max(free, self.now) + self._slow(self.split) <= self.last_token + self.target:
            return self.split
        return min([self.split, *(one.split for one in self.prefilling if one.split)])

    def _after(self, split: int) -> float:
        """Returns the part of a piece that must run during the step for the piece to pay off."""
        on_all = self.costs.prefill_alone[0]
        gained = on_all / self.costs.prefill[split]
        lost = 1 - on_all / self.costs.prefill_alone[split]
        return lost / (gained + lost)

    def _decode(self, split: int) -> tuple[bool, int]:
        start, self.waits_for = self.now, None
        if self.decoding:
            start = max(start, self.expected_end)
        for one in self.prefilling:
            if one.split < split:  # It runs on SMs that decode gets.
                self.waits_for, start = one, self._prefill_end()
        self.expected_end = start + self.steps[split].mean
        return True, split

    def _prefill_end(self) -> float:
        """Returns when the pieces in flight will end."""
        at = self.last_piece
        for one in self.prefilling:
            start = max(at, one.at)
            if one.split == 0 and self.step is not None and one.at > self.step.at:
                start = max(start, self.expected_end)
            elif one.split == 0 and one.at <= self.last_token:
                start = max(start, self.last_token)
            at = start + self._piece_time(one.share, one.split)
        return max(at, self.now)

    def _piece_time(self, share: float, split: int) -> float:
        whole = self.costs.prefill[split] if split else self.costs.prefill_alone[0]
        return share * whole

    def _slow(self, split: int) -> float:
        return self.steps[split].slow(self.level)

    def step_ended(self, at: float) -> int:
        if self.in_a_row:
            # Late tokens raise it and others lower it, so that it rests where LATE are late.
            late = at - self.last_token > self.target
            level = self.level + 0.01 * (late - self.LATE)
            self.level = min(max(level, self.FEWEST), self.MOST)
        self.in_a_row = True
        return super().step_ended(at)

    def step_took(self, launch: Launch, start: float, end: float) -> None:
        self.steps[launch.split].add(end - max(start, self.waited_until))
        self.used.add(launch.split)
        if launch.split != self.whole:
            return
        factor = self.steps[self.whole].mean / self.load
        if abs(factor - 1) > 0.05:  # Longer sequences, or another number of them.
            for split, times in self.steps.items():
                if split != self.whole:
                    times.scale(factor)
            self.load *= factor

    def piece_took(self, launch: Launch, start: float, end: float) -> None:
        if launch is self.waits_for:
            self.waited_until = end
        ratio = (end - start) / self._piece_time(launch.share, launch.split)
        ratio = min(max(ratio, 0.2), 5.0)  # It may have waited for something.
        seen = self.pieces_seen[launch.split] = self.pieces_seen.get(launch.split, 0) + 1
        weight = max(0.1, 1 / seen)
        for times in (self.costs.prefill_alone, self.costs.prefill):
            for split in times:  # Splits that were not used are expected to be off as this one is.
                if split == launch.split or split not in self.pieces_seen:
                    times[split] *= 1 + weight * (ratio - 1)

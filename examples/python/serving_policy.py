"""The policy of serving.py, without CUDA: prefills as fast as a promised time per token allows.

While prompts wait, each promised time has two parts. First prefill has all SMs and decode waits;
then a decode step runs on few SMs and prefill has the others. The cost of the step limits the first
part, and the split is the one that prefills most within the promise. Without prompts decode has all
SMs.

This beats the smallest split that keeps the promise: a few SMs can't use the memory bandwidth that
decode needs, so prefill gets more from a larger split for part of the time.
"""

from __future__ import annotations

import math
from bisect import insort
from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

AHEAD = 2  # Pieces in flight, so that the GPU finds the next one when one ends.


@dataclass
class Costs:
    """Measured costs in milliseconds. A split is the number of decode's SMs; prefill has the
    others. With the split 0 prefill has all SMs; with sm_count decode has all.

    Attributes:
        sm_count: SMs of the device.
        shares: The share of each piece in a prompt's time; they add up to 1.
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


class Launch(NamedTuple):
    """A decode step or a piece of a prompt."""

    at: float
    split: int
    piece: int  # Its number within the prompt; -1 for a decode step.


class Schedule:
    """The waiting prompts and the work in flight. decide() chooses what to launch.

    Times are milliseconds of the caller's clock. There is one decode step in flight at most, since
    a step needs the tokens of the one before. Pieces run in order.
    """

    def __init__(self, pieces: int) -> None:
        self.pieces = pieces  # Of a prompt.
        self.begin(0.0)

    def begin(self, now: float) -> None:
        self.now = self.last_token = self.last_piece = now
        self.step: Launch | None = None
        self.prefilling: deque[Launch] = deque()
        self.prompts = 0  # Prompts with pieces to launch.
        self.piece = 0  # The next piece of the first of them.
        self.unanswered = 0  # Prompts without their first token.

    def prompt_arrived(self) -> None:
        self.prompts += 1
        self.unanswered += 1

    def next(self, now: float) -> Launch | None:
        """Returns what to launch now. Call it until it returns None, whenever something arrived or
        ended."""
        self.now = now
        decision = self.decide()
        if decision is None:
            return None
        is_step, split = decision
        if is_step:
            self.step = Launch(now, split, -1)
            return self.step
        launch = Launch(now, split, self.piece)
        self.prefilling.append(launch)
        self.piece = (self.piece + 1) % self.pieces
        self.prompts -= self.piece == 0
        return launch

    def decide(self) -> tuple[bool, int] | None:
        """Returns whether to launch a decode step (or else a piece), and the split."""
        raise NotImplementedError

    def step_ended(self, at: float) -> int:
        """Notes that the decode step ended, and returns how many prompts have their first token."""
        assert self.step is not None
        step, self.step, self.last_token = self.step, None, at
        self.step_took(step, at)
        return 0

    def piece_ended(self, at: float) -> int:
        """Notes that the first piece in flight ended. Returns as step_ended does; call this first
        if both have ended."""
        launch = self.prefilling.popleft()
        # On all SMs it began behind a decode step that had some of them.
        behind = self.last_token if launch.split == 0 and launch.at <= self.last_token else 0.0
        self.piece_took(launch, max(launch.at, self.last_piece, behind), at)
        self.last_piece = at
        last = launch.piece + 1 == self.pieces
        self.unanswered -= last
        return int(last)

    def step_took(self, launch: Launch, end: float) -> None:
        """Learns from the end of a decode step."""

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

    @property
    def slow(self) -> float:
        """A time that fewer than 1 in 100 steps exceed."""
        if len(self._sorted) < self.FEWEST:
            return max([self.mean + self._margin, *self._sorted[-1:]])
        return self._sorted[-1 - len(self._sorted) // 150]


class Policy(Schedule):
    """Serves within a promised time per token.

    Args:
        costs: Measured costs, corrected while serving.
        promise: Milliseconds from a token to the next, for 99 of 100.
        guard: A margin for launching and for slow pieces.

    Raises:
        ValueError: A step alone takes longer than the promise, or no piece of a prompt fits.
    """

    def __init__(self, costs: Costs, promise: float, guard: float = 0.1) -> None:
        super().__init__(len(costs.shares))
        whole = self.whole = costs.sm_count
        alone = costs.decode_alone[whole]
        if promise < alone + guard:
            raise ValueError(
                f"{promise:g} ms a token can't be promised: a decode step alone on all {whole} SMs "
                f"takes {alone:.2f} ms"
            )
        self.costs, self.target = costs, promise - guard
        self.steps = {split: StepTimes(took) for split, took in sorted(costs.decode.items())}
        self.steps[whole] = StepTimes(alone)
        self.split = max(self.steps, key=lambda split: costs.prefill_rate(split, self.target))
        self.rate = costs.prefill_rate(self.split, self.target)
        time = self.target - self.steps[whole].slow
        if time < max(costs.shares) * costs.prefill_alone[0] and all(
            times.slow > self.target for split, times in self.steps.items() if split < whole
        ):
            raise ValueError(
                f"{promise:g} ms a token can't be promised: after a decode step on all {whole} SMs "
                f"{max(time, 0.0):.2f} ms remain, which is less than a piece of a prompt takes"
            )
        self.pace: dict[int, float] = {}  # Actual over measured time of pieces, by split.
        self.expected_end = 0.0  # Of the decode step in flight.
        self.waits_for: Launch | None = None  # The piece that this step waits for.
        self.waited_until = 0.0

    def decide(self) -> tuple[bool, int] | None:
        if self.unanswered == 0:
            return self._decode(self.whole) if self.step is None else None
        free = self._prefill_end()
        if self.step is None:
            if self.prompts == 0:
                return self._decode(self._last_split(free))
            pieces, split = self._plan(free, self.last_token)
            if pieces == 0:
                return self._decode(split)
        elif self.prompts == 0 or len(self.prefilling) >= AHEAD:
            return None
        else:
            end, split = max(self.expected_end, self.now), self.step.split
            # Concurrently with the step, unless so much of the piece would run after it that
            # waiting for all SMs is better.
            if split < self.whole and free + self._after(split) * self._piece_time(
                self.piece, split
            ) <= end:  # fmt: skip
                return False, split
            pieces, _ = self._plan(max(free, end), end)
        if pieces == 0 or len(self.prefilling) >= AHEAD:
            return None  # A piece in flight ends in time.
        return False, 0

    def _plan(self, start: float, token: float) -> tuple[int, int]:
        """Returns how many pieces prefill runs on all SMs after the token, and the split of the
        step after them: the choice that prefills most and keeps the promise."""
        deadline = token + self.target
        choices = [
            (split, times.slow, self._during(split) - self.rate * (times.mean - token))
            for split, times in self.steps.items()
        ]
        on_all = self.costs.prefill_alone[0] * self.pace.get(0, 1.0)
        best, found = -math.inf, (0, self.split)
        clear = min((one.split for one in self.prefilling), default=self.whole)
        if self.step is not None:
            clear = -1  # It begins behind that step.
        pieces, work, number, prompts = 0, 0.0, self.piece, self.prompts
        while prompts > 0:
            for split, slow, value in choices:
                # Without further pieces it waits only for those that run on its SMs.
                begin = start if pieces or split > clear else self.now
                score = work + value - self.rate * begin
                if score > best and begin + slow <= deadline:
                    best, found = score, (pieces, split)
            share = self.costs.shares[number]
            start += share * on_all
            if start > deadline:
                return found
            work += share
            pieces, number = pieces + 1, (number + 1) % self.pieces
            prompts -= number == 0
        # All waiting work fits before a step on all SMs.
        return (pieces, self.whole) if start + self.steps[self.whole].slow <= deadline else found

    def _during(self, split: int) -> float:
        """Returns how much of a prompt is prefilled during a step."""
        return self.steps[split].mean / self.costs.prefill[split] if split < self.whole else 0.0

    def _last_split(self, free: float) -> int:
        """Returns the split for the last pieces: waiting for all SMs can be quicker than few."""
        on_all = max(free, self.now) + self.steps[self.whole].slow
        on_few = self.now + self.steps[self.split].slow
        in_time = on_all <= self.last_token + self.target
        quicker = on_all <= on_few or self.prefilling[-1].split == 0
        return self.whole if in_time and quicker else self.split

    def _after(self, split: int) -> float:
        """Returns the part of a piece that must run during the step for the piece to pay off."""
        on_all = self.costs.prefill_alone[0]
        gained = on_all / self.costs.prefill[split]
        lost = 1 - on_all / self.costs.prefill_alone[split]
        return lost / (gained + lost)

    def _decode(self, split: int) -> tuple[bool, int]:
        start, self.waits_for = self.now, None
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
            at = start + self._piece_time(one.piece, one.split)
        return max(at, self.now)

    def _piece_time(self, number: int, split: int) -> float:
        whole = self.costs.prefill[split] if split else self.costs.prefill_alone[0]
        return self.costs.shares[number] * whole * self.pace.get(split, 1.0)

    def step_took(self, launch: Launch, end: float) -> None:
        self.steps[launch.split].add(end - max(launch.at, self.waited_until))

    def piece_took(self, launch: Launch, start: float, end: float) -> None:
        if launch is self.waits_for:
            self.waited_until = end
        ratio = (end - start) / self._piece_time(launch.piece, launch.split)
        if 0.5 < ratio < 2:  # Else it waited for something.
            self.pace[launch.split] = self.pace.get(launch.split, 1.0) * (1 + 0.02 * (ratio - 1))

"""The policy: prefills as fast as a promised time per token allows.

While prompts wait, each promised time has two parts: prefill has all SMs and decode waits; then a
decode step runs on few SMs and prefill has the others. The cost of the step limits the first part;
the split is the one that prefills most within the promise. Without prompts decode has all SMs.

This beats the smallest split that keeps the promise: a few SMs can't use the memory bandwidth that
decode needs, so prefill gets more from a larger split for part of the time.
"""

from __future__ import annotations

import math
from bisect import insort
from collections import deque

from serve.arms import AHEAD
from serve.costs import Costs
from serve.engine import Engine, Launch, Took


class Steps:
    """The times of decode steps of one layout: the mean and the slowest of the last few hundred."""

    KEPT, LEAST = 300, 20

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
        if len(self._sorted) < self.LEAST:
            return max([self.mean + self._margin, *self._sorted[-1:]])
        return self._sorted[-1 - len(self._sorted) // 150]


class Promise:
    """Serves within a promised time per token, in milliseconds.

    Args:
        costs: Measured costs, corrected while serving.
        promise: From a token to the next, for 99 of 100.
        guard: A margin for launching and for slow pieces.
        split: Decode's SMs while prompts wait; None: the best at each step.
        slices: Prefill may have all SMs for part of the promised time.

    Raises:
        ValueError: A step alone takes longer than the promise.
    """

    def __init__(
        self,
        costs: Costs,
        promise: float,
        guard: float = 0.1,
        split: int | None = None,
        slices: bool = True,
    ) -> None:
        whole = costs.sm_count
        alone = costs.decode(whole, False)
        if promise < alone + guard:
            raise ValueError(
                f"{promise:g} ms a token can't be promised: a decode step alone on all {whole} SMs "
                f"takes {alone:.2f} ms"
            )
        self.costs, self.promise, self.guard, self.slices = costs, promise, guard, slices
        self.splits = [*costs.splits, whole] if split is None else [split]
        self.split = max(self.splits, key=lambda sms: costs.prefill_rate(sms, promise - guard))
        self.rate = costs.prefill_rate(self.split, promise - guard)
        self.steps = {sms: Steps(costs.decode(sms, True)) for sms in self.splits if sms < whole}
        self.steps[whole] = Steps(alone)
        # Actual over measured time of pieces, by layout.
        self.pace: dict[int, float] = {}
        self.expected_end = 0.0  # Of the decode step in flight.
        self._waits_for: Launch | None = None  # The piece that this step waits for.
        self._waited_until = 0.0

    def act(self, engine: Engine) -> None:
        while self._launch(engine):
            pass

    def _launch(self, engine: Engine) -> bool:
        """Launches a step or a piece if it is time; returns whether it did."""
        whole, now = self.costs.sm_count, engine.machine.now()
        step = engine.decoding
        if engine.idle:
            return step is None and self._decode(engine, whole)
        free = self._prefill_end(engine)
        if step is None:
            if not engine.pieces_to_launch:
                return self._decode(engine, self._last_split(engine, free))
            pieces, split = self._plan(engine, free, engine.last_token)
            if pieces == 0:
                return self._decode(engine, split)
        else:
            if not engine.pieces_to_launch:
                return False
            end = max(self.expected_end, now)
            if step.layout < whole and len(engine.prefilling) < AHEAD:
                # Concurrently with the step, unless so much of the piece would run after it that
                # waiting for all SMs is better.
                piece = self._piece(engine.number, step.layout)
                if not self.slices or free + self._after(step.layout) * piece <= end:
                    engine.piece(step.layout)
                    return True
            if len(engine.prefilling) >= AHEAD:
                return False
            pieces, _ = self._plan(engine, max(free, end), end)
        if pieces == 0 or len(engine.prefilling) >= AHEAD:
            return False  # One of them ends in time.
        engine.piece(0)
        return True

    def _plan(self, engine: Engine, start: float, token: float) -> tuple[int, int]:
        """Returns how many pieces prefill runs on all SMs after the token, and the split of the
        step after them: the choice that prefills most and keeps the promise."""
        whole = self.costs.sm_count
        deadline = token + self.promise - self.guard
        choices = [
            (split, steps.slow, self._beside(split) - self.rate * (steps.mean - token))
            for split, steps in ((split, self.steps[split]) for split in self.splits)
        ]
        on_all = self.costs.prefill(0, False) * self.pace.get(0, 1.0)
        shares = self.costs.shares
        best, found = -math.inf, (0, self.split)
        clear = min((one.layout for one in engine.prefilling), default=whole)
        if engine.decoding is not None:
            clear = -1  # It begins behind that step.
        pieces, work, number, prompts = 0, 0.0, engine.number, len(engine.queue)
        while prompts > 0:
            for split, slow, value in choices:
                # Without further pieces it waits only for those that run on its SMs.
                begin = start if pieces or split > clear else engine.machine.now()
                score = work + value - self.rate * begin
                if score > best and begin + slow <= deadline:
                    best, found = score, (pieces, split)
            start += shares[number] * on_all
            if start > deadline or not self.slices:
                return found
            work += shares[number]
            pieces, number = pieces + 1, number + 1
            if number == len(shares):
                number, prompts = 0, prompts - 1
        # All waiting work fits before a step on all SMs.
        return (pieces, whole) if start + self.steps[whole].slow <= deadline else found

    def _beside(self, split: int) -> float:
        """Returns how much of a prompt is prefilled during a step."""
        if split == self.costs.sm_count:
            return 0.0
        return self.steps[split].mean / self.costs.prefill(split, True)

    def _last_split(self, engine: Engine, free: float) -> int:
        """Returns the split for the last pieces: waiting for all SMs can be quicker than few."""
        whole, now = self.costs.sm_count, engine.machine.now()
        on_all = max(free, now) + self.steps[whole].slow
        on_few = now + self.steps[self.split].slow
        in_time = on_all <= engine.last_token + self.promise - self.guard
        quicker = on_all <= on_few or engine.prefilling[-1].layout == 0
        return whole if in_time and quicker else self.split

    def _after(self, split: int) -> float:
        """Returns the part of a piece that must run during the step for the piece to pay off."""
        costs = self.costs
        if split == costs.sm_count:
            return math.inf
        gained = costs.prefill(0, False) / costs.prefill(split, True)
        lost = 1 - costs.prefill(0, False) / costs.prefill(split, False)
        return lost / (gained + lost)

    def _decode(self, engine: Engine, layout: int) -> bool:
        start = engine.machine.now()
        self._waits_for = None
        for one in engine.prefilling:
            if one.layout < layout:  # It runs on SMs that decode gets.
                self._waits_for = one
                start = self._prefill_end(engine)
        engine.decode(layout)
        self.expected_end = start + self.steps[layout].mean
        return True

    def _prefill_end(self, engine: Engine) -> float:
        """Returns when the pieces in flight will end."""
        at = engine.last_piece
        for one in engine.prefilling:
            start = max(at, one.at)
            if one.layout == 0 and engine.decoding is not None and one.at > engine.decoding.at:
                start = max(start, self.expected_end)
            elif one.layout == 0 and one.at <= engine.last_token:
                start = max(start, engine.last_token)
            at = start + self._piece(one.number, one.layout)
        return max(at, engine.machine.now())

    def _piece(self, number: int, layout: int) -> float:
        whole = self.costs.prefill(layout, layout != 0)
        return self.costs.shares[number] * whole * self.pace.get(layout, 1.0)

    def decoded(self, took: Took) -> None:
        self.steps[took.launch.layout].add(took.end - max(took.start, self._waited_until))

    def prefilled(self, took: Took) -> None:
        if took.launch is self._waits_for:
            self._waited_until = took.end
        layout = took.launch.layout
        ratio = (took.end - took.start) / self._piece(took.launch.number, layout)
        if 0.5 < ratio < 2:  # Else it waited for something.
            self.pace[layout] = self.pace.get(layout, 1.0) * (1 + 0.02 * (ratio - 1))

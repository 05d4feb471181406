"""A policy for decode next to prefill: while prompts wait, decode has the fewest SMs on which it
keeps a promised time per token, and prefill has the others.

Without prompts decode has all SMs, and without decode prefill has them. The times of decode steps
are learned while serving.

It knows no CUDA. examples/python/serving.py and gcx.engines.sglang run what it chooses.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import NamedTuple

AHEAD = 2  # Pieces in flight, so that the GPU finds the next one when one ends.


class Launch(NamedTuple):
    """A decode step or a piece of a prompt."""

    at: float
    split: int  # Decode's SMs; prefill has the others.
    piece: int  # Its number within the prompt; -1 for a decode step.
    last: bool = False  # Whether the prompt ends with it.
    waits: bool = False  # Whether a step waits for pieces that run on its SMs.


class Schedule:
    """The waiting prompts and the work in flight. choose() says what to launch.

    Times are milliseconds of the caller's clock. Steps run in order, and so do pieces.

    Args:
        pieces: The number of pieces of a prompt that arrives without a number of its own.
    """

    def __init__(self, pieces: int = 1) -> None:
        self.pieces = pieces
        self.begin(0.0)

    def begin(self, now: float) -> None:
        self.now = self.last_token = now
        self.decoding: deque[Launch] = deque()
        self.prefilling: deque[Launch] = deque()
        self.waiting: deque[tuple[int, bool]] = deque()  # Pieces: their number, whether the last.
        self.unanswered = 0  # Prompts without their first token.

    @property
    def step(self) -> Launch | None:
        """The last decode step in flight."""
        return self.decoding[-1] if self.decoding else None

    def prompt_arrived(self, pieces: int = 0) -> None:
        count = pieces or self.pieces
        self.waiting += [(number, number + 1 == count) for number in range(count)]
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
        return (False, 0) if self.can_prefill and not self.decoding else None

    @property
    def can_prefill(self) -> bool:
        return bool(self.waiting) and len(self.prefilling) < AHEAD

    def launched(self, is_step: bool, split: int) -> Launch:
        """Notes that the choice was launched."""
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
        self.decoding.popleft()
        self.last_token = at
        return 0

    def piece_ended(self, at: float) -> int:
        """Notes that the first piece in flight ended. Returns as step_ended does; call this first
        if both have ended."""
        launch = self.prefilling.popleft()
        self.unanswered -= launch.last
        return int(launch.last)


class Policy(Schedule):
    """Serves within a promised time per token.

    Args:
        steps: The expected time of a decode step by the number of its SMs: alone for all SMs of the
            device, which is the largest number, and next to prefill for the others.
        promise: Milliseconds from a token to the next, for 99 of 100.
        pieces: As for Schedule.
        lead: Milliseconds before the expected end of a step in which the next one is launched. It
            covers the host's time for a launch, during which the GPU would have nothing to run.
            Call choose() again within that time.

    Raises:
        ValueError: Decode can't keep the promise on any number of SMs, or steps has only one.
    """

    HYSTERESIS = 0.97  # Of the promise: fewer SMs than before are taken only below it.
    FORGET = 0.998  # What a prompt leaves of the times of splits that were too slow for it.

    def __init__(
        self, steps: Mapping[int, float], promise: float, pieces: int = 1, lead: float = 0.0
    ) -> None:
        super().__init__(pieces)
        self.promise, self.lead = promise, lead
        *self.splits, self.whole = sorted(steps)
        # The expected time of a step is that on all SMs times a ratio, since other sequences change
        # the times of all splits alike.
        self.alone = steps[self.whole]
        self.ratios = {split: took / self.alone for split, took in sorted(steps.items())}
        if promise < self.alone:
            raise ValueError(
                f"{promise:g} ms a token can't be promised: a decode step alone on all "
                f"{self.whole} SMs takes {self.alone:.2f} ms"
            )
        if not self.splits:
            raise ValueError(f"{self.whole} SMs can't be divided between decode and prefill")
        fastest = min(self.splits, key=self.ratios.__getitem__)
        if promise < self.expected(fastest):
            raise ValueError(
                f"{promise:g} ms a token can't be promised: next to prefill a decode step takes "
                f"about {self.expected(fastest):.2f} ms on {fastest} SMs"
            )
        self.seen = dict.fromkeys(self.splits, 0)  # Steps, for the first of which a ratio is off.
        self.deviation = 0.02  # Of steps from their expected times, relative and absolute.
        self.split = 0  # Decode's SMs next to the last prompt.
        self.expected_end = 0.0  # Of the last decode step in flight.

    def expected(self, split: int) -> float:
        """Returns the mean time of a decode step."""
        return self.alone * self.ratios[split]

    def prompt_arrived(self, pieces: int = 0) -> None:
        for split in self.splits:
            if split < self.split:
                self.ratios[split] *= self.FORGET
        super().prompt_arrived(pieces)

    def decide(self) -> tuple[bool, int] | None:
        early = self.lead > 0 and self.now >= self.expected_end - self.lead
        if not self.decoding or (early and len(self.decoding) == 1):
            return True, self._find_split() if self.unanswered else self.whole
        if not self.can_prefill:
            return None
        split = self.decoding[-1].split
        # On all SMs no prompt had arrived, and the piece runs behind the step.
        return False, self._find_split() if split == self.whole else split

    def _find_split(self) -> int:
        """Returns the fewest SMs that keep the promise, or else the most."""
        slow = 1 + 2 * self.deviation
        for split in self.splits:
            limit = self.promise if split >= self.split else self.HYSTERESIS * self.promise
            if self.expected(split) * slow <= limit:
                break
        self.split = split
        return split

    def launched(self, is_step: bool, split: int) -> Launch:
        if is_step:
            start = max(self.now, self.expected_end) if self.decoding else self.now
            self.expected_end = start + self.expected(split)
        launch = super().launched(is_step, split)
        if is_step and any(piece.split < split for piece in self.prefilling):
            launch = self.decoding[-1] = launch._replace(waits=True)
        return launch

    def step_ended(self, at: float) -> int:
        step = self.decoding[0]
        if not step.waits and (step.split == self.whole or self.prefilling):
            self._learn(step.split, at - max(step.at, self.last_token))
        super().step_ended(at)
        if self.step is not None:
            self.expected_end = at + self.expected(self.step.split)
        return 0

    def _learn(self, split: int, took: float) -> None:
        off = took / self.expected(split) - 1
        off = min(max(off, -0.5), 1.0)  # The host may have been late once.
        if split == self.whole:
            self.alone *= 1 + 0.1 * off
            return
        self.seen[split] += 1
        self.ratios[split] *= 1 + max(0.05, 0.5 / self.seen[split]) * off
        self.alone *= 1 + 0.1 * off
        self.deviation += 0.05 * (min(abs(off), 0.1) - self.deviation)

"""The serving loop of all arms: prompts arrive, decode steps and pieces of prompts end."""

from __future__ import annotations

import math
import random
from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from serve.costs import ONE_STREAM
from serve.machine import Machine


class Launch(NamedTuple):
    """Work in flight. A piece's number is within its prompt."""

    at: float
    layout: int
    number: int
    last: bool  # It produces the prompt's first token.


class Took(NamedTuple):
    """Finished work, with its earliest possible start."""

    launch: Launch
    start: float
    end: float


@dataclass
class Record:
    """The results of one arm for one sequence of prompts, in milliseconds.

    Attributes:
        ends: When each token came, from the start.
        tokens: From each token to the next, which a promise limits.
        steps: From each decode step's launch to its end.
        first: Each prompt's time to its first token.
        layouts: When each change was launched, and the new layout.
        elapsed: From the first arrival's clock to the end of the last prompt.
    """

    ends: list[float] = field(default_factory=list)
    tokens: list[float] = field(default_factory=list)
    steps: list[float] = field(default_factory=list)
    first: list[float] = field(default_factory=list)
    layouts: list[tuple[float, int]] = field(default_factory=list)
    elapsed: float = 0.0


class Arm(Protocol):
    """One way to serve."""

    def act(self, engine: Engine) -> None:
        """Launches work; called whenever something arrived or ended."""

    def decoded(self, took: Took) -> None:
        """Called for each decode step that ended."""

    def prefilled(self, took: Took) -> None:
        """Called for each piece that ended."""


class Engine:
    """The state and operations of an arm.

    Attributes:
        decoding: The decode step in flight; there is never more than one, as a step needs the
            tokens of the one before.
        prefilling: The pieces in flight, in order.
        last_token: When the last decode step ended.
        last_piece: When the last piece ended.
    """

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.record = Record()
        self.decoding: Launch | None = None
        self.prefilling: deque[Launch] = deque()
        self.began = self.last_token = self.last_piece = machine.now()
        self.queue: deque[float] = deque()  # Prompts with pieces to launch.
        self.number = 0  # The next piece of the first of them.
        self.unanswered: deque[float] = deque()  # Prompts without their first token.
        self.with_step = 0  # How many of them get it when the decode step in flight ends.

    @property
    def pieces_to_launch(self) -> bool:
        return bool(self.queue)

    @property
    def idle(self) -> bool:
        """Whether there is no prompt."""
        return not self.unanswered

    def decode(self, layout: int) -> None:
        assert self.decoding is None
        self.machine.decode(layout)
        self.decoding = Launch(self.machine.now(), layout, 0, False)
        self._note(self.decoding)

    def piece(self, layout: int) -> None:
        number, last = self._take(self.machine.pieces)
        self.machine.piece(number, layout)
        self.prefilling.append(Launch(self.machine.now(), layout, number, last))
        self._note(self.prefilling[-1])

    def chunk(self, kind: str) -> None:
        number, last = self._take(self.machine.chunks(kind))
        self.machine.chunk(kind, number)
        self.prefilling.append(Launch(self.machine.now(), ONE_STREAM, number, last))

    def _note(self, launch: Launch) -> None:
        changes = self.record.layouts
        if not changes or changes[-1][1] != launch.layout:
            changes.append((launch.at - self.began, launch.layout))

    def _take(self, pieces: int) -> tuple[int, bool]:
        number, last = self.number, self.number + 1 == pieces
        self.number = 0 if last else number + 1
        if last:
            self.queue.popleft()
        return number, last

    def take_in(self, arm: Arm) -> None:
        """Processes the work that has ended."""
        ended = self.machine.ended()
        previous_token = self.last_token
        for end in ended.pieces:
            launch = self.prefilling.popleft()
            # On all SMs it began behind a decode step that had some of them.
            behind = previous_token if launch.layout == 0 and launch.at <= previous_token else 0.0
            arm.prefilled(Took(launch, max(launch.at, self.last_piece, behind), end))
            self.last_piece = end
            if launch.last and launch.layout == ONE_STREAM:
                self.with_step += 1  # Chunk and batch are one step, whose tokens come at its end.
            elif launch.last:
                self._answer(end)
        for end in ended.decodes:
            step = self.decoding
            assert step is not None
            self.record.ends.append(end - self.began)
            self.record.tokens.append(end - self.last_token)
            self.record.steps.append(end - step.at)
            self.decoding = None
            self.last_token = end
            for _ in range(self.with_step):
                self._answer(end)
            self.with_step = 0
            arm.decoded(Took(step, step.at, end))

    def _answer(self, at: float) -> None:
        self.record.first.append(at - self.unanswered.popleft())


def serve(machine: Machine, arm: Arm, arrivals: list[float], warm_up: float = 0.0) -> Record:
    """Serves prompts that arrive at those milliseconds until each has its first token, after a
    warm-up with consecutive prompts."""
    if warm_up > 0:
        _serve(machine, arm, [0.0], warm_up)
    return _serve(machine, arm, arrivals, 0.0)


def _serve(machine: Machine, arm: Arm, arrivals: list[float], at_least: float) -> Record:
    engine = Engine(machine)
    coming = deque(engine.began + at for at in arrivals)
    arm.act(engine)  # The first token's time would include the start.
    while engine.decoding is not None and not engine.record.ends:
        machine.wait(math.inf)
        engine.take_in(arm)
    engine.record = Record()
    while True:
        engine.take_in(arm)
        now = machine.now()
        while coming and coming[0] <= now:
            at = coming.popleft()
            engine.queue.append(at)
            engine.unanswered.append(at)
        if not coming and engine.idle:
            if now - engine.began >= at_least:
                break
            coming.append(now)
            continue
        arm.act(engine)
        machine.wait(coming[0] if coming else math.inf)
    engine.record.elapsed = machine.now() - engine.began
    machine.finish()
    return engine.record


def poisson(rate: float, seconds: float, seed: int = 1) -> list[float]:
    """Returns arrivals in milliseconds: a Poisson process conditioned on its count, the same each
    time. At least one."""
    chance = random.Random(f"{rate} {seed}")
    count = max(1, round(rate * seconds))
    return sorted(chance.uniform(0, seconds * 1e3) for _ in range(count))

"""A machine that simulates by cost tables, from event to event, without a GPU."""

from __future__ import annotations

import math
import random
from collections import deque
from dataclasses import dataclass

from serve.costs import ONE_STREAM, PLAIN, PRIORITY, Costs
from serve.machine import Ended


@dataclass
class Work:
    """A decode step, a piece or a chunk."""

    order: int
    layout: int
    size: float  # Relative to a decode step or a prompt; milliseconds of a chunk.
    is_decode: bool
    timed: bool = False  # Its size is milliseconds.
    ready: float = 0.0  # When its launch is complete.
    running: bool = False


class Simulated:
    """A Machine. Noise is the relative deviation of the times."""

    SEEN = 0.015  # Milliseconds until the host sees an end.
    LAUNCH = 0.010  # Host time of a launch.
    START = 0.006  # From a launch to its start on an idle lane.
    NEXT = 0.0015  # Between consecutive queued work.

    def __init__(self, costs: Costs, noise: float = 0.015, seed: int = 1) -> None:
        self.costs, self.noise, self.chance = costs, noise, random.Random(seed)
        self.clock = 0.0
        self.order = 0
        self.lanes: tuple[deque[Work], deque[Work]] = (deque(), deque())
        self.seen: list[tuple[float, bool]] = []

    @property
    def sm_count(self) -> int:
        return self.costs.sm_count

    @property
    def pieces(self) -> int:
        return len(self.costs.shares)

    def chunks(self, kind: str) -> int:
        return self.costs.prompt // int(kind)

    def now(self) -> float:
        return self.clock

    def decode(self, layout: int) -> None:
        self._launch(layout, 1.0, True)

    def piece(self, number: int, layout: int) -> None:
        self._launch(layout, self.costs.shares[number], False)

    def chunk(self, kind: str, number: int) -> None:
        self._launch(ONE_STREAM, self.costs.chunks[kind], False, True)

    def _launch(self, layout: int, size: float, is_decode: bool, timed: bool = False) -> None:
        self._run(self.clock + self.LAUNCH)
        self.order += 1
        size *= max(0.5, self.chance.gauss(1.0, self.noise))
        lane = self.lanes[is_decode]
        gap = self.NEXT if lane else self.START
        lane.append(Work(self.order, layout, size, is_decode, timed, self.clock + gap))

    def ended(self) -> Ended:
        done = [(at, decode) for at, decode in self.seen if at <= self.clock]
        self.seen = [one for one in self.seen if one[0] > self.clock]
        decodes = [at for at, decode in done if decode]
        return Ended(decodes, [at for at, decode in done if not decode])

    def wait(self, until: float) -> None:
        while True:
            first = min((at for at, _ in self.seen), default=math.inf)
            if first <= self.clock:
                return
            target = min(until, first)
            if target <= self.clock:
                return
            step = self._run(target, stop_at_end=True)
            if not step and target == math.inf:
                raise RuntimeError("nothing runs, and nothing will come")

    def finish(self) -> None:
        while any(self.lanes):
            self._run(math.inf, stop_at_end=True)
        self.seen.clear()

    def _run(self, until: float, stop_at_end: bool = False) -> bool:
        """Advances the clock; returns whether it stopped because something ended."""
        while self.clock < until:
            running = self._start()
            nexts = [until]
            nexts += [lane[0].ready for lane in self.lanes if lane and lane[0].ready > self.clock]
            ends = {id(one): self.clock + one.size * self._whole(one, len(running) > 1)
                    for one in running}  # fmt: skip
            at = min([*nexts, *ends.values()])
            if at == math.inf:
                return False
            ended = False
            for one in running:
                if ends[id(one)] <= at:
                    lane = self.lanes[one.is_decode]
                    lane.popleft()
                    for lane_ in self.lanes:
                        if lane_ and not lane_[0].running:
                            lane_[0].ready = max(lane_[0].ready, at + self.NEXT)
                    self.seen.append((at + self.SEEN, one.is_decode))
                    ended = True
                else:
                    one.size -= (at - self.clock) / self._whole(one, len(running) > 1)
            self.clock = at
            if ended and stop_at_end:
                return True
        return False

    def _start(self) -> list[Work]:
        """Returns what runs now: the first of each lane that does not wait for SMs."""
        for lane, other in (self.lanes, self.lanes[::-1]):
            if lane and not lane[0].running and lane[0].ready <= self.clock:
                before = [one for one in other if one.order < lane[0].order]
                if not any(self._meet(lane[0], one) for one in before):
                    lane[0].running = True
        return [lane[0] for lane in self.lanes if lane and lane[0].running]

    def _meet(self, one: Work, other: Work) -> bool:
        """Returns whether a decode step and a piece have SMs in common."""
        if PLAIN in (one.layout, other.layout) or PRIORITY in (one.layout, other.layout):
            return False
        if ONE_STREAM in (one.layout, other.layout):
            return True
        decode, prefill = (one, other) if one.is_decode else (other, one)
        return decode.layout > prefill.layout

    def _whole(self, one: Work, beside: bool) -> float:
        if one.timed:
            return 1.0
        return (self.costs.decode if one.is_decode else self.costs.prefill)(one.layout, beside)

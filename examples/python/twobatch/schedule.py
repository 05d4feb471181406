"""Who does what, in which order: the parts of a layer, of two batches in turns.

While one batch computes the other communicates. A layer of a batch is four parts: attention, the
tokens' way to their experts (dispatch), the experts, and the way back (combine). Compute is one
lane, communication the other; a part waits for the part of its batch before it, and for nothing of
the other batch but its turn.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

COMPUTE, EXCHANGE = "compute", "exchange"
LANES = {
    "attention": COMPUTE,
    "dispatch": EXCHANGE,
    "experts": COMPUTE,
    "combine": EXCHANGE,
}
BATCHES = (0, 1)


class Step(NamedTuple):
    """A part of a layer of a batch."""

    layer: int
    batch: int
    part: str

    @property
    def lane(self) -> str:
        return LANES[self.part]


class Span(NamedTuple):
    """When a step ran: milliseconds after the start."""

    step: Step
    start: float
    end: float


def steps(layers: int) -> list[Step]:
    """All of them, in the order in which they are launched, whatever the lanes. It is an order that
    one lane can run too: each comes after what it waits for."""
    halves = (("attention", "dispatch"), ("experts", "combine"))
    return [
        Step(layer, batch, part)
        for layer in range(layers)
        for half in halves
        for batch in BATCHES
        for part in half
    ]


class Lane(Protocol):
    """A stream, as PyTorch's are."""

    def wait_event(self, event: Any) -> None: ...

    def record_event(self) -> Any: ...


def submit(
    layers: int,
    compute: Lane,
    exchange: Lane,
    do: Callable[[Step, Any], None],
    *,
    only: str = "",
) -> None:
    """Gives two lanes, which may be one, all their steps. The calling thread waits for nothing: a
    lane does, for the part of a batch that the other lane has before its own.

    Args:
        do: Puts a step's work into a lane.
        only: As of lay_out.
    """
    done: dict[int, Any] = {}  # By batch: what its last part, in the other lane, records.
    for step in steps(layers):
        if only and step.lane != only:
            continue
        lane = compute if step.lane == COMPUTE else exchange
        if step.batch in done:
            lane.wait_event(done[step.batch])
        do(step, lane)
        if compute is not exchange and not only:
            done[step.batch] = lane.record_event()


def lay_out(
    layers: int, cost: Callable[[Step], float], *, one_lane: bool = False, only: str = ""
) -> list[Span]:
    """When each step would run if it took so long: the schedule by itself.

    Args:
        cost: Milliseconds of a step.
        one_lane: Everything in one stream.
        only: Of this lane alone; nothing waits for the other then.
    """
    free: dict[str, float] = {}  # When a lane has done what it was given.
    done: dict[int, float] = {}  # When the last part of a batch ended.
    spans = []
    for step in steps(layers):
        if only and step.lane != only:
            continue
        lane = "" if one_lane else step.lane
        start = max(free.get(lane, 0.0), 0.0 if only else done.get(step.batch, 0.0))
        free[lane] = done[step.batch] = start + cost(step)
        spans.append(Span(step, start, start + cost(step)))
    return spans


def length(spans: list[Span]) -> float:
    """Milliseconds from the start to the last end."""
    return max(span.end for span in spans)

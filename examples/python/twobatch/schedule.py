"""The order of work: the parts of a layer, for two batches in turns.

A layer of a batch has four parts: attention, sending tokens to their experts (dispatch), the
experts, and the way back (combine). Compute is one lane, communication the other. A part waits for
the part of its batch before it, and otherwise only for its turn.
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
    """Returns all steps in the order of launching. One lane can run it too: each step comes after
    those that it waits for."""
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
    """Submits all steps to two lanes, which may be one stream. Waits only on the device: a lane
    waits for the previous part of a batch in the other lane.

    Args:
        do: Submits a step's work to a lane.
        only: Submit only this lane's steps.
    """
    done: dict[int, Any] = {}  # The event of each batch's last part.
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
    """Returns when each step would run with these costs.

    Args:
        cost: Milliseconds of a step.
        one_lane: Everything in one stream.
        only: Run only this lane, without waits for the other.
    """
    free: dict[str, float] = {}  # When each lane is free.
    done: dict[int, float] = {}  # When each batch's last part ended.
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
    """Returns the milliseconds to the last end."""
    return max(span.end for span in spans)

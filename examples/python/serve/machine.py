"""Runs decode steps and pieces of prompts: a GPU or its simulation."""

from __future__ import annotations

from typing import NamedTuple, Protocol


class Ended(NamedTuple):
    """When work was seen to end, in milliseconds and in the order of launching."""

    decodes: list[float]
    pieces: list[float]


class Machine(Protocol):
    """Two lanes, decode and prefill. Work of a lane runs in order, and starts once all earlier work
    has left its SMs."""

    @property
    def sm_count(self) -> int: ...

    @property
    def pieces(self) -> int:
        """How many pieces a prompt has."""

    def chunks(self, kind: str) -> int:
        """Returns the chunks of that kind in a prompt."""

    def now(self) -> float:
        """Returns the time in milliseconds."""

    def decode(self, layout: int) -> None:
        """Launches a decode step; layout as in costs.py."""

    def piece(self, number: int, layout: int) -> None:
        """Launches a piece of a prompt."""

    def chunk(self, kind: str, number: int) -> None:
        """Launches a chunk of a prompt's tokens in the stream that decode uses too."""

    def ended(self) -> Ended:
        """Returns what has ended since the last call."""

    def wait(self, until: float) -> None:
        """Waits until something has ended, or until that time."""

    def finish(self) -> None:
        """Waits for all launched work, and discards it."""

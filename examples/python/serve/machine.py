"""What runs decode steps and pieces of prompts: a GPU, or its simulation."""

from __future__ import annotations

from typing import NamedTuple, Protocol


class Ended(NamedTuple):
    """When which work was seen to end: milliseconds, in the order of launching."""

    decodes: list[float]
    pieces: list[float]


class Machine(Protocol):
    """Two lanes, decode and prefill. Work of one lane runs in the order of its launches, and starts
    when the SMs that it is launched on have been left by all work launched before it."""

    @property
    def sm_count(self) -> int: ...

    @property
    def pieces(self) -> int:
        """Pieces that a prompt is prefilled in."""

    def chunks(self, kind: str) -> int:
        """Chunks of that kind in a prompt."""

    def now(self) -> float:
        """Milliseconds."""

    def decode(self, layout: int) -> None:
        """Launches a decode step; layout as in costs.py."""

    def piece(self, number: int, layout: int) -> None:
        """Launches a piece of a prompt."""

    def chunk(self, kind: str, number: int) -> None:
        """Launches a chunk of a prompt's tokens in the stream that decode uses too."""

    def ended(self) -> Ended:
        """What has ended since this was last asked."""

    def wait(self, until: float) -> None:
        """Returns once something has ended, at the latest then."""

    def finish(self) -> None:
        """Waits for all that was launched, and forgets it."""

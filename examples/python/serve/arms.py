"""The ways to serve ("arms") that the policy is compared with."""

from __future__ import annotations

from serve.costs import ONE_STREAM
from serve.engine import Engine, Took

AHEAD = 2  # Pieces in flight, so that the GPU finds the next one when one ends.


class Unlearned:
    """An arm that learns nothing."""

    def decoded(self, took: Took) -> None:
        pass

    def prefilled(self, took: Took) -> None:
        pass


class Fixed(Unlearned):
    """A constant layout: a split, two plain streams, or two with different priorities."""

    def __init__(self, layout: int) -> None:
        self.layout = layout

    def act(self, engine: Engine) -> None:
        if engine.decoding is None:
            engine.decode(self.layout)
        while engine.pieces_to_launch and len(engine.prefilling) < AHEAD:
            engine.piece(self.layout)


class Dynamic(Unlearned):
    """A split while there are prompts; otherwise decode has all SMs."""

    def __init__(self, split: int, sm_count: int) -> None:
        self.split, self.sm_count = split, sm_count

    def act(self, engine: Engine) -> None:
        if engine.decoding is None:
            engine.decode(self.sm_count if engine.idle else self.split)
        while engine.pieces_to_launch and len(engine.prefilling) < AHEAD:
            engine.piece(self.split)


class Chunked(Unlearned):
    """Chunked prefill: a chunk of a prompt in each step, before decode, in one stream."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def act(self, engine: Engine) -> None:
        if engine.decoding is None:
            if engine.pieces_to_launch:
                engine.chunk(self.kind)
            engine.decode(ONE_STREAM)

"""The GPU as a Machine: decode and prefill on leases or on plain streams."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Any

import torch

from serve.costs import ONE_STREAM, PLAIN, PRIORITY
from serve.graphs import Captures, Graph, sm_count_target
from serve.machine import Ended
from serve.model import Decode, Model, Prefill
from serve.sides import Sides


class Gpu:
    """A Machine. Every graph is captured once, here.

    Args:
        model: The weights.
        splits: Decode's SMs in the layouts that will be used.
        chunks: Kinds of chunks: tokens, as "512", or with attention to earlier chunks, "512-whole".
        merge: How many pieces of a layer are launched as one.
    """

    def __init__(
        self, model: Model, splits: list[int], chunks: list[str], merge: int, sm_count: int
    ) -> None:
        self.model, self.splits, self.merge = model, splits, merge
        self.sm_count = sm_count
        self._decode, self._prefill = Decode(model), Prefill(model)
        self._decode_captures, self._urgent = Captures(), Captures(priority=-5)
        self._prefill_captures = Captures()
        self._events: tuple[deque[Any], deque[Any]] = (deque(), deque())
        self._plain = [torch.cuda.Stream() for _ in range(2)]
        self._capture_decode()
        self._capture_prefill(chunks)
        torch.cuda.synchronize()
        self.sides = Sides(sm_count)
        for layout in (*splits, 0, sm_count):
            self._prepare(layout)

    @property
    def captures(self) -> int:
        """How many graphs were captured."""
        lanes = (self._decode_captures, self._urgent, self._prefill_captures)
        return sum(lane.count for lane in lanes)

    def _capture_decode(self) -> None:
        captures, step = self._decode_captures, self._decode.step
        captures.warm_up(step, step)
        whole = captures.capture(step)
        # A graph runs on any SMs, but on few SMs one planned for few is faster.
        self._steps = {self.sm_count: whole, PLAIN: whole, ONE_STREAM: whole}
        for split in self.splits:
            with sm_count_target(split):
                captures.warm_up(step)
                self._steps[split] = captures.capture(step)
        # A node keeps the priority of the stream of its capture.
        self._urgent.warm_up(step)
        self._steps[PRIORITY] = self._urgent.capture(step)
        for layout in (PLAIN, PRIORITY):
            self._steps[layout].instantiate()

    def _capture_prefill(self, chunks: list[str]) -> None:
        captures, prefill = self._prefill_captures, self._prefill
        works = [prefill.piece(number) for number in range(prefill.pieces)]
        captures.warm_up(*works)

        def merged(first: int) -> Callable[[], None]:
            def work() -> None:
                for one in works[first : first + self.merge]:
                    one()

            return work

        self._pieces = [
            captures.capture(merged(first)) for first in range(0, prefill.pieces, self.merge)
        ]
        for piece in self._pieces:
            piece.instantiate()
        self._chunks: dict[str, list[Graph]] = {}
        for kind in chunks:
            tokens, _, whole = kind.partition("-")
            parts = [
                prefill.chunk(number, int(tokens), all_attention=bool(whole))
                for number in range(self.model.shape.prompt // int(tokens))
            ]
            captures.warm_up(*parts)
            self._chunks[kind] = [captures.capture(part) for part in parts]
            for graph in self._chunks[kind]:
                graph.instantiate()

    def _prepare(self, layout: int) -> None:
        """Creates the contexts and executables of a layout."""
        self.sides.arrange(layout)
        if self.sides.decode is not None:
            self._steps[layout].prepare(self.sides.decode)
        if self.sides.prefill is not None:
            for piece in self._pieces:
                piece.prepare(self.sides.prefill)

    @property
    def pieces(self) -> int:
        return len(self._pieces)

    def chunks(self, kind: str) -> int:
        return len(self._chunks[kind])

    def now(self) -> float:
        return time.perf_counter() * 1e3

    def decode(self, layout: int) -> None:
        step = self._steps[layout]
        if layout >= 0:
            self.sides.arrange(layout)
            assert self.sides.decode is not None
            event = step.launch(self.sides.decode)
        else:
            stream = self._urgent.stream if layout == PRIORITY else self._plain[0]
            event = step.replay(stream)
        self._events[0].append(event)

    def piece(self, number: int, layout: int) -> None:
        piece = self._pieces[number]
        if layout >= 0:
            self.sides.arrange(layout)
            assert self.sides.prefill is not None
            event = piece.launch(self.sides.prefill)
        else:
            event = piece.replay(self._plain[1])
        self._events[1].append(event)

    def chunk(self, kind: str, number: int) -> None:
        self._events[1].append(self._chunks[kind][number].replay(self._plain[0]))

    def ended(self) -> Ended:
        ended = Ended([], [])
        for events, ends in zip(self._events, ended):
            while events and events[0].query():
                events.popleft()
                ends.append(self.now())
        return ended

    def wait(self, until: float) -> None:
        decodes, pieces = self._events
        # Spins, since waking up would add to each token's time.
        while not (decodes and decodes[0].query()) and not (pieces and pieces[0].query()):
            if self.now() >= until:
                return

    def finish(self) -> None:
        for events in self._events:
            if events:
                events[-1].synchronize()
            events.clear()

    def close(self) -> None:
        self.finish()
        self.sides.close()

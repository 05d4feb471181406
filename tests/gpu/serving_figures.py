"""Measures the ways to serve of docs/guides/decode-and-prefill.md on one GPU, side by side.

The policy of examples/python/serving.py, chunked prefill, plain streams, a priority for decode and
a fixed split serve the same prompts: 32 sequences of Llama-3-8B's shape decode, prompts of 4,096
tokens arrive at random moments. Needs PyTorch and gcx.

    python tests/gpu/serving_figures.py [--rates 2 4 5.5] [--promise 17.5 14]
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples" / "python"))

import common
import gcx
import serving
from gcx.engines.policy import Launch, Policy, Schedule

# Layouts without leases, in the place of a split.
PLAIN, PRIORITY, ONE_STREAM = -1, -2, -3
CHUNK = 512


class Llama(serving.Gpu):
    """Runs the model of llama.py, also in streams without partitions."""

    def __init__(self, torch: Any, sm_count: int, splits: list[int], layers: int) -> None:
        self.layers = layers
        self.plain = [torch.cuda.Stream() for _ in range(2)]
        self.urgent = torch.cuda.Stream(priority=-5)
        super().__init__(torch, sm_count, splits)

    def capture(self, splits: list[int], sm_count: int) -> None:
        from llama import Decode, Model, Prefill, Shape

        model = Model(Shape(layers=self.layers), "cuda", self.torch.bfloat16)
        decode, prefill = Decode(model), Prefill(model)
        self.steps = serving.captured_steps(self.torch, decode.step, splits, sm_count)
        chunks = range(model.shape.prompt // CHUNK)
        self.prompt = serving.captured(self.torch, map(prefill.piece, range(prefill.pieces)))
        self.chunks = serving.captured(self.torch, (prefill.chunk(n, CHUNK) for n in chunks))

    def launch(self, launch: Launch) -> None:
        if launch.split >= 0:
            super().launch(launch)
            return
        is_piece = launch.piece >= 0
        whole = self.steps[self.sides.sm_count]
        if launch.split == ONE_STREAM:
            graph, stream = self.chunks[launch.piece] if is_piece else whole, self.plain[0]
        elif is_piece:
            graph, stream = self.prompt[launch.piece], self.plain[1]
        else:
            graph, stream = whole, self.urgent if launch.split == PRIORITY else self.plain[0]
        graph.launch(stream)
        self.ends[is_piece].append(stream.record_event())


class WhilePrompts(Schedule):
    """A fixed split while there are prompts; otherwise decode has all SMs."""

    def __init__(self, pieces: int, split: int, sm_count: int) -> None:
        super().__init__(pieces)
        self.split, self.sm_count = split, sm_count

    def decide(self) -> tuple[bool, int] | None:
        if self.step is None:
            return True, self.split if self.unanswered else self.sm_count
        return (False, self.split) if self.can_prefill else None


class Chunked(Schedule):
    """A chunk of a prompt before each decode step. Both are one step in an engine, so the prompt's
    first token comes with the step's."""

    answered = 0

    def decide(self) -> tuple[bool, int] | None:
        if self.step is not None:
            return None
        return not self.waiting or bool(self.prefilling), ONE_STREAM

    def piece_ended(self, at: float) -> int:
        self.answered += super().piece_ended(at)
        return 0

    def step_ended(self, at: float) -> int:
        super().step_ended(at)
        answered, self.answered = self.answered, 0
        return answered


def variants(machine: Llama, steps: dict[int, float], promises: list[float]) -> dict[str, Schedule]:
    """Returns new schedules, since the policy learns."""
    pieces = machine.pieces
    found: dict[str, Schedule] = {
        "plain streams": serving.Fixed(pieces, PLAIN),
        "stream priority": serving.Fixed(pieces, PRIORITY),
        f"chunks of {CHUNK}": Chunked(len(machine.chunks)),
        "32 SMs while a prompt is there": WhilePrompts(pieces, 32, max(steps)),
    }
    for promise in promises:
        try:
            found[f"policy, {promise:g} ms promised"] = Policy(steps, promise, pieces)
        except ValueError as error:
            print(error)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--rates", nargs="+", type=float, default=[2.0, 4.0, 5.5], help="prompts a second")
    add("--promise", nargs="+", type=float, default=[17.5, 14.0], help="ms from token to token")
    add("--sms", nargs="+", type=int, default=[16, 24, 32, 40, 48, 56], help="the policy's splits")
    add("--seconds", type=float, default=8.0, help="that prompts arrive, for each row (8)")
    add("--layers", type=int, default=32, help="of the model (32)")
    arguments = parser.parse_args()
    gcx.request_connections()
    device = common.start()
    torch = common.library("torch")
    torch.set_grad_enabled(False)
    from llama import disagreement

    off = disagreement()
    common.check(off < 0.2, f"prefill and decode differ from plain attention by {off:.2f} sigma")
    start = time.perf_counter()
    splits = sorted({*arguments.sms, 32})
    machine = Llama(torch, device.sm_count, splits, arguments.layers)
    print(f"{arguments.layers} layers, graphs captured once, {len(splits) + 2} layouts prepared: "
          f"{time.perf_counter() - start:.1f} s")  # fmt: skip
    steps = serving.measure(machine, device.sm_count, splits)
    for rate in arguments.rates:
        arrivals = common.poisson(rate, arguments.seconds)
        rows = []
        for name, schedule in variants(machine, steps, arguments.promise).items():
            serving.serve(machine, schedule, [0.0], at_least=500)
            gc.collect()
            gc.disable()  # A collection would add to the latency.
            record = serving.serve(machine, schedule, arrivals)
            gc.enable()
            times = [common.percentile(record.tokens, share) for share in (0.05, 0.5, 0.99, 1)]
            first = common.percentile(record.first, 0.5)
            rows.append((name, *(f"{ms:.1f}" for ms in times), f"{first:.0f}"))
        print(f"{rate:g} prompts a second, {len(arrivals)} prompts; in ms:")
        common.table(("", "token p5", "p50", "p99", "max", "first token p50"), rows)
    print(f"{machine.sides.changes} changes of the leases")
    machine.close()


if __name__ == "__main__":
    common.run(main)

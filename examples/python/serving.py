"""Decode and prefill on two leases that change while prompts wait, so that each token is in time.

Prompts arrive at random moments while a batch decodes. The policy (gcx.engines.policy) decides how
many SMs decode has next to a prompt, and keeps a promised time from one token to the next. Two
series of matrix products stand in for the model. Every graph is captured once and runs on any SMs.

    python examples/python/serving.py [--promise MS] [--rate PROMPTS_PER_SECOND]
"""

from __future__ import annotations

import argparse
import gc
import math
import statistics
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import common
import gcx
from gcx.engines import Sides
from gcx.engines.policy import Launch, Policy, Schedule


class Gpu:
    """Runs decode steps and pieces of prompts as graphs on the leases, each kind in order. A
    subclass captures another model's. Times are in milliseconds."""

    HIDDEN, LAYERS, BATCH, PROMPT = 4096, 160, 32, 4096
    steps: dict[int, gcx.Graph]  # By split.
    prompt: list[gcx.Graph]

    def __init__(self, torch: Any, sm_count: int, splits: list[int]) -> None:
        self.torch = torch
        self.capture(splits, sm_count)
        torch.cuda.synchronize()
        self.ends: tuple[deque[Any], deque[Any]] = (deque(), deque())
        self.sides = Sides(sm_count)
        for split in (*splits, 0, sm_count):  # Creates all contexts and executables now.
            self.sides.arrange(split)
            if self.sides.decode.sm_count:
                self.steps[split].prepare(self.sides.decode)
            if self.sides.prefill.sm_count:
                for piece in self.prompt:
                    piece.prepare(self.sides.prefill)

    def capture(self, splits: list[int], sm_count: int) -> None:
        torch, n = self.torch, self.HIDDEN
        kind: dict[str, Any] = {"device": "cuda", "dtype": torch.bfloat16}
        weights = [torch.randn(n, n, **kind) for _ in range(self.LAYERS)]
        batch, prompt = (
            [torch.randn(rows, n, **kind) for _ in range(2)] for rows in (self.BATCH, self.PROMPT)
        )

        def layer(rows: list[Any], number: int) -> None:
            torch.mm(rows[0], weights[number], out=rows[1])

        def step() -> None:
            for number in range(self.LAYERS):
                layer(batch, number)

        self.steps = captured_steps(torch, step, splits, sm_count)
        # SMs can change only between graphs, so a prompt is a graph for each layer.
        self.prompt = captured(torch, (partial(layer, prompt, n) for n in range(self.LAYERS)))

    @property
    def pieces(self) -> int:
        """How many pieces a prompt has."""
        return len(self.prompt)

    def now(self) -> float:
        return time.perf_counter() * 1e3

    def launch(self, launch: Launch) -> None:
        self.sides.arrange(launch.split)
        is_piece = launch.piece >= 0
        lease = self.sides.prefill if is_piece else self.sides.decode
        stream = lease.stream  # Behind all that used these SMs before.
        (self.prompt[launch.piece] if is_piece else self.steps[launch.split]).launch(stream)
        self.ends[is_piece].append(stream.record())

    def ended(self) -> tuple[list[float], list[float]]:
        """Returns when steps and pieces have ended since the last call."""
        found: tuple[list[float], list[float]] = ([], [])
        for events, times in zip(self.ends, found):
            while events and events[0].query():
                events.popleft()
                times.append(self.now())
        return found

    def wait(self, until: float) -> None:
        """Waits until something has ended, or until that time."""
        # Spins, since waking up would add to each token's time.
        while not any(events and events[0].query() for events in self.ends):
            if self.now() >= until:
                return

    def close(self) -> None:
        self.torch.cuda.synchronize()
        self.sides.close()


def captured(torch: Any, works: Iterable[Callable[[], None]]) -> list[gcx.Graph]:
    """Captures graphs in a stream and memory pool for them alone: cuBLAS has a workspace for each
    stream, and graphs that share one must not run concurrently."""
    stream, pool = torch.cuda.Stream(), torch.cuda.graph_pool_handle()
    stream.wait_stream(torch.cuda.current_stream())
    works, graphs = list(works), []
    with torch.cuda.stream(stream):
        for work in works:
            work()  # Loads kernels and creates workspaces.
        stream.synchronize()
        for work in works:
            graph = torch.cuda.CUDAGraph(keep_graph=True)
            graph.capture_begin(pool=pool, capture_error_mode="thread_local")
            work()
            graph.capture_end()
            graphs.append(gcx.Graph(graph))
    return graphs


def captured_steps(
    torch: Any, step: Callable[[], None], splits: list[int], sm_count: int
) -> dict[int, gcx.Graph]:
    """Captures the step for all SMs, and for each split: there one that cuBLAS plans for these few
    SMs is faster."""
    found = {sm_count: captured(torch, [step])[0]}
    for split in splits:
        with gcx.split([split]) as (part,), gcx.current(part, cublas=True):
            (found[split],) = captured(torch, [step])
    return found


@dataclass
class Record:
    """The results in milliseconds."""

    tokens: list[float] = field(default_factory=list)  # From each token to the next.
    first: list[float] = field(default_factory=list)  # From each prompt to its first token.
    elapsed: float = 0.0


def serve(machine: Gpu, schedule: Schedule, arrivals: list[float], at_least: float = 0.0) -> Record:
    """Serves prompts that arrive at those milliseconds until each has its first token, and then one
    prompt after the other until `at_least` milliseconds have passed."""
    record, unanswered = Record(), deque[float]()
    began = last = machine.now()
    coming = deque(began + at for at in arrivals)
    schedule.begin(began)
    while True:
        steps, pieces = machine.ended()
        answers = [(at, schedule.piece_ended(at)) for at in pieces]
        for at in steps:
            answers.append((at, schedule.step_ended(at)))
            record.tokens.append(at - last)
            last = at
        for at, count in answers:
            record.first.extend(at - unanswered.popleft() for _ in range(count))
        now = machine.now()
        if not coming and not unanswered:
            if now - began >= at_least and schedule.step is None:
                break
            if now - began < at_least:
                coming.append(now)
        while coming and coming[0] <= now:
            unanswered.append(coming.popleft())
            schedule.prompt_arrived()
        done = not coming and not unanswered  # The last step is still in flight.
        while not done and (launch := schedule.next(machine.now())) is not None:
            machine.launch(launch)
        machine.wait(coming[0] if coming else math.inf)
    record.elapsed = machine.now() - began
    return record


class Fixed(Schedule):
    """A constant split."""

    def __init__(self, pieces: int, split: int) -> None:
        super().__init__(pieces)
        self.split = split

    def decide(self) -> tuple[bool, int] | None:
        if self.step is None:
            return True, self.split
        return (False, self.split) if self.can_prefill else None


def measure(machine: Gpu, sm_count: int, splits: list[int]) -> dict[int, float]:
    """Returns the time of a decode step by split: next to prefill, and alone on all SMs."""
    steps = {}
    for split in splits:
        serve(machine, Fixed(machine.pieces, split), [0.0])  # Raises the clocks.
        record = serve(machine, Fixed(machine.pieces, split), [0.0] * 4)
        steps[split] = statistics.median(record.tokens)
        print(f"decode on {split} SMs: {steps[split]:.2f} ms, next to a prompt on "
              f"{sm_count - split} that takes {record.elapsed / 4:.1f} ms")  # fmt: skip
    alone = []
    for _ in range(33):
        start = machine.now()
        machine.launch(Launch(start, sm_count, -1))
        while not machine.ended()[0]:
            machine.wait(math.inf)
        alone.append(machine.now() - start)
    steps[sm_count] = statistics.median(alone)
    print(f"decode alone on all SMs: {steps[sm_count]:.2f} ms", flush=True)
    return steps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--promise", type=float, metavar="MS",
        help="from token to token, for 99 of 100 (three times a step alone)")  # fmt: skip
    add("--rate", type=common.positive, default=8, help="prompts a second (8)")
    add("--sms", nargs="+", type=common.positive, default=[16, 24, 32, 40, 48, 64],
        metavar="SMS",
        help="decode's SMs that the policy chooses from (24 32 48 64)")  # fmt: skip
    arguments = parser.parse_args()
    # Before CUDA starts: waiting streams must not block all launches of the process.
    gcx.request_connections()
    device = common.start()
    torch = common.library("torch")
    splits = sorted({*arguments.sms})
    if splits[-1] >= device.sm_count:
        common.end(f"a split of {splits[-1]} SMs leaves prefill none of {device.sm_count}")
    machine = Gpu(torch, device.sm_count, splits)
    steps = measure(machine, device.sm_count, splits)
    promise = arguments.promise or 3 * steps[device.sm_count]
    try:
        policy = Policy(steps, promise, machine.pieces)
    except ValueError as error:
        common.end(str(error))
    gc.disable()  # A collection would add to the latency.
    record = serve(machine, policy, common.poisson(arguments.rate, 8))
    median, slow = (common.percentile(record.tokens, share) for share in (0.5, 0.99))
    print(f"{len(record.tokens)} tokens: p50 {median:.2f}, p99 {slow:.2f} ms; {promise:.2f} ms "
          f"promised: {'kept' if slow <= promise else 'BROKEN'}")  # fmt: skip
    median = common.percentile(record.first, 0.5)
    print(f"{len(record.first)} prompts: first token after {median:.0f} ms in the median; "
          f"{machine.sides.changes} changes of the leases")  # fmt: skip
    machine.close()


if __name__ == "__main__":
    common.run(main)

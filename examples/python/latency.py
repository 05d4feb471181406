"""The latency of a critical kernel while a heavy one fills the GPU.

Compares the idle GPU, a plain stream, a stream of the highest priority, and a partition. Latency is
wall time from the launch to the return of the stream's synchronize(), including Python's part,
which the row "alone" shows. Launches come at random moments of the heavy kernels.
"""

from __future__ import annotations

import argparse
import gc
import random
import time
from collections import deque
from typing import Any

import common
import gcx

# Both kernels: dependent multiply-adds, whose time doesn't depend on memory bandwidth. Eight blocks
# fill an SM.
SOURCE = """
extern "C" __global__ void __launch_bounds__(256, 8) work(float* out, int rounds) {
    float x = threadIdx.x;
    for (int i = 0; i < rounds; i++) x = x * 0.999f + 1.0f;
    out[blockIdx.x * blockDim.x + threadIdx.x] = x;
}
"""
THREADS = 256
CRITICAL_BLOCKS, CRITICAL_ROUNDS = 24, 5_000  # About 10 us.
HEAVY_WAVES, HEAVY_ROUNDS = 8, 50_000  # Blocks of about 0.4 ms, 8 after each other: 3 ms.
AHEAD = 16  # Queued heavy kernels: about 50 ms, by which Python may be late.
ALONE, PLAIN, PRIORITY, PARTITION = "alone", "plain streams", "stream priority", "partition"


class Heavy:
    """Endless work: a stream that always has kernels queued."""

    def __init__(self, cupy: Any, kernel: Any, blocks: int, stream: Any) -> None:
        self.cupy, self.kernel, self.blocks, self.stream = cupy, kernel, blocks, stream
        self.out = cupy.empty(blocks * THREADS, dtype=cupy.float32)
        self.queue: deque[Any] = deque()
        self.finished = 0

    def top_up(self) -> None:
        while self.queue and self.queue[0].done:
            self.queue.popleft()
            self.finished += 1
        while len(self.queue) < AHEAD:
            with self.stream:
                rounds = self.cupy.int32(HEAVY_ROUNDS)
                self.kernel((self.blocks,), (THREADS,), (self.out, rounds))
            self.queue.append(self.stream.record(self.cupy.cuda.Event(disable_timing=True)))

    @property
    def running(self) -> bool:
        return bool(self.queue) and not self.queue[-1].done

    def stop(self) -> None:
        self.stream.synchronize()
        self.queue.clear()


class Case:
    """A way to run the critical kernel, with its measurements."""

    def __init__(self, name: str, stream: Any, heavy: Heavy | None) -> None:
        self.name, self.stream, self.heavy = name, stream, heavy
        self.latencies: list[float] = []  # In us.
        self.heavy_kernels, self.seconds = 0, 0.0

    def measure(self, cupy: Any, kernel: Any, out: Any, launches: int, pause: float) -> None:
        rounds = cupy.int32(CRITICAL_ROUNDS)
        heavy, warm_up = self.heavy, 10
        with self.stream:
            for number in range(-warm_up, launches):
                if heavy is not None:
                    heavy.top_up()
                if number == 0:
                    began, finished = time.perf_counter(), heavy.finished if heavy else 0
                until = time.perf_counter() + random.uniform(0, pause)
                while time.perf_counter() < until:
                    pass  # Sleeping would add the time of waking up to the next launch.
                start = time.perf_counter_ns()
                kernel((CRITICAL_BLOCKS,), (THREADS,), (out, rounds))
                self.stream.synchronize()
                took = time.perf_counter_ns() - start
                common.check(
                    heavy is None or heavy.running,
                    f"{self.name}: the heavy stream ran dry, so the critical kernel was alone",
                )
                if number >= 0:
                    self.latencies.append(took / 1e3)
            self.seconds += time.perf_counter() - began
        if heavy is not None:
            heavy.top_up()
            self.heavy_kernels += heavy.finished - finished
            heavy.stop()

    def percentile(self, share: float) -> float:
        return common.percentile(self.latencies, share)

    @property
    def rate(self) -> float:
        """Heavy kernels a second."""
        return self.heavy_kernels / self.seconds

    def distribution(self) -> tuple[list[float], list[float]]:
        """Returns latencies and the shares of launches up to them: about 200 points and the
        slowest 20 launches, for a small file."""
        ordered, count = sorted(self.latencies), len(self.latencies)
        chosen = sorted({*range(0, count, count // 200 + 1), *range(max(0, count - 20), count)})
        return [ordered[number] for number in chosen], [(number + 1) / count for number in chosen]


def plot(cases: list[Case], title: str, path: str) -> None:
    """Draws the distributions as SVG."""
    common.library("matplotlib").use("svg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(5, 4.5), layout="constrained")  # Fits a phone.
    for case in cases:
        label = f"{case.name}: p50 {case.percentile(0.5):.0f}, p99 {case.percentile(0.99):.0f} us"
        axes.step(*case.distribution(), where="post", label=label)
    axes.set(xscale="log", xlabel="latency, us", ylabel="share of launches", ylim=(0, 1.02))
    axes.set_title(title)
    axes.grid(alpha=0.3, which="both")
    axes.xaxis.set_major_formatter("{x:g}")
    figure.legend(loc="outside lower center")
    common.write_plot(figure, path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--sms", type=int, default=24, help="SMs for the critical kernel (24)")
    add("--launches", type=common.positive, default=1000, help="in each case (1000)")
    add("--plot", metavar="FILE", help="write the distributions as an SVG")
    arguments = parser.parse_args()
    device = common.start()
    cupy = common.library("cupy")
    if arguments.plot:
        common.library("matplotlib")  # Fails now, not at the end.

    kernel = cupy.RawKernel(SOURCE, "work")
    out = cupy.empty(CRITICAL_BLOCKS * THREADS, dtype=cupy.float32)
    per_sm = cupy.cuda.Device(0).attributes["MaxThreadsPerMultiProcessor"] // THREADS
    blocks = HEAVY_WAVES * per_sm * device.sm_count

    few, rest = gcx.split([arguments.sms, None])
    with few, rest:
        plain = cupy.cuda.Stream(non_blocking=True)
        urgent = cupy.cuda.Stream(non_blocking=True, priority=-5)  # Clamped to the highest.
        on_all = Heavy(cupy, kernel, blocks, cupy.cuda.Stream(non_blocking=True))
        on_rest = Heavy(cupy, kernel, blocks, rest.stream.cupy())
        cases = [
            Case(ALONE, plain, None),
            Case(PLAIN, plain, on_all),
            Case(PRIORITY, urgent, on_all),
            Case(PARTITION, few.stream.cupy(), on_rest),
        ]
        cupy.cuda.Device(0).synchronize()
        with on_all.stream:
            for launches in (20, 10):  # The first run compiles and raises the clocks.
                on_all.stream.synchronize()
                start = time.perf_counter()
                for _ in range(launches):
                    kernel((blocks,), (THREADS,), (on_all.out, cupy.int32(HEAVY_ROUNDS)))
        on_all.stream.synchronize()
        heavy_s = (time.perf_counter() - start) / 10
        print(f"heavy: {heavy_s * 1e3:.2f} ms on the whole GPU; partitions: critical "
              f"{few.sm_count} SMs, heavy {rest.sm_count}")  # fmt: skip

        gc.disable()  # A collection would add to the latency.
        for _ in range(5):  # In turns, so that a drift of the clocks affects all.
            for case in cases:
                case.measure(cupy, kernel, out, -(-arguments.launches // 5), heavy_s)
        gc.enable()

    common.check(all(case.rate > 0 for case in cases[1:]), "no heavy kernel ended")
    print(f"latency in us, {len(cases[0].latencies)} launches in each case:")
    common.table(
        ("", "p50", "p90", "p99", "max", "heavy kernels/s"),
        [
            (
                case.name,
                *(f"{case.percentile(share):.1f}" for share in (0.5, 0.9, 0.99, 1)),
                f"{case.rate:.0f}" if case.heavy else "-",
            )
            for case in cases
        ],
    )
    print(f"its price: the heavy kernels ran at {cases[3].rate / cases[1].rate:.2f} of their rate "
          f"in plain streams, on {rest.sm_count / device.sm_count:.2f} of the SMs")  # fmt: skip
    if arguments.plot:
        plot(cases, f"A critical kernel next to a heavy one, {device.name}", arguments.plot)


if __name__ == "__main__":
    common.run(main)

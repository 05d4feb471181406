"""A persistent kernel with a grid-wide barrier, sized by the partition.

All blocks of such a kernel must be on the SMs at once, or the barrier deadlocks. The driver refuses
a cooperative launch that doesn't fit. What fits is the partition's SMs times the blocks of each,
not the device's SMs, which libraries still report.

The kernel repeatedly replaces each number by the sum of it and its two neighbours, in one launch:
every step needs the previous one of all blocks.
"""

from __future__ import annotations

import argparse
from typing import Any

import common
import gcx

SOURCE = """
// Waits for all blocks. Without a cooperative launch it may deadlock.
__device__ void barrier(unsigned* arrived, unsigned wanted) {
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();  // Makes this block's writes visible before its arrival.
        atomicAdd(arrived, 1u);
        while (*(volatile unsigned*)arrived < wanted) {}
        __threadfence();
    }
    __syncthreads();
}

__device__ unsigned long long now() {
    unsigned long long time;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
    return time;
}

extern "C" __global__ void __launch_bounds__(1024, 2)
smooth(unsigned* x, unsigned* y, unsigned n, unsigned steps, unsigned* arrived,
       unsigned long long* span) {
    if (blockIdx.x == 0 && threadIdx.x == 0) span[0] = now();
    for (unsigned step = 0; step < steps; step++) {
        // The stride is the grid's, so that any number of blocks does all the work.
        for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
            y[i] = x[i == 0 ? n - 1 : i - 1] + x[i] + x[i == n - 1 ? 0 : i + 1];
        barrier(arrived, (step + 1) * gridDim.x);
        unsigned* swap = x;
        x = y;
        y = swap;
    }
    if (blockIdx.x == 0 && threadIdx.x == 0) span[1] = now();
}
"""
THREADS = 1024


class Run:
    """The buffers of one run, ready before anything is launched."""

    def __init__(self, cupy: Any, kernel: Any, n: int, steps: int) -> None:
        self.cupy, self.kernel, self.n, self.steps = cupy, kernel, n, steps
        self.x = cupy.arange(n, dtype=cupy.uint32) * cupy.uint32(2654435761)
        self.y = cupy.empty_like(self.x)
        self.arrived = cupy.zeros(1, dtype=cupy.uint32)
        self.span = cupy.zeros(2, dtype=cupy.uint64)
        self.first = self.x.copy()
        cupy.cuda.Device(0).synchronize()

    def launch(self, stream: Any, blocks: int) -> None:
        u32 = self.cupy.uint32
        arguments = (self.x, self.y, u32(self.n), u32(self.steps), self.arrived, self.span)
        with stream:
            # RawKernel(..., enable_cooperative_groups=True) would also link libcudadevrt.a, which
            # this barrier doesn't need.
            self.kernel.kernel((blocks,), (THREADS,), arguments, enable_cooperative_groups=True)

    def result(self) -> Any:
        return (self.x, self.y)[self.steps % 2]

    def expected(self) -> Any:
        x = self.first
        for _ in range(self.steps):
            x = self.cupy.roll(x, 1) + x + self.cupy.roll(x, -1)
        return x

    def times(self) -> tuple[int, int]:
        """Returns when it began and ended, in ns of the GPU's clock."""
        begin, end = self.span.get()
        return int(begin), int(end)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sms", type=int, default=24, help="of one partition; the rest is another")
    parser.add_argument("--steps", type=common.positive, default=500, help="barriers (500)")
    arguments = parser.parse_args()
    device = common.start()
    cupy = common.library("cupy")

    n = 1 << 20
    kernel = cupy.RawKernel(SOURCE, "smooth")
    # __launch_bounds__ limits the registers to allow this.
    per_sm = min(2, cupy.cuda.Device(0).attributes["MaxThreadsPerMultiProcessor"] // THREADS)
    wanted = Run(cupy, kernel, n, arguments.steps).expected()
    whole = device.sm_count * per_sm

    parts = gcx.split([arguments.sms, None])
    with parts[0], parts[1]:
        print(f"{per_sm} blocks of {THREADS} threads on an SM; {whole} fit on the whole GPU")
        for part in parts:
            # Without steps there is no barrier, so it would end even if the driver accepted it.
            attempt = Run(cupy, kernel, n, 0)
            try:
                attempt.launch(part.stream.cupy(), whole)
                part.stream.synchronize()
                answer = "accepted: with a barrier it would deadlock"
            except cupy.cuda.driver.CUDADriverError as error:
                answer = f"refused: {str(error).split(':')[0]}"
            print(f"{whole} blocks on {part.sm_count} SMs: {answer}")

        print(f"\n{n} numbers, {arguments.steps} steps in one launch of sm_count * {per_sm} blocks")
        rows = []
        spans: dict[str, list[tuple[int, int]]] = {}
        for how in ("alone", "both at once"):
            runs = [Run(cupy, kernel, n, arguments.steps) for _ in parts]
            for part, run in zip(parts, runs):
                run.launch(part.stream.cupy(), part.sm_count * per_sm)
                if how == "alone":
                    part.stream.synchronize()
            for part, run in zip(parts, runs):
                part.stream.synchronize()
                common.check(
                    bool((run.result() == wanted).all()),
                    f"{part.sm_count} SMs, {how}: wrong result",
                )
            spans[how] = [run.times() for run in runs]
            for part, (begin, end) in zip(parts, spans[how]):
                rows.append((f"{part.sm_count} SMs, {how}", str(part.sm_count * per_sm),
                             f"{(end - begin) / 1e6:.3f}", "right"))  # fmt: skip
        common.table(("partition", "blocks", "ms", "result"), rows)
        begins, ends = zip(*spans["both at once"])
        together = min(ends) - max(begins)
        common.check(together > 0, "the two partitions' kernels ran one after the other")
        print(f"at once: both ran for the same {together / 1e6:.3f} ms, each with its own barriers")


if __name__ == "__main__":
    common.run(main)

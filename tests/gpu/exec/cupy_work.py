"""Runs CuPy unchanged, and prints the SMs that a custom kernel sees as JSON."""

from __future__ import annotations

import json

import cupy

SOURCE = r"""
extern "C" __global__ void note_sm(int *seen) {
    unsigned sm;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    if (threadIdx.x == 0)
        seen[sm] = 1;
    const long long begin = clock64();
    while (clock64() - begin < 20000) {
    }
}
"""


def seen_in(stream: cupy.cuda.Stream) -> list[int]:
    kernel = cupy.RawKernel(SOURCE, "note_sm")
    with stream:
        seen = cupy.zeros(1024, dtype=cupy.int32)
        kernel((4096,), (128,), (seen,))
    stream.synchronize()
    return [int(sm) for sm in cupy.nonzero(seen)[0]]


a = cupy.arange(10**6, dtype=cupy.int64)
print(
    json.dumps(
        {
            "seen": {
                "default stream": seen_in(cupy.cuda.Stream.null),
                "stream": seen_in(cupy.cuda.Stream()),
                "non-blocking stream": seen_in(cupy.cuda.Stream(non_blocking=True)),
            },
            "properties": cupy.cuda.runtime.getDeviceProperties(0)["multiProcessorCount"],
            "sum": int(a.sum()),
        }
    )
)

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


STORE_LATE = r"""
extern "C" __global__ void store_late(int *to, int value) {
    const long long begin = clock64();
    while (clock64() - begin < 4000000) {
    }
    *to = value;
}
"""


def early_reads(rounds: int) -> int:
    """Returns how often the default stream read before a stream had written, or wrote before a
    stream had read. CuPy's streams are blocking streams, so both are ordered."""
    kernel = cupy.RawKernel(STORE_LATE, "store_late")
    stream = cupy.cuda.Stream()
    word = cupy.zeros(1, dtype=cupy.int32)
    early = 0
    for value in range(1, rounds + 1):
        with stream:
            kernel((1,), (1,), (word, value))
        early += int((word + 0)[0]) != value
        kernel((1,), (1,), (word, -value))
        with stream:
            read = word + 0
        early += int(read.get(stream=stream)[0]) != -value
    return early


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
            "early": early_reads(20),
        }
    )
)

"""A table that stays in the L2 cache while a neighbour streams through memory.

Partitions share the L2 cache, so the neighbour evicts the table. An access policy window on the
partition's stream tells the cache to keep the table, in a part that is set aside. It needs no
function of gcx: the native stream is enough.

A kernel reads the table alone, next to the neighbour, the same with a window, and with the
neighbour's data marked as streaming.
"""

from __future__ import annotations

import argparse
import ctypes
import statistics
from typing import Any

import common
import gcx

SOURCE = """
// Both readers bypass the L1 cache. Each read of walk determines the next one; look_up reads as
// much as possible at once.
extern "C" __global__ void __launch_bounds__(1024, 2)
walk(const uint4* table, unsigned count, unsigned reads, unsigned* out) {
    unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned at = thread * 2654435761u + 12345u;
    for (unsigned i = 0; i < reads; i++) {
        uint4 found = __ldcg(table + __umulhi(at, count));
        at = at * 1664525u + (found.x ^ found.y ^ found.z ^ found.w);
    }
    out[thread] = at;
}

extern "C" __global__ void __launch_bounds__(1024, 2)
look_up(const uint4* table, unsigned count, unsigned reads, unsigned* out) {
    unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned at = thread * 2654435761u + 12345u, sum = 0;
    for (unsigned i = 0; i < reads; i++) {
        at = at * 1664525u + 1013904223u;
        uint4 found = __ldcg(table + __umulhi(at, count));
        sum += found.x ^ found.y ^ found.z ^ found.w;
    }
    out[thread] = sum;
}

extern "C" __global__ void __launch_bounds__(1024, 2)
stream_through(uint4* data, unsigned half, unsigned times) {
    unsigned stride = gridDim.x * blockDim.x;
    for (unsigned n = 0; n < times; n++)
        for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < half; i += stride)
            data[half + i] = data[i];
}
"""
THREADS = 1024  # Of a block; two blocks for each SM.
# The kernels that read the table, and their threads.
PATTERNS = {"walk": 128, "look_up": THREADS}
READS = 2000  # Of each thread: 1.6 GB for look_up on 24 SMs.
# The neighbour copies one half of its data to the other: less than a window of 128 MiB, more than
# the cache.
NEIGHBOUR_MIB, NEIGHBOUR_TIMES = 120, 8
VARIANTS = ("alone", "next to the neighbour", "window", "neighbour marked")

# CUDA's constants, which only cuda.bindings has in Python.
NORMAL, STREAMING, PERSISTING = 0, 1, 2  # CUaccessProperty
WINDOW_ATTRIBUTE = 1  # CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW
_SET_ASIDE = 6  # CU_LIMIT_PERSISTING_L2_CACHE_SIZE
_L2_BYTES, _MOST_SET_ASIDE, _MOST_WINDOW = 38, 108, 109  # CU_DEVICE_ATTRIBUTE_...


class Window(ctypes.Structure):
    """CUaccessPolicyWindow, at the start of a CUlaunchAttributeValue of 64 bytes."""

    _fields_ = (
        ("base", ctypes.c_void_p),
        ("bytes", ctypes.c_size_t),
        ("hit_ratio", ctypes.c_float),
        ("hit", ctypes.c_int),
        ("miss", ctypes.c_int),
        ("rest", ctypes.c_ubyte * 32),
    )


class Cache:
    """CUDA's controls of the L2 cache of device 0."""

    def __init__(self) -> None:
        self._driver = ctypes.CDLL(gcx.driver_info().library)
        self.bytes, self.most_set_aside, self.most_window = map(
            self._attribute, (_L2_BYTES, _MOST_SET_ASIDE, _MOST_WINDOW)
        )

    def call(self, name: str, *arguments: Any) -> None:
        result = getattr(self._driver, name)(*arguments)
        if result != 0:
            word = ctypes.c_char_p()
            self._driver.cuGetErrorName(result, ctypes.byref(word))
            raise RuntimeError(f"{name}: {(word.value or b'an unknown error').decode()}")

    def _attribute(self, number: int) -> int:
        found = ctypes.c_int()
        self.call("cuDeviceGetAttribute", ctypes.byref(found), number, 0)
        return found.value

    def set_aside(self, size: int) -> int:
        """Sets the limit of the current context; returns the actual one."""
        found = ctypes.c_size_t()
        self.call("cuCtxSetLimit", _SET_ASIDE, ctypes.c_size_t(size))
        self.call("cuCtxGetLimit", ctypes.byref(found), _SET_ASIDE)
        return found.value

    def window(self, stream: int, base: int, size: int, hit: int, ratio: float = 1.0) -> None:
        """Sets how later launches in the stream access these bytes: the ratio of the lines as hit,
        the others normally. A size of 0 removes the window."""
        value = Window(base, size, ratio, hit, NORMAL)
        self.call(
            "cuStreamSetAttribute",
            ctypes.c_void_p(stream),
            ctypes.c_int(WINDOW_ATTRIBUTE),
            ctypes.byref(value),
        )

    def reset(self, *streams: int) -> None:
        """Removes the streams' windows, and makes all persisting lines normal."""
        for stream in streams:
            self.window(stream, 0, 0, NORMAL)
        self.call("cuCtxResetPersistingL2Cache")
        self.set_aside(0)


class Bench:
    """A table and a neighbour, each on its own partition."""

    def __init__(self, cupy: Any, parts: gcx.Partitions, pattern: str, mib: int) -> None:
        self.cupy = cupy
        self.reader, self.neighbour = parts
        module = cupy.RawModule(code=SOURCE)
        self.read, self.threads = module.get_function(pattern), PATTERNS[pattern]
        self.stream_through = module.get_function("stream_through")
        self.table = cupy.arange(mib << 18, dtype=cupy.uint32) * cupy.uint32(2654435761)
        self.out = cupy.empty(2 * self.reader.sm_count * self.threads, dtype=cupy.uint32)
        self.streamed = cupy.zeros(NEIGHBOUR_MIB << 18, dtype=cupy.uint32)
        self.expected: Any = None
        self.ahead = 8  # Kernels of the neighbour.
        cupy.cuda.Device().synchronize()

    def _flood(self) -> tuple[Any, Any]:
        """Launches kernels of the neighbour, between two events."""
        u32, stream = self.cupy.uint32, self.neighbour.stream.cupy()
        begin, end = self.cupy.cuda.Event(), self.cupy.cuda.Event()
        begin.record(stream)
        with stream:
            for _ in range(self.ahead):
                half = u32(self.streamed.nbytes // 32)
                arguments = (self.streamed, half, u32(NEIGHBOUR_TIMES))
                self.stream_through((2 * self.neighbour.sm_count,), (THREADS,), arguments)
        end.record(stream)
        return begin, end

    def run(self, alone: bool) -> tuple[float, float]:
        """Returns the milliseconds of the table's kernel, and the neighbour's GB/s."""
        cupy = self.cupy
        while True:
            stream = self.reader.stream.cupy()
            begin, end = cupy.cuda.Event(), cupy.cuda.Event()
            flood = None if alone else self._flood()
            with stream:
                count = cupy.uint32(self.table.nbytes // 16)
                arguments = (self.table, count, cupy.uint32(READS), self.out)
                # The first launch loads the table into the cache.
                self.read((2 * self.reader.sm_count,), (self.threads,), arguments)
                begin.record(stream)
                self.read((2 * self.reader.sm_count,), (self.threads,), arguments)
                end.record(stream)
            end.synchronize()
            neighbour_ran = flood is None or not flood[1].done
            cupy.cuda.Device().synchronize()
            if self.expected is None:
                self.expected = self.out.copy()
            common.check(bool(self.expected.any()), "the table's kernel found nothing")
            common.check(bool((self.out == self.expected).all()), "the kernel read wrong values")
            took = cupy.cuda.get_elapsed_time(begin, end)
            if flood is None:
                return took, 0.0
            if neighbour_ran:
                moved = self.ahead * NEIGHBOUR_TIMES * self.streamed.nbytes
                return took, moved / cupy.cuda.get_elapsed_time(*flood) / 1e6
            self.ahead *= 2  # It ended before the table's kernel did.
            common.check(self.ahead < 1 << 14, "the neighbour never lasts as long as the table")

    def variant(self, cache: Cache, name: str) -> tuple[float, float]:
        """Runs with the settings of a row of the table, and resets them at the end."""
        reader, neighbour = self.reader.stream.native, self.neighbour.stream.native
        try:
            if name == "window":
                aside = cache.set_aside(min(self.table.nbytes, cache.most_set_aside))
                # As many lines of the table as fit into the part that is set aside.
                ratio = min(1.0, aside / self.table.nbytes)
                length = min(self.table.nbytes, cache.most_window)
                cache.window(reader, self.table.data.ptr, length, PERSISTING, ratio)
            elif name == "neighbour marked":
                length = min(self.streamed.nbytes, cache.most_window)
                cache.window(neighbour, self.streamed.data.ptr, length, STREAMING)
            return self.run(alone=name == "alone")
        finally:
            cache.reset(reader, neighbour)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--sms", type=common.positive, default=24, help="of the table's partition (24)")
    add("--mib", nargs="+", type=common.positive, default=[4, 8, 16, 24, 32],
        help="sizes of the table (4 8 16 24 32)")  # fmt: skip
    add("--pattern", choices=PATTERNS, default="walk", help="of the reads (walk)")
    add("--rounds", type=common.positive, default=10, help="of each row (10)")
    arguments = parser.parse_args()
    common.start()
    cupy = common.library("cupy")
    cache = Cache()
    print(f"L2 cache {cache.bytes >> 20} MiB, of which {cache.most_set_aside >> 10} KiB can be set "
          f"aside; windows of {cache.most_window >> 20} MiB at most")  # fmt: skip
    if cache.most_set_aside == 0:
        common.end("this GPU has no L2 persistence: it needs compute capability 8.0, and no MIG")
    with gcx.split([arguments.sms, None]) as parts:
        print(f"the table's partition has {parts[0].sm_count} SMs, the neighbour's "
              f"{parts[1].sm_count}")  # fmt: skip
        for mib in arguments.mib:
            bench = Bench(cupy, parts, arguments.pattern, mib)
            times: dict[str, list[tuple[float, float]]] = {name: [] for name in VARIANTS}
            for _ in range(arguments.rounds):
                for name in VARIANTS:  # In turns: a GPU's clock drifts.
                    times[name].append(bench.variant(cache, name))
            medians = {name: tuple(map(statistics.median, zip(*rows)))
                       for name, rows in times.items()}  # fmt: skip
            print(f"{arguments.pattern}, a table of {mib} MiB; medians:")
            common.table(
                ("", "ms", "neighbour, GB/s"),
                [(name, f"{took:.2f}", f"{rate:.0f}") for name, (took, rate) in medians.items()],
            )
            gain = medians["next to the neighbour"][0] / medians["window"][0]
            print(f"  with the window it is {gain:.2f} times as fast", flush=True)


if __name__ == "__main__":
    common.run(main)

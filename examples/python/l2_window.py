"""A table that stays in the L2 cache while a neighbour streams through memory.

Partitions share the L2 cache, so the neighbour evicts the table. An access policy window on the
partition's stream tells the cache to keep the table, in a part that is set aside. It needs no
function of gcx: the native stream is enough.

Two kernels read the table: one walks through it, each read determining the next; the other reads as
much as possible at once. Each runs next to the neighbour without a window, with it, with it and
nothing set aside, and with the neighbour's data marked as streaming. Each round checks the results,
and that the neighbour ran all the time.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import common
import gcx

SOURCE = """
// Both bypass the L1 cache.
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

# CUDA's constants, which only cuda.bindings has in Python.
NORMAL, STREAMING, PERSISTING = 0, 1, 2  # CUaccessProperty
_WINDOW_ATTRIBUTE = 1  # CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW
_SET_ASIDE = 6  # CU_LIMIT_PERSISTING_L2_CACHE_SIZE
_L2_BYTES, _MOST_SET_ASIDE, _MOST_WINDOW = 38, 108, 109  # CU_DEVICE_ATTRIBUTE_...


class _Window(ctypes.Structure):
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
    """CUDA's controls of a device's L2 cache."""

    def __init__(self, device: int = 0) -> None:
        self._driver = ctypes.CDLL(gcx.driver_info().library)
        self._device = device

    def _call(self, name: str, *arguments: Any) -> None:
        result = getattr(self._driver, name)(*arguments)
        if result != 0:
            word = ctypes.c_char_p()
            self._driver.cuGetErrorName(result, ctypes.byref(word))
            raise RuntimeError(f"{name}: {(word.value or b'an unknown error').decode()}")

    def _attribute(self, number: int) -> int:
        found = ctypes.c_int()
        self._call("cuDeviceGetAttribute", ctypes.byref(found), number, self._device)
        return found.value

    @property
    def bytes(self) -> int:
        return self._attribute(_L2_BYTES)

    @property
    def most_set_aside(self) -> int:
        return self._attribute(_MOST_SET_ASIDE)

    @property
    def most_window(self) -> int:
        return self._attribute(_MOST_WINDOW)

    def set_aside(self, size: int) -> int:
        """Sets the limit of the current context; returns the actual one."""
        self._call("cuCtxSetLimit", _SET_ASIDE, ctypes.c_size_t(size))
        return self.is_set_aside()

    def is_set_aside(self) -> int:
        """Returns the limit of the current context."""
        found = ctypes.c_size_t()
        self._call("cuCtxGetLimit", ctypes.byref(found), _SET_ASIDE)
        return found.value

    def reset(self) -> None:
        """Makes all persisting lines normal, for all contexts."""
        self._call("cuCtxResetPersistingL2Cache")

    def window(
        self, stream: int, base: int, size: int, hit: int, *, ratio: float = 1.0, miss: int = NORMAL
    ) -> None:
        """Sets how later launches in the stream access these bytes: the ratio of the lines as hit,
        the others as miss. A size of 0 removes the window."""
        value = _Window(base, size, ratio, hit, miss)
        self._call(
            "cuStreamSetAttribute",
            ctypes.c_void_p(stream),
            ctypes.c_int(_WINDOW_ATTRIBUTE),
            ctypes.byref(value),
        )

    def window_of(self, stream: int) -> tuple[int, int, float, int, int]:
        """Returns base, size, ratio, hit and miss."""
        value = _Window()
        self._call(
            "cuStreamGetAttribute",
            ctypes.c_void_p(stream),
            ctypes.c_int(_WINDOW_ATTRIBUTE),
            ctypes.byref(value),
        )
        return value.base or 0, value.bytes, value.hit_ratio, value.hit, value.miss


class Arm(NamedTuple):
    """The settings of a row of the table."""

    name: str
    neighbour: bool = True
    window: bool = False
    set_aside: bool = False
    marked: bool = False  # Marks the neighbour's data as streaming.


ARMS = (
    Arm("alone", neighbour=False),
    Arm("beside"),
    Arm("window", window=True, set_aside=True),
    Arm("window, nothing set aside", window=True),
    Arm("neighbour marked", marked=True),
    Arm("window, neighbour marked", window=True, set_aside=True, marked=True),
)


class Bench:
    """A table and a neighbour, each on its own partition."""

    def __init__(self, cupy: Any, cache: Cache, parts: gcx.Partitions) -> None:
        self.cupy, self.cache = cupy, cache
        self.reader, self.neighbour = parts
        module = cupy.RawModule(code=SOURCE)
        self.readers = {name: module.get_function(name) for name in PATTERNS}
        self.stream_through = module.get_function("stream_through")
        self.streamed = cupy.zeros(NEIGHBOUR_MIB << 18, dtype=cupy.uint32)
        self.ahead = 8

    def fill(self, mib: int, pattern: str) -> None:
        self.read, self.threads = self.readers[pattern], PATTERNS[pattern]
        blocks = 2 * self.reader.sm_count
        self.out = self.cupy.empty(blocks * self.threads, dtype=self.cupy.uint32)
        numbers = self.cupy.arange(mib << 18, dtype=self.cupy.uint32)
        self.table = numbers * self.cupy.uint32(2654435761)
        self.expected: Any = None
        self.cupy.cuda.Device().synchronize()

    def _flood(self) -> tuple[Any, Any]:
        """Launches kernels of the neighbour, between two events."""
        u32 = self.cupy.uint32
        stream = self.neighbour.stream.cupy()
        begin, end = self.cupy.cuda.Event(), self.cupy.cuda.Event()
        begin.record(stream)
        with stream:
            for _ in range(self.ahead):
                half = u32(self.streamed.nbytes // 32)
                arguments = (self.streamed, half, u32(NEIGHBOUR_TIMES))
                self.stream_through((2 * self.neighbour.sm_count,), (THREADS,), arguments)
        end.record(stream)
        return begin, end

    def round(self, arm: Arm) -> tuple[float, float]:
        """Returns the milliseconds of the table's kernel, and the neighbour's GB/s."""
        cupy = self.cupy
        u32 = cupy.uint32
        while True:
            stream = self.reader.stream.cupy()
            begin, end = cupy.cuda.Event(), cupy.cuda.Event()
            flood = self._flood() if arm.neighbour else None
            with stream:
                arguments = (self.table, u32(self.table.nbytes // 16), u32(READS), self.out)
                # The first launch loads the table into the cache.
                self.read((2 * self.reader.sm_count,), (self.threads,), arguments)
                begin.record(stream)
                self.read((2 * self.reader.sm_count,), (self.threads,), arguments)
                end.record(stream)
            end.synchronize()
            ran_on = flood is None or not flood[1].done
            cupy.cuda.Device().synchronize()
            self._check()
            took = cupy.cuda.get_elapsed_time(begin, end)
            if flood is None:
                return took, 0.0
            if ran_on:
                moved = self.ahead * NEIGHBOUR_TIMES * self.streamed.nbytes
                return took, moved / cupy.cuda.get_elapsed_time(*flood) / 1e6
            self.ahead *= 2  # It ended before the table's kernel did.
            common.check(self.ahead < 1 << 14, "the neighbour never lasts as long as the table")

    def _check(self) -> None:
        if self.expected is None:
            self.expected = self.out.copy()
            common.check(bool(self.expected.any()), "the table's kernel found nothing")
        common.check(bool((self.out == self.expected).all()), "the table's kernel read wrongly")

    @contextmanager
    def steered(self, arm: Arm) -> Iterator[None]:
        """Applies the arm's settings, and resets them at the end."""
        cache = self.cache
        reader, neighbour = self.reader.stream.native, self.neighbour.stream.native
        try:
            aside = min(self.table.nbytes, cache.most_set_aside) if arm.set_aside else 0
            aside = cache.set_aside(aside)
            if arm.window:
                # As many lines of the table as fit into the part that is set aside.
                ratio = min(1.0, aside / self.table.nbytes) if arm.set_aside else 1.0
                length = min(self.table.nbytes, cache.most_window)
                cache.window(reader, self.table.data.ptr, length, PERSISTING, ratio=ratio)
            if arm.marked:
                length = min(self.streamed.nbytes, cache.most_window)
                cache.window(neighbour, self.streamed.data.ptr, length, STREAMING)
            yield
        finally:
            for stream in (reader, neighbour):
                cache.window(stream, 0, 0, NORMAL)
            cache.reset()
            cache.set_aside(0)


def limit_by_context(cache: Cache, parts: gcx.Partitions) -> str:
    """Describes the limit of the partitions' contexts after it was set in the current one."""

    def limit() -> str:
        try:
            return f"{cache.is_set_aside() >> 10} KiB"
        except RuntimeError as error:
            return str(error)

    cache.set_aside(cache.most_set_aside)
    mine, others = limit(), []
    for part in parts:
        with part.context.make_current():
            others.append(limit())
    cache.set_aside(0)
    return f"set aside by the primary context {mine}; in partitions' {' and '.join(others)}"


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--sms", type=common.positive, default=24, help="of the table's partition (24)")
    add("--mib", nargs="+", type=common.positive, default=[4, 8, 16, 24, 32],
        help="sizes of the table (4 8 16 24 32)")  # fmt: skip
    add("--patterns", nargs="+", choices=PATTERNS, default=list(PATTERNS),
        help="kernels that read it (both)")  # fmt: skip
    add("--rounds", type=common.positive, default=10, help="of each row (10)")
    add("--json", type=common.new_file, metavar="FILE", help="write what was measured")
    return parser.parse_args()


def main() -> None:
    arguments = parse()
    device = common.start()
    cupy = common.library("cupy")
    cache = Cache()
    print(f"L2 cache {cache.bytes >> 20} MiB, of which {cache.most_set_aside >> 10} KiB can be set "
          f"aside; windows of {cache.most_window >> 20} MiB at most")  # fmt: skip
    if cache.most_set_aside == 0:
        common.end("this GPU has no L2 persistence: it needs compute capability 8.0, and no MIG")
    results: dict[str, Any] = {"device": device.name, "patterns": {}}
    try:
        measure(arguments, cupy, cache, results)
    except gcx.Error:
        raise
    except RuntimeError as error:  # CUDA's, and CuPy's.
        common.end(f"FAILED: {error}", status=1)
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(results) + "\n", encoding="utf-8")
        print(f"wrote {arguments.json}")


def measure(arguments: argparse.Namespace, cupy: Any, cache: Cache, results: Any) -> None:
    with gcx.split([arguments.sms, None]) as parts:
        bench = Bench(cupy, cache, parts)
        print(f"the table's partition has {parts[0].sm_count} SMs, the neighbour's "
              f"{parts[1].sm_count}; {limit_by_context(cache, parts)}", flush=True)  # fmt: skip
        for pattern in arguments.patterns:
            sizes = results["patterns"][pattern] = {}
            for mib in arguments.mib:
                bench.fill(mib, pattern)
                sizes[mib] = rounds(bench, arguments.rounds)
                show(f"{pattern}, a table of {mib} MiB", bench.out.size, sizes[mib])


Times = dict[str, list[tuple[float, float]]]  # By the arm's name, as round gives them.


def rounds(bench: Bench, count: int) -> Times:
    times: Times = {arm.name: [] for arm in ARMS}
    for _ in range(count):
        for arm in ARMS:
            with bench.steered(arm):
                times[arm.name].append(bench.round(arm))
    return times


def show(what: str, threads: int, times: Times) -> None:
    medians = {
        name: tuple(statistics.median(column) for column in zip(*rounds))
        for name, rounds in times.items()
    }
    beside = medians["beside"][0]
    print(f"{what}; medians:")
    common.table(
        ("", "ms", "reads, GB/s", "as fast as beside", "neighbour, GB/s"),
        [
            (
                name,
                f"{took:.2f}",
                f"{16 * READS * threads / took / 1e6:.0f}",
                f"{beside / took:.2f}",
                f"{rate:.0f}" if rate else "-",
            )
            for name, (took, rate) in medians.items()
        ],
    )
    gain = beside / medians["window"][0]
    print(f"  with the window it is {gain:.2f} times as fast", flush=True)


if __name__ == "__main__":
    common.run(main)

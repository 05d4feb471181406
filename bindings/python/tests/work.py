"""Submits work to the simulated driver by its own functions, and reads its records."""

from __future__ import annotations

import ctypes
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gcx

PTX = b"""
.version 6.3
.target sm_70
.address_size 64
.visible .entry gcx_spin(.param .u64 gcx_spin_param_0)
{ ret; }
.visible .entry gcx_probe(.param .u64 counts, .param .u32 max_sms, .param .u32 spin_ns)
{ ret; }
"""


class Run(ctypes.Structure):
    """A gcx_sim_run."""

    _fields_ = (
        ("begin_ns", ctypes.c_uint64),
        ("end_ns", ctypes.c_uint64),
        ("stream", ctypes.c_uint64),
        ("launch", ctypes.c_uint64),
        ("words", ctypes.c_uint64 * 6),
        ("sm_count", ctypes.c_uint32),
        ("kind", ctypes.c_int32),
        ("kernel", ctypes.c_char * 64),
    )

    @property
    def sms(self) -> tuple[int, ...]:
        """The SMs that it ran on."""
        return tuple(sm for sm in range(384) if self.words[sm // 64] >> sm % 64 & 1)


class Alive(ctypes.Structure):
    """Objects of the simulated driver: gcx_sim_counts."""

    _fields_ = [  # noqa: RUF012
        (name, ctypes.c_uint64)
        for name in (
            *("primary_retains", "contexts", "green_contexts", "streams", "events", "modules"),
            *("graphs", "allocations", "allocated_bytes", "device_bytes_used"),
            *("device_bytes_lost", "descriptors", "calls", "clock_ns"),
        )
    ]


def alive() -> Alive:
    counts = Alive()
    ctypes.CDLL(gcx.driver_info().library).gcx_sim_get_counts(ctypes.byref(counts))
    return counts


def run_program(
    *words: str | Path, timeout: float | None = 300, **how: Any
) -> subprocess.CompletedProcess[str]:
    """Runs a program to its end, without input."""
    how |= {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True, "check": False}
    return subprocess.run(words, timeout=timeout, **how)


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def waiting() -> list[str]:
    """The names of the requests for leases that wait, in order of arrival."""
    return [lease.name for lease in gcx.leases() if lease.waiting]


class Captured:
    """A fake torch.cuda.CUDAGraph."""

    def __init__(self, work: Work, handle: int) -> None:
        self.work, self.handle = work, handle

    def raw_cuda_graph(self) -> int:
        return self.handle

    def destroy(self) -> None:
        self.work.call("cuGraphDestroy", ctypes.c_void_p(self.handle))


class Work:
    """Work for streams of the simulated driver."""

    def __init__(self) -> None:
        self.driver = ctypes.CDLL(gcx.driver_info().library)
        self.primary, self.module, self.spinner, self.prober, self.plain = (
            ctypes.c_void_p() for _ in range(5)
        )
        self.counts = ctypes.c_uint64()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(self.primary), 0)
        self.call("cuCtxPushCurrent_v2", self.primary)
        self.call("cuModuleLoadData", ctypes.byref(self.module), PTX)
        self.call("cuModuleGetFunction", ctypes.byref(self.spinner), self.module, b"gcx_spin")
        self.call("cuModuleGetFunction", ctypes.byref(self.prober), self.module, b"gcx_probe")
        self.call("cuMemAlloc_v2", ctypes.byref(self.counts), 4096)
        self.call("cuStreamCreate", ctypes.byref(self.plain), 1)
        self.call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))

    def call(self, name: str, *arguments: Any) -> None:
        assert getattr(self.driver, name)(*arguments) == 0, name

    def spin(self, stream: gcx.Stream | int, milliseconds: int) -> None:
        """Launches a kernel that takes that long."""
        nanoseconds = ctypes.c_uint64(milliseconds * 1_000_000)
        arguments = (ctypes.c_void_p * 1)(ctypes.addressof(nanoseconds))
        native = stream if isinstance(stream, int) else stream.native
        shape = (1, 1, 1, 1, 1, 1, 0)
        self.call("cuLaunchKernel", self.spinner, *shape, ctypes.c_void_p(native), arguments, None)

    def waves(self, blocks: int, spin_us: int = 500) -> Callable[[gcx.Stream], None]:
        """Returns a work for gcx.tune: a kernel of ceil(blocks / (2 * SMs)) times a spin."""

        def launch(stream: gcx.Stream) -> None:
            words = self.counts, ctypes.c_uint32(1024), ctypes.c_uint32(spin_us * 1000)
            arguments = (ctypes.c_void_p * 3)(*map(ctypes.addressof, words))
            shape = (blocks, 1, 1, 32, 1, 1, 0)
            native = ctypes.c_void_p(stream.native)
            self.call("cuLaunchKernel", self.prober, *shape, native, arguments, None)

        return launch

    def capture(self, *streams: gcx.Stream, cooperative: int = 0) -> Captured:
        """Captures a kernel of 1 ms in each stream, forked off the first one, or in a stream
        without a partition; or a cooperative kernel of that many blocks."""
        graph, event = ctypes.c_void_p(), ctypes.c_void_p()
        natives = [stream.native for stream in streams] or [self.plain.value or 0]
        origin = ctypes.c_void_p(natives[0])
        self.call("cuCtxPushCurrent_v2", self.primary)
        self.call("cuEventCreate", ctypes.byref(event), 2)
        self.call("cuStreamBeginCapture_v2", origin, 2)
        for native in natives[1:]:
            self.call("cuEventRecord", event, origin)
            self.call("cuStreamWaitEvent", ctypes.c_void_p(native), event, 0)
        for native in natives:
            if cooperative:
                nanoseconds = ctypes.c_uint64(1000)
                arguments = (ctypes.c_void_p * 1)(ctypes.addressof(nanoseconds))
                shape = (cooperative, 1, 1, 1, 1, 1, 0)
                stream = ctypes.c_void_p(native)
                self.call("cuLaunchCooperativeKernel", self.spinner, *shape, stream, arguments)
            else:
                self.spin(native, 1)
        for native in natives[1:]:
            self.call("cuEventRecord", event, ctypes.c_void_p(native))
            self.call("cuStreamWaitEvent", origin, event, 0)
        self.call("cuStreamEndCapture", origin, ctypes.byref(graph))
        self.call("cuEventDestroy_v2", event)
        self.call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))
        return Captured(self, graph.value or 0)

    def note(self) -> None:
        """Starts recording kernels."""
        self.driver.gcx_sim_note_runs(ctypes.c_size_t(1024))

    def runs(self) -> list[Run]:
        """Returns the recorded kernels of capture and spin."""
        self.driver.gcx_sim_get_runs.restype = ctypes.c_size_t
        count = self.driver.gcx_sim_get_runs(None, ctypes.c_size_t(0))
        found = (Run * count)()
        self.driver.gcx_sim_get_runs(found, ctypes.c_size_t(count))
        return [run for run in found if run.kernel == b"gcx_spin"]

    def close(self) -> None:
        self.call("cuStreamDestroy_v2", self.plain)
        self.call("cuCtxPushCurrent_v2", self.primary)
        self.call("cuMemFree_v2", self.counts)
        self.call("cuModuleUnload", self.module)
        self.call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))
        self.call("cuDevicePrimaryCtxRelease_v2", 0)

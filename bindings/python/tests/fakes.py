"""A fake PyTorch whose streams are those of the simulated driver, and helpers for tests with it."""

from __future__ import annotations

import ctypes
import gc
import sys
import threading
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import gcx
from work import alive  # type: ignore[import-not-found]


class FakeEvent:
    """A torch.cuda.Event."""

    def __init__(self) -> None:
        self.stream: FakeStream | None = None
        self.native: gcx.Event | None = None

    def record(self, stream: FakeStream) -> None:
        self.stream = stream
        if stream.cuda_stream not in (0, 1, 2):
            with gcx.Stream.from_native(stream) as native:
                self.native = native.record()

    def query(self) -> bool:
        return self.native is None or self.native.query()

    def synchronize(self) -> None:
        if self.native is not None:
            self.native.synchronize()


class FakeStream:
    """A torch.cuda.ExternalStream. It takes attributes, but no weak references."""

    __slots__ = ("__dict__",)

    def __init__(self, stream_ptr: int, device: Any = None) -> None:
        self.cuda_stream = stream_ptr
        self.device = device
        self.waited: list[FakeEvent] = []

    def synchronize(self) -> None:
        with gcx.Stream.from_native(self) as stream:
            stream.synchronize()

    def record_event(self) -> FakeEvent:
        event = FakeEvent()
        event.record(self)
        return event

    def wait_event(self, event: FakeEvent) -> None:
        assert event.stream is not None
        self.waited.append(event)
        events_waited_for.append((self.cuda_stream, event))

    def wait_stream(self, stream: FakeStream) -> None:
        self.wait_event(stream.record_event())


events_waited_for: list[tuple[int, FakeEvent]] = []


class PlainStream(FakeStream):
    """A torch.cuda.Stream of the primary context."""

    def __init__(self, device: int, priority: int = 0) -> None:
        native, self.driver = ctypes.c_void_p(), ctypes.CDLL(gcx.driver_info().library)
        context = ctypes.c_void_p()
        assert self.driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device) == 0
        assert self.driver.cuCtxPushCurrent_v2(context) == 0
        assert self.driver.cuStreamCreateWithPriority(ctypes.byref(native), 1, priority) == 0
        assert self.driver.cuCtxPopCurrent_v2(ctypes.byref(context)) == 0
        super().__init__(native.value or 0, device)

    def __del__(self) -> None:
        self.driver.cuStreamDestroy_v2(ctypes.c_void_p(self.cuda_stream))
        self.driver.cuDevicePrimaryCtxRelease_v2(self.device)


class FakeDevice:
    """A torch.device."""

    def __init__(self, name: str) -> None:
        self.type, _, number = name.partition(":")
        self.index = int(number) if number else None


class FakeTorch(types.ModuleType):
    """PyTorch with two devices: each thread has a current device, and a current stream on each.

    The current device follows CUDA's stack of contexts, as PyTorch's does.
    """

    device = FakeDevice

    def __init__(self, device: int = 0) -> None:
        super().__init__("torch")
        self.first_device = device
        self.state = threading.local()
        self.devices_set = 0  # Each time the primary context becomes the current one.
        self.version = types.SimpleNamespace(cuda="13.0")
        self.cuda = types.SimpleNamespace(
            ExternalStream=FakeStream,
            Stream=PlainStream,
            Event=FakeEvent,
            current_device=self.current_device,
            set_device=self.set_device,
            current_stream=self.current_stream,
            set_stream=self.set_stream,
            stream=self.stream,
            synchronize=lambda: None,
            is_available=lambda: True,
            current_blas_handle=lambda: 1000 * (1 + self.mine()[0]) + threading.get_ident() % 1000,
        )

    def mine(self) -> Any:
        """This thread's current device, and its current stream on each device."""
        if not hasattr(self.state, "mine"):
            self.state.mine = [self.first_device, [FakeStream(0, 0), FakeStream(0, 1)]]
        return self.state.mine

    def current_device(self) -> int:
        pushed = None
        with suppress(gcx.Error):  # There may be no driver.
            pushed = gcx.current_context()
        return int(self.mine()[0]) if pushed is None else pushed.device

    def set_device(self, device: int) -> None:
        assert device in (0, 1)
        self.devices_set += 1
        self.mine()[0] = device

    def current_stream(self, device: int | None = None) -> Any:
        return self.mine()[1][self.current_device() if device is None else device]

    def set_stream(self, stream: FakeStream) -> None:
        device = stream.device or 0
        if device != self.current_device():
            assert gcx.current_context() is None, "this would replace the context on top"
            self.mine()[0] = device
        self.mine()[1][device] = stream

    @contextmanager
    def stream(self, stream: FakeStream) -> Iterator[None]:
        before = self.current_stream()
        self.set_stream(stream)
        try:
            yield
        finally:
            self.set_stream(before)

    def seen(self) -> tuple[int, int, int]:
        """The current device, and the current stream of each."""
        device, streams = self.mine()
        return device, streams[0].cuda_stream, streams[1].cuda_stream


class FakeCublas:
    """libcublas, with a target for each handle."""

    def __init__(self) -> None:
        self.targets: dict[int, int] = {}
        self.status = 0

    def cublasGetSmCountTarget(self, handle: ctypes.c_void_p, found: Any) -> int:
        found._obj.value = self.targets.get(handle.value or 0, 0)
        return self.status

    def cublasSetSmCountTarget(self, handle: ctypes.c_void_p, target: ctypes.c_int) -> int:
        if self.status == 0:
            self.targets[handle.value or 0] = target.value
        return self.status


def sms_of(stream: FakeStream) -> gcx.SMResource:
    with gcx.Stream.from_native(stream) as mine:
        return mine.resources.sm


def counts_of(*streams: FakeStream) -> list[int]:
    return [sms_of(stream).sm_count for stream in streams]


def assert_rounds_leave_nothing(turn: Callable[[int], None]) -> None:
    """Checks that 1,000 turns leave as much as a few, and create no contexts."""

    def objects() -> list[int]:
        gc.collect()
        counts = alive()
        names = ("contexts", "green_contexts", "streams", "events", "graphs", "device_bytes_used")
        return [getattr(counts, name) for name in (*names, "device_bytes_lost")]

    for number in range(8):
        turn(number)
    before, misses, blocks = objects(), gcx.cache_stats().misses, sys.getallocatedblocks()
    for number in range(1000):
        turn(number)
    assert objects() == before
    assert gcx.cache_stats().misses == misses
    assert sys.getallocatedblocks() < blocks + 500


def in_process(script: Callable[..., str], code: str, driver: str) -> str:
    """Returns what the code prints in a process with that driver and the fake PyTorch."""
    begin = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from engines import *
from fakes import *
from gcx.compat import flashinfer, sglang, tensorrt_llm
from gcx.compat.torch import GreenContext
torch = sys.modules["torch"] = FakeTorch()
"""
    return script(begin + code, driver)


def failing(function: str, call: Callable[[], object]) -> str:
    """Returns the error of the call if the driver has no memory at its second call of a function,
    after checking that nothing is left."""
    sim = ctypes.CDLL(gcx.driver_info().library)
    gcx.set_cache_limit(0)
    before = alive()
    gcx.set_cache_limit(64)
    sim.gcx_sim_fail(function.encode(), ctypes.c_uint64(2), 2)
    try:
        call()
    except RuntimeError as error:
        words = str(error)
    else:
        raise AssertionError("no error")
    gc.collect()
    assert gcx.cache_stats().in_use == 0
    gcx.set_cache_limit(0)
    for name in ("contexts", "green_contexts", "streams"):
        assert getattr(alive(), name) == getattr(before, name), name
    return words

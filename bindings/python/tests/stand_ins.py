"""A stand-in for PyTorch, whose streams are those of the simulated driver, and what tests with it
share."""

from __future__ import annotations

import ctypes
import gc
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gcx
from work import alive  # type: ignore[import-not-found]


class FakeStream:
    """A torch.cuda.ExternalStream. It takes attributes, but no weak references."""

    __slots__ = ("__dict__",)

    def __init__(self, stream_ptr: int, device: Any = None) -> None:
        self.cuda_stream = stream_ptr
        self.device = device

    def synchronize(self) -> None:
        with gcx.Stream.from_native(self) as stream:
            stream.synchronize()

    def record_event(self) -> gcx.Event:
        with gcx.Stream.from_native(self) as stream:
            return stream.record()


class PlainStream(FakeStream):
    """A torch.cuda.Stream, of the primary context."""

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


class FakeTorch(types.ModuleType):
    """PyTorch, as far as the engines' modules use it."""

    def __init__(self) -> None:
        super().__init__("torch")
        self.default = self.current = FakeStream(0)
        self.device = 0
        self.cuda = types.SimpleNamespace(
            ExternalStream=FakeStream,
            Stream=PlainStream,
            current_device=lambda: self.device,
            get_device_capability=lambda device: (9, 0),
            current_stream=lambda: self.current,
            stream=self._stream,
        )

    @contextmanager
    def _stream(self, stream: FakeStream) -> Iterator[None]:
        before, self.current = self.current, stream
        try:
            yield
        finally:
            self.current = before


def sms_of(stream: FakeStream) -> gcx.SMResource:
    with gcx.Stream.from_native(stream) as mine:
        return mine.resources.sm


def counts_of(*streams: FakeStream) -> list[int]:
    return [sms_of(stream).sm_count for stream in streams]


def flat(turn: Callable[[int], None]) -> None:
    """1,000 turns leave as much as a few, and make no new contexts."""

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


def in_process(script: Any, code: str, driver: str) -> str:
    """What the code prints in a process that has that driver, with the stand-in."""
    begin = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from engines import *
from stand_ins import *
from gcx.compat import sglang, tensorrt_llm
torch = sys.modules["torch"] = FakeTorch()
"""
    printed: str = script(begin + code, driver)
    return printed


def failing(function: str, call: Callable[[], object]) -> str:
    """The words of the call's error when the driver has no memory at its second call of a function.
    Nothing may be left."""
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

"""Streams of other libraries, in both directions, and the interfaces of other packages.

With stand-ins for the libraries."""

from __future__ import annotations

import ctypes
import gc
import sys
import types
from collections.abc import Iterator
from typing import Any

import gcx
import pytest
from gcx.compat import flashinfer
from gcx.compat.torch import GreenContext


class FakeStream:
    """A torch stream, as far as gcx looks at one. It takes attributes, but no weak references:
    PyTorch's own leave those dangling."""

    __slots__ = ("__dict__",)

    def __init__(self, stream_ptr: int, device: Any = None) -> None:
        self.cuda_stream = stream_ptr
        self.device = device
        self.waited: list[FakeEvent] = []

    def wait_event(self, event: FakeEvent) -> None:
        self.waited.append(event)
        everything_waited_for.append((self.cuda_stream, event))

    def record_event(self) -> FakeEvent:
        event = FakeEvent()
        event.record(self)
        return event


everything_waited_for: list[tuple[int, FakeEvent]] = []


class FakeEvent:
    """A torch event."""

    def __init__(self) -> None:
        self.stream: FakeStream | None = None

    def record(self, stream: FakeStream) -> None:
        self.stream = stream


class FakeDevice:
    """A torch.device."""

    def __init__(self, name: str) -> None:
        self.type, _, number = name.partition(":")
        self.index = int(number) if number else None


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> Iterator[types.SimpleNamespace]:
    """A stand-in for PyTorch with a current stream."""
    state = types.SimpleNamespace(current=FakeStream(0))
    cuda = types.SimpleNamespace(
        ExternalStream=FakeStream,
        Event=FakeEvent,
        current_stream=lambda device=None: state.current,
        set_stream=lambda stream: setattr(state, "current", stream),
        current_device=lambda: 0,
    )
    module = types.SimpleNamespace(cuda=cuda, device=FakeDevice, state=state)
    monkeypatch.setitem(sys.modules, "torch", module)
    yield module
    state.current = None
    everything_waited_for.clear()


@pytest.fixture
def part() -> Iterator[gcx.Partition]:
    with gcx.split([24])[0] as part:
        yield part


def test_the_protocol_of_streams(part: gcx.Partition) -> None:
    version, handle = part.stream.__cuda_stream__()
    assert (version, handle) == (0, part.stream.native)
    assert handle != 0
    assert (part.stream.stream_id, part.stream.device_index, part.stream.device_type) == (
        handle,
        0,
        1,
    )


def test_waiting_for_the_default_stream(part: gcx.Partition, torch: Any) -> None:
    """PyTorch's current stream is usually that one, which has no context of its own."""
    default = torch.cuda.current_stream()
    assert default.cuda_stream == 0
    part.stream.wait(default)
    ((who, event),) = everything_waited_for
    assert (who, event.stream) == (part.stream.native, default)
    for wait in (part.stream.wait, part.context.wait):
        with pytest.raises(gcx.InvalidValueError):
            wait(types.SimpleNamespace(ptr=0))


class Protocol:
    """What cuda.core makes, and what a property would be."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def __cuda_stream__(self) -> Any:
        return self.answer


def test_streams_of_other_libraries(part: gcx.Partition) -> None:
    native = part.stream.native
    as_property = types.SimpleNamespace(__cuda_stream__=(0, native))
    others = [
        native,
        part.stream,
        Protocol((0, native)),
        as_property,
        FakeStream(native),
        types.SimpleNamespace(ptr=native),
        types.SimpleNamespace(handle=ctypes.c_void_p(native)),
        types.SimpleNamespace(handle=native),
    ]
    for other in others:
        with gcx.Stream.from_native(other) as stream:
            assert stream.native == native
            assert stream.sm_count == 24
            assert stream.resources.sm == part.resource
            stream.synchronize()
        part.stream.wait(other)
        part.context.wait(other)
    part.stream.synchronize()


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        ("stream", TypeError),
        (1.5, TypeError),
        (True, TypeError),
        (None, TypeError),
        (object(), TypeError),
        (Protocol(7), TypeError),
        (Protocol((1, 7)), TypeError),
        (-1, ValueError),
        (2**64, ValueError),
        (0, gcx.InvalidValueError),
        (FakeStream(0), gcx.InvalidValueError),
        (types.SimpleNamespace(handle=ctypes.c_void_p(None)), gcx.InvalidValueError),
    ],
)
def test_row_8_what_is_no_stream(bad: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        gcx.Stream.from_native(bad)


def test_a_foreign_stream_is_kept_alive(part: gcx.Partition) -> None:
    owner = FakeStream(part.stream.native)
    count = sys.getrefcount(owner)
    stream = gcx.Stream.from_native(owner)
    assert sys.getrefcount(owner) == count + 1
    stream.close()
    del stream
    assert sys.getrefcount(owner) == count


def test_conveniences_import_lazily(
    part: gcx.Partition, torch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = part.stream.torch()
    assert theirs.cuda_stream == part.stream.native
    assert theirs.device == 0
    assert theirs._gcx_stream is part.stream
    made: list[tuple[Any, ...]] = []

    class External:
        __slots__ = ()

        def __init__(self, *arguments: Any) -> None:
            made.append(arguments)

    old = types.SimpleNamespace(ExternalStream=External, Stream=External)
    cupy = types.SimpleNamespace(cuda=old)
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    numba = types.SimpleNamespace(cuda=types.SimpleNamespace(external_stream=External))
    monkeypatch.setitem(sys.modules, "numba", numba)
    part.stream.cupy()
    part.stream.numba()
    assert made == [(part.stream.native, 0), (part.stream.native,)]
    cupy.cuda = types.SimpleNamespace(Stream=types.SimpleNamespace(from_external=External))
    part.stream.cupy()
    assert made[2:] == [(part.stream,)]
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(ImportError):
        part.stream.cupy()


# gcx.compat.flashinfer


def test_row_1_equal_groups_and_the_remainder(torch: Any) -> None:
    device = torch.device("cuda:0")
    streams, resources = flashinfer.split_device_green_ctx(device, 2, 16)
    assert [resource.sm.smCount for resource in resources] == [16, 16, 100]
    assert [gcx.Stream.from_native(stream).sm_count for stream in streams] == [16, 16, 100]
    assert resources[0].sm.minSmPartitionSize == 8
    assert resources[0].sm.smCoscheduledAlignment == 8
    assert repr(resources[0]) == "sm : smCount : 16"
    assert resources[0].resource.overlap(resources[1].resource) == 0


@pytest.mark.parametrize(
    ("asked", "given"),
    [
        ([8, 16, 24], [8, 16, 24, 84]),
        ([7], [8, 124]),
        ([10], [16, 116]),
        ([17], [24, 108]),
        ([108, 24], [108, 24]),
    ],
)
def test_row_1_unequal_groups(torch: Any, asked: list[int], given: list[int]) -> None:
    streams, resources = flashinfer.split_device_green_ctx_by_sm_count(torch.device("cuda"), asked)
    assert [resource.sm.smCount for resource in resources] == given
    assert len(streams) == len(given)
    assert len({stream.cuda_stream for stream in streams}) == len(given)


def test_row_1_exceptions(torch: Any) -> None:
    device = torch.device("cuda:0")
    by_count = flashinfer.split_device_green_ctx_by_sm_count
    for bad in ([], [0], [8, -1]):
        with pytest.raises(ValueError, match=r"sm_counts"):
            by_count(device, bad)
    with pytest.raises(TypeError):
        by_count(device, [8.0])  # type: ignore[list-item]
    with pytest.raises(RuntimeError, match=r"\[120, 17\].*\[120, 24\], 144 together.* 132"):
        by_count(device, [120, 17])
    with pytest.raises(RuntimeError, match=r"code=915\(CUDA_ERROR_INVALID_RESOURCE_CONFIG"):
        flashinfer.split_device_green_ctx(device, 3, 64)
    with pytest.raises(RuntimeError, match="132"):
        flashinfer.split_device_green_ctx(device, 10**9, 8)
    with pytest.raises(ValueError, match="num_groups"):
        flashinfer.split_device_green_ctx(device, 0, 8)
    with pytest.raises(RuntimeError, match="CUDA_ERROR_INVALID_DEVICE"):
        by_count(torch.device("cuda:5"), [8])
    with pytest.raises(RuntimeError, match="locality domains"):
        flashinfer.split_device_green_ctx_by_locality_domain(device)


def test_row_1_streams_are_reused(torch: Any) -> None:
    device = torch.device("cuda:0")
    first, _ = flashinfer.split_device_green_ctx(device, 1, 24)
    second, _ = flashinfer.split_device_green_ctx(device, 1, 24)
    assert first[0].cuda_stream != second[0].cuda_stream
    natives = {stream.cuda_stream for stream in first}
    del first
    gc.collect()
    third, _ = flashinfer.split_device_green_ctx(device, 1, 24)
    natives |= {stream.cuda_stream for stream in (*second, *third)}
    del second, third
    gc.collect()
    misses = gcx.cache_stats().misses
    for _ in range(20):
        again, _ = flashinfer.split_device_green_ctx(device, 1, 24)
        assert {stream.cuda_stream for stream in again} <= natives
    assert gcx.cache_stats().misses == misses


def test_row_1_locality_domains(script: Any) -> None:
    code = """
import sys, types
class Stream:
    def __init__(self, pointer, device): self.cuda_stream = pointer
sys.modules["torch"] = types.SimpleNamespace(cuda=types.SimpleNamespace(ExternalStream=Stream))
from gcx.compat.flashinfer import split_device_green_ctx_by_locality_domain as split
for backfill in (True, False):
    streams, resources = split(types.SimpleNamespace(index=0), backfill)
    print([resource.sm.smCount for resource in resources], len(streams))
"""
    assert script(code, "sim:b200@13.5") == "[74, 74] 2\n[64, 64] 2\n"


# gcx.compat.torch


def test_row_3_a_green_context_of_torch(torch: Any) -> None:
    context = GreenContext.create(24)
    assert (context.sm_count, context.device_id) == (24, 0)
    assert GreenContext.create(num_sms=10, device_id=0).sm_count == 16
    assert context.resource.sm_count == context.sm_partition.sm_count == 24
    stream = context.Stream()
    assert gcx.Stream.from_native(stream).sm_count == 24
    assert "24 SMs" in repr(context)
    context.close()


def test_row_3_fences_in_both_directions(torch: Any) -> None:
    parent = torch.state.current
    context = GreenContext(num_sms=24)
    context.set_context()
    current = torch.state.current
    assert gcx.current_context() is not None
    assert gcx.Stream.from_native(current).sm_count == 24
    assert [event.stream for event in current.waited] == [parent]
    with pytest.raises(RuntimeError, match="already"):
        context.set_context()
    with pytest.raises(gcx.ContextInUseError):
        context.close()
    context.pop_context()
    assert torch.state.current is parent
    assert gcx.current_context() is None
    assert [event.stream.cuda_stream for event in parent.waited] == [current.cuda_stream]
    with pytest.raises(RuntimeError, match="isn't the current"):
        context.pop_context()
    context.set_context()
    context.pop_context()
    context.close()


def test_row_3_contexts_nest(torch: Any) -> None:
    outer, inner = GreenContext(num_sms=24), GreenContext(num_sms=64)
    outer.set_context()
    first = torch.state.current
    inner.set_context()
    with pytest.raises(RuntimeError, match="isn't the current"):
        outer.pop_context()
    assert [event.stream for event in torch.state.current.waited] == [first]
    inner.pop_context()
    assert torch.state.current is first
    outer.pop_context()


def test_row_3_a_pool_of_32_streams(torch: Any) -> None:
    context = GreenContext(num_sms=24)
    pointers = [context.Stream().cuda_stream for _ in range(64)]
    assert len(set(pointers)) == 32
    assert pointers[:32] == pointers[32:]


def test_row_3_disjoint_contexts_of_one_split(torch: Any) -> None:
    groups, _ = gcx.Device(0).resources.sm.split([24, None])
    one, two = (GreenContext(sm_partition=group) for group in groups)
    assert one.resource.overlap(two.resource) == 0
    assert gcx.verify([gcx.Stream.from_native(context.Stream()) for context in (one, two)]).ok


def test_row_3_workqueues(torch: Any, version: tuple[int, int]) -> None:
    if version < (13, 1):
        with pytest.raises(gcx.NotSupportedError, match=r"13\.1"):
            GreenContext(num_sms=24, workqueue_scope="balanced")
        with pytest.raises(gcx.NotSupportedError, match=r"13\.1"):
            GreenContext.max_workqueue_concurrency()
        return
    most = GreenContext.max_workqueue_concurrency(0)
    context = GreenContext(workqueue_scope="balanced", workqueue_concurrency_limit=most)
    assert context.sm_count == 132
    with pytest.raises(ValueError, match="balanced"):
        GreenContext(num_sms=24, workqueue_scope="other")


def test_row_3_what_is_refused(torch: Any) -> None:
    with pytest.raises(RuntimeError, match="num_sms"):
        GreenContext()
    with pytest.raises(RuntimeError, match="workqueue_scope"):
        GreenContext(num_sms=8, workqueue_concurrency_limit=2)
    with pytest.raises(ValueError, match="not both"):
        GreenContext(num_sms=8, sm_partition=gcx.Device(0).resources.sm)
    with pytest.raises(TypeError, match="int"):
        GreenContext(sm_partition=24)  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match=r"gcx\.Device: .*device 7"):
        GreenContext(num_sms=8, device_id=7)
    with pytest.raises(TypeError):
        GreenContext.create("24")  # type: ignore[arg-type]
    with pytest.raises(gcx.ResourceConfigurationError):
        GreenContext.create(1000)

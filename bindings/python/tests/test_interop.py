"""Streams of other libraries, in both directions, and the interfaces of other packages.

With stand-ins for the libraries."""

from __future__ import annotations

import ctypes
import gc
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
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
    assert part.__cuda_stream__() == (0, handle)


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
    others: list[Any] = [
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
    streams, resources = split(types.SimpleNamespace(type="cuda", index=0), backfill)
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


# Devices


class FakeGpus:
    """PyTorch's streams and devices, as far as a context of another device moves them. What is
    current follows CUDA's stack of contexts, as PyTorch's own does."""

    def __init__(self, contexts: list[gcx.Context]) -> None:
        self.contexts = contexts
        self.device = 0
        self.current = {0: FakeStream(0x10, 0), 1: FakeStream(0x20, 1)}

    def current_device(self) -> int:
        pushed = gcx.current_context()
        return self.device if pushed is None else pushed.device

    def current_stream(self, device: int | None = None) -> FakeStream:
        return self.current[self.current_device() if device is None else device]

    def set_stream(self, stream: FakeStream) -> None:
        if stream.device != self.current_device():
            assert gcx.current_context() is None, "this would replace the context on top"
            self.device = stream.device
        self.current[stream.device] = stream


OTHER_DEVICE = """
import sys
sys.path.insert(0, {folder!r})
import types
import gcx
from test_interop import FakeEvent, FakeGpus, FakeStream
from gcx.compat.torch import GreenContext

gpus = FakeGpus([])
first, second = gpus.current[0], gpus.current[1]
sys.modules["torch"] = types.SimpleNamespace(cuda=types.SimpleNamespace(
    ExternalStream=FakeStream, Event=FakeEvent, current_stream=gpus.current_stream,
    set_stream=gpus.set_stream, current_device=gpus.current_device))
context = GreenContext.create(24, device_id=1)
for _ in range(2):
    context.set_context()
    inside = gpus.current_stream()
    assert inside.device == 1 and inside not in (first, second)
    assert [event.stream for event in inside.waited] == [first], "the wrong stream was fenced"
    context.pop_context()
    assert gpus.current_device() == 0, "on the wrong device"
    assert gpus.current == {{0: first, 1: second}}
    assert [event.stream for event in first.waited] == [inside]
    assert second.waited == []
    first.waited.clear()
"""


def test_row_3_a_context_of_another_device(script: Any) -> None:
    folder = str(Path(__file__).parent)
    script(OTHER_DEVICE.format(folder=folder), "sim:2xh100@13.0")


def test_row_3_a_closed_context_says_so(torch: Any) -> None:
    context = GreenContext.create(24)
    streams = [context.Stream() for _ in range(3)]
    context.close()
    assert repr(context) == "<GreenContext, closed>"
    uses: list[Any] = [
        context.Stream, context.set_context, lambda: context.sm_count, lambda: context.device_id,
        lambda: context.resource,
    ]  # fmt: skip
    for use in uses:
        for _ in range(40):
            with pytest.raises(gcx.InvalidHandleError, match="closed"):
                use()
    assert [gcx.Stream.from_native(stream).sm_count for stream in streams] == [24] * 3


@pytest.mark.parametrize("name", ["cpu", "meta", "xla:0"])
def test_row_1_what_is_no_gpu_is_refused(torch: Any, name: str) -> None:
    device = torch.device(name)
    calls: list[Callable[[], object]] = [
        lambda: flashinfer.split_device_green_ctx(device, 1, 8),
        lambda: flashinfer.split_device_green_ctx_by_sm_count(device, [8]),
        lambda: flashinfer.split_device_green_ctx_by_locality_domain(device),
    ]
    for call in calls:
        with pytest.raises(RuntimeError, match="isn't a CUDA device"):
            call()
    with pytest.raises(gcx.InvalidDeviceError):
        gcx.Device(device)


# A stream is PyTorch's by torch() alone


def test_half_of_pytorchs_interface_is_not_there(part: gcx.Partition, torch: Any) -> None:
    """PyTorch would take such a stream in some places, and end the process in others."""
    for name in ("cuda_stream", "stream_id", "device_index", "record_event", "wait_stream"):
        assert not hasattr(part.stream, name)
        with pytest.raises(AttributeError, match=r"PyTorch takes what torch\(\) gives"):
            getattr(part.stream, name)
    with pytest.raises(AttributeError, match=r"no attribute 'nonsense'$"):
        part.stream.nonsense  # type: ignore[attr-defined]  # noqa: B018


def test_a_partition_stands_for_its_stream(part: gcx.Partition, torch: Any) -> None:
    assert part.__cuda_stream__() == part.stream.__cuda_stream__()
    assert gcx.Stream.from_native(part).native == part.stream.native
    (other,) = gcx.split([8])
    with other:
        part.wait(other)
        part.wait(other.stream.record())
        part.wait(torch.cuda.current_stream())
        other.context.wait(part)
        part.synchronize()
    with pytest.raises(gcx.InvalidHandleError):
        part.wait(other)


@pytest.mark.parametrize(
    ("major", "expected"), [(6, (1, 1)), (7, (2, 2)), (8, (4, 2)), (9, (8, 8)), (12, (8, 8))]
)
def test_flashinfer_count_constraint_is_that_of_the_capability(
    major: int, expected: tuple[int, int]
) -> None:
    assert flashinfer.get_sm_count_constraint(major, 0) == expected


def test_flashinfer_capability_is_the_device_s() -> None:
    cuda = types.SimpleNamespace(type="cuda", index=0)
    assert flashinfer.get_compute_capability(cuda) == gcx.Device(0).compute_capability
    least, step = flashinfer.get_sm_count_constraint(*flashinfer.get_compute_capability(cuda))
    sms = gcx.Device(0).resources.sm
    assert (least, step) == (sms.min_partition_size, sms.coscheduled_alignment)
    with pytest.raises(ValueError, match="CUDA device"):
        flashinfer.get_compute_capability(types.SimpleNamespace(type="cpu", index=None))
    with pytest.raises(ValueError, match=r"5\.2"):
        flashinfer.get_sm_count_constraint(5, 2)


def test_verify_takes_streams_of_other_libraries(part: gcx.Partition, torch: Any) -> None:
    (other,) = gcx.split([None])
    theirs = part.stream.torch()
    assert gcx.verify(theirs).groups == gcx.verify([theirs]).groups == gcx.verify(part).groups
    assert not gcx.verify([theirs, Protocol((0, other.stream.native)), other.stream, other]).ok
    mixtures: list[Any] = [[theirs, 24], [theirs, None], [theirs, 0.5]]
    for mixture in mixtures:
        with pytest.raises(TypeError, match="mixture"):
            gcx.verify(mixture)


# Events and streams that others made


def test_events_of_other_libraries(part: gcx.Partition) -> None:
    owner = gcx.Event(timing=True)
    native = owner.native
    others: list[Any] = [
        native,
        types.SimpleNamespace(cuda_event=native),
        types.SimpleNamespace(ptr=native),
        types.SimpleNamespace(handle=ctypes.c_void_p(native)),
    ]
    for other in others:
        with gcx.Event.from_native(other) as event:
            assert event.native == native
            part.stream.record(event)
            part.stream.wait(event)
            event.synchronize()
            assert event.query()
            assert owner.elapsed_time(event) == 0
    assert owner.native == native
    bad: list[tuple[Any, type[Exception]]] = [
        (0, gcx.InvalidValueError),
        (types.SimpleNamespace(cuda_event=0), gcx.InvalidValueError),
        (-1, ValueError),
        ("event", TypeError),
        (None, TypeError),
        (True, TypeError),
    ]
    for wrong, error in bad:
        with pytest.raises(error):
            gcx.Event.from_native(wrong)
    owner.close()


def test_an_event_that_blocks(part: gcx.Partition) -> None:
    with gcx.Event(blocking=True, timing=True) as event:
        part.stream.record(event)
        event.synchronize()
        assert event.elapsed_time(event) == 0
    with pytest.raises(TypeError, match="blocking"):
        gcx.Event(blocking=1)  # type: ignore[arg-type]


FOREIGN = """
import ctypes, gcx
libcuda = ctypes.CDLL(gcx.driver_info().library)
part, = gcx.split([24])
resource = ctypes.create_string_buffer(bytes(144))
assert libcuda.cuDeviceGetDevResource(0, resource, 1) == 0
groups, count = ctypes.create_string_buffer(144), ctypes.c_uint(1)
assert libcuda.cuDevSmResourceSplitByCount(groups, ctypes.byref(count), resource, None, 0, 16) == 0
description, green, stream = (ctypes.c_void_p() for _ in range(3))
assert libcuda.cuDevResourceGenerateDesc(ctypes.byref(description), groups, 1) == 0
assert libcuda.cuGreenCtxCreate(ctypes.byref(green), description, 0, 1) == 0
assert libcuda.cuGreenCtxStreamCreate(ctypes.byref(stream), green, 1, 0) == 0
with gcx.Stream.from_native(stream.value) as theirs:
    assert theirs.sm_count == 16
    try:
        sms = theirs.resources.sm
    except gcx.NotSupportedError:
        print("not told")
    else:
        print(sms.family, sms.sm_count, bool(sms))
        for use in (lambda: sms.split([8]), lambda: sms | part.resource, lambda: gcx.Context(sms)):
            try:
                use()
            except gcx.ResourceConfigurationError as error:
                continue
            raise SystemExit("no error")
"""


def test_the_resource_of_a_stream_in_a_green_context_of_others(script: Any) -> None:
    assert script(FOREIGN, "sim:h100@13.0") == "not told\n"
    assert script(FOREIGN, "sim:h100@13.1") == "foreign 16 True\n"


def test_the_largest_cluster(part: gcx.Partition, sms: gcx.SMResource) -> None:
    assert part.stream.max_cluster_size() == part.resource.max_cluster_size()
    fine = sms.split([24], family="fine").groups[0]
    assert fine.max_cluster_size() <= part.resource.max_cluster_size()
    with pytest.raises(gcx.ResourceConfigurationError):
        (sms - sms).max_cluster_size()

"""Streams, events and devices of other libraries, with fakes of those libraries."""

from __future__ import annotations

import ctypes
import sys
import types
from typing import Any

import gcx
import pytest
from fakes import FakeDevice, FakeStream, events_waited_for  # type: ignore[import-not-found]
from work import Work  # type: ignore[import-not-found]


class Protocol:
    """A stream of cuda.core."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def __cuda_stream__(self) -> Any:
        return self.answer


def test_partition_has_the_order_of_its_stream(work: Work, parts: gcx.Partitions) -> None:
    part, other, _ = parts
    assert part.query()
    work.spin(part.stream, 5)
    assert not part.query()
    with part.record() as event, gcx.Event() as mine:
        assert part.record(mine) is mine
        other.wait(event)
        other.synchronize()
        assert event.query()
        assert part.query()
    with pytest.raises(gcx.InvalidHandleError):
        part.record(event)
    part.close()
    for call in (part.query, part.record):
        with pytest.raises(gcx.InvalidHandleError):
            call()


def test_partition_stands_for_its_stream(part: gcx.Partition, torch: Any) -> None:
    assert part.stream.__cuda_stream__() == (0, part.stream.native) == part.__cuda_stream__()
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


def test_wait_for_default_stream_uses_an_event_of_torch(part: gcx.Partition, torch: Any) -> None:
    default = torch.cuda.current_stream()
    part.stream.wait(default)
    ((waiter, event),) = events_waited_for
    assert (waiter, event.stream) == (part.stream.native, default)
    for wait in (part.stream.wait, part.context.wait):
        with pytest.raises(gcx.InvalidValueError):
            wait(types.SimpleNamespace(ptr=0))


def test_streams_of_other_libraries_are_accepted(part: gcx.Partition) -> None:
    native = part.stream.native
    others: list[Any] = [
        native,
        part.stream,
        Protocol((0, native)),
        types.SimpleNamespace(__cuda_stream__=(0, native)),
        FakeStream(native),
        types.SimpleNamespace(ptr=native),
        types.SimpleNamespace(handle=ctypes.c_void_p(native)),
        types.SimpleNamespace(handle=native),
    ]
    for other in others:
        with gcx.Stream.from_native(other) as stream:
            assert (stream.native, stream.sm_count) == (native, 24)
            assert stream.resources.sm == part.resource
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
def test_other_objects_are_no_streams(bad: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        gcx.Stream.from_native(bad)


def test_external_stream_is_kept_alive_until_close(part: gcx.Partition) -> None:
    owner = FakeStream(part.stream.native)
    count = sys.getrefcount(owner)
    stream = gcx.Stream.from_native(owner)
    assert sys.getrefcount(owner) == count + 1
    stream.close()
    del stream
    assert sys.getrefcount(owner) == count


def test_torch_cupy_and_numba_streams_are_made_lazily(
    part: gcx.Partition, torch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = part.stream.torch()
    assert (stream.cuda_stream, stream.device) == (part.stream.native, 0)
    assert stream._gcx_stream is part.stream
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


def test_torch_stream_of_a_lease_is_of_that_moment(torch: Any) -> None:
    with gcx.acquire(24) as lease:
        before = lease.stream.torch()
        lease.resize(64)
        after = lease.stream.torch()
        assert after.cuda_stream == lease.stream.native != before.cuda_stream
        assert gcx.Stream.from_native(before).sm_count == 24
        assert gcx.Stream.from_native(after).sm_count == 64


def test_stream_lacks_the_attributes_of_torch(part: gcx.Partition) -> None:
    for name in ("cuda_stream", "stream_id", "device_index", "record_event", "wait_stream"):
        with pytest.raises(AttributeError, match=r"pass torch\(\) to PyTorch"):
            getattr(part.stream, name)
    with pytest.raises(AttributeError, match=r"no attribute 'nonsense'$"):
        part.stream.nonsense  # type: ignore[attr-defined]  # noqa: B018


def test_events_of_other_libraries_are_accepted(part: gcx.Partition) -> None:
    owner = gcx.Event(timing=True, blocking=True)
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
        *((wrong, TypeError) for wrong in ("event", None, True)),
    ]
    for wrong, error in bad:
        with pytest.raises(error):
            gcx.Event.from_native(wrong)
    owner.close()


def test_devices_of_torch_and_cuda_core_are_accepted() -> None:
    devices: list[Any] = [FakeDevice("cuda:0"), types.SimpleNamespace(device_id=0), gcx.Device(0)]
    for device in devices:
        assert gcx.Device(device).ordinal == 0
    for name, words in (("cuda:3", "3"), ("cuda", "cuda:0"), ("cpu", "is no CUDA device")):
        with pytest.raises(gcx.InvalidDeviceError, match=words):
            gcx.split([8], device=FakeDevice(name))


def test_verify_accepts_streams_of_other_libraries(part: gcx.Partition, torch: Any) -> None:
    (other,) = gcx.split([None])
    external = part.stream.torch()
    assert gcx.verify(external).groups == gcx.verify([external]).groups == gcx.verify(part).groups
    assert not gcx.verify([external, Protocol((0, other.stream.native)), other.stream, other]).ok
    mixtures: list[Any] = [[external, 24], [external, None], [part, 0.5]]
    for mixture in mixtures:
        with pytest.raises(TypeError, match="mixture"):
            gcx.verify(mixture)

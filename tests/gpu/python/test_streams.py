"""gcx's streams in other libraries, and their streams in gcx."""

from __future__ import annotations

from typing import Any

import gcx
import pytest

_SOURCE = """
extern "C" __global__ void note_sms(unsigned* seen, long long cycles) {
    unsigned sm;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    if (threadIdx.x == 0) atomicAdd(&seen[sm], 1u);
    for (const long long end = clock64() + cycles; clock64() < end;) {}
}
"""


class NoteSms:
    """Launches the kernel in a CuPy stream, and reads its SMs."""

    def __init__(self, cupy: Any) -> None:
        self._cupy = cupy
        self._kernel = cupy.RawKernel(_SOURCE, "note_sms")

    def launch(self, stream: Any, cycles: int = 20_000) -> Any:
        """Fills the SMs of the stream several times over."""
        with stream:
            seen = self._cupy.zeros(1024, dtype=self._cupy.uint32)
            self._kernel((4096,), (64,), (seen, self._cupy.int64(cycles)))
        return seen

    def sms(self, stream: Any) -> set[int]:
        """Returns the SMs that it ran on."""
        seen = self.launch(stream)
        stream.synchronize()
        return {int(number) for number in self._cupy.nonzero(seen)[0]}


@pytest.fixture
def cupy() -> Any:
    return pytest.importorskip("cupy", reason="CuPy isn't installed")


def test_verify_is_ok_on_a_gpu(parts: gcx.Partitions) -> None:
    proof = gcx.verify(parts)
    assert proof.ok, str(proof)
    assert not proof.simulated
    print(proof)


def test_stream_in_cupy(parts: gcx.Partitions, cupy: Any) -> None:
    note = NoteSms(cupy)
    seen = [note.sms(part.stream.cupy()) for part in parts]
    for part, sms in zip(parts, seen):
        assert sms == set(part.stream.sm_ids())
    assert not seen[0] & seen[1]


def test_stream_of_cupy(cupy: Any) -> None:
    theirs = cupy.cuda.Stream(non_blocking=True)
    with gcx.Stream.from_native(theirs) as stream:
        assert stream.native == theirs.ptr
        assert stream.sm_count == gcx.Device(0).sm_count
        assert stream.query()


def test_stream_in_torch(parts: gcx.Partitions, torch: Any) -> None:
    x = torch.randn(2048, 2048, device="cuda")
    expected = x @ x
    torch.cuda.synchronize()
    for part in parts:
        with torch.cuda.stream(part.stream.torch()):
            assert torch.cuda.current_stream().cuda_stream == part.stream.native
            y = x @ x
        part.stream.synchronize()
        torch.testing.assert_close(y, expected, rtol=1e-3, atol=1e-2)


def test_torch_and_partition_wait_for_each_other(parts: gcx.Partitions, torch: Any) -> None:
    """PyTorch's current stream is the default stream."""
    before, theirs = torch.cuda.current_stream(), parts[0].stream.torch()
    x = torch.ones(1 << 24, device="cuda")
    parts[0].wait(before)
    with torch.cuda.stream(theirs):
        y = x * 2
    assert torch.cuda.current_stream() == before
    before.wait_stream(theirs)
    assert (y + 1).sum().item() == 3 << 24
    y.record_stream(before)


def test_torch_refuses_a_gcx_stream(parts: gcx.Partitions, torch: Any) -> None:
    before = torch.cuda.current_stream()
    with pytest.raises(AttributeError, match=r"torch\(\)"), torch.cuda.stream(parts[0].stream):
        pass
    assert torch.cuda.current_stream() == before


def test_events_of_torch(parts: gcx.Partitions, torch: Any) -> None:
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    with pytest.raises(gcx.InvalidValueError, match="recorded"):
        gcx.Event.from_native(start)
    start.record()
    end.record()
    with gcx.Event.from_native(start) as ours, gcx.Event.from_native(end) as later:
        parts[0].stream.record(later)
        parts[1].wait(later)
        later.synchronize()
        assert ours.elapsed_time(later) == pytest.approx(start.elapsed_time(end))


def test_stream_of_torch(parts: gcx.Partitions, torch: Any) -> None:
    theirs = torch.cuda.Stream()
    with gcx.Stream.from_native(theirs) as stream:
        assert stream.native == theirs.cuda_stream
        assert stream.sm_count == gcx.Device(0).sm_count
    parts[0].stream.wait(theirs)
    with gcx.Stream.from_native(parts[0].stream.torch()) as stream:
        assert stream.sm_count == 24
        assert stream.resources.sm == parts[0].resource


def test_stream_in_numba_and_back(parts: gcx.Partitions) -> None:
    cuda = pytest.importorskip("numba.cuda", reason="Numba isn't installed")
    numpy = pytest.importorskip("numpy")

    @cuda.jit  # type: ignore[misc, untyped-decorator, unused-ignore]
    def double(x: Any) -> None:
        i = cuda.grid(1)
        if i < x.size:
            x[i] = x[i] * 2

    try:
        double[1, 64](cuda.to_device(numpy.ones(64)))
    except Exception as error:  # A Numba too old for NumPy raises AttributeError.
        pytest.skip(f"Numba itself doesn't work here: {type(error).__name__}: {error}")
    for part in parts:
        theirs = part.stream.numba()
        x = cuda.to_device(numpy.array([1.0, 2.0, 3.0] * 100), stream=theirs)
        double[10, 64, theirs](x)
        result = x.copy_to_host(stream=theirs)
        part.stream.synchronize()
        assert list(result[:3]) == [2.0, 4.0, 6.0]
        with gcx.Stream.from_native(theirs) as stream:
            assert stream.native == part.stream.native
    with gcx.Stream.from_native(cuda.stream()) as stream:
        assert stream.sm_count == gcx.Device(0).sm_count


def test_stream_in_cuda_core_and_back(parts: gcx.Partitions) -> None:
    core = pytest.importorskip("cuda.core", reason="cuda.core isn't installed")
    if not hasattr(core, "Device"):
        core = pytest.importorskip("cuda.core.experimental", reason="cuda.core has no Device")
    device = core.Device(0)
    device.set_current()
    for part in parts:
        theirs = device.create_stream(part.stream)
        assert int(theirs.handle) == part.stream.native
        theirs.sync()
        with gcx.Stream.from_native(theirs) as stream:
            assert stream.sm_count == part.sm_count
    with gcx.Stream.from_native(device.create_stream()) as stream:
        assert stream.sm_count == gcx.Device(0).sm_count


def test_priorities_are_those_of_the_device(parts: gcx.Partitions) -> None:
    with parts[0].context.stream(-5) as stream:
        assert stream.priority < 0
        assert stream.sm_count == 24


def test_memory_is_shared_by_record_stream(parts: gcx.Partitions, torch: Any) -> None:
    """The consumer waits, and record_stream keeps the memory from being reused while the other
    partition reads it, as in docs/reference/python.md."""
    producer, consumer = (part.stream.torch() for part in parts)
    for round_ in range(20):
        with torch.cuda.stream(producer):
            x = torch.full((4 << 20,), float(round_), device="cuda")
        consumer.wait_stream(producer)
        with torch.cuda.stream(consumer):
            for _ in range(10):
                y = x * 1
            x.record_stream(consumer)
        del x
        with torch.cuda.stream(producer):
            torch.full((4 << 20,), -1.0, device="cuda")
        consumer.synchronize()
        assert y.min().item() == y.max().item() == float(round_)


def test_wait_orders_memory_between_partitions(parts: gcx.Partitions, cupy: Any) -> None:
    """A stream that waits for another one sees its writes."""
    note = NoteSms(cupy)
    first, second = (part.stream.cupy() for part in parts)
    seen = note.launch(first, cycles=2_000_000)
    parts[1].stream.wait(parts[0].stream)
    with second:
        copy = seen.copy()
    second.synchronize()
    assert int(copy.sum()) == 4096

"""CUDA graphs and Triton kernels of PyTorch on partitions: captured there, or captured once and run
on any. pytest -s shows the measurements."""

from __future__ import annotations

import functools
import statistics
from collections.abc import Callable
from typing import Any

import gcx
import pytest
from gcx import Graph  # type: ignore[attr-defined, unused-ignore]

torch: Any = pytest.importorskip("torch", reason="PyTorch isn't installed")
triton: Any = pytest.importorskip("triton", reason="Triton isn't installed")
tl: Any = pytest.importorskip("triton.language")
needs_raw_graphs = pytest.mark.skipif(
    not hasattr(torch.cuda.CUDAGraph, "raw_cuda_graph"),
    reason=f"PyTorch {torch.__version__} doesn't hand its graphs out",
)


# Triton reads a kernel's annotations as globals of its own, so these have none but its own.
@triton.jit  # type: ignore[misc, untyped-decorator, unused-ignore]
def _note_sms(seen):  # type: ignore[no-untyped-def]
    sm = tl.inline_asm_elementwise(
        "mov.u32 $0, %smid;", "=r, r", [tl.program_id(0)], dtype=tl.int32, is_pure=False, pack=1
    )
    tl.atomic_add(seen + sm, 1)


@triton.jit  # type: ignore[misc, untyped-decorator, unused-ignore]
def _add(x, y, out, n, block: tl.constexpr):  # type: ignore[no-untyped-def]
    at = tl.program_id(0) * block + tl.arange(0, block)
    tl.store(out + at, tl.load(x + at, at < n) + tl.load(y + at, at < n), at < n)


def _buffer() -> Any:
    buffer = torch.zeros(1024, dtype=torch.int32, device="cuda")
    torch.cuda.synchronize()
    return buffer


def _seen(buffer: Any) -> set[int]:
    torch.cuda.synchronize()
    return set(buffer.nonzero().flatten().tolist())


def test_triton_kernel_runs_on_the_partition(parts: gcx.Partitions) -> None:
    for part in parts:
        buffer = _buffer()
        with torch.cuda.stream(part.stream.torch()):
            _note_sms[(8192,)](buffer)
        assert _seen(buffer) == set(part.stream.sm_ids())


def test_triton_kernel_computes_on_the_partition(parts: gcx.Partitions) -> None:
    x, y = torch.randn(2, 1 << 20, device="cuda")
    torch.cuda.synchronize()
    for part in parts:
        out = torch.empty_like(x)
        torch.cuda.synchronize()
        with torch.cuda.stream(part.stream.torch()):
            _add[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), block=1024)
        part.stream.synchronize()
        torch.testing.assert_close(out, x + y)


def test_graph_captured_on_a_partition_replays_there(parts: gcx.Partitions) -> None:
    part = parts[0]
    stream = part.stream.torch()
    buffer = _buffer()
    x = torch.ones(1 << 16, device="cuda")
    with torch.cuda.stream(stream):
        _note_sms[(8192,)](buffer)  # Compiled before the capture.
        y = x * 2
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        _note_sms[(8192,)](buffer)
        y = x * 2
    buffer.zero_()
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        for _ in range(3):
            graph.replay()
    assert _seen(buffer) == set(part.stream.sm_ids())
    assert int(buffer.sum()) == 3 * 8192
    assert y.sum().item() == 2 << 16


def test_graph_forked_over_two_partitions_runs_on_both(parts: gcx.Partitions) -> None:
    one, two = (part.stream.torch() for part in parts)
    buffers = [_buffer(), _buffer()]
    for stream, buffer in zip((one, two), buffers):
        with torch.cuda.stream(stream):
            _note_sms[(8192,)](buffer)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=one):
        two.wait_stream(one)
        _note_sms[(8192,)](buffers[0])
        with torch.cuda.stream(two):
            _note_sms[(8192,)](buffers[1])
        one.wait_stream(two)
    for buffer in buffers:
        buffer.zero_()
    torch.cuda.synchronize()
    with torch.cuda.stream(one):
        graph.replay()
    seen = [_seen(buffer) for buffer in buffers]
    assert seen[0] == set(parts[0].stream.sm_ids())
    assert seen[1] == set(parts[1].stream.sm_ids())
    assert not seen[0] & seen[1]


def test_sm_ids_of_a_capturing_stream_is_refused(parts: gcx.Partitions) -> None:
    stream = parts[0].stream
    x = torch.ones(16, device="cuda")
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream.torch()):
        x.mul_(2)
        with pytest.raises(gcx.CaptureError):
            stream.sm_ids()
        assert stream.sm_count == 24
    graph.replay()
    torch.cuda.synchronize()
    assert x.tolist() == [2.0] * 16


class Work:
    """A step with many kinds of kernels and nodes, whose results depend only on `given`."""

    def __init__(self, heads: int = 16, tokens: int = 1024) -> None:
        self.given = torch.randn(tokens, heads * 64, device="cuda", dtype=torch.bfloat16)
        self.weights = torch.randn(heads * 64, 3 * heads * 64, device="cuda", dtype=torch.bfloat16)
        self.weights /= 32
        self.seen = torch.zeros(1024, dtype=torch.int32, device="cuda")
        self.zeros = torch.empty_like(self.given)
        self.copied = torch.empty_like(self.given)
        self.heads = heads

    def __call__(self) -> tuple[Any, ...]:
        tokens = self.given.shape[0]
        qkv = self.given @ self.weights  # cuBLAS
        q, k, v = (
            part.reshape(1, tokens, self.heads, 64).transpose(1, 2) for part in qkv.chunk(3, dim=1)
        )
        attention = torch.nn.functional.scaled_dot_product_attention(q, k, v)
        soft = torch.softmax(attention.float(), dim=-1)
        waves = torch.sin(soft) * 2
        self.zeros.zero_()  # a memset
        self.copied.copy_(self.given)  # a copy
        _note_sms[(8192,)](self.seen)
        return attention, soft, waves, self.zeros + self.copied

    def seen_sms(self) -> set[int]:
        torch.cuda.synchronize()
        return set(self.seen.nonzero().flatten().tolist())

    def forget(self, outputs: tuple[Any, ...]) -> None:
        self.seen.zero_()
        for output in outputs:
            output.fill_(7)
        torch.cuda.synchronize()


def _capture(work: Callable[[], Any], stream: Any = None) -> tuple[Any, Any]:
    stream = stream or torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        for _ in range(3):
            work()  # compiles, and chooses algorithms
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph(keep_graph=True)
    with torch.cuda.graph(graph, stream=stream):
        outputs = work()
    graph.instantiate()
    torch.cuda.synchronize()
    return graph, outputs


def _close(got: tuple[Any, ...], wanted: tuple[Any, ...]) -> None:
    torch.cuda.synchronize()
    for one, other in zip(got, wanted):
        torch.testing.assert_close(one, other, rtol=2e-2, atol=2e-2)


def _us(stream: gcx.Stream, launch: Callable[[], object]) -> float:
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    with torch.cuda.stream(stream.torch()):
        start.record()
        launch()
        end.record()
    end.synchronize()
    return float(start.elapsed_time(end)) * 1000


@needs_raw_graphs
def test_graph_computes_on_the_partition(parts: gcx.Partitions) -> None:
    work = Work()
    wanted = tuple(one.clone() for one in work())
    graph, outputs = _capture(work)
    moved = Graph(graph)
    names = [node.name for node in moved.nodes()]
    assert any("_note_sms" in name for name in names), names
    for part in parts:
        moved.prepare(part)
        for _ in range(3):
            work.forget(outputs)
            moved.launch(part.stream)
            part.stream.synchronize()
            _close(outputs, wanted)
            assert work.seen_sms() == set(part.stream.sm_ids())
    # It uses changed input.
    work.given.mul_(0.5)
    wanted = tuple(one.clone() for one in work())
    work.forget(outputs)
    moved.launch(parts[0].stream)
    _close(outputs, wanted)
    # The captured graph runs as before.
    work.forget(outputs)
    graph.replay()
    _close(outputs, wanted)
    assert len(work.seen_sms()) == gcx.Device(0).sm_count


@needs_raw_graphs
def test_graph_keeps_its_capture_alive(parts: gcx.Partitions) -> None:
    work = Work()
    wanted = tuple(one.clone() for one in work())
    graph, outputs = _capture(work)
    handle = graph.raw_cuda_graph()
    moved = Graph(handle)  # as a number
    moved.prepare(parts[0])
    work.forget(outputs)
    moved.launch(parts[0].stream)
    del moved
    _close(outputs, wanted)
    graph.replay()
    _close(outputs, wanted)


@needs_raw_graphs
def test_graph_is_as_fast_as_one_captured_there(parts: gcx.Partitions) -> None:
    work = Work(tokens=4096)
    graph, outputs = _capture(work)
    moved = Graph(graph)
    for part in parts:
        there, _ = _capture(work, part.stream.torch())
        moved.prepare(part)
        stream = part.stream
        launches = functools.partial(moved.launch, stream), there.replay
        rounds = [[_us(stream, launch) for launch in launches] for _ in range(60)][10:]
        ours, theirs = (statistics.median(times) for times in zip(*rounds))
        count = stream.sm_count
        print(
            f"{count} SMs: moved {ours:.1f} us, captured there {theirs:.1f} us: "
            f"{ours / theirs:.3f}, wanted 1.03 at most"
        )
        assert ours < 1.15 * theirs
    assert len(outputs) == 4

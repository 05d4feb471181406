"""PyTorch's graphs, captured once and run on any partition: results, SMs and speed. pytest -s shows
the measurements."""

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
if not hasattr(torch.cuda.CUDAGraph, "raw_cuda_graph"):
    pytest.skip(f"PyTorch {torch.__version__} doesn't hand its graphs out", allow_module_level=True)


@triton.jit  # type: ignore[misc, untyped-decorator, unused-ignore]
def _note_sms(seen):  # type: ignore[no-untyped-def]
    sm = tl.inline_asm_elementwise(
        "mov.u32 $0, %smid;", "=r, r", [tl.program_id(0)], dtype=tl.int32, is_pure=False, pack=1
    )
    tl.atomic_add(seen + sm, 1)


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

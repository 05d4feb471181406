"""Triton kernels and CUDA graphs on a partition."""

from __future__ import annotations

from typing import Any

import gcx
import pytest

torch: Any = pytest.importorskip("torch", reason="PyTorch isn't installed")
triton: Any = pytest.importorskip("triton", reason="Triton isn't installed")
tl: Any = pytest.importorskip("triton.language")


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

"""gcx.compat.flashinfer and gcx.compat.torch."""

from __future__ import annotations

import gc
from typing import Any

import gcx
import pytest
from gcx.compat import flashinfer
from gcx.compat.torch import GreenContext


@pytest.fixture
def rest() -> int:
    """The device's SMs less 32."""
    return gcx.Device(0).sm_count - 32


def test_flashinfer_equal_groups_have_a_remainder(torch: Any, rest: int) -> None:
    streams, resources = flashinfer.split_device_green_ctx(torch.device("cuda:0"), 2, 16)
    assert [resource.sm.smCount for resource in resources] == [16, 16, rest]
    for stream, resource in zip(streams, resources):
        with torch.cuda.stream(stream):
            x = torch.randn(512, 512, device="cuda")
            y = x @ x
        stream.synchronize()
        assert y.isfinite().all()
        assert gcx.Stream.from_native(stream).sm_count == resource.sm.smCount


def test_flashinfer_split_of_the_whole_device(torch: Any) -> None:
    if gcx.Device(0).sm_count != 132:
        pytest.skip("108 and 24 are the whole of a GPU of 132 SMs")
    streams, resources = flashinfer.split_device_green_ctx_by_sm_count(
        torch.device("cuda:0"), [108, 24]
    )
    assert [resource.sm.smCount for resource in resources] == [108, 24]
    proof = gcx.verify([gcx.Stream.from_native(stream) for stream in streams])
    assert proof.ok, str(proof)


def test_flashinfer_memory_outlives_its_stream(torch: Any) -> None:
    """Tensors that were made in a partition are freed after its torch stream is gone."""
    tensors = []
    for _ in range(20):
        streams, _ = flashinfer.split_device_green_ctx(torch.device("cuda:0"), 1, 24)
        for stream in streams:
            with torch.cuda.stream(stream):
                x = torch.ones(1 << 20, device="cuda")
            x.record_stream(torch.cuda.current_stream())
            tensors.append(x)
        del streams, stream
        gc.collect()
    torch.cuda.synchronize()
    assert all(x.sum().item() == 1 << 20 for x in tensors)
    tensors.clear()
    torch.cuda.empty_cache()


def test_green_context_has_its_sms(torch: Any) -> None:
    context = GreenContext.create(24, 0)
    stream = context.Stream()
    with torch.cuda.stream(stream):
        x = torch.randn(1024, 1024, device="cuda")
        y = x @ x
    stream.synchronize()
    assert y.isfinite().all()
    proof = gcx.verify([gcx.Stream.from_native(stream)])
    assert proof.ok, str(proof)
    assert proof.groups[0].sm_count == 24


def test_green_context_orders_work_in_both_directions(torch: Any) -> None:
    """Work before, inside and after the context is in order, without any synchronizing."""
    context = GreenContext.create(num_sms=24, device_id=0)
    before = torch.cuda.current_stream()
    for round_ in range(10):
        x = torch.zeros(1 << 24, device="cuda")
        x += round_
        context.set_context()
        assert torch.cuda.current_stream().cuda_stream != before.cuda_stream
        x *= 2
        with pytest.raises(gcx.ContextInUseError):
            context.close()
        context.pop_context()
        assert torch.cuda.current_stream() == before
        x += 1
        assert x.min().item() == x.max().item() == 2 * round_ + 1
    with pytest.raises(RuntimeError, match="isn't the current"):
        context.pop_context()
    context.close()

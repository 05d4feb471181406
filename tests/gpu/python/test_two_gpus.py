"""Partitions of two GPUs in one process, from PyTorch. two_gpus.cpp tests the rest."""

from __future__ import annotations

from typing import Any

import gcx
import pytest


@pytest.fixture(autouse=True)
def _two(torch: Any) -> None:
    if len(gcx.devices()) < 2 or torch.cuda.device_count() < 2:
        pytest.skip("this needs two GPUs of one host")


@pytest.fixture
def sides() -> Any:
    """A partition of 24 SMs of each device."""
    parts = [gcx.split([24, None], device=ordinal) for ordinal in (0, 1)]
    yield [part[0] for part in parts]
    for part in parts:
        for one in part:
            one.stream.synchronize()
        part.close()
    assert gcx.cache_stats().in_use == 0


def test_partitions_of_two_devices_run_on_their_sms(sides: Any) -> None:
    for ordinal, part in enumerate(sides):
        assert part.device == ordinal
        assert gcx.verify([part]).ok
    with pytest.raises(gcx.InvalidValueError, match="devices 0 and 1; verify those of each"):
        gcx.verify(sides)


def test_products_on_both_devices_are_right(sides: Any, torch: Any) -> None:
    streams = [part.stream.torch() for part in sides]
    products, wanted = [], []
    for ordinal in (0, 1):
        x = torch.randn(2048, 2048, device=f"cuda:{ordinal}")
        wanted.append(x @ x)
        torch.cuda.synchronize(ordinal)
        with torch.cuda.stream(streams[ordinal]):
            products.append(x @ x)
    for ordinal, part in enumerate(sides):
        part.stream.synchronize()
        torch.testing.assert_close(products[ordinal], wanted[ordinal], rtol=1e-3, atol=1e-2)

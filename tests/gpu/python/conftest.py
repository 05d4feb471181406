"""The Python package on a real GPU, with the libraries that are installed.

    pip install gcx-*.whl pytest    # and any of torch, triton, cupy, numba, cuda-core
    python -m pytest -rs tests/gpu/python

A test without its library is skipped and names it. A GPU of at least 64 SMs with a driver of CUDA
12.4 or newer.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import gcx
import pytest


def _why_not() -> str | None:
    try:
        info = gcx.driver_info()
        gcx.Device(0)
    except gcx.Error as error:
        return f"no GPU here: {error}"
    if info.simulated:
        return "these need a real GPU; GCX_DRIVER selects the simulated driver"
    return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    reason = _why_not()
    if reason is not None:
        for item in items:
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture
def parts() -> Iterator[gcx.Partitions]:
    """24 SMs and the rest."""
    parts = gcx.split([24, None])
    yield parts
    for part in parts:
        part.stream.synchronize()
        part.close()


@pytest.fixture
def torch() -> Iterator[Any]:
    torch = pytest.importorskip("torch", reason="PyTorch isn't installed")
    if not torch.cuda.is_available():
        pytest.skip("this PyTorch has no CUDA")
    yield torch
    torch.cuda.synchronize()
    gc.collect()

"""How many SMs the other libraries of the process are told that a device has."""

from __future__ import annotations

from gcx import _gcx


def report_partition_counts() -> None:
    """From now on, a thread in which a partition is current is told that partition's count when a
    library asks CUDA for the number of SMs: PyTorch, Triton, cuBLAS, cuDNN, whatever uses libcuda.
    Other threads are told the device's. Before torch, cupy or jax is imported, and before gcx opens
    the driver:

    >>> import gcx
    >>> gcx.report_partition_counts()
    >>> import torch

    What a library sets up keeps the count that it was told: see docs/counts.md. A cuBLAS before
    13.10 is told the device's all the same, since it computes wrong products with a partition's:
    `gcx.current(part, cublas=True)` has it plan for the partition rightly.

    Raises:
        NotPermittedError: libcuda.so.1 is loaded already: it is too late.
        DriverNotFoundError: There is no driver, or gcx's part for it isn't installed.
    """
    _gcx.gcx_driver_report_partition_counts()


def reports_partition_counts() -> bool:
    """Whether `report_partition_counts()` has succeeded in this process. Opens no driver."""
    return _gcx.gcx_driver_reports_partition_counts() == 1

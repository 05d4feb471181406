"""The driver, and the SM count that it reports to other libraries."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from gcx import _gcx
from gcx._convert import version_of
from gcx._record import json_of

# By gcx_capability.
_CAPABILITIES = (
    "green contexts",
    "stream creation",
    "context ids",
    "resource details",
    "structured split",
    "workqueues",
    "stream resources",
    "locality domains",
)


class DriverInfo(NamedTuple):
    """The open driver."""

    version: tuple[int, int]  #: (13, 0) is CUDA 13.0.
    header_version: tuple[int, int]  #: The cuda.h that gcx was built with.
    simulated: bool  #: Whether it is the simulated driver.
    library: str  #: The path of the library.
    capabilities: dict[str, bool]  #: Whether the driver has each capability, by name.

    def to_json(self) -> dict[str, Any]:
        """Returns the fields as values for json.dumps."""
        return json_of(self)


def open_driver(spec: str | os.PathLike[str] | None = None) -> None:
    """Selects the driver and opens it. Optional: any other call opens the default driver. Does
    nothing if the same driver is open.

    Args:
        spec: None for GCX_DRIVER, or else libcuda.so.1; "sim:h100@13.0" for the simulated driver;
            otherwise the path or name of a library.

    Raises:
        DriverAlreadyOpenError: Another driver is open already.
        DriverNotFoundError: The library is missing or can't be loaded.
        NotSupportedError: It is older than CUDA 12.4.
        NoDeviceError: It has no device.
    """
    if spec is not None and not isinstance(spec, (str, os.PathLike)):
        raise TypeError(f"a driver is named by a string or None, not {type(spec).__name__}")
    _gcx.gcx_driver_open(spec)


def driver_info() -> DriverInfo:
    """Describes the driver; opens it if none is open."""
    version, header_version, simulated, library, available = _gcx.gcx_driver_get_info()
    capabilities = {name: available[number] == 1 for number, name in enumerate(_CAPABILITIES)}
    return DriverInfo(
        version_of(version), version_of(header_version), bool(simulated), library, capabilities
    )


def report_partition_counts() -> None:
    """Makes libcuda report a partition's SM count to other libraries (PyTorch, Triton, cuBLAS,
    cuDNN) in threads in which that partition is current. Other threads see the device's count. Call
    it before torch, cupy or jax is imported, and before gcx opens the driver:

    >>> import gcx
    >>> gcx.report_partition_counts()
    >>> import torch

    cuBLAS before 13.10 computes wrong products with such a count and still sees the device's; use
    `gcx.current(part, cublas=True)`. See docs/explanation/counts.md.

    Raises:
        TooLateError: libcuda.so.1 is loaded already.
        DriverNotFoundError: There is no driver, or gcx's library for it isn't installed.
    """
    _gcx.gcx_driver_report_partition_counts()

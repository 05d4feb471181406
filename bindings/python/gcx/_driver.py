"""The driver."""

from __future__ import annotations

import os
from typing import NamedTuple

from gcx import _gcx
from gcx._errors import AlreadyAcquiredError, DriverAlreadyOpenError


class DriverInfo(NamedTuple):
    """The driver that was opened.

    Attributes:
        version: (13, 0) is CUDA 13.0.
        header_version: Of the cuda.h that gcx was built with.
        simulated: Whether no GPU is involved.
        library: What was opened.
        capabilities: By name, whether the driver has it.
    """

    version: tuple[int, int]
    header_version: tuple[int, int]
    simulated: bool
    library: str
    capabilities: dict[str, bool]


def open_driver(spec: str | os.PathLike[str] | None = None) -> None:
    """Chooses the driver and opens it, before anything else does. Calling it is optional, and for
    the driver that is open already does nothing.

    Args:
        spec: None for the environment's GCX_DRIVER or else libcuda.so.1; "sim:h100@13.0" for the
            simulated driver; otherwise a path or name of a library.

    Raises:
        DriverAlreadyOpenError: Another driver is open already.
        DriverNotFoundError: There is none, or it can't be loaded.
        NotSupportedError: It is older than CUDA 12.4.
        NoDeviceError: It has no device.
    """
    if spec is not None and not isinstance(spec, (str, os.PathLike)):
        raise TypeError(f"a driver is named by a string or None, not {type(spec).__name__}")
    try:
        _gcx.gcx_driver_open(spec)
    except AlreadyAcquiredError as error:  # The number is also that of SMs that others have.
        raise DriverAlreadyOpenError(error.message, error.code, error.name) from None


def _version(number: int) -> tuple[int, int]:
    return number // 1000, number % 1000 // 10


def driver_info() -> DriverInfo:
    """What driver is open, and what it can do; opens it if none is."""
    version, header_version, simulated, library = _gcx.gcx_driver_get_info()
    capabilities = {}
    for number in range(_gcx.GCX_CAPABILITY_COUNT):
        available, _, name = _gcx.gcx_capability_get_info(number)
        capabilities[name] = bool(available)
    return DriverInfo(
        _version(version), _version(header_version), bool(simulated), library, capabilities
    )

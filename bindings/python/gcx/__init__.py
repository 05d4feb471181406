"""SM partitioning for NVIDIA GPUs.

gcx divides the streaming multiprocessors (SMs) of a GPU into partitions and hands out streams whose
kernels run on one partition's SMs alone. The short way:

>>> import gcx, torch
>>> decode, prefill = gcx.split([24, None])
>>> with torch.cuda.stream(decode.stream):
...     step()

The long way is CUDA's: Device(0).resources.sm, its split(), a resource's context(), a context's
stream(). Every error is a gcx.Error. GCX_DRIVER=sim:h100@13.0 asks for the simulated driver.
"""

from __future__ import annotations

from gcx import _gcx
from gcx._context import Context, Event, Stream, current_context
from gcx._device import Device, devices
from gcx._driver import (
    CacheStats,
    DriverInfo,
    cache_stats,
    driver_info,
    info,
    open_driver,
    set_cache_limit,
)
from gcx._errors import (
    CaptureError,
    ContextDestroyedError,
    ContextInUseError,
    DeinitializedError,
    DriverAlreadyOpenError,
    DriverNotFoundError,
    Error,
    InvalidContextError,
    InvalidDeviceError,
    InvalidHandleError,
    InvalidResourceTypeError,
    InvalidValueError,
    LaunchError,
    NoDeviceError,
    NotFoundError,
    NotInitializedError,
    NotPermittedError,
    NotReadyError,
    NotSupportedError,
    OutOfMemoryError,
    ResourceConfigurationError,
)
from gcx._partition import Partition, split
from gcx._request import SplitOptions
from gcx._resource import Plan, Resources, SMResource, Split, WorkqueueResource
from gcx._verify import Verification, VerifiedGroup, verify

__all__ = [
    "CacheStats",
    "CaptureError",
    "Context",
    "ContextDestroyedError",
    "ContextInUseError",
    "DeinitializedError",
    "Device",
    "DriverAlreadyOpenError",
    "DriverInfo",
    "DriverNotFoundError",
    "Error",
    "Event",
    "InvalidContextError",
    "InvalidDeviceError",
    "InvalidHandleError",
    "InvalidResourceTypeError",
    "InvalidValueError",
    "LaunchError",
    "NoDeviceError",
    "NotFoundError",
    "NotInitializedError",
    "NotPermittedError",
    "NotReadyError",
    "NotSupportedError",
    "OutOfMemoryError",
    "Partition",
    "Plan",
    "ResourceConfigurationError",
    "Resources",
    "SMResource",
    "Split",
    "SplitOptions",
    "Stream",
    "Verification",
    "VerifiedGroup",
    "WorkqueueResource",
    "cache_stats",
    "current_context",
    "devices",
    "driver_info",
    "info",
    "open_driver",
    "set_cache_limit",
    "split",
    "verify",
]

_number = _gcx.gcx_version()
__version__ = f"{_number // 10000}.{_number // 100 % 100}.{_number % 100}"

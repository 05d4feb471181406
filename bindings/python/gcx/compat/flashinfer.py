"""The functions of flashinfer.green_ctx, on gcx.

    -from flashinfer.green_ctx import split_device_green_ctx_by_sm_count
    +from gcx.compat.flashinfer import split_device_green_ctx_by_sm_count

Arguments, results and exceptions are the same, with these differences:

- Unequal counts work on every driver from CUDA 12.4 on, including [108, 24], which uses the whole
  device and so returns two streams. Counts that the device can give exactly aren't rounded.
- A resource has the usual fields of CUdevResource (`.sm.smCount`, `.sm.minSmPartitionSize`,
  `.sm.smCoscheduledAlignment`) and `.resource`, the gcx.SMResource.
- Repeating a split makes no new green contexts, and no new streams once the torch objects of the
  former ones are gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import gcx
from gcx._errors import in_python
from gcx.compat._common import current_device, driver_counts, torch_stream

__all__ = [
    "get_compute_capability",
    "get_sm_count_constraint",
    "split_device_green_ctx",
    "split_device_green_ctx_by_locality_domain",
    "split_device_green_ctx_by_sm_count",
]

_Made = TypeVar("_Made")
# Minimum SM count and alignment by the compute capability's major number.
_CONSTRAINTS = {6: (1, 1), 7: (2, 2), 8: (4, 2)}
_CONSTRAINT_FROM_9 = (8, 8)


def get_compute_capability(device: Any) -> tuple[int, int]:
    """Returns a device's compute capability: (9, 0) for an H100.

    Args:
        device: A torch.device.

    Raises:
        ValueError: It is no CUDA device.
    """
    if getattr(device, "type", "cuda") != "cuda":
        raise ValueError(f"the device must be a CUDA device, not {device}")
    return _device(device).compute_capability


def get_sm_count_constraint(major: int, minor: int) -> tuple[int, int]:
    """Returns the minimum SM count and the alignment of the driver's split by count for a compute
    capability: (8, 8) from 9.0 on. gcx can give other counts as well.

    Raises:
        ValueError: The compute capability is below 6.0.
    """
    if major >= 9:
        return _CONSTRAINT_FROM_9
    if major not in _CONSTRAINTS:
        raise ValueError(
            f"compute capability {major}.{minor} has no partitions; the minimum is 6.0"
        )
    return _CONSTRAINTS[major]


class SmFields:
    """The fields of a CUdevSmResource."""

    __slots__ = ("flags", "minSmPartitionSize", "smCoscheduledAlignment", "smCount")

    def __init__(self, resource: gcx.SMResource) -> None:
        self.smCount = resource.sm_count
        self.minSmPartitionSize = resource.min_partition_size
        self.smCoscheduledAlignment = resource.coscheduled_alignment
        self.flags = resource.flags

    def __repr__(self) -> str:
        return f"smCount : {self.smCount}"


class DeviceResource:
    """A CUdevResource: `sm` are its fields, `resource` is the gcx.SMResource."""

    __slots__ = ("resource", "sm")

    def __init__(self, resource: gcx.SMResource) -> None:
        self.resource = resource
        self.sm = SmFields(resource)

    def __repr__(self) -> str:
        return f"sm : {self.sm!r}"


def _hand_out(resources: Iterable[gcx.SMResource]) -> tuple[list[Any], list[DeviceResource]]:
    wanted = [resource for resource in resources if resource]
    return [torch_stream(resource) for resource in wanted], [
        DeviceResource(resource) for resource in wanted
    ]


def _device(dev: Any) -> gcx.Device:
    """Returns the device of a torch.device, a number, or a string like "cuda:0"."""
    if isinstance(dev, str):
        import torch

        dev = torch.device(dev)
    if getattr(dev, "type", None) == "cuda" and dev.index is None:
        dev = current_device()
    return gcx.Device(dev)


def _positive(value: object, what: str) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{what} must be an int, not {type(value).__name__}: {value!r}")
    number: int = value.__index__()
    if number <= 0:
        raise ValueError(f"{what} must be positive, not {number}")
    return number


def _as_runtime_error(call: Callable[[], _Made], explain: Callable[[], str] = str) -> _Made:
    try:
        return call()
    except gcx.Error as error:
        name = error.name.replace("GCX_", "CUDA_", 1)
        raise RuntimeError(
            f"CUDA error code={error.code}({name}): {explain()}{in_python(error.message)}"
        ) from error


def _rounding(sms: gcx.SMResource, counts: Sequence[int]) -> str:
    least, step = sms.min_partition_size, sms.coscheduled_alignment
    rounded = [max(least, (count + step - 1) // step * step) for count in counts]
    return (
        f"{list(counts)} SMs round up to {rounded}, {sum(rounded)} together; the device has "
        f"{sms.sm_count} (at least {least}, in steps of {step}). "
    )


def _split_counts(
    device: gcx.Device, counts: Sequence[int]
) -> tuple[list[Any], list[DeviceResource]]:
    sms = device.resources.sm

    def make() -> tuple[list[Any], list[DeviceResource]]:
        groups, remainder = sms.split(driver_counts(sms, counts))
        return _hand_out([*groups, remainder])

    return _as_runtime_error(make, lambda: _rounding(sms, counts))


def split_device_green_ctx(
    dev: Any, num_groups: int, min_count: int
) -> tuple[list[Any], list[DeviceResource]]:
    """Splits a device into equal groups and a remainder.

    Args:
        dev: A torch.device.
        num_groups: How many groups.
        min_count: SMs of each group, rounded up to whole atoms. The device's remainder atom makes
            one group larger: 16 groups of 8 on an H100 are one of 12 and 15 of 8.

    Returns:
        A torch stream and a resource for each group, and for the remainder unless it is empty.

    Raises:
        ValueError: num_groups or min_count isn't positive.
        RuntimeError: The groups don't fit; the message has the rounded counts and the device's
            size. Or the driver refused.
    """
    groups = _positive(num_groups, "num_groups")
    count = _positive(min_count, "min_count")
    device = _as_runtime_error(lambda: _device(dev))
    if groups > device.sm_count:
        raise RuntimeError(
            f"CUDA error code=915(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION): {groups} groups of "
            f"{count} SMs; the device has {device.sm_count} SMs"
        )
    return _split_counts(device, [count] * groups)


def split_device_green_ctx_by_sm_count(
    dev: Any, sm_counts: Sequence[int]
) -> tuple[list[Any], list[DeviceResource]]:
    """Splits a device into groups of these counts and a remainder.

    Args:
        dev: A torch.device.
        sm_counts: SMs of each group, each rounded up to what the device can give: on compute
            capability 9.0 7 gives 8, 10 gives 16, 17 gives 24.

    Returns:
        A torch stream and a resource for each count, and for the remainder unless it is empty.

    Raises:
        ValueError: sm_counts is empty, or a count isn't positive.
        RuntimeError: The counts don't fit; the message has the rounded counts and the device's
            size. Or the driver refused.
    """
    counts = [_positive(count, "a count of sm_counts") for count in sm_counts]
    if not counts:
        raise ValueError("sm_counts is empty; pass at least one count")
    return _split_counts(_as_runtime_error(lambda: _device(dev)), counts)


def split_device_green_ctx_by_locality_domain(
    dev: Any, backfill: bool = True
) -> tuple[list[Any], list[DeviceResource]]:
    """Splits a device into its locality domains, in their order.

    Args:
        dev: A torch.device.
        backfill: Give each group an equal share of all SMs, filled up with SMs of no domain;
            otherwise only its domain's SMs.

    Returns:
        A torch stream and a resource for each domain.

    Raises:
        RuntimeError: The device has fewer than two locality domains, or the driver is older than
            CUDA 13.4.
    """
    device = _as_runtime_error(lambda: _device(dev))
    domains = device.locality_domain_count
    if domains < 2:
        raise RuntimeError(
            f"{device.name} has fewer than two locality domains, or its driver is older than CUDA "
            "13.4"
        )
    options = gcx.SplitOptions(
        count=device.sm_count // domains if backfill else None,
        backfill=bool(backfill),
        locality_domain=list(range(domains)),
    )
    return _as_runtime_error(lambda: _hand_out(device.resources.sm.split(options).groups))

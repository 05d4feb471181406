"""What the modules share: PyTorch's streams and current device, and the driver's rounding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Union

import gcx

_Resources = Union[gcx.SMResource, Sequence[Union[gcx.SMResource, gcx.WorkqueueResource]]]


def torch_stream(resources: _Resources, priority: int = 0) -> Any:
    """Returns a torch stream on these resources, which keeps its gcx.Stream and context alive."""
    with gcx.Context(resources) as context:
        return context.stream(priority).torch()


def device_of(ordinal: int | None) -> gcx.Device:
    """Returns a device; None: PyTorch's current one."""
    return gcx.Device(current_device() if ordinal is None else ordinal)


def current_device() -> int:
    """Returns the ordinal of PyTorch's current device."""
    import torch

    return int(torch.cuda.current_device())


def driver_counts(sms: gcx.SMResource, counts: Sequence[int]) -> list[int]:
    """Returns the counts to request from gcx, to round as the driver's own split by count does.

    The driver rounds up to its alignment: 10 gives 16, which can run clusters of 8, while gcx gives
    12 on an H100. Counts that gcx gives exactly stay, and so do those that would not fit rounded,
    which the driver refuses.
    """
    requested = list(counts)
    least, step = sms.min_partition_size, sms.coscheduled_alignment
    rounded = [-(-max(count, least) // step) * step for count in requested]
    try:
        if list(sms.plan(requested).groups) == requested:
            return requested
        sms.plan(rounded)
    except gcx.ResourceConfigurationError:
        return requested
    return rounded

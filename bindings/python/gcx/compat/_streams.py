"""PyTorch streams over partitions, and PyTorch's current device."""

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

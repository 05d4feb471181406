"""What the interfaces share of PyTorch: its streams over partitions, and its current device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Union

import gcx

_Resources = Union[gcx.SMResource, Sequence[Union[gcx.SMResource, gcx.WorkqueueResource]]]


def torch_stream(resources: _Resources, priority: int = 0) -> Any:
    """A torch stream on these resources, which keeps its gcx.Stream, and that one its context."""
    with gcx.Context(resources) as context:
        return context.stream(priority).torch()


def current_device() -> int:
    """The number of PyTorch's current device."""
    import torch

    return int(torch.cuda.current_device())

"""The short way: one call that partitions a device and hands out streams."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType

from gcx import _gcx
from gcx._context import Context, Stream
from gcx._device import ordinal_of
from gcx._request import Count, SplitOptions
from gcx._resource import SMResource, WorkqueueResource, _sm


class Partition:
    """SMs with a context and a stream.

    Attributes:
        resource: Which SMs.
        context: The context over them, for further streams.
        stream: A stream, made with it.
    """

    __slots__ = ("__weakref__", "context", "resource", "stream")

    def __init__(
        self,
        resource: SMResource,
        *,
        priority: int = 0,
        workqueue: WorkqueueResource | None = None,
    ) -> None:
        if not isinstance(resource, SMResource):
            raise TypeError(
                f"a partition is made of a gcx.SMResource, not {type(resource).__name__}"
            )
        self.resource = resource
        self.context = Context(resource if workqueue is None else (resource, workqueue))
        self.stream = Stream(self.context, priority)

    @property
    def sm_count(self) -> int:
        """How many SMs it has."""
        return self.resource.sm_count

    @property
    def device(self) -> int:
        """The ordinal of the device."""
        return self.resource.device

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self.context.closed

    def close(self) -> None:
        """Closes the stream and the context; work that was submitted finishes.

        Raises:
            ContextInUseError: The context is current; nothing was closed then.
        """
        self.context.close()
        self.stream.close()

    def __enter__(self) -> Partition:
        self.context._live()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        if self.closed:
            return "<gcx.Partition, closed>"
        return (
            f"<gcx.Partition: {self.sm_count} SMs of device {self.device}, {self.resource.family}>"
        )


def split(
    counts: SplitOptions | Count | Sequence[Count],
    device: object = 0,
    *,
    family: str | None = None,
    exact: bool = False,
    priority: int = 0,
    workqueue: WorkqueueResource | None = None,
) -> list[Partition]:
    """Partitions a device and makes a stream in each part.

    >>> decode, prefill = gcx.split([24, None])

    Args:
        counts: SMs of each part, None for what the others leave; or SplitOptions. Counts are
            rounded up to what the device can give: look at sm_count.
        device: An ordinal, a gcx.Device, or a torch.device.
        family: "coscheduled", "fine" or "max-cluster", see SMResource.split.
        exact: Refuse a count that would be rounded.
        priority: Of the streams; lower is more urgent.
        workqueue: Configuration for the contexts, drivers of CUDA 13.1 and newer.

    Raises:
        As Device, SMResource.split and Context; nothing was made then.
    """
    whole_device = _sm(_gcx.gcx_device_get_resource(ordinal_of(device), _gcx.GCX_RESOURCE_SM))
    groups = whole_device.split(counts, family=family, exact=exact).groups
    parts: list[Partition] = []
    try:
        for group in groups:
            parts.append(Partition(group, priority=priority, workqueue=workqueue))
    except BaseException:
        for part in parts:
            part.close()
        raise
    return parts

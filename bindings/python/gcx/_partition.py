"""The short way: one call that partitions a device and hands out streams."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from typing import Any

from gcx import _gcx
from gcx._checks import DeviceLike, ordinal_of
from gcx._context import Context
from gcx._errors import described
from gcx._order import Waitable
from gcx._owned import Closing
from gcx._request import Counts, Family
from gcx._resource import SMResource, WorkqueueResource, sm_resource


class Partition(Closing):
    """SMs with a context and a stream.

    Where a stream is asked for it stands for its stream: it has `__cuda_stream__`, and wait and
    synchronize are those of the stream.

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
        private: bool = False,
    ) -> None:
        if not isinstance(resource, SMResource):
            raise TypeError(
                f"a partition is made of a gcx.SMResource, not {type(resource).__name__}"
            )
        self.resource = resource
        resources = resource if workqueue is None else (resource, workqueue)
        self.context = Context(resources, private=private)
        self.stream = self.context.stream(priority)

    @property
    def sm_count(self) -> int:
        """How many SMs it has."""
        return self.resource.sm_count

    @property
    def device(self) -> int:
        """The ordinal of the device."""
        return self.resource.device

    def __cuda_stream__(self) -> tuple[int, int]:
        """The protocol's version, 0, and the native stream."""
        return self.stream.__cuda_stream__()

    def wait(self, what: Waitable) -> None:
        """Holds all later work of the stream, see Stream.wait."""
        self.stream.wait(what)

    def synchronize(self) -> None:
        """Waits in the calling thread until all work of the stream has finished, see
        Stream.synchronize."""
        self.stream.synchronize()

    @property
    def closed(self) -> bool:
        """Whether it can't be used any more, since it, its context or its stream was closed."""
        return self.context.closed or self.stream.closed

    def close(self) -> None:
        """Closes the stream and the context; work that was submitted finishes.

        Raises:
            ContextInUseError: The context is current; nothing was closed then.
        """
        self.context.close()
        self.stream.close()

    def __enter__(self) -> Partition:
        self.context._live()
        self.stream._live()
        return self

    def __repr__(self) -> str:
        return "<gcx.Partition, closed>" if self.closed else described("Partition", self._describe)

    def _describe(self) -> str:
        return f": {self.sm_count} SMs of device {self.device}, {self.resource.family}"


class Partitions(Closing, tuple[Partition, ...]):
    """What gcx.split gave: the partitions, and what is left over. In a `with` they are closed
    at its end."""

    _remainder: SMResource

    @property
    def remainder(self) -> SMResource:
        """The SMs in no partition, a resource that can be empty."""
        return self._remainder

    def close(self) -> None:
        """Closes each partition.

        Raises:
            ContextInUseError: The context of one is current; the others were closed.
        """
        with ExitStack() as stack:
            for part in reversed(self):
                stack.callback(part.close)

    def __enter__(self) -> Partitions:
        return self

    def __repr__(self) -> str:
        return described("Partitions", self._describe)

    def _describe(self) -> str:
        counts = ", ".join("closed" if part.closed else str(part.sm_count) for part in self)
        return f" of {counts} SMs, {self.remainder.sm_count} left over"


def split(
    counts: Counts,
    *,
    device: DeviceLike = 0,
    family: Family | None = None,
    exact: bool = False,
    exclude_leased: bool = False,
    exclude_shared: bool = False,
    priority: int = 0,
    workqueue: WorkqueueResource | None = None,
    private: bool = False,
) -> Partitions:
    """Partitions a device and makes a stream in each part.

    >>> decode, prefill = gcx.split([24, None])

    Args:
        counts: SMs of each part, None for what the others leave; or SplitOptions. Each is the least
            that its part gets, see SMResource.split: look at sm_count.
        device: An ordinal, a gcx.Device, or a torch.device.
        family: "coscheduled", "fine" or "max-cluster", see SMResource.split.
        exact: Refuse a count that would be rounded.
        exclude_leased: Split only what no lease has, see acquire.
        exclude_shared: Leave out the atom with the SMs of Device.shared_sms, see SMResource.split.
        priority: Of the streams; lower is more urgent.
        workqueue: Configuration for the contexts, drivers of CUDA 13.1 and newer.
        private: Whether the contexts are to be shared with no others, see Context.

    Raises:
        As Device, SMResource.split and Context; nothing was made then.
    """
    sms = sm_resource(_gcx.gcx_device_get_resource(ordinal_of(device), _gcx.GCX_RESOURCE_SM))
    groups, remainder = sms.split(
        counts,
        family=family,
        exact=exact,
        exclude_leased=exclude_leased,
        exclude_shared=exclude_shared,
    )
    parts = Partitions(_made(groups, priority=priority, workqueue=workqueue, private=private))
    parts._remainder = remainder
    return parts


def _made(groups: Iterable[SMResource], **how: Any) -> list[Partition]:
    """A partition of each group, or none."""
    parts: list[Partition] = []
    try:
        for group in groups:
            parts.append(Partition(group, **how))
    except BaseException:
        for part in parts:
            part.close()
        raise
    return parts

"""Partitions: SMs with a context and a stream, made by one call."""

from __future__ import annotations

from contextlib import ExitStack

from gcx import _gcx
from gcx._checks import DeviceLike, ordinal_of
from gcx._context import Context
from gcx._errors import described
from gcx._event import Event
from gcx._order import Waitable
from gcx._owned import Closing
from gcx._request import Counts, Family
from gcx._resource import SMResource, WorkqueueResource, sm_resource


class Partition(Closing):
    """SMs with a context and a stream. It can be passed where a stream is expected, and then stands
    for its stream.

    Attributes:
        resource: Its SMs.
        context: The context over them, for more streams.
        stream: The stream that was made with it.
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
        """Returns the protocol's version, 0, and the CUstream."""
        return self.stream.__cuda_stream__()

    def wait(self, what: Waitable) -> None:
        """Makes later work of the stream wait, see Stream.wait."""
        self.stream.wait(what)

    def record(self, event: Event | None = None) -> Event:
        """Records the work submitted so far to the stream, see Stream.record."""
        return self.stream.record(event)

    def query(self) -> bool:
        """Returns whether all work of the stream has finished, without waiting."""
        return self.stream.query()

    def synchronize(self) -> None:
        """Blocks the calling thread until the stream's work has finished."""
        self.stream.synchronize()

    @property
    def closed(self) -> bool:
        """Whether it, its context or its stream was closed."""
        return self.context.closed or self.stream.closed

    def close(self) -> None:
        """Closes the stream and the context; submitted work finishes.

        Raises:
            ContextInUseError: The context is current; nothing was closed.
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
    """The result of gcx.split: the partitions and the remainder. A `with` closes them."""

    _remainder: SMResource

    @property
    def remainder(self) -> SMResource:
        """The SMs in no partition, which can be empty."""
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
        counts: SMs of each part, None for what the others leave; or SplitOptions. Counts are
            rounded up to whole atoms: read sm_count. See SMResource.split.
        device: An ordinal, a gcx.Device, or a torch.device.
        family, exact, exclude_leased, exclude_shared: See SMResource.split.
        priority: Of the streams; lower is more urgent.
        workqueue: A workqueue configuration; needs a driver of CUDA 13.1 or newer.
        private: Never share the contexts, see Context.

    Raises:
        As Device, SMResource.split and Context; then nothing was made.
    """
    sms = sm_resource(_gcx.gcx_device_get_resource(ordinal_of(device), _gcx.GCX_RESOURCE_SM))
    groups, remainder = sms.split(
        counts,
        family=family,
        exact=exact,
        exclude_leased=exclude_leased,
        exclude_shared=exclude_shared,
    )
    made: list[Partition] = []
    try:
        for group in groups:
            made.append(Partition(group, priority=priority, workqueue=workqueue, private=private))
    except BaseException:
        for part in made:
            part.close()
        raise
    parts = Partitions(made)
    parts._remainder = remainder
    return parts

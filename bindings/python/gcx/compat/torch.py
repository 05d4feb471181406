"""The classes of torch.cuda.green_contexts, on gcx.

    -from torch.cuda.green_contexts import GreenContext, SMPartition
    +from gcx.compat.torch import GreenContext, SMPartition

They take the arguments of all versions of PyTorch that have them, with these differences:

- They work with every build of PyTorch, on every driver from CUDA 12.4 on, with any SM count that
  the device can give. Before 13.1 PyTorch can't split into disjoint contexts.
- `sm_count` and `resource` tell what the context has. `sm_partition` also takes a gcx.SMResource.
- A second context of the same size takes microseconds and loses no device memory.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, Union

import gcx
from gcx._checks import whole
from gcx.compat._common import device_of, driver_counts

__all__ = ["GreenContext", "SMPartition"]

_STREAMS = 32
_SCOPES = {"device_ctx": "device_ctx", "balanced": "green_ctx_balanced"}


# One value for each group, or one for all.
_Counts = Union[int, Sequence[int]]
_Flags = Union[bool, Sequence[bool]]
_Domains = Union[int, None, Sequence[Union[int, None]]]


class SMPartition:
    """A set of SMs, as PyTorch's class of this name: a value that reserves nothing.

    Made by from_device, split and GreenContext.sm_partition.

    Attributes:
        resource: The same set as a gcx.SMResource.
    """

    def __init__(self, resource: gcx.SMResource) -> None:
        if not isinstance(resource, gcx.SMResource):
            raise TypeError(
                f"an SMPartition is made of a gcx.SMResource, not {type(resource).__name__}"
            )
        self.resource = resource

    @classmethod
    def from_device(cls, device_id: int | None = None) -> SMPartition:
        """Returns all SMs of a device; None: of PyTorch's current one."""
        return cls(device_of(device_id).resources.sm)

    @property
    def device_id(self) -> int:
        """The device's ordinal."""
        return self.resource.device

    @property
    def sm_count(self) -> int:
        """How many SMs it has."""
        return self.resource.sm_count

    @property
    def coscheduled_sm_count(self) -> int:
        """The step, in SMs, of the sizes that splitting this can give."""
        return self.resource.coscheduled_alignment

    @property
    def locality_domain_id(self) -> int | None:
        """The locality domain that was requested for it, if any."""
        return self.resource.locality_domain

    def split(
        self,
        *,
        num_sms: _Counts = 0,
        coscheduled_sm_count: _Counts = 0,
        preferred_coscheduled_sm_count: _Counts = 0,
        backfill: _Flags = False,
        locality_domain_ids: _Domains = None,
    ) -> tuple[tuple[SMPartition, ...], SMPartition | None]:
        """Splits it into disjoint groups and the remainder, which is None if nothing is left.

        Each option is one value for all groups or has one for each. Counts are not rounded. On
        drivers before CUDA 13.1 the coscheduling that the resource guarantees anyway can be
        requested, and nothing else. A remainder and a group can be split again.

        Args:
            num_sms: SMs of each group. 0: what the others leave.
            coscheduled_sm_count, preferred_coscheduled_sm_count, backfill: See gcx.SplitOptions.
            locality_domain_ids: Locality domains; needs a driver of CUDA 13.4 or newer.

        Raises:
            ValueError: Lists of different lengths, an empty one, or a negative number.
            gcx.ResourceConfigurationError: The device can't give these counts.
            gcx.NotSupportedError: The driver is too old for the options.
        """
        options = {
            "num_sms": num_sms,
            "coscheduled_sm_count": coscheduled_sm_count,
            "preferred_coscheduled_sm_count": preferred_coscheduled_sm_count,
            "backfill": backfill,
            "locality_domain_ids": locality_domain_ids,
        }
        groups = _broadcast(options)
        counts = [count or None for count in groups["num_sms"]]
        alignment = self.resource.coscheduled_alignment
        coscheduled = groups["coscheduled_sm_count"]
        special = any(groups["backfill"]) or any(
            domain is not None for domain in groups["locality_domain_ids"]
        )
        guaranteed = all(alignment % (count or 1) == 0 for count in coscheduled)
        chosen: gcx.SplitOptions | list[int | None] = counts
        exact = True
        if special or not guaranteed:
            chosen = gcx.SplitOptions(
                counts,
                [count or None for count in coscheduled],
                [count or None for count in groups["preferred_coscheduled_sm_count"]],
                groups["backfill"],
                groups["locality_domain_ids"],
            )
            exact = False  # CUDA's own rules apply, which round nothing.
        parts, remainder = self.resource.split(chosen, exact=exact)
        return tuple(map(SMPartition, parts)), SMPartition(remainder) if remainder else None

    def __repr__(self) -> str:
        return f"<SMPartition of {self.sm_count} SMs on device {self.device_id}>"


def _broadcast(options: dict[str, Any]) -> dict[str, tuple[Any, ...]]:
    """Returns one value of each option for each group."""
    lists = {
        name: tuple(value)
        for name, value in options.items()
        if isinstance(value, Sequence) and not isinstance(value, (str, bytes))
    }
    lengths = {len(values) for values in lists.values()}
    if len(lengths) > 1:
        raise ValueError(f"{', '.join(lists)} have different lengths")
    count = lengths.pop() if lengths else 1
    if count == 0:
        raise ValueError("a split has at least one group")
    groups = {name: lists.get(name, (value,) * count) for name, value in options.items()}
    for name, values in groups.items():
        kind = bool if name == "backfill" else int
        for value in values:
            if value is None and name == "locality_domain_ids":
                continue
            if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
                raise ValueError(f"{name} takes {kind.__name__}, not {value!r}")
            if value < 0:
                raise ValueError(f"{name} must not be negative: {value}")
    return groups


class GreenContext:
    """A part of a device's SMs for PyTorch's work.

    Args:
        num_sms: How many SMs, rounded up to what the device can give; None: all.
        sm_partition: The SMs themselves, instead of a number: an SMPartition or gcx.SMResource.
        workqueue_scope: "device_ctx" or "balanced"; needs a driver of CUDA 13.1 or newer.
        workqueue_concurrency_limit: How many stream-ordered workloads are expected to run
            concurrently; needs workqueue_scope.
        device_id: The device's ordinal; None: PyTorch's current device.

    Raises:
        RuntimeError: Neither num_sms nor sm_partition nor workqueue_scope is given; or a
            gcx.Error of gcx.SMResource.split or gcx.Context.
        ValueError: Both num_sms and sm_partition are given; an unknown scope; sm_partition is of
            another device than device_id.
        TypeError: sm_partition is neither an SMPartition nor a gcx.SMResource.
    """

    def __init__(
        self,
        *,
        num_sms: int | None = None,
        sm_partition: SMPartition | gcx.SMResource | None = None,
        workqueue_scope: str | None = None,
        workqueue_concurrency_limit: int | None = None,
        device_id: int | None = None,
    ) -> None:
        if num_sms is None and sm_partition is None and workqueue_scope is None:
            raise RuntimeError("pass num_sms, sm_partition or workqueue_scope")
        if num_sms is not None and sm_partition is not None:
            raise ValueError("pass num_sms or sm_partition, not both")
        if isinstance(sm_partition, SMPartition):
            sm_partition = sm_partition.resource
        if sm_partition is not None and not isinstance(sm_partition, gcx.SMResource):
            raise TypeError(
                "sm_partition must be an SMPartition or a gcx.SMResource, not "
                f"{type(sm_partition).__name__}"
            )
        if workqueue_concurrency_limit is not None and workqueue_scope is None:
            raise RuntimeError("workqueue_concurrency_limit needs workqueue_scope")
        if sm_partition is not None:
            if device_id is not None and gcx.Device(device_id).ordinal != sm_partition.device:
                raise ValueError(
                    f"sm_partition is of device {sm_partition.device}, not of {device_id}"
                )
            device_id = sm_partition.device
        device = device_of(device_id)
        resource = device.resources.sm if sm_partition is None else sm_partition
        if num_sms is not None:
            count = whole(num_sms, "num_sms", 1)
            resource = resource.split(driver_counts(resource, [count])).groups[0]
        resources: list[gcx.SMResource | gcx.WorkqueueResource] = [resource]
        if workqueue_scope is not None:
            if workqueue_scope not in _SCOPES:
                raise ValueError(
                    f"workqueue_scope must be one of {', '.join(map(repr, _SCOPES))}, "
                    f"not {workqueue_scope!r}"
                )
            resources.append(
                device.resources.workqueue.configured(
                    "device_ctx" if workqueue_scope == "device_ctx" else "green_ctx_balanced",
                    workqueue_concurrency_limit,
                )
            )
        self._resource = resource
        self._context = gcx.Context(resources)
        self._streams: list[gcx.Stream] = []
        self._issued = 0
        self._lock = threading.Lock()
        self._before = threading.local()

    @staticmethod
    def create(
        num_sms: int | None = None,
        device_id: int | None = None,
        *,
        sm_partition: SMPartition | gcx.SMResource | None = None,
        workqueue_scope: str | None = None,
        workqueue_concurrency_limit: int | None = None,
    ) -> GreenContext:
        """Creates one; num_sms and device_id may be positional, as in older versions."""
        return GreenContext(
            num_sms=num_sms,
            sm_partition=sm_partition,
            workqueue_scope=workqueue_scope,
            workqueue_concurrency_limit=workqueue_concurrency_limit,
            device_id=device_id,
        )

    @staticmethod
    def split(
        *,
        num_sms: _Counts = 0,
        coscheduled_sm_count: _Counts = 0,
        preferred_coscheduled_sm_count: _Counts = 0,
        backfill: _Flags = False,
        locality_domain_ids: _Domains = None,
        workqueue_scope: str | None = None,
        workqueue_concurrency_limit: int | None = None,
        device_id: int | None = None,
    ) -> tuple[GreenContext, ...]:
        """Creates contexts with disjoint SMs of a device; SMs that are left over are unused.

        Takes the options of SMPartition.split, and for each context those of GreenContext. Raises
        what these raise; then no context was created.
        """
        partitions, _ = SMPartition.from_device(device_id).split(
            num_sms=num_sms,
            coscheduled_sm_count=coscheduled_sm_count,
            preferred_coscheduled_sm_count=preferred_coscheduled_sm_count,
            backfill=backfill,
            locality_domain_ids=locality_domain_ids,
        )
        return tuple(
            GreenContext(
                sm_partition=partition,
                workqueue_scope=workqueue_scope,
                workqueue_concurrency_limit=workqueue_concurrency_limit,
            )
            for partition in partitions
        )

    @staticmethod
    def max_workqueue_concurrency(device_id: int | None = None) -> int:
        """Returns the device's default limit of concurrent stream-ordered workloads.

        Raises:
            gcx.NotSupportedError: The driver is older than CUDA 13.1.
        """
        device = device_of(device_id)
        return device.resources.workqueue.concurrency_limit

    @property
    def device_id(self) -> int:
        """The device's ordinal."""
        return self._context.device

    @property
    def sm_count(self) -> int:
        """How many SMs the context has."""
        return self._context.sm_count

    @property
    def resource(self) -> gcx.SMResource:
        """Its SMs."""
        self._context._live()
        return self._resource

    @property
    def sm_partition(self) -> SMPartition:
        """Its SMs, which can be split again."""
        return SMPartition(self.resource)

    @property
    def locality_domain_id(self) -> int | None:
        """The locality domain that was requested for its SMs, if any."""
        return self.resource.locality_domain

    def Stream(self) -> Any:
        """Returns one of 32 torch streams of this context, in turn. Order them by events.

        Raises:
            gcx.InvalidHandleError: The context was closed.
        """
        return self._stream(1 + self._next()).torch()

    def _next(self) -> int:
        with self._lock:
            self._issued += 1
            return (self._issued - 1) % _STREAMS

    def _stream(self, number: int) -> gcx.Stream:
        """Returns a stream of the pool; set_context uses number 0."""
        self._context._live()
        with self._lock:
            while len(self._streams) <= number:
                self._streams.append(self._context.stream())
            return self._streams[number]

    def set_context(self) -> None:
        """Makes the context current in the calling thread, and one of its streams PyTorch's current
        one, which waits for the stream that was current. Don't await before pop_context.

        Raises:
            RuntimeError: It is set in this thread already.
        """
        import torch

        if getattr(self._before, "streams", None) is not None:
            raise RuntimeError("this green context is set already in this thread; pop it first")
        parent = torch.cuda.current_stream()
        event = torch.cuda.Event()
        event.record(parent)
        # Another device than the current one has its own current stream.
        replaced = torch.cuda.current_stream(self.device_id)
        self._context.push()
        try:
            stream = self._stream(0).torch()
            stream.wait_event(event)
            torch.cuda.set_stream(stream)
        except BaseException:
            self._context.pop()
            raise
        self._before.streams = parent, replaced

    def pop_context(self) -> None:
        """Restores the context, stream and device before set_context. That stream waits for the one
        that is current now.

        Raises:
            RuntimeError: The context isn't the current one of this thread.
        """
        import torch

        before = getattr(self._before, "streams", None)
        if before is None or gcx.current_context() is not self._context:
            raise RuntimeError("this green context isn't the current context of this thread")
        parent, replaced = before
        event = torch.cuda.Event()
        event.record(torch.cuda.current_stream())
        torch.cuda.set_stream(replaced)
        self._context.pop()
        self._before.streams = None
        parent.wait_event(event)
        torch.cuda.set_stream(parent)

    def close(self) -> None:
        """Releases the context; streams that were returned keep it alive.

        Raises:
            gcx.ContextInUseError: It is current.
        """
        self._context.close()
        with self._lock:
            self._streams.clear()

    def __repr__(self) -> str:
        if self._context.closed:
            return "<GreenContext, closed>"
        return f"<GreenContext of {self._resource.sm_count} SMs on device {self._resource.device}>"

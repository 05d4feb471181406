"""The green contexts of this process: those in use, and those that gcx keeps."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple, Union

from gcx import _gcx
from gcx._cancel import Cancel, joined
from gcx._checks import DeviceLike, flag_of, items_of, ordinal_of, whole
from gcx._errors import InvalidValueError
from gcx._partition import Partition
from gcx._resource import SMResource, sm_resource


class CacheStats(NamedTuple):
    """Counters of green contexts, since the driver was opened.

    Attributes:
        limit: How many are kept without context or stream on each device, see set_cache_limit.
        in_use: Those with a context or stream.
        kept: Those without.
        hits: Contexts given from kept ones or from ones in use.
        misses: Green contexts made.
        evicted: Destroyed by the limit and by trim_cache.
        lost: Dead by a reset of the device.
        prepared: Made ahead of time, of those made.
        making_ns: Nanoseconds in the driver making them, all together.
        longest_making_ns: Of the one that took longest.
        kept_streams: Streams that were given up, of all contexts.
    """

    limit: int
    in_use: int
    kept: int
    hits: int
    misses: int
    evicted: int
    lost: int
    prepared: int
    making_ns: int
    longest_making_ns: int
    kept_streams: int


def cache_stats() -> CacheStats:
    """What is kept, how often that helped, and what it costs."""
    return CacheStats(*_gcx.gcx_cache_get_stats())


def set_cache_limit(kept_contexts: int) -> None:
    """Sets how many green contexts without context or stream are kept on each device; 64 at first.

    Those beyond are destroyed, the longest unused first. The driver gives little of their memory
    back, about 1 MiB of 5, so that a limit which is too small costs more than it saves.

    Contexts made by gcx.prewarm and gcx.prepare count towards the limit, but only this function and
    gcx.trim_cache destroy them: a limit below their number destroys the others first.
    """
    _gcx.gcx_cache_set_limit(whole(kept_contexts, "kept_contexts"))


class CacheTrimmed(NamedTuple):
    """What trim_cache came to.

    Attributes:
        contexts: Green contexts destroyed.
        streams: Streams that were given up, destroyed: with their contexts, and beside.
        contexts_left: Beyond the number, but a stream that was given up captures in them.
        streams_left: Given up, but at work or capturing still.
        bytes: Device memory that is free now and was not before, all devices together; what others
            did meanwhile is in it.
    """

    contexts: int
    streams: int
    contexts_left: int
    streams_left: int
    bytes: int


def trim_cache(kept_contexts: int) -> CacheTrimmed:
    """Destroys the kept green contexts beyond that number now, the longest unused first, and the
    streams that were given up of all that stay, but those at work. The limit stays as it is.

    Never while a library may still name such a stream, as PyTorch's allocator does by the tensors
    that were used in it.

    Raises:
        Error: The driver refuses to destroy something; the rest was trimmed then.
    """
    return CacheTrimmed(*_gcx.gcx_cache_trim(whole(kept_contexts, "kept_contexts")))


_Prewarmed = Union[SMResource, Partition]


def prewarm(
    resources: _Prewarmed | Iterable[_Prewarmed],
    *,
    for_leases: bool = False,
    progress: Callable[[int, int], object] | None = None,
    cancel: Cancel | None = None,
) -> None:
    """Makes the contexts of SM resources beforehand, and keeps them, so that gcx.split, gcx.Context
    and gcx.acquire over the same SMs take microseconds later.

    >>> gcx.prewarm(sms.split([24, None]).groups, progress=lambda done, count: print(done, count))

    Making one takes milliseconds and waits for every kernel that runs on the device: call it before
    the work starts, or in a thread that has nothing else to do. None is made
    again. The layouts of leases that live are made by gcx.prepare. Ctrl-C gives the rest up once
    the context of that moment is made.

    Args:
        resources: SM resources or partitions, one or several.
        for_leases: As leases over these SMs have them, with queues of their own on drivers of CUDA
            13.1 and newer.
        progress: Called in this thread after each with how many are done and how many there are. It
            may call gcx. What it raises gives the rest up, and is raised here.
        cancel: Gives the rest up, from another thread or from progress.

    Raises:
        NotPermittedError: Given up by Cancel.signal.
        InvalidValueError: There are none; a device would have more prepared contexts than its
            limit, see gcx.set_cache_limit. None was made then.
        InvalidResourceTypeError: Of a structured split, for leases.
        As gcx.Context. What was made before stays kept.
    """
    if isinstance(resources, (SMResource, Partition)):
        resources = (resources,)
    items = items_of(resources)
    if items is None:
        raise TypeError(
            f"prewarm takes gcx.SMResource or gcx.Partition, not {type(resources).__name__}"
        )
    if not items:
        raise InvalidValueError("there are no resources in it")
    if progress is not None and not callable(progress):
        raise TypeError(f"progress must be callable, not {type(progress).__name__}")
    if cancel is not None and not isinstance(cancel, Cancel):
        raise TypeError(f"cancel must be a gcx.Cancel, not {type(cancel).__name__}")
    values = [_sms_of(item)._value for item in items]
    flags = _gcx.GCX_PREPARE_FOR_LEASES if flag_of(for_leases, "for_leases") else 0
    with joined(cancel) as own:
        _gcx.gcx_cache_prepare(values, flags, own._live(), progress)


def _sms_of(item: object) -> SMResource:
    if isinstance(item, Partition):
        return item.resource
    if not isinstance(item, SMResource):
        raise TypeError(f"prewarm takes gcx.SMResource or gcx.Partition, not {type(item).__name__}")
    return item


class LiveContext(NamedTuple):
    """A green context in use, whoever in this process made it by gcx.

    Attributes:
        id: Context.id, Stream.context_id.
        device: The ordinal of the device.
        sm_count: How many SMs it has.
        handle_count: Contexts that stand for it.
        stream_count: Streams in it.
        private: Whether it is shared with no others.
        resource: Which SMs it has.
    """

    id: int
    device: int
    sm_count: int
    handle_count: int
    stream_count: int
    private: bool
    resource: SMResource


def live_contexts(device: DeviceLike | None = None) -> list[LiveContext]:
    """The green contexts with a context or stream, of one device or of all.

    Raises:
        InvalidDeviceError: No such device.
    """
    found = _gcx.gcx_context_list(-1 if device is None else ordinal_of(device))
    return [
        LiveContext(*live[:5], bool(live[5] & _gcx.GCX_CONTEXT_PRIVATE), sm_resource(live[6]))
        for live in found
    ]

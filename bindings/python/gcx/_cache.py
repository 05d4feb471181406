"""The cache of green contexts: those in use, and those cached without a user."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Union

from gcx import _gcx
from gcx._cancel import Cancel, check_cancel, joined
from gcx._checks import DeviceLike, flag_of, items_of, ordinal_of, whole
from gcx._errors import InvalidValueError
from gcx._partition import Partition
from gcx._resource import SMResource
from gcx.generated.records import (
    CacheStats,
    CacheTrimmed,
    LiveContext,
    cache_stats_of,
    cache_trimmed_of,
    live_context_of,
)


def cache_stats() -> CacheStats:
    """Returns the counters of the context cache."""
    return cache_stats_of(_gcx.gcx_cache_get_stats())


def set_cache_limit(max_contexts: int) -> None:
    """Sets how many unused green contexts are cached on each device; 64 by default.

    Contexts beyond the limit are destroyed, the least recently used first. The driver returns only
    about 1 of their 5 MiB, so a limit that is too low costs more than it saves. Contexts made by
    gcx.prewarm and gcx.prepare count towards the limit and are destroyed last.
    """
    _gcx.gcx_cache_set_limit(whole(max_contexts, "max_contexts"))


def trim_cache(max_contexts: int) -> CacheTrimmed:
    """Destroys the cached green contexts beyond that number, the least recently used first, and the
    released streams without work in all others. The limit stays.

    Note: don't call it while a library may still name such a stream, as PyTorch's allocator does
    for tensors that were used in it.

    Raises:
        Error: The driver failed to destroy something; the rest was trimmed.
    """
    return cache_trimmed_of(_gcx.gcx_cache_trim(whole(max_contexts, "max_contexts")))


_Prewarmed = Union[SMResource, Partition]


def prewarm(
    resources: _Prewarmed | Iterable[_Prewarmed],
    *,
    for_leases: bool = False,
    progress: Callable[[int, int], object] | None = None,
    cancel: Cancel | None = None,
) -> None:
    """Creates the contexts of SM resources and caches them, so that gcx.split, gcx.Context and
    gcx.acquire of the same SMs take microseconds later.

    >>> gcx.prewarm(sms.split([24, None]).groups, progress=lambda done, count: print(done, count))

    Creating one takes milliseconds and waits for all running kernels: call it before the work
    starts, or in a second thread. Cached contexts are skipped. Use gcx.prepare for the layouts of
    live leases. Ctrl-C cancels it after the current context.

    Args:
        resources: SM resources or partitions, one or several.
        for_leases: Create them for leases, which have workqueues of their own on drivers of CUDA
            13.1 and newer.
        progress: Called in this thread after each one with the number done and the total. It may
            call gcx; an exception cancels the rest and is raised here.
        cancel: Cancels the rest, from another thread or from progress.

    Raises:
        CancelledError: Cancel.signal was called.
        CacheLimitExceededError: A device would have more prepared contexts than its limit, see
            gcx.set_cache_limit. None was made.
        InvalidValueError: There are none.
        InvalidResourceTypeError: for_leases with a structured split.
        As gcx.Context. The contexts made so far stay cached.
    """
    items = items_of(resources)
    if items is None:
        items = [resources]
    if not items:
        raise InvalidValueError("there are no resources in it")
    if progress is not None and not callable(progress):
        raise TypeError(f"progress must be callable, not {type(progress).__name__}")
    check_cancel(cancel)
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


def live_contexts(device: DeviceLike | None = None) -> list[LiveContext]:
    """Returns the green contexts in use, of one device or of all.

    Raises:
        InvalidDeviceError: No such device.
    """
    found = _gcx.gcx_context_list(-1 if device is None else ordinal_of(device))
    return [live_context_of(raw) for raw in found]

"""The green contexts of this process: those in use, and those that gcx keeps."""

from __future__ import annotations

from typing import NamedTuple

from gcx import _gcx
from gcx._checks import DeviceLike, ordinal_of, whole
from gcx._resource import SMResource, sm_resource


class CacheStats(NamedTuple):
    """Counters of green contexts, since the driver was opened.

    Attributes:
        limit: How many are kept without context or stream, see set_cache_limit.
        in_use: Those with a context or stream.
        kept: Those without.
        hits: Contexts given from kept ones or from ones in use.
        misses: Green contexts made.
        evicted: Destroyed by the limit.
        lost: Dead by a reset of the device.
    """

    limit: int
    in_use: int
    kept: int
    hits: int
    misses: int
    evicted: int
    lost: int


def cache_stats() -> CacheStats:
    """What is kept, and how often that helped."""
    return CacheStats(*_gcx.gcx_cache_get_stats())


def set_cache_limit(kept_contexts: int) -> None:
    """How many green contexts without context or stream are kept, over all devices; 64 at first.

    Each holds about 5 MiB of device memory. Those beyond are destroyed, the longest unused first.
    """
    _gcx.gcx_cache_set_limit(whole(kept_contexts, "kept_contexts"))


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

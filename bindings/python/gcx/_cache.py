"""The green contexts that gcx keeps."""

from __future__ import annotations

from typing import NamedTuple

from gcx import _gcx
from gcx._checks import whole


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

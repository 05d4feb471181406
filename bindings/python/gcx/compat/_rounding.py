"""Rounds counts as the driver's own split by count does."""

from __future__ import annotations

from collections.abc import Sequence

import gcx


def driver_counts(sms: gcx.SMResource, counts: Sequence[int]) -> list[int]:
    """Returns the counts to request from gcx.

    The driver rounds up to its alignment: 10 gives 16, which can run clusters of 8, while gcx gives
    12 on an H100. Counts that gcx gives exactly stay, and so do those that would not fit rounded,
    which the driver refuses.
    """
    requested = list(counts)
    least, step = sms.min_partition_size, sms.coscheduled_alignment
    rounded = [-(-max(count, least) // step) * step for count in requested]
    try:
        if list(sms.plan(requested).groups) == requested:
            return requested
        sms.plan(rounded)
    except gcx.ResourceConfigurationError:
        return requested
    return rounded

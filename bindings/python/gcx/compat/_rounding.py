"""Counts as the driver's own split by count rounds them, which users of other libraries know."""

from __future__ import annotations

from collections.abc import Sequence

import gcx


def driver_counts(sms: gcx.SMResource, counts: Sequence[int]) -> list[int]:
    """The counts to ask gcx for.

    gcx gives 12 SMs of an H100 for 10, since the device has an odd group of 12; the driver rounds
    up to whole steps and gives 16, on which clusters of 8 run. What gcx gives exactly is asked for
    as it is, and so is what would not fit when it is rounded: there the driver refuses.
    """
    asked = list(counts)
    least, step = sms.min_partition_size, sms.coscheduled_alignment
    rounded = [-(-max(count, least) // step) * step for count in asked]
    try:
        if list(sms.plan(asked).groups) == asked:
            return asked
        sms.plan(rounded)
    except gcx.ResourceConfigurationError:
        return asked
    return rounded

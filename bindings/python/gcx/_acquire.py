"""Acquiring leases: waiting for SMs that others have, and who has them."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Any, NamedTuple, SupportsIndex

from gcx import _gcx
from gcx._cancel import Cancel, interruptible
from gcx._checks import DeviceLike, chosen, flag_of, ordinal_of, text_of, whole
from gcx._errors import AlreadyAcquiredError, InvalidValueError
from gcx._lease import Lease, count_or_rest, lease_of, sm_count_of
from gcx._owned import Owned
from gcx._request import FAMILIES, Count, Family
from gcx._resource import FAMILY_NAMES, SMResource, sm_resource
from gcx._stream import Claim, priority_of

_LONGEST = (_gcx.GCX_FOREVER - 1) / 1000


def acquire(
    sm_count: Count,
    *,
    name: str = "",
    device: DeviceLike = 0,
    min_sm_count: SupportsIndex | None = None,
    shared: bool = False,
    exclusive_sm_count: SupportsIndex = 0,
    family: Family | None = None,
    timeout: float | None = 0,
    cancel: Cancel | None = None,
    priority: int = 0,
    require_workqueues: bool = False,
) -> Lease:
    """Acquires SMs that nobody else in the process has.

    >>> decode, prefill = gcx.acquire(32, name="decode"), gcx.acquire(None, name="prefill")

    Those who wait are served in the order in which they came, so that no large request starves;
    meanwhile nobody who came later is given what is free. Ctrl-C gives the wait up.

    Args:
        sm_count: How many SMs, rounded up to what the device can give; None: all that can be had.
            Look at the lease's sm_count.
        name: For messages and gcx.leases; at most 63 bytes of UTF-8.
        device: An ordinal, a gcx.Device, or a torch.device.
        min_sm_count: So many will do if those asked for can't be had. None: no less than asked for,
            and of the rest the least that the device can give.
        shared: Others that are shared may have its SMs too.
        exclusive_sm_count: Of a shared lease, how many of the SMs are to be its alone.
        family: "coscheduled" (None), "fine" or "max-cluster", see SMResource.split.
        timeout: Seconds to wait for the SMs; 0: don't; None: for ever.
        cancel: Gives the wait up from another thread.
        priority: Of the lease's `stream`; lower is more urgent.
        require_workqueues: Refuse a driver that has no queues of its own for the lease. From CUDA 13.1 on
            all leases have them; before, leases share the process's, see gcx.queue_info.

    Raises:
        AlreadyAcquiredError: Others have the SMs, or wait for them, and after the time-out still
            did; the message says who.
        NotPermittedError: The wait was given up by Cancel.signal.
        ResourceConfigurationError: The device has not so many SMs, whoever has them.
        NotReadyError: There are leases of another family, and which SMs the families hold isn't
            known: call Device.map_sms for both.
        NotSupportedError: require_workqueues on a driver before CUDA 13.1.
        InvalidValueError, TypeError: A count of 0, min_sm_count or exclusive_sm_count above
            sm_count, a name that is too long, a negative time-out.
    """
    claim = Claim()
    lease = lease_of(claim, priority_of(priority))
    wanted = (
        ordinal_of(device),
        sm_count_of(sm_count),
        (_gcx.GCX_LEASE_SHARED if flag_of(shared, "shared") else 0)
        | (
            _gcx.GCX_LEASE_REQUIRE_WORKQUEUES
            if flag_of(require_workqueues, "require_workqueues")
            else 0
        ),
        _gcx.GCX_SM_FAMILY_NONE if family is None else chosen(family, "family", FAMILIES),
        0 if min_sm_count is None else whole(min_sm_count, "min_sm_count", 1),
        whole(exclusive_sm_count, "exclusive_sm_count"),
    )
    text = text_of(name, "name", _gcx.GCX_MAX_LEASE_NAME - 1)

    def ask(for_so_long: int, giving_up: int) -> None:
        _gcx.gcx_lease_acquire(*wanted, for_so_long, giving_up, text, claim)

    take(ask, claim, timeout, cancel)
    return lease


def take(
    ask: Callable[[int, int], None], claim: Owned, timeout: float | None, cancel: Cancel | None
) -> None:
    """Asks for SMs, with milliseconds and a Cancel's handle; Ctrl-C gives the wait up. claim is
    what ask fills in."""
    if cancel is not None and not isinstance(cancel, Cancel):
        raise TypeError(f"cancel must be a gcx.Cancel, not {type(cancel).__name__}")
    milliseconds = _milliseconds(timeout)
    giving_up = 0 if cancel is None else cancel._live()
    if milliseconds == 0 or threading.get_ident() != threading.main_thread().ident:
        ask(milliseconds, giving_up)
        return
    try:
        ask(0, giving_up)  # Most often they are free, which needs no thread.
    except AlreadyAcquiredError:
        pass
    else:
        return
    try:
        interruptible(lambda own: ask(milliseconds, own), cancel)
    except BaseException:
        claim.close()  # What was granted in the same moment.
        raise


class LiveLease(NamedTuple):
    """A lease of this process, whoever acquired it; or somebody who waits for one.

    Attributes:
        id: Lease.id.
        device: The ordinal of the device.
        family: How its SMs are taken.
        shared: Whether others that are shared may have its SMs too.
        sm_count: How many SMs it has; of one that waits how many it asked for, None if
            the rest.
        exclusive_sm_count: How many of them are its alone.
        stream_count: Its live streams.
        waiting: Whether it has nothing yet and waits in gcx.acquire.
        name: Its name, "" if none.
        resource: Which SMs it has; of one that waits none.
    """

    id: int
    device: int
    family: str
    shared: bool
    sm_count: int | None
    exclusive_sm_count: int
    stream_count: int
    waiting: bool
    name: str
    resource: SMResource


def leases(device: DeviceLike | None = None) -> list[LiveLease]:
    """The leases of one device or of all: those that have SMs in the order in which they were
    acquired, then those that wait, the first first.

    Raises:
        InvalidDeviceError: No such device.
    """
    found = _gcx.gcx_lease_list(-1 if device is None else ordinal_of(device))
    return [
        LiveLease(
            number, its_device, FAMILY_NAMES[family], bool(flags & _gcx.GCX_LEASE_SHARED),
            count_or_rest(sm_count), exclusive, streams, bool(waits), name, sm_resource(resource),
        )
        for number, its_device, family, flags, sm_count, exclusive, streams, waits, name, resource
        in found
    ]  # fmt: skip


def _milliseconds(timeout: Any) -> int:
    if timeout is None:
        return _gcx.GCX_FOREVER
    if isinstance(timeout, (bool, str, bytes)) or not (
        hasattr(timeout, "__float__") or hasattr(timeout, "__index__")
    ):
        raise TypeError(
            f"timeout must be a number of seconds or None, not {type(timeout).__name__}: "
            f"{timeout!r}"
        )
    try:
        seconds = float(timeout)
    except OverflowError:  # An int that no float is as large as.
        seconds = timeout = math.inf
    if not 0 <= seconds <= _LONGEST:  # So that not-a-number is refused too.
        raise InvalidValueError(
            f"timeout must be 0 to {_LONGEST:.0f} seconds, not {timeout}; None waits for ever"
        )
    return math.ceil(seconds * 1000)

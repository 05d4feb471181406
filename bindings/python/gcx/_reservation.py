"""Reservations: exclusive use of SMs among processes."""

from __future__ import annotations

import os
from os import PathLike
from typing import Any, SupportsIndex, Union

from gcx import _gcx
from gcx._cancel import Cancel, wait_for
from gcx._checks import DeviceLike, flag_of, ordinal_of
from gcx._errors import NotInitializedError
from gcx._lease import Lease, lease_request, name_of, request_of
from gcx._owned import Owned
from gcx._request import Count, Family
from gcx._resource import FAMILY_NAMES, SMResource, sm_resource
from gcx.generated.records import LiveReservation, ReservationFields, live_reservation_of

Path = Union[str, bytes, "PathLike[str]", "PathLike[bytes]"]


class Reservation(ReservationFields, Owned):
    """Exclusive use of SMs among all processes that reserve in the same folder; made by gcx.reserve
    or gcx.join_reservation.

    It ends by `with`, by close, when it is collected, or when the process ends, also by a crash. A
    forked child does not own it: using it there raises NotInitializedError. A lease made by acquire
    keeps the reservation alive; a context of its resource does not, so close that first. See
    docs/explanation/reservations.md.
    """

    __slots__ = ("_pid",)
    _pid: int

    def __init__(self) -> None:
        raise TypeError("a gcx.Reservation is made by gcx.reserve or gcx.join_reservation")

    def _live(self) -> int:
        if self._pid != os.getpid():
            raise NotInitializedError(
                "this gcx.Reservation belongs to the process that this one was forked from; pass "
                "its token to the child, for gcx.join_reservation"
            )
        return super()._live()

    def _info(self) -> tuple[Any, ...]:
        return _gcx.gcx_reservation_get_info(self._live())

    @property
    def token(self) -> str:
        """The path of its file, by which another process joins it with gcx.join_reservation. Pass
        it in that process's environment."""
        return _gcx.gcx_reservation_get_token(self._live())

    @property
    def resource(self) -> SMResource:
        """Its SMs, for splits and contexts. Opens the driver.

        Raises:
            NoDeviceError: This process doesn't see the device.
            ResourceConfigurationError: It sees other atoms than the process that reserved.
        """
        return sm_resource(_gcx.gcx_reservation_get_resource(self._live()))

    def acquire(
        self,
        sm_count: Count,
        *,
        name: str = "",
        min_sm_count: SupportsIndex | None = None,
        shared: bool = False,
        exclusive_sm_count: SupportsIndex = 0,
        timeout: float | None = 0,
        cancel: Cancel | None = None,
        priority: int = 0,
    ) -> Lease:
        """Acquires a lease of the reservation's SMs, see gcx.acquire. Such a lease is resized only
        together with leases of the same reservation, and keeps the reservation alive.

        Raises:
            As gcx.acquire, and as resource.
        """
        lease, ask = lease_request(
            -1, sm_count, name, min_sm_count, shared, exclusive_sm_count, priority,
            reservation=self._live(),
        )  # fmt: skip
        wait_for(ask, lease._claim, timeout, cancel)
        return lease

    def _describe(self) -> str:
        info = self._info()
        label = f'"{info[13]}"' if info[13] else f"{info[9]:016x}"
        return f" {label}: {info[2]} of {info[3]} SMs, {FAMILY_NAMES[info[0]]}"


def reserve(
    sm_count: Count,
    *,
    name: str = "",
    device: DeviceLike = 0,
    min_sm_count: SupportsIndex | None = None,
    family: Family | None = None,
    timeout: float | None = 0,
    cancel: Cancel | None = None,
    folder: Path | None = None,
    inherit: bool = False,
) -> Reservation:
    """Reserves SMs that no other process may reserve.

    >>> with gcx.reserve(24, name="decode", timeout=60) as reservation:
    ...     part = reservation.acquire(None)

    It binds all processes that reserve in the same folder. Requests are served in order of arrival.
    Ctrl-C cancels the wait. Reservations isolate processes only under MPS; without it they take
    turns on the whole device, and a warning is logged.

    Args:
        sm_count: How many SMs, rounded up to whole atoms: read the reservation's sm_count. None
            requests all that are free.
        name: Name in messages and gcx.reservations; at most 63 bytes of UTF-8.
        device: An ordinal, a gcx.Device, or a torch.device.
        min_sm_count: Smallest acceptable count. None: sm_count, or one atom if that is None.
        family: "coscheduled" (None), "fine" or "max-cluster", see SMResource.split.
        timeout: Seconds to wait for the SMs; 0: don't wait; None: no limit.
        cancel: Cancels the wait from another thread.
        folder: The folder that the processes share: a private one of mode 700, or a group's of mode
            2770 or 3770. None: GCX_RESERVATION_DIR, or else the user's default folder.
        inherit: Forked children and programs started by exec own it too, until they end.

    Raises:
        AlreadyAcquiredError: Other processes or earlier requests have the SMs, and timeout is 0;
            the message names them.
        TimeoutError: They still have the SMs after the timeout, or the folder locked. Also a
            built-in TimeoutError.
        CancelledError: Cancel.signal was called.
        UnsafeFolderError: The folder belongs to another user or is open to too many.
        CorruptFileError: A file that a process keeps locked is invalid or can't be read.
        ResourceConfigurationError: The device has fewer SMs than requested.
        Error: GCX_ERROR_OPERATING_SYSTEM, the folder can't be used.
        InvalidValueError, TypeError: A count of 0; min_sm_count above sm_count; a name that is too
            long; a negative timeout.
    """
    reservation = _empty_reservation()
    flags = _gcx.GCX_RESERVATION_INHERIT if flag_of(inherit, "inherit") else 0
    request = (ordinal_of(device), *request_of(sm_count, flags, family, min_sm_count))
    text = name_of(name)

    def ask(milliseconds: int, cancel_handle: int) -> None:
        _gcx.gcx_reservation_acquire(
            *request, milliseconds, cancel_handle, text, folder, reservation
        )

    wait_for(ask, reservation, timeout, cancel)
    return reservation


def join_reservation(token: Path) -> Reservation:
    """Joins a reservation of another process. It lasts until every process that shares it has
    closed it or ended. Opens no driver, and works in a forked child.

    >>> reservation = gcx.join_reservation(os.environ["RESERVATION"])

    Args:
        token: Reservation.token of the other process.

    Raises:
        NotFoundError: The reservation has ended.
        InvalidValueError: It is no token.
        CorruptFileError: Its file is invalid or can't be read.
        UnsafeFolderError: The folder belongs to another user or is open to too many.
    """
    return _gcx.gcx_reservation_join(token, _empty_reservation())


def _empty_reservation() -> Reservation:
    reservation = Reservation.__new__(Reservation)
    reservation._pid = os.getpid()
    return reservation


def reservations(folder: Path | None = None) -> list[LiveReservation]:
    """Returns the reservations of all processes that use the folder, by device: in the order in
    which they were made, then the requests that wait, in order of arrival. Opens no driver.

    Args:
        folder: As in gcx.reserve.

    Raises:
        UnsafeFolderError: The folder belongs to another user or is open to too many.
    """
    return [live_reservation_of(raw) for raw in _gcx.gcx_reservation_list(folder)]

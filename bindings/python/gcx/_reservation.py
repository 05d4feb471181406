"""Reservations: SMs that no other process has."""

from __future__ import annotations

import os
from os import PathLike
from typing import Any, NamedTuple, SupportsIndex, Union

from gcx import _gcx
from gcx._acquire import take
from gcx._cancel import Cancel
from gcx._checks import DeviceLike, chosen, flag_of, ordinal_of, sms_of, text_of, whole
from gcx._device import uuid_text
from gcx._errors import NotInitializedError
from gcx._lease import Lease, count_or_rest, lease_of, sm_count_of
from gcx._owned import Owned
from gcx._publish import atoms_in
from gcx._request import FAMILIES, Count, Family
from gcx._resource import FAMILY_NAMES, SMResource, sm_resource
from gcx._stream import Claim, priority_of

Path = Union[str, bytes, "PathLike[str]", "PathLike[bytes]"]

_MPS = {_gcx.GCX_MPS_OFF: False, _gcx.GCX_MPS_ON: True, _gcx.GCX_MPS_UNKNOWN: None}


class Reservation(Owned):
    """SMs of a device that no other process has, as long as all take theirs in the same folder;
    made by gcx.reserve or gcx.join_reservation.

    It is given up by `with`, by close, when it is collected, or when the process ends, however it
    ends. A forked child has no part in it: there it raises NotInitializedError. Close contexts and
    leases on its SMs first: a lease that acquire gave keeps the reservation, a context of its resource
    doesn't.
    """

    __slots__ = ("_pid",)
    _pid: int

    def __init__(self) -> None:
        raise TypeError("a gcx.Reservation is made by gcx.reserve or gcx.join_reservation")

    def _live(self) -> int:
        if self._pid != os.getpid():
            raise NotInitializedError(
                "this gcx.Reservation is of the process that this one was forked from, and a forked child "
                "has no part in it; give the child its token, for gcx.join_reservation"
            )
        return super()._live()

    def _info(self) -> tuple[Any, ...]:
        return _gcx.gcx_reservation_get_info(self._live())

    @property
    def family(self) -> str:
        """How its SMs are taken, see SMResource.split."""
        return FAMILY_NAMES[self._info()[0]]

    @property
    def sm_count(self) -> int:
        """How many SMs it has."""
        return int(self._info()[2])

    @property
    def device_sm_count(self) -> int:
        """How many the device has."""
        return int(self._info()[3])

    @property
    def joined(self) -> bool:
        """Whether it was joined, by gcx.join_reservation."""
        return bool(self._info()[4])

    @property
    def simulated(self) -> bool:
        """Whether it is of the simulated driver."""
        return bool(self._info()[5])

    @property
    def lost(self) -> bool:
        """Whether somebody removed its file or moved its folder, so that others may be given its
        SMs."""
        return bool(self._info()[6])

    @property
    def mps(self) -> bool | None:
        """Whether the process that took it shares the device by way of MPS. If not, processes take
        turns on it and the reservation isolates nothing. None: the driver doesn't tell."""
        return _MPS[self._info()[7]]

    @property
    def mps_thread_percentage(self) -> float:
        """CUDA_MPS_ACTIVE_THREAD_PERCENTAGE of that process; 0.0: it wasn't set."""
        return float(self._info()[8])

    @property
    def id(self) -> int:
        """A random number, which tells it from all others; LiveReservation.id."""
        return int(self._info()[9])

    @property
    def since_ms(self) -> int:
        """When it was taken, in milliseconds since 1970."""
        return int(self._info()[10])

    @property
    def atoms(self) -> tuple[int, ...]:
        """The numbers of its atoms."""
        return atoms_in(self._info()[11])

    @property
    def device_uuid(self) -> str:
        """Device.uuid, which tells the same device in all processes."""
        return uuid_text(self._info()[12])

    @property
    def name(self) -> str:
        """The name that it was given, "" if none."""
        return str(self._info()[13])

    @property
    def token(self) -> str:
        """What another process joins it by, see gcx.join_reservation: to be handed to it in its
        environment. It is the path of the reservation's file."""
        return _gcx.gcx_reservation_get_token(self._live())

    @property
    def resource(self) -> SMResource:
        """Its SMs, to be split and to make contexts of. Opens the driver.

        Raises:
            NoDeviceError: This process doesn't see the device.
            ResourceConfigurationError: It sees other atoms than the process that took the reservation.
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
        """gcx.acquire out of the reservation's SMs alone, and so are the lease's later changes: leases of
        a reservation change only together with leases of the same reservation. The lease keeps the reservation.

        Raises:
            As gcx.acquire, and as resource.
        """
        claim = Claim()
        lease = lease_of(claim, priority_of(priority))
        reservation = self._live()
        wanted = (
            sm_count_of(sm_count),
            _gcx.GCX_LEASE_SHARED if flag_of(shared, "shared") else 0,
            _gcx.GCX_SM_FAMILY_NONE,  # the reservation's
            0 if min_sm_count is None else whole(min_sm_count, "min_sm_count", 1),
            whole(exclusive_sm_count, "exclusive_sm_count"),
        )
        text = text_of(name, "name", _gcx.GCX_MAX_LEASE_NAME - 1)

        def ask(for_so_long: int, giving_up: int) -> None:
            _gcx.gcx_reservation_acquire_lease(
                reservation, *wanted, for_so_long, giving_up, text, claim
            )

        take(ask, claim, timeout, cancel)
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
    """Takes SMs that no other process has.

    >>> with gcx.reserve(24, name="decode", timeout=60) as held:
    ...     part = held.acquire(None)

    All processes agree that take theirs in the same folder; others are not bound by it. Those who
    wait are served in the order in which they came. Ctrl-C gives the wait up. Under MPS, reservations of
    two processes are different SMs; without it processes take turns, and reservations isolate nothing,
    of which the log has a warning.

    Args:
        sm_count: How many SMs, rounded up to what the device can give; None: all that can be had.
            Look at the reservation's sm_count.
        name: For messages and gcx.reservations; at most 63 bytes of UTF-8.
        device: An ordinal, a gcx.Device, or a torch.device.
        min_sm_count: So many will do if those asked for can't be had. None: no less than asked for,
            and of the rest the least that the device can give.
        family: "coscheduled" (None), "fine" or "max-cluster", see SMResource.split.
        timeout: Seconds to wait for the SMs; 0: don't; None: for ever.
        cancel: Gives the wait up from another thread.
        folder: Where processes agree: one of the user's own, of mode 700, or a group's, of mode
            2770 or 3770. None: GCX_RESERVATION_DIR of the environment, or the user's usual one.
        inherit: Forked children and what exec starts keep the reservation too, until they end.

    Raises:
        AlreadyAcquiredError: Others have the SMs, or wait for them, and after the time-out still
            did; the message says who.
        NotPermittedError: The wait was given up by Cancel.signal; the folder is another user's, or
            too many may enter it.
        ResourceConfigurationError: The device has not so many SMs, whoever has them.
        Error: GCX_ERROR_OPERATING_SYSTEM, the folder or a file in it can't be used.
        InvalidValueError, TypeError: A count of 0, min_sm_count above sm_count, a name that is too
            long, a negative time-out.
    """
    held = _empty_hold()
    wanted = (
        ordinal_of(device),
        _sm_count_of(sm_count),
        _gcx.GCX_RESERVATION_INHERIT if flag_of(inherit, "inherit") else 0,
        _gcx.GCX_SM_FAMILY_NONE if family is None else chosen(family, "family", FAMILIES),
        0 if min_sm_count is None else whole(min_sm_count, "min_sm_count", 1),
    )
    text = text_of(name, "name", _gcx.GCX_MAX_LEASE_NAME - 1)

    def ask(for_so_long: int, giving_up: int) -> None:
        _gcx.gcx_reservation_acquire(*wanted, for_so_long, giving_up, text, folder, held)

    take(ask, held, timeout, cancel)
    return held


def join_reservation(token: Path) -> Reservation:
    """Joins a reservation that another process has: it lasts until all who joined have closed it or ended.
    Opens no driver, and works in a forked child too.

    >>> held = gcx.join_reservation(os.environ["HELD"])

    Args:
        token: Reservation.token of the other process.

    Raises:
        NotFoundError: The reservation has ended.
        InvalidValueError: It is no token.
        NotPermittedError: The folder is another user's, or too many may enter it.
    """
    return _gcx.gcx_reservation_join(token, _empty_hold())


def _sm_count_of(value: object) -> int:
    """A reservation's SM count for C."""
    if value is None:
        return _gcx.GCX_REST
    return sms_of(value, "a reservation's count", "None asks for the rest")


def _empty_hold() -> Reservation:
    """A reservation without a handle yet."""
    held = Reservation.__new__(Reservation)
    held._pid = os.getpid()
    return held


class LiveReservation(NamedTuple):
    """A reservation of any process, or one that waits for it.

    Attributes:
        id: Reservation.id.
        since_ms: When it was taken, or the wait began, in milliseconds since 1970.
        until_ms: Of one that waits, when it gives up; 0: never.
        pid: The process that took it while that keeps it, then another one that does; 0: none is
            visible here.
        user: The number of the user whose it is.
        simulated: It is of the simulated driver.
        waiting: Whether it has nothing yet and waits in gcx.reserve.
        family: How its SMs are taken.
        sm_count: How many SMs it has; of one that waits how many it asked for, None if
            the rest.
        device_sm_count: SMs of the device.
        atom_count: Atoms of the family, on that device.
        atom_sm_count: SMs of each atom but the last.
        last_atom_sm_count: SMs of the last atom.
        mps: Reservation.mps.
        mps_thread_percentage: Reservation.mps_thread_percentage.
        parent: The id of the reservation that it is a part of, which may have ended; None: of the device.
        atoms: The numbers of its atoms.
        device_uuid: Device.uuid, which tells the same device in all processes.
        name: Its name: any text, escape it where it is shown.
        process_name: The program's, likewise.
        device_name: The device's name, likewise.
    """

    id: int
    since_ms: int
    until_ms: int
    pid: int
    user: int
    simulated: bool
    waiting: bool
    family: str
    sm_count: int | None
    device_sm_count: int
    atom_count: int
    atom_sm_count: int
    last_atom_sm_count: int
    mps: bool | None
    mps_thread_percentage: float
    parent: int | None
    atoms: tuple[int, ...]
    device_uuid: str
    name: str
    process_name: str
    device_name: str


def reservations(folder: Path | None = None) -> list[LiveReservation]:
    """The reservations of all processes that use the folder, by device: those that have SMs in the order
    in which they were taken, then those that wait, the first first. Opens no driver.

    Args:
        folder: As in gcx.reserve.

    Raises:
        NotPermittedError: The folder is another user's, or too many may enter it.
    """
    found = []
    for fields in _gcx.gcx_reservation_list(folder):
        (number, since, until, pid, user, simulated, waits, family, sms, of_device, atoms, size,
         last, mps, percentage, parent, words, uuid, name, process, device) = fields  # fmt: skip
        found.append(
            LiveReservation(
                number, since, until, pid, user, bool(simulated), bool(waits),
                FAMILY_NAMES[family], count_or_rest(sms), of_device, atoms, size, last,
                _MPS[mps], percentage, parent or None, atoms_in(words), uuid_text(uuid), name,
                process, device,
            )
        )  # fmt: skip
    return found


class MPSInfo(NamedTuple):
    """Whether a device is shared by way of MPS.

    Attributes:
        enabled: What the driver says of this process; None: it doesn't tell.
        thread_percentage: CUDA_MPS_ACTIVE_THREAD_PERCENTAGE of the environment; 0.0: it isn't set.
    """

    enabled: bool | None
    thread_percentage: float


def mps_info(device: DeviceLike = 0) -> MPSInfo:
    """Whether contexts of this process on the device are shared by way of MPS. Makes none.

    Raises:
        InvalidDeviceError: No such device.
    """
    state, percentage = _gcx.gcx_mps_get_info(ordinal_of(device))
    return MPSInfo(_MPS[state], percentage)

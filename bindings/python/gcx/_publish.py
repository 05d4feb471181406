"""Leases that the user's other processes may see, and theirs."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

from gcx import _gcx
from gcx._checks import text_of
from gcx._device import uuid_text
from gcx._lease import count_or_rest
from gcx._resource import FAMILY_NAMES


def publish(name: str | None = None) -> None:
    """From now on this process's leases are published, for other processes of the same user to see:
    `gcx top` and gcx.published_leases. GCX_PUBLISH=1 or =NAME in the environment does the same.

    It is a file in /dev/shm/gcx-UID, or in user-UID below the folder of GCX_RESERVATION_DIR, that goes
    with its process; a change costs well under a microsecond. Called again it changes the name.
    Opens the driver.

    Args:
        name: For lists, at most 63 bytes of UTF-8; None: the program's.

    Raises:
        NotPermittedError: The folder is a link or another user's, or others may enter it.
        InvalidValueError: GCX_RESERVATION_DIR is not an absolute path.
        Error: GCX_ERROR_OPERATING_SYSTEM, the file can't be made.
    """
    most = _gcx.GCX_MAX_PROCESS_NAME - 1
    _gcx.gcx_publish_start(None if name is None else text_of(name, "name", most))


def stop_publishing() -> None:
    """No longer; nothing where nothing is published."""
    _gcx.gcx_publish_stop()


class PublishedProcess(NamedTuple):
    """A process that publishes its leases.

    Attributes:
        process: A random number, which tells it from all others.
        since_ms: When it began, in milliseconds since 1970.
        pid: As the process itself sees it; other containers may not.
        simulated: It is on the simulated driver.
        driver_version: As a pair: (13, 0).
        device_count: Devices that it has.
        lease_count: Leases that it has.
        unlisted_count: Of these, beyond the 512 that are published.
        name: Whatever it calls itself: escape it where it is shown.
    """

    process: int
    since_ms: int
    pid: int
    simulated: bool
    driver_version: tuple[int, int]
    device_count: int
    lease_count: int
    unlisted_count: int
    name: str


def published_processes() -> list[PublishedProcess]:
    """The processes of this user that publish, this one among them if it does. Opens no driver.

    Raises:
        NotPermittedError: The folder is another user's, or others may enter it.
    """
    found = []
    for entry in _gcx.gcx_published_process_list():
        number, since, pid, simulated, version, devices, leases, unlisted, name = entry
        numbers = version // 1000, version % 1000 // 10
        found.append(
            PublishedProcess(
                number, since, pid, bool(simulated), numbers, devices, leases, unlisted, name
            )
        )
    return found


class PublishedLease(NamedTuple):
    """A lease of a process that publishes, or somebody there who waits for one.

    Attributes:
        process: PublishedProcess.process.
        id: Lease.id, in that process.
        changes: How often its SMs have changed.
        pid: As the process itself sees it.
        simulated: It is on the simulated driver.
        device: The ordinal in that process.
        family: How its SMs are taken.
        shared: Whether others that are shared may have its SMs too.
        waiting: Whether it has nothing yet and waits in gcx.acquire.
        sm_count: How many SMs it has; of one that waits how many it asked for, None if
            the rest.
        exclusive_sm_count: How many of them are its alone.
        stream_count: Its live streams.
        device_sm_count: SMs of the device.
        atom_count: Atoms of the family, on that device.
        atom_sm_count: SMs of each atom but the last.
        last_atom_sm_count: SMs of the last atom.
        exclusive_atoms: The numbers of the atoms that are its alone.
        shared_atoms: The numbers of those that others may have too.
        device_uuid: Device.uuid, which tells the same device in all processes.
        name: Its name: any text, escape it where it is shown.
        process_name: PublishedProcess.name, likewise.
        device_name: The device's name, likewise.
    """

    process: int
    id: int
    changes: int
    pid: int
    simulated: bool
    device: int
    family: str
    shared: bool
    waiting: bool
    sm_count: int | None
    exclusive_sm_count: int
    stream_count: int
    device_sm_count: int
    atom_count: int
    atom_sm_count: int
    last_atom_sm_count: int
    exclusive_atoms: tuple[int, ...]
    shared_atoms: tuple[int, ...]
    device_uuid: str
    name: str
    process_name: str
    device_name: str


def published_leases() -> list[PublishedLease]:
    """The leases of the processes that publish: of each process those that have SMs in the order in
    which they were acquired, then those that wait. Across processes leases share whatever they
    will: each is its process's own. Opens no driver.

    Raises:
        As published_processes.
    """
    return [_lease_of(*fields) for fields in _gcx.gcx_published_lease_list()]


def _lease_of(*fields: Any) -> PublishedLease:
    *who, family, flags, waits = fields[:9]
    alone, shared, device_uuid = fields[16:19]
    who[4] = bool(who[4])
    return PublishedLease._make(
        (
            *who,
            FAMILY_NAMES[family],
            bool(flags & _gcx.GCX_LEASE_SHARED),
            bool(waits),
            count_or_rest(fields[9]),
            *fields[10:16],
            atoms_in(alone),
            atoms_in(shared),
            uuid_text(device_uuid),
            *fields[19:],
        )
    )


def atoms_in(words: bytes) -> tuple[int, ...]:
    """The numbers of the bits that are set in words of 64 bits."""
    found = []
    for word in range(0, len(words), 8):
        bits = int.from_bytes(words[word : word + 8], sys.byteorder)
        found += [word * 8 + bit for bit in range(64) if bits >> bit & 1]
    return tuple(found)

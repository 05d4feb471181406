"""Published leases: visible to the user's other processes."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

from gcx import _gcx
from gcx._checks import text_of
from gcx._device import uuid_text
from gcx._driver import version_of
from gcx._lease import count_or_rest
from gcx._resource import FAMILY_NAMES


def publish(name: str | None = None) -> None:
    """Publishes this process's leases to other processes of the same user, which see them in
    `gcx top` and gcx.published_leases. GCX_PUBLISH=1 or =NAME in the environment does the same.

    Writes a file in /dev/shm/gcx-UID, or in user-UID below GCX_RESERVATION_DIR, which ends with the
    process; a change costs well under a microsecond. Calling it again changes the name. Opens the
    driver.

    Args:
        name: For display, at most 63 bytes of UTF-8; None: the program's.

    Raises:
        UnsafeFolderError: The folder is a link, belongs to another user or is open to others.
        InvalidValueError: GCX_RESERVATION_DIR is not an absolute path.
        Error: GCX_ERROR_OPERATING_SYSTEM, the file can't be created.
    """
    most = _gcx.GCX_MAX_PROCESS_NAME - 1
    _gcx.gcx_publish_start(None if name is None else text_of(name, "name", most))


def stop_publishing() -> None:
    """Stops publishing; does nothing if nothing is published."""
    _gcx.gcx_publish_stop()


class PublishedProcess(NamedTuple):
    """A process that publishes its leases."""

    process: int  #: A random number that identifies the process.
    since_ms: int  #: When it started publishing, in milliseconds since 1970.
    pid: int  #: As the process itself sees it; other containers may not.
    simulated: bool  #: Whether it uses the simulated driver.
    driver_version: tuple[int, int]  #: (13, 0) is CUDA 13.0.
    device_count: int  #: Devices that it sees.
    lease_count: int  #: Leases that it has.
    unlisted_count: int  #: Of these, how many exceed the 512 that are published.
    name: str  #: Any text: escape it for display.


def published_processes() -> list[PublishedProcess]:
    """Returns the processes of this user that publish, including this one. Opens no driver.

    Raises:
        UnsafeFolderError: The folder belongs to another user or is open to others.
    """
    return [
        PublishedProcess(
            number, since, pid, bool(simulated), version_of(version), devices, leases, unlisted,
            name,
        )
        for number, since, pid, simulated, version, devices, leases, unlisted, name
        in _gcx.gcx_published_process_list()
    ]  # fmt: skip


class PublishedLease(NamedTuple):
    """A lease of a process that publishes, or a request there that waits for one."""

    process: int  #: PublishedProcess.process.
    id: int  #: Lease.id, in that process.
    changes: int  #: How often its SMs have changed.
    pid: int  #: As the process itself sees it.
    simulated: bool  #: Whether it uses the simulated driver.
    device: int  #: The ordinal in that process.
    family: str
    shared: bool  #: Whether other shared leases may have its SMs too.
    waiting: bool  #: Whether it waits in gcx.acquire and has no SMs yet.
    sm_count: int | None  #: What it has, or what a waiting one requested; None: the rest.
    exclusive_sm_count: int  #: How many SMs no other lease may have.
    stream_count: int  #: Its live streams.
    device_sm_count: int  #: SMs of the device.
    atom_count: int  #: Atoms of the family on that device.
    atom_sm_count: int  #: SMs of each atom but the last.
    last_atom_sm_count: int
    exclusive_atoms: tuple[int, ...]  #: The numbers of the atoms that no other lease may have.
    shared_atoms: tuple[int, ...]  #: The numbers of the atoms that others may have too.
    device_uuid: str  #: Device.uuid, which identifies the device in all processes.
    name: str  #: Any text: escape it for display, as the next two.
    process_name: str
    device_name: str


def published_leases() -> list[PublishedLease]:
    """Returns the leases of the processes that publish: for each process in the order in which they
    were acquired, then the requests that wait. Leases of two processes may have the same SMs. Opens
    no driver.

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
    """Returns the numbers of the bits that are set in words of 64 bits."""
    found = []
    for word in range(0, len(words), 8):
        bits = int.from_bytes(words[word : word + 8], sys.byteorder)
        found += [word * 8 + bit for bit in range(64) if bits >> bit & 1]
    return tuple(found)

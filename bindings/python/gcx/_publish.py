"""Published leases: visible to the user's other processes."""

from __future__ import annotations

from gcx import _gcx
from gcx._checks import text_of
from gcx.generated.records import (
    PublishedLease,
    PublishedProcess,
    published_lease_of,
    published_process_of,
)


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


def published_processes() -> list[PublishedProcess]:
    """Returns the processes of this user that publish, including this one. Opens no driver.

    Raises:
        UnsafeFolderError: The folder belongs to another user or is open to others.
    """
    return [published_process_of(raw) for raw in _gcx.gcx_published_process_list()]


def published_leases() -> list[PublishedLease]:
    """Returns the leases of the processes that publish: for each process in the order in which they
    were acquired, then the requests that wait. Leases of two processes may have the same SMs. Opens
    no driver.

    Raises:
        As published_processes.
    """
    return [published_lease_of(raw) for raw in _gcx.gcx_published_lease_list()]

"""Reservations: conversion, lifetimes, other processes, forks, Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import gcx
import pytest

pytestmark = pytest.mark.usefixtures("folder")


def test_reservation_attributes_and_list(folder: Path) -> None:
    with gcx.reserve(24, name="decode") as mine, gcx.reserve(None) as rest:
        assert (mine.sm_count, mine.device_sm_count, mine.family) == (24, 132, "coscheduled")
        assert (mine.name, rest.name, rest.sm_count) == ("decode", "", 108)
        assert (mine.joined, mine.lost, mine.simulated) == (False, False, True)
        assert (mine.mps, mine.mps_thread_percentage) == (False, 0.0)
        assert mine.device_uuid == gcx.Device(0).uuid
        assert abs(mine.since_ms - 1000 * time.time()) < 600_000
        assert not set(mine.atoms) & set(rest.atoms)
        assert mine.resource.sm_count == 24
        assert mine.resource.isdisjoint(rest.resource)
        assert mine.token.startswith(str(folder))
        assert '"decode": 24 of 132 SMs, coscheduled' in repr(mine)
        first, second = gcx.reservations()
        assert (first.id, first.name, first.sm_count) == (mine.id, "decode", 24)
        assert (first.pid, first.user, first.waiting) == (os.getpid(), os.geteuid(), False)
        assert (first.atoms, first.atom_count) == (mine.atoms, 16)
        assert (first.simulated, first.mps) == (True, False)
        assert (first.atom_sm_count, first.last_atom_sm_count) == (8, 12)
        assert "H100" in first.device_name
        assert (second.id, first.parent, second.parent) == (rest.id, None, None)
        with pytest.raises(gcx.AlreadyAcquiredError, match='"decode" of process'):
            gcx.reserve(8)
    assert repr(mine) == "<gcx.Reservation, closed>"
    with pytest.raises(gcx.InvalidHandleError, match="is closed"):
        mine.sm_count  # noqa: B018
    mine.close()
    assert gcx.reservations() == []
    assert list(folder.iterdir()) == []


def test_lease_keeps_its_reservation() -> None:
    with gcx.reserve(32) as reservation:
        lease = reservation.acquire(8, name="part")
        assert (lease.name, lease.sm_count) == ("part", 8)
        assert lease.resource <= reservation.resource
    assert len(gcx.reservations()) == 1
    lease.close()
    assert gcx.reservations() == []


def test_reservation_is_joined_across_processes() -> None:
    code = """
import time, gcx
reservation = gcx.reserve(108, name="other")
print(reservation.token, flush=True)
time.sleep(100)
"""
    other = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert other.stdout is not None
    token = other.stdout.readline().strip()
    with pytest.raises(gcx.TimeoutError, match="20 ms"):
        gcx.reserve(64, timeout=0.02)
    with gcx.join_reservation(token) as joined:
        assert (joined.joined, joined.name, joined.sm_count) == (True, "other", 108)
        assert joined.resource.sm_count == 108
        other.kill()
        other.communicate()
        assert [reservation.name for reservation in gcx.reservations()] == ["other"]
    with pytest.raises(gcx.NotFoundError):
        gcx.join_reservation(token)
    with pytest.raises(gcx.InvalidValueError):
        gcx.join_reservation("token")


def test_wait_for_a_reservation_is_served_and_cancelled() -> None:
    everything = gcx.reserve(None)
    with gcx.Cancel() as cancel:
        threading.Timer(0.05, cancel.signal).start()
        with pytest.raises(gcx.CancelledError):
            gcx.reserve(8, timeout=None, cancel=cancel)
    threading.Timer(0.05, everything.close).start()
    with gcx.reserve(8, timeout=60) as other:
        assert other.sm_count == 8


def test_ctrl_c_cancels_the_wait(script: Any) -> None:
    script(f"""
import os, signal, threading, gcx
signal.signal(signal.SIGINT, signal.default_int_handler)  # The parent may ignore the signal.
everything = gcx.reserve(None)
threading.Timer(0.3, os.kill, (os.getpid(), {int(signal.SIGINT)})).start()
try:
    gcx.reserve(8, timeout=None)
except KeyboardInterrupt:
    assert len(gcx.reservations()) == 1
else:
    raise SystemExit("not interrupted")
""")


def test_forked_child_does_not_own_the_reservation(script: Any) -> None:
    script("""
import os, time, gcx
mine = gcx.reserve(24)
token = mine.token
child = os.fork()
if child == 0:
    for use in (lambda: mine.token, lambda: mine.sm_count, lambda: mine.acquire(8)):
        try:
            use()
        except gcx.NotInitializedError as error:
            assert "forked" in str(error) and "gcx.join_reservation" in str(error), error
        else:
            os._exit(1)
    assert "NOT_INITIALIZED" in repr(mine)
    mine.close()
    assert gcx.join_reservation(token).sm_count == 24
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
assert mine.sm_count == 24 and len(gcx.reservations()) == 1
child = os.fork()
if child == 0:
    time.sleep(100)
mine.close()
assert gcx.reservations() == []
os.kill(child, 9)
""")


def test_folder_is_an_argument(folder: Path) -> None:
    named = folder / "named"
    named.mkdir(mode=0o700)
    with gcx.reserve(108, folder=named):
        assert gcx.reservations() == []
        assert [reservation.sm_count for reservation in gcx.reservations(str(named))] == [108]
    named.chmod(0o777)
    with pytest.raises(gcx.UnsafeFolderError):
        gcx.reserve(8, folder=bytes(named))
    with pytest.raises(gcx.Error, match="OPERATING_SYSTEM"):
        gcx.reserve(8, folder=folder / "missing")


def test_published_leases_are_converted(script: Any, version: tuple[int, int]) -> None:
    assert gcx.published_processes() == []
    gcx.publish("server")
    with gcx.acquire(24, name="decode") as lease, gcx.acquire(16, shared=True) as other:
        lease.stream.synchronize()
        (process,) = gcx.published_processes()
        assert (process.name, process.pid, process.simulated) == ("server", os.getpid(), True)
        assert (process.driver_version, process.device_count) == (version, 1)
        assert (process.lease_count, process.unlisted_count) == (2, 0)
        first, second = gcx.published_leases()
        assert (first.name, first.id, first.sm_count) == ("decode", lease.id, 24)
        assert (first.shared, first.waiting, first.stream_count) == (False, False, 1)
        assert (first.family, first.device, first.device_sm_count) == ("coscheduled", 0, 132)
        assert (first.atom_count, first.atom_sm_count, first.last_atom_sm_count) == (16, 8, 12)
        assert (len(first.exclusive_atoms), first.shared_atoms) == (3, ())
        assert (len(second.shared_atoms), second.exclusive_atoms) == (2, ())
        assert (first.device_uuid, first.process) == (gcx.Device(0).uuid, process.process)
        assert first.process_name == "server"
        assert "H100" in first.device_name
        assert (second.id, second.shared) == (other.id, True)
        code = "import gcx; print([lease.name for lease in gcx.published_leases()])"
        assert script(code) == "['decode', '']\n"
    gcx.publish("renamed")
    assert [process.name for process in gcx.published_processes()] == ["renamed"]
    gcx.stop_publishing()
    gcx.stop_publishing()
    assert gcx.published_leases() == []

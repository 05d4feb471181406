"""Reservations: SMs that no other process has."""

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

HOLDER = """
import sys, time, gcx
held = gcx.reserve({count}, name="other")
print(held.token, flush=True)
time.sleep(100)
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    tmp_path.chmod(0o700)
    monkeypatch.setenv("GCX_RESERVATION_DIR", str(tmp_path))
    return tmp_path


def test_a_reservation_and_what_it_says(folder: Path) -> None:
    with gcx.reserve(24, name="decode") as held, gcx.reserve(None) as rest:
        assert (held.sm_count, held.device_sm_count, held.family) == (24, 132, "coscheduled")
        assert (held.name, rest.name) == ("decode", "")
        assert (held.joined, held.lost, held.simulated) == (False, False, True)
        assert (held.mps, held.mps_thread_percentage) == (False, 0.0)
        assert held.device_uuid == gcx.Device(0).uuid
        assert abs(held.since_ms - 1000 * time.time()) < 600_000
        assert rest.sm_count == 108
        assert not set(held.atoms) & set(rest.atoms)
        assert held.resource.sm_count == 24
        assert held.resource.overlap(rest.resource) == 0
        assert held.token.startswith(str(folder))
        assert '"decode": 24 of 132 SMs, coscheduled' in repr(held)
        first, second = gcx.reservations()
        assert (first.id, first.name, first.sm_count) == (held.id, "decode", 24)
        assert (first.pid, first.user, first.waiting) == (os.getpid(), os.geteuid(), False)
        assert (first.atoms, first.atom_count) == (held.atoms, 16)
        assert (first.simulated, first.mps) == (True, False)
        assert (first.atom_sm_count, first.last_atom_sm_count) == (8, 12)
        assert "H100" in first.device_name
        assert second.id == rest.id
        assert (first.parent, second.parent) == (None, None)
        with pytest.raises(gcx.AlreadyAcquiredError, match='"decode" of process'):
            gcx.reserve(8)
    assert held.closed
    assert repr(held) == "<gcx.Reservation, closed>"
    with pytest.raises(gcx.InvalidHandleError, match="is closed"):
        held.sm_count  # noqa: B018
    held.close()
    assert gcx.reservations() == []
    assert list(folder.iterdir()) == []


def test_a_lease_keeps_its_reservation() -> None:
    with gcx.reserve(32) as held:
        kept = held.acquire(8, name="part")
        assert (kept.name, kept.sm_count) == ("part", 8)
        assert kept.resource.overlap(held.resource) == 8
    assert len(gcx.reservations()) == 1
    kept.close()
    assert gcx.reservations() == []


def test_other_processes(folder: Path) -> None:
    other = subprocess.Popen(
        [sys.executable, "-c", HOLDER.format(count=108)], stdout=subprocess.PIPE, text=True
    )
    assert other.stdout is not None
    token = other.stdout.readline().strip()
    with pytest.raises(gcx.AlreadyAcquiredError, match="timed out after 20 ms"):
        gcx.reserve(64, timeout=0.02)
    with gcx.join_reservation(token) as joined:
        assert (joined.joined, joined.name, joined.sm_count) == (True, "other", 108)
        assert joined.resource.sm_count == 108
        other.kill()
        other.communicate()
        assert [reservation.name for reservation in gcx.reservations()] == ["other"]
    assert gcx.reservations() == []
    with pytest.raises(gcx.NotFoundError, match="has ended"):
        gcx.join_reservation(token)
    with pytest.raises(gcx.InvalidValueError, match="no token"):
        gcx.join_reservation("token")


def test_reservation_inside_gcx_exec_has_a_parent(folder: Path) -> None:
    inside = """
import sys, gcx
with gcx.reserve(16, name="part") as held:
    print(held.id, flush=True)
    sys.stdin.read()
"""
    words = ["exec", "--sms", "24", "--name", "around", "--", sys.executable, "-c", inside]
    with subprocess.Popen(
        [sys.executable, "-m", "gcx", *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as program:
        assert program.stdout is not None
        number = int(program.stdout.readline())
        listed = {reservation.name: reservation for reservation in gcx.reservations()}
        program.communicate()
    assert sorted(listed) == ["around", "part"]
    assert listed["around"].parent is None
    assert (listed["part"].id, listed["part"].parent) == (number, listed["around"].id)
    assert set(listed["part"].atoms) < set(listed["around"].atoms)
    assert program.returncode == 0


def test_waiting() -> None:
    held = gcx.reserve(None)
    cancel = gcx.Cancel()
    threading.Timer(0.05, cancel.signal).start()
    with pytest.raises(gcx.NotPermittedError, match="cancelled"):
        gcx.reserve(8, timeout=None, cancel=cancel)
    threading.Timer(0.05, held.close).start()
    with gcx.reserve(8, timeout=60) as other:
        assert other.sm_count == 8
    cancel.close()


def test_ctrl_c(script: Any) -> None:
    script(f"""
import os, signal, threading, gcx
signal.signal(signal.SIGINT, signal.default_int_handler)  # Whoever started this may ignore it.
held = gcx.reserve(None)
threading.Timer(0.3, os.kill, (os.getpid(), {int(signal.SIGINT)})).start()
try:
    gcx.reserve(8, timeout=None)
except KeyboardInterrupt:
    assert len(gcx.reservations()) == 1
else:
    raise SystemExit("not interrupted")
""")


def test_forked_children_hold_nothing(script: Any) -> None:
    script("""
import os, gcx
held = gcx.reserve(24)
token = held.token
child = os.fork()
if child == 0:
    for use in (lambda: held.token, lambda: held.sm_count, lambda: held.acquire(8)):
        try:
            use()
        except gcx.NotInitializedError as error:
            assert "forked" in str(error) and "gcx.join_reservation" in str(error), error
        else:
            os._exit(1)
    assert "NOT_INITIALIZED" in repr(held)
    held.close()
    assert gcx.join_reservation(token).sm_count == 24
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
assert held.sm_count == 24 and len(gcx.reservations()) == 1
child = os.fork()
if child == 0:
    import time
    time.sleep(100)
held.close()
assert gcx.reservations() == []
os.kill(child, 9)
""")


def test_folders(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    named = folder / "named"
    named.mkdir(mode=0o700)
    with gcx.reserve(108, folder=named):
        assert gcx.reservations() == []
        (reservation,) = gcx.reservations(str(named))
        assert reservation.sm_count == 108
        monkeypatch.setenv("GCX_RESERVATION_DIR", str(named))
        with pytest.raises(gcx.AlreadyAcquiredError):
            gcx.reserve(64)
    named.chmod(0o777)
    with pytest.raises(gcx.NotPermittedError, match="anybody may enter it") as caught:
        gcx.reserve(8)
    assert "chmod" not in str(caught.value)  # It may be /tmp.
    with pytest.raises(gcx.Error, match="OPERATING_SYSTEM"):
        gcx.reserve(8, folder=folder / "missing")


def test_wrong_arguments() -> None:
    with pytest.raises(TypeError, match="is made by"):
        gcx.Reservation()
    with pytest.raises(gcx.InvalidValueError, match="sm_count must be at least 1"):
        gcx.reserve(0)
    with pytest.raises(gcx.InvalidValueError, match="at least 1, not -1; None"):
        gcx.reserve(-1)
    # The number that means the rest to C.
    with pytest.raises(gcx.InvalidValueError, match="at most 4294967294"):
        gcx.reserve(2**32 - 1)
    with pytest.raises(gcx.InvalidValueError):
        gcx.reserve(8, min_sm_count=16)
    with pytest.raises(gcx.InvalidValueError):
        gcx.reserve(8, name="x" * 64)
    with pytest.raises(gcx.InvalidValueError):
        gcx.reserve(8, timeout=-1)
    with pytest.raises(gcx.InvalidValueError):
        gcx.reserve(8, family="another")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        gcx.reserve(8, inherit=1)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        gcx.reserve(8, cancel=1)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        gcx.reserve(8, folder=1)  # type: ignore[arg-type]
    with pytest.raises(gcx.InvalidDeviceError):
        gcx.reserve(8, device=7)
    with pytest.raises(gcx.ResourceConfigurationError):
        gcx.reserve(133)


def test_mps(script: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert gcx.mps_info().enabled is False
    with pytest.raises(gcx.InvalidDeviceError):
        gcx.mps_info(7)
    monkeypatch.setenv("GCX_SIM_MPS", "1")
    monkeypatch.setenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "50")
    script("""
import gcx
assert gcx.mps_info() == (True, 50.0)
held = gcx.reserve(24)
assert (held.mps, held.mps_thread_percentage) == (True, 50.0)
""")

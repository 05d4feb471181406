"""Leases that other processes see, and the queues that partitions share."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gcx
import pytest


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    tmp_path.chmod(0o700)
    monkeypatch.setenv("GCX_RESERVATION_DIR", str(tmp_path))
    yield tmp_path
    gcx.stop_publishing()


def test_what_is_published_can_be_read(folder: Path, version: tuple[int, int]) -> None:
    assert gcx.published_processes() == []
    gcx.publish("server")
    with gcx.acquire(24, name="decode") as lease, gcx.acquire(16, shared=True) as other:
        lease.stream.synchronize()
        (process,) = gcx.published_processes()
        assert (process.name, process.pid, process.simulated) == ("server", os.getpid(), True)
        assert process.driver_version == version
        assert (process.lease_count, process.unlisted_count) == (2, 0)
        first, second = gcx.published_leases()
        assert (first.name, first.id, first.sm_count) == ("decode", lease.id, 24)
        assert (first.shared, first.waiting, first.stream_count) == (False, False, 1)
        assert (first.family, first.device, first.device_sm_count) == ("coscheduled", 0, 132)
        assert (first.atom_count, first.atom_sm_count, first.last_atom_sm_count) == (16, 8, 12)
        assert len(first.exclusive_atoms) == 3
        assert first.shared_atoms == ()
        assert (second.shared, second.exclusive_atoms) == (True, ())
        assert len(second.shared_atoms) == 2
        assert not set(first.exclusive_atoms) & set(second.shared_atoms)
        assert first.device_uuid == gcx.Device(0).uuid
        assert first.process == process.process
        assert first.process_name == "server"
        assert "H100" in first.device_name
        assert other.id == second.id
    gcx.publish("renamed")
    assert [process.name for process in gcx.published_processes()] == ["renamed"]
    gcx.stop_publishing()
    gcx.stop_publishing()
    assert gcx.published_processes() == []
    assert gcx.published_leases() == []


def test_what_can_not_be_published(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for wrong in ("x" * 64, "a\0b", "\udcff"):
        with pytest.raises(gcx.InvalidValueError, match="name must"):
            gcx.publish(wrong)
    with pytest.raises(TypeError, match="name must be a string"):
        gcx.publish(1)  # type: ignore[arg-type]
    monkeypatch.setenv("GCX_RESERVATION_DIR", str(folder / "missing"))
    with pytest.raises(gcx.Error):
        gcx.publish()


def test_other_processes_see_it(folder: Path, script: Any) -> None:
    gcx.publish("elsewhere")
    with gcx.acquire(8, name="seen"):
        code = "import gcx; print([lease.name for lease in gcx.published_leases()])"
        assert script(code) == "['seen']\n"


def test_connections_are_asked_for_in_time(script: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_DEVICE_MAX_CONNECTIONS", raising=False)
    code = """
import os, subprocess, sys, gcx
print(*gcx.queue_info())
gcx.request_connections()
print(*gcx.queue_info())
ask = [sys.executable, "-c", "import os; print(os.environ['CUDA_DEVICE_MAX_CONNECTIONS'])"]
print(subprocess.run(ask, capture_output=True, text=True).stdout.strip())
gcx.devices()
print(*gcx.queue_info())
gcx.request_connections(8)
"""
    assert script(code).splitlines() == [
        "8 default False True False",
        "32 environment False True False",
        "32",
        "32 environment True True False",
    ]
    monkeypatch.setenv("CUDA_DEVICE_MAX_CONNECTIONS", "many")
    assert script("import gcx; print(gcx.queue_info().connections)") == "None\n"


def test_wrong_numbers_of_connections() -> None:
    for wrong in (0, 33, -1):
        with pytest.raises(gcx.InvalidValueError, match="connections must be"):
            gcx.request_connections(wrong)
    with pytest.raises(TypeError):
        gcx.request_connections("8")  # type: ignore[arg-type]


def test_leases_that_insist_on_queues_of_their_own(version: tuple[int, int]) -> None:
    if version < (13, 1):
        with pytest.raises(gcx.NotSupportedError, match=r"13\.1"):
            gcx.acquire(8, require_workqueues=True)
    else:
        gcx.acquire(8, require_workqueues=True).close()
    with pytest.raises(TypeError, match="require_workqueues"):
        gcx.acquire(8, require_workqueues=1)  # type: ignore[arg-type]

"""gcx ps: the reservations of all processes; gcx top shows the same."""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path
from typing import Any

import pytest

from .command import Done, gcx, program
from .publishing import RESERVATIONS, publishers

NO_DRIVER = "/nonexistent.so"  # ps needs none


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "run"
    path.mkdir(mode=0o700)
    return path


def ps(folder: Path, *words: str, command: str = "ps") -> Done:
    return gcx(command, *words, driver=NO_DRIVER, env={"GCX_RESERVATION_DIR": str(folder)})


def shown(folder: Path, command: str = "ps") -> str:
    done = ps(folder, *(["--once"] if command == "top" else []), command=command)
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout


def document_of(folder: Path, command: str = "ps") -> dict[str, Any]:
    done = ps(folder, "--json", command=command)
    assert (done.returncode, done.stderr) == (0, ""), done
    document = json.loads(done.stdout)
    assert isinstance(document, dict)
    return document


def test_ps_without_reservations_says_so(folder: Path) -> None:
    assert f"no reservations in {folder}; " in shown(folder)
    assert "gcx exec" in shown(folder)
    assert document_of(folder) == {
        "simulated": False,
        "folder": str(folder),
        "reservations": [],
        "warnings": [],
    }
    assert list(folder.iterdir()) == []


def test_ps_text_lists_each_reservation(folder: Path) -> None:
    with publishers(folder, *RESERVATIONS) as (trainer, server):
        text = shown(folder)
        assert "132 SMs, SIMULATED: 132 reserved, 0 free\n" in text
        assert "Without MPS, processes take turns" in text
        assert text.endswith(f"\nReservations in {folder}; those in other folders are not listed\n")
        rows = [line.split() for line in text.splitlines()[2:-2]]
        pids = [str(trainer.process.pid), str(server.process.pid)]
        assert [(*row[:4], row[-3]) for row in rows] == [
            ("train", "108", "coscheduled", "3-15", pids[0]),
            ("decode", "24", "coscheduled", "0-2", pids[1]),
            ("batch", "48", "coscheduled", "waits", pids[1]),
        ]
        assert rows[0][-2:] == [str(os.geteuid()), "no"]
        # gcx top lists them with the leases, of which there are none.
        top = shown(folder, "top")
        assert "trainer" in top
        assert "reservations of all processes" in top
        assert "3-15" in top
        trainer.end()
        for _ in range(500):
            if "waits" not in shown(folder):  # SMs that were free were meant for it
                break
            time.sleep(0.01)
        text = shown(folder)
        assert "train " not in text
        assert "132 SMs, SIMULATED: 72 reserved, 60 free\n" in text
        server.end()
        assert "no reservations" in shown(folder)
        assert not list(folder.glob("*reservation-*"))


def test_ps_json_lists_each_reservation(folder: Path) -> None:
    with publishers(folder, *RESERVATIONS) as (trainer, server):
        document = document_of(folder)
        assert document["simulated"] is True
        assert document["warnings"] == []
        train, decode, batch = document["reservations"]
        assert train["name"] == "train"
        assert (train["pid"], train["waits"]) == (trainer.process.pid, False)
        assert (decode["pid"], decode["sm_count"]) == (server.process.pid, 24)
        assert not set(train["atoms"]) & set(decode["atoms"])
        assert len(train["atoms"]) + len(decode["atoms"]) == train["atom_count"] == 16
        assert (batch["waits"], batch["sm_count"], batch["atoms"]) == (True, 48, [])
        assert train["device_uuid"] == batch["device_uuid"]
        assert (train["mps"], train["mps_thread_percentage"]) == ("off", 0)
        assert abs(train["since_ms"] - 1000 * time.time()) < 600_000
        assert document_of(folder, "top")["reservations"] == document["reservations"]


def test_ps_free_sms_belong_to_the_waiting_request(folder: Path) -> None:
    with publishers(folder, ("p", "reservation:a:108", "wait:reservation:b:48")):
        assert ": 108 reserved, 24 free for those that wait\n" in shown(folder)


def test_ps_with_an_mps_percentage_shows_no_free_count(folder: Path) -> None:
    """Which SMs the process has is unknown, so others get none."""
    limited = {"GCX_SIM_MPS": "1", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "50"}
    done = gcx(
        "exec", "--sms", "8", "--", program(), "ps",
        env={**limited, "GCX_RESERVATION_DIR": str(folder)},
    )  # fmt: skip
    assert " SMs, SIMULATED\n" in done.stdout, done
    assert "free" not in done.stdout


def test_ps_uuid_is_that_of_info_and_exec(folder: Path) -> None:
    uuid = json.loads(gcx("info", "--json").stdout)["devices"][0]["uuid"]
    assert re.fullmatch(r"GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", uuid)
    with publishers(folder, ("p", "reservation:a:24", "lease:24")):
        assert f", {uuid}, 132 SMs" in shown(folder)
        assert document_of(folder)["reservations"][0]["device_uuid"] == uuid
        assert document_of(folder, "top")["leases"][0]["device_uuid"] == uuid
    words = ["exec", "--sms", "8", "--device", uuid, "--", "true"]
    done = gcx(*words, env={"GCX_RESERVATION_DIR": str(folder)})
    assert (done.returncode, " has 8 of " in done.stderr) == (0, True)


def test_ps_wait_for_rest_is_listed_as_rest(folder: Path) -> None:
    with publishers(folder, ("p", "reservation:all:rest", "wait:reservation:late:rest")):
        rows = [line.split()[:4] for line in shown(folder).splitlines()[2:-2]]
        assert rows == [
            ["all", "132", "coscheduled", "0-15"],
            ["late", "rest", "coscheduled", "waits"],
        ]
        assert [reservation["sm_count"] for reservation in document_of(folder)["reservations"]] == [
            132,
            "rest",
        ]


def test_ps_names_are_escaped(folder: Path) -> None:
    for name in ("\x1b[2J", "a\nb", "\u009b2J", "\udcff"):
        with publishers(folder, ("p", f"reservation:{name}:32")):
            text = shown(folder)
            assert all(line.isprintable() for line in text.splitlines()), (name, text)
            assert "\\x" in text
            assert len(document_of(folder)["reservations"]) == 1


def test_ps_folder_option_selects_the_folder(folder: Path) -> None:
    other = folder / "other"
    other.mkdir(mode=0o700)
    with publishers(folder, RESERVATIONS[0]):
        assert "no reservations" in ps(folder, "--folder", str(other)).stdout
        assert "train" in ps(folder, "--folder", str(folder)).stdout
    other.chmod(0o777)
    done = ps(folder, "--folder", str(other))
    assert done.returncode == 1
    assert "all users can enter it" in done.stderr
    done = ps(folder, "--folder", "other")
    assert done.returncode == 1
    assert "not an absolute path" in done.stderr


def test_ps_ignores_files_that_are_no_reservation(folder: Path) -> None:
    (folder / f"reservation-{32 * '0'}-{16 * '0'}").symlink_to("/etc/passwd")
    assert "no reservations" in shown(folder)
    (folder / f"reservation-{32 * '1'}-{16 * '0'}").write_text("left by a process that has ended")
    assert "no reservations" in shown(folder)
    assert [path.name for path in folder.iterdir()] == [f"reservation-{32 * '0'}-{16 * '0'}"]

"""gcx ps: the reservations of all processes; gcx top shows the same. A transcript in
docs/reference/command.md shows the whole text."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

from .command import fail, gcx, program, succeed, succeed_json, until
from .publishing import RESERVATIONS, listed, listed_json, publishers


def test_ps_without_reservations_says_so(folder: Path) -> None:
    assert f"no reservations in {folder}; " in listed("ps")
    assert "gcx exec" in listed("ps")
    assert listed_json("ps") == {
        "simulated": False,
        "folder": str(folder),
        "reservations": [],
        "warnings": [],
    }
    assert list(folder.iterdir()) == []


def test_ps_text_lists_each_reservation(folder: Path) -> None:
    with publishers(*RESERVATIONS) as (trainer, server):
        text = listed("ps")
        assert text.endswith(f"\nReservations in {folder}; those in other folders are not listed\n")
        rows = [line.split() for line in text.splitlines()[2:-2]]
        pids = [str(publisher.process.pid) for publisher in (trainer, server, server)]
        assert [row[-3] for row in rows] == pids
        assert rows[0][-2:] == [str(os.geteuid()), "no"]
        # gcx top lists them with the leases, of which there are none.
        top = listed("top")
        assert "trainer" in top
        assert "reservations of all processes" in top
        assert "3-15" in top
        trainer.end()
        until(lambda: "waits" not in listed("ps"))  # SMs that were free were meant for it
        text = listed("ps")
        assert "train " not in text
        assert "132 SMs, SIMULATED: 72 reserved, 60 free\n" in text
        server.end()
        assert "no reservations" in listed("ps")


def test_ps_json_lists_each_reservation() -> None:
    with publishers(*RESERVATIONS) as (trainer, server):
        document = listed_json("ps")
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
        assert listed_json("top")["reservations"] == document["reservations"]


def test_ps_free_sms_belong_to_the_waiting_request() -> None:
    with publishers(("p", "reservation:a:108", "wait:reservation:b:48")):
        assert ": 108 reserved, 24 free for those that wait\n" in listed("ps")


def test_ps_with_an_mps_percentage_shows_no_free_count() -> None:
    """Which SMs the process has is unknown, so others get none."""
    limited = {"GCX_SIM_MPS": "1", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "50"}
    done = gcx("exec", "--sms", "8", "--", program(), "ps", env=limited)
    assert " SMs, SIMULATED\n" in done.stdout, done
    assert "free" not in done.stdout


def test_ps_uuid_is_that_of_info_and_exec() -> None:
    uuid = succeed_json("info")["devices"][0]["uuid"]
    assert re.fullmatch(r"GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", uuid)
    with publishers(("p", "reservation:a:24", "lease:24")):
        assert f", {uuid}, 132 SMs" in listed("ps")
        assert listed_json("ps")["reservations"][0]["device_uuid"] == uuid
        assert listed_json("top")["leases"][0]["device_uuid"] == uuid
    done = gcx("exec", "--sms", "8", "--device", uuid, "--", "true")
    assert (done.returncode, " has 8 of " in done.stderr) == (0, True)


def test_ps_folder_option_selects_the_folder(folder: Path) -> None:
    other = folder / "other"
    other.mkdir(mode=0o700)
    with publishers(RESERVATIONS[0]):
        assert "no reservations" in succeed("ps", "--folder", str(other))
        assert "train" in succeed("ps", "--folder", str(folder))
    other.chmod(0o777)
    assert "all users can enter it" in fail("ps", "--folder", str(other))
    assert "not an absolute path" in fail("ps", "--folder", "other")


def test_ps_ignores_files_that_are_no_reservation(folder: Path) -> None:
    (folder / f"reservation-{32 * '0'}-{16 * '0'}").symlink_to("/etc/passwd")
    assert "no reservations" in listed("ps")
    (folder / f"reservation-{32 * '1'}-{16 * '0'}").write_text("left by a process that has ended")
    assert "no reservations" in listed("ps")
    assert len(list(folder.iterdir())) == 2  # Listing removes nothing.

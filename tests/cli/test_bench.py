"""gcx bench: that it measures both sides, and that gcx's memory is flat."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from .command import DRIVERS, H100, SM_COUNTS, fail, fail_json, succeed, succeed_json

MEASURED = ["resource query", "first context", "context made before", "2 contexts, 2 streams"]


def test_schema() -> None:
    bench = succeed_json("bench", "--rounds", "100")
    assert bench["simulated"] is True
    assert bench["device"] == 0
    assert bench["rounds"] == 100
    assert "SIMULATED" in bench["note"]
    names = [measurement["name"] for measurement in bench["measurements"]]
    for wanted in MEASURED:
        assert any(wanted in name for name in names), wanted
    for measurement in bench["measurements"]:
        assert measurement["gcx_us"] > 0
        assert measurement["driver_us"] > 0
        expected = measurement["gcx_us"] / measurement["driver_us"]
        assert measurement["ratio"] == pytest.approx(expected, rel=1e-3)
    memory = bench["memory"]
    assert memory["rounds"] == 100
    assert memory["used_after_last_round"] - memory["used_before_second_round"] == 0
    assert memory["difference_bytes"] == 0


def test_the_raw_calls_lose_memory() -> None:
    """Two green contexts a round, 4 MiB each: what gcx's kept contexts avoid."""
    lost = succeed_json("bench", "--rounds", "100")["memory"]["driver_bytes_per_round"]
    assert lost >= 2 * 4 * 1024 * 1024


def test_text() -> None:
    text = succeed("bench", "--rounds", "50")
    assert text.startswith("SIMULATED")
    assert "say nothing about a GPU" in text
    assert "device memory" in text
    assert all(wanted in text for wanted in MEASURED)


@pytest.mark.parametrize("gpu", SM_COUNTS)
@pytest.mark.parametrize("driver", DRIVERS)
def test_every_machine(gpu: str, driver: str) -> None:
    bench = succeed_json("bench", "--rounds", "3", driver=f"sim:{gpu}@{driver}")
    assert bench["memory"]["difference_bytes"] == 0


def test_ten_thousand_rounds_leave_the_memory_flat() -> None:
    assert succeed_json("bench", "--rounds", "10000")["memory"]["difference_bytes"] == 0


def test_devices() -> None:
    machine = "sim:h100,orin@13.0"
    bench = succeed_json("bench", "--rounds", "3", "--device", "1", driver=machine)
    assert bench["device"] == 1
    document, _ = fail_json("bench", "--device", "2", driver=machine)
    assert document["error"]["result"] == "GCX_ERROR_INVALID_DEVICE"


def test_a_driver_in_a_deep_folder(tmp_path: Path) -> None:
    """gcx.h has 255 characters for its path; the command's own driver calls need all of it."""
    folder = tmp_path.joinpath(*["folder" * 20] * 3)
    folder.mkdir(parents=True)
    library = folder / "libgcx-sim.so"
    shutil.copy(succeed_json("sim", "list")["library"], library)
    for driver, env in ((H100, {"GCX_SIM_LIBRARY": str(library)}), (str(library), {})):
        succeed("bench", "--rounds", "2", driver=driver, env=env)
        succeed("info", "--record", str(tmp_path / "gpu.profile"), driver=driver, env=env)


def test_driver_call_that_fails() -> None:
    message = fail("bench", "--rounds", "3", env={"GCX_SIM_FAIL": "cuGreenCtxCreate:2:2"})
    assert "cuGreenCtxCreate" in message

"""gcx bench measures both sides, and gcx's memory stays flat."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from .command import DRIVERS, H100, SM_COUNTS, fail, fail_json, succeed, succeed_json

MEASURED = ["resource query", "first context", "context made before", "2 contexts, 2 streams"]


def test_bench_json_has_both_sides_and_the_memory() -> None:
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


def test_driver_calls_lose_memory_each_round() -> None:
    """Two green contexts a round, 4 MiB each, which gcx avoids by caching contexts."""
    lost = succeed_json("bench", "--rounds", "100")["memory"]["driver_bytes_per_round"]
    assert lost >= 2 * 4 * 1024 * 1024


def test_bench_text_names_each_measurement() -> None:
    text = succeed("bench", "--rounds", "50")
    assert text.startswith("SIMULATED")
    assert "say nothing about a GPU" in text
    assert "device memory" in text
    assert all(wanted in text for wanted in MEASURED)


@pytest.mark.parametrize("gpu", SM_COUNTS)
@pytest.mark.parametrize("driver", DRIVERS)
def test_bench_on_every_machine_keeps_memory_flat(gpu: str, driver: str) -> None:
    bench = succeed_json("bench", "--rounds", "3", driver=f"sim:{gpu}@{driver}")
    assert bench["memory"]["difference_bytes"] == 0


def test_bench_ten_thousand_rounds_keep_memory_flat() -> None:
    assert succeed_json("bench", "--rounds", "10000")["memory"]["difference_bytes"] == 0


def test_bench_device_option_selects_the_device() -> None:
    machine = "sim:h100,orin@13.0"
    bench = succeed_json("bench", "--rounds", "3", "--device", "1", driver=machine)
    assert bench["device"] == 1
    document, _ = fail_json("bench", "--device", "2", driver=machine)
    assert document["error"]["result"] == "GCX_ERROR_INVALID_DEVICE"


def test_bench_and_record_find_a_driver_with_a_long_path(tmp_path: Path) -> None:
    """The library reports 255 characters of the path; the driver's own calls need all of it."""
    folder = tmp_path.joinpath(*["folder" * 20] * 3)
    folder.mkdir(parents=True)
    library = folder / "libgcx-sim.so"
    shutil.copy(succeed_json("sim", "list")["library"], library)
    for driver, env in ((H100, {"GCX_SIM_LIBRARY": str(library)}), (str(library), {})):
        succeed("bench", "--rounds", "2", driver=driver, env=env)
        succeed("info", "--record", str(tmp_path / "gpu.profile"), driver=driver, env=env)


def test_bench_failing_driver_call_is_named() -> None:
    message = fail("bench", "--rounds", "3", env={"GCX_SIM_FAIL": "cuGreenCtxCreate:2:2"})
    assert "cuGreenCtxCreate" in message

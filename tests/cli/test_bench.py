"""gcx bench measures both sides, and gcx's memory stays flat; gcx bench repartition measures by the
simulated clock."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from .command import H100, MACHINES, Json, succeed, succeed_json

MEASURED = ["resource query", "first context", "cached context", "2 contexts, 2 streams"]


def test_bench_json_has_both_sides_and_the_memory() -> None:
    bench = succeed_json("bench", "--rounds", "10000")
    assert bench["simulated"] is True
    assert bench["device"] == 0
    assert bench["rounds"] == 10000
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
    assert memory["rounds"] == 10000
    assert memory["used_after_last_round"] == memory["used_before_second_round"]
    assert memory["difference_bytes"] == 0
    # The driver loses two green contexts a round, 4 MiB each; gcx caches its contexts.
    assert memory["driver_bytes_per_round"] >= 2 * 4 * 1024 * 1024


@pytest.mark.parametrize("machine", MACHINES)
def test_bench_on_every_machine_keeps_memory_flat(machine: str) -> None:
    bench = succeed_json("bench", "--rounds", "3", driver=machine)
    assert bench["memory"]["difference_bytes"] == 0


def test_bench_and_record_find_a_driver_with_a_long_path(tmp_path: Path) -> None:
    """The library reports 255 characters of the path; the driver's own calls need all of it."""
    folder = tmp_path.joinpath(*["folder" * 20] * 3)
    folder.mkdir(parents=True)
    library = folder / "libgcx-sim.so"
    shutil.copy(succeed_json("sim", "list")["library"], library)
    for driver, env in ((H100, {"GCX_SIM_LIBRARY": str(library)}), (str(library), {})):
        succeed("bench", "--rounds", "2", driver=driver, env=env)
        succeed("info", "--record", str(tmp_path / "gpu.profile"), driver=driver, env=env)


def rows(*words: str, driver: str = "sim:h200@13.0") -> dict[str, Json]:
    document = succeed_json("bench", "repartition", *words, driver=driver)
    assert document["simulated"] is True
    assert "SIMULATED" in document["note"]
    return {row["name"]: row for row in document["measurements"]}


def test_repartition_json_has_every_measurement() -> None:
    measured = rows("--rounds", "100")
    assert list(measured) == [
        "acquire and release",
        "resize one lease, idle",
        "resize two leases, idle",
        "resize two leases, next to a busy third",
        "resize to its first kernel's end",
        "resize to its first kernel's end, busy",
    ]
    for row in measured.values():
        assert row["gcx"]["rounds"] == 100
        assert 0 < row["gcx"]["median_us"] <= row["gcx"]["p99_us"]
        assert 0 < row["baseline"]["median_us"] <= row["baseline"]["p99_us"]
        expected = row["gcx"]["median_us"] / row["baseline"]["median_us"]
        assert row["ratio"] == pytest.approx(expected, rel=1e-3)


def test_repartition_resize_does_not_wait_for_running_kernels() -> None:
    measured = rows("--rounds", "200")
    one, idle = measured["resize one lease, idle"], measured["resize two leases, idle"]
    busy = measured["resize two leases, next to a busy third"]
    assert one["gcx"]["median_us"] < idle["gcx"]["median_us"]
    assert one["against"] == idle["against"] == "driver: split, create, destroy"
    assert one["baseline"]["median_us"] == idle["baseline"]["median_us"] > 1000
    assert busy["gcx"]["p99_us"] == idle["gcx"]["p99_us"] < 3
    assert busy["baseline"]["median_us"] > idle["baseline"]["median_us"] + 1000
    assert busy["ratio"] < 1e-3
    for name in ("resize to its first kernel's end", "resize to its first kernel's end, busy"):
        assert 1 < measured[name]["ratio"] < 1.5


@pytest.mark.parametrize("machine", MACHINES)
def test_repartition_runs_on_every_machine(machine: str) -> None:
    assert len(rows("--rounds", "2", driver=machine)) == 6

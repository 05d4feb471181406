"""gcx bench repartition, by the simulated clock."""

from __future__ import annotations

import pytest

from .command import DRIVERS, SM_COUNTS, Json, fail, fail_json, succeed, succeed_json


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
        "resize two leases, beside a busy third",
        "resize to its first kernel's end",
        "resize to its first kernel's end, busy",
    ]
    for row in measured.values():
        assert row["gcx"]["rounds"] == 100
        assert 0 < row["gcx"]["median_us"] <= row["gcx"]["p99_us"]
        assert 0 < row["beside"]["median_us"] <= row["beside"]["p99_us"]
        expected = row["gcx"]["median_us"] / row["beside"]["median_us"]
        assert row["ratio"] == pytest.approx(expected, rel=1e-3)


def test_repartition_resize_does_not_wait_for_running_kernels() -> None:
    measured = rows("--rounds", "200")
    idle = measured["resize two leases, idle"]
    busy = measured["resize two leases, beside a busy third"]
    assert busy["gcx"]["p99_us"] == idle["gcx"]["p99_us"] < 3
    assert busy["beside"]["median_us"] > idle["beside"]["median_us"] + 1000
    assert busy["ratio"] < 1e-3
    for name in ("resize to its first kernel's end", "resize to its first kernel's end, busy"):
        assert 1 < measured[name]["ratio"] < 1.5


def test_repartition_one_lease_costs_less_than_two() -> None:
    measured = rows("--rounds", "50")
    one = measured["resize one lease, idle"]
    two = measured["resize two leases, idle"]
    assert one["gcx"]["median_us"] < two["gcx"]["median_us"]
    assert one["against"] == two["against"] == "driver: split, create, destroy"
    assert one["beside"]["median_us"] == two["beside"]["median_us"] > 1000


def test_repartition_text_names_each_measurement() -> None:
    text = succeed("bench", "repartition", "--rounds", "50")
    assert text.startswith("SIMULATED")
    assert "resize one lease, idle" in text
    assert "resize two leases, beside a busy third" in text
    assert "times are SIMULATED" in text


@pytest.mark.parametrize("gpu", SM_COUNTS)
@pytest.mark.parametrize("driver", DRIVERS)
def test_repartition_runs_on_every_machine(gpu: str, driver: str) -> None:
    assert len(rows("--rounds", "2", driver=f"sim:{gpu}@{driver}")) == 6


def test_repartition_failing_driver_call_is_named() -> None:
    message = fail("bench", "repartition", env={"GCX_SIM_FAIL": "cuGreenCtxCreate:3:2"})
    assert "cuGreenCtxCreate" in message
    failed, _ = fail_json("bench", "repartition", "--device", "1")
    assert failed["error"]["result"] == "GCX_ERROR_INVALID_DEVICE"

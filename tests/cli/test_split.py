"""gcx split creates partitions, times each step and destroys them."""

from __future__ import annotations

import pytest

from .command import MACHINES, fail, fail_json, succeed, succeed_json


def test_split_json_has_times_and_cache() -> None:
    split = succeed_json("split", "--sms", "108,24")
    assert split["simulated"] is True
    assert split["driver"]["simulated"] is True
    assert split["device"] == 0
    assert split["remainder"] == 0
    assert [group["sm_count"] for group in split["groups"]] == [108, 24]
    assert [len(group["seen"]) for group in split["groups"]] == [108, 24]
    assert split["split_us"] >= 0
    assert split["kernels_us"] > 0
    for group in split["groups"]:
        assert all(group[step] > 0 for step in ("context_us", "stream_us"))
    assert split["take_down_us"] >= 0
    assert split["released"] is True
    assert split["cache"]["in_use"] == 0
    assert split["cache"]["kept"] == 0
    assert split["cache"]["misses"] == 2
    assert split["cache"]["evicted"] == 2


def test_split_text_has_times_and_cache() -> None:
    text = succeed("split", "--sms", "108,24")
    assert text.startswith("SIMULATED")
    assert "say nothing about a GPU" in text
    assert "everything taken down" in text
    assert "2 made, 2 destroyed, 0 in use, 0 kept" in text
    rows = [line.split() for line in text.splitlines()]
    (first,) = [row for row in rows if row[0] == "A"]
    (second,) = [row for row in rows if row[0] == "B"]
    assert first[1:5] == ["108", "108", "108", "16"]
    assert second[1:5] == ["24", "24", "24", "8"]
    assert all(float(time) > 0 for time in first[5:] + second[5:])


@pytest.mark.parametrize(
    ("sms", "family", "largest"),
    [
        ("108,24", "coscheduled", [16, 8]),
        ("10,122", "fine", [2, 2]),
        ("24", "max-cluster", [16]),
    ],
)
def test_split_cluster_size_is_that_of_an_h200(sms: str, family: str, largest: list[int]) -> None:
    """As measured on an H200, docs/measurements.md."""
    groups = succeed_json("split", "--sms", sms, "--family", family)["groups"]
    assert [group["max_cluster_size"] for group in groups] == largest


def test_split_without_clusters_reports_1() -> None:
    groups = succeed_json("split", "--sms", "8,8", driver="sim:a100@13.0")["groups"]
    assert [group["max_cluster_size"] for group in groups] == [1, 1]


@pytest.mark.parametrize("machine", MACHINES)
def test_split_gives_what_plan_says(machine: str) -> None:
    for sms in ("4,rest", "6,4"):
        plan = succeed_json("plan", "--sms", sms, driver=machine)
        split = succeed_json("split", "--sms", sms, driver=machine)
        assert [(group["requested"], group["sm_count"]) for group in split["groups"]] == [
            (group["requested"], group["sm_count"]) for group in plan["groups"]
        ]
        assert split["remainder"] == plan["remainder"]
        assert split["released"] is True


@pytest.mark.parametrize(
    ("function", "nth", "code"),
    [
        ("cuInit", 1, 999),
        ("cuDeviceGetDevResource", 1, 999),
        ("cuDevSmResourceSplitByCount", 1, 915),
        ("cuDevResourceGenerateDesc", 2, 2),
        ("cuGreenCtxCreate", 1, 2),
        ("cuGreenCtxCreate", 2, 2),
        ("cuGreenCtxStreamCreate", 2, 2),
        ("cuLaunchKernel", 2, 719),
    ],
)
def test_split_failing_driver_call_is_named(function: str, nth: int, code: int) -> None:
    """The driver's result and the function's name are reported."""
    injected = {"GCX_SIM_FAIL": f"{function}:{nth}:{code}"}
    message = fail("split", "--sms", "108,24", env=injected)
    assert "SIMULATED" in message
    assert function in message
    document, _ = fail_json("split", "--sms", "108,24", env=injected)
    assert document["error"]["code"] == code

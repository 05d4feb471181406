"""gcx split creates partitions, times each step and destroys them."""

from __future__ import annotations

import pytest

from .command import MACHINES, succeed_json


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
    counts = [split["cache"][name] for name in ("in_use", "cached", "misses", "evicted")]
    assert counts == [0, 0, 2, 2]


@pytest.mark.parametrize(
    ("gpu", "sms", "family", "largest"),
    [
        ("h100", "108,24", "coscheduled", [16, 8]),
        ("h100", "10,122", "fine", [2, 2]),
        ("h100", "24", "max-cluster", [16]),
        ("a100", "8,8", "coscheduled", [1, 1]),
    ],
)
def test_split_cluster_size_is_as_measured(
    gpu: str, sms: str, family: str, largest: list[int]
) -> None:
    """As measured on an H200, docs/measurements/log.md."""
    line = ["split", "--sms", sms, "--family", family]
    groups = succeed_json(*line, driver=f"sim:{gpu}@13.0")["groups"]
    assert [group["max_cluster_size"] for group in groups] == largest


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

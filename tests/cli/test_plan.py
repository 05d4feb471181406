"""gcx plan: the numbers, on every simulated GPU and driver."""

from __future__ import annotations

import pytest

from .command import DRIVERS, H100, fail, fail_json, succeed, succeed_json


def counts_of(sms: str, driver: str = H100, *more: str) -> tuple[list[int], int]:
    """Returns the counts of the groups and of the remainder."""
    plan = succeed_json("plan", "--sms", sms, *more, driver=driver)
    return [group["sm_count"] for group in plan["groups"]], plan["remainder"]


def test_plan_text_shows_rounding() -> None:
    rows = [line.split() for line in succeed("plan", "--sms", "10,24").splitlines()[3:]]
    assert rows == [["A", "10", "12", "rounded", "up"], ["B", "24", "24"], ["remainder", "96"]]


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("gpu", ["h100", "h200"])
def test_plan_is_the_same_on_every_driver(gpu: str, driver: str) -> None:
    machine = f"sim:{gpu}@{driver}"
    assert counts_of("108,24", machine) == ([108, 24], 0)
    assert counts_of("24,108", machine) == ([24, 108], 0)
    assert counts_of("8,16,24", machine) == ([8, 16, 24], 84)
    assert counts_of("7,10,17", machine) == ([8, 12, 24], 88)
    assert counts_of("132", machine) == ([132], 0)
    assert counts_of("24,rest", machine) == ([24, 108], 0)
    assert counts_of("10,122", machine, "--family", "fine") == ([10, 122], 0)


@pytest.mark.parametrize("driver", DRIVERS)
def test_plan_of_too_many_sms_is_refused(driver: str) -> None:
    for sms, said in {"133": "132", "108,32": "132", "132,rest": "no SMs are left"}.items():
        document, _ = fail_json("plan", "--sms", sms, driver=f"sim:h100@{driver}")
        assert document["simulated"] is True
        assert document["error"]["result"] == "GCX_ERROR_INVALID_RESOURCE_CONFIGURATION"
        assert document["error"]["code"] == 915
        assert said in document["error"]["message"]


def test_plan_exact_refuses_rounding() -> None:
    assert counts_of("108,24", H100, "--exact") == ([108, 24], 0)
    message = fail("plan", "--sms", "10,24", "--exact")
    assert "10" in message
    assert "12 + 24 can" in message

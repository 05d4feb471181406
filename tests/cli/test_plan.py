"""gcx plan: the numbers, on every simulated GPU and driver."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

import pytest

from .command import DRIVERS, H100, SM_COUNTS, fail, fail_json, gcx, succeed, succeed_json

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "command.md"


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


def test_plan_names_sizes_that_fit() -> None:
    message = fail("plan", "--sms", "66,66")
    assert "device 0 has 132; 68 + 64 can be given" in message
    assert counts_of("68,64", H100, "--exact") == ([68, 64], 0)


def sizes_of(percentage: Fraction, atoms: list[int]) -> list[int]:
    """Returns the sizes that a percentage can have, the one of the empty device first."""
    unit, remainder = atoms[0], atoms[-1] if atoms[-1] != atoms[0] else 0
    most = sum(atoms) * percentage / 100
    sizes = []
    for begin in (0, remainder)[: 2 if remainder else 1]:
        possible = [begin + unit * n for n in range(len(atoms) - (1 if remainder else 0) + 1)]
        sizes += [size for size in possible if most - unit < size <= most and size > 0]
    return list(dict.fromkeys(sizes[::-1] if percentage > 50 else sizes))


@pytest.mark.parametrize("family", ["coscheduled", "fine"])
@pytest.mark.parametrize("gpu", SM_COUNTS)
def test_plan_percentage_gives_at_most_that(gpu: str, family: str) -> None:
    driver = f"sim:{gpu}@13.0"
    families = succeed_json("info", driver=driver)["devices"][0]["families"]
    (atoms,) = [each["atoms"] for each in families if each["name"] == family]
    for text in (*range(1, 101, 4), "12.5", "33.3", "99.999999999", "100"):
        sizes = sizes_of(Fraction(text), atoms)
        if sizes:
            assert counts_of(f"{text}%", driver, "--family", family)[0] == sizes[:1], text
        else:
            assert "less than the smallest part" in fail("plan", "--sms", f"{text}%", driver=driver)


def test_plan_percentage_does_not_depend_on_floating_point() -> None:
    """0.29 * 100 is less than 29."""
    for driver, sms, count in [
        ("sim:a100@13.0", "50%", 54),
        ("sim:h100@13.0", "50%", 66),
        ("sim:b200@13.0", "50%", 74),
        ("sim:rtx4090@13.0", "14.0625%", 18),
        ("sim:rtx4090@13.0", "14.062499999%", 16),
    ]:
        assert counts_of(sms, driver, "--family", "fine")[0] == [count]


def test_docs_table_of_percentages_is_what_exec_gives() -> None:
    """One size, or the one of the empty device and the other."""
    rows = re.findall(r"^\| (\d+)% \| (.*) \|$", PAGE.read_text(), re.MULTILINE)
    head = re.search(r"^\| percentage \| (.*) \|$", PAGE.read_text(), re.MULTILINE)
    assert head is not None
    gpus = [cell.split(", ") for cell in head[1].split(" | ")]
    assert {gpu for same in gpus for gpu in same} == set(SM_COUNTS)
    assert [int(percentage) for percentage, _ in rows] == list(range(10, 101, 10))
    for same in gpus:
        for gpu in same:
            families = succeed_json("info", driver=f"sim:{gpu}@13.0")["devices"][0]["families"]
            for percentage, cells in rows:
                cell = cells.split(" | ")[gpus.index(same)]
                sizes = sizes_of(Fraction(percentage), families[0]["atoms"])
                words = ["exec", "--sms", f"{percentage}%", "--", "true"]
                done = gcx(*words, driver=f"sim:{gpu}@13.0")
                if sizes:
                    other = "".join(f" ({size})" for size in sizes[1:])
                    assert cell == str(sizes[0]) + other, (gpu, percentage)
                    assert f" has {sizes[0]} of the {SM_COUNTS[gpu]} SMs" in done.stderr, done
                else:
                    assert cell == "refused"
                    assert "is less than the smallest part" in done.stderr


def test_plan_percentages_that_add_up_to_100_fit() -> None:
    """One takes the remainder atom, as for gcx exec."""
    assert counts_of("50%,50%") == ([64, 60], 8)
    assert counts_of("25%,25%,25%,25%") == ([32, 32, 32, 28], 8)
    assert counts_of("20%,80%") == ([24, 100], 8)
    assert counts_of("12,80%") == ([12, 104], 16)
    assert counts_of("50%,rest") == ([64, 68], 0)
    assert counts_of("50%,68") == ([64, 68], 0)
    for gpu in SM_COUNTS:
        for sms in ("50%,50%", "75%,25%", "40%,30%,30%"):
            counts_of(sms, f"sim:{gpu}@13.0")
    assert counts_of("120,8%") == ([124, 8], 0)
    message = fail("plan", "--sms", ",".join(["8%"] * 16))
    assert "8% of 132 SMs is 8 SMs, and next to the others the atoms allow no" in message
    assert "device 0 has 132" in fail("plan", "--sms", "50%,60%")


def test_plan_percentage_is_printed_as_requested() -> None:
    rows = [line.split() for line in succeed("plan", "--sms", "50%,rest").splitlines()[3:]]
    assert rows == [["A", "50%", "64"], ["B", "rest", "68"], ["remainder", "0"]]
    for command in ("plan", "split", "verify"):
        groups = succeed_json(command, "--sms", "50%,8,rest")["groups"]
        assert [group["requested"] for group in groups] == ["50%", 8, "rest"]
        assert [group["sm_count"] for group in groups] == [64, 8, 60]


def test_plan_exact_refuses_a_percentage_that_is_not_whole() -> None:
    assert counts_of("100%", H100, "--exact") == ([132], 0)
    assert "50% of 132 SMs (66) in the coscheduled family; the nearest" in fail(
        "plan", "--sms", "50%", "--exact"
    )

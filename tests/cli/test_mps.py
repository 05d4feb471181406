"""info, verify and record where processes share a device through MPS."""

from __future__ import annotations

from pathlib import Path

import pytest

from .command import Env, fail, gcx, succeed, succeed_json

MPS = {"GCX_SIM_MPS": "1"}
SHARE = "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"


@pytest.mark.parametrize(
    ("env", "state", "percentage"),
    [
        ({}, "off", None),
        (MPS, "on", None),
        ({**MPS, SHARE: "20"}, "on", 20),
        ({**MPS, SHARE: "12.5"}, "on", 12.5),
        ({**MPS, SHARE: "twenty"}, "on", None),
        ({SHARE: "20"}, "off", 20),
    ],
)
def test_info_mps_state_follows_the_daemon(env: Env, state: str, percentage: float | None) -> None:
    devices = succeed_json("info", driver="sim:2xh100@13.0", env=env)["devices"]
    for device in devices:
        assert device["mps"] == {"state": state, "thread_percentage": percentage}


def test_info_mps_text_explains_the_state() -> None:
    off, on = succeed("info"), succeed("info", env=MPS)
    assert "MPS                   off: processes take turns" in off
    assert "MPS                   on: partitions of several processes run side by side" in on
    assert "virtual" in on
    limited = succeed("info", env={**MPS, SHARE: "20"})
    assert f"{SHARE} limits this process to 20 percent;" in limited
    assert "cuBLAS 13.1 computes wrong products with many such limits" in limited
    assert "limits this process" not in succeed("info", env={SHARE: "20"})


@pytest.mark.parametrize("driver", ["12.4", "13.0", "13.5"])
def test_verify_under_mps_claims_only_what_it_saw(driver: str, tmp_path: Path) -> None:
    picture = tmp_path / "sms.svg"
    line = ["verify", "--sms", "108,24", "--svg", str(picture)]
    plain = succeed(*line, driver=f"sim:h100@{driver}")
    assert "no SM is in two" in plain
    assert "virtual" not in plain + picture.read_text()
    shared = succeed(*line[:3], driver=f"sim:h100@{driver}", env=MPS)
    assert "no SM is in two" not in shared
    assert "  A  108 SMs, all seen\n  B  24 SMs, all seen\n" in shared
    assert "ok, as far as can be seen" in shared
    assert "nor whether another\npartition or process has them" in shared
    for env, virtual in [({}, False), (MPS, True)]:
        document = succeed_json("verify", "--sms", "108,24", env=env)
        assert document["ok"] is True
        assert document["virtual_sm_numbers"] is virtual
        assert document["overlap"] == (None if virtual else 0)
        seen = [set(group["seen"]) for group in document["groups"]]
        assert [len(sms) for sms in seen] == [108, 24]
        assert bool(seen[0] & seen[1]) is virtual
        assert succeed_json("split", "--sms", "108,24", env=env)["groups"]


def test_virtual_sm_numbers_are_not_drawn_or_recorded(tmp_path: Path) -> None:
    picture = tmp_path / "sms.svg"
    message = fail("verify", "--sms", "24", "--svg", str(picture), env=MPS)
    assert "--svg: under MPS SM numbers are virtual" in message
    message = fail("info", "--record", str(picture), env=MPS)
    assert "shared through MPS, under which SM numbers are virtual" in message
    assert not picture.exists()


def test_info_unsupported_mps_query_is_unknown() -> None:
    """The driver answers CUDA_ERROR_INVALID_VALUE to this query only."""
    shown = []
    for nth in range(1, 30):
        done = gcx("info", env={**MPS, "GCX_SIM_FAIL": f"cuDeviceGetAttribute:{nth}:1"})
        shown += [line for line in done.stdout.splitlines() if line.startswith("  MPS")]
    assert [line for line in shown if "unknown: the driver doesn't report" in line] == [
        "  MPS                   unknown: the driver doesn't report whether other processes run "
        "concurrently"
    ]


DAEMON_LIMIT = {"GCX_SIM_MPS": "50%"}


@pytest.mark.parametrize(
    "words",
    [
        ["info"],
        ["split", "--sms", "24"],
        ["plan", "--sms", "24"],
        ["verify", "--sms", "24"],
        ["exec", "--sms", "24", "--", "true"],
        ["exec", "--shared", "--sms", "rest", "--", "true"],
    ],
)
def test_daemon_limit_is_named(words: list[str]) -> None:
    """As recorded: the client sees half of the SMs, and no group of them."""
    message = gcx(*words, env=DAEMON_LIMIT).stderr
    assert "MPS limits this process to 66 SMs, which the driver does not split" in message
    assert "set_default_active_thread_percentage 100" in message


@pytest.mark.parametrize("variable", [f"{SHARE}=50", "CUDA_MPS_SM_PARTITION=GPU-1234/large"])
def test_variable_that_limits_is_named(variable: str) -> None:
    name, _, value = variable.partition("=")
    env = {**MPS, name: value}
    assert f"{name} is set; unset it" in gcx("info", env={**env, **DAEMON_LIMIT}).stderr
    warned = gcx("plan", "--sms", "24", env={**env, "GCX_LOG": "warning"})
    assert warned.returncode == 0
    assert (
        f"MPS limits this process to a part of the SMs, which other processes may have too: {name}"
        in (warned.stderr)
    )
    done = gcx("exec", "--sms", "24", "--", "true", env=env)
    assert f"MPS limits this process by {variable}, so other processes may have these SMs" in (
        done.stderr
    )
    assert variable in succeed("info", env=env)
    # Without MPS, or with the whole device, nothing is limited.
    for other in ({name: value}, {**MPS, SHARE: "100"}):
        assert (
            "MPS limits"
            not in gcx("plan", "--sms", "24", env={**other, "GCX_LOG": "warning"}).stderr
        )

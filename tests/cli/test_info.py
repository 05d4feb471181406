"""gcx info: driver, devices, families, capabilities, queues, environment."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from .command import (
    DRIVERS,
    FAMILIES,
    SM_COUNTS,
    WITHOUT_CLUSTERS,
    Done,
    fail_json,
    gcx,
    succeed,
    succeed_json,
)
from .test_profiles import profile

CAPABILITIES = {"12.4": 1, "12.5": 2, "12.8": 2, "13.0": 4, "13.1": 7, "13.4": 8, "13.5": 8}
VARIABLES = [
    "CUDA_VISIBLE_DEVICES",
    "NVIDIA_VISIBLE_DEVICES",
    "CUDA_MPS_PIPE_DIRECTORY",
    "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE",
    "CUDA_MPS_SM_PARTITION",
    "CUDA_MPS_ENABLE_PER_CTX_DEVICE_MULTIPROCESSOR_PARTITIONING",
]


@pytest.mark.parametrize("gpu", SM_COUNTS)
@pytest.mark.parametrize("driver", DRIVERS)
def test_info_on_every_machine_has_its_families(gpu: str, driver: str) -> None:
    info = succeed_json("info", driver=f"sim:{gpu}@{driver}")
    assert info["simulated"] is info["driver"]["simulated"] is True
    assert info["driver"]["version"] == driver
    assert info["driver"]["library"].endswith("libgcx-sim.so")
    assert info["driver"]["header_version"].split(".")[0] in {"12", "13"}
    (device,) = info["devices"]
    assert device["ordinal"] == 0
    assert device["sm_count"] == SM_COUNTS[gpu]
    assert device["name"].startswith("SIMULATED ")
    assert [family["name"] for family in device["families"]] == FAMILIES
    for family in device["families"]:
        lacks = family["name"] == "max-cluster" and gpu in WITHOUT_CLUSTERS
        assert family["available"] is not lacks
        if lacks:
            assert "compute capability 9.0" in family["message"]
            continue
        assert family["atom_count"] == len(family["atoms"])
        assert sum(family["atoms"]) == SM_COUNTS[gpu]
    available = [each["available"] for each in info["capabilities"]]
    assert available.count(True) == CAPABILITIES[driver]


def test_info_capability_names_its_driver_version() -> None:
    for capability in succeed_json("info", driver="sim:h100@13.1")["capabilities"]:
        required = tuple(int(part) for part in capability["required_version"].split("."))
        assert capability["available"] is (required <= (13, 1)), capability


def test_info_device_option_selects_the_device() -> None:
    machine = "sim:2xh100,a100@13.0"
    devices = succeed_json("info", driver=machine)["devices"]
    assert [device["ordinal"] for device in devices] == [0, 1, 2]
    assert [device["sm_count"] for device in devices] == [132, 132, 108]
    (device,) = succeed_json("info", "--device", "2", driver=machine)["devices"]
    assert device == devices[2]
    (device,) = succeed_json("info", "--device", devices[1]["uuid"], driver=machine)["devices"]
    assert device == devices[1]
    document, _ = fail_json("info", "--device", "3", driver=machine)
    assert document["error"]["result"] == "GCX_ERROR_INVALID_DEVICE"


def test_info_environment_lists_each_variable() -> None:
    listed = {each["name"]: each for each in succeed_json("info")["environment"]}
    assert list(listed) == ["GCX_EXEC_PLAN", *VARIABLES]
    assert all(each["value"] is None and each["effect"] for each in listed.values())
    set_values = {name: f"{index}" for index, name in enumerate(VARIABLES)}
    for each in succeed_json("info", env=set_values)["environment"]:
        assert each["value"] == set_values.get(each["name"])
    text = succeed("info", env=set_values)
    assert all(f"  {name}={value}\n" in text for name, value in set_values.items())


PARTITION = "a gcx exec around this command gives it the SMs that are shown above, and no others"


def plan_line(done: Done) -> str:
    """Returns the effect of GCX_EXEC_PLAN, the last line of the output."""
    assert done.returncode == 0, done
    name, effect = done.stdout.splitlines()[-2:]
    assert name.startswith("  GCX_EXEC_PLAN=")
    return effect.strip()


def test_info_inside_gcx_exec_names_the_partition(folder: Path) -> None:
    inside = ("exec", "--sms", "24", "--")
    info = [os.environ["GCX_CLI"], "info"]
    assert plan_line(gcx(*inside, *info)) == PARTITION
    for more in ((), ("--json",)):
        shown = gcx(*inside, *info, *more).stdout
        assert " of=16 token=..." in shown, "whoever has the token can join the reservation"
        assert folder.name + "/" not in shown
    # Another driver is not the partition's.
    other = plan_line(gcx(*inside, *info, "--driver", "sim:a100@13.0"))
    assert other == "no partition: the driver that is shown above is not limited by it"
    # Nor is the whole device, without the auditor.
    other = plan_line(gcx(*inside, "env", "-u", "LD_AUDIT", *info))
    assert other == "no partition: the driver that is shown above is not limited by it"


@pytest.mark.parametrize(
    ("plan", "why"),
    [
        ("gcx-exec-9 x", "doesn't begin with gcx-exec-1"),
        ("", "doesn't begin with gcx-exec-1"),
        ("gcx-exec-1 driver=/x shim=/x", "names no device"),
        ("gcx-exec-1 sms=\x1b[2J", "sms=\\x1b[2J is unknown here"),
    ],
)
def test_info_with_a_damaged_plan_names_no_partition(plan: str, why: str) -> None:
    env = {"GCX_EXEC_PLAN": plan}
    effect = plan_line(gcx("info", env=env))
    assert effect.startswith("no partition: GCX_EXEC_PLAN")
    assert why in effect
    listed = succeed_json("info", env=env)["environment"]
    assert listed[0]["effect"].startswith("no partition: ")


def test_info_queues_follow_the_environment() -> None:
    """All partitions share them."""
    assert succeed_json("info")["queues"] == {
        "variable": "CUDA_DEVICE_MAX_CONNECTIONS",
        "value": None,
        "connections": 8,
        "most": 32,
        "warning": None,
    }
    assert "connections           8, CUDA_DEVICE_MAX_CONNECTIONS isn't set" in succeed("info")
    assert "WARNING" not in succeed("info")
    for value in ("2", "8", "32"):
        env = {"CUDA_DEVICE_MAX_CONNECTIONS": value}
        queues = succeed_json("info", env=env)["queues"]
        assert (queues["value"], queues["connections"]) == (value, int(value))
        assert queues["warning"] is None
        assert f"{value}, CUDA_DEVICE_MAX_CONNECTIONS={value};" in succeed("info", env=env)


@pytest.mark.parametrize(
    ("value", "connections", "said"),
    [
        ("1", 1, "CUDA_DEVICE_MAX_CONNECTIONS=32 before CUDA starts"),
        *((value, None, "1 to 32") for value in ("0", "33", "many", "", "-1", "99999999999")),
    ],
)
def test_info_queues_with_a_bad_count_warn(value: str, connections: int | None, said: str) -> None:
    env = {"CUDA_DEVICE_MAX_CONNECTIONS": value}
    queues = succeed_json("info", env=env)["queues"]
    assert queues["connections"] == connections
    assert said in queues["warning"]
    assert f"WARNING: {queues['warning']}\n" in succeed("info", env=env)


@pytest.mark.parametrize("gpu", SM_COUNTS)
def test_info_clusters_are_named_from_9_0_on(gpu: str) -> None:
    lines = succeed("info", driver=f"sim:{gpu}@13.0").splitlines()
    promises = [line for line in lines if " atoms: " in line]
    assert any("cluster" in line for line in promises) is (gpu not in WITHOUT_CLUSTERS)
    (line,) = [line for line in lines if line.startswith("  max-cluster ")]
    assert ("not available: the max-cluster family needs" in line) is (gpu in WITHOUT_CLUSTERS)


def test_info_limits_adds_clusters_and_priorities() -> None:
    """As measured on an H200; only on request, since it creates contexts."""
    (device,) = succeed_json("info", "--limits")["devices"]
    assert {family["name"]: family["max_cluster_size"] for family in device["families"]} == {
        "coscheduled": {"atom": 8, "device": 16},
        "fine": {"atom": 2, "device": 16},
        "max-cluster": {"atom": 16, "device": 16},
    }
    assert device["stream_priorities"] == {"least": 0, "greatest": -5}
    assert "stream priorities     0 to -5" in succeed("info", "--limits")
    assert "cluster" not in succeed("info", "--limits", driver="sim:a100@13.0").split("max-")[0]
    assert "max_cluster_size" not in succeed_json("info")["devices"][0]["families"][0]
    succeed("info", env={"GCX_SIM_FAIL": "cuGreenCtxCreate:1:2"})


@pytest.mark.parametrize("sms", [8, 12, 16, 22, 24])
@pytest.mark.parametrize("driver", DRIVERS)
def test_info_small_device_lacks_only_max_cluster(sms: int, driver: str, tmp_path: Path) -> None:
    """Compute capability 9.0 with too few SMs for large clusters: only that family is missing, and
    the device can be recorded."""
    path = tmp_path / "slice.profile"
    path.write_text(profile(sms, "9.0", sms))
    machine = f"sim:{path}@{driver}"
    (device,) = succeed_json("info", driver=machine)["devices"]
    available = {family["name"]: family["available"] for family in device["families"]}
    assert available == {"coscheduled": True, "fine": True, "max-cluster": sms >= 24}
    if sms < 24:
        assert "24" in device["families"][2]["message"]
        assert "max-cluster           not available: " in succeed("info", driver=machine)
    recording = tmp_path / "again.profile"
    replay = succeed_json("info", "--record", str(recording), driver=machine)["replay"]
    assert replay == f"sim:{recording}"
    (again,) = succeed_json("info", driver=f"{replay}@{driver}")["devices"]
    assert again["families"] == device["families"]


def test_info_environment_with_any_bytes_is_valid_json() -> None:
    """A variable may have any bytes; the JSON stays valid."""
    strange = 'a"b\\c\n\udcff\udc80\x01é'
    (value,) = [
        each["value"]
        for each in succeed_json("info", env={"CUDA_MPS_PIPE_DIRECTORY": strange})["environment"]
        if each["name"] == "CUDA_MPS_PIPE_DIRECTORY"
    ]
    assert value.startswith('a"b\\c\n')
    assert value.endswith("\x01é")


def test_info_without_a_driver_says_what_works() -> None:
    document, message = fail_json("info", driver="/nonexistent.so")
    assert "sim:" in message, "names a driver that works"
    assert document["error"]["code"] == 303


@pytest.mark.parametrize("line", ["info", "plan --sms 8", "split --sms 8", "verify --sms 8"])
@pytest.mark.parametrize(
    ("machine", "result", "said"),
    [
        ("/nonexistent.so", "GCX_ERROR_SHARED_OBJECT_INIT_FAILED", "/nonexistent.so"),
        ("libnone.so.1", "GCX_ERROR_SHARED_OBJECT_INIT_FAILED", "libnone.so.1"),
        ("sim:h100@12.2", "GCX_ERROR_NOT_SUPPORTED", "12.4"),
        ("sim:none@13.0", "GCX_ERROR_NO_DEVICE", "no device"),
        ("sim:h999", "GCX_ERROR_INVALID_VALUE", '"h999"'),
        ("sim:h100@9.9", "GCX_ERROR_INVALID_VALUE", '"9.9"'),
        ("sim:/nonexistent.profile", "GCX_ERROR_INVALID_VALUE", "/nonexistent.profile"),
    ],
)
def test_command_with_an_unusable_driver_fails(
    line: str, machine: str, result: str, said: str
) -> None:
    document, message = fail_json(*line.split(), driver=machine)
    assert said in message
    assert ("SIMULATED" in message) is machine.startswith("sim:")
    assert document["error"]["result"] == result
    assert document["simulated"] is machine.startswith("sim:")

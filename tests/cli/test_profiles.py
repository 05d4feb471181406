"""Profiles of unusual devices, their paths, and environment variables of the simulation."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from .command import fail, gcx, program, succeed, succeed_json

OPEN_LIBCUDA = "import ctypes; print('libcuda:', ctypes.CDLL('libcuda.so.1').cuInit(0))"


def profile(sms: int, capability: str, layout: str) -> str:
    return (
        f"gcx-profile 1\nname Made Up\ncompute_capability {capability}\nsm_count {sms}\n"
        f"memory_bytes 8589934592\n{layout}\n"
    )


def gpcs(sms: int, size: int) -> str:
    sizes = [size] * (sms // size) + ([sms % size] if sms % size else [])
    return "gpc_sizes " + " ".join(str(each) for each in sizes)


@pytest.mark.parametrize("driver", ["12.4", "13.0", "13.5"])
@pytest.mark.parametrize(
    ("sms", "capability", "size"),
    [(30, "9.0", 6), (48, "12.1", 16), (20, "11.0", 10), (36, "7.5", 12), (192, "10.3", 18)],
)
def test_profile_of_an_unknown_gpu_is_divided(
    sms: int, capability: str, size: int, driver: str, tmp_path: Path
) -> None:
    path = tmp_path / "made-up.profile"
    path.write_text(profile(sms, capability, gpcs(sms, size)))
    machine = f"sim:{path}@{driver}"
    (device,) = succeed_json("info", driver=machine)["devices"]
    assert (device["sm_count"], device["compute_capability"]) == (sms, capability)
    for command in ("plan", "split", "verify"):
        succeed(command, "--sms", "8,rest", driver=machine)


def test_profile_smaller_than_a_partition_is_one_atom(tmp_path: Path) -> None:
    """The device is one atom except in the fine family; gcx itself refuses to divide it."""
    path = tmp_path / "slice.profile"
    path.write_text(profile(6, "9.0", "gpc_sizes 6"))
    for line in (["info"], ["plan", "--sms", "4"], ["verify", "--sms", "2,rest"]):
        done = gcx(*line, "--json", driver=f"sim:{path}")
        assert "answered CUDA_ERROR" not in done.stderr, done
    recording = tmp_path / "recorded.profile"
    succeed("info", "--record", str(recording), driver=f"sim:{path}")
    line = ["verify", "--family", "fine", "--sms", "2,rest"]
    assert succeed(*line, driver=f"sim:{recording}") == succeed(*line, driver=f"sim:{path}")


def test_profile_with_unequal_groups_is_refused(tmp_path: Path) -> None:
    """The first two groups of the fine family as one group."""
    path = tmp_path / "gpu.profile"
    succeed("info", "--record", str(path))
    before, first, second, rest = re.split(
        r"(?<=family fine\n)(group .*)\n(group .*)\n", path.read_text(), maxsplit=1
    )
    path.write_text(f"{before}{first}{second.removeprefix('group')}\n{rest}")
    message = fail("verify", "--family", "fine", "--sms", "8,rest", driver=f"sim:{path}")
    line = before.count("\n") + 2
    assert f"{path}: line {line}: a group of 2 SMs after groups of 4" in message


def test_profile_with_an_overflowing_sum_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "gpu.profile"
    path.write_text(profile(300, "9.0", "gpc_sizes 4294966830" + " 2" * 299))
    assert f"{path}: line 6: " in fail("info", driver=f"sim:{path}")


@pytest.mark.parametrize("name", ["gpu.profile", "gpu@13.0", "./gpu.profile"])
def test_sim_run_with_relative_paths_survives_chdir(name: str, tmp_path: Path) -> None:
    """sim run makes the recording's path and the simulator's absolute."""
    succeed("info", "--record", str(tmp_path / name), driver="sim:a100@12.8")
    gpu = f"{name}@" if "@" in name else name
    library = Path(succeed_json("sim", "list")["library"])
    elsewhere = tmp_path / "some" / "where" / "else"
    elsewhere.mkdir(parents=True)
    script = f'cd "{elsewhere}" && "{program()}" info --json'
    script += f' && "{sys.executable}" -c "{OPEN_LIBCUDA}"'
    done = gcx(
        "sim", "run", "--gpu", gpu, "--", "/bin/sh", "-c", script,
        driver=None, env={"GCX_SIM_LIBRARY": os.path.relpath(library, tmp_path)}, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done
    assert '"sm_count": 108' in done.stdout
    assert done.stdout.endswith("libcuda: 0\n")


def test_profile_that_is_a_folder_is_reported(tmp_path: Path) -> None:
    assert "it is a folder" in fail("info", driver=f"sim:{tmp_path}")
    (tmp_path / "h100").mkdir()
    done = gcx("info", driver="sim:h100", cwd=tmp_path)
    assert done.returncode == 0, done


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("GCX_SIM_FAIL", "cuInit:first:2", "FUNCTION:NTH:RESULT"),
        ("GCX_SIM_FAIL", "cuNothing:1:2", "cuNothing"),
        ("GCX_SIM_KERNEL_NS", "1e3", "nanoseconds"),
    ],
)
def test_simulation_with_a_wrong_variable_fails(name: str, value: str, reason: str) -> None:
    message = fail("info", env={name: value})
    assert f"{name}={value}" in message
    assert reason in message


def test_visible_devices_select_simulated_devices() -> None:
    """As launchers set CUDA_VISIBLE_DEVICES for each rank."""
    machine = "sim:h100,a100,h100@13.0"
    every = succeed_json("info", driver=machine)["devices"]

    def uuids(visible: str) -> list[str]:
        env = {"CUDA_VISIBLE_DEVICES": visible}
        return [each["uuid"] for each in succeed_json("info", driver=machine, env=env)["devices"]]

    assert uuids("1") == [every[1]["uuid"]]
    assert uuids("2,0") == [every[2]["uuid"], every[0]["uuid"]]
    assert uuids(every[2]["uuid"]) == [every[2]["uuid"]]
    assert uuids(every[1]["uuid"][:12] + ",0,-1,2") == [every[1]["uuid"], every[0]["uuid"]]
    for none in ("", "-1", "7", "0,0"):
        message = fail("info", driver=machine, env={"CUDA_VISIBLE_DEVICES": none})
        assert f"CUDA_VISIBLE_DEVICES={none}" in message

"""Profiles of unusual devices, and their paths."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from .command import gcx, program, succeed, succeed_json

OPEN_LIBCUDA = "import ctypes; print('libcuda:', ctypes.CDLL('libcuda.so.1').cuInit(0))"


def profile(sms: int, capability: str, gpc: int) -> str:
    sizes = [gpc] * (sms // gpc) + ([sms % gpc] if sms % gpc else [])
    return (
        f"gcx-profile 1\nname Made Up\ncompute_capability {capability}\nsm_count {sms}\n"
        f"memory_bytes 8589934592\ngpc_sizes {' '.join(map(str, sizes))}\n"
    )


@pytest.mark.parametrize("driver", ["12.4", "13.0", "13.5"])
@pytest.mark.parametrize(
    ("sms", "capability", "size"),
    [(30, "9.0", 6), (48, "12.1", 16), (20, "11.0", 10), (36, "7.5", 12), (192, "10.3", 18)],
)
def test_profile_of_an_unknown_gpu_is_divided(
    sms: int, capability: str, size: int, driver: str, tmp_path: Path
) -> None:
    path = tmp_path / "made-up.profile"
    path.write_text(profile(sms, capability, size))
    machine = f"sim:{path}@{driver}"
    (device,) = succeed_json("info", driver=machine)["devices"]
    assert (device["sm_count"], device["compute_capability"]) == (sms, capability)
    for command in ("plan", "split", "verify"):
        succeed(command, "--sms", "8,rest", driver=machine)


def test_profile_smaller_than_a_partition_is_one_atom(tmp_path: Path) -> None:
    """The device is one atom except in the fine family; gcx itself refuses to divide it."""
    path = tmp_path / "slice.profile"
    path.write_text(profile(6, "9.0", 6))
    for line in (["info"], ["plan", "--sms", "4"], ["verify", "--sms", "2,rest"]):
        done = gcx(*line, "--json", driver=f"sim:{path}")
        assert "returned CUDA_ERROR" not in done.stderr, done
    recording = tmp_path / "recorded.profile"
    succeed("info", "--record", str(recording), driver=f"sim:{path}")
    line = ["verify", "--family", "fine", "--sms", "2,rest"]
    assert succeed(*line, driver=f"sim:{recording}") == succeed(*line, driver=f"sim:{path}")


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

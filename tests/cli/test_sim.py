"""gcx sim list and gcx sim run."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from .command import DRIVERS, SM_COUNTS, fail, gcx, program, succeed, succeed_json

SHOW = "import os, json; print(json.dumps(dict(os.environ)))"


def test_sim_list_has_what_can_be_simulated() -> None:
    listed = succeed_json("sim", "list")
    assert listed["simulated"] is True
    assert [gpu["name"] for gpu in listed["gpus"]] == list(SM_COUNTS)
    assert [driver["name"] for driver in listed["drivers"]] == ["12.2", *DRIVERS]
    assert all(each["description"] for each in listed["gpus"] + listed["drivers"])
    assert Path(listed["library"]).is_file()
    for gpu in listed["gpus"]:
        assert succeed_json("info", driver=f"sim:{gpu['name']}")["simulated"] is True
    for driver in listed["drivers"][1:]:
        info = succeed_json("info", driver=f"sim:h100@{driver['name']}")
        assert info["driver"]["version"] == driver["name"]


def test_sim_run_sets_the_environment() -> None:
    done = gcx(
        "sim", "run", "--gpu", "2xh100", "--driver", "12.4", "--", sys.executable, "-c", SHOW,
        env={"LD_LIBRARY_PATH": "/somewhere"},
    )  # fmt: skip
    assert done.returncode == 0
    assert done.stderr.startswith("SIMULATED")
    assert done.stderr.count("\n") == 1
    env = json.loads(done.stdout)
    assert env["GCX_SIM"] == "2xh100@12.4"
    assert env["GCX_DRIVER"] == "sim:2xh100@12.4"
    folder, rest = env["LD_LIBRARY_PATH"].split(":", 1)
    assert rest == "/somewhere"
    assert (Path(folder) / "libcuda.so.1").exists()


def test_sim_run_defaults_to_an_h100() -> None:
    done = gcx("sim", "run", "--", sys.executable, "-c", SHOW)
    env = json.loads(done.stdout)
    assert env["GCX_DRIVER"] == f"sim:{env['GCX_SIM']}"
    assert env["GCX_SIM"].startswith("h100")
    assert ":" not in env["LD_LIBRARY_PATH"]


def test_sim_run_program_opens_simulated_libcuda() -> None:
    """A CUDA program that opens libcuda.so.1 by name gets the simulation."""
    source = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
count, version = ctypes.c_int(), ctypes.c_int()
name = ctypes.create_string_buffer(100)
assert cuda.cuInit(0) == cuda.cuDeviceGetCount(ctypes.byref(count)) == 0
assert cuda.cuDriverGetVersion(ctypes.byref(version)) == cuda.cuDeviceGetName(name, 100, 1) == 0
print(count.value, version.value, name.value.decode())
"""
    line = ["sim", "run", "--gpu", "h100,a100", "--driver", "12.8"]
    done = gcx(*line, "--", sys.executable, "-c", source)
    assert done.stdout.startswith("2 12080 SIMULATED NVIDIA A100"), done


@pytest.mark.parametrize("status", [0, 1, 2, 77, 255])
def test_sim_run_exit_status_is_the_commands(status: int) -> None:
    done = gcx("sim", "run", "--", "/bin/sh", "-c", f"echo out; echo err >&2; exit {status}")
    assert done.returncode == status
    assert done.stdout == "out\n"
    assert done.stderr.endswith("err\n")


def test_sim_run_command_that_can_not_run_has_shell_status(tmp_path: Path) -> None:
    """127 and 126, as in shells."""
    done = gcx("sim", "run", "--", "/nonexistent/program")
    assert done.returncode == 127
    assert "/nonexistent/program" in done.stderr
    plain = tmp_path / "plain.txt"
    plain.write_text("no program")
    done = gcx("sim", "run", "--", str(plain))
    assert done.returncode == 126
    assert str(plain) in done.stderr


def test_sim_run_passes_options_of_the_command() -> None:
    """gcx reads no options behind --."""
    for option in ("--json", "--help", "--driver", "--version", "-h", "--"):
        done = gcx("sim", "run", "--", "echo", option, "--gpu")
        assert done.stdout == f"{option} --gpu\n"
        assert done.returncode == 0


def test_sim_run_recording_keeps_its_version(tmp_path: Path) -> None:
    """A recording keeps its driver's version unless another is given. GCX_DRIVER has no effect."""
    path = tmp_path / "gpu.profile"
    succeed("info", "--record", str(path), driver="sim:a100@12.8")
    line = ["sim", "run", "--gpu", str(path)]
    for options, version in (([], "12.8"), (["--driver", "13.4"], "13.4")):
        words = [*line, *options, "--", program(), "info", "--json"]
        info = json.loads(gcx(*words, driver="/nonexistent.so").stdout)
        assert info["driver"]["version"] == version
        assert info["devices"][0]["sm_count"] == SM_COUNTS["a100"]


def test_sim_run_of_an_unknown_machine_runs_nothing(tmp_path: Path) -> None:
    witness = tmp_path / "ran"
    for line in (["--gpu", "h999"], ["--driver", "9.9"], ["--gpu", "/nonexistent.profile"]):
        fail("sim", "run", *line, "--", "touch", str(witness), status=2)
    message = fail("--driver", "sim:a100@13.0", "sim", "run", "--", "touch", str(witness), status=2)
    assert "only the version" in message
    assert not witness.exists()


def test_sim_output_escapes_paths_and_words(tmp_path: Path) -> None:
    library = Path(succeed_json("sim", "list")["library"])
    folder = tmp_path / "\x1b[31m"
    folder.symlink_to(library.parent)
    recording = tmp_path / "\x1b[2J"
    path = {"GCX_SIM_LIBRARY": str(folder / library.name)}
    succeed("info", "--record", str(recording))
    assert "/\\x1b[31m/" in succeed("info", env=path)
    message = gcx("sim", "run", "--gpu", str(recording), "--", "\x1b[1m", env=path).stderr
    assert "\x1b" not in message
    assert "SIMULATED: \\x1b[1m runs on" in message


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to give a file to another user")
def test_sim_run_of_a_setuid_program_runs_nothing(tmp_path: Path) -> None:
    """Its loader ignores LD_LIBRARY_PATH, so that it would run on the GPU."""
    setuid = tmp_path / "setuid"
    setuid.write_bytes(Path("/bin/echo").read_bytes())
    os.chown(setuid, 12345, 12345)
    setuid.chmod(0o4755)
    if os.statvfs(setuid).f_flag & os.ST_NOSUID:
        pytest.skip("this folder is mounted with nosuid")
    assert "like sudo gcx sim run" in fail("sim", "run", "--", str(setuid), "ran")


@pytest.mark.parametrize("separator", [":", ";"])
def test_sim_run_from_a_folder_with_a_separator_runs_nothing(
    tmp_path: Path, separator: str
) -> None:
    library = Path(succeed_json("sim", "list")["library"])
    folder = tmp_path / f"a{separator}b"
    folder.symlink_to(library.parent)
    message = fail(
        "sim", "run", "--", "echo", "ran", env={"GCX_SIM_LIBRARY": str(folder / library.name)}
    )
    assert f"{folder}/libcuda, and LD_LIBRARY_PATH separates" in message


@pytest.mark.parametrize("library", ["sim:", "libcuda.so.1"])
def test_sim_refuses_a_wrong_environment_in_one_line(library: str) -> None:
    libraries = {"LD_LIBRARY_PATH": os.environ["GCX_SIM_LIBDIR"]}
    for env, reason in (
        ({"GCX_SIM": "h999"}, 'can\'t start: GCX_SIM=h999: no GPU "h999" can be simulated'),
        ({"GCX_SIM": "h100@99"}, 'can\'t start: GCX_SIM=h100@99: no driver "99"'),
        ({"GCX_SIM_MPS": "2"}, "can't start: GCX_SIM_MPS=2: must be 0, 1 or 50%"),
        ({"GCX_SIM_FAIL": "*"}, "can't start: GCX_SIM_FAIL=*: the format is"),
    ):
        message = fail("info", driver=library, env={**libraries, **env})
        assert reason in message
        assert message.count("\n") == 1, message


def test_sim_tells_other_programs_of_a_wrong_environment_once() -> None:
    source = "import ctypes; init = ctypes.CDLL('libcuda.so.1').cuInit; print(init(0), init(0))"
    done = gcx("sim", "run", "--", "env", "GCX_SIM=\x1b[31m", sys.executable, "-c", source)
    assert done.stdout == "1 1\n"
    _, message = done.stderr.splitlines()
    assert message.startswith('SIMULATED driver: GCX_SIM=?[31m: no GPU "?[31m" can be simulated')


def test_sim_without_the_simulator_fails() -> None:
    message = fail("sim", "list", env={"GCX_SIM_LIBRARY": "/nonexistent/libgcx-sim.so"})
    assert "/nonexistent/libgcx-sim.so" in message

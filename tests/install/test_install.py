"""What `meson install` gives is complete: found by pkg-config, linked, run, and loaded by name."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SIMULATED = {"GCX_DRIVER": "sim:h100@13.0"}


def run(*command: str | Path, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(part) for part in command],
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        check=False,
    )


def build_folder() -> Path:
    return Path(os.environ["GCX_BUILD"])


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project installed in a folder of its own."""
    destination = tmp_path_factory.mktemp("installed")
    done = run("meson", "install", "-C", build_folder(), "--no-rebuild", DESTDIR=str(destination))
    assert done.returncode == 0, done.stdout + done.stderr
    return destination / "usr" / "local"


def library_folder(prefix: Path) -> Path:
    # Meson names it lib, lib64 or lib/x86_64-linux-gnu, by the system.
    return next(prefix.glob("lib*/**/libgcx.so.0")).parent


@pytest.fixture(scope="module")
def flags(prefix: Path) -> list[str]:
    """Compiler flags for a program that uses gcx, from the pkg-config file."""
    folder = library_folder(prefix) / "pkgconfig"
    done = run(
        "pkg-config",
        "--cflags",
        "--libs",
        "gcx",
        PKG_CONFIG_PATH=str(folder),
        PKG_CONFIG_SYSROOT_DIR=str(prefix.parent.parent),
        PKG_CONFIG_ALLOW_SYSTEM_CFLAGS="1",
        PKG_CONFIG_ALLOW_SYSTEM_LIBS="1",
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_example_builds_with_pkg_config_and_runs(
    prefix: Path, flags: list[str], tmp_path: Path
) -> None:
    program = tmp_path / "split"
    source = ROOT / "examples" / "split.c"
    strict = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    built = run("cc", *strict, source, *flags, "-o", program)
    assert built.returncode == 0, built.stderr
    done = run(program, LD_LIBRARY_PATH=str(library_folder(prefix)), **SIMULATED)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("SIMULATED NVIDIA H100")
    assert "runs on 108 SMs" in done.stdout
    assert "runs on 24 SMs" in done.stdout


def test_example_dlopens_the_installed_library(prefix: Path, tmp_path: Path) -> None:
    program = tmp_path / "dlopen"
    source = ROOT / "examples" / "dlopen.c"
    built = run("cc", "-std=c99", source, f"-I{prefix}/include", "-o", program, "-ldl")
    assert built.returncode == 0, built.stderr
    done = run(program, library_folder(prefix) / "libgcx.so.0", **SIMULATED)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "SIMULATED CUDA 13.0: 7 SMs asked for would be 8, and leave 124\n"


def test_installed_command_finds_its_libraries(prefix: Path) -> None:
    done = run(prefix / "bin" / "gcx", "verify", "--sms", "108,24", **SIMULATED)
    assert done.returncode == 0, done.stdout + done.stderr


def test_simulation_is_a_libcuda_for_other_programs(prefix: Path) -> None:
    done = run(
        prefix / "bin" / "gcx", "sim", "run", "--gpu", "a100", "--driver", "12.4", "--",
        prefix / "bin" / "gcx", "info",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "A100" in done.stdout
    assert "12.4" in done.stdout


@pytest.mark.parametrize("example", ["split", "dlopen"])
def test_built_example_runs(example: str) -> None:
    done = run(build_folder() / "examples" / example, **SIMULATED)
    assert done.returncode == 0, done.stderr
    assert "SIMULATED" in done.stdout


def test_example_says_what_is_wrong() -> None:
    done = run(build_folder() / "examples" / "split", "100", "60", **SIMULATED)
    assert done.returncode == 1
    assert "asked for 100 + 60 SMs" in done.stderr
    assert "device 0 has 132" in done.stderr

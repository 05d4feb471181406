"""Installs the project in a folder, and returns what a program needs to find it there."""

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


@pytest.fixture(scope="session")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Installs the project in a folder."""
    destination = tmp_path_factory.mktemp("installed")
    done = run("meson", "install", "-C", build_folder(), "--no-rebuild", DESTDIR=str(destination))
    assert done.returncode == 0, done.stdout + done.stderr
    return destination / "usr" / "local"


def library_folder(prefix: Path) -> Path:
    """Returns lib, where the tools of every distribution look."""
    return prefix / "lib"


@pytest.fixture(scope="session")
def pkg_config(prefix: Path) -> dict[str, str]:
    """Returns the environment in which pkg-config finds gcx."""
    return {
        "PKG_CONFIG_PATH": str(library_folder(prefix) / "pkgconfig"),
        "PKG_CONFIG_SYSROOT_DIR": str(prefix.parent.parent),
        "PKG_CONFIG_ALLOW_SYSTEM_CFLAGS": "1",
        "PKG_CONFIG_ALLOW_SYSTEM_LIBS": "1",
    }


@pytest.fixture(scope="session")
def flags(pkg_config: dict[str, str]) -> list[str]:
    """Returns compiler flags for a program that uses gcx, from the pkg-config file."""
    done = run("pkg-config", "--cflags", "--libs", "gcx", **pkg_config)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()

"""Builds the package with meson-python, and corrects its tags and editable installs.

meson-python tags a wheel of the stable ABI with the interpreter that built it, but the extension
uses the limited API of Python 3.9 and runs on that and newer.

meson-python's editable installs rebuild at each import, with tools that pip has removed by then,
and find neither the simulated driver nor the command. Here an editable install is the package of
the wheel in build/editable, with its Python files linked to the sources; another install rebuilds C
and C++.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import mesonpy
from mesonpy import build_sdist, get_requires_for_build_sdist, get_requires_for_build_wheel

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
]

LOWEST_PYTHON = "cp39"
SOURCES = Path(__file__).resolve().parent / "gcx"
EDITABLE = SOURCES.parents[2] / "build" / "editable"

Settings = dict[str, "str | list[str]"]
get_requires_for_build_editable = get_requires_for_build_wheel


def build_wheel(
    wheel_directory: str,
    config_settings: Settings | None = None,
    metadata_directory: str | None = None,
) -> str:
    """Builds the wheel into the folder and returns its name."""
    built = mesonpy.build_wheel(wheel_directory, config_settings, metadata_directory)
    tagged = wheel("tags", "--remove", "--python-tag", LOWEST_PYTHON, Path(wheel_directory, built))
    return tagged.splitlines()[-1]


def build_editable(
    wheel_directory: str,
    config_settings: Settings | None = None,
    metadata_directory: str | None = None,
) -> str:
    """Builds the package in build/editable, and a wheel that refers to it."""
    with TemporaryDirectory() as name:
        built = build_wheel(name, config_settings, metadata_directory)
        wheel("unpack", "--dest", name, Path(name, built))
        (unpacked,) = (path for path in Path(name).iterdir() if path.is_dir())
        shutil.rmtree(EDITABLE, ignore_errors=True)
        shutil.copytree(unpacked / "gcx", EDITABLE / "gcx")
        shutil.rmtree(unpacked / "gcx")
        link_sources()
        (unpacked / "gcx-editable.pth").write_text(f"{EDITABLE}\n", encoding="utf-8")
        wheel("pack", "--dest-dir", wheel_directory, unpacked)
        return built


def link_sources() -> None:
    """Replaces the package's Python files by links to the sources."""
    for copy in EDITABLE.rglob("*.py*"):
        source = SOURCES / copy.relative_to(EDITABLE / "gcx")
        if source.is_file():
            copy.unlink()
            copy.symlink_to(source)


def wheel(*arguments: str | os.PathLike[str]) -> str:
    """Runs a command of the package wheel; returns its output."""
    done = subprocess.run(
        [sys.executable, "-m", "wheel", *arguments], check=True, stdout=subprocess.PIPE, text=True
    )
    return done.stdout

"""Builds the wheel of gcx-sim: the simulated driver as built for the Python package, and METADATA.

The config setting build-dir names a build of the package gcx to use or to create.
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path
from shutil import copyfile, copytree, ignore_patterns
from tempfile import TemporaryDirectory

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
OPTIONS = ["--buildtype=release", "-Dpython=true", "-Dtests=false", "-Dexamples=false"]
WHEEL = "Wheel-Version: 1.0\nGenerator: gcx\nRoot-Is-Purelib: false\nTag: py3-none-{platform}\n"


def build_wheel(
    wheel_directory: str,
    config_settings: dict[str, str] | None = None,
    metadata_directory: str | None = None,
) -> str:
    """Builds the wheel into the folder and returns its name."""
    with TemporaryDirectory() as name:
        temporary = Path(name)
        build = Path((config_settings or {}).get("build-dir", temporary / "build"))
        if not (build / "build.ninja").exists():
            run("meson", "setup", build, ROOT, *OPTIONS)
        run("ninja", "-C", build, "bindings/python/libcuda.so.1")
        install: list[str | Path] = ["meson", "install", "-C", build, "--no-rebuild", "--quiet"]
        run(*install, "--tags=python-sim", "--destdir", temporary / "installed")
        (package,) = (temporary / "installed").rglob("gcx_sim")
        wheel = temporary / "wheel"
        # Linkers need libcuda.so, a link to the other; a wheel has no links.
        copytree(package, wheel / "gcx_sim", ignore=ignore_patterns("libcuda.so"))
        pack_metadata(wheel)
        run(sys.executable, "-m", "wheel", "pack", "--dest-dir", wheel_directory, wheel)
    (built,) = Path(wheel_directory).glob("gcx_sim-*.whl")
    return built.name


def pack_metadata(wheel: Path) -> None:
    """Writes the folder .dist-info of an unpacked wheel."""
    lines = (HERE / "METADATA").read_text(encoding="utf-8").splitlines()
    version = next(line.split()[1] for line in lines if line.startswith("Version: "))
    info = wheel / f"gcx_sim-{version}.dist-info"
    info.mkdir()
    copyfile(HERE / "METADATA", info / "METADATA")
    copyfile(ROOT / "LICENSE", info / "LICENSE")
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    (info / "WHEEL").write_text(WHEEL.format(platform=platform), encoding="utf-8")


def build_sdist(sdist_directory: str, config_settings: dict[str, str] | None = None) -> str:
    """Fails: the sources are those of gcx, whose sdist contains this folder."""
    raise NotImplementedError("gcx-sim has no sdist; build its wheel in the sources of gcx")


def run(*command: str | Path) -> None:
    subprocess.run(command, check=True)

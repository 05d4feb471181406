"""Tests the wheels in the folder GCX_WHEELS, and an editable install."""

from __future__ import annotations

import email
import os
import re
import subprocess
import sys
import types
import venv
import zipfile
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
(WHEEL,) = Path(os.environ["GCX_WHEELS"]).glob("gcx-*.whl")
(SIMULATOR,) = Path(os.environ["GCX_WHEELS"]).glob("gcx_sim-*.whl")
SIMULATED = {**os.environ, "GCX_DRIVER": "sim:h100@13.0"}
SIMULATED.pop("PYTHONPATH", None)


def run(*command: str | Path, **more: Any) -> str:
    done: subprocess.CompletedProcess[str] = subprocess.run(
        [str(part) for part in command],
        env=SIMULATED, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        **more,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    return done.stdout


def unzip(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as wheel:
        return {name: wheel.read(name) for name in wheel.namelist()}


@pytest.fixture(scope="module")
def files() -> dict[str, bytes]:
    return unzip(WHEEL)


def test_tags(files: dict[str, bytes]) -> None:
    assert "-cp39-abi3-linux_" in WHEEL.name
    (text,) = (files[name] for name in files if name.endswith(".dist-info/WHEEL"))
    assert re.findall(rb"^Tag: (\S+)", text, re.M) == [WHEEL.stem.split("-", 2)[2].encode()]


def test_metadata(files: dict[str, bytes]) -> None:
    (text,) = (files[name] for name in files if name.endswith(".dist-info/METADATA"))
    metadata = email.message_from_bytes(text)
    description = metadata.get_payload()
    assert isinstance(description, str)
    assert "gcx.split" in description
    assert len(metadata.get_all("Project-URL", [])) == 3
    assert metadata["Author-email"]
    # A relative link has no target on an index page.
    assert not re.search(r"\]\((?!https?://)", description)
    assert not re.search(r"^\[.*\]:|<img|<a ", description, re.M)
    (scripts,) = (files[name] for name in files if name.endswith(".dist-info/entry_points.txt"))
    assert b"gcx = gcx._command:main" in scripts
    assert b"[sglang.srt.plugins]\ngcx = gcx.engines.sglang:register" in scripts
    assert "gcx/engines/sglang.py" in files


def test_the_simulated_driver_is_a_package_of_its_own(files: dict[str, bytes]) -> None:
    assert not [name for name in files if "libgcx-sim" in name or "libcuda.so" in name]
    simulator = unzip(SIMULATOR)
    assert "-py3-none-linux_" in SIMULATOR.name
    assert len(simulator["gcx_sim/libgcx-sim.so"]) > 500_000
    assert len(simulator["gcx_sim/libcuda/libcuda.so.1"]) < 50_000
    (text,) = (files[name] for name in files if name.endswith(".dist-info/METADATA"))
    version = SIMULATOR.name.split("-")[1]
    required = email.message_from_bytes(text).get_all("Requires-Dist")
    assert required == [f'gcx-sim=={version}; extra == "sim"']


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the interpreter of a new environment."""
    folder = tmp_path_factory.mktemp("fresh")
    venv.create(folder, with_pip=True)
    return folder / "bin" / "python"


PROGRAM = """
import gcx
with gcx.split([24, None]) as parts:
    assert gcx.verify(parts)
assert gcx.info()["devices"][0]["sm_count"] == 132
print(gcx.__file__.rpartition("/")[0])
"""


# A program that does not use gcx.
UNAWARE = """
import ctypes
libcuda, value = ctypes.CDLL("libcuda.so.1"), ctypes.c_int()
assert libcuda.cuInit(0) == 0
assert libcuda.cuDeviceGetAttribute(ctypes.byref(value), 16, 0) == 0
print(value.value)
"""


def works(python: Path, tmp_path: Path) -> Path:
    """Uses the package from another folder, as a user does; returns the package's folder."""
    folder = Path(run(python, "-c", PROGRAM, cwd=tmp_path).strip())
    for command in ([python, "-m", "gcx"], [python.with_name("gcx")]):
        assert "108" in run(*command, "plan", "--sms", "108,24", cwd=tmp_path)
        inside = run(*command, "exec", "--sms", "24", "--", python, "-c", UNAWARE, cwd=tmp_path)
        assert inside.splitlines()[-1] == "24"
        simulated = run(*command, "sim", "run", "--gpu", "a100", "--", python, "-c", UNAWARE)
        assert simulated.splitlines()[-1] == "108"
    return folder


def test_an_installation(python: Path, tmp_path: Path) -> None:
    run(python, "-m", "pip", "install", "-q", "--no-index", WHEEL)
    alone = "try: gcx.devices()\nexcept gcx.DriverNotFoundError as error: print(error)"
    assert "`pip install gcx[sim]`" in run(python, "-c", f"import gcx\n{alone}", cwd=tmp_path)
    wheels = f"--find-links={WHEEL.parent}"
    run(python, "-m", "pip", "install", "-q", "--no-index", "--pre", wheels, "gcx[sim]")
    assert works(python, tmp_path).parent.name == "site-packages"
    run(python, "-m", "pip", "uninstall", "-q", "-y", "gcx")


def test_an_editable_installation(
    python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Installs as pip does, with a build backend that takes the wheel instead of compiling."""
    pytest.importorskip("wheel", reason="the package wheel isn't installed")
    mesonpy: Any = types.ModuleType("mesonpy")

    def build_wheel(folder: str, *_: object) -> str:
        (Path(folder) / WHEEL.name).write_bytes(WHEEL.read_bytes())
        return WHEEL.name

    mesonpy.build_wheel = build_wheel
    mesonpy.build_sdist = mesonpy.get_requires_for_build_sdist = None
    mesonpy.get_requires_for_build_wheel = None
    monkeypatch.setitem(sys.modules, "mesonpy", mesonpy)
    monkeypatch.syspath_prepend(str(ROOT / "bindings" / "python"))
    import build_backend

    monkeypatch.setattr(build_backend, "EDITABLE", tmp_path / "editable")
    name = build_backend.build_editable(str(tmp_path))
    run(python, "-m", "pip", "install", "-q", "--no-index", tmp_path / name)
    folder = works(python, tmp_path)
    assert folder == tmp_path / "editable" / "gcx"
    sources = ROOT / "bindings" / "python" / "gcx"
    for source in sources.rglob("*.py"):
        link = folder / source.relative_to(sources)
        assert link.samefile(source), f"{source} isn't what is imported"
    run(python, "-m", "pip", "uninstall", "-q", "-y", "gcx")
    assert "No module named" in run(
        python, "-c", "try: import gcx\nexcept ImportError as error: print(error)", cwd=tmp_path
    )

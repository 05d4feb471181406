"""Tests how other programs find gcx: by CMake, pkg-config, or as a Meson subproject."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest

from .conftest import ROOT, SIMULATED, build_folder, library_folder, run

CONSUMER = Path(__file__).parent / "consumer"
SAID = {
    "consumer-c": "C: SIMULATED NVIDIA H100 80GB HBM3, 132 SMs\n",
    "consumer-cpp": "C++: 24 SMs\n",
}


# A static library has no path, so it finds the simulation by this variable only.
SIMULATOR = {"GCX_SIM_LIBRARY": str(build_folder() / "src" / "sim" / "libgcx-sim.so")}


def runs(folder: Path, **env: str) -> None:
    for program, said in SAID.items():
        done = run(folder / program, **SIMULATED, **env)
        assert (done.returncode, done.stdout) == (0, said), done.stderr


def runs_static(folder: Path) -> None:
    for program, said in SAID.items():
        static = folder / f"{program}-static"
        done = run(static, **SIMULATED, **SIMULATOR)
        assert (done.returncode, done.stdout) == (0, said), done.stderr
        assert "libgcx" not in run("readelf", "--dynamic", static).stdout


def cmake_build(build: Path, *options: str) -> None:
    commands: list[list[str | Path]] = [
        ["cmake", "-S", CONSUMER, "-B", build, *options,
         "-DCMAKE_C_FLAGS=-Wall -Werror", "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Werror"],
        ["cmake", "--build", build, "--parallel", "2"],
    ]  # fmt: skip
    for command in commands:
        done = run(*command, CCACHE_BASEDIR=str(build))
        assert done.returncode == 0, done.stdout + done.stderr


def test_cmake(prefix: Path, tmp_path: Path) -> None:
    """CMake lets programs of a build tree find the library without a path."""
    cmake_build(tmp_path, f"-DCMAKE_PREFIX_PATH={prefix}")
    runs(tmp_path)
    runs_static(tmp_path)


def test_cmake_builds_gcx(tmp_path: Path) -> None:
    """FetchContent builds both libraries; nothing is installed."""
    launcher = ["-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
    cmake_build(tmp_path, f"-DGCX_SOURCE={ROOT}", *launcher)
    runs(tmp_path, **SIMULATOR)
    runs_static(tmp_path)
    soname = run("readelf", "--dynamic", tmp_path / "_deps" / "gcx-build" / "libgcx.so").stdout
    assert "[libgcx.so.1]" in soname


def test_cmake_elsewhere(prefix: Path, tmp_path: Path) -> None:
    """What was installed may be moved, and reached by a symbolic link."""
    moved = tmp_path / "a folder" / "moved"
    shutil.copytree(prefix, moved, symlinks=True)
    link = tmp_path / "link"
    link.symlink_to(moved)
    cmake_build(tmp_path / "build", f"-DCMAKE_PREFIX_PATH={link}")
    runs(tmp_path / "build")


def version() -> str:
    """Returns the version's numbers, without -dev."""
    found = re.search(r"^  version: '([\d.]+)(-dev)?'", (ROOT / "meson.build").read_text(), re.M)
    assert found is not None
    return found.group(1)


VERSIONS = {
    "": True,
    "0.2": True,
    "0.1": False,
    "0.1.1": False,
    f"{version()} EXACT": True,
    "0.1.1 EXACT": False,
    "0.99": False,
    "1": False,
    "0.2...<1": True,
    "0.1...<1": False,
    "0.0.1...0.1.0": False,
    f"0.1...<{version()}": False,
    f"0.2...{version()}": True,
    "0.2 COMPONENTS python": False,
    "0.2 OPTIONAL_COMPONENTS python": True,
}


@pytest.fixture(scope="module")
def found_versions(prefix: Path, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Returns what each of VERSIONS finds: "1 0.2.0", or an empty text instead of the 1."""
    folder = tmp_path_factory.mktemp("versions")
    requests = [
        f"unset(gcx_DIR CACHE)\nunset(gcx_FOUND)\nfind_package(gcx {wanted} QUIET)\n"
        'message(STATUS "found: ${gcx_FOUND} ${gcx_VERSION}")\n'
        for wanted in VERSIONS
    ]
    begin = "cmake_minimum_required(VERSION 3.19)\nproject(requests LANGUAGES C)\n"
    (folder / "CMakeLists.txt").write_text(begin + "".join(requests))
    done = run("cmake", "-S", folder, "-B", folder / "build", f"-DCMAKE_PREFIX_PATH={prefix}")
    assert done.returncode == 0, done.stderr
    return re.findall(r"found: (.*)", done.stdout)


@pytest.mark.parametrize("wanted", VERSIONS)
def test_cmake_versions(found_versions: list[str], wanted: str) -> None:
    found = found_versions[list(VERSIONS).index(wanted)]
    assert (found == f"1 {version()}") == VERSIONS[wanted], found


def test_cmake_names_what_is_gone(prefix: Path, tmp_path: Path) -> None:
    moved = tmp_path / "moved"
    shutil.copytree(prefix, moved, symlinks=True)
    (moved / "include" / "gcx.h").unlink()
    done = run("cmake", "-S", CONSUMER, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={moved}")
    assert done.returncode != 0
    assert "gcx.h, which does not exist" in " ".join(done.stderr.split())


def test_pkg_config_and_cplusplus(prefix: Path, flags: list[str], tmp_path: Path) -> None:
    strict = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fno-rtti"]
    source, program = CONSUMER / "consumer.cpp", tmp_path / "consumer"
    built = run("c++", "-std=c++17", *strict, source, *flags, "-o", program)
    assert built.returncode == 0, built.stderr
    done = run(program, LD_LIBRARY_PATH=str(library_folder(prefix)), **SIMULATED)
    assert (done.returncode, done.stdout) == (0, SAID["consumer-cpp"]), done.stderr


def test_static_by_pkg_config(prefix: Path, pkg_config: dict[str, str], tmp_path: Path) -> None:
    """Links -l:libgcx.a instead of -lgcx, and Libs.private with the C++ runtime."""
    done = run("pkg-config", "--static", "--cflags", "--libs", "gcx", **pkg_config)
    static = ["-l:libgcx.a" if word == "-lgcx" else word for word in done.stdout.split()]
    for compiler, name in (("cc", "consumer-c"), ("c++", "consumer-cpp")):
        source = CONSUMER / name.replace("-", ".")
        built = run(compiler, source, *static, "-o", tmp_path / f"{name}-static")
        assert built.returncode == 0, built.stderr
    runs_static(tmp_path)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a program of another user")
def test_setuid_program_loads_no_library_of_the_environment(
    prefix: Path, pkg_config: dict[str, str], tmp_path: Path
) -> None:
    done = run("pkg-config", "--static", "--cflags", "--libs", "gcx", **pkg_config)
    static = ["-l:libgcx.a" if word == "-lgcx" else word for word in done.stdout.split()]
    program = tmp_path / "consumer"
    built = run("cc", CONSUMER / "consumer.c", *static, "-o", program)
    assert built.returncode == 0, built.stderr
    assert run(program, **SIMULATED, **SIMULATOR).returncode == 0
    os.chown(program, 12345, 12345)
    program.chmod(0o4755)
    for driver in (SIMULATED["GCX_DRIVER"], SIMULATOR["GCX_SIM_LIBRARY"]):
        done = run(program, GCX_DRIVER=driver, **SIMULATOR)
        assert done.returncode != 0
        assert "SIMULATED" not in done.stdout


def test_static_library_has_no_name_of_the_headers(prefix: Path, tmp_path: Path) -> None:
    """gcx.hpp and the library's C++ are both in the namespace gcx. The linker would
    merge a function that both have, and one could be called instead of the other."""
    program = tmp_path / "program.o"
    source, include = ROOT / "examples" / "scenario.cpp", f"-I{prefix / 'include'}"
    built = run("c++", "-std=c++17", "-O0", include, "-c", source, "-o", program)
    assert built.returncode == 0, built.stderr

    def names(file: Path) -> set[str]:
        listed = run("nm", "--defined-only", "--extern-only", file).stdout
        return set(re.findall(r" (_Z\w*3gcx\w*)$", listed, re.M))

    program_names, library_names = names(program), names(library_folder(prefix) / "libgcx.a")
    assert len(program_names) > 20
    assert len(library_names) > 300
    assert not program_names & library_names


def test_meson_by_pkg_config(prefix: Path, pkg_config: dict[str, str], tmp_path: Path) -> None:
    done = run("meson", "setup", tmp_path, CONSUMER, "--wrap-mode=nofallback", **pkg_config)
    assert done.returncode == 0, done.stdout
    assert re.search(r"dependency gcx found: YES \S*" + re.escape(version()), done.stdout)
    done = run("ninja", "-C", tmp_path)
    assert done.returncode == 0, done.stdout
    runs(tmp_path, LD_LIBRARY_PATH=str(library_folder(prefix)))


def test_meson_subproject(tmp_path: Path) -> None:
    """Builds the library again as part of the program, which opens the simulation of the build."""
    source = tmp_path / "consumer"
    shutil.copytree(CONSUMER, source)
    (source / "subprojects").mkdir()
    (source / "subprojects" / "gcx").symlink_to(ROOT)
    options = ["--buildtype=plain", "--force-fallback-for=gcx", "--unity=subprojects"]
    done = run("meson", "setup", *options, tmp_path / "build", source)
    assert done.returncode == 0, done.stdout
    # Unity sources include others by absolute paths, which the compiler's cache must normalise.
    done = run("ninja", "-C", tmp_path / "build", *SAID, CCACHE_BASEDIR=str(tmp_path))
    assert done.returncode == 0, done.stdout
    runs(tmp_path / "build", **SIMULATOR)

"""Tests that an installation is complete: found by pkg-config, linked, run, and loaded by name."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from .conftest import ROOT, SIMULATED, build_folder, library_folder, run


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


@pytest.mark.parametrize("page", ["README.md", "docs/tutorial.md"])
def test_c_program_of_a_page_builds_and_runs(
    page: str, prefix: Path, flags: list[str], tmp_path: Path
) -> None:
    """README's lines stand in main(), next to a cublasSetStream that takes the stream."""
    (block,) = re.findall(r"^```c\n(.*?)^```$", (ROOT / page).read_text(), re.M | re.S)
    if "main" not in block:
        include, _, body = block.partition("\n")
        block = f"""{include}
        static int cublasSetStream(int handle, void* stream) {{ return stream == NULL || handle; }}
        int main(void) {{ int handle = 0;
        {body}
        gcx_stream_info info = GCX_STREAM_INFO_INIT;
        gcx_stream_get_info(stream, &info); return info.sm_count != 64; }}"""
    source, program = tmp_path / "page.c", tmp_path / "page"
    source.write_text(block)
    built = run("cc", "-std=c99", "-Wall", "-Wextra", "-Werror", source, *flags, "-o", program)
    assert built.returncode == 0, built.stderr
    done = run(program, LD_LIBRARY_PATH=str(library_folder(prefix)), **SIMULATED)
    assert (done.returncode, done.stdout) in [(0, ""), (0, "64 SMs\n")], done.stdout + done.stderr


def test_cpp_lines_of_the_page_compile(flags: list[str], tmp_path: Path) -> None:
    """Each block is a scope of a function that declares what the blocks use."""
    page = (ROOT / "docs" / "reference" / "cpp.md").read_text()
    blocks = re.findall(r"^```cpp\n(.*?)^```$", page, re.M | re.S)
    lines = "".join(f"{{\n{block}}}\n" for block in blocks).replace("#include <gcx.hpp>", "")
    lines, launches = re.subn(r"kernel<<<.*, (\w+\.native\(\))>>>\(\)", r"launch(\1)", lines)
    assert (len(blocks), launches) == (3, 2)
    source = tmp_path / "page.cpp"
    source.write_text(f"""#include <gcx.hpp>
        #include <chrono>
        #include <cstdlib>
        #include <stop_token>
        #include <vector>
        using namespace std::chrono_literals;
        struct arguments {{ float* x; int count; }};
        void page(CUgraph_st* captured, void (*launch)(CUstream_st*), gcx::cancel& shutdown,
                  std::stop_token stop, gcx::resource sms, std::vector<uint32_t> counts, float* x,
                  int count) {{
        {lines}}}""")
    built = run("c++", "-std=c++20", "-fsyntax-only", source, *flags)
    assert built.returncode == 0, built.stderr


def test_example_dlopens_the_installed_library(prefix: Path, tmp_path: Path) -> None:
    program = tmp_path / "dlopen"
    source = ROOT / "examples" / "dlopen.c"
    built = run("cc", "-std=c99", source, f"-I{prefix}/include", "-o", program, "-ldl")
    assert built.returncode == 0, built.stderr
    done = run(program, library_folder(prefix) / "libgcx.so.1", **SIMULATED)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "SIMULATED CUDA 13.0: 7 SMs are rounded up to 8 and leave 124\n"


@pytest.mark.parametrize(
    ("cached", "searched", "said"),
    [
        ("/usr/local/lib/libgcx.so.1", "/usr/local/lib:", ""),
        ("", "/usr/local/lib:", "gcx: run ldconfig as root, so that programs find "),
        ("", "/usr/lib:", "gcx: the loader does not search /usr/local/lib: set LD_LIBRARY_PATH="),
    ],
)
def test_installation_says_what_is_left_to_do(
    cached: str, searched: str, said: str, tmp_path: Path
) -> None:
    """With an ldconfig that knows the library or not, and searches its folder or not."""
    ldconfig = tmp_path / "ldconfig"
    ldconfig.write_text(f"#!/bin/sh\n[ $1 = -p ] && echo {cached!r} || echo {searched!r}\n")
    ldconfig.chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    done = run(ROOT / "tools" / "after_install.sh", "/usr/local/lib", PATH=path, DESTDIR="")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(said)
    assert bool(done.stdout) == bool(said)


def test_installed_command_finds_its_libraries(prefix: Path) -> None:
    done = run(prefix / "bin" / "gcx", "verify", "--sms", "108,24", **SIMULATED)
    assert done.returncode == 0, done.stdout + done.stderr


def test_installed_command_runs_programs_in_a_partition(prefix: Path) -> None:
    done = run(
        prefix / "bin" / "gcx", "exec", "--sms", "24", "--",
        sys.executable, "-c",
        "import ctypes; cuda, sms = ctypes.CDLL('libcuda.so.1'), ctypes.c_int(); cuda.cuInit(0); "
        "cuda.cuDeviceGetAttribute(ctypes.byref(sms), 16, 0); print(sms.value)",
        **SIMULATED,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "24\n"), done.stderr


def test_simulation_is_a_libcuda_for_other_programs(prefix: Path) -> None:
    done = run(
        prefix / "bin" / "gcx", "sim", "run", "--gpu", "a100", "--driver", "12.4", "--",
        prefix / "bin" / "gcx", "info",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "A100" in done.stdout
    assert "12.4" in done.stdout


SCENARIO = """SIMULATED NVIDIA H100 80GB HBM3, 132 SMs
partition 0 runs on 108 SMs: 6 7 8 9 10 11 12 13 14 15 22 .*
partition 1 runs on 24 SMs: 0 1 2 3 4 5 16 17 18 19 20 21 32 33 34 35 36 37 48 49 50 51 52 53
no SM is in both
140 SMs: gcx_sm_split: requested 140 SMs, in whole atoms of 8 that is 144; device 0 has 132 \
\\[GCX_ERROR_INVALID_RESOURCE_CONFIGURATION, 915\\]
given back: 0 contexts in use
"""


@pytest.mark.parametrize("driver", ["12.4", "13.0", "13.5"])
@pytest.mark.parametrize("example", ["scenario", "scenario-cpp"])
def test_scenario(example: str, driver: str) -> None:
    done = run(build_folder() / "examples" / example, GCX_DRIVER=f"sim:h100@{driver}")
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(SCENARIO, done.stdout)


@pytest.mark.parametrize("driver", ["h100@12.4", "h200@13.0", "rtx4090@13.5"])
def test_serving(driver: str) -> None:
    """Decode next to prefill meets its latency target on the simulated clock by changing the
    leases, and captures no graph twice."""
    done = run(build_folder() / "examples" / "serving", GCX_DRIVER=f"sim:{driver}")
    assert (done.returncode, done.stderr) == (0, "")
    changes = re.findall(r"token +\d+: decode on +(\d+) SMs, ", done.stdout)
    assert changes in (["132", "24"] * 2, ["128", "24"] * 2)
    found = re.search(r"(\d+) tokens: p50 ([\d.]+), p99 ([\d.]+) ms; promise kept", done.stdout)
    assert found is not None
    assert 2.5 < float(found[2]) <= float(found[3]) <= 6
    assert "5 prompts: first token after" in done.stdout
    # One for each of 4 layouts and graph, except the side that has no SMs.
    assert done.stdout.endswith("2 graphs, each captured once, 7 executables\n")


@pytest.mark.parametrize("promise", ["1", "soon", "-3"])
def test_serving_promises_nothing_impossible(promise: str) -> None:
    done = run(build_folder() / "examples" / "serving", promise, GCX_DRIVER="sim:h100@13.0")
    assert done.returncode == 1
    assert done.stderr.startswith("serving: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("example", ["scenario", "scenario-cpp"])
def test_scenario_without_a_driver(example: str) -> None:
    done = run(build_folder() / "examples" / example, GCX_DRIVER="/no/such/driver")
    assert done.returncode == 1
    assert "[GCX_ERROR_SHARED_OBJECT_INIT_FAILED, 303]" in done.stderr


@pytest.mark.parametrize("example", ["split", "dlopen"])
def test_built_example_runs(example: str) -> None:
    done = run(build_folder() / "examples" / example, **SIMULATED)
    assert done.returncode == 0, done.stderr
    assert "SIMULATED" in done.stdout


def test_example_says_what_is_wrong() -> None:
    done = run(build_folder() / "examples" / "split", "100", "60", **SIMULATED)
    assert done.returncode == 1
    assert "requested 100 + 60 SMs" in done.stderr
    assert "device 0 has 132" in done.stderr


def test_description_of_the_api(pkg_config: dict[str, str]) -> None:
    """Generators of bindings find it by pkg-config."""
    # Some versions put the sysroot before a variable, others don't.
    path = {"PKG_CONFIG_PATH": pkg_config["PKG_CONFIG_PATH"]}
    done = run("pkg-config", "--variable=api", "gcx", **path)
    description = Path(pkg_config["PKG_CONFIG_SYSROOT_DIR"] + done.stdout.strip())
    assert description.read_bytes() == (ROOT / "docs" / "generated" / "gcx-api.json").read_bytes()


def test_man_pages_and_completion_are_installed(prefix: Path) -> None:
    generated = ROOT / "src" / "cli" / "generated"
    share = prefix / "share"
    places = {
        "gcx.bash": share / "bash-completion" / "completions" / "gcx",
        "_gcx": share / "zsh" / "site-functions" / "_gcx",
        "gcx.fish": share / "fish" / "vendor_completions.d" / "gcx.fish",
    }
    for file in generated.iterdir():
        installed = places.get(file.name, share / "man" / "man1" / file.name)
        assert installed.read_bytes() == file.read_bytes()

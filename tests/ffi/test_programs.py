"""The scenario in the languages that open the library by dlopen: what it prints, and how it fails.

The suite's part "dlopen" builds what has to be built and says where it is.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
LIBRARY = os.environ["GCX_LIBRARY"]
PROGRAMS: dict[str, list[str | Path]] = {
    "Go": [os.environ["GCX_GO_SCENARIO"]],
    "Node.js": ["node", EXAMPLES / "node" / "scenario.mjs"],
    "Lua": ["luajit", EXAMPLES / "lua" / "scenario.lua"],
    "ctypes": [sys.executable, EXAMPLES / "python-ctypes" / "by_ctypes.py"],
}
# The atoms of an H100 lie so in the simulation, as in the recordings of a real one.
SECOND = [*range(6), *range(16, 22), *range(32, 38), *range(48, 54)]
FIRST = [sm for sm in range(132) if sm not in SECOND]
EXPECTED = f"""\
SIMULATED NVIDIA H100 80GB HBM3, 132 SMs
partition 0 runs on 108 SMs: {" ".join(map(str, FIRST))}
partition 1 runs on 24 SMs: {" ".join(map(str, SECOND))}
no SM is in both
140 SMs: GCX_ERROR_INVALID_RESOURCE_CONFIGURATION: gcx_sm_split: requested 140 SMs, in whole atoms \
of 8 that is 144; device 0 has 132
given back: 0 contexts in use
"""


def run(language: str, *arguments: str, **environment: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [*PROGRAMS[language], *arguments],
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("driver", ["12.4", "13.0", "13.5"])
@pytest.mark.parametrize("language", PROGRAMS)
def test_scenario(language: str, driver: str) -> None:
    assert run(language, LIBRARY, GCX_DRIVER=f"sim:h100@{driver}") == (0, EXPECTED, "")


@pytest.mark.parametrize(
    ("library", "driver", "message"),
    [
        ("/nowhere/libgcx.so", "sim:h100@13.0", "/nowhere/libgcx.so"),
        ("libc.so.6", "sim:h100@13.0", "libc.so.6.*gcx_"),
        (
            LIBRARY,
            "/nowhere/libcuda.so.1",
            "GCX_ERROR_SHARED_OBJECT_INIT_FAILED: gcx_device_get_info: .*/nowhere/libcuda.so.1",
        ),
        (LIBRARY, "sim:h100@12.2", "GCX_ERROR_NOT_SUPPORTED: "),
    ],
)
@pytest.mark.parametrize("language", PROGRAMS)
def test_library_or_driver_missing_prints_one_line(
    language: str, library: str, driver: str, message: str
) -> None:
    status, out, err = run(language, library, GCX_DRIVER=driver)
    assert (status, out) == (1, ""), err
    assert re.fullmatch(r".{20,}\n", err), err
    assert re.search(message, err), err


@pytest.mark.parametrize("language", PROGRAMS)
def test_the_device_is_too_small(language: str) -> None:
    status, out, err = run(language, LIBRARY, GCX_DRIVER="sim:a100@13.0")
    assert (status, out) == (1, "SIMULATED NVIDIA A100-SXM4-80GB, 108 SMs\n")
    assert err.startswith("GCX_ERROR_INVALID_RESOURCE_CONFIGURATION: gcx_sm_split: ")


@pytest.mark.parametrize("language", PROGRAMS)
def test_what_fails_halfway_leaves_no_crash(language: str) -> None:
    """The second stream can't be made: what was made before is given back."""
    fail = {"GCX_SIM_FAIL": "cuGreenCtxStreamCreate:2:2"}
    status, _, err = run(language, LIBRARY, GCX_DRIVER="sim:h100@13.0", **fail)
    assert status == 1
    assert err.startswith("GCX_ERROR_OUT_OF_MEMORY: gcx_stream_create: "), err


@pytest.mark.parametrize("name", ["scenario.c", "python/scenario.py"])
def test_page_of_languages_shows_the_program(name: str) -> None:
    """The page has the part between the comments [scenario] and [/scenario]."""
    page = (ROOT / "docs" / "reference" / "languages.md").read_text(encoding="utf-8")
    program = (EXAMPLES / name).read_text(encoding="utf-8")
    _, scenario, _ = re.split(r"\n[^\w\n]*\[/?scenario\][^\w\n]*\n", program)
    assert f"\n{textwrap.dedent(scenario).strip()}\n```\n" in page

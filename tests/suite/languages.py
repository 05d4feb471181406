"""The part that compares the languages with the C API, as gcx-api.json describes it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tests.abi.record import compile_problems
from tests.suite.builds import MAIN, build_main
from tests.suite.runner import ROOT, Suite

API = ROOT / "docs" / "generated" / "gcx-api.json"
Json = dict[str, Any]


def compare_layout(suite: Suite, api: Json) -> None:
    for compiler in ("g++", "aarch64-linux-gnu-g++"):
        problems = compile_problems(api, ROOT / "include", [compiler])
        for problem in problems:
            suite.say(f"{compiler}: {problem}")
        suite.count(f"the API's description is what {compiler} sees", not problems)


def overhead(suite: Suite) -> None:
    """C++ costs nothing over C; docs/reference/cpp.md has the figures of an idle machine."""
    program = MAIN / "tests" / "cpp" / "cpp-overhead"
    simulation = str(MAIN / "src" / "sim" / "libgcx-sim.so")
    if build_main(suite):
        suite.run("C++ over C", [program, "1.25"], {"GCX_SIM_LIBRARY": simulation})


def part_languages(suite: Suite) -> None:
    """The API's description, the generator and its files, and what C++ costs over C."""
    described: list[str | Path] = [sys.executable, ROOT / "tools" / "describe_api.py", "--check"]
    suite.run("the API's description is that of gcx.h", described)
    written: list[str | Path] = [sys.executable, "-m", "bindings.generator", "--check"]
    suite.run("the generated files follow from the API's description", written)
    suite.pytest("generator", ROOT / "tests" / "generator", {})
    api = json.loads(API.read_text(encoding="utf-8"))
    compare_layout(suite, api)
    overhead(suite)

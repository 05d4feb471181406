"""The part that tests the languages that open the library by dlopen: Go, Node.js, Lua, ctypes."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

from tests.suite.builds import MAIN, MAIN_OPTIONS, building_main, compiled, configured
from tests.suite.runner import BUILD, ROOT, Suite, execute, tracked

GO = ROOT / "bindings" / "go"
NODE = ROOT / "bindings" / "node"
CTYPES = ROOT / "bindings" / "ctypes" / "generated"
EXAMPLES = ROOT / "examples"
LIBRARY = MAIN / "src" / "libgcx.so"
OUT = BUILD / "dlopen"
SCENARIO, VECTORS = OUT / "scenario", OUT / "vectors"


def test_go(suite: Suite) -> bool:
    # Without cgo, as the package promises, and with the Go that is there.
    env = {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GCX_LIBRARY": str(LIBRARY)}
    go: list[str | Path] = ["env", "-C", GO, "go"]
    unformatted = suite.timed("gofmt", ["gofmt", "-l", GO, EXAMPLES / "go"]).stdout
    suite.count(f"gofmt {unformatted}".strip(), unformatted == "")
    make: list[str | Path] = ["go", "build", "-buildvcs=false", "-o"]
    scenario: list[str | Path] = ["env", "-C", EXAMPLES / "go", *make, SCENARIO, "."]
    if not suite.run("build the scenario in Go", scenario, env):
        return False
    runner: list[str | Path] = ["env", "-C", GO, *make, VECTORS, "./tests/vectors"]
    suite.run("build the vectors' runner in Go", runner, env)
    suite.run("go vet", [*go, "vet", "./..."], env)
    suite.run("go test", [*go, "test", "-count=1", "."], env)
    suite.vectors("Go", [VECTORS], (), env)
    return True


def install_node(suite: Suite) -> bool:
    """The packages of the lock file, once. None of them has anything to compile."""
    lock, stamp = NODE / "package-lock.json", NODE / "node_modules" / "installed.json"
    # It would bind users to the registry of whoever wrote it.
    suite.count("package-lock.json names no registry", '"resolved"' not in lock.read_text())
    if stamp.exists() and stamp.read_bytes() == lock.read_bytes():
        return True
    install = ["npm", "ci", "--ignore-scripts", "--include=dev", "--no-audit", "--no-fund"]
    if not suite.run("npm ci", ["env", "-C", NODE, *install]):
        return False
    shutil.copyfile(lock, stamp)
    return True


def test_node(suite: Suite) -> bool:
    if not install_node(suite):
        return False
    prettier = NODE / "node_modules" / "prettier" / "bin" / "prettier.cjs"
    check: list[str | Path] = ["node", prettier, "--check", "--print-width", "100"]
    suite.run("prettier", [*check, NODE / "tests", EXAMPLES / "node"])
    tests: list[str | Path] = ["node", "--test", NODE / "tests" / "raw.test.js"]
    suite.run("tests of Node.js", tests, {"GCX_LIBRARY": str(LIBRARY)})
    return True


def build_library(suite: Suite) -> bool:
    """Of the main build the library and the simulated driver."""
    with building_main:
        if not configured(suite, MAIN, *MAIN_OPTIONS):
            return False
        targets = execute(["ninja", "-C", MAIN, "-t", "targets", "all"]).stdout
        wanted = re.findall(r"^(src/libgcx\.so[.\d]*|src/sim/libgcx-sim\.so): ", targets, re.M)
        return compiled(suite, MAIN, wanted)


def part_dlopen(suite: Suite) -> None:
    """Go, Node.js, Lua and ctypes, which open the library by dlopen, and the page of languages."""
    suite.run("luacheck", ["luacheck", "--no-color", "--std", "luajit", *tracked("*.lua")])
    if not build_library(suite):
        return
    OUT.mkdir(parents=True, exist_ok=True)
    if test_go(suite) and test_node(suite):
        env = {"GCX_LIBRARY": str(LIBRARY), "GCX_GO_SCENARIO": str(SCENARIO)}
        env |= {"PYTHONPATH": str(CTYPES)}
        suite.pytest("dlopen", ROOT / "tests" / "ffi", env)
        # For docs/reference/other-languages.md. Here it only has to run: the machine is busy.
        overhead = ROOT / "tests" / "ffi" / "overhead.py"
        measure: list[str | Path] = [sys.executable, overhead, "--rounds", "1", MAIN]
        suite.run("what calls cost can be measured", measure)

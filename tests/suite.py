"""Runs every test of the project, and says so in one line: "N passed, N failed".

Called by tests/run.sh, which installs what is needed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
MAIN = BUILD / "tests"
# The compile commands are GCC 12's, some of whose warnings Clang does not know.
GCC_ONLY = "--extra-arg=-Wno-unknown-warning-option"
CHEAP = ("-Ddebug=false", "-Dc_args=-g1", "-Dcpp_args=-g1")
FUZZ = BUILD / "fuzz"
FUZZ_SECONDS = 60
HARNESSES = ("api", "profile", "command")
CLANG, CLANGXX = "clang-19", "clang++-19"
# Everything else is built with 13.5.
HEADERS = {
    "12.4": "nvidia-cuda-runtime-cu12==12.4.127",
    "12.8": "nvidia-cuda-runtime-cu12==12.8.90",
    "13.0": "nvidia-cuda-runtime==13.0.96",
}


class Suite:
    """Counts what passed and failed, and remembers the names of what failed."""

    def __init__(self) -> None:
        self.passed = 0
        self.failed: list[str] = []

    def count(self, name: str, holds: bool) -> bool:
        if holds:
            self.passed += 1
        else:
            self.failed.append(name)
            print(f"FAILED: {name}", flush=True)
        return holds

    def run(self, name: str, command: list[str | Path], env: dict[str, str] | None = None) -> bool:
        """Runs a command that is one test; shows its output only if it fails."""
        done = execute(command, env)
        if done.returncode != 0:
            print(done.stdout, flush=True)
        return self.count(name, done.returncode == 0)

    def meson_test(self, name: str, build: Path, env: dict[str, str] | None = None) -> None:
        """Runs a build's tests and counts each."""
        done = execute(["meson", "test", "-C", build, "--print-errorlogs"], env)
        log = build / "meson-logs" / "testlog.json"
        lines = log.read_text().splitlines() if log.exists() else []
        results = [json.loads(line) for line in lines]
        for result in results:
            if result["result"] == "SKIP":
                print(f"skipped: {name}: {result['name']}: {result.get('stdout', '').strip()}")
                continue
            self.count(f"{name}: {result['name']}", result["result"] in ("OK", "EXPECTEDFAIL"))
        if done.returncode != 0 or not results:
            print(done.stdout, flush=True)
        if not results:
            self.count(f"{name}: has tests", False)

    def pytest(self, name: str, folder: Path, env: dict[str, str]) -> None:
        """Runs a folder's pytest tests and counts each."""
        report = BUILD / f"{name}.xml"
        report.unlink(missing_ok=True)
        done = execute(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", folder,
             f"--junitxml={report}"],
            env,
        )  # fmt: skip
        cases = list(ElementTree.parse(report).iter("testcase")) if report.exists() else []
        for case in cases:
            label = f"{name}: {case.get('classname')}.{case.get('name')}"
            skipped = case.find("skipped")
            if skipped is not None:
                print(f"skipped: {label}: {skipped.get('message')}")
                continue
            self.count(label, case.find("failure") is None and case.find("error") is None)
        if done.returncode != 0:
            print(done.stdout, flush=True)
        if not cases:
            self.count(f"{name}: has tests", False)


def execute(
    command: list[str | Path], env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(part) for part in command],
        cwd=ROOT,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **(env or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )


def build(
    suite: Suite,
    folder: Path,
    *options: str,
    env: dict[str, str] | None = None,
    targets: Sequence[str] = (),
) -> bool:
    """Configures a build, unless that was done, and builds it. Warnings are errors here, but not
    for users, whose compilers may know more of them."""
    name = folder.name
    if not (folder / "build.ninja").exists() and not suite.run(
        f"configure {name}", ["meson", "setup", folder, "-Dwerror=true", *options], env
    ):
        return False
    return suite.run(f"build {name}", ["ninja", "-C", folder, *targets])


def fuzz(suite: Suite, name: str) -> None:
    """Runs one harness for a while; the build folder keeps what it finds."""
    corpus = FUZZ / "corpus" / name
    corpus.mkdir(parents=True, exist_ok=True)
    finds = FUZZ / "finds"
    finds.mkdir(exist_ok=True)
    suite.run(
        f"fuzz {name}",
        [FUZZ / "tests" / "fuzz" / f"fuzz-{name}", f"-max_total_time={FUZZ_SECONDS}",
         "-timeout=30", "-print_funcs=0", "-verbosity=0", f"-artifact_prefix={finds}/",
         corpus, ROOT / "tests" / "fuzz" / "seeds" / name],
    )  # fmt: skip


def tracked(*patterns: str) -> list[Path]:
    """The project's files of these patterns, those not yet committed among them."""
    listed = execute(["git", "ls-files", "-co", "--exclude-standard", "--", *patterns])
    return [ROOT / line for line in listed.stdout.splitlines() if (ROOT / line).exists()]


def main_env() -> dict[str, str]:
    return {
        "GCX_BUILD": str(MAIN),
        "GCX_CLI": str(MAIN / "src" / "cli" / "gcx"),
        "GCX_SIM_LIBDIR": str(MAIN / "src" / "sim" / "libcuda"),
    }


def part_style(suite: Suite) -> None:
    """Formatting and linters of all languages."""
    suite.run(
        "clang-format",
        ["clang-format", "--dry-run", "-Werror", *tracked("*.c", "*.h", "*.cpp", "*.hpp")],
    )
    python = tracked("*.py")
    suite.run("ruff", ["ruff", "check", "--no-cache", *python])
    suite.run("ruff format", ["ruff", "format", "--no-cache", "--check", *python])
    suite.run("mypy", ["mypy", "--no-incremental", *python])
    scripts = [ROOT / ".ci" / "run", *tracked("*.sh")]
    suite.run("shellcheck", ["shellcheck", "-x", *scripts])


def part_units(suite: Suite) -> None:
    """The core, the C API, the ABI and the simulated driver."""
    if build(suite, MAIN):
        suite.meson_test("units", MAIN)


def part_command(suite: Suite) -> None:
    """The command, the examples, the installation, and another library on the simulation."""
    if build(suite, MAIN):
        suite.pytest("command", ROOT / "tests" / "cli", main_env())
        suite.pytest("install", ROOT / "tests" / "install", main_env())
        suite.pytest("cuda-bindings", ROOT / "tests" / "sim", main_env())


def part_python(suite: Suite) -> None:
    """The Python package: its wheel, and as installed from that on four simulated drivers."""
    wheels, site = BUILD / "wheel", BUILD / "site"
    for folder in (wheels, site):
        shutil.rmtree(folder, ignore_errors=True)
    pip: list[str | Path] = [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check"]
    if not suite.run("wheel", [*pip, "wheel", ROOT, "--no-deps", "-w", wheels]):
        return
    install = [*pip, "install", "--no-index", "--no-deps", "--target", site]
    (wheel,) = wheels.glob("gcx-*.whl")
    if not suite.run("install the wheel", [*install, wheel]):
        return
    suite.pytest("package", ROOT / "tests" / "package", {"GCX_WHEEL": str(wheel)})
    for driver in ("12.4", "13.0", "13.1", "13.5"):
        env = {"PYTHONPATH": str(site), "GCX_DRIVER": f"sim:h100@{driver}"}
        suite.pytest(f"python-{driver}", ROOT / "bindings" / "python" / "tests", env)


def part_headers(suite: Suite) -> None:
    """Builds with the oldest and the newest CUDA headers, and tests there."""
    for version, package in HEADERS.items():
        headers = BUILD / "headers" / version
        if not headers.exists() and not suite.run(
            f"headers of CUDA {version}",
            [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check",
             "--no-deps", "--target", headers, package],
        ):  # fmt: skip
            continue
        include = next(headers.glob("nvidia/*/include"))
        folder = BUILD / f"headers-{version}"
        if build(suite, folder, f"-Dtoolkit_include={include}", *CHEAP, "-Doptimization=0"):
            suite.meson_test(f"CUDA {version} headers", folder)


def part_meson(suite: Suite) -> None:
    """Configures with the oldest Meson that meson.build admits, and without its warnings."""
    site, folder = BUILD / "oldest-meson" / "site", BUILD / "oldest-meson" / "build"
    pip = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    if not site.exists() and not suite.run("Meson 1.3", [*pip, "--target", site, "meson==1.3.0"]):
        return
    shutil.rmtree(folder, ignore_errors=True)
    setup = ["-m", "mesonbuild.mesonmain", "setup", "--fatal-meson-warnings"]
    env = {"PYTHONPATH": str(site)}
    suite.run("configure with Meson 1.3", [sys.executable, *setup, folder], env)


def sanitized(suite: Suite, name: str, sanitizers: str, env: dict[str, str]) -> None:
    folder = BUILD / name
    # Line numbers are all that reports need; more of both would double the time to compile.
    options = [f"-Db_sanitize={sanitizers}", "-Db_lundef=false", *CHEAP, "-Doptimization=1"]
    if build(suite, folder, *options):
        suite.meson_test(name, folder, env)


def part_address(suite: Suite) -> None:
    """Everything under the address and undefined-behaviour sanitizers."""
    sanitized(
        suite,
        "address",
        "address,undefined",
        {"UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1"},
    )


def part_thread(suite: Suite) -> None:
    """Everything under the thread sanitizer."""
    sanitized(suite, "thread", "thread", {"TSAN_OPTIONS": "halt_on_error=1"})


def part_fuzz(suite: Suite) -> None:
    """A minute of each fuzzer, under the address and undefined-behaviour sanitizers."""
    ccache = ["ccache"] if shutil.which("ccache") else []
    env = {"CC": " ".join([*ccache, CLANG]), "CXX": " ".join([*ccache, CLANGXX])}
    targets = [f"tests/fuzz/fuzz-{name}" for name in HARNESSES]
    options = ["-Dfuzz=true", "-Db_sanitize=address,undefined", "-Db_lundef=false", *CHEAP]
    if build(suite, FUZZ, *options, "-Doptimization=1", env=env, targets=targets):
        for name in HARNESSES:
            fuzz(suite, name)


def part_tidy(suite: Suite) -> None:
    """clang-tidy over every C++ source of the library, the simulation and the command."""
    if not build(suite, MAIN):
        return
    sources = [file for file in tracked("src/*.cpp") if file.suffix == ".cpp"]

    def check(file: Path) -> tuple[Path, subprocess.CompletedProcess[str]]:
        return file, execute(["clang-tidy", "--quiet", "-p", MAIN, GCC_ONLY, file])

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for file, done in pool.map(check, sources):
            if done.returncode != 0:
                print(done.stdout, flush=True)
            suite.count(f"clang-tidy {file.relative_to(ROOT)}", done.returncode == 0)


PARTS: dict[str, Callable[[Suite], None]] = {
    "style": part_style,
    "units": part_units,
    "command": part_command,
    "python": part_python,
    "headers": part_headers,
    "meson": part_meson,
    "address": part_address,
    "thread": part_thread,
    "fuzz": part_fuzz,
    "tidy": part_tidy,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help="of --list; all if none is named")
    parser.add_argument("--list", action="store_true", help="list the parts")
    arguments = parser.parse_args()
    if arguments.list:
        for name, part in PARTS.items():
            print(f"{name:10} {part.__doc__}")
        return 0
    unknown = [name for name in arguments.parts if name not in PARTS]
    if unknown:
        parser.error(f"no part {unknown[0]}; there are {', '.join(PARTS)}")

    BUILD.mkdir(exist_ok=True)
    suite = Suite()
    for name in arguments.parts or PARTS:
        start = time.monotonic()
        print(f"== {name}: {PARTS[name].__doc__}", flush=True)
        PARTS[name](suite)
        print(f"   {time.monotonic() - start:.0f} s", flush=True)
    for name in suite.failed:
        print(f"FAILED: {name}")
    print(f"{suite.passed} passed, {len(suite.failed)} failed")
    return 0 if suite.passed and not suite.failed else 1


if __name__ == "__main__":
    sys.exit(main())

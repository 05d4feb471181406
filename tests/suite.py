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
import threading
import time
import traceback
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from tests.lint import Linter

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
MAIN = BUILD / "tests"
CHEAP = ("-Ddebug=false", "-Dc_args=-g1", "-Dcpp_args=-g1")
FUZZ = BUILD / "fuzz"
# Clean verdicts of clang-tidy, good for other clones too, as ccache's results are.
LINTED = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "gcx-lint"
PARTS_AT_ONCE = 2
SANITIZER_ENV = {
    "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
    "TSAN_OPTIONS": "halt_on_error=1",
}
# What was compiled in another clone is the same here.
CCACHE = {"CCACHE_BASEDIR": str(ROOT), "CCACHE_NOHASHDIR": "1"}
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
    """Counts what passed and failed, and remembers the names of what failed and what takes long.
    Each part has one, which prints when the part is done, since parts run at the same time."""

    def __init__(self, quick: bool = False) -> None:
        self.quick = quick
        self.passed = 0
        self.failed: list[str] = []
        self.steps: list[tuple[str, float]] = []
        self.said: list[str] = []

    def say(self, text: str) -> None:
        self.said.append(text)

    def count(self, name: str, holds: bool) -> bool:
        if holds:
            self.passed += 1
        else:
            self.failed.append(name)
            self.say(f"FAILED: {name}")
        return holds

    def timed(
        self, name: str, command: list[str | Path], env: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        begin = time.monotonic()
        done = execute(command, env)
        self.steps.append((name, time.monotonic() - begin))
        return done

    def run(self, name: str, command: list[str | Path], env: dict[str, str] | None = None) -> bool:
        """Runs a command that is one test; shows its output only if it fails."""
        done = self.timed(name, command, env)
        if done.returncode != 0:
            self.say(done.stdout)
        return self.count(name, done.returncode == 0)

    def meson_test(
        self,
        name: str,
        build: Path,
        env: dict[str, str] | None = None,
        suites: Sequence[str] = (),
    ) -> None:
        """Runs the tests of a build that was made, or those of some suites, and counts each."""
        chosen = [word for suite in suites for word in ("--suite", suite)]
        done = self.timed(
            f"tests of {name}",
            ["meson", "test", "-C", build, "--no-rebuild", "--print-errorlogs", *chosen],
            env,
        )
        log = build / "meson-logs" / "testlog.json"
        lines = log.read_text().splitlines() if log.exists() else []
        results = [json.loads(line) for line in lines]
        for result in results:
            if result["result"] == "SKIP":
                self.say(f"skipped: {name}: {result['name']}: {result.get('stdout', '').strip()}")
                continue
            self.count(f"{name}: {result['name']}", result["result"] in ("OK", "EXPECTEDFAIL"))
        if done.returncode != 0 or not results:
            self.say(done.stdout)
        if not results:
            self.count(f"{name}: has tests", False)

    def pytest(self, name: str, folder: Path, env: dict[str, str]) -> None:
        """Runs a folder's pytest tests and counts each."""
        report = BUILD / f"{name}.xml"
        report.unlink(missing_ok=True)
        done = self.timed(
            f"tests of {name}",
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", folder,
             f"--junitxml={report}"],
            env,
        )  # fmt: skip
        cases = list(ElementTree.parse(report).iter("testcase")) if report.exists() else []
        for case in cases:
            label = f"{name}: {case.get('classname')}.{case.get('name')}"
            skipped = case.find("skipped")
            if skipped is not None:
                self.say(f"skipped: {label}: {skipped.get('message')}")
                continue
            self.count(label, case.find("failure") is None and case.find("error") is None)
        if done.returncode != 0:
            self.say(done.stdout)
        if not cases:
            self.count(f"{name}: has tests", False)


def own_environment() -> dict[str, str]:
    """This process's, less what chooses drivers and devices for gcx: the tests do that."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GCX_") and name != "CUDA_VISIBLE_DEVICES"
    }


def execute(
    command: list[str | Path], env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(part) for part in command],
        cwd=ROOT,
        env={**own_environment(), **CCACHE, "PYTHONDONTWRITEBYTECODE": "1", **(env or {})},
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
    return configured(suite, folder, *options, env=env) and suite.run(
        f"build {folder.name}", ["ninja", "-C", folder, *targets]
    )


def configured(
    suite: Suite, folder: Path, *options: str, env: dict[str, str] | None = None
) -> bool:
    setup: list[str | Path] = ["meson", "setup", folder, "-Dwerror=true", *options]
    return (folder / "build.ninja").exists() or suite.run(f"configure {folder.name}", setup, env)


def test_programs(folder: Path, suites: Sequence[str]) -> list[str]:
    """The targets of a build that the tests of these suites need."""
    tests = json.loads(execute(["meson", "introspect", "--tests", folder]).stdout)
    wanted = [
        test for test in tests if any(name.split(":")[-1] in suites for name in test["suite"])
    ]
    programs = {word for test in wanted for word in test["cmd"] if word.startswith(f"{folder}/")}
    known = execute(["ninja", "-C", folder, "-t", "targets", "all"]).stdout
    targets = {str(Path(word).relative_to(folder)) for word in programs}
    return sorted(target for target in targets if f"\n{target}:" in known)


building_fuzzers = threading.Lock()


def build_fuzzers(suite: Suite, *targets: str) -> bool:
    """Clang's build, under the address and undefined-behaviour sanitizers."""
    ccache = ["ccache"] if shutil.which("ccache") else []
    env = {"CC": " ".join([*ccache, CLANG]), "CXX": " ".join([*ccache, CLANGXX])}
    options = ["-Dfuzz=true", "-Db_sanitize=address,undefined", "-Db_lundef=false"]
    options += ["-Dexamples=false", "-Doptimization=1", *CHEAP]
    with building_fuzzers:
        return build(suite, FUZZ, *options, env=env, targets=targets)


building_main = threading.Lock()
main_builds: list[bool] = []


def build_main(suite: Suite) -> bool:
    """The build that several parts use; the first of them makes it."""
    with building_main:
        if not main_builds:
            main_builds.append(build(suite, MAIN))
        return main_builds[0]


def fuzz(suite: Suite, name: str) -> None:
    """Runs one harness for a while; the build folder keeps what it finds."""
    corpus = FUZZ / "corpus" / name
    corpus.mkdir(parents=True, exist_ok=True)
    finds = FUZZ / "finds"
    finds.mkdir(exist_ok=True)
    suite.run(
        f"fuzz {name}",
        [FUZZ / "tests" / "fuzz" / f"fuzz-{name}", f"-max_total_time={FUZZ_SECONDS}",
         "-timeout=30", "-print_funcs=0", "-verbosity=0", "-close_fd_mask=1",
         f"-artifact_prefix={finds}/",
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
    suite.run("mypy", ["mypy", f"--cache-dir={BUILD / 'mypy'}", *python])
    scripts = [ROOT / ".ci" / "run", *tracked("*.sh")]
    suite.run("shellcheck", ["shellcheck", "-x", *scripts])


def part_units(suite: Suite) -> None:
    """The core, the C API, the ABI, the simulated driver, the fuzzers' seeds."""
    if build_main(suite):
        suite.meson_test("units", MAIN)


def part_command(suite: Suite) -> None:
    """The command, the examples, the installation, and another library on the simulation."""
    if build_main(suite):
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
    if not suite.quick:
        suite.pytest("package", ROOT / "tests" / "package", {"GCX_WHEEL": str(wheel)})
    for driver in ("13.0",) if suite.quick else ("12.4", "13.0", "13.1", "13.5"):
        env = {"PYTHONPATH": str(site), "GCX_DRIVER": f"sim:h100@{driver}"}
        suite.pytest(f"python-{driver}", ROOT / "bindings" / "python" / "tests", env)


def part_headers(suite: Suite) -> None:
    """Builds with other CUDA headers what includes them, and tests what calls the driver."""
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
        # The command knows no cuda.h, and the fuzzers' seeds are tested elsewhere.
        options = [f"-Dtoolkit_include={include}", "-Dexamples=false", *CHEAP, "-Doptimization=0"]
        suites = ("sim", "api", "abi")
        if not configured(suite, folder, *options):
            continue
        targets = [*test_programs(folder, suites), "tests/gpu/gcx-gpu-tests"]
        if build(suite, folder, targets=targets):
            suite.meson_test(f"CUDA {version} headers", folder, suites=suites)


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


def part_address(suite: Suite) -> None:
    """Everything under the address and undefined-behaviour sanitizers, by Clang."""
    if build_fuzzers(suite, "meson-test-prereq"):
        suite.meson_test("address", FUZZ, SANITIZER_ENV)


def part_thread(suite: Suite) -> None:
    """Everything under the thread sanitizer."""
    folder = BUILD / "thread"
    options = ["-Db_sanitize=thread", "-Db_lundef=false", "-Dexamples=false", *CHEAP]
    if build(suite, folder, *options, "-Doptimization=1", targets=["meson-test-prereq"]):
        suite.meson_test("thread", folder, SANITIZER_ENV)


def part_fuzz(suite: Suite) -> None:
    """A minute of each fuzzer, under the address and undefined-behaviour sanitizers."""
    if not build_fuzzers(suite, *(f"tests/fuzz/fuzz-{name}" for name in HARNESSES)):
        return
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda name: fuzz(suite, name), HARNESSES))


def part_arm(suite: Suite) -> None:
    """A build for 64-bit Arm, whose unit tests run under qemu."""
    folder = BUILD / "aarch64"
    options = ["--cross-file", str(ROOT / "tests" / "aarch64.ini"), "-Dexamples=false", *CHEAP]
    with_ccache = BUILD / "aarch64-ccache.ini"
    compilers = {"c": "gcc", "cpp": "g++"}
    lines = [f"{key} = ['ccache', 'aarch64-linux-gnu-{name}']" for key, name in compilers.items()]
    with_ccache.write_text("\n".join(["[binaries]", *lines]) + "\n")
    options += ["--cross-file", str(with_ccache), "-Doptimization=1"]
    if build(suite, folder, *options, targets=["meson-test-prereq"]):
        suite.meson_test("aarch64", folder, suites=("sim", "core", "api", "fuzz"))


def part_tidy(suite: Suite) -> None:
    """clang-tidy over every C++ source of the library, the simulation and the command."""
    if not build_main(suite):
        return
    begin = time.monotonic()
    linter = Linter(ROOT, MAIN, LINTED)
    for file, said in linter.check(tracked("src/*.cpp")):
        if said:
            suite.say(said)
        suite.count(f"clang-tidy {file.relative_to(ROOT)}", not said)
    suite.steps.append(("clang-tidy", time.monotonic() - begin))


PARTS: dict[str, Callable[[Suite], None]] = {
    "style": part_style,
    "units": part_units,
    "command": part_command,
    "python": part_python,
    "address": part_address,
    "fuzz": part_fuzz,
    "thread": part_thread,
    "headers": part_headers,
    "arm": part_arm,
    "tidy": part_tidy,
    "meson": part_meson,
}


QUICK = ("style", "units", "command", "python")


def run_part(name: str, quick: bool) -> tuple[str, Suite, float]:
    suite = Suite(quick)
    begin = time.monotonic()
    try:
        PARTS[name](suite)
    except Exception:
        suite.say(traceback.format_exc())
        suite.count(f"{name}: runs to its end", False)
    return name, suite, time.monotonic() - begin


def run_parts(names: Sequence[str], quick: bool) -> dict[str, tuple[Suite, float]]:
    """Runs parts, two at a time, and prints what each said once it is done."""
    results: dict[str, tuple[Suite, float]] = {}
    with ThreadPoolExecutor(PARTS_AT_ONCE) as pool:
        for running in as_completed([pool.submit(run_part, name, quick) for name in names]):
            name, suite, seconds = running.result()
            results[name] = (suite, seconds)
            print(f"== {name}: {PARTS[name].__doc__}", flush=True)
            for text in suite.said:
                print(text)
            print(
                f"   {seconds:.0f} s, {suite.passed} passed, {len(suite.failed)} failed", flush=True
            )
    return results


def print_times(results: dict[str, tuple[Suite, float]], seconds: float) -> None:
    print(f"== what took how long: {seconds:.0f} s, parts side by side")
    for name, (suite, of_part) in sorted(results.items(), key=lambda item: -item[1][1]):
        steps = sorted(suite.steps, key=lambda step: -step[1])
        longest = ", ".join(f"{step} {took:.0f} s" for step, took in steps[:5] if took >= 1)
        print(f"   {name:8} {of_part:4.0f} s  {longest}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help="of --list; all if none is named")
    parser.add_argument(
        "--quick", action="store_true", help=f"{', '.join(QUICK)} alone, Python on one driver"
    )
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
    begin = time.monotonic()
    names = arguments.parts or (QUICK if arguments.quick else PARTS)
    results = run_parts(list(names), arguments.quick)
    print_times(results, time.monotonic() - begin)
    failed = [name for suite, _ in results.values() for name in suite.failed]
    passed = sum(suite.passed for suite, _ in results.values())
    for name in failed:
        print(f"FAILED: {name}")
    print(f"{passed} passed, {len(failed)} failed")
    return 0 if passed and not failed else 1


if __name__ == "__main__":
    sys.exit(main())

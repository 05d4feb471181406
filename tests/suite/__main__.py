"""Runs the project's tests; the last line is "N passed, N failed".

Called by tests/run.sh, which installs what the parts need.
"""

from __future__ import annotations

import argparse
import sys
import sysconfig
import time
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from tests.suite import dlopen, java, languages, parts, rust
from tests.suite.runner import BUILD, ROOT, Suite

CONCURRENT_PARTS = 3  # some wait for Ray, for time to pass or for a compiler


@dataclass(frozen=True)
class Part:
    run: Callable[[Suite], None]
    tools: str = ""  # beyond those of every part: names of TOOLS
    packages: str = (
        ""  # Python packages beyond tests/requirements.txt: NAME of requirements-NAME.txt
    )


# A command or a file, and the Debian package that has it if the names differ.
PYTHON_HEADER = str(Path(sysconfig.get_paths()["include"]) / "Python.h")
TOOLS = {
    "aarch64-gcc": ("aarch64-linux-gnu-g++", "g++-aarch64-linux-gnu"),
    "bash-completion": ("/usr/share/bash-completion/bash_completion", "bash-completion"),
    "clang": ("clang++-19", "clang-19"),
    "clang-rt": ("/usr/lib/llvm-19/lib/clang/19/lib/linux", "libclang-rt-19-dev"),
    "dpkg-dev": ("dpkg-architecture", "dpkg-dev"),  # Meson finds Debian's library folder with it.
    "go": ("go", "golang-go"),
    "jdk": ("javac", "default-jdk-headless"),
    "libclang": ("/usr/lib/llvm-19/lib/libclang-19.so.1", "libclang1-19"),
    "luacheck": ("luacheck", "lua-check"),
    "maven": ("mvn", "maven"),
    "node": ("node", "nodejs"),
    "python-dev": (PYTHON_HEADER, "python3-dev"),
    "qemu": ("qemu-aarch64", "qemu-user"),
}
EVERY_PART = "g++ gcc ccache"
PARTS = {
    "style": Part(parts.part_style, "git shellcheck", "lint"),
    "units": Part(parts.part_units),
    "dist": Part(parts.part_dist, "git"),
    "command": Part(parts.part_command, "cmake make pkg-config dpkg-dev bash-completion fish zsh"),
    "python": Part(parts.part_python, "python-dev"),
    "drivers": Part(parts.part_drivers, "python-dev", "ray"),
    "languages": Part(languages.part_languages, "aarch64-gcc", "lint"),
    "dlopen": Part(dlopen.part_dlopen, "git go node npm luajit luacheck"),
    "java": Part(java.part_java, "jdk maven"),
    "rust": Part(rust.part_rust, "rust libclang pkg-config valgrind"),
    "address": Part(parts.part_address, "clang clang-rt"),
    "fuzz": Part(parts.part_fuzz, "clang clang-rt"),
    "thread": Part(parts.part_thread),
    "headers": Part(parts.part_headers),
    "arm": Part(parts.part_arm, "aarch64-gcc qemu"),
    "tidy": Part(parts.part_tidy, packages="lint"),
    "meson": Part(parts.part_meson),
}
DEFAULT = ("units", "command", "python")


def print_needs(names: Sequence[str]) -> None:
    """Prints what parts need, for tests/run.sh: a tool and its package or a requirements file."""
    requirements = [ROOT / "tests" / "requirements.txt"]
    for tools in (EVERY_PART, *(PARTS[name].tools for name in names)):
        for tool in tools.split():
            print("tool", *TOOLS.get(tool, (tool, tool)))
    for name in sorted({PARTS[name].packages for name in names} - {""}):
        requirements.append(ROOT / "tests" / f"requirements-{name}.txt")
    for file in requirements:
        print("python", file.relative_to(ROOT))


def run_part(name: str) -> tuple[str, Suite, float]:
    suite = Suite()
    begin = time.monotonic()
    try:
        PARTS[name].run(suite)
    except Exception:
        suite.say(traceback.format_exc())
        suite.count(f"{name}: runs to its end", False)
    return name, suite, time.monotonic() - begin


def run_parts(names: Sequence[str]) -> dict[str, tuple[Suite, float]]:
    """Runs parts, some at a time, and prints what each said once it is done."""
    results: dict[str, tuple[Suite, float]] = {}
    with ThreadPoolExecutor(CONCURRENT_PARTS) as pool:
        for running in as_completed([pool.submit(run_part, name) for name in names]):
            name, suite, seconds = running.result()
            results[name] = (suite, seconds)
            print(f"== {name}: {PARTS[name].run.__doc__}", flush=True)
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
    help_of_parts = f"one of --list; without any: {', '.join(DEFAULT)}"
    parser.add_argument("parts", nargs="*", metavar="PART", help=help_of_parts)
    parser.add_argument("--all", action="store_true", help="run every part")
    parser.add_argument("--list", action="store_true", help="list the parts")
    parser.add_argument("--needs", action="store_true", help="list what the parts need")
    arguments = parser.parse_args()
    if arguments.list:
        for name, part in PARTS.items():
            print(f"{name:10} {part.run.__doc__}")
        return 0
    unknown = [name for name in arguments.parts if name not in PARTS]
    if unknown:
        parser.error(f"no part {unknown[0]}; there are {', '.join(PARTS)}")
    names = list(PARTS) if arguments.all else arguments.parts or list(DEFAULT)
    if arguments.needs:
        print_needs(names)
        return 0

    BUILD.mkdir(exist_ok=True)
    begin = time.monotonic()
    results = run_parts(names)
    print_times(results, time.monotonic() - begin)
    failed = [name for suite, _ in results.values() for name in suite.failed]
    passed = sum(suite.passed for suite, _ in results.values())
    for name in failed:
        print(f"FAILED: {name}")
    print(f"{passed} passed, {len(failed)} failed")
    return 0 if passed and not failed else 1


if __name__ == "__main__":
    sys.exit(main())

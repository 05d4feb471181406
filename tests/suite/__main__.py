"""Runs every test of the project, and says so in one line: "N passed, N failed".

Called by tests/run.sh, which installs what is needed.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed

from tests.suite import dlopen, java, languages, parts, rust
from tests.suite.runner import BUILD, Suite

PARTS_AT_ONCE = 3  # some wait for a while: of Ray, of time, of a compiler
PARTS: dict[str, Callable[[Suite], None]] = {
    "style": parts.part_style,
    "units": parts.part_units,
    "command": parts.part_command,
    "python": parts.part_python,
    "languages": languages.part_languages,
    "dlopen": dlopen.part_dlopen,
    "java": java.part_java,
    "rust": rust.part_rust,
    "address": parts.part_address,
    "fuzz": parts.part_fuzz,
    "thread": parts.part_thread,
    "headers": parts.part_headers,
    "arm": parts.part_arm,
    "tidy": parts.part_tidy,
    "meson": parts.part_meson,
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
    """Runs parts, some at a time, and prints what each said once it is done."""
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

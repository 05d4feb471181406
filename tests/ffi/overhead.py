"""Compares what a call costs from Go and Node.js with what their bridges cost.

python tests/ffi/overhead.py [--rounds 5] BUILD

BUILD is a build of gcx, build/tests for one. Compiles the programs, runs them by turns on the
simulated driver, and prints the table of docs/reference/other-languages.md. Needs a C compiler, Go,
and Node.js with the packages of bindings/node.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
Command = Sequence[object]


def run(command: Command, folder: Path = ROOT) -> str:
    env = {**os.environ, "GCX_DRIVER": "sim:h100@13.0", "CGO_ENABLED": "0", "GOTOOLCHAIN": "local"}
    return subprocess.run(
        [str(word) for word in command],
        cwd=folder,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout


def programs(build: Path, out: Path) -> dict[str, Command]:
    library = build / "src" / "libgcx.so"
    run(
        ["cc", "-O2", f"-I{ROOT / 'include'}", ROOT / "tests/ffi/overhead.c", "-o", out / "c",
         library, f"-Wl,-rpath,{library.parent}"]
    )  # fmt: skip
    go = ["go", "build", "-buildvcs=false", "-o", out / "go", "./tests/overhead"]
    run(go, ROOT / "bindings" / "go")
    return {
        "C": [out / "c"],
        "Go, purego": [out / "go", library],
        "Node.js, koffi": ["node", ROOT / "bindings/node/tests/overhead.js", library],
    }


def measure(commands: dict[str, Command], rounds: int) -> dict[str, dict[str, float]]:
    """The shortest of several runs by turns: other programs only add to a time."""
    best: dict[str, dict[str, float]] = {language: {} for language in commands}
    for _ in range(rounds):
        for language, command in commands.items():
            for line in run(command).splitlines():
                name, value = line.split()
                known = best[language].get(name, float("inf"))
                best[language][name] = min(known, float(value))
    return best


def table(best: dict[str, dict[str, float]]) -> str:
    c = best["C"]
    lines = [
        "| | libc's `abs` | `gcx_version` | / `abs` | bridge of a round | round | / (C + bridge) |",
        "| --- | --- | --- | --- | --- | --- | --- |",
        f"| C | | {c['version']:.1f} ns | | | {c['round'] / 1000:.2f} us | |",
    ]
    for language, of in best.items():
        if language != "C":
            floor = c["round"] + of["bridge"]
            lines.append(
                f"| {language} | {of['abs']:.0f} ns | {of['version']:.0f} ns "
                f"| {of['version'] / of['abs']:.2f} | {of['bridge'] / 1000:.2f} us "
                f"| {of['round'] / 1000:.2f} us | {of['round'] / floor:.2f} |"
            )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", type=Path, metavar="BUILD")
    parser.add_argument("--rounds", type=int, default=5, help="runs of each program (5)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as out:
        commands = programs(arguments.build.resolve(), Path(out))
        print(table(measure(commands, arguments.rounds)))


if __name__ == "__main__":
    main()

"""Tests whether a runner notices differences.

python -m tests.vectors.notice [--left-out NEED]... RUNNER...

Runs the runner on files in which, for each operation, the result, each output and a piece of the
message are changed, one change per vector. Fails unless it names exactly those vectors.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.vectors.make import FILES, INPUTS


def _other(text: str) -> str:
    return str(int(text) + 1) if text.lstrip("-").isdigit() else text + "x"


def changes_of(fields: list[str]) -> dict[tuple[str, ...], list[str]]:
    """Returns the fields of a step after each possible change, by operation and kind of change."""
    operation, result = fields[:2]
    other = "GCX_ERROR_TIMEOUT" if result == "GCX_SUCCESS" else "GCX_SUCCESS"
    changes: dict[tuple[str, ...], list[str]] = {}
    changes[operation, result] = [operation, other, *fields[2:]]
    for number in range(2 + INPUTS[operation], len(fields)):
        kind, other = f"output {number}", _other(fields[number])
        if result != "GCX_SUCCESS":
            kind, other = "message", fields[number] + " and what no message has"
        changes[operation, kind] = [*fields[:number], other, *fields[number + 1 :]]
    return changes


def changed_file(
    text: str, left_out: set[str], done: set[tuple[str, ...]]
) -> tuple[str, dict[str, str]]:
    """Returns the file with as many new changes as possible, one per vector, and the names of these
    vectors with their changes. Starts at the last vectors, on which fewer others depend."""
    lines = text.splitlines()
    vectors: dict[str, str] = {}
    is_changed = False
    end = len(lines)
    for number in range(len(lines) - 1, -1, -1):
        fields = lines[number].split("\t")
        if not lines[number] or lines[number].startswith("#"):
            continue
        if fields[0] == "vector":
            is_changed = False
            end = number
            continue
        name, needs = _vector_of(lines, number)
        # All other vectors need the open driver.
        is_changed = is_changed or fields[:2] == ["open", "GCX_SUCCESS"]
        if is_changed or left_out & needs:
            continue
        for kind, changed in changes_of(fields).items():
            if kind not in done:
                done.add(kind)
                lines[number] = "\t".join(changed)
                vectors[name] = ", ".join(kind)
                is_changed = True
                # The next vectors expect the cache as the end of this one leaves it.
                lines[end:end] = ["vector\tthe cache is empty", "limit\tGCX_SUCCESS\t0"]
                break
    return "\n".join(lines) + "\n", vectors


def _vector_of(lines: list[str], number: int) -> tuple[str, set[str]]:
    while not lines[number].startswith("vector\t"):
        number -= 1
    _, name, *needs = lines[number].split("\t")
    return name, set(needs)


def problems_of(runner: list[str], path: Path, text: str, vectors: dict[str, str]) -> list[str]:
    """Returns the problems of the runner's answer to a changed file."""
    path.write_text(text)
    done = subprocess.run(
        [*runner, path],
        env={name: value for name, value in os.environ.items() if name != "GCX_DRIVER"},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    lines = done.stdout.splitlines()
    problems = [
        f"{path.name}: not noticed: {what}, in {name!r}"
        for name, what in vectors.items()
        if not any(re.search(rf"\s{re.escape(name)}[:\t]", line) for line in lines)
    ]
    if done.returncode == 0:
        problems.append(f"{path.name}: the runner exits with 0")
    if not any(f" {len(vectors)} differ," in line for line in lines):
        problems.append(f"{path.name}: {len(vectors)} differ, and the runner doesn't say so")
    return problems


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--left-out", action="append", default=[], metavar="NEED")
    parser.add_argument("runner", nargs="+")
    arguments = parser.parse_args()
    done: set[tuple[str, ...]] = set()
    problems: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        for path in FILES:
            # Repeats until everything was changed once.
            while True:
                text, vectors = changed_file(path.read_text(), set(arguments.left_out), done)
                if not vectors:
                    break
                problems += problems_of(arguments.runner, Path(folder) / path.name, text, vectors)
    print(f"{len(done)} changes, {len(problems)} problems")
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

"""Does a runner notice what differs? python -m tests.vectors.notice [--left-out NEED]... RUNNER...

Gives the runner a file in which for each operation the result, each output and a piece of the
message are changed, each in a vector of its own, and fails unless it names exactly those vectors.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

#: On it every operation succeeds somewhere.
FILE = Path(__file__).parent / "all-13.5.tsv"
INPUTS = {
    **dict.fromkeys(("driver", "devices", "pop", "current", "cache"), 0),
    **dict.fromkeys(("open", "capability", "device", "priorities", "info", "queue"), 1),
    **dict.fromkeys(("live-overlap", "sms", "cluster", "probe", "push", "live", "limit"), 1),
    **dict.fromkeys(("synchronize", "query", "close"), 1),
    **dict.fromkeys(("overlap", "same", "map", "adopt", "record", "wait", "elapsed"), 2),
    **dict.fromkeys(("resource", "union", "subtract", "intersect", "atom", "context"), 3),
    **dict.fromkeys(("get", "stream", "event"), 3),
    **dict.fromkeys(("split", "configure"), 4),
    **dict.fromkeys(("prepare", "alone", "leases"), 1),
    **dict.fromkeys(("resize", "held"), 2),
    **{"hand-over": 3, "lease": 7, "ahead": 1, "trim": 1},
}


def _other(text: str) -> str:
    return str(int(text) + 1) if text.lstrip("-").isdigit() else text + "x"


def changes_of(fields: list[str]) -> dict[tuple[str, ...], list[str]]:
    """What can be changed in a step, by operation and what is changed: the step's fields then."""
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


def changed_file(text: str, left_out: set[str]) -> tuple[str, dict[str, str]]:
    """The file with as many changes as find a vector each, and those vectors' names with what was
    changed. The last vectors are taken first: fewer follow that build on them."""
    lines = text.splitlines()
    done: set[tuple[str, ...]] = set()
    vectors: dict[str, str] = {}
    is_changed = False
    for number in range(len(lines) - 1, -1, -1):
        fields = lines[number].split("\t")
        if not lines[number] or lines[number].startswith("#"):
            continue
        if fields[0] == "vector":
            is_changed = False
            continue
        name, needs = _vector_of(lines, number)
        # Those below need the driver open.
        if is_changed or left_out & needs or (fields[0] == "open" and fields[1] == "GCX_SUCCESS"):
            continue
        for kind, changed in changes_of(fields).items():
            if kind not in done:
                done.add(kind)
                lines[number] = "\t".join(changed)
                vectors[name] = ", ".join(kind)
                is_changed = True
                break
    return "\n".join(lines) + "\n", vectors


def _vector_of(lines: list[str], number: int) -> tuple[str, set[str]]:
    while not lines[number].startswith("vector\t"):
        number -= 1
    _, name, *needs = lines[number].split("\t")
    return name, set(needs)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--left-out", action="append", default=[], metavar="NEED")
    parser.add_argument("runner", nargs="+")
    arguments = parser.parse_args()
    text, vectors = changed_file(FILE.read_text(), set(arguments.left_out))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / FILE.name
        path.write_text(text)
        done = subprocess.run(
            [*arguments.runner, path],
            env={name: value for name, value in os.environ.items() if name != "GCX_DRIVER"},
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
    lines = done.stdout.splitlines()
    problems = [
        f"not noticed: {what}, in {name!r}"
        for name, what in vectors.items()
        if not any(re.search(rf"\s{re.escape(name)}[:\t]", line) for line in lines)
    ]
    if done.returncode == 0:
        problems.append("the runner exits with 0")
    if not any(f" {len(vectors)} differ," in line for line in lines):
        problems.append(f"{len(vectors)} vectors differ, and the runner doesn't say so")
    print(f"{len(vectors)} changes, {len(problems)} problems")
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

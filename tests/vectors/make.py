"""Writes the vectors, as the model answers them: python -m tests.vectors.make [--check]

With --check it writes nothing, and fails if the files aren't what the model makes.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.vectors import scenarios
from tests.vectors.gpus import PROFILES
from tests.vectors.leases import Leasing
from tests.vectors.planner import count_of
from tests.vectors.resources import OK, Answer
from tests.vectors.structured import Request

FOLDER = Path(__file__).parent
#: Two devices alike, and one of each other kind.
GPUS = ("h100", "h100", "h200", "a100", "b200", "gb200", "rtx4090", "l40s", "orin")
DRIVERS = ("12.4", "12.8", "13.0", "13.1", "13.5")


def _text(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return ",".join(map(str, value)) or "-"
    return str(value)


def _listed(text: str) -> list[str]:
    return [] if text == "-" else text.split(",")


def _requests(text: str) -> list[Request]:
    rows = [item.split("/") for item in _listed(text)]
    return [Request(count_of(count), *map(int, more)) for count, *more in rows]


class Writer:
    """The lines of one file. A vector's steps are calls of the writer with an operation and its
    inputs; the model says what must come of them."""

    def __init__(self, gpus: Sequence[str], driver: str) -> None:
        self.gpus = gpus
        self.driver = driver
        major, minor = map(int, driver.split("."))
        self.version = major * 100 + minor
        self.machine = Leasing(gpus, self.version)
        self.lines: list[str] = []
        self.vector_count = 0

    def vector(self, name: str, *needs: str) -> None:
        self.machine.end_vector()
        self.machine.begin_vector()
        self.vector_count += 1
        self.lines += ["", "\t".join(("vector", name, *needs))]

    def __call__(self, operation: str, *inputs: object) -> Answer:
        answer = self._answer(operation, list(map(_text, inputs)))
        fields = [operation, answer.result, *map(_text, inputs)]
        if answer.result == OK:
            fields += map(_text, answer.outputs)
        elif answer.pieces:
            fields.append("|".join(map(str, answer.pieces)))
        self.lines.append("\t".join(fields))
        return answer

    def given(self, operation: str, result: str, *fields: object) -> None:
        """A step whose answer the header says outright."""
        self.lines.append("\t".join((operation, result, *map(_text, fields))))

    def _answer(self, operation: str, inputs: list[str]) -> Answer:
        machine = self.machine
        if operation == "split":
            return machine.split(inputs[0], inputs[1], _requests(inputs[2]), inputs[3])
        if operation in ("union", "subtract", "intersect"):
            return machine.combine(operation, *inputs)
        if operation == "context":
            return machine.context(_listed(inputs[0]), *inputs[1:])
        if operation == "ahead":
            return machine.ahead(_listed(inputs[0]))
        if operation in ("wait", "synchronize", "query"):
            return machine.simple(*inputs)
        if operation == "event":
            return machine.event(int(inputs[0]), *inputs[1:])
        method = getattr(machine, operation.replace("-", "_"))
        answer: Answer = method(*(int(x) if _is_number(x) else x for x in inputs))
        return answer

    def text(self) -> str:
        self.machine.end_vector()
        head = (
            f"# Made by `python -m tests.vectors.make`. Drivers of CUDA {self.driver}, and devices"
        )
        return f"{head}\n# {', '.join(self.gpus)}.\n" + "\n".join(self.lines) + "\n"


def _is_number(text: str) -> bool:
    return text.lstrip("-").isdigit()


def made() -> dict[str, str]:
    """The text of each file."""
    missing = {path.stem for path in PROFILES.glob("*.profile")} - set(GPUS)
    if missing:
        raise SystemExit(f"GPUs without vectors: {', '.join(sorted(missing))}; add them to GPUS")
    files = {}
    for driver in DRIVERS:
        writer = Writer(GPUS, driver)
        scenarios.write(writer)
        files[f"all-{driver}.tsv"] = writer.text()
    return files


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, compare")
    check = parser.parse_args().check
    files = made()
    wrong = sorted({path.name for path in FOLDER.glob("*.tsv")} - files.keys())
    for name, text in files.items():
        path = FOLDER / name
        if check and (not path.exists() or path.read_text() != text):
            wrong.append(name)
        elif not check:
            path.write_text(text)
    count = sum(
        line.startswith("vector\t") for text in files.values() for line in text.splitlines()
    )
    print(f"{len(files)} files, {count} vectors")
    for name in wrong:
        print(f"{name} isn't what the model makes: python -m tests.vectors.make", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

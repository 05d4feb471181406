"""Asks a language for the answers of a file of vectors, and prints what differs.

python -m tests.vectors.ask [--left-out NEED]... ANSWERER... FILE

README.md says what an answerer reads and prints.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple

from tests.vectors.make import INPUTS


class Step(NamedTuple):
    line: int
    fields: list[str]  # operation, result, inputs, outputs


class Vector(NamedTuple):
    name: str
    needs: set[str]
    steps: list[Step]


def vectors_of(path: Path) -> list[Vector]:
    vectors: list[Vector] = []
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        fields = line.split("\t")
        if fields[0] == "vector":
            vectors.append(Vector(fields[1], set(fields[2:]), []))
        elif line and not line.startswith("#"):
            vectors[-1].steps.append(Step(number, fields))
    return vectors


def spelled_out(ids: str) -> str:
    """0-2,5 as 0,1,2,5; other text as it is."""
    if not re.fullmatch(r"\d+(-\d+)?(,\d+(-\d+)?)*", ids):
        return ids
    runs = [run.partition("-") for run in ids.split(",")]
    return ",".join(
        str(number) for low, _, high in runs for number in range(int(low), int(high or low) + 1)
    )


def difference(fields: list[str], answer: list[str]) -> str:
    """Returns how an answer differs from the one that a step expects, or ""."""
    operation, expected, *rest = fields
    outputs = rest[INPUTS[operation] :]
    if operation in ("sms", "probe") and expected == "GCX_SUCCESS":
        outputs = list(map(spelled_out, outputs))
    result, *given = answer
    if result == expected == "GCX_SUCCESS":
        return "" if given == outputs else f"expected {outputs}, got {given}"
    if result != expected:
        return f"expected {expected}, got {' '.join(answer)}"
    missing = [piece for piece in "".join(outputs).split("|") if piece not in given[0]]
    return f"the message lacks {missing}: {given[0]}" if missing else ""


class Answerer:
    def __init__(self, words: list[str]) -> None:
        environment = {name: value for name, value in os.environ.items() if name != "GCX_DRIVER"}
        self.process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, encoding="utf-8"
        )

    def ask(self, *words: str) -> list[str]:
        """Returns the fields of the answer to a line."""
        to, answers = self._pipes()
        to.write("\t".join(words) + "\n")
        to.flush()
        answer = answers.readline()
        if not answer:
            raise SystemExit(f"{words}: the answerer ended with {self.process.wait()}")
        return answer.removesuffix("\n").split("\t")

    def _pipes(self) -> tuple[IO[str], IO[str]]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        return self.process.stdin, self.process.stdout

    def differences(self, vector: Vector) -> Iterator[str]:
        """Yields the first difference of a vector, and what is wrong at its end."""
        for line, fields in vector.steps:
            inputs = fields[2 : 2 + INPUTS[fields[0]]]
            different = difference(fields, self.ask(fields[0], *inputs))
            if different:
                yield f"{line}: {vector.name}: {fields[0]}: {different}"
                break
        end = self.ask("end")
        if end != ["GCX_SUCCESS"]:
            yield f" {vector.name}: at its end: {' '.join(end)}"


def main(words: list[str]) -> int:
    left_out: set[str] = set()
    while words[0] == "--left-out":
        left_out.add(words[1])
        words = words[2:]
    path = Path(words[-1])
    vectors = vectors_of(path)
    asked = [vector for vector in vectors if not vector.needs & left_out]
    answerer = Answerer(words[:-1])
    differ = 0
    for vector in asked:
        found = list(answerer.differences(vector))
        for text in found:
            print(f"{path}:{text}")
        differ += bool(found)
    agree = len(asked) - differ
    left = len(vectors) - len(asked)
    print(f"{path}: {agree} vectors agree, {differ} differ, {left} left out")
    return 0 if agree and not differ else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

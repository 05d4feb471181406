"""Fills in the answers of vectors by the model.

python -m tests.vectors.make             # fills in the answers in the files of the folder generated
python -m tests.vectors.make --check     # fails if an answer differs from the model's
python -m tests.vectors.make FILE...     # writes each NAME-VERSION.tsv: the vectors of the folder's
                                         # file NAME for this driver, or the full set if NAME is all
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

FILES = sorted((Path(__file__).parent / "generated").glob("*.tsv"))
#: The GPUs of the full set: two equal ones, and one of each other kind
GPUS = ("h100", "h100", "h200", "a100", "b200", "gb200", "rtx4090", "l40s", "orin")
#: The number of inputs of each operation
INPUTS = {
    **dict.fromkeys(("driver", "devices", "pop", "current", "cache"), 0),
    **dict.fromkeys(("open", "capability", "device", "priorities", "info", "queue"), 1),
    **dict.fromkeys(("sms", "cluster", "probe", "push", "live", "limit"), 1),
    **dict.fromkeys(("synchronize", "query", "close"), 1),
    **dict.fromkeys(("overlap", "same", "map", "adopt", "record", "wait", "elapsed"), 2),
    **dict.fromkeys(("resource", "union", "subtract", "atom", "context"), 3),
    **dict.fromkeys(("get", "stream", "event"), 3),
    **dict.fromkeys(("split", "configure"), 4),
    **dict.fromkeys(("prepare", "alone", "leases"), 1),
    **dict.fromkeys(("resize", "held"), 2),
    **{"lease": 7, "ahead": 1, "trim": 1},
}


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
    """The lines of one file. A call of the writer with an operation and its inputs adds a step with
    the model's answer."""

    def __init__(self, gpus: Sequence[str], driver: str) -> None:
        self.lines: list[str] = []
        self.machine = Leasing((), 0)
        self.start(",".join(gpus), driver)

    def start(self, gpus: str, driver: str) -> None:
        """Creates the machine with these GPUs."""
        self.gpus = [gpu for gpu in gpus.split(",") if gpu]
        self.driver = driver
        major, minor = map(int, driver.split("."))
        self.version = major * 100 + minor
        self.machine = Leasing(self.gpus, self.version)

    def vector(self, name: str, *needs: str) -> None:
        self.machine.end_vector()
        self.machine.begin_vector()
        self.lines.append("\t".join(("vector", name, *needs)))

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
        """Adds a step whose answer the header states."""
        self.lines.append("\t".join((operation, result, *map(_text, fields))))

    def _answer(self, operation: str, inputs: list[str]) -> Answer:
        machine = self.machine
        if operation == "split":
            return machine.split(inputs[0], inputs[1], _requests(inputs[2]), inputs[3])
        if operation in ("union", "subtract"):
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


def _is_number(text: str) -> bool:
    return text.lstrip("-").isdigit()


def full(driver: str) -> str:
    """Returns the text of the full set for a driver."""
    missing = {path.stem for path in PROFILES.glob("*.profile")} - set(GPUS)
    if missing:
        raise SystemExit(f"GPUs without vectors: {', '.join(sorted(missing))}; add them to GPUS")
    writer = Writer(GPUS, driver)
    scenarios.write(writer)
    return "\n".join(writer.lines) + "\n"


def answered(text: str, driver: str = "") -> str:
    """Returns a file with the model's answers to its steps, for another driver if one is given. A
    vector then ends at the first step that only one of the two drivers refuses."""
    writer = Writer((), "0.0")
    ends = False
    for line in text.splitlines():
        operation, *fields = line.split("\t")
        if operation == "vector":
            writer.vector(*fields)
            ends = False
        elif operation == "open":
            # The file states the answer and the machine.
            if fields[0] == OK:
                gpus, version = fields[1].removeprefix("sim:").split("@")
                writer.start(gpus, driver or version)
                fields[1] = f"sim:{gpus}@{writer.driver}"
            writer.given(operation, *fields)
        elif not line or line.startswith("#"):
            writer.lines.append(line)
        elif not ends:
            answer = writer(operation, *fields[1 : 1 + INPUTS[operation]])
            ends = driver != "" and (answer.result == OK) != (fields[0] == OK)
    return "\n".join(writer.lines) + "\n"


def written(name: str, driver: str) -> str:
    """Returns the text of a file that is built."""
    source = next((path for path in FILES if path.stem.startswith(f"{name}-")), None)
    return answered(source.read_text(), driver) if source else full(driver)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare and write nothing")
    parser.add_argument("files", nargs="*", type=Path, help="write the set of this driver")
    arguments = parser.parse_args()
    for path in arguments.files:
        path.write_text(written(*path.stem.split("-")))
    wrong = []
    for path in [] if arguments.files else FILES:
        text = path.read_text()
        if text != answered(text):
            wrong.append(path)
            if not arguments.check:
                path.write_text(answered(text))
    for path in wrong:
        print(f"{path}: {'differs from' if arguments.check else 'now has'} the model's answers")
    return 1 if wrong and arguments.check else 0


if __name__ == "__main__":
    sys.exit(main())

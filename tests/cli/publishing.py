"""Processes that publish leases, for gcx top to show."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .command import H100, environment, program

# Shown in docs/command.md.
LEASES = [
    ("engine", "decode:32", "prefill:76", "wait:batch:48"),
    ("notebook", "probe:24:8"),
]

RESERVATIONS = [
    ("trainer", "reservation:train:108"),
    ("server", "reservation:decode:24", "wait:reservation:batch:48"),
]


def library() -> str:
    """Returns the libgcx that the command uses."""
    done = subprocess.run(["ldd", program()], capture_output=True, text=True, check=True)
    found = re.search(r"libgcx\.so\.\d+ => (\S+)", done.stdout)
    assert found is not None, done.stdout
    return found.group(1)


class Publisher:
    def __init__(self, folder: Path, *words: str, driver: str = H100) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("publisher.py")), library(), *words],
            env=environment({"GCX_DRIVER": driver, "GCX_RESERVATION_DIR": str(folder)}),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.heard("ready")

    def heard(self, word: str) -> None:
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == f"{word}\n"

    def do(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()
        self.heard("done")

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


@contextmanager
def publishers(folder: Path, *all_words: tuple[str, ...]) -> Iterator[list[Publisher]]:
    """Starts one after the other, which is the order in which they are listed."""
    started: list[Publisher] = []
    try:
        for words in all_words:
            started.append(Publisher(folder, *words))
        yield started
    finally:
        for publisher in started:
            publisher.end()

"""Processes that publish leases, for gcx top to show."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from .command import H100, Json, environment, program, succeed, succeed_json

# Shown in docs/reference/command.md.
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
    def __init__(self, *words: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("publisher.py")), library(), *words],
            env=environment({"GCX_DRIVER": H100}),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
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
def publishers(*all_words: tuple[str, ...]) -> Iterator[list[Publisher]]:
    """Starts one after the other, which is the order in which they are listed."""
    with ExitStack() as stack:
        started = []
        for words in all_words:
            started.append(Publisher(*words))
            stack.callback(started[-1].end)
        yield started


def listed(command: str) -> str:
    """Returns what gcx ps or gcx top prints once; neither needs a driver."""
    words = {"top": ["--once"]}.get(command, [])
    return succeed(command, *words, driver="/nonexistent.so")


def listed_json(command: str) -> Json:
    return succeed_json(command, driver="/nonexistent.so")

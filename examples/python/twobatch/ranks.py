"""The processes of a run, one for each GPU: what they exchange, and how they end together.

A rank that fails must not leave the others in a collective forever. Problems found before a
collective are reported to all ranks, which then end (agree); a later failure ends the rank at once,
and torchrun ends the others.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, Protocol

import common


class Ranks(Protocol):
    """The ranks of a run, as one of them sees them."""

    @property
    def rank(self) -> int: ...

    @property
    def world(self) -> int: ...

    def gather(self, mine: Any) -> list[Any]:
        """Returns each rank's value, by rank. Waits for all."""


class Place(NamedTuple):
    """A process's place, from torchrun's environment."""

    rank: int
    world: int
    device: int


COMMAND = "torchrun --nproc-per-node 4 examples/python/two_batch_overlap.py"
NEEDS = f"needs 2 or more GPUs of one host, a process for each, which torchrun starts: {COMMAND}"


def place_of(environment: Mapping[str, str]) -> Place:
    """
    Raises:
        ValueError: torchrun did not start this, or for one GPU, or its variables are invalid.
    """
    names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
    values = {name: environment.get(name, "") for name in names}
    if not any(values.values()):
        raise ValueError(NEEDS)
    for name, value in values.items():
        if not value.isdecimal():
            raise ValueError(f"{name} is {value!r}, not the number that torchrun sets")
    rank, world, device, here = (int(values[name]) for name in names)
    if world != here:
        raise ValueError(f"{here} of {world} processes are on this host: {NEEDS}")
    if world not in (2, 4, 8):
        raise ValueError(f"2, 4 or 8 GPUs share tokens and experts evenly, not {world}: {NEEDS}")
    if not (rank < world and device < here):
        raise ValueError(f"rank {rank}, local rank {device} of {world}: torchrun counts otherwise")
    return Place(rank, world, device)


def agree(ranks: Ranks, problem: str) -> None:
    """Ends all ranks if one has a problem; rank 0 prints it."""
    problems = ranks.gather(problem)
    reports = [f"rank {rank}: {text}" for rank, text in enumerate(problems) if text]
    if reports:
        if ranks.rank == 0:
            common.end("; ".join(reports))
        raise SystemExit(2)


def attempt(work: Callable[[], Any]) -> tuple[Any, str]:
    """Returns the result of the work, or its error as a line."""
    try:
        return work(), ""
    except Exception as error:  # From any library; the caller reports it and ends all ranks.
        return None, in_a_line(error)


def in_a_line(error: BaseException) -> str:
    """Returns the first line of an error; libraries add traces below it."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def fail(rank: int, error: BaseException) -> NoReturn:
    """Ends this rank at once, without cleanup, which would wait for other ranks on the device."""
    name = Path(sys.argv[0]).name
    print(f"{name}: FAILED: rank {rank}: {type(error).__name__}: {in_a_line(error)}",
          file=sys.stderr, flush=True)  # fmt: skip
    sys.stdout.flush()
    os._exit(1)

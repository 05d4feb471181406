"""The processes of a run, one for each GPU: what they tell each other, and how they end together.

A rank that fails must not leave the others in a collective that never ends. What can go wrong
before a collective is told to all first (agree), and all end with that; what goes wrong later ends
the rank at once, and torchrun the others.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, Protocol

import common


class Ranks(Protocol):
    """Those of a run, seen from one of them."""

    @property
    def rank(self) -> int: ...

    @property
    def world(self) -> int: ...

    def gather(self, mine: Any) -> list[Any]:
        """What each has brought, by rank. Waits for all."""


class Alone:
    """A run of one."""

    rank = 0
    world = 1

    def gather(self, mine: Any) -> list[Any]:
        return [mine]


class Place(NamedTuple):
    """What torchrun told a process."""

    rank: int
    world: int
    device: int


COMMAND = "torchrun --nproc-per-node 4 examples/python/two_batch_overlap.py"
NEEDS = (
    "needs 2 or more GPUs of one host, a process for each, which torchrun starts: "
    f"{COMMAND}; --simulate runs without a GPU"
)


def place_of(environment: Mapping[str, str]) -> Place:
    """
    Raises:
        ValueError: torchrun did not start this, or for one GPU; or what it told makes no sense.
    """
    names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
    told = {name: environment.get(name, "") for name in names}
    if not any(told.values()):
        raise ValueError(NEEDS)
    for name, value in told.items():
        if not value.isdecimal():
            raise ValueError(f"{name} is {value!r}, not the number that torchrun sets")
    rank, world, device, here = (int(told[name]) for name in names)
    if world != here:
        raise ValueError(f"{here} of {world} processes are on this host: {NEEDS}")
    if world not in (2, 4, 8):
        raise ValueError(f"2, 4 or 8 GPUs share tokens and experts evenly, not {world}: {NEEDS}")
    if not (rank < world and device < here):
        raise ValueError(f"rank {rank}, local rank {device} of {world}: torchrun counts otherwise")
    return Place(rank, world, device)


def agree(ranks: Ranks, problem: str) -> None:
    """Ends all ranks if one has a problem; the first says which, and whose."""
    problems = ranks.gather(problem)
    told = [f"rank {rank}: {text}" for rank, text in enumerate(problems) if text]
    if told:
        if ranks.rank == 0:
            common.end("; ".join(told))
        raise SystemExit(2)


def attempt(work: Callable[[], Any]) -> tuple[Any, str]:
    """What the work gives, or the problem that it has, in a line."""
    try:
        return work(), ""
    except Exception as error:  # Of whichever library: it is told, and ends all.
        return None, in_a_line(error)


def in_a_line(error: BaseException) -> str:
    """The error as one line of a report; libraries add traces of their own below the first."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def fail(rank: int, error: BaseException) -> NoReturn:
    """Ends this rank now. The others may be waiting for it on the device: to take anything down in
    order would wait for them."""
    name = Path(sys.argv[0]).name
    print(f"{name}: FAILED: rank {rank}: {type(error).__name__}: {in_a_line(error)}",
          file=sys.stderr, flush=True)  # fmt: skip
    sys.stdout.flush()
    os._exit(1)

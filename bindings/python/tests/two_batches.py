"""What the tests of examples/python/two_batch_overlap.py share: its modules, ranks that are
threads, a machine that takes what it is told."""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gcx
import pytest

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "python"
if str(EXAMPLES) not in sys.path:
    sys.path.insert(0, str(EXAMPLES))

# What it does knows no driver's version: one run has it.
once = pytest.mark.skipif(
    gcx.driver_info().version != (13, 0), reason="another driver's run has it"
)
program: Any = importlib.import_module("two_batch_overlap")


def module(name: str) -> Any:
    return importlib.import_module(f"twobatch.{name}")


schedule = module("schedule")


def arm(name: str) -> Any:
    return module("arms").arm_of(name)


class Group:
    """Ranks that are threads of this process."""

    def __init__(self, world: int) -> None:
        self.world = world
        self._barrier = threading.Barrier(world, timeout=30)
        self._brought: list[Any] = [None] * world

    def run(self, work: Callable[[Any], Any]) -> list[Any]:
        """What each rank gave, or the exception that ended it."""
        found: list[Any] = [None] * self.world

        def one(rank: int) -> None:
            try:
                found[rank] = work(Member(self, rank))
            except BaseException as error:
                found[rank] = error

        threads = [threading.Thread(target=one, args=(rank,)) for rank in range(self.world)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return found

    def gather(self, rank: int, mine: Any) -> list[Any]:
        self._brought[rank] = mine
        self._barrier.wait()
        found = [*self._brought]
        self._barrier.wait()
        return found


class Member:
    def __init__(self, group: Group, rank: int) -> None:
        self.rank, self.world, self._group = rank, group.world, group

    def gather(self, mine: Any) -> list[Any]:
        return self._group.gather(self.rank, mine)


class Table:
    """A machine that takes what it is told, and tells in which order it was used."""

    sm_count = 132

    def __init__(self, times: dict[str, float], cannot: dict[str, str] | None = None) -> None:
        self.times, self.cannot = times, cannot or {}
        self.used: list[str] = []

    def prepare(self, one: Any) -> str:
        return self.cannot.get(one.name, "")

    def warm_up(self, one: Any) -> str:
        return self.cannot.get(f"{one.name} together", "")

    def once(self, one: Any) -> float:
        self.used.append(one.name)
        return self.times[one.name]

    def trace(self, one: Any) -> list[Any]:
        found: list[Any] = schedule.lay_out(1, lambda step: 1.0, one_lane=one.kind == "sequence")
        return found

    def close(self) -> None:
        self.used.append("close")


def told(rank: str = "1", world: str = "4", device: str = "1", here: str = "4") -> dict[str, str]:
    return {"RANK": rank, "WORLD_SIZE": world, "LOCAL_RANK": device, "LOCAL_WORLD_SIZE": here}

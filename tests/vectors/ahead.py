"""The vectors of one machine about contexts that are made ahead of time, and trimming."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from tests.vectors.gpus import gpu

if TYPE_CHECKING:
    from tests.vectors.make import Writer


def write(w: Writer) -> None:
    """All of them."""
    for device, key in enumerate(w.gpus):
        at_random(w, key, device)
    limits(w)
    refused(w)


def _new(w: Writer, name: str, device: int, *counts: int) -> list[str]:
    """A vector with nothing kept, and a resource of each count, the first SMs."""
    w.vector(name)
    w("limit", 64)
    w("trim", 0)
    w("resource", device, "sm", "d")
    for count in counts:
        w("split", "d", "-", count, f"p{count}")
    return [f"p{count}.0" for count in counts]


def at_random(w: Writer, key: str, device: int) -> None:
    """What is there is not made again, and counts as used: so others go before it."""
    source = random.Random(f"ahead {key} {device} {w.driver}")
    least = gpu(key).least
    counts = [least * times for times in (1, 2, 3, 4)]
    names = _new(w, f"{key} {device}: contexts ahead of time", device, *counts)
    alive: list[str] = []
    for number in range(12):
        what = source.choice(("ahead", "ahead", "context", "close", "trim"))
        if what == "ahead":
            w("ahead", [source.choice(names) for _ in range(source.randint(1, 3))])
        elif what == "context":
            alive.append(f"c{number}")
            w("context", source.choice(names), source.choice(("-", "private")), alive[-1])
        elif what == "close" and alive:
            w("close", alive.pop(source.randrange(len(alive))))
        else:
            w("trim", source.randint(0, 3))
        w("cache")


def limits(w: Writer) -> None:
    names = _new(w, "the limit is asked before the first is made", 0, 8, 16, 24, 32)
    w("limit", 3)
    w("ahead", names)
    w("cache")
    # Twice the same is one, and what is in use needs room too, since it comes back.
    w("ahead", [*names[:3], names[0]])
    w("context", names[3], "-", "c")
    w("ahead", names)
    w("cache")
    w("limit", 2)
    w("ahead", names)
    w("limit", 0)
    w("ahead", names[:1])
    w("ahead", names[3:])
    w("cache")
    w("limit", 64)


def refused(w: Writer) -> None:
    (part,) = _new(w, "what no context is made of", 0, 24)
    w("subtract", part, part, "none")
    w("ahead", [])
    w("ahead", [part, "none"])
    w("ahead", ["none"])
    w("cache")
    w.vector("a resource that is none, ahead of time")
    w("ahead", ["zero"])

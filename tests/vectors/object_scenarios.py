"""The vectors of one machine about contexts, streams, events and the context cache."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from tests.vectors.gpus import gpu

if TYPE_CHECKING:
    from tests.vectors.make import Writer


def write(w: Writer) -> None:
    """Writes all of them."""
    first = {key: device for device, key in reversed(list(enumerate(w.gpus)))}
    for key, device in first.items():
        streams(w, key, device)
        clusters(w, key, device)
        overlapping(w, key, device)
    live(w)
    cached(w)
    private(w)
    current(w)
    events(w)
    closed(w)
    for device, key in enumerate(w.gpus):
        cache_at_random(w, key, device)
    cache_limits(w)
    cache_refused(w)


def streams(w: Writer, key: str, device: int) -> None:
    source = random.Random(f"streams {key} {w.driver}")
    sm_count = gpu(key).sm_count
    for family in ("-", "fine"):
        for priority in (0, -3, source.choice((5, -9, 2147483647, -2147483648))):
            count = source.randint(1, sm_count)
            w.vector(f"{key}: a stream on {count} of {family}, priority {priority}")
            w("resource", device, "sm", "d")
            w("split", "d", family, count, "p")
            w("context", "p.0", "-", "c")
            w("stream", "c", priority, "s")
            w("probe", "s")
            w("get", "s", "sm", "r")
            w("same", "r", "p.0")
            w("close", "c")
            w("query", "s")
            w("synchronize", "s")
    w.vector(f"{key}: the whole device")
    w("resource", device, "sm", "d")
    w("context", "d", "-", "c")
    w("stream", "c", -1, "s")
    w("probe", "s")


def clusters(w: Writer, key: str, device: int) -> None:
    found = gpu(key)
    size = found.min_group
    last = found.sm_count - len(found.atoms("coscheduled")) // 2 * size
    for text in (f"{size}", f"{3 * size}", f"{last}", f"{len(found.atoms('coscheduled')[-1])}"):
        w.vector(f"{key}: clusters on {text} SMs and on the rest")
        w("resource", device, "sm", "d")
        w("split", "d", "-", text, "p")
        w("cluster", "p.0")
        w("cluster", "p.0")
        if w("context", "p.rest", "-", "c").result == "GCX_SUCCESS":
            w("cluster", "p.rest")
    w.vector(f"{key}: clusters of the fine family")
    w("resource", device, "sm", "d")
    w("split", "d", "fine", "14", "p")
    w("cluster", "p.0")
    if key in ("h100", "h200"):
        w.vector(f"{key}: clusters of the max-cluster family")
        w("resource", device, "sm", "d")
        w("split", "d", "max-cluster", "24", "p")
        w("cluster", "p.0")
    w.vector(f"{key}: the remainder atom with atoms that don't precede it")
    w("resource", device, "sm", "d")
    w("atom", "d", len(found.atoms("coscheduled")) - 1, "remainder")
    w("atom", "d", 0, "first")
    w("union", "remainder", "first", "u")
    w("context", "u", "-", "c")
    w("context", "remainder,first", "-", "c2")
    w("cluster", "u")


def overlapping(w: Writer, key: str, device: int) -> None:
    source = random.Random(f"overlaps {key} {w.driver}")
    w.vector(f"{key}: resources of one context overlap")
    w("resource", device, "sm", "d")
    w("split", "d", "-", source.randint(1, gpu(key).sm_count - 1), "p")
    w("context", "d,p.0", "-", "c")
    w("context", "p.0,p.0", "-", "c")
    w("context", "p.0,p.rest", "-", "c")
    w.vector(f"{key}: overlap of two families")
    w("resource", device, "sm", "d")
    w("split", "d", "-", "8,4", "p")
    w("split", "d", "fine", "6,2", "f")
    w("context", "p.0", "-", "c")
    w("context", "f.0", "-", "e")
    w("overlap", "p.0", "f.0")
    w("close", "c")


def live(w: Writer) -> None:
    w.vector("live contexts")
    w("limit", 0)
    w("limit", 64)
    w("live", -1)
    w("resource", 0, "sm", "d")
    w("resource", 1, "sm", "other")
    w("split", "d", "-", "108,24", "p")
    w("context", "p.1", "-", "a")
    w("context", "p.0", "-", "b")
    w("context", "p.1", "-", "c")
    w("context", "other", "-", "o")
    w("same", "a", "c")
    w("same", "a", "b")
    w("stream", "a", 0, "s")
    w("stream", "c", 0, "t")
    w("live", -1)
    w("live", 0)
    w("close", "a")
    w("live", 0)
    w("close", "c")
    w("live", 0)
    w("live", 1)
    w("close", "s")
    w("close", "t")
    w("live", 0)
    w.vector("a context of several resources")
    w("limit", 0)
    w("limit", 64)
    w("resource", 0, "sm", "d")
    w("split", "d", "-", "24,8,16", "p")
    w("union", "p.0", "p.1", "u")
    w("context", "p.0,p.1", "-", "a")
    w("context", "u", "-", "b")
    w("same", "a", "b")
    w("get", "a", "sm", "r")
    w("same", "r", "u")
    w("context", "p.2,p.0", "-", "c")
    w("live", 0)
    w("context", "p.2,p.0", "-", "k")
    w("same", "c", "k")
    w("live", 0)
    w("close", "c")
    w("live", 0)
    w("stream", "k", -2, "s")
    w("adopt", "s", "f")
    w("probe", "f")


def cached(w: Writer) -> None:
    w.vector("cached contexts")
    w("limit", 0)
    w("resource", 0, "sm", "d")
    w("split", "d", "-", "8,16,24,32", "p")
    w("cache")
    w("limit", 2)
    for index in range(4):
        w("context", f"p.{index}", "-", f"c{index}")
    w("cache")
    w("close", "c0")
    w("close", "c1")
    w("cache")
    w("close", "c2")
    w("cache")
    w("context", "p.1", "-", "again")
    w("cache")
    w("context", "p.0", "-", "new")
    w("cache")
    w("context", "p.3", "-", "shared")
    w("cache")
    w("limit", 0)
    w("cache")
    w("close", "new")
    w("cache")
    w("limit", 64)
    w.vector("contexts without a cache")
    w("limit", 0)
    w("resource", 0, "sm", "d")
    for name in ("a", "b"):
        w("context", "d", "-", name)
        w("stream", name, 0, name + "s")
        w("close", name)
        w("cache")
        w("close", name + "s")
        w("cache")
    w("limit", 64)


def private(w: Writer) -> None:
    w.vector("private contexts")
    w("limit", 0)
    w("limit", 64)
    w("resource", 0, "sm", "d")
    w("context", "d", "-", "a")
    w("context", "d", "private", "b")
    w("context", "d", "private", "c")
    w("context", "d", "-", "e")
    for name in ("b", "c", "e"):
        w("same", "a", name)
    w("live", 0)
    w("cache")
    w("close", "b")
    w("cache")
    w("context", "d", "-", "f")
    w("same", "a", "f")
    w("context", "d", "private", "g")
    w("cache")
    w("live", 0)


def current(w: Writer) -> None:
    w.vector("a current context can't be closed")
    w("resource", 0, "sm", "d")
    w("split", "d", "-", "24,32", "p")
    w("context", "p.0", "-", "a")
    w("context", "p.1", "-", "b")
    w("current")
    w("push", "a")
    w("current")
    w("push", "b")
    w("current")
    w("close", "b")
    w("close", "a")
    w("pop")
    w("current")
    w("close", "b")
    w("close", "a")
    w("pop")
    w("close", "a")
    w("current")
    w.vector("nothing is current")
    w("pop")
    w.vector("another handle of a current context can be closed")
    w("resource", 0, "sm", "d")
    w("context", "d", "-", "a")
    w("context", "d", "-", "b")
    w("push", "a")
    w("close", "b")
    w("close", "a")
    w("stream", "a", 0, "s")
    w("pop")
    w("close", "a")
    w("query", "s")


def events(w: Writer) -> None:
    w.vector("events")
    w("resource", 0, "sm", "d")
    w("resource", 1, "sm", "other")
    w("context", "d", "-", "c")
    w("context", "other", "-", "o")
    w("stream", "c", 0, "s")
    w("stream", "o", 0, "t")
    w("event", 0, "-", "e")
    w("event", 0, "blocking", "b")
    w("query", "e")
    w("synchronize", "e")
    w("wait", "s", "e")
    w("record", "s", "e")
    w("record", "c", "b")
    w("wait", "t", "e")
    w("wait", "o", "b")
    w("record", "t", "e")
    w("record", "o", "e")
    w("query", "e")
    w("synchronize", "b")
    w("synchronize", "c")
    w.vector("times of events")
    w("resource", 0, "sm", "d")
    w("context", "d", "-", "c")
    w("stream", "c", 0, "s")
    w("event", 0, "timing", "a")
    w("event", 0, "timing+blocking", "b")
    w("event", 0, "blocking", "untimed")
    w("elapsed", "a", "b")
    w("record", "s", "a")
    w("elapsed", "a", "b")
    w("record", "s", "b")
    w("elapsed", "a", "b")
    w("record", "s", "untimed")
    w("elapsed", "a", "untimed")
    w("elapsed", "untimed", "b")


def closed(w: Writer) -> None:
    w.vector("used after closing")
    _one_of_each(w)
    w("event", 0, "timing", "x")
    for name in ("s", "c", "e"):
        w("close", name)
    w("stream", "c", 0, "y")
    w("get", "c", "sm", "y")
    w("get", "s", "sm", "y")
    w("probe", "s")
    w("record", "s", "x")
    w("wait", "c", "x")
    w("record", "c", "e")
    w("synchronize", "c")
    w("synchronize", "s")
    w("query", "s")
    w("query", "e")
    w("elapsed", "e", "x")
    w.vector("a closed context can't be made current")
    _one_of_each(w)
    w("close", "c")
    w("push", "c")
    w.vector("closed twice")
    _one_of_each(w)
    for name in ("c", "s", "e", "c", "s", "e"):
        w("close", name)
    w.vector("closed in any order")
    _one_of_each(w)
    w("stream", "c", -1, "s2")
    w("close", "c")
    w("close", "s")
    w("probe", "s2")
    w("close", "e")
    w("live", 0)


def _one_of_each(w: Writer) -> None:
    w("resource", 0, "sm", "d")
    w("context", "d", "-", "c")
    w("stream", "c", 0, "s")
    w("event", 0, "-", "e")


def _new_cache_vector(w: Writer, name: str, device: int, *counts: int) -> list[str]:
    """Begins a vector with an empty cache and a resource of each count."""
    w.vector(name)
    w("limit", 64)
    w("trim", 0)
    w("resource", device, "sm", "d")
    for count in counts:
        w("split", "d", "-", count, f"p{count}")
    return [f"p{count}.0" for count in counts]


def cache_at_random(w: Writer, key: str, device: int) -> None:
    """Existing contexts are not created again and count as used."""
    source = random.Random(f"ahead {key} {device} {w.driver}")
    size = gpu(key).min_group
    counts = [size * times for times in (1, 2, 3, 4)]
    names = _new_cache_vector(w, f"{key} {device}: prepared contexts", device, *counts)
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


def cache_limits(w: Writer) -> None:
    names = _new_cache_vector(
        w, "the limit is checked before a context is created", 0, 8, 16, 24, 32
    )
    w("limit", 3)
    w("ahead", names)
    w("cache")
    # Duplicates count once, and contexts in use need room too, since they return to the cache.
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


def cache_refused(w: Writer) -> None:
    (part,) = _new_cache_vector(w, "resources that have no context", 0, 24)
    w("subtract", part, part, "none")
    w("ahead", [])
    w("ahead", [part, "none"])
    w("ahead", ["none"])
    w("cache")
    w.vector("the zero resource can't be prepared")
    w("ahead", ["zero"])

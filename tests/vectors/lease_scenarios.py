"""The vectors of one machine about leases, without steps that gcx.h leaves undecided."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from tests.vectors.gpus import gpu
from tests.vectors.placement import Undecided
from tests.vectors.resources import OK, Answer

if TYPE_CHECKING:
    from tests.vectors.make import Writer


def write(w: Writer) -> None:
    """Writes all of them."""
    first = {key: device for device, key in reversed(list(enumerate(w.gpus)))}
    for key, device in first.items():
        one_after_another(w, key, device)
        at_random(w, key, device)
    decode_and_prefill(w)
    sharing(w)
    families(w)
    streams(w)
    misuse(w)
    closed(w)


def _ask(w: Writer, *step: object) -> Answer | None:
    """Adds a step unless gcx.h leaves its answer undecided."""
    try:
        return w(str(step[0]), *step[1:])
    except Undecided:
        return None


def _new(w: Writer, name: str, device: int, *families: str) -> None:
    w.vector(name)
    for family in families or ("coscheduled",):
        w("map", device, family)


class Names:
    """Adds steps that show the SMs of leases, with new names for their resources."""

    def __init__(self, w: Writer) -> None:
        self.w = w
        self.count = 0

    def see(self, *leases: str) -> None:
        for lease in leases:
            self.count += 1
            self.w("held", lease, f"r{self.count}")
            self.w("sms", f"r{self.count}")


def one_after_another(w: Writer, key: str, device: int) -> None:
    size = gpu(key).min_group
    _new(w, f"{key}: each gets the first free atoms", device)
    names = Names(w)
    large = 2 * size if gpu(key).sm_count > 8 * size else size
    for number, count in enumerate((1, size, large)):
        w("lease", device, count, "-", "none", 0, 0, f"l{number}")
        w("alone", f"l{number}")
        names.see(f"l{number}")
    w("close", "l1")
    w("lease", device, size, "-", "coscheduled", 0, 0, "again")
    names.see("again")
    _ask(w, "resize", f"l2/{4 * size}", "-")
    names.see("l2")
    _ask(w, "resize", f"l2/{2 * size}", "-")
    names.see("l2")
    w("leases", device)
    w("leases", -1)
    w("lease", device, gpu(key).sm_count, "-", "none", 0, 0, "most")
    w("lease", device, gpu(key).sm_count + 1, "-", "none", 0, 0, "most")
    _new(w, f"{key}: all SMs", device)
    w("resource", device, "sm", "d")
    w("lease", device, "rest", "-", "none", 0, 0, "all")
    w("held", "all", "r")
    w("same", "r", "d")
    w("lease", device, "rest", "-", "none", 0, 0, "none")
    w("lease", device, size, "-", "none", 1, 0, "none")
    _ask(w, "split", "d", "exclude_leased", size, "p")
    _ask(w, "split", "d", "-", size, "q")


def at_random(w: Writer, key: str, device: int) -> None:
    source = random.Random(f"leases {key} {w.driver}")
    sm_count = gpu(key).sm_count
    for number in range(8):
        family = "fine" if number % 4 == 3 else "coscheduled"
        _new(w, f"{key}: leases of {family} at random, {number}", device, family)
        w("resource", device, "sm", "d")
        names, made = Names(w), 0
        alive: list[str] = []
        for _ in range(16):
            what = source.choice(("lease", "lease", "resize", "resize", "two", "park", "close"))
            changed: list[str] = []
            if what == "lease" or len(alive) < 2:
                count = source.choice(("rest", *[source.randint(1, sm_count // 3)] * 9))
                out = f"l{made}"
                answer = _ask(w, "lease", device, count, "-", family, 0, 0, out)
                if answer and answer.result == OK:
                    made += 1
                    alive.append(out)
                    changed = [out]
            elif what in ("resize", "two"):
                changed = source.sample(alive, 1 if what == "resize" else 2)
                counts = [str(source.randint(1, sm_count // 2)) for _ in changed]
                if what == "two" and source.random() < 0.5:
                    counts[-1] = "rest"
                sizes = ",".join(f"{name}/{n}" for name, n in zip(changed, counts))
                if source.random() < 0.3:
                    _ask(w, "prepare", sizes)
                if not _ask(w, "resize", sizes, source.choice(("-", "-", "at-once"))):
                    changed = []
            elif what == "park":
                changed = source.sample(alive, 2)
                count = source.choice(("rest", source.randint(1, sm_count // 2)))
                if not _ask(w, "resize", f"{changed[0]}/parked,{changed[1]}/{count}", "-"):
                    changed = []
            else:
                w("close", alive.pop(source.randrange(len(alive))))
            names.see(*changed)
        w("leases", device)
        if family == "coscheduled":
            _ask(w, "split", "d", "exclude_leased", source.randint(1, sm_count), "p")


def decode_and_prefill(w: Writer) -> None:
    for decode, prefill in (("a", "b"), ("b", "a")):
        _new(w, f"{decode} grows by the SMs that {prefill} loses", 0)
        names = Names(w)
        for name in ("a", "b"):
            w("lease", 0, 32 if name == decode else 64, "-", "none", 0, 0, name)
        w("stream", decode, 0, "s")
        w("probe", "s")
        for count in (64, 32, 72):
            sizes = f"{decode}/{count},{prefill}/{96 - count}"
            _ask(w, "prepare", sizes)
            _ask(w, "resize", sizes, "-")
            names.see("a", "b")
            w("probe", "s")
    _new(w, "more than available: all or nothing", 0)
    names = Names(w)
    w("lease", 0, 32, "-", "none", 0, 0, "a")
    w("lease", 0, 32, "-", "none", 0, 0, "b")
    w("lease", 0, 48, "-", "none", 0, 0, "c")
    _ask(w, "resize", "a/56,b/40", "-")
    _ask(w, "prepare", "a/56,b/40")
    _ask(w, "resize", "a/140", "-")
    names.see("a", "b", "c")


def sharing(w: Writer) -> None:
    _new(w, "shared leases use the SMs that others share", 0)
    names = Names(w)
    w("lease", 0, 24, "-", "none", 0, 0, "single")
    w("lease", 0, 16, "shared", "none", 0, 0, "a")
    w("lease", 0, 32, "shared", "none", 0, 0, "b")
    names.see("a", "b")
    w("alone", "single")
    w("lease", 0, 32, "shared", "none", 0, 16, "c")
    names.see("c")
    w("lease", 0, 16, "-", "none", 0, 0, "other")
    names.see("other")
    w("leases", 0)
    _ask(w, "resize", "c/8", "-")
    _ask(w, "resize", "c/16", "-")
    names.see("c")
    w("alone", "c")
    w("close", "a")
    w("close", "b")
    w("lease", 0, 8, "shared", "none", 0, 0, "e")
    names.see("e")


def families(w: Writer) -> None:
    for one, two in (("coscheduled", "fine"), ("fine", "coscheduled")):
        _new(w, f"leases of {two} next to {one}", 0, "coscheduled", "fine")
        names = Names(w)
        w("lease", 0, 24, "-", one, 0, 0, "a")
        w("lease", 0, 16, "-", two, 0, 0, "b")
        names.see("a", "b")
        _ask(w, "resize", "a/8,b/8", "-")
        _ask(w, "resize", "a/parked,b/24", "-")
        _ask(w, "resize", "a/32", "-")
        names.see("a")
        w("close", "a")
        _ask(w, "resize", "b/24", "-")
        names.see("b")


def streams(w: Writer) -> None:
    _new(w, "streams follow, and end with their lease", 0)
    w("lease", 0, 24, "-", "none", 0, 0, "l")
    w("stream", "l", -2, "s")
    w("stream", "l", -9, "t")
    w("event", 0, "-", "e")
    for count in (40, 16):
        _ask(w, "resize", f"l/{count}", "-")
        w("probe", "s")
        w("get", "s", "sm", f"r{count}")
        w("held", "l", f"h{count}")
        w("same", f"r{count}", f"h{count}")
        w("record", "t", "e")
        w("wait", "s", "e")
        w("query", "l")
        w("synchronize", "l")
    w("leases", 0)
    w("close", "t")
    w("leases", 0)
    w("close", "l")
    w("probe", "s")
    w("get", "s", "sm", "r")
    w("query", "s")
    w("synchronize", "s")
    w("record", "s", "e")
    w("wait", "s", "e")
    w("close", "s")
    _new(w, "streams of a parked lease", 0)
    w("lease", 0, 24, "-", "none", 0, 0, "a")
    w("lease", 0, 16, "-", "none", 0, 0, "b")
    w("stream", "a", 0, "s")
    _ask(w, "resize", "a/parked,b/40", "at-once")
    w("leases", -1)
    w.given("query", OK, "s")
    w.given("synchronize", OK, "s")
    w("probe", "s")
    w("stream", "a", 0, "t")
    _ask(w, "resize", "b/parked,a/40", "-")
    w("probe", "s")
    _ask(w, "resize", "a/24,b/16", "-")
    w("probe", "s")
    w("leases", -1)


def misuse(w: Writer) -> None:
    w.vector("leases with invalid parameters")
    w("lease", 99, 8, "-", "none", 0, 0, "x")
    w("lease", 0, 8, "-", "structured", 0, 0, "x")
    w("lease", 0, 8, "-", "none", 9, 0, "x")
    w("lease", 0, 8, "shared", "none", 0, 9, "x")
    w("lease", 0, 133, "-", "none", 0, 0, "x")
    w("lease", 0, 0, "-", "none", 0, 0, "x")
    w("lease", 0, 0, "shared", "none", 0, 0, "x")
    w("leases", 99)
    w("lease", 0, 24, "-", "none", 0, 0, "a")
    w("lease", 1, 24, "-", "none", 0, 0, "b")
    _ask(w, "resize", "-", "-")
    _ask(w, "prepare", "-")
    _ask(w, "resize", "a/0", "-")
    _ask(w, "prepare", "a/0")
    _ask(w, "resize", "a/8,a/16", "-")
    _ask(w, "resize", "a/8,b/8", "-")
    w("leases", -1)
    w.vector("unknown flags of leases")
    w("lease", 0, 8, 128, "none", 0, 0, "x")
    w("lease", 0, 8, "-", 77, 0, 0, "x")
    w("lease", 0, 24, "-", "none", 0, 0, "a")
    w("lease", 0, 24, "-", "none", 0, 0, "b")
    _ask(w, "resize", "a/8", 128)
    _ask(w, "resize", "a/parked", 128)
    w("leases", 0)


def closed(w: Writer) -> None:
    w.vector("a lease is used after its release")
    for name in ("a", "b", "c"):
        w("lease", 0, 16, "-", "none", 0, 0, name)
    w("close", "a")
    _ask(w, "resize", "a/8", "-")
    _ask(w, "prepare", "b/8,a/8")
    w("stream", "a", 0, "s")
    w("held", "a", "r")
    w("alone", "a")
    w("query", "a")
    w("synchronize", "a")
    _ask(w, "resize", "a/parked,b/8", "-")
    _ask(w, "resize", "b/parked,c/32", "-")
    w("held", "b", "r")
    w("leases", 0)
    w.vector("a lease is released twice")
    w("lease", 0, 16, "-", "none", 0, 0, "a")
    w("close", "a")
    w("close", "a")

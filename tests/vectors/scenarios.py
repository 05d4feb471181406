"""The vectors of every GPU, many of them random, without steps that gcx.h leaves undecided."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from tests.vectors.gpus import Gpu, gpu, sizes_of
from tests.vectors.placement import Undecided
from tests.vectors.resources import OK, Answer

if TYPE_CHECKING:
    from tests.vectors.make import Writer


def write(w: Writer) -> None:
    """Writes all vectors of a machine."""
    w.vector("the driver is opened")
    w.given("open", OK, f"sim:{','.join(w.gpus)}@{w.driver}")
    w.vector("no SMs and no event of device -1")
    w("map", -1, "fine")
    w("event", -1, "-", "e")
    for device, key in enumerate(w.gpus):
        whole_device(w, key, device)
    first = {key: device for device, key in reversed(list(enumerate(w.gpus)))}
    for key, device in first.items():
        splits(w, gpu(key), device)
        sub_splits(w, gpu(key), device)
        sets(w, gpu(key), device)
        streams(w, key, device)
        clusters(w, key, device)
    structured(w)
    for device, key in enumerate(w.gpus):
        cache_at_random(w, key, device)
    # Last, since the model does not know the cached contexts that leases leave.
    for key, device in first.items():
        leases_at_random(w, key, device)


def _on(w: Writer, name: str, device: int, *families: str) -> None:
    """Begins a vector with the whole device as d, after these families were mapped."""
    w.vector(name)
    for family in families:
        w("map", device, family)
    w("resource", device, "sm", "d")


def whole_device(w: Writer, key: str, device: int) -> None:
    found = gpu(key)
    _on(w, f"{key} {device}: its SMs", device, "coscheduled", "fine")
    w("priorities", device)
    w("info", "d")
    w("sms", "d")
    w("split", "d", "fine", "rest", "f")
    for name in ("f.0", "f.rest"):
        w("info", name)
        w("sms", name)
    w("overlap", "d", "f.0")
    number, size, _remainder = sizes_of(found, "coscheduled")
    _on(w, f"{key} {device}: its atoms", device)
    w("split", "d", "-", [size] * number, "a")
    for group in (*range(number), "rest"):
        w("sms", f"a.{group}")
    w("info", "a.0")
    w("info", "a.rest")
    if key in ("h100", "h200"):
        _on(w, f"{key} {device}: the max-cluster family", device, "max-cluster")
        w("split", "d", "max-cluster", "24,rest", "m")
        w("info", "m.0")
        w("info", "m.1")
        w("sms", "m.0")
        w("split", "d", "-", "24", "p")
        w("overlap", "m.0", "p.0")
        w("split", "d", "max-cluster", "25,12,48", "q")
        w("split", "d", "max-cluster", "121", "r")
    elif not found.has_clusters:
        _on(w, f"{key} {device}: the max-cluster family", device)
        w("split", "d", "max-cluster", "24", "m")


#: Limits of a device, and requests in the documentation and the logs
FIXED = (
    *("1", "{all}", "{all1}", "rest", "rest,rest", "rest,rest,rest", "rest,{size}"),
    *("{size},rest,{size},rest", "{below},rest,rest"),
)


def splits(w: Writer, device: Gpu, number: int) -> None:
    count, size, remainder = sizes_of(device, "coscheduled")
    words = {"all": device.sm_count, "all1": device.sm_count + 1, "size": size}
    words["below"] = device.sm_count - 2 * size + 1
    lists = [text.format(**words) for text in FIXED]
    lists += [f"{count * size},{remainder or 1}", f"{remainder + 1},{remainder + 1}"]
    lists += [f"{size}," * count + last for last in (f"{size}", "rest", "rest,rest")]
    lists += [f"{remainder + size},rest", f"{size + 1}"]
    if device.sm_count == 132:
        lists += ["108,24", "24,108", "17,10", "10", "16,57,48,rest", "113,rest,rest", "120,5"]
    source = random.Random(f"{device.key} {w.driver}")
    lists += [_any_list(source, device.sm_count) for _ in range(10)]
    for text in dict.fromkeys(lists):
        short = text if len(text) < 30 else f"{text[:24]}... ({text.count(',') + 1})"
        _on(w, f"{device.key}: {short}", number)
        if w("split", "d", "-", text, "p").result == OK:
            for group in (*range(min(text.count(",") + 1, 4)), "rest"):
                w("sms", f"p.{group}")
            w("info", "p.0")
        w("split", "d", "exact", text, "x")
        w("split", "d", "fine", text, "f")


def _any_list(source: random.Random, sm_count: int) -> str:
    """Returns random counts that just fit or just don't."""
    groups = source.randint(1, 6)
    left = sm_count
    counts: list[int | str] = []
    for _ in range(groups):
        count = source.randint(1, max(1, min(left, 2 * sm_count // groups)))
        counts.append(count)
        left = max(left - count, 1)
    for _ in range(source.choice((0, 0, 1, 2))):
        counts.insert(source.randint(0, len(counts)), "rest")
    return ",".join(map(str, counts))


def sub_splits(w: Writer, device: Gpu, number: int) -> None:
    source = random.Random(f"again {device.key} {w.driver}")
    half = device.sm_count // 2
    for step in range(6):
        family = ("-", "fine")[step % 2]
        first = source.randint(1, device.sm_count - device.min_group - 1)
        _on(w, f"{device.key}: {first} of {family}, and both parts again", number)
        answer = w("split", "d", family, first, "a")
        if answer.result != OK:
            continue
        for part in ("a.0", "a.rest"):
            _split_and_look_again(w, part, _any_list(source, source.randint(2, half + 2)))
        w("split", "a.0", "fine" if family == "-" else "max-cluster", "2", "z")


def _split_and_look_again(w: Writer, name: str, counts: str) -> None:
    out = "of" + name.replace(".", "")
    if w("split", name, "-", counts, out).result == OK:
        w("sms", f"{out}.0")
        w("sms", f"{out}.rest")
        w("info", f"{out}.rest")
        w("overlap", name, f"{out}.0")
        w("overlap", f"{out}.0", f"{out}.rest")


def sets(w: Writer, device: Gpu, number: int) -> None:
    source = random.Random(f"sets {device.key} {w.driver}")
    for family in ("-", "fine"):
        _on(w, f"{device.key}: sets of {family}", number)
        a, b = source.randint(1, device.sm_count), source.randint(1, device.sm_count)
        w("split", "d", family, a, "a")
        w("split", "d", family, b, "b")
        w("union", "a.0", "b.rest", "u")
        w("sms", "u")
        w("info", "u")
        w("subtract", "a.0", "b.0", "s")
        w("subtract", "a.0", "s", "i")
        w("sms", "i")
        w("subtract", "b.0", "a.0", "t")
        w("overlap", "a.0", "b.rest")
        w("union", "i", "s", "again")
        w("same", "again", "a.0")
        w("subtract", "a.0", "a.0", "none")
        w("info", "none")
        w("union", "none", "b.0", "b")
        w("same", "b", "b.0")
        w("split", "none", "-", "1", "x")
        w("context", "none", "-", "c")
        w("cluster", "none")
    _on(w, f"{device.key}: atoms one by one", number)
    w("split", "d", "-", 2 * sizes_of(device, "coscheduled")[1], "p")
    w("atom", "d", 0, "first")
    w("sms", "first")
    w("atom", "d", len(device.atoms("coscheduled")) - 1, "last")
    w("sms", "last")
    w("info", "last")
    w("atom", "p.0", 1, "second")
    w("overlap", "second", "d")
    w("overlap", "second", "first")
    _on(w, f"{device.key}: an unknown atom", number)
    w("atom", "d", len(device.atoms("coscheduled")), "a")


def streams(w: Writer, key: str, device: int) -> None:
    source = random.Random(f"streams {key} {w.driver}")
    sm_count = gpu(key).sm_count
    for family in ("-", "fine"):
        for priority in (0, -3, source.choice((5, -9, 2147483647, -2147483648))):
            count = source.randint(1, sm_count)
            _on(w, f"{key}: a stream on {count} of {family}, priority {priority}", device)
            w("split", "d", family, count, "p")
            w("context", "p.0", "-", "c")
            w("stream", "c", priority, "s")
            w("probe", "s")
            w("get", "s", "sm", "r")
            w("same", "r", "p.0")
            w("close", "c")
            w("query", "s")
            w("synchronize", "s")
    _on(w, f"{key}: the whole device", device)
    w("context", "d", "-", "c")
    w("stream", "c", -1, "s")
    w("probe", "s")


def clusters(w: Writer, key: str, device: int) -> None:
    found = gpu(key)
    size = found.min_group
    last = found.sm_count - len(found.atoms("coscheduled")) // 2 * size
    for text in (f"{size}", f"{3 * size}", f"{last}", f"{len(found.atoms('coscheduled')[-1])}"):
        _on(w, f"{key}: clusters on {text} SMs and on the rest", device)
        w("split", "d", "-", text, "p")
        w("cluster", "p.0")
        w("cluster", "p.0")
        if w("context", "p.rest", "-", "c").result == OK:
            w("cluster", "p.rest")
    _on(w, f"{key}: clusters of the fine family", device)
    w("split", "d", "fine", "14", "p")
    w("cluster", "p.0")
    if key in ("h100", "h200"):
        _on(w, f"{key}: clusters of the max-cluster family", device)
        w("split", "d", "max-cluster", "24", "p")
        w("cluster", "p.0")
    _on(w, f"{key}: the remainder atom with atoms that don't precede it", device)
    w("atom", "d", len(found.atoms("coscheduled")) - 1, "remainder")
    w("atom", "d", 0, "first")
    w("union", "remainder", "first", "u")
    w("context", "u", "-", "c")
    w("context", "remainder,first", "-", "c2")
    w("cluster", "u")


#: Requests for the rules of cuda.h, on devices with and without clusters
STRUCTURED = (
    *("16/8", "rest/8", "rest/16", "rest/4", "rest/2", "24/8,rest/2/0/1"),
    *("8/8,16/8,24/8", "48/16,rest/16", "0/8"),
    *("32/8/16", "10/2", "12/8", "12/8/0/1", "11/2", "16/64", "9/3", "rest/32"),
    *("134/2", "144/8"),
)
IN_DOMAINS = (
    *("8/8/0/2/0", "16/8/0/2/1", "rest/8/0/2/0", "rest/2/0/2/1", "16/8/0/2/4294967295"),
    *("80/8/0/2/0", "16/8/0/6/0", "72/2/0/2/0,72/2/0/2/1"),
)


def structured(w: Writer) -> None:
    rows = [(key, text) for key in ("h100", "a100", "b200") for text in STRUCTURED]
    for key, text in (*rows, *(("b200", text) for text in IN_DOMAINS)):
        _on(w, f"{key}: structured, {text}", w.gpus.index(key))
        # With the missing fields.
        requests = [item + "/0" * (4 - item.count("/")) for item in text.split(",")]
        w("split", "d", "-", requests, "p")


def cache_at_random(w: Writer, key: str, device: int) -> None:
    """Existing contexts are not created again and count as used."""
    source = random.Random(f"ahead {key} {device} {w.driver}")
    size = gpu(key).min_group
    counts = [size * times for times in (1, 2, 3, 4)]
    _on(w, f"{key} {device}: prepared contexts", device)
    w("limit", 64)
    w("trim", 0)
    for count in counts:
        w("split", "d", "-", count, f"p{count}")
    names = [f"p{count}.0" for count in counts]
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


def _ask(w: Writer, *step: object) -> Answer | None:
    """Adds a step unless gcx.h leaves its answer undecided."""
    try:
        return w(str(step[0]), *step[1:])
    except Undecided:
        return None


def _see(w: Writer, *leases: str) -> None:
    """Adds steps that show the SMs of leases, with new names for their resources."""
    for lease in leases:
        name = f"r{len(w.lines)}"
        w("held", lease, name)
        w("sms", name)


def leases_at_random(w: Writer, key: str, device: int) -> None:
    source = random.Random(f"leases {key} {w.driver}")
    sm_count = gpu(key).sm_count
    for number in range(8):
        family = "fine" if number % 4 == 3 else "coscheduled"
        _on(w, f"{key}: leases of {family} at random, {number}", device, family)
        made = 0
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
                if not _ask(w, "resize", sizes, source.choice(("-", "-", "deferred"))):
                    changed = []
            elif what == "park":
                changed = source.sample(alive, 2)
                count = source.choice(("rest", source.randint(1, sm_count // 2)))
                if not _ask(w, "resize", f"{changed[0]}/parked,{changed[1]}/{count}", "-"):
                    changed = []
            else:
                w("close", alive.pop(source.randrange(len(alive))))
            _see(w, *changed)
        w("leases", device)
        if family == "coscheduled":
            _ask(w, "split", "d", "exclude_leased", source.randint(1, sm_count), "p")

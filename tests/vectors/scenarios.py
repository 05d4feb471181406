"""The full set of vectors of one machine. The model answers their steps."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from tests.vectors import lease_scenarios, object_scenarios
from tests.vectors.gpus import Gpu, gpu, sizes_of

if TYPE_CHECKING:
    from tests.vectors.make import Writer


def write(w: Writer) -> None:
    """Writes all vectors of a machine."""
    opening(w)
    devices(w)
    before_the_map(w)
    whole_devices(w)
    first = {key: device for device, key in reversed(list(enumerate(w.gpus)))}
    for key, device in first.items():
        splits(w, gpu(key), device)
        sub_splits(w, gpu(key), device)
        sets(w, gpu(key), device)
    misuse(w)
    workqueues(w)
    structured(w)
    object_scenarios.write(w)
    # Last, since the model does not know the cached contexts that leases leave.
    lease_scenarios.write(w)


def opening(w: Writer) -> None:
    w.vector("the driver is opened once")
    w.given("open", "GCX_ERROR_NO_DEVICE", "sim:none@13.0")
    w.given("open", "GCX_ERROR_NOT_SUPPORTED", "sim:h100@12.2", "12.4")
    w.given("open", "GCX_ERROR_SHARED_OBJECT_INIT_FAILED", "libno-such-driver.so.1")
    machine = f"sim:{','.join(w.gpus)}@{w.driver}"
    w.given("open", "GCX_SUCCESS", machine)
    w.given("open", "GCX_SUCCESS", machine)
    w.given("open", "GCX_ERROR_DRIVER_ALREADY_OPEN", "sim:a100@13.0")
    w("driver")
    w("devices")
    w.vector("capabilities")
    for number in range(8):
        w("capability", number)


def devices(w: Writer) -> None:
    for device, key in enumerate(w.gpus):
        w.vector(f"device {device}, {key}")
        w("device", device)
        w("priorities", device)
    for device in (-1, len(w.gpus)):
        w.vector(f"device {device}: unknown")
        w("device", device)
        w("priorities", device)
        w("resource", device, "sm", "d")
        w("map", device, "fine")
        w("event", device, "-", "e")
    w.vector("contexts of an unknown device")
    w("live", len(w.gpus))


def before_the_map(w: Writer) -> None:
    w.vector("SMs before the map")
    w("resource", 0, "sm", "d")
    w("sms", "d")
    w("split", "d", "fine", "10", "f")
    w("sms", "f.0")
    w("map", 0, "coscheduled")
    w("sms", "f.0")
    w.vector("overlaps across families before the map")
    w("resource", 1, "sm", "d")
    w("split", "d", "fine", "10", "f")
    w("split", "d", "-", "24", "p")
    w("overlap", "p.0", "f.0")
    w("context", "f.0", "-", "c")


def whole_devices(w: Writer) -> None:
    for device, key in enumerate(w.gpus):
        found = gpu(key)
        w.vector(f"{key} {device}: its SMs")
        w("map", device, "coscheduled")
        w("map", device, "fine")
        w("resource", device, "sm", "d")
        w("info", "d")
        w("sms", "d")
        w("split", "d", "fine", "rest", "f")
        w("info", "f.0")
        w("info", "f.rest")
        w("sms", "f.0")
        w("sms", "f.rest")
        w("overlap", "d", "f.0")
        w.vector(f"{key} {device}: its atoms")
        number, size, _remainder = sizes_of(found, "coscheduled")
        w("resource", device, "sm", "d")
        w("split", "d", "-", [size] * number, "a")
        for group in range(number):
            w("sms", f"a.{group}")
        w("sms", "a.rest")
        w("info", "a.0")
        w("info", "a.rest")
        w.vector(f"{key} {device}: the max-cluster family")
        w("resource", device, "sm", "d")
        if key in ("h100", "h200"):
            w("map", device, "max-cluster")
            w("split", "d", "max-cluster", "24,rest", "m")
            w("info", "m.0")
            w("info", "m.1")
            w("sms", "m.0")
            w("split", "d", "-", "24", "p")
            w("overlap", "m.0", "p.0")
            w("split", "d", "max-cluster", "25,12,48", "q")
            w("split", "d", "max-cluster", "121", "r")
        elif not found.has_clusters:
            w("split", "d", "max-cluster", "24", "m")


#: Limits of a device, and requests in the documentation and the logs
FIXED = (
    "1",
    "{all}",
    "{all1}",
    "rest",
    "rest,rest",
    "rest,rest,rest",
    "rest,{size}",
    "{size},rest,{size},rest",
    "{below},rest,rest",
)


def splits(w: Writer, device: Gpu, number: int) -> None:
    count, size, remainder = sizes_of(device, "coscheduled")
    words = {"all": device.sm_count, "all1": device.sm_count + 1, "size": size}
    words["below"] = device.sm_count - 2 * size + 1
    lists = [text.format(**words) for text in FIXED]
    lists += [
        f"{count * size},{remainder or 1}",
        f"{remainder + 1},{remainder + 1}",
        f"{size}," * count + f"{size}",
    ]
    lists += [
        f"{size}," * count + "rest",
        f"{size}," * count + "rest,rest",
        f"{remainder + size},rest",
        f"{size + 1}",
    ]
    if device.sm_count == 132:
        lists += [
            "108,24",
            "24,108",
            "17,10",
            "10",
            "16,57,48,rest",
            "113,rest,rest",
            "120,5",
            "133",
            "140",
        ]
    random_lists = random.Random(f"{device.key} {w.driver}")
    for _ in range(10):
        lists.append(_any_list(random_lists, device.sm_count))
    for text in dict.fromkeys(lists):
        short = text if len(text) < 30 else f"{text[:24]}... ({text.count(',') + 1})"
        w.vector(f"{device.key}: {short}")
        w("resource", number, "sm", "d")
        _split_and_look(w, "d", "-", text)
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


def _split_and_look(w: Writer, name: str, flags: str, counts: str) -> None:
    if w("split", name, flags, counts, "p").result == "GCX_SUCCESS":
        for index in range(min(counts.count(",") + 1, 4)):
            w("sms", f"p.{index}")
        w("sms", "p.rest")
        w("info", "p.0")


def sub_splits(w: Writer, device: Gpu, number: int) -> None:
    source = random.Random(f"again {device.key} {w.driver}")
    half = device.sm_count // 2
    for step in range(6):
        family = ("-", "fine")[step % 2]
        first = source.randint(1, device.sm_count - device.min_group - 1)
        w.vector(f"{device.key}: {first} of {family}, and both parts again")
        w("resource", number, "sm", "d")
        answer = w("split", "d", family, first, "a")
        if answer.result != "GCX_SUCCESS":
            continue
        for part in ("a.0", "a.rest"):
            _split_and_look_again(w, part, _any_list(source, source.randint(2, half + 2)))
        w("split", "a.0", "fine" if family == "-" else "max-cluster", "2", "z")


def _split_and_look_again(w: Writer, name: str, counts: str) -> None:
    out = "of" + name.replace(".", "")
    if w("split", name, "-", counts, out).result == "GCX_SUCCESS":
        w("sms", f"{out}.0")
        w("sms", f"{out}.rest")
        w("info", f"{out}.rest")
        w("overlap", name, f"{out}.0")
        w("overlap", f"{out}.0", f"{out}.rest")


def sets(w: Writer, device: Gpu, number: int) -> None:
    source = random.Random(f"sets {device.key} {w.driver}")
    for family in ("-", "fine"):
        w.vector(f"{device.key}: sets of {family}")
        w("resource", number, "sm", "d")
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
    w.vector(f"{device.key}: atoms one by one")
    w("resource", number, "sm", "d")
    w("split", "d", "-", 2 * sizes_of(device, "coscheduled")[1], "p")
    w("atom", "d", 0, "first")
    w("sms", "first")
    w("atom", "d", len(device.atoms("coscheduled")) - 1, "last")
    w("sms", "last")
    w("info", "last")
    w("atom", "p.0", 1, "second")
    w("overlap", "second", "d")
    w("overlap", "second", "first")
    w.vector(f"{device.key}: an unknown atom")
    w("resource", number, "sm", "d")
    w("atom", "d", len(device.atoms("coscheduled")), "a")


def misuse(w: Writer) -> None:
    w.vector("sets of two devices")
    w("resource", 0, "sm", "a")
    w("resource", 1, "sm", "b")
    w("same", "a", "b")
    w("overlap", "a", "b")
    for operation in ("union", "subtract"):
        w(operation, "a", "b", "c")
    w("context", "a,b", "-", "c")
    w.vector("sets of two families")
    w("resource", 0, "sm", "a")
    w("split", "a", "fine", "24", "f")
    w("split", "a", "-", "24", "p")
    w("overlap", "f.0", "p.0")
    for operation in ("union", "subtract"):
        w(operation, "f.0", "p.0", "c")
    w("context", "f.0,p.0", "-", "c")
    w("split", "p.0", "fine", "8", "x")
    w("split", "f.0", "max-cluster", "8", "x")
    w.vector("no requests")
    w("resource", 0, "sm", "d")
    w("split", "d", "-", "-", "p")
    w("context", "-", "-", "c")
    w.vector("a count of 0")
    w("resource", 0, "sm", "d")
    for counts in ("0", "8,0", "0,rest"):
        w("split", "d", "-", counts, "p")
        w("split", "d", "fine", counts, "p")
    w.vector("unknown flags")
    w("resource", 0, "sm", "d")
    for flags in ("4", "8", "2048", "fine+max-cluster"):
        w("split", "d", flags, "16", "p")
    w("context", "d", 2, "c")
    w("event", 0, 4, "e")
    w.vector("unknown types and families")
    w("resource", 0, "7", "d")
    for family in ("none", "structured", "external", "9"):
        w("map", 0, family)
    w.vector("the zero resource")
    w("resource", 0, "sm", "d")
    w("info", "zero")
    w("split", "zero", "-", "8", "p")
    w("union", "zero", "d", "u")
    w("union", "d", "zero", "u")
    w("overlap", "d", "zero")
    w("sms", "zero")
    w("cluster", "zero")
    w("atom", "zero", 0, "a")
    w("context", "zero", "-", "c")
    w("configure", "zero", "device_ctx", 1, "q")


def workqueues(w: Writer) -> None:
    w.vector("a workqueue configuration")
    w("resource", 0, "workqueue-config", "q")
    if w.version < 1301:
        w("resource", 0, "sm", "d")
        w("context", "d", "-", "c")
        w("get", "c", "workqueue-config", "r")
        return
    w("queue", "q")
    w("configure", "q", "green_ctx_balanced", 4, "b")
    w("queue", "b")
    w("configure", "b", "device_ctx", 0, "k")
    w("queue", "k")
    w("same", "q", "k")
    w("resource", 0, "workqueue-config", "again")
    w("same", "q", "again")
    w.vector("contexts with workqueues")
    w("resource", 0, "sm", "d")
    w("split", "d", "-", "24,32", "p")
    w("resource", 0, "workqueue-config", "q")
    w("resource", 1, "workqueue-config", "other")
    w("configure", "q", "green_ctx_balanced", 4, "b")
    w("context", "p.0,b", "-", "c")
    w("context", "b,p.0", "-", "c2")
    w("same", "c", "c2")
    w("context", "p.0", "-", "plain")
    w("same", "c", "plain")
    w("get", "c", "workqueue-config", "r")
    w("same", "r", "b")
    w("get", "c", "sm", "s")
    w("same", "s", "p.0")
    w("context", "b", "-", "x")
    w("context", "p.1,q,b", "-", "x")
    w("context", "p.1,other", "-", "x")
    w.vector("workqueue of a device: only contexts have one")
    w("resource", 0, "workqueue", "x")
    w.vector("an unknown scope")
    w("resource", 0, "workqueue-config", "q")
    w("configure", "q", 7, 1, "x")
    w.vector("no SM resource")
    w("resource", 0, "workqueue-config", "q")
    w("resource", 0, "sm", "d")
    w("split", "q", "-", "8", "x")
    w("union", "q", "d", "x")
    w("overlap", "d", "q")
    w("sms", "q")
    w("cluster", "q")
    w("atom", "q", 0, "x")
    w("configure", "d", "device_ctx", 1, "x")


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


def whole(requests: str) -> str:
    """Adds the missing fields to requests."""
    items = [item + "/0" * (4 - item.count("/")) for item in requests.split(",")]
    return ",".join(items)


def structured(w: Writer) -> None:
    for device in (0, w.gpus.index("a100"), w.gpus.index("b200")):
        for text in STRUCTURED:
            w.vector(f"{w.gpus[device]}: structured, {text}")
            w("resource", device, "sm", "d")
            w("split", "d", "-", whole(text), "p")
    for text in IN_DOMAINS:
        w.vector(f"b200: in locality domains, {text}")
        w("resource", w.gpus.index("b200"), "sm", "d")
        w("split", "d", "-", whole(text), "p")
    if w.version < 1301:
        return
    w.vector("structured groups can't be changed")
    w("resource", 0, "sm", "d")
    w("split", "d", "-", whole("24/8,16/8"), "p")
    w("split", "d", "-", whole("24/8,16/8"), "q")
    w("same", "p.0", "q.0")
    w("overlap", "p.0", "q.0")
    w("overlap", "p.0", "q.1")
    w("split", "p.0", "-", "8", "x")
    w("split", "d", "-", "24", "o")
    w("overlap", "p.0", "o.0")
    w("sms", "p.0")
    w("union", "p.0", "d", "x")
    w("context", "p.0,d", "-", "x")
    w("context", "p.0", "-", "c")
    w("stream", "c", 0, "s")
    w("context", "q.0", "-", "again")
    w("same", "c", "again")

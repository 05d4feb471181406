"""The vectors of one machine about what drivers of CUDA 13.1 and 13.4 brought."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.vectors.make import Writer


def write(w: Writer) -> None:
    """All of them."""
    workqueues(w)
    structured(w)


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
    w.vector("a device's workqueue, which only a context has")
    w("resource", 0, "workqueue", "x")
    w.vector("a scope that isn't there")
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


#: Of cuda.h's rules, on a device with clusters and on one without.
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
    """Requests with all their fields, as the files have them."""
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
    w.vector("structured groups stay as they are")
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

"""Answers the steps of vectors through the package, for tests/vectors/ask.py."""

from __future__ import annotations

import sys
from collections import ChainMap
from collections.abc import Callable, Iterable
from typing import Any

import gcx


class Differs(Exception):
    """A step didn't return what the file says."""


def list_text(items: Any) -> str:
    return ",".join(map(str, items)) or "-"


def count_of(text: str) -> int | None:
    """Returns a count of SMs, None for the rest."""
    return None if text == "rest" else int(text)


def counts_of(requests: str) -> Any:
    """Returns the argument of SMResource.split for a list of requests."""
    if requests == "-":
        return []
    items = [item.split("/") for item in requests.split(",")]
    counts = [count_of(item[0]) for item in items]
    rows = [[*map(int, item[1:]), 0, 0, 0, 0][:4] for item in items]
    if not any(any(row) for row in rows):
        return counts
    domains: list[Any] = [row[3] if row[2] & 2 else None for row in rows]
    domains = ["any" if domain == 0xFFFFFFFF else domain for domain in domains]
    return gcx.SplitOptions(
        count=counts,
        coscheduled_sm_count=[row[0] or None for row in rows],
        preferred_coscheduled_sm_count=[row[1] or None for row in rows],
        backfill=[bool(row[2] & 1) for row in rows],
        locality_domain=domains,
    )


class Pairs(ChainMap[gcx.Lease, gcx.Size]):
    """A mapping of leases that can contain one twice."""

    def __init__(self, pairs: Iterable[dict[gcx.Lease, gcx.Size]]) -> None:
        super().__init__(*pairs)

    def items(self) -> Any:
        return [pair for single in self.maps for pair in single.items()]


class Vector:
    """The objects of one vector, with a method for each operation."""

    def __init__(self) -> None:
        self.objects: dict[str, Any] = {}
        self.pushed: list[str] = []
        self.before: gcx.CacheStats | None = None

    def end(self) -> None:
        """Closes what is left."""
        for name in reversed(self.pushed):
            self.objects[name].pop()
        for found in reversed(self.objects.values()):
            if hasattr(found, "close"):
                found.close()
        if gcx.live_contexts():
            raise Differs(f"contexts are alive at the end: {gcx.live_contexts()}")

    def open(self, spec: str) -> None:
        gcx.open_driver(spec)

    def driver(self) -> list[object]:
        info = gcx.driver_info()
        return [info.version[0] * 1000 + info.version[1] * 10, int(info.simulated)]

    def capability(self, number: str) -> list[object]:
        return [int(list(gcx.driver_info().capabilities.values())[int(number)])]

    def devices(self) -> list[object]:
        return [len(gcx.devices())]

    def device(self, number: str) -> list[object]:
        device = gcx.Device(int(number))
        return [*device.compute_capability, device.sm_count, device.name]

    def priorities(self, number: str) -> list[object]:
        return [*gcx.Device(int(number)).stream_priority_range]

    def resource(self, number: str, kind: str, out: str) -> None:
        resources = gcx.Device(int(number)).resources
        self.objects[out] = resources.sm if kind == "sm" else resources.workqueue

    def info(self, name: str) -> list[object]:
        sms = self.objects[name]
        sizes = [sms.sm_count, len(sms.atoms), sms.min_partition_size, sms.coscheduled_alignment]
        domain = "-" if sms.locality_domain is None else sms.locality_domain
        return [sms.device, sms.family, *sizes, sms.flags, domain]

    def queue(self, name: str) -> list[object]:
        queue = self.objects[name]
        return [queue.device, queue.scope, queue.concurrency_limit]

    def configure(self, name: str, scope: str, limit: str, out: str) -> None:
        self.objects[out] = self.objects[name].configured(scope, int(limit) or None)

    def split(self, name: str, flags: str, requests: str, out: str) -> list[object]:
        words = flags.split("+")
        family = next((word for word in words if word in ("fine", "max-cluster")), None)
        options: Any = {"family": family, "exact": "exact" in words}
        options["exclude_leased"] = "exclude_leased" in words
        sms, counts = self.objects[name], counts_of(requests)
        try:
            plan = sms.plan(counts, **options)
        except gcx.Error as error:
            try:
                sms.split(counts, **options)
            except type(error):
                raise
            raise Differs("plan is refused, and split is not") from error
        groups, rest = sms.split(counts, **options)
        if plan != (tuple(group.sm_count for group in groups), rest.sm_count):
            raise Differs(f"the plan was {plan}, and the split is {groups}, {rest}")
        for number, group in enumerate(groups):
            self.objects[f"{out}.{number}"] = group
        self.objects[f"{out}.rest"] = rest
        return [list_text(plan.groups), plan.remainder]

    def union(self, a: str, b: str, out: str) -> list[object]:
        self.objects[out] = self.objects[a] | self.objects[b]
        return [self.objects[out].sm_count]

    def subtract(self, a: str, b: str, out: str) -> list[object]:
        self.objects[out] = self.objects[a] - self.objects[b]
        return [self.objects[out].sm_count]

    def overlap(self, a: str, b: str) -> list[object]:
        return [self.objects[a].overlap(self.objects[b])]

    def same(self, a: str, b: str) -> list[object]:
        first, second = self.objects[a], self.objects[b]
        if isinstance(first, gcx.Context):
            return ["yes" if first.id == second.id else "no"]
        return ["yes" if first == second else "no"]

    def atom(self, name: str, index: str, out: str) -> list[object]:
        self.objects[out] = self.objects[name].atoms[int(index)]
        return [self.objects[out].sm_count]

    def map(self, number: str, family: Any) -> None:
        gcx.Device(int(number)).map_sms(family)

    def sms(self, name: str) -> list[object]:
        return [list_text(self.objects[name].sm_ids())]

    probe = sms

    def cluster(self, name: str) -> list[object]:
        return [self.objects[name].max_cluster_size()]

    def context(self, names: str, flags: str, out: str) -> None:
        resources = [] if names == "-" else [self.objects[name] for name in names.split(",")]
        self.objects[out] = gcx.Context(resources, private=flags == "private")

    def get(self, name: str, kind: str, out: str) -> None:
        resources = self.objects[name].resources
        self.objects[out] = resources.sm if kind == "sm" else resources.workqueue

    def stream(self, name: str, priority: str, out: str) -> list[object]:
        made = self.objects[name]
        make = made.create_stream if isinstance(made, gcx.Lease) else made.stream
        stream = self.objects[out] = make(int(priority))
        return [stream.device, stream.priority, stream.sm_count]

    def event(self, number: str, flags: str, out: str) -> None:
        words = flags.split("+")
        self.objects[out] = gcx.Event(
            int(number), timing="timing" in words, blocking="blocking" in words
        )

    def adopt(self, name: str, out: str) -> None:
        found = self.objects[name]
        self.objects[out] = type(found).from_native(found.native)

    def push(self, name: str) -> None:
        self.objects[name].push()
        self.pushed.append(name)

    def pop(self) -> list[object]:
        if not self.pushed:
            raise gcx.InvalidContextError("nothing was pushed")
        self.objects[self.pushed[-1]].pop()
        return [self.pushed.pop()]

    def current(self) -> list[object]:
        found = gcx.current_context()
        return [next((name for name, it in self.objects.items() if it is found), "-")]

    def record(self, name: str, event: str) -> None:
        self.objects[name].record(self.objects[event])

    def wait(self, name: str, event: str) -> None:
        self.objects[name].wait(self.objects[event])

    def synchronize(self, name: str) -> None:
        self.objects[name].synchronize()

    def query(self, name: str) -> None:
        if not self.objects[name].query():
            raise gcx.NotReadyError("it has work that hasn't finished")

    def elapsed(self, start: str, end: str) -> None:
        self.objects[start].elapsed_time(self.objects[end])

    def close(self, name: str) -> None:
        self.objects[name].close()

    def live(self, number: str) -> list[object]:
        found = gcx.live_contexts(None if number == "-1" else int(number))
        return [
            list_text(
                f"{it.sm_count}/{it.handle_count}/{it.stream_count}/{int(it.private)}"
                for it in found
            )
        ]

    def limit(self, number: str) -> None:
        gcx.set_cache_limit(int(number))

    def cache(self) -> list[object]:
        now = gcx.cache_stats()
        hits, misses, evicted = self.before[3:6] if self.before else (0, 0, 0)
        return [now.in_use, now.cached, now.hits - hits, now.misses - misses, now.evicted - evicted]

    def lease(
        self, number: str, count: str, flags: str, family: Any, least: str, alone: str, out: str
    ) -> list[object]:
        lease = self.objects[out] = gcx.acquire(
            count_of(count),
            name=out,
            device=int(number),
            shared=flags == "shared",
            family=None if family == "none" else family,
            min_sm_count=int(least) or None,
            exclusive_sm_count=int(alone),
        )
        return [lease.sm_count]

    def sizes(self, text: str) -> Pairs:
        pairs = [item.split("/") for item in text.split(",")] if text != "-" else []
        return Pairs(
            {self.objects[name]: gcx.PARKED if count == "parked" else count_of(count)}
            for name, count in pairs
        )

    def resize(self, sizes: str, flags: str) -> list[object]:
        wanted = self.sizes(sizes)
        gcx.resize(wanted, deferred=flags == "deferred")
        return [list_text(lease.sm_count for lease, _ in wanted.items())]

    def prepare(self, sizes: str) -> None:
        gcx.prepare(self.sizes(sizes))

    def held(self, name: str, out: str) -> list[object]:
        self.objects[out] = self.objects[name].resource
        return [self.objects[out].sm_count]

    def alone(self, name: str) -> list[object]:
        return [self.objects[name].exclusive_sm_count]

    def leases(self, number: str) -> list[object]:
        found = gcx.leases(None if number == "-1" else int(number))
        return [list_text(f"{it.sm_count}/{it.stream_count}/{int(it.shared)}" for it in found)]


def answered(vector: Vector, operation: str, *inputs: str) -> list[object]:
    run: Callable[..., list[object] | None] = getattr(vector, operation)
    try:
        return ["GCX_SUCCESS", *(run(*inputs) or [])]
    except gcx.Error as error:
        return [error.name, error.message.replace("\n", " ")]
    except (Differs, AttributeError, KeyError) as error:
        return [type(error).__name__, error]


def main() -> None:
    vector = Vector()
    for line in sys.stdin:
        words = line.removesuffix("\n").split("\t")
        print(*answered(vector, *words), sep="\t", flush=True)
        if words == ["end"]:
            vector = Vector()
            vector.before = gcx.cache_stats()


if __name__ == "__main__":
    main()

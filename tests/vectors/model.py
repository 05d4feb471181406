"""The model of gcx, written from the header and the driver's facts without using gcx.

A Machine is one process with one driver. Its methods are the operations of README.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Union

from tests.vectors.resources import (
    CACHE_LIMIT,
    CONFIGURATION,
    DEVICE,
    HANDLE,
    NOT_SUPPORTED,
    OK,
    TYPE,
    VALUE,
    Answer,
    Queue,
    Resources,
    Sms,
    ids_text,
    refused,
)

IN_USE = "GCX_ERROR_CONTEXT_ALREADY_IN_USE"
INVALID_CONTEXT = "GCX_ERROR_INVALID_CONTEXT"
Resource = Union[Sms, Queue]


@dataclass(eq=False)
class Green:
    """A green context, created once for its resources and cached."""

    resources: frozenset[Resource]
    sms: Sms
    private: bool = False
    prepared: bool = False
    handles: set[str] = field(default_factory=set)
    streams: set[str] = field(default_factory=set)

    @property
    def in_use(self) -> bool:
        return bool(self.handles or self.streams)


@dataclass(eq=False)
class Stream:
    green: Green
    priority: int


@dataclass(eq=False)
class Event:
    device: int | None
    """None: unknown, since the event was not created by gcx"""
    timing: bool
    recorded: bool = False


class Machine(Resources):
    """One process with one driver."""

    def __init__(self, gpus: Sequence[str], version: int) -> None:
        super().__init__(gpus, version)
        self.greens: list[Green] = []
        self.cached: list[Green] = []
        self.cache_limit = 64
        self.begin_vector()

    def begin_vector(self) -> None:
        self.names = {}
        self.closed: set[str] = set()
        self.pushed: list[str] = []
        self.hits = self.misses = self.evicted = 0

    def end_vector(self) -> None:
        self.pushed = []
        for name in reversed(list(self.names)):
            if name not in self.closed:
                self.close(name)

    def _green_for(self, key: frozenset[Resource], sms: Sms, private: bool) -> Green:
        """Returns a context in use, a cached one, or a new one for the resources."""
        for green in self.greens:
            # Callers share it.
            if not private and green.resources == key and green.in_use and not green.private:
                return green
        found = next((green for green in self.cached if green.resources == key), None)
        if found is None:
            self.misses += 1
            found = Green(key, sms)
            self.greens.append(found)
        else:
            self.cached.remove(found)
        found.private = private
        return found

    def _use(self, key: frozenset[Resource], sms: Sms, private: bool) -> Green:
        """The same, and counts a hit unless the context is new."""
        misses = self.misses
        green = self._green_for(key, sms, private)
        self.hits += self.misses == misses
        return green

    def _release(self, green: Green) -> None:
        if green.in_use or green in self.cached:
            return
        self.cached.append(green)
        self._evict()

    def _evict(self) -> None:
        """Destroys the cached contexts of each device beyond the limit, except prepared ones."""
        for device in {green.sms.device for green in self.cached}:
            cached = [green for green in self.cached if green.sms.device == device]
            surplus = max(len(cached) - self.cache_limit, 0)
            for green in [green for green in cached if not green.prepared][:surplus]:
                self.cached.remove(green)
                self.greens.remove(green)
                self.evicted += 1

    def _prepared(self, device: int) -> list[Green]:
        """Returns the prepared contexts of a device: first cached ones, longest unused first."""
        cached = [green for green in self.cached if green.prepared and green.sms.device == device]
        in_use = [green for green in self.greens if green.prepared and green.sms.device == device]
        return cached + [green for green in in_use if green not in self.cached]

    def context(self, names: Sequence[str], flags: str, out: str) -> Answer:
        if flags not in ("-", "private") or not names:
            return refused(VALUE)
        resources = [self.names.get(name) for name in names]
        sms = [found for found in resources if isinstance(found, Sms)]
        queues = [found for found in resources if isinstance(found, Queue)]
        if not sms or len(queues) > 1 or len(sms) + len(queues) != len(names):
            return refused(TYPE)
        if len({found.device for found in sms} | {found.device for found in queues}) > 1:
            return refused(CONFIGURATION)
        atoms: frozenset[int] = frozenset()
        for found in sms:
            if found.family != sms[0].family or atoms & found.atoms:
                return refused(CONFIGURATION)
            atoms |= found.atoms
        if not atoms:
            return refused(CONFIGURATION)
        whole = self._set_of(sms[0], atoms)
        if self._undescribable(whole):
            return refused(CONFIGURATION)
        green = self._use(frozenset({whole, *queues}), whole, flags == "private")
        green.handles.add(out)
        self.names[out] = green
        return Answer(OK)

    def get(self, name: str, kind: str, out: str) -> Answer:
        found = self.names[name]
        if name in self.closed:
            return refused(HANDLE)
        green = found.green if isinstance(found, Stream) else found
        assert isinstance(green, Green)
        if kind == "sm":
            self.names[out] = green.sms
            return Answer(OK)
        if self.version < 1301:
            return refused(NOT_SUPPORTED, "13.1")
        assert kind == "workqueue-config"
        queue = next((found for found in green.resources if isinstance(found, Queue)), None)
        if queue is None:
            return refused(TYPE)
        self.names[out] = queue
        return Answer(OK)

    def stream(self, name: str, priority: int, out: str) -> Answer:
        if name in self.closed:
            return refused(HANDLE)
        green = self.names[name]
        assert isinstance(green, Green)
        given = max(-5, min(0, priority))
        green.streams.add(out)
        self.names[out] = Stream(green, given)
        return Answer(OK, (green.sms.device, given, green.sms.sm_count))

    def event(self, device: int, flags: str, out: str) -> Answer:
        if not self._has(device):
            return refused(DEVICE, device)
        if flags.isdigit():
            return refused(VALUE)
        self.names[out] = Event(device, "timing" in flags)
        return Answer(OK)

    def adopt(self, name: str, out: str) -> Answer:
        found = self.names[name]
        assert isinstance(found, Stream), "adopted events share what is recorded: not modelled"
        self.names[out] = Stream(found.green, found.priority)
        return Answer(OK)

    def probe(self, name: str) -> Answer:
        if name in self.closed:
            return refused(HANDLE)
        found = self.names[name]
        assert isinstance(found, Stream)
        return Answer(OK, (ids_text(self._ids(found.green.sms)),))

    def push(self, name: str) -> Answer:
        if name in self.closed:
            return refused(HANDLE)
        self.pushed.append(name)
        return Answer(OK)

    def pop(self) -> Answer:
        return Answer(OK, (self.pushed.pop(),)) if self.pushed else refused(INVALID_CONTEXT)

    def current(self) -> Answer:
        return Answer(OK, (self.pushed[-1] if self.pushed else "-",))

    def _device_of(self, name: str) -> int:
        found = self.names[name]
        green = found.green if isinstance(found, Stream) else found
        assert isinstance(green, Green)
        return green.sms.device

    def record(self, name: str, event: str) -> Answer:
        found = self.names[event]
        assert isinstance(found, Event)
        if {name, event} & self.closed or self._device_of(name) != found.device:
            return refused(HANDLE)
        found.recorded = True
        return Answer(OK)

    def cluster(self, name: str) -> Answer:
        found = self.names.get(name)
        if not isinstance(found, Sms):
            return refused(TYPE)
        if not found.atoms:
            return refused(CONFIGURATION)
        if self._undescribable(found):
            return refused(CONFIGURATION)
        if self.gpus[found.device].has_clusters:
            green = self._use(frozenset({found}), found, private=False)
            self._release(green)
        return Answer(OK, (self._cluster(found),))

    def simple(self, *names: str) -> Answer:
        """Waits, synchronizes or queries; no work runs in the model."""
        return refused(HANDLE) if set(names) & self.closed else Answer(OK)

    def elapsed(self, start: str, end: str) -> Answer:
        for name in (start, end):
            found = self.names[name]
            assert isinstance(found, Event)
            if name in self.closed or not found.timing or not found.recorded:
                return refused(HANDLE)
        return Answer(OK)

    def close(self, name: str) -> Answer:
        found = self.names[name]
        if name in self.closed:
            return refused(HANDLE)
        if isinstance(found, Green):
            current = self.pushed and self.names[self.pushed[-1]] is found
            if name in self.pushed or (current and found.handles == {name}):
                return refused(IN_USE)
            found.handles.discard(name)
            self._release(found)
        elif isinstance(found, Stream):
            found.green.streams.discard(name)
            self._release(found.green)
        self.closed.add(name)
        return Answer(OK)

    def live(self, device: int) -> Answer:
        if device != -1 and not self._has(device):
            return refused(DEVICE, device)
        rows = [
            f"{green.sms.sm_count}/{len(green.handles)}/{len(green.streams)}/{int(green.private)}"
            for green in self.greens
            if green.in_use and device in (-1, green.sms.device)
        ]
        return Answer(OK, (rows,))

    def limit(self, number: int) -> Answer:
        self.cache_limit = number
        self._evict()
        for device in {green.sms.device for green in self.greens}:
            prepared = self._prepared(device)
            for green in prepared[: max(len(prepared) - number, 0)]:
                green.prepared = False
        self._evict()
        return Answer(OK)

    def ahead(self, names: Sequence[str]) -> Answer:
        """Prepares a cached context for each resource."""
        found = [self.names.get(name) for name in names]
        if not found:
            return refused(VALUE)
        sets = [sms for sms in found if isinstance(sms, Sms)]
        if len(sets) < len(found):
            return refused(TYPE)
        if not all(sms.atoms for sms in sets):
            return refused(CONFIGURATION)
        if any(self._undescribable(sms) for sms in sets):
            return refused(CONFIGURATION)
        keys: list[frozenset[Resource]] = [frozenset({sms}) for sms in sets]
        for device in {sms.device for sms in sets}:
            prepared = {green.resources for green in self._prepared(device)}
            new = {key for key, sms in zip(keys, sets) if sms.device == device} - prepared
            if len(self._prepared(device)) + len(new) > self.cache_limit:
                return refused(CACHE_LIMIT, f"limit of cached contexts is {self.cache_limit}")
        for key, sms in zip(keys, sets):
            green = self._green_for(key, sms, private=False)
            green.prepared = True
            self._release(green)
        return Answer(OK)

    def trim(self, number: int) -> Answer:
        before = self.evicted
        while len(self.cached) > number:
            self.greens.remove(self.cached.pop(0))
            self.evicted += 1
        return Answer(OK, (self.evicted - before,))

    def cache(self) -> Answer:
        in_use = sum(green.in_use for green in self.greens)
        return Answer(OK, (in_use, len(self.cached), self.hits, self.misses, self.evicted))

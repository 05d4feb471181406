"""The model of devices and resources, written from the header and the driver's facts.

Each method is an operation of README.md and returns the result, the outputs, and pieces of the
message. model.py adds contexts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tests.vectors import planner, structured
from tests.vectors.gpus import MAX_CLUSTER_FIRST, Gpu, gpu, sizes_of

OK = "GCX_SUCCESS"
VALUE = "GCX_ERROR_INVALID_VALUE"
CACHE_LIMIT = "GCX_ERROR_CACHE_LIMIT_EXCEEDED"
DEVICE = "GCX_ERROR_INVALID_DEVICE"
HANDLE = "GCX_ERROR_INVALID_HANDLE"
SMS_NOT_MAPPED = "GCX_ERROR_SMS_NOT_MAPPED"
NOT_SUPPORTED = "GCX_ERROR_NOT_SUPPORTED"
TYPE = "GCX_ERROR_INVALID_RESOURCE_TYPE"
CONFIGURATION = "GCX_ERROR_INVALID_RESOURCE_CONFIGURATION"

#: The driver version of each capability, by its number in gcx.h.
CAPABILITIES = (1204, 1205, 1300, 1300, 1301, 1301, 1301, 1304)


class Answer(NamedTuple):
    """The answer of a step"""

    result: str
    outputs: tuple[object, ...] = ()
    pieces: tuple[object, ...] = ()


def refused(result: str, *pieces: object) -> Answer:
    return Answer(result, (), pieces)


@dataclass(frozen=True)
class Sms:
    """An SM resource. The model knows only the count of a structured group, not its SMs."""

    device: int
    family: str
    atoms: frozenset[int]
    sm_count: int
    structured: tuple[tuple[structured.Request, ...], tuple[int, ...]] = ((), ())
    """The requests of a structured split, and the SM counts of its groups and its remainder"""


@dataclass(frozen=True)
class Queue:
    """A workqueue configuration, or the workqueue of a context"""

    device: int
    scope: str = "device_ctx"
    limit: int = 8


class Resources:
    """The devices of a process and the resources of a vector. Version 1304 means CUDA 13.4."""

    def __init__(self, gpus: Sequence[str], version: int) -> None:
        self.gpus: list[Gpu] = [gpu(key) for key in gpus]
        self.version = version
        self.mapped: set[tuple[int, str]] = set()
        self.names: dict[str, object] = {}

    # ---- Devices and resources ----

    def _has(self, device: int) -> bool:
        return 0 <= device < len(self.gpus)

    def devices(self) -> Answer:
        return Answer(OK, (len(self.gpus),))

    def driver(self) -> Answer:
        return Answer(OK, (self.version // 100 * 1000 + self.version % 100 * 10, 1))

    def capability(self, number: int) -> Answer:
        return Answer(OK, (int(self.version >= CAPABILITIES[number]),))

    def device(self, device: int) -> Answer:
        if not self._has(device):
            return refused(DEVICE, device)
        found = self.gpus[device]
        return Answer(OK, (*found.capability, found.sm_count, found.name))

    def priorities(self, device: int) -> Answer:
        return Answer(OK, (0, -5)) if self._has(device) else refused(DEVICE, device)

    def resource(self, device: int, kind: str, out: str) -> Answer:
        if not self._has(device):
            return refused(DEVICE, device)
        if kind == "workqueue-config":
            if self.version < 1301:
                return refused(NOT_SUPPORTED, "13.1")
            self.names[out] = Queue(device)
        elif kind == "sm":
            self.names[out] = self._whole(device, "coscheduled")
        else:
            return refused(TYPE)
        return Answer(OK)

    def _whole(self, device: int, family: str) -> Sms:
        number, _, remainder = sizes_of(self.gpus[device], family)
        return self._set(device, family, frozenset(range(number + (remainder != 0))))

    def _set(self, device: int, family: str, atoms: frozenset[int]) -> Sms:
        number, size, remainder = sizes_of(self.gpus[device], family)
        count = sum(remainder if atom == number else size for atom in atoms)
        return Sms(device, family, atoms, count)

    def _set_of(self, like: Sms, atoms: frozenset[int]) -> Sms:
        """Returns a set in the same family or structured split as another one."""
        if like.family != "structured":
            return self._set(like.device, like.family, atoms)
        count = sum(like.structured[1][atom] for atom in atoms)
        return Sms(like.device, like.family, atoms, count, like.structured)

    def _sms(self, name: str) -> Sms | None:
        found = self.names.get(name)
        return found if isinstance(found, Sms) else None

    def info(self, name: str) -> Answer:
        sms = self._sms(name)
        if sms is None:
            return refused(TYPE)
        if sms.family == "structured":
            raise AssertionError("the info of structured groups is not modelled")
        number, size, remainder = sizes_of(self.gpus[sms.device], sms.family)
        sizes = [remainder if atom == number else size for atom in sms.atoms]
        step = remainder if sms.atoms == {number} else size
        minimum = min(sizes, default=0)
        counts = (sms.sm_count, len(sms.atoms), minimum, step)
        return Answer(OK, (sms.device, sms.family, *counts, 0, "-"))

    def queue(self, name: str) -> Answer:
        found = self.names[name]
        assert isinstance(found, Queue)
        return Answer(OK, (found.device, found.scope, found.limit))

    def configure(self, name: str, scope: str, limit: int, out: str) -> Answer:
        found = self.names.get(name)
        if not isinstance(found, Queue):
            return refused(TYPE)
        if scope not in ("device_ctx", "green_ctx_balanced"):
            return refused(VALUE, scope)
        self.names[out] = Queue(found.device, scope, limit or found.limit)
        return Answer(OK)

    # ---- Splits and sets ----

    def split(
        self, name: str, flags: str, requests: Sequence[structured.Request], out: str
    ) -> Answer:
        sms = self._sms(name)
        words = flags.split("+")
        counts = [request.sm_count for request in requests]
        if "fine" in words and "max-cluster" in words:
            return refused(VALUE)
        if any(word.isdigit() for word in words) or not counts or 0 in counts:
            return refused(VALUE)
        if sms is None:
            return refused(TYPE)
        if not all(request.is_plain for request in requests):
            return self._structured(sms, requests, out)
        family = next((word for word in words if word in ("fine", "max-cluster")), sms.family)
        if family != sms.family and sms != self._whole(sms.device, sms.family):
            return refused(CONFIGURATION)
        if family == "max-cluster" and not self.gpus[sms.device].has_clusters:
            return refused(NOT_SUPPORTED)
        if family != sms.family:
            sms = self._whole(sms.device, family)
        if family == "structured":
            return refused(CONFIGURATION)
        return self._divided(sms, counts, "exact" in words, out)

    def _divided(self, sms: Sms, counts: Sequence[int], exact: bool, out: str) -> Answer:
        number, size, remainder = sizes_of(self.gpus[sms.device], sms.family)
        atoms = sorted(sms.atoms - {number} if remainder else sms.atoms)
        remainder_atom = number if remainder and number in sms.atoms else None
        found = planner.plan(
            counts, len(atoms), size, remainder if remainder_atom is not None else 0
        )
        if found is None:
            one_count = len(counts) == 1 and counts[0] != planner.REST
            return refused(CONFIGURATION, *((*counts, sms.sm_count) if one_count else ()))
        if exact and found.beyond:
            return refused(CONFIGURATION, *(counts if len(counts) == 1 else ()))
        groups, left = planner.placed(found, atoms, remainder_atom)
        sets = [self._set(sms.device, sms.family, frozenset(group)) for group in groups]
        rest = self._set(sms.device, sms.family, frozenset(left))
        for index, group in enumerate(sets):
            self.names[f"{out}.{index}"] = group
        self.names[f"{out}.rest"] = rest
        return Answer(OK, ([group.sm_count for group in sets], rest.sm_count))

    def _structured(self, sms: Sms, requests: Sequence[structured.Request], out: str) -> Answer:
        device = self.gpus[sms.device]
        needed = structured.needs(requests)
        if self.version < needed:
            return refused(NOT_SUPPORTED, f"{needed // 100}.{needed % 100}")
        if structured.breaks_a_rule(device, requests):
            return refused(VALUE)
        given = structured.counts(device, requests)
        if given is None:
            return refused(CONFIGURATION)
        left = device.sm_count - sum(given)
        key = (tuple(requests), (*given, left))
        for index, count in enumerate(given):
            self.names[f"{out}.{index}"] = Sms(
                sms.device, "structured", frozenset([index]), count, key
            )
        rest = frozenset([len(given)] if left else [])
        self.names[f"{out}.rest"] = Sms(sms.device, "structured", rest, left, key)
        return Answer(OK, (given, left))

    def combine(self, operation: str, a: str, b: str, out: str) -> Answer:
        left, right = self._sms(a), self._sms(b)
        if left is None or right is None:
            return refused(TYPE)
        if left.device != right.device or left.family != right.family:
            return refused(CONFIGURATION)
        union = operation == "union"
        made = self._set_of(left, left.atoms | right.atoms if union else left.atoms - right.atoms)
        self.names[out] = made
        return Answer(OK, (made.sm_count,))

    def atom(self, name: str, index: int, out: str) -> Answer:
        sms = self._sms(name)
        if sms is None:
            return refused(TYPE)
        if index >= len(sms.atoms):
            return refused(VALUE)
        made = self._set(sms.device, sms.family, frozenset([sorted(sms.atoms)[index]]))
        self.names[out] = made
        return Answer(OK, (made.sm_count,))

    def _ids(self, sms: Sms) -> set[int]:
        if sms.family == "max-cluster":
            assert sms.atoms <= {0}, "only the first is recorded"
            return set(MAX_CLUSTER_FIRST if sms.atoms else ())
        atoms = self.gpus[sms.device].atoms(sms.family)
        return {number for atom in sms.atoms for number in atoms[atom]}

    def _shared(self, a: Sms, b: Sms) -> int | None:
        """Returns the number of SMs in both sets, or None if unknown."""
        if a.device != b.device:
            return 0
        if a.family == b.family:
            return self._set_of(a, a.atoms & b.atoms).sm_count
        if not {(a.device, a.family), (a.device, b.family)} <= self.mapped:
            return None
        return len(self._ids(a) & self._ids(b))

    def overlap(self, a: str, b: str) -> Answer:
        left, right = self._sms(a), self._sms(b)
        if left is None or right is None:
            return refused(TYPE)
        families = {left.family, right.family}
        if left.device == right.device and len(families) == 2 and "structured" in families:
            return refused(NOT_SUPPORTED)
        shared = self._shared(left, right)
        return refused(SMS_NOT_MAPPED) if shared is None else Answer(OK, (shared,))

    def same(self, a: str, b: str) -> Answer:
        return Answer(OK, ("yes" if self.names[a] == self.names[b] else "no",))

    def map(self, device: int, family: str) -> Answer:
        if not self._has(device):
            return refused(DEVICE, device)
        if family not in ("coscheduled", "fine", "max-cluster"):
            return refused(VALUE)
        if family == "max-cluster" and not self.gpus[device].has_clusters:
            return refused(NOT_SUPPORTED)
        self.mapped.add((device, family))
        return Answer(OK)

    def sms(self, name: str) -> Answer:
        sms = self._sms(name)
        if sms is None:
            return refused(TYPE)
        if sms.family == "structured":
            return refused(NOT_SUPPORTED)
        if (sms.device, sms.family) not in self.mapped and sms.atoms:
            return refused(SMS_NOT_MAPPED)
        return Answer(OK, (ids_text(self._ids(sms)),))

    def _cluster(self, sms: Sms) -> int:
        """Returns the cluster size by the recorded rule: a set of groups allows the size of a
        group, and the remainder of a split the SMs that it has of one GPC."""
        device = self.gpus[sms.device]
        if not device.has_clusters:
            return 1
        if sms.family == "fine":
            return 2
        if sms.family == "max-cluster":
            assert sms.atoms == {0}, "only the first is recorded"
            return 16
        number, _, remainder = sizes_of(device, sms.family)
        if not self._is_remainder(sms, number, remainder):
            return device.min_group
        ids = self._ids(sms)
        largest = max(len(ids.intersection(gpc)) for gpc in device.gpcs)
        return min(largest, 16)

    @staticmethod
    def _is_remainder(sms: Sms, number: int, remainder: int) -> bool:
        """Whether the set is the remainder of a direct split: the last atoms"""
        first = number + 1 - len(sms.atoms)
        return remainder != 0 and sms.atoms == frozenset(range(first, number + 1))

    def _undescribable(self, sms: Sms) -> bool:
        """Whether CUDA 13.1 forbids the set by its alignment rule: the remainder atom has alignment
        2 and groups have 8 from compute capability 9.0 on, so that they can't be combined."""
        if sms.family == "structured" or not self.gpus[sms.device].has_clusters:
            return False
        number, _, remainder = sizes_of(self.gpus[sms.device], sms.family)
        return (
            self.version >= 1301
            and remainder != 0
            and number in sms.atoms
            and not self._is_remainder(sms, number, remainder)
        )


def ids_text(ids: set[int]) -> str:
    """Formats numbers of SMs for the files, with runs as FIRST-LAST."""
    runs: list[list[int]] = []
    for number in sorted(ids):
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs) or "-"

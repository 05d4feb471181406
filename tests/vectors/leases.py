"""The model of leases, written from the header: a Machine with leases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.vectors import structured
from tests.vectors.gpus import sizes_of
from tests.vectors.model import Event, Green, Machine, Stream
from tests.vectors.placement import Atoms, Shape, Undecided, first_free, most_shared, resized
from tests.vectors.planner import REST, count_of
from tests.vectors.resources import (
    CONFIGURATION,
    DEVICE,
    HANDLE,
    OK,
    SMS_NOT_MAPPED,
    TYPE,
    VALUE,
    Answer,
    Sms,
    refused,
)

TAKEN = "GCX_ERROR_ALREADY_ACQUIRED"
ENDED = "GCX_ERROR_CONTEXT_IS_DESTROYED"
PARKED = "GCX_ERROR_LEASE_PARKED"
EMPTY: Atoms = frozenset()


@dataclass(eq=False)
class Lease:
    """A lease. Its green context, which its streams share, has its current SMs."""

    green: Green
    shared: bool
    exclusive: Atoms
    streams: list[str] = field(default_factory=list)
    ended: bool = False

    @property
    def device(self) -> int:
        return self.green.sms.device

    @property
    def family(self) -> str:
        return self.green.sms.family

    @property
    def atoms(self) -> Atoms:
        return self.green.sms.atoms

    @property
    def shared_atoms(self) -> Atoms:
        """The atoms that other leases may share"""
        return self.atoms - self.exclusive


class Leasing(Machine):
    """One process, with its leases in order of acquisition"""

    def begin_vector(self) -> None:
        super().begin_vector()
        self.leases_now: dict[str, Lease] = {}
        # Prepared layouts: the atoms of leases by their names and SM counts.
        self.layouts: dict[frozenset[tuple[str, int]], dict[str, Atoms]] = {}

    # ---- Free atoms ----

    def _shape(self, device: int, family: str) -> Shape:
        return Shape(*sizes_of(self.gpus[device], family))

    def _on(self, device: int) -> list[Lease]:
        return [lease for lease in self.leases_now.values() if lease.device == device]

    def _blocked(self, device: int, family: str) -> Atoms | None:
        """Returns the family's atoms that leases of other families use, or None if unknown."""
        taken = set()
        for lease in self._on(device):
            if lease.family == family:
                continue
            if not {(device, lease.family), (device, family)} <= self.mapped:
                return None
            held = self._ids(lease.green.sms)
            whole = self._whole(device, family)
            taken |= {
                a for a in whole.atoms if held & self._ids(self._set_of(whole, frozenset({a})))
            }
        return frozenset(taken)

    def _usable(self, device: int, family: str) -> Atoms:
        return self._shape(device, family).all - (self._blocked(device, family) or EMPTY)

    def _free(self, device: int, family: str) -> Atoms:
        held = [found.atoms for found in self._on(device) if found.family == family]
        return self._usable(device, family) - EMPTY.union(*held)

    def _sharers(self, device: int, family: str) -> dict[int, int]:
        sharers: dict[int, int] = {}
        for lease in self._on(device):
            if lease.shared and lease.family == family:
                for atom in lease.shared_atoms & self._usable(device, family):
                    sharers[atom] = sharers.get(atom, 0) + 1
        return sharers

    def _check(self, device: int, family: str, atoms: Atoms) -> Sms:
        """From 13.1 on, some sets with the remainder atom are not possible. The header does not say
        what a lease gets in that case."""
        sms = self._set(device, family, atoms)
        if self._undescribable(sms):
            raise Undecided
        return sms

    # ---- Operations ----

    def lease(
        self,
        device: int,
        requested: int | str,
        flags: str | int,
        family: str,
        minimum: int,
        exclusive_count: int,
        out: str,
    ) -> Answer:
        count = count_of(requested)
        if isinstance(flags, int) or family not in ("none", "coscheduled", "fine"):
            return refused(VALUE)
        if count == 0 or minimum > count or exclusive_count > count:
            return refused(VALUE)
        if not self._has(device):
            return refused(DEVICE, device)
        family = "coscheduled" if family == "none" else family
        shape = self._shape(device, family)
        if shape.plan([count], shape.all) is None:
            if minimum:
                raise Undecided
            return refused(CONFIGURATION)
        if self._blocked(device, family) is None:
            return refused(SMS_NOT_MAPPED)
        free = self._free(device, family)
        shared = flags == "shared"
        exclusive = (
            EMPTY
            if shared and not exclusive_count
            else first_free(shape, exclusive_count if shared else count, free)
        )
        if exclusive is None:
            # The header does not say which of the acceptable counts a lease gets.
            if minimum and shape.sms(free) >= minimum:
                raise Undecided
            return refused(TAKEN)
        shared_atoms = EMPTY
        if shared and shape.sms(exclusive) < count:
            if minimum or (exclusive_count and shape.has_remainder(exclusive)):
                raise Undecided
            left = REST if count == REST else count - shape.sms(exclusive)
            sharers = self._sharers(device, family)
            shared_atoms = most_shared(shape, left, sharers, free - exclusive)
        sms = self._check(device, family, exclusive | shared_atoms)
        green = Green(frozenset({sms}), sms, private=True, handles={out})
        self.greens.append(green)
        self.names[out] = self.leases_now[out] = Lease(green, shared, exclusive)
        return Answer(OK, (sms.sm_count,))

    def resize(self, sizes: str, flags: str | int) -> Answer:
        return self._change(sizes, flags, keep=True)

    def prepare(self, sizes: str) -> Answer:
        answer = self._change(sizes, "-", keep=False)
        return Answer(OK) if answer.result == OK else answer

    def _change(self, sizes: str, flags: str | int, keep: bool) -> Answer:
        pairs = [item.split("/") for item in sizes.split(",")] if sizes != "-" else []
        names = [pair[0] for pair in pairs]
        parked = {pair[0] for pair in pairs if pair[1] == "parked"}
        counts = [count_of(pair[1]) for pair in pairs if pair[0] not in parked]
        if isinstance(flags, int) or not names or len(set(names)) != len(names) or 0 in counts:
            return refused(VALUE)
        if set(names) & self.closed:
            return refused(HANDLE)
        leases = [self._lease(name) for name in names]
        device, family = leases[0].device, leases[0].family
        if {(lease.device, lease.family) for lease in leases} != {(device, family)}:
            return refused(CONFIGURATION)
        shape = self._shape(device, family)
        if parked and any(lease.shared for lease in leases):
            raise Undecided
        free = self._free(device, family).union(*(self._lease(name).atoms for name in parked))
        leases = [lease for name, lease in zip(names, leases) if name not in parked]
        if any(lease.shared for lease in leases):
            return self._resize_shared(shape, leases, counts, keep)
        if shape.plan(counts, shape.all) is None:
            return refused(CONFIGURATION)
        after = resized(shape, counts, [lease.atoms for lease in leases], free)
        if after is None:
            return refused(TAKEN)
        given = iter(after)
        after = [EMPTY if name in parked else next(given) for name in names]
        after = self._layout(names, after, free, prepared=not keep)
        new = [self._check(device, family, atoms) for atoms in after]
        if keep:
            for lease, sms in zip(map(self._lease, names), new):
                lease.green.sms = sms
                lease.exclusive = sms.atoms
        return Answer(OK, ([sms.sm_count for sms in new],))

    def _layout(
        self, names: Sequence[str], after: Sequence[Atoms], free: Atoms, prepared: bool
    ) -> list[Atoms]:
        """Applies: "A layout that was prepared comes back to the same SMs"."""
        leases = [self._lease(name) for name in names]
        shape = self._shape(leases[0].device, leases[0].family)
        sizes = frozenset((name, shape.sms(atoms)) for name, atoms in zip(names, after))
        layout = self.layouts.get(sizes, dict(zip(names, after)))
        usable = free.union(*(lease.atoms for lease in leases))
        if not frozenset().union(*layout.values()) <= usable:
            layout = dict(zip(names, after))
        if prepared:
            self.layouts[sizes] = layout
        return [layout[name] for name in names]

    def _resize_shared(
        self, shape: Shape, leases: Sequence[Lease], counts: Sequence[int], keep: bool
    ) -> Answer:
        """Resizes a shared lease to its exclusive SMs, or fewer; more is not modelled."""
        lease, exclusive = leases[0], shape.sms(leases[0].exclusive)
        if len(leases) != 1 or not keep or counts[0] > exclusive:
            raise Undecided
        if counts[0] < exclusive:
            return refused(CONFIGURATION)
        lease.green.sms = self._check(lease.device, lease.family, lease.exclusive)
        return Answer(OK, ([exclusive],))

    def held(self, name: str, out: str) -> Answer:
        if name in self.closed:
            return refused(HANDLE)
        self.names[out] = self._lease(name).green.sms
        return Answer(OK, (self._lease(name).green.sms.sm_count,))

    def alone(self, name: str) -> Answer:
        if name in self.closed:
            return refused(HANDLE)
        lease = self._lease(name)
        return Answer(OK, (self._shape(lease.device, lease.family).sms(lease.exclusive),))

    def leases(self, device: int) -> Answer:
        if device != -1 and not self._has(device):
            return refused(DEVICE, device)
        rows = [
            f"{lease.green.sms.sm_count}/{len(lease.streams)}/{int(lease.shared)}"
            for lease in self.leases_now.values()
            if device in (-1, lease.device)
        ]
        return Answer(OK, (rows,))

    # ---- Operations on leases and other objects ----

    def _lease(self, name: str) -> Lease:
        found = self.names[name]
        assert isinstance(found, Lease)
        return found

    def _ended(self, name: str) -> bool:
        found = self.names.get(name)
        return isinstance(found, Stream) and any(
            lease.ended and lease.green is found.green
            for lease in self.names.values()
            if isinstance(lease, Lease)
        )

    def _end(self, name: str) -> None:
        lease = self._lease(name)
        lease.ended = True
        self.greens.remove(lease.green)
        del self.leases_now[name]
        self.closed.add(name)

    def close(self, name: str) -> Answer:
        found = self.names[name]
        if name in self.closed:
            return refused(HANDLE)
        if isinstance(found, Lease):
            self._end(name)
            return Answer(OK)
        lease = next((each for each in self.names.values()
                      if isinstance(each, Lease) and name in each.streams), None)  # fmt: skip
        if lease is None:
            return super().close(name)
        lease.streams.remove(name)
        self.closed.add(name)
        return Answer(OK)

    def stream(self, name: str, priority: int, out: str) -> Answer:
        found = self.names[name]
        if not isinstance(found, Lease):
            return super().stream(name, priority, out)
        if name in self.closed:
            return refused(HANDLE)
        if not found.atoms:
            return refused(PARKED, "is parked")
        given = max(-5, min(0, priority))
        found.streams.append(out)
        self.names[out] = Stream(found.green, given)
        return Answer(OK, (found.device, given, found.green.sms.sm_count))

    def _parked(self, name: str) -> bool:
        found = self.names.get(name)
        return isinstance(found, Stream) and not found.green.sms.atoms

    def probe(self, name: str) -> Answer:
        if self._parked(name) and name not in self.closed and not self._ended(name):
            return refused(PARKED, "is parked")
        return refused(ENDED) if self._ended(name) else super().probe(name)

    def get(self, name: str, kind: str, out: str) -> Answer:
        return refused(ENDED) if self._ended(name) else super().get(name, kind, out)

    def record(self, name: str, event: str) -> Answer:
        assert isinstance(self.names[event], Event)
        return refused(ENDED) if self._ended(name) else super().record(name, event)

    def simple(self, *names: str) -> Answer:
        if any(self._ended(name) and name not in self.closed for name in names):
            return refused(ENDED)
        return super().simple(*names)

    def split(
        self, name: str, flags: str, requests: Sequence[structured.Request], out: str
    ) -> Answer:
        words = flags.split("+")
        if "exclude_leased" not in words:
            return super().split(name, flags, requests, out)
        sms = self._sms(name)
        if sms is None:
            return refused(TYPE)
        blocked = self._blocked(sms.device, sms.family)
        if blocked is None or set(words) - {"exclude_leased", "exact"}:
            raise Undecided
        held = EMPTY.union(*(each.atoms for each in self._on(sms.device)
                             if each.family == sms.family), blocked)  # fmt: skip
        self.names["exclude_leased"] = self._set_of(sms, sms.atoms - held)
        left = "+".join(word for word in words if word != "exclude_leased") or "-"
        answer = super().split("exclude_leased", left, requests, out)
        del self.names["exclude_leased"]
        return answer if answer.result == OK else refused(answer.result)

"""The atoms of leases by the text of gcx.h under "Which SMs".

The model computes every reading of a sentence. If two readings yield different atoms, the answer is
Undecided and there is no vector. Atoms are numbered from 0; the remainder atom is the last.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tests.vectors import planner

Atoms = frozenset[int]


class Undecided(Exception):
    """gcx.h does not decide the answer."""


class Shape(NamedTuple):
    """A family of a device: the number and size of its atoms, and the size of the remainder or 0"""

    number: int
    size: int
    remainder: int

    @property
    def all(self) -> Atoms:
        return frozenset(range(self.number + (self.remainder != 0)))

    def has_remainder(self, atoms: Iterable[int]) -> bool:
        return self.remainder != 0 and self.number in atoms

    def units(self, atoms: Iterable[int]) -> list[int]:
        return sorted(atom for atom in atoms if atom < self.number)

    def sms(self, atoms: Iterable[int]) -> int:
        return sum(self.size if atom < self.number else self.remainder for atom in atoms)

    def plan(self, counts: Sequence[int], among: Atoms) -> planner.Plan | None:
        """Returns the atoms of each count: "counted and rounded as by gcx_sm_split"."""
        remainder = self.remainder if self.has_remainder(among) else 0
        return planner.plan(counts, len(self.units(among)), self.size, remainder)


def the_same(readings: Iterable[Atoms]) -> Atoms:
    found = set(readings)
    if len(found) != 1:
        raise Undecided
    return found.pop()


def first_free(shape: Shape, count: int, free: Atoms) -> Atoms | None:
    """Returns the atoms of a new lease: "the first free ones, as a split's group does"."""
    found = shape.plan([count], free)
    if found is None or not free:
        return None
    remainder = shape.number if shape.has_remainder(free) else None
    groups, _ = planner.placed(found, shape.units(free), remainder)
    return frozenset(groups[0])


def most_shared(shape: Shape, count: int, sharers: dict[int, int], free: Atoms) -> Atoms:
    """Returns the shared atoms of a new lease: "A shared lease takes what others share already
    before what is free". sharers has the number of other leases that share each atom."""
    found = shape.plan([count], free | frozenset(sharers))
    if found is None or found.remainder_holder is not None:
        raise Undecided
    by_number = shape.units(sharers)
    most_first = sorted(by_number, key=lambda atom: (-sharers[atom], atom))
    orders = [[*shared, *shape.units(free)] for shared in (by_number, most_first)]
    return the_same(frozenset(order[: found.atoms[0]]) for order in orders)


def grown(shape: Shape, has: Atoms, more: int, offered: Atoms, upward: bool) -> Atoms:
    """Applies: "Growing keeps every atom and adds the next ones". Readings: the
    ones after its first or its last atom, then from either end. With the remainder atom downward,
    or from the last atom on, like a split's group."""
    units = shape.units(has)
    begins: list[int | None] = [units[0], units[-1]] if units else []
    if not units or not upward:
        begins.append(None)
    readings = []
    for begin in begins:
        for from_near in (True, False):
            got = set(has)
            for _ in range(more):
                left = sorted(offered - got)
                ahead = [a for a in left if begin is None or (a > begin) == upward]
                up = upward if ahead else upward != from_near
                got.add((ahead or left)[0 if up else -1])
            readings.append(frozenset(got))
    return the_same(readings)


def shrunk(shape: Shape, has: Atoms, fewer: int, upward: bool) -> Atoms:
    """Applies: "Shrinking gives up the last ones"."""
    units = shape.units(has)
    gone = units[len(units) - fewer :] if upward else units[:fewer]
    return has - frozenset(gone)


def nearest(shape: Shape, has: Atoms, fewer: int, to: Atoms) -> Atoms:
    """Returns the atoms that a lease loses to a growing one: "those that are nearest"."""
    target, units = shape.units(to), shape.units(has)
    # Undecided which side is nearer if there are atoms on both sides.
    if not target or (units[0] < target[-1] and target[0] < units[-1]):
        raise Undecided
    return frozenset(units[:fewer] if target[0] < units[0] else units[len(units) - fewer :])


class Change(NamedTuple):
    """A lease in a change, and the number of atoms that it gains, without the remainder atom"""

    before: Atoms
    after_remainder: Atoms  # the remainder atom, if the lease has it afterwards
    by: int


def _directions(shape: Shape, change: Change) -> tuple[bool, ...]:
    """Applies: "A lease with the odd atom does both from the other end"."""
    before, after = shape.has_remainder(change.before), bool(change.after_remainder)
    return (not after,) if before == after else (True, False)


def resized(
    shape: Shape, counts: Sequence[int], holdings: Sequence[Atoms], free: Atoms
) -> list[Atoms] | None:
    """Returns the atoms of leases after an operation, or None if there are too few SMs."""
    pool = free.union(*holdings)
    found = shape.plan(counts, pool)
    if found is None:
        return None
    remainder = frozenset([shape.number]) if shape.remainder else frozenset()
    changes = [
        Change(
            has,
            remainder if found.remainder_holder == index else frozenset(),
            found.atoms[index] - len(shape.units(has)),
        )
        for index, has in enumerate(holdings)
    ]
    for change, group in zip(changes, found.atoms):
        larger = shape.sms(change.after_remainder) + group * shape.size > shape.sms(change.before)
        if larger and shape.has_remainder(change.before) and not change.after_remainder:
            raise Undecided  # "growing keeps every atom", but the count is met without it
    growers = [change for change in changes if change.by > 0]
    shrinkers = [change for change in changes if change.by < 0]
    remaining = {change: (change.before - remainder) | change.after_remainder for change in changes}
    if not growers:
        after = {
            change: the_same(
                shrunk(shape, remaining[change], -change.by, up)
                for up in _directions(shape, change)
            )
            for change in changes
        }
    elif not shrinkers:
        after = _all_grow(shape, changes, remaining, free - remainder)
    elif len(growers) == 1:
        after = _one_grows(shape, growers[0], shrinkers, remaining, free - remainder)
    else:
        raise Undecided
    return [after[change] for change in changes]


def _all_grow(
    shape: Shape, changes: Sequence[Change], remaining: dict[Change, Atoms], free: Atoms
) -> dict[Change, Atoms]:
    after = {
        change: the_same(
            grown(shape, remaining[change], change.by, free, up)
            for up in _directions(shape, change)
        )
        for change in changes
    }
    # The header does not say which lease chooses first. It matters only if they meet.
    taken = [after[change] for change in changes]
    if sum(map(len, taken)) != len(frozenset().union(*taken)):
        raise Undecided
    return after


def _one_grows(
    shape: Shape,
    grower: Change,
    shrinkers: Sequence[Change],
    remaining: dict[Change, Atoms],
    free: Atoms,
) -> dict[Change, Atoms]:
    if any(
        shape.has_remainder(change.before) != bool(change.after_remainder) for change in remaining
    ):
        raise Undecided  # which is "the other end", before or after?
    after = dict(remaining)
    given = frozenset[int]()
    for change in shrinkers:
        gone = nearest(shape, remaining[change], -change.by, grower.before)
        after[change] = remaining[change] - gone
        given |= gone
    if grower.by != len(free | given):
        # In one reading, the nearer of the free and the released atoms come first.
        for change in shrinkers:
            for up in _directions(shape, change):
                if shrunk(shape, remaining[change], -change.by, up) != after[change]:
                    raise Undecided
    after[grower] = the_same(
        grown(shape, remaining[grower], grower.by, free | given, up)
        for up in _directions(shape, grower)
    )
    if grower.by != len(free | given) and not given <= after[grower]:
        raise Undecided
    return after

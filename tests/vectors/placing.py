"""Which atoms leases have, as gcx.h says under "Which SMs", in its plainest form: every way to read
a sentence is computed, and where two come to different atoms the answer is Undecided: no vector.

Atoms are numbers from 0 on; the odd one, if there is one, is the last.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tests.vectors import planner

Atoms = frozenset[int]


class Undecided(Exception):
    """gcx.h doesn't say which."""


class Shape(NamedTuple):
    """A family of a device: how many atoms but for the odd one, their size, the odd one's or 0."""

    number: int
    size: int
    odd: int

    @property
    def all(self) -> Atoms:
        return frozenset(range(self.number + (self.odd != 0)))

    def has_odd(self, atoms: Iterable[int]) -> bool:
        return self.odd != 0 and self.number in atoms

    def units(self, atoms: Iterable[int]) -> list[int]:
        return sorted(atom for atom in atoms if atom < self.number)

    def sms(self, atoms: Iterable[int]) -> int:
        return sum(self.size if atom < self.number else self.odd for atom in atoms)

    def plan(self, counts: Sequence[int], among: Atoms) -> planner.Plan | None:
        """How many atoms each gets of these: "counted and rounded as by gcx_sm_split"."""
        odd = self.odd if self.has_odd(among) else 0
        return planner.plan(counts, len(self.units(among)), self.size, odd)


def the_same(readings: Iterable[Atoms]) -> Atoms:
    found = set(readings)
    if len(found) != 1:
        raise Undecided
    return found.pop()


def first_free(shape: Shape, count: int, free: Atoms) -> Atoms | None:
    """What a new lease gets. "It takes the first free ones, as a split's group does." """
    found = shape.plan([count], free)
    if found is None or not free:
        return None
    odd = shape.number if shape.has_odd(free) else None
    groups, _ = planner.placed(found, shape.units(free), odd)
    return frozenset(groups[0])


def most_shared(
    shape: Shape, count: int, have: Atoms, sharers: dict[int, int], free: Atoms
) -> Atoms | None:
    """What a shared lease has beside what is its alone. "A shared lease takes what others share
    already before what is free." sharers: how many others share each atom."""
    among = have | free | frozenset(sharers)
    if count == planner.REST:
        return among or None
    found = shape.plan([count], among)
    if found is None:
        return None
    if found.odd_holder is not None or shape.has_odd(have):
        raise Undecided
    wanted = found.atoms[0]
    has = sorted(have)
    if wanted < len(has):
        fewest = sorted(has, key=lambda atom: (-sharers.get(atom, 0), atom))
        return the_same([frozenset(has[:wanted]), frozenset(fewest[:wanted])])
    readings = []
    for by_number in (True, False):
        for begin in (0, min(has, default=0), max(has, default=0)):
            shared = [atom for atom in shape.units(sharers) if atom not in have]
            if not by_number:
                shared.sort(key=lambda atom: (-sharers[atom], atom))
            rest = [atom for atom in shape.units(free) if atom not in have]
            later = [[a for a in part if a >= begin] or part for part in (shared, rest)]
            order = [a for part, all_ in zip(later, (shared, rest)) for a in (*part, *all_)]
            unique = list(dict.fromkeys(order))
            # What others share comes first, whole.
            unique.sort(key=lambda atom: atom in rest)
            readings.append(frozenset((*has, *unique[: wanted - len(has)])))
    return the_same(readings)


def grown(shape: Shape, has: Atoms, more: int, offered: Atoms, upward: bool) -> Atoms:
    """ "Growing keeps every atom and adds the next ones": after its first or its last, and from
    wherever there are some once there are none left. With the odd atom the same downward, or from
    the last on, as a split's group takes them."""
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
    """ "Shrinking gives up the last ones." """
    units = shape.units(has)
    gone = units[len(units) - fewer :] if upward else units[:fewer]
    return has - frozenset(gone)


def nearest(shape: Shape, has: Atoms, fewer: int, to: Atoms) -> Atoms:
    """What one gives up while another grows: "those that are nearest to who grows"."""
    target, units = shape.units(to), shape.units(has)
    # With some on both sides the nearest are those on which side?
    if not target or (units[0] < target[-1] and target[0] < units[-1]):
        raise Undecided
    return frozenset(units[:fewer] if target[0] < units[0] else units[len(units) - fewer :])


class Change(NamedTuple):
    """One lease in a change: how many atoms but for the odd one it gets or gives."""

    before: Atoms
    after_odd: Atoms  # the odd atom, if it has that afterwards
    by: int


def _directions(shape: Shape, change: Change) -> tuple[bool, ...]:
    """ "A lease with the odd atom does both from the other end." """
    before, after = shape.has_odd(change.before), bool(change.after_odd)
    return (not after,) if before == after else (True, False)


def resized(
    shape: Shape, counts: Sequence[int], holdings: Sequence[Atoms], free: Atoms
) -> list[Atoms] | None:
    """What leases have after one operation; None: the SMs don't suffice."""
    pool = free.union(*holdings)
    found = shape.plan(counts, pool)
    if found is None:
        return None
    odd = frozenset([shape.number]) if shape.odd else frozenset()
    changes = [
        Change(
            has,
            odd if found.odd_holder == index else frozenset(),
            found.atoms[index] - len(shape.units(has)),
        )
        for index, has in enumerate(holdings)
    ]
    for change, group in zip(changes, found.atoms):
        larger = shape.sms(change.after_odd) + group * shape.size > shape.sms(change.before)
        if larger and shape.has_odd(change.before) and not change.after_odd:
            raise Undecided  # "growing keeps every atom", and yet the count is met without it
    growers = [change for change in changes if change.by > 0]
    shrinkers = [change for change in changes if change.by < 0]
    kept = {change: (change.before - odd) | change.after_odd for change in changes}
    if not growers:
        after = {
            change: the_same(
                shrunk(shape, kept[change], -change.by, up) for up in _directions(shape, change)
            )
            for change in changes
        }
    elif not shrinkers:
        after = _all_grow(shape, changes, kept, free - odd)
    elif len(growers) == 1:
        after = _one_grows(shape, growers[0], shrinkers, kept, free - odd)
    else:
        raise Undecided
    return [after[change] for change in changes]


def _all_grow(
    shape: Shape, changes: Sequence[Change], kept: dict[Change, Atoms], free: Atoms
) -> dict[Change, Atoms]:
    after = {
        change: the_same(
            grown(shape, kept[change], change.by, free, up) for up in _directions(shape, change)
        )
        for change in changes
    }
    # Who chooses first isn't said; where they don't meet it doesn't matter.
    taken = [after[change] for change in changes]
    if sum(map(len, taken)) != len(frozenset().union(*taken)):
        raise Undecided
    return after


def _one_grows(
    shape: Shape,
    grower: Change,
    shrinkers: Sequence[Change],
    kept: dict[Change, Atoms],
    free: Atoms,
) -> dict[Change, Atoms]:
    if any(shape.has_odd(change.before) != bool(change.after_odd) for change in kept):
        raise Undecided  # which is "the other end", before or after?
    after = dict(kept)
    given = frozenset[int]()
    for change in shrinkers:
        gone = nearest(shape, kept[change], -change.by, grower.before)
        after[change] = kept[change] - gone
        given |= gone
    if grower.by != len(free | given):
        # Whether it takes what is free or what is given, the nearer comes first in one reading.
        for change in shrinkers:
            for up in _directions(shape, change):
                if shrunk(shape, kept[change], -change.by, up) != after[change]:
                    raise Undecided
    after[grower] = the_same(
        grown(shape, kept[grower], grower.by, free | given, up) for up in _directions(shape, grower)
    )
    if grower.by != len(free | given) and not given <= after[grower]:
        raise Undecided
    return after

"""The rule by which a set of atoms is divided, in its plainest form: all ways are tried.

"What can be given is given, whatever the order of the requests, with the fewest SMs beyond what
was asked, then with the most counts met exactly, then by the order of the requests." (gcx.h)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

#: GCX_REST, as a count: what the others leave. In the files it is the word rest.
REST = 0xFFFFFFFF


def count_of(text: int | str) -> int:
    """A count as the files write it."""
    return REST if text == "rest" else int(text)


class Plan(NamedTuple):
    """For each group the number of whole atoms, and which group has the odd one, if one has."""

    atoms: tuple[int, ...]
    odd_holder: int | None
    beyond: int
    """SMs beyond what was asked"""


def _needed(count: int, size: int, odd: int) -> int:
    """Atoms that a group of so many SMs needs, which has the odd one of so many SMs or 0."""
    return -(-max(count - odd, 0) // size)


def _shared(rests: Sequence[int], left: int, size: int, odd: int) -> dict[int, int] | None:
    """The atoms left, given one by one to whom has the fewest SMs. The last has the odd one."""
    sizes = dict.fromkeys(rests, 0)
    if odd:
        sizes[rests[-1]] = odd
    atoms = dict.fromkeys(rests, 0)
    for _ in range(left):
        poorest = min(rests, key=lambda number: (sizes[number], number))
        sizes[poorest] += size
        atoms[poorest] += 1
    return atoms if all(sizes.values()) else None


def plan(counts: Sequence[int], number: int, size: int, odd: int) -> Plan | None:
    """Divides so many atoms of a size, and an odd one of so many SMs or 0; None: they don't fit.
    REST takes what the others leave."""
    rests = [group for group, count in enumerate(counts) if count == REST]
    wanted = [0 if count == REST else count for count in counts]
    best: tuple[tuple[int, int], Plan] | None = None
    holders: list[int | None] = [None]
    if odd:
        holders += [group for group, count in enumerate(counts) if count != REST]
    for holder in holders:
        atoms = [
            _needed(count, size, odd if group == holder else 0)
            for group, count in enumerate(wanted)
        ]
        given = [n * size + (odd if group == holder else 0) for group, n in enumerate(atoms)]
        left = number - sum(atoms)
        if left < 0:
            continue
        odd_left = odd if holder is None else 0
        if rests:
            shared = _shared(rests, left, size, odd_left)
            if shared is None:
                continue
            for group, share in shared.items():
                atoms[group] = share
        beyond = sum(g - c for g, c in zip(given, wanted) if c)
        inexact = sum(g != c for g, c in zip(given, wanted) if c)
        has_odd = rests[-1] if rests and odd_left else holder
        candidate = ((beyond, inexact), Plan(tuple(atoms), has_odd, beyond))
        if best is None or candidate[0] < best[0]:
            best = candidate
    return best[1] if best else None


def placed(found: Plan, atoms: Sequence[int], odd: int | None) -> tuple[list[set[int]], set[int]]:
    """Which atoms each group has, and which are left: in the order of the groups from the first on,
    but for the group with the odd one, which takes its others from the last ones."""
    free = list(atoms)
    groups: list[set[int]] = [set() for _ in found.atoms]
    if found.odd_holder is not None and odd is not None:
        number = found.atoms[found.odd_holder]
        groups[found.odd_holder] = {odd, *free[len(free) - number :]}
        free = free[: len(free) - number]
    for group, number in enumerate(found.atoms):
        if group != found.odd_holder:
            groups[group] = set(free[:number])
            free = free[number:]
    left = set(free)
    if odd is not None and found.odd_holder is None:
        left.add(odd)
    return groups, left

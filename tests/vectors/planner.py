"""The rule by which a set of atoms is divided, applied by trying all ways.

"What can be given is given, whatever the order of the requests, with the fewest SMs beyond what
was asked, then with the most counts met exactly, then by the order of the requests." (gcx.h)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

#: The count GCX_REST: all SMs that the other groups leave. In the files it is the word rest.
REST = 0xFFFFFFFF


def count_of(text: int | str) -> int:
    """Parses a count of the files."""
    return REST if text == "rest" else int(text)


class Plan(NamedTuple):
    """The number of whole atoms of each group, and the group with the remainder atom, if any"""

    atoms: tuple[int, ...]
    remainder_holder: int | None
    beyond: int
    """SMs beyond the requested counts"""


def _needed(count: int, size: int, remainder: int) -> int:
    """Returns the whole atoms that a group needs besides its remainder atom, if any."""
    return -(-max(count - remainder, 0) // size)


def _shared(rests: Sequence[int], left: int, size: int, remainder: int) -> dict[int, int] | None:
    """Distributes the atoms one by one to the group with the fewest SMs. The last group gets the
    remainder atom."""
    sizes = dict.fromkeys(rests, 0)
    if remainder:
        sizes[rests[-1]] = remainder
    atoms = dict.fromkeys(rests, 0)
    for _ in range(left):
        smallest = min(rests, key=lambda number: (sizes[number], number))
        sizes[smallest] += size
        atoms[smallest] += 1
    return atoms if all(sizes.values()) else None


def plan(counts: Sequence[int], number: int, size: int, remainder: int) -> Plan | None:
    """Divides atoms of a size, and a remainder atom of a size or 0. Returns None if the counts
    don't fit."""
    rests = [group for group, count in enumerate(counts) if count == REST]
    requested = [0 if count == REST else count for count in counts]
    best: tuple[tuple[int, int], Plan] | None = None
    holders: list[int | None] = [None]
    if remainder:
        holders += [group for group, count in enumerate(counts) if count != REST]
    for holder in holders:
        atoms = [
            _needed(count, size, remainder if group == holder else 0)
            for group, count in enumerate(requested)
        ]
        given = [n * size + (remainder if group == holder else 0) for group, n in enumerate(atoms)]
        left = number - sum(atoms)
        if left < 0:
            continue
        remainder_left = remainder if holder is None else 0
        if rests:
            shared = _shared(rests, left, size, remainder_left)
            if shared is None:
                continue
            for group, share in shared.items():
                atoms[group] = share
        beyond = sum(g - c for g, c in zip(given, requested) if c)
        inexact = sum(g != c for g, c in zip(given, requested) if c)
        has_remainder = rests[-1] if rests and remainder_left else holder
        candidate = ((beyond, inexact), Plan(tuple(atoms), has_remainder, beyond))
        if best is None or candidate[0] < best[0]:
            best = candidate
    return best[1] if best else None


def placed(
    found: Plan, atoms: Sequence[int], remainder: int | None
) -> tuple[list[set[int]], set[int]]:
    """Returns the atoms of each group and the atoms left. Groups take the first atoms in order; the
    group with the remainder atom takes the last ones."""
    free = list(atoms)
    groups: list[set[int]] = [set() for _ in found.atoms]
    if found.remainder_holder is not None and remainder is not None:
        number = found.atoms[found.remainder_holder]
        groups[found.remainder_holder] = {remainder, *free[len(free) - number :]}
        free = free[: len(free) - number]
    for group, number in enumerate(found.atoms):
        if group != found.remainder_holder:
            groups[group] = set(free[:number])
            free = free[number:]
    left = set(free)
    if remainder is not None and found.remainder_holder is None:
        left.add(remainder)
    return groups, left

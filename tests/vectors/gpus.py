"""The simulated GPUs as their profiles describe them, and the atoms of each family.

Written from docs/reference/simulated-driver.md and the recorded logs, not from the code of gcx.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

PROFILES = Path(__file__).parents[2] / "src" / "sim" / "profiles"
#: The max-cluster family has atoms of 24 SMs. Their number is the driver's choice and recorded for
#: H100 and H200 (5, with 12 SMs left). The vectors use this family only on these GPUs.
MAX_CLUSTER_ATOM = 24
MAX_CLUSTER_ATOMS = {"h100": 5, "h200": 5}
#: The first atom of the family: recorded on an H200 (split of 24, flags 2) and an H100.
MAX_CLUSTER_FIRST = frozenset(
    sm + offset for sm in (0, 12, 16, 28, 32, 44, 60, 74, 88, 102, 116, 120) for offset in (0, 1)
)


@dataclass(frozen=True)
class Gpu:
    """A GPU and the layout of its SMs"""

    key: str
    name: str
    capability: tuple[int, int]
    sm_count: int
    gpcs: tuple[tuple[int, ...], ...]
    recorded: dict[str, tuple[tuple[int, ...], ...]]
    domain_count: int
    domain_sm_count: int
    """The SMs that each locality domain has at least"""

    @property
    def has_clusters(self) -> bool:
        return self.capability >= (9, 0)

    @property
    def min_group(self) -> int:
        """SMs of the smallest coscheduled group"""
        return 8 if self.has_clusters else 4

    def atoms(self, family: str) -> tuple[tuple[int, ...], ...]:
        """The atoms of a family as sets of SMs, the remainder atom last. Not for max-cluster, of
        which only the first atom is recorded."""
        return _atoms(self, family)

    def __hash__(self) -> int:
        return hash(self.key)


@cache
def _atoms(gpu: Gpu, family: str) -> tuple[tuple[int, ...], ...]:
    if family in gpu.recorded:
        return gpu.recorded[family]
    if family == "fine":
        return tuple((first, first + 1) for first in range(0, gpu.sm_count, 2))
    return _coscheduled(gpu)


def _coscheduled(gpu: Gpu) -> tuple[tuple[int, ...], ...]:
    """Returns groups of the smallest size, a piece of each GPC in turn. The rest of the GPCs is the
    remainder; before compute capability 9.0 it forms further groups."""
    size = gpu.min_group
    groups: list[tuple[int, ...]] = []
    left: list[int] = []
    for number in range(max(map(len, gpu.gpcs)) // size + 1):
        for gpc in gpu.gpcs:
            piece = gpc[number * size : (number + 1) * size]
            if len(piece) == size:
                groups.append(piece)
            else:
                left.extend(piece)
    left.sort()
    if not gpu.has_clusters:
        while len(left) >= size:
            groups.append(tuple(left[:size]))
            left = left[size:]
    return (*groups, tuple(left)) if left else tuple(groups)


def _distributed(sizes: list[int]) -> tuple[tuple[int, ...], ...]:
    """Distributes SMs in pairs to GPCs of these sizes."""
    gpcs: list[list[int]] = [[] for _ in sizes]
    number = 0
    while number < sum(sizes):
        for gpc, size in zip(gpcs, sizes):
            if len(gpc) < size:
                gpc += (number, number + 1)
                number += 2
    return tuple(map(tuple, gpcs))


@cache
def gpu(key: str) -> Gpu:
    """Reads the profile of a simulated GPU."""
    fields: dict[str, str] = {}
    gpcs: list[tuple[int, ...]] = []
    recorded: dict[str, list[tuple[int, ...]]] = {}
    family = ""
    domains = 0
    for line in (PROFILES / f"{key}.profile").read_text().splitlines():
        word, _, value = line.split("#")[0].strip().partition(" ")
        value = value.strip()
        if word == "family":
            family = value
            recorded[family] = []
        elif word in ("group", "remainder"):
            recorded[family].append(tuple(sorted(map(int, value.split()))))
        elif word == "gpc":
            gpcs.append(tuple(map(int, value.split())))
        elif word == "locality_domain":
            domains += 1
        elif word:
            fields[word] = value
    major, minor = fields["compute_capability"].split(".")
    # The profile has groups of 8 with flag 2, but the family has groups of 24.
    recorded.pop("max-cluster", None)
    if "gpc_sizes" in fields:
        gpcs_by_size = _distributed(list(map(int, fields["gpc_sizes"].split())))
    else:
        gpcs_by_size = tuple(gpcs)
    return Gpu(
        key,
        "SIMULATED " + fields["name"],
        (int(major), int(minor)),
        int(fields["sm_count"]),
        gpcs_by_size,
        {name: tuple(groups) for name, groups in recorded.items()},
        max(domains, 1),
        int(fields.get("locality_domain_sm_count", fields["sm_count"])),
    )


def sizes_of(device: Gpu, family: str) -> tuple[int, int, int]:
    """Returns the number of atoms of a family, the SMs of one, and those of the remainder or 0."""
    if family == "max-cluster":
        count = MAX_CLUSTER_ATOMS[device.key]
        return count, MAX_CLUSTER_ATOM, device.sm_count - count * MAX_CLUSTER_ATOM
    atoms = device.atoms(family)
    size = len(atoms[0])
    remainder = 0 if len(atoms[-1]) == size else len(atoms[-1])
    return len(atoms) - (remainder != 0), size, remainder

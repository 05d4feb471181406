"""Verification: measures which SMs streams run on, and shows them as text and as a picture."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Union

from gcx import _gcx
from gcx._checks import DeviceLike, items_of
from gcx._convert import atoms_in, version_of
from gcx._device import Device
from gcx._errors import NotSupportedError
from gcx._external import StreamLike, looks_like_a_stream
from gcx._graph import stream_of
from gcx._lease import Lease
from gcx._partition import Partition, split
from gcx._record import json_of
from gcx._request import Count, Counts, Family, SplitOptions, count_or_rest, requests_of
from gcx._sm_map import MapGroup, SmMap, count_of, escape, ranges

_One = Union[Count, Partition, Lease, StreamLike]
_Verifiable = Union[SplitOptions, _One, Iterable[_One]]


class VerifiedGroup(NamedTuple):
    """The SMs that one stream ran on."""

    name: str  #: The letter in the map.
    sm_count: int  #: How many SMs it should have.
    seen: tuple[int, ...]  #: The SMs that its kernels ran on, ascending.
    asked: int | None = None  #: The count that verify was given for it, if any.
    shared: bool = False  #: Whether it belongs to a shared lease.

    def to_json(self) -> dict[str, Any]:
        """Returns the fields as values for json.dumps."""
        return json_of(self)

    def legend(self) -> str:
        """Returns the group in words."""
        text = count_of(self.sm_count, "SM")
        if self.asked is not None and self.asked != self.sm_count:
            text += f" (asked for {self.asked})"
        if len(self.seen) == self.sm_count:
            return f"{text}, all seen"
        return f"{text}, {len(self.seen)} seen"


class Verification:
    """The result of verify; true if everything is as it should be. str() is a text map of the SMs;
    notebooks show a picture.

    Attributes:
        device: The ordinal.
        device_name: Begins with "SIMULATED" on the simulated driver.
        sm_count: SMs of the device.
        driver_version: The driver's, "13.0".
        simulated: Whether the driver is the simulated one, which proves nothing.
        virtual_sm_numbers: Whether MPS makes SM numbers virtual. Then each group's begin at 0, and
            show how many SMs it has but not which.
        groups: A VerifiedGroup for each stream, in the order given.
        overlap: The SMs that were seen in more than one group; empty if virtual.
        problems: Descriptions of what is wrong; the last may say how many more there are.
        shared_by_all: The SMs that all partitions share because of dynamic parallelism, see
            Device.shared_sms.
    """

    __slots__ = (
        *("_problem_count", "device", "device_name", "driver_version", "groups", "overlap"),
        "problems",
        *("shared_by_all", "simulated", "sm_count", "virtual_sm_numbers"),
    )

    def __init__(self, found: tuple[Any, ...], groups: tuple[VerifiedGroup, ...]) -> None:
        device, _, count, virtual, _, overlap, shared_by_all, problems = found
        self._problem_count = count
        version, _, simulated, _, _ = _gcx.gcx_driver_get_info()
        self.device = device
        self.device_name = Device(device).name
        self.sm_count = Device(device).sm_count
        self.driver_version = ".".join(map(str, version_of(version)))
        self.simulated = bool(simulated)
        self.virtual_sm_numbers = bool(virtual)
        self.groups = groups
        self.overlap = atoms_in(overlap)
        self.shared_by_all = atoms_in(shared_by_all)
        self.problems = problems.splitlines()

    @property
    def ok(self) -> bool:
        """Whether each stream ran on as many SMs as promised, and no two groups, except shared
        leases, have an SM in common."""
        return not self.problems

    @property
    def unused(self) -> tuple[int, ...]:
        """The SMs that no group ran on; empty if SM numbers are virtual."""
        return () if self.virtual_sm_numbers else self._map().unused

    def __bool__(self) -> bool:
        return self.ok

    def _map(self) -> SmMap:
        groups = [MapGroup(group.name, group.seen, group.legend()) for group in self.groups]
        return SmMap(self.sm_count, groups)

    def _verdict(self) -> str:
        problems = self.problems
        if not problems and self.virtual_sm_numbers:
            return (
                "ok, as far as can be seen: each partition ran on as many SMs as promised. Under "
                "MPS SM numbers\nare virtual, each partition's from 0: they don't tell which SMs "
                "those are, nor whether another\npartition or process has them"
            )
        if not problems and self.overlap:
            return (
                "ok: each partition ran on as many SMs as promised; leases that are shared have "
                f"{count_of(len(self.overlap), 'SM')} in common: {ranges(self.overlap)}"
            )
        if not problems:
            return "ok: each partition ran on as many SMs as promised, and no SM is in two"
        return "\n  ".join([f"FAILED: {count_of(self._problem_count, 'problem')}", *problems])

    def __str__(self) -> str:
        lines = ["SIMULATED: no GPU is involved"] if self.simulated else []
        lines.append(f"device {self.device}: {self.device_name}, {self.sm_count} SMs")
        if self.virtual_sm_numbers:
            lines += [f"  {group.name}  {group.legend()}" for group in self.groups]
        else:
            lines += self._map().lines()
        return "\n".join([*lines, self._verdict()])

    def __repr__(self) -> str:
        counts = ", ".join(str(group.sm_count) for group in self.groups)
        return f"<gcx.Verification of {counts} SMs: {'ok' if self.ok else 'NOT ok'}>"

    def svg(self) -> str:
        """Returns the map of SMs as SVG, for light and dark pages.

        Raises:
            NotSupportedError: SM numbers are virtual.
        """
        if self.virtual_sm_numbers:
            raise NotSupportedError(
                "under MPS SM numbers are virtual, so there is no map of SMs to draw"
            )
        title = (
            f"{count_of(len(self.groups), 'partition')} of {count_of(self.sm_count, 'SM')}: "
            f"{'as promised' if self.ok else 'NOT as promised'}"
        )
        return self._map().svg(title, f"{self.device_name}, CUDA {self.driver_version}")

    def _repr_svg_(self) -> str | None:
        return None if self.virtual_sm_numbers else self.svg()

    def _repr_html_(self) -> str:
        if self.virtual_sm_numbers:
            return f"<pre>{escape(str(self))}</pre>"
        return f"{self.svg()}<p>{escape(self._verdict())}</p>"


def _requested_counts(given: Counts) -> list[int | None]:
    rows = requests_of(given)
    return [count_or_rest(row if isinstance(row, int) else row[0]) for row in rows]


def _letters(index: int) -> str:
    """Returns A to Z, then AA, AB."""
    return (_letters(index // 26 - 1) if index >= 26 else "") + chr(ord("A") + index % 26)


def verify(
    what: _Verifiable, *, device: DeviceLike = 0, family: Family | None = None
) -> Verification:
    """Measures which SMs partitions use, by a kernel that fills each stream's SMs and notes their
    numbers.

    Args:
        what: Partitions, leases, or stream objects as in Stream.from_native, but no bare ints; or
            counts as for split, which are split, measured and closed again.
        device: The device of counts.
        family: The family of counts.

    Raises:
        As split and Stream.sm_ids; TypeError, InvalidValueError (a ValueError) for a mixture, or
        streams of two devices.
    """
    given: Any = what
    if looks_like_a_stream(given):
        return _probe([given])
    items = items_of(given)
    if items is not None:
        streams = [item for item in items if looks_like_a_stream(item)]
        if streams:
            if len(streams) != len(items):
                raise TypeError("verify takes partitions and streams, or counts, not a mixture")
            return _probe(streams)
        given = items
    with split(given, device=device, family=family) as parts:
        return _probe(parts, _requested_counts(given))


def _probe(items: Sequence[Any], requested: Sequence[int | None] | None = None) -> Verification:
    streams = [stream_of(item) for item in items]
    found, seen = _gcx.gcx_verify([stream._live() for stream in streams])
    groups = tuple(
        VerifiedGroup(
            _letters(index),
            sm_count,
            atoms_in(sms),
            None if requested is None else requested[index],
            bool(shared),
        )
        for index, (sm_count, _, _, shared, sms) in enumerate(seen)
    )
    return Verification(found, groups)

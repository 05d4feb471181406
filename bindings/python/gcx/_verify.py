"""Proof: which SMs do streams really run on? As numbers, text and a picture.

The command `gcx verify` draws the same map in the same words; a test compares the two.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from gcx import _gcx
from gcx._context import Stream
from gcx._device import Device
from gcx._errors import InvalidValueError
from gcx._partition import Partition, split
from gcx._request import NO_LISTS, Count, SplitOptions, requests_of

_COLUMNS = 16
# White letters are readable on each, and colour-blind eyes tell them apart.
_COLOURS = ("#0067a5", "#b34700", "#00785a", "#9c4079", "#6b5b00", "#4b4fa8")
_STYLE = """<style>
svg { font-family: system-ui, sans-serif; font-size: 14px }
.paper { fill: #ffffff } text { fill: #1c1c1c }
.title { font-size: 18px; font-weight: 600 } .note { fill: #5a5a5a }
.free { fill: #dcdcdc } .several { fill: #d00000 }
.name, .id, .free-id { text-anchor: middle }
.name { fill: #ffffff; font-size: 12px; font-weight: 600 }
.id { fill: #ffffff; font-size: 9px } .free-id { fill: #5a5a5a; font-size: 9px }
@media (prefers-color-scheme: dark) {
.paper { fill: #16181c } text { fill: #ececec } .note { fill: #a8a8a8 }
.free { fill: #3a3d42 } .free-id { fill: #b8b8b8 } .name, .id { fill: #ffffff }
}
</style>
"""


class VerifiedGroup(NamedTuple):
    """What one stream showed.

    Attributes:
        name: The letter in the map.
        sm_count: SMs that were promised.
        seen: Numbers of the SMs that its kernels ran on, ascending.
        asked: The count that verify was given for it; None if it was given none.
    """

    name: str
    sm_count: int
    seen: tuple[int, ...]
    asked: int | None = None

    def legend(self) -> str:
        """The group in words."""
        text = _count_of(self.sm_count, "SM")
        if self.asked is not None and self.asked != self.sm_count:
            text += f" (asked for {self.asked})"
        if len(self.seen) == self.sm_count:
            return f"{text}, all seen"
        return f"{text}, {len(self.seen)} seen"


class Verification:
    """What verify found; true if all is well. Printed it is the map of SMs, in a notebook the
    picture.

    Attributes:
        device: The ordinal.
        device_name: As the driver reports it; begins with "SIMULATED" on the simulated driver.
        sm_count: SMs of the device.
        driver_version: The driver's, "13.0".
        simulated: Whether the driver is the simulated one, which proves nothing.
        groups: A VerifiedGroup for each stream, in the order given.
    """

    __slots__ = ("device", "device_name", "driver_version", "groups", "simulated", "sm_count")

    def __init__(self, device: Device, groups: tuple[VerifiedGroup, ...]) -> None:
        version, _, simulated, _ = _gcx.gcx_driver_get_info()
        self.device = device.ordinal
        self.device_name = device.name
        self.sm_count = device.sm_count
        self.driver_version = f"{version // 1000}.{version % 1000 // 10}"
        self.simulated = bool(simulated)
        self.groups = groups

    @property
    def ok(self) -> bool:
        """Whether each stream ran on as many SMs as promised, and no SM is in two groups."""
        return not self.problems

    @property
    def overlap(self) -> tuple[int, ...]:
        """Numbers of the SMs that were seen in more than one group."""
        return tuple(number for number, owners in self._owners().items() if len(owners) > 1)

    @property
    def problems(self) -> list[str]:
        """What isn't as it should be, in words; empty if all is well."""
        found = []
        for group in self.groups:
            if len(group.seen) != group.sm_count:
                text = (
                    f"partition {group.name}: its kernels were to run on {group.sm_count} SMs and "
                    f"were seen on {len(group.seen)} ({_ranges(group.seen)})"
                )
                if len(group.seen) < group.sm_count:
                    text += "; if other work keeps the GPU busy, stop it and verify again"
                found.append(text)
        shared: dict[str, list[int]] = {}
        for number, owners in self._owners().items():
            if len(owners) > 1:
                shared.setdefault(" and ".join(owners), []).append(number)
        found += [
            f"partitions {names} share {_count_of(len(ids), 'SM')}: {_ranges(ids)}"
            for names, ids in sorted(shared.items())
        ]
        return found

    @property
    def unused(self) -> tuple[int, ...]:
        """Numbers of the SMs that no group ran on."""
        owners = self._owners()
        return tuple(number for number in range(self._cells()) if number not in owners)

    def __bool__(self) -> bool:
        return self.ok

    def _owners(self) -> dict[int, list[str]]:
        owners: dict[int, list[str]] = {}
        for group in self.groups:
            for number in group.seen:
                owners.setdefault(number, []).append(group.name)
        return dict(sorted(owners.items()))

    def _cells(self) -> int:
        """A driver may number SMs beyond the device's count; they are shown too."""
        return max([self.sm_count, *(group.seen[-1] + 1 for group in self.groups if group.seen)])

    def _verdict(self) -> str:
        problems = self.problems
        if not problems:
            return "ok: each partition ran on as many SMs as promised, and no SM is in two"
        return "\n  ".join([f"FAILED: {_count_of(len(problems), 'problem')}", *problems])

    def _unclear_legends(self) -> list[tuple[list[str], str, str]]:
        """Of the cells that are no single group's: names as _paint takes them, mark, words."""
        legends: list[tuple[list[str], str, str]] = []
        if self.unused:
            count = _count_of(len(self.unused), "SM")
            legends.append(([], ".", f"{count}, seen in no partition"))
        if self.overlap:
            count = _count_of(len(self.overlap), "SM")
            legends.append((["", ""], "!", f"{count}, seen in more than one partition"))
        return legends

    def __str__(self) -> str:
        owners = self._owners()
        width = max([1, *(len(group.name) for group in self.groups)])
        lines = []
        if self.simulated:
            lines.append("SIMULATED: no GPU is involved")
        lines.append(f"device {self.device}: {self.device_name}, {self.sm_count} SMs")
        cells = self._cells()
        for row in range(0, cells, _COLUMNS):
            marks = []
            for number in range(row, min(row + _COLUMNS, cells)):
                names = owners.get(number, [])
                mark = "." if not names else names[0] if len(names) == 1 else "!"
                marks.append(mark.rjust(width))
            lines.append(f"  SM {row:4} " + "".join(f" {mark}" for mark in marks))
        for group in self.groups:
            lines.append(
                f"  {group.name.rjust(width + 1)}  {group.legend()}: {_ranges(group.seen)}"
            )
        for _, mark, words in self._unclear_legends():
            lines.append(f"  {mark.rjust(width + 1)}  {words}")
        lines.append(self._verdict())
        return "\n".join(lines)

    def __repr__(self) -> str:
        counts = ", ".join(str(group.sm_count) for group in self.groups)
        return f"<gcx.Verification of {counts} SMs: {'ok' if self.ok else 'NOT ok'}>"

    def svg(self) -> str:
        """The map of SMs as SVG, for light and dark pages."""
        margin, top, cell = 24, 74, 34
        cells, owners = self._cells(), self._owners()
        indices = {group.name: index for index, group in enumerate(self.groups)}
        body = []
        for number in range(cells):
            x, y = margin + number % _COLUMNS * cell, top + number // _COLUMNS * cell
            body.append(_svg_cell(x, y, cell - 4, number, owners.get(number, []), indices))
        y = top + (cells + _COLUMNS - 1) // _COLUMNS * cell + 30
        legend = [
            (_paint([group.name], indices), f"{group.name}: {group.legend()}")
            for group in self.groups
        ]
        for names, _, words in self._unclear_legends():
            legend.append((_paint(names, indices), words))
        for paint, text in legend:
            body.append(
                f'<rect {paint} x="{margin}" y="{y - 13}" width="16" height="16" rx="3"/>'
                f'<text x="{margin + 26}" y="{y}">{_escape(text)}</text>'
            )
            y += 24
        width = 2 * margin + _COLUMNS * cell
        title = (
            f"{_count_of(len(self.groups), 'partition')} of {_count_of(self.sm_count, 'SM')}: "
            f"{'as promised' if self.ok else 'NOT as promised'}"
        )
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{y}" '
            f'viewBox="0 0 {width} {y}" role="img">\n{_STYLE}'
            '<rect class="paper" width="100%" height="100%"/>\n'
            f'<text class="title" x="{margin}" y="34">{_escape(title)}</text>\n'
            f'<text class="note" x="{margin}" y="56">{_escape(self.device_name)}, '
            f"CUDA {self.driver_version}</text>\n" + "\n".join(body) + "\n</svg>\n"
        )

    def _repr_svg_(self) -> str:
        return self.svg()

    def _repr_html_(self) -> str:
        return f"{self.svg()}<p>{_escape(self._verdict())}</p>"


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _paint(names: list[str], indices: dict[str, int]) -> str:
    if not names:
        return 'class="free"'
    if len(names) > 1:
        return 'class="several"'
    index = indices[names[0]]
    if index < len(_COLOURS):
        return f'fill="{_COLOURS[index]}"'
    # Further ones by turning the hue by the golden angle, so that neighbours differ.
    return f'fill="hsl({index * 137 % 360},55%,36%)"'


def _svg_cell(
    x: int, y: int, size: int, number: int, names: list[str], indices: dict[str, int]
) -> str:
    middle = x + size // 2
    name = "!" if len(names) > 1 else "".join(names)
    text = f"<title>SM {number}{': ' if names else ''}{' and '.join(names)}</title>"
    text += (
        f'<rect {_paint(names, indices)} x="{x}" y="{y}" width="{size}" height="{size}" rx="4"/>'
    )
    if names:
        text += f'<text class="name" x="{middle}" y="{y + 14}">{name}</text>'
    look = "id" if names else "free-id"
    text += f'<text class="{look}" x="{middle}" y="{y + 25}">{number}</text>'
    return f'<g class="sm" data-sm="{number}" data-partition="{name}">{text}</g>'


def _ranges(numbers: Sequence[int]) -> str:
    """0 1 2 5 as "0-2 5"."""
    out: list[list[int]] = []
    for number in numbers:
        if out and out[-1][1] == number - 1:
            out[-1][1] = number
        else:
            out.append([number, number])
    return " ".join(str(low) if low == high else f"{low}-{high}" for low, high in out) or "none"


def _count_of(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _asked(given: SplitOptions | Count | Sequence[Count]) -> list[int | None]:
    """The counts that a split was given; None for what the others leave."""
    rows = requests_of(given)
    return [(row if isinstance(row, int) else row[0]) or None for row in rows]


def _letters(index: int) -> str:
    """A to Z, then AA, AB."""
    return (_letters(index // 26 - 1) if index >= 26 else "") + chr(ord("A") + index % 26)


def verify(
    what: Partition | Stream | SplitOptions | Count | Iterable[object],
    device: object = 0,
    *,
    family: str | None = None,
) -> Verification:
    """Shows on the hardware which SMs partitions use: a kernel that fills each stream's SMs notes
    their numbers.

    Args:
        what: Partitions or streams; or counts as split takes them, which is split, looked at and
            closed again.
        device: Where counts are split.
        family: Of the split of counts.

    Raises:
        As split and Stream.sm_ids; TypeError, InvalidValueError (a ValueError) for a mixture, and
        streams of two devices.
    """
    given: Any = what
    if isinstance(given, (Partition, Stream)):
        return _probe([given])
    if hasattr(given, "__iter__") and not isinstance(given, NO_LISTS):
        given = list(given)
        streams = [item for item in given if isinstance(item, (Partition, Stream))]
        if streams:
            if len(streams) != len(given):
                raise TypeError("verify takes partitions and streams, or counts, not a mixture")
            return _probe(streams)
    parts = split(given, device, family=family)
    try:
        return _probe(parts, _asked(given))
    finally:
        for part in parts:
            part.close()


def _probe(
    items: Sequence[Partition | Stream], asked: Sequence[int | None] | None = None
) -> Verification:
    streams = [item.stream if isinstance(item, Partition) else item for item in items]
    devices = {stream.device for stream in streams}
    if len(devices) > 1:
        raise InvalidValueError(
            f"the streams are of the devices {', '.join(map(str, sorted(devices)))}; verify those "
            "of each on its own"
        )
    groups = tuple(
        VerifiedGroup(
            _letters(index),
            stream.sm_count,
            stream.sm_ids(),
            None if asked is None else asked[index],
        )
        for index, stream in enumerate(streams)
    )
    return Verification(Device(devices.pop()), groups)

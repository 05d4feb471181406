"""A map of a device's SMs and the groups that ran on them, as text and as SVG.

The command `gcx verify` draws the same map; a test compares the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

_COLUMNS = 16
# White letters are readable on each, and colour-blind readers can distinguish them.
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


class MapGroup(NamedTuple):
    """A group: its name, its SMs' numbers, ascending, and its legend."""

    name: str
    seen: tuple[int, ...]
    legend: str


class SmMap:
    """Which groups were seen on which SM.

    Attributes:
        owners: For each SM's number, ascending, the names of the groups seen on it.
        cells: How many SMs are shown; a driver may number SMs beyond the device's count.
    """

    __slots__ = ("_groups", "cells", "owners")

    def __init__(self, sm_count: int, groups: Sequence[MapGroup]) -> None:
        owners: dict[int, list[str]] = {}
        for group in groups:
            for number in group.seen:
                owners.setdefault(number, []).append(group.name)
        self.owners = dict(sorted(owners.items()))
        self.cells = max([sm_count, *(number + 1 for number in owners)])
        self._groups = groups

    @property
    def unused(self) -> tuple[int, ...]:
        """Numbers of the SMs that no group was seen on."""
        return tuple(number for number in range(self.cells) if number not in self.owners)

    @property
    def overlap(self) -> tuple[int, ...]:
        """Numbers of the SMs that several groups were seen on."""
        return tuple(number for number, names in self.owners.items() if len(names) > 1)

    def _unclear(self) -> list[tuple[list[str], str, str]]:
        """Returns names for _paint, mark and legend of the cells without exactly one group."""
        legends: list[tuple[list[str], str, str]] = []
        if self.unused:
            legends.append(([], ".", f"{count_of(len(self.unused), 'SM')}, seen in no partition"))
        if self.overlap:
            count = count_of(len(self.overlap), "SM")
            legends.append((["", ""], "!", f"{count}, seen in more than one partition"))
        return legends

    def lines(self) -> list[str]:
        """Returns the map and its legend as text."""
        width = max([1, *(len(group.name) for group in self._groups)])
        lines = []
        for row in range(0, self.cells, _COLUMNS):
            marks = []
            for number in range(row, min(row + _COLUMNS, self.cells)):
                names = self.owners.get(number, [])
                mark = "." if not names else names[0] if len(names) == 1 else "!"
                marks.append(mark.rjust(width))
            lines.append(f"  SM {row:4} " + "".join(f" {mark}" for mark in marks))
        for group in self._groups:
            lines.append(f"  {group.name.rjust(width + 1)}  {group.legend}: {ranges(group.seen)}")
        for _, mark, words in self._unclear():
            lines.append(f"  {mark.rjust(width + 1)}  {words}")
        return lines

    def svg(self, title: str, note: str) -> str:
        """Returns the map and its legend as SVG, for light and dark pages."""
        margin, top, cell = 24, 74, 34
        indices = {group.name: index for index, group in enumerate(self._groups)}
        body = []
        for number in range(self.cells):
            x, y = margin + number % _COLUMNS * cell, top + number // _COLUMNS * cell
            body.append(_svg_cell(x, y, cell - 4, number, self.owners.get(number, []), indices))
        y = top + (self.cells + _COLUMNS - 1) // _COLUMNS * cell + 30
        legend = [
            (_paint([group.name], indices), f"{group.name}: {group.legend}")
            for group in self._groups
        ]
        for names, _, words in self._unclear():
            legend.append((_paint(names, indices), words))
        for paint, text in legend:
            body.append(
                f'<rect {paint} x="{margin}" y="{y - 13}" width="16" height="16" rx="3"/>'
                f'<text x="{margin + 26}" y="{y}">{escape(text)}</text>'
            )
            y += 24
        width = 2 * margin + _COLUMNS * cell
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{y}" '
            f'viewBox="0 0 {width} {y}" role="img">\n{_STYLE}'
            '<rect class="paper" width="100%" height="100%"/>\n'
            f'<text class="title" x="{margin}" y="34">{escape(title)}</text>\n'
            f'<text class="note" x="{margin}" y="56">{escape(note)}</text>\n'
            + "\n".join(body)
            + "\n</svg>\n"
        )


def escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _paint(names: list[str], indices: dict[str, int]) -> str:
    if not names:
        return 'class="free"'
    if len(names) > 1:
        return 'class="several"'
    index = indices[names[0]]
    if index < len(_COLOURS):
        return f'fill="{_COLOURS[index]}"'
    # Turns the hue by the golden angle, so that consecutive groups differ.
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


def ranges(numbers: Sequence[int]) -> str:
    """Formats 0 1 2 5 as "0-2 5"."""
    out: list[list[int]] = []
    for number in numbers:
        if out and out[-1][1] == number - 1:
            out[-1][1] = number
        else:
            out.append([number, number])
    return " ".join(str(low) if low == high else f"{low}-{high}" for low, high in out) or "none"


def count_of(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"

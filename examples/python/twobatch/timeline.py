"""Draws what each lane of rank 0 ran when, as SVG."""

from __future__ import annotations

from html import escape

from twobatch.arms import arm_of
from twobatch.measure import median
from twobatch.report import Cell, Results, as_spans, head
from twobatch.schedule import COMPUTE, EXCHANGE, Span, length

_WIDTH, _LEFT, _RIGHT = 1000, 190, 20
_ROW, _GAP, _HEAD = 22, 16, 34
_COLOURS = (("#4878cf", "#a8c0ea"), ("#d1703c", "#f0bc9c"))  # By batch: compute, communication.
_LETTER = 6.2  # Approximate width of a letter.


def draw(results: Results) -> str:
    """Returns a panel for each cell, with its arms along one axis of milliseconds."""
    parts: list[str] = []
    y = 24.0
    where = f"{results['world']} x {results['device']}"
    parts.append(_text(10, y, f"Two batches in turns, rank 0 of {where}", 15))
    y += 10
    parts.extend(_legend(y))
    y += 26
    for cell in results["cells"]:
        if cell["spans"]:
            panel, y = _panel(cell, results, y)
            parts.extend(panel)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {y:.0f}" '
        f'font-family="sans-serif">\n<rect width="{_WIDTH}" height="{y:.0f}" fill="white"/>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def _legend(y: float) -> list[str]:
    parts = []
    x = 10.0
    for batch, colours in enumerate(_COLOURS):
        for kind, colour in zip(("compute", "communication"), colours):
            parts.append(f'<rect x="{x:.0f}" y="{y:.0f}" width="12" height="12" fill="{colour}"/>')
            label = f"batch {'AB'[batch]}, {kind}"
            parts.append(_text(x + 17, y + 10, label, 11))
            x += 40 + _LETTER * len(label)
    return parts


def _panel(cell: Cell, results: Results, y: float) -> tuple[list[str], float]:
    shown = {name: as_spans(rows) for name, rows in cell["spans"].items()}
    longest = max(length(spans) for spans in shown.values())
    scale = (_WIDTH - _LEFT - _RIGHT) / longest
    parts = [_text(10, y + 14, head(cell), 13)]
    y += _HEAD
    top = y
    for name, spans in shown.items():
        for lane, words in _rows(name, results["sm_count"]):
            mine = [span for span in spans if not lane or span.step.lane == lane]
            if mine:
                parts.append(_text(10, y + 15, words, 11))
                parts.extend(_bar(span, y, scale) for span in mine)
                y += _ROW
        took = cell["arms"].get(name)
        if took:
            parts.append(_text(10, y + 10, f"median {median(took):.2f} ms", 10, "#666"))
        y += _GAP
    parts.extend(_axis(longest, scale, top, y))
    return parts, y + 34


def _rows(name: str, sm_count: int) -> list[tuple[str, str]]:
    """Returns an arm's lanes ("" for one that does everything) and their labels."""
    arm = arm_of(name)
    if arm.kind == "sequence":
        return [("", name)]
    if not arm.is_split:
        return [(COMPUTE, f"{name}: compute"), (EXCHANGE, f"{name}: communication")]
    rest = sm_count - arm.sms
    return [(COMPUTE, f"{name}: {rest} SMs"), (EXCHANGE, f"{name}: {arm.sms} SMs")]


def _bar(span: Span, y: float, scale: float) -> str:
    step = span.step
    x, width = _LEFT + span.start * scale, max((span.end - span.start) * scale, 0.5)
    colour = _COLOURS[step.batch][0 if step.lane == COMPUTE else 1]
    words = f"layer {step.layer} {step.part} of batch {'AB'[step.batch]}"
    title = f"<title>{words}: {span.start:.3f} to {span.end:.3f} ms</title>"
    labels = (f"{step.part} {step.layer}", f"{step.part[:3]} {step.layer}", step.part[:3])
    bar = (
        f'<g>{title}<rect x="{x:.2f}" y="{y:.0f}" width="{width:.2f}" height="{_ROW - 3}" '
        f'fill="{colour}" stroke="white" stroke-width="0.5"/>'
    )
    label = next((label for label in labels if _LETTER * len(label) < width), "")
    if label:
        bar += _text(x + 3, y + 14, label, 10, "#111")
    return bar + "</g>"


def _axis(longest: float, scale: float, top: float, bottom: float) -> list[str]:
    step = _nice(longest / 8)
    parts = []
    for number in range(int(longest / step) + 1):
        x = _LEFT + number * step * scale
        parts.append(
            f'<line x1="{x:.2f}" y1="{top:.0f}" x2="{x:.2f}" y2="{bottom:.0f}" stroke="#ccc" '
            'stroke-width="0.5"/>'
        )
        parts.append(_text(x - 4, bottom + 12, f"{number * step:g}", 10, "#444"))
    parts.append(_text(_WIDTH - _RIGHT - 14, bottom + 24, "ms", 10, "#444"))
    return parts


def _nice(step: float) -> float:
    """Rounds up to the next of ..., 0.1, 0.2, 0.5, 1, 2, 5, 10, ..."""
    unit = 1e-3
    while True:
        for factor in (1, 2, 5):
            if factor * unit >= step:
                return round(factor * unit, 6)
        unit *= 10


def _text(x: float, y: float, words: str, size: int, colour: str = "black") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{colour}">{escape(words)}</text>'
    )

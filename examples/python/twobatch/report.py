"""The results: cells, a table, JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TypedDict

import common

from twobatch.arms import Arm, arm_of
from twobatch.measure import Times, Verdict, judge, median
from twobatch.schedule import Span, Step


class Cell(TypedDict):
    """One kind of layer with one number of tokens. Times in milliseconds, by an arm's name."""

    layer: str
    tokens: int
    sweep: Times
    chosen: str  # The split that the sweep chose, "" if none can run.
    arms: Times
    refused: dict[str, str]  # Why arms could not run.
    spans: dict[str, list[tuple[int, int, str, float, float]]]  # Of rank 0; see schedule.Span.


class Results(TypedDict):
    device: str
    world: int
    sm_count: int
    software: dict[str, str]
    layers: int
    cells: list[Cell]


def arms_of(times: Times) -> list[Arm]:
    return [arm_of(name) for name in times]


def verdict(cell: Cell) -> Verdict | None:
    """Returns None if the arms needed for a comparison are missing."""
    arms = arms_of(cell["arms"])
    if not any(arm.kind == "sequence" for arm in arms) or not any(arm.overlaps for arm in arms):
        return None
    return judge(arms, cell["arms"])


def head(cell: Cell) -> str:
    return f"{cell['layer']}, 2 batches of {cell['tokens']} tokens a GPU"


def table(results: Results) -> None:
    """Prints each cell's arms with their ratios, and the verdict."""
    for cell in results["cells"]:
        print(f"{head(cell)}, {results['layers']} layers; in ms:")
        times = cell["arms"]

        def against(name: str, took: float, times: Times = times) -> str:
            return f"{took / median(times[name]):.2f}" if name in times else "-"

        common.table(
            ("", "median", "least", "most", "/ sequence", "/ plain", "/ compute"),
            [
                (
                    name,
                    *(f"{value:.2f}" for value in (median(took), min(took), max(took))),
                    *(against(other, median(took)) for other in ("sequence", "plain", "compute")),
                )
                for name, took in times.items()
            ],
        )
        for name, why in cell["refused"].items():
            print(f"  {name}: {why}")
        found = verdict(cell)
        if found is not None:
            print(f"  {advice(cell, results['sm_count'])}{found.text}")


def advice(cell: Cell, sm_count: int) -> str:
    """Returns the split that the sweep chose, in words."""
    if not cell["chosen"]:
        return ""
    arm = arm_of(cell["chosen"])
    how = "with" if arm.target else "without"
    return (
        f"the sweep chose {arm.sms} SMs for communication and {sm_count - arm.sms} for compute, "
        f"{how} the count set in libraries; "
    )


def as_rows(spans: list[Span]) -> list[tuple[int, int, str, float, float]]:
    return [
        (step.layer, step.batch, step.part, round(start, 4), round(end, 4))
        for step, start, end in spans
    ]


def as_spans(rows: list[tuple[int, int, str, float, float]]) -> list[Span]:
    return [Span(Step(layer, batch, part), start, end) for layer, batch, part, start, end in rows]


def write(results: Results, file: Path) -> None:
    rounded: Any = json.loads(json.dumps(results), parse_float=lambda text: round(float(text), 4))
    file.write_text(json.dumps(rounded) + "\n", encoding="utf-8")

"""Two batches without a GPU, by what 4 NVIDIA H200s took.

NVLink, driver 580.159.04, torch 2.11 with NCCL, 2026-11-21: two batches of T tokens a GPU, 6 layers
of plain products (layers.Products). Medians of 12 runs. What else was running when is not in the
table: a timeline has the schedule's shape, stretched to the length that was measured.
"""

from __future__ import annotations

import random

from twobatch.arms import Arm
from twobatch.schedule import COMPUTE, Span, Step, lay_out, length

WORLD, SM_COUNT, LAYERS = 4, 132, 6
TOKENS = (2048, 8192)
NAME = "NVIDIA H200"

# Milliseconds for T = 2048 and 8192.
TABLE: dict[str, tuple[float, float]] = {
    "compute": (7.25, 27.43),
    "exchange": (2.34, 7.01),
    "sequence": (10.28, 36.59),
    "plain": (9.32, 36.79),
    "priority": (9.72, 35.58),
    "split-8": (11.56, 37.77),
    "split-8-target": (8.83, 36.68),
    "split-8-told": (8.70, 36.88),
    "split-16-told": (12.45, 40.31),
    "split-24-told": (10.97, 40.80),
    "exchange-ctas8": (4.89, 17.37),
    "sequence-ctas8": (12.11, 45.56),
    "plain-ctas8": (10.60, 42.15),
    "priority-ctas8": (10.70, 42.62),
    "split-8-ctas8": (11.47, 38.34),
    "split-8-target-ctas8": (8.92, 36.67),
    "split-8-told-ctas8": (8.55, 36.71),
}


class Simulated:
    """A measure.Machine of the table."""

    sm_count = SM_COUNT

    def __init__(self, tokens: int, noise: float = 0.003, seed: int = 1) -> None:
        self._column = TOKENS.index(tokens)
        self._noise, self._chance = noise, random.Random(seed)

    def _took(self, name: str) -> float:
        return TABLE[name][self._column]

    def prepare(self, arm: Arm) -> str:
        return "" if arm.name in TABLE else "not in the table"

    def warm_up(self, arm: Arm) -> str:
        return ""

    def once(self, arm: Arm) -> float:
        return self._took(arm.name) * self._chance.gauss(1, self._noise)

    def trace(self, arm: Arm) -> list[Span]:
        limited = "exchange" + (f"-ctas{arm.ctas}" if arm.ctas else "")
        lanes = {COMPUTE: self._took("compute"), "exchange": self._took(limited)}

        def cost(step: Step) -> float:
            return lanes[step.lane] / (4 * LAYERS)  # 2 parts of each lane, for 2 batches

        only = arm.kind if arm.kind in ("compute", "exchange") else ""
        spans = lay_out(LAYERS, cost, one_lane=arm.kind == "sequence", only=only)
        stretch = self._took(arm.name) / length(spans)
        return [Span(step, start * stretch, end * stretch) for step, start, end in spans]

    def close(self) -> None:
        pass

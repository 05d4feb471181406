"""Prints what two_batch_overlap.py and l2_window.py measured as tables of docs/measurements/log.md.

    python tests/gpu/overlap_figures.py FILE

Exits with 1 if a required figure is missed.
"""

from __future__ import annotations

import json
import statistics
import sys
from pathlib import Path
from typing import Any

# Earlier ratios at T = 2048 with plain products on 4 H200s: to plain streams, and to one stream.
OF_PLAIN, OF_SEQUENCE = 0.92, 0.83
L2_GAIN = 1.3


def overlap(results: Any) -> list[str]:
    """Prints a table for each kind of layer; returns the failed expectations."""
    problems = []
    software = ", ".join(f"{name} {value}" for name, value in results["software"].items())
    print(f"{results['world']} x {results['device']}, {results['layers']} layers, {software}")
    for layer in dict.fromkeys(cell["layer"] for cell in results["cells"]):
        cells = [cell for cell in results["cells"] if cell["layer"] == layer]
        print(f"\n{layer}: medians in ms, in brackets of plain streams\n")
        print("| | " + " | ".join(f"T = {cell['tokens']}" for cell in cells) + " |")
        print("| --- |" + " --- |" * len(cells))
        names = dict.fromkeys(name for cell in cells for name in (*cell["arms"], *cell["sweep"]))
        for name in names:
            print(f"| {name} | " + " | ".join(figure(cell, name) for cell in cells) + " |")
        for cell in cells:
            refused = cell["refused"].items()
            print(f"\nT = {cell['tokens']}: chosen {cell['chosen'] or 'none'}"
                  + "".join(f"; {name}: {why}" for name, why in refused))  # fmt: skip
    for cell in results["cells"]:
        if (results["world"], cell["layer"], cell["tokens"]) == (4, "products", 2048):
            problems.extend(too_slow(cell))
    return problems


def figure(cell: Any, name: str) -> str:
    arms, sweep = cell["arms"], cell["sweep"]
    if name in arms:
        took = statistics.median(arms[name])
        plain = arms.get("plain")
        of = f" ({took / statistics.median(plain):.2f})" if plain else ""
        return f"{took:.2f}{of}"
    return f"{statistics.median(sweep[name]):.2f}, in the sweep" if name in sweep else "-"


def too_slow(cell: Any) -> list[str]:
    medians = {name: statistics.median(took) for name, took in cell["arms"].items()}
    splits = {name: took for name, took in medians.items() if name.startswith("split-")}
    if not splits:
        return ["no split ran"]
    best = min(splits, key=lambda name: splits[name])
    problems = []
    for other, bound in (("plain", OF_PLAIN), ("sequence", OF_SEQUENCE)):
        share = splits[best] / medians[other]
        # Two digits, as the figure that was seen before has.
        if round(share, 2) > bound:
            problems.append(f"T = 2048: {best} takes {share:.3f} of {other}, not {bound} or less")
    return problems


def l2(results: Any) -> list[str]:
    print(results["device"])
    best = max(max(gains(name, sizes)) for name, sizes in results["patterns"].items())
    if best < L2_GAIN:
        return [f"at best {best:.2f} times as fast with the window, not {L2_GAIN}"]
    return []


def gains(name: str, sizes: Any) -> list[float]:
    """Prints a kernel's table; returns its speedups with the window."""
    arms = next(iter(sizes.values()))
    print(f"\n| {name}, a table of | " + " | ".join(arms) + " |")
    print("| --- |" + " --- |" * len(arms))
    found = []
    for mib, times in sizes.items():
        medians = {
            name: [statistics.median(column) for column in zip(*rounds)]
            for name, rounds in times.items()
        }
        cells = (
            f"{took:.2f} ms" + (f", neighbour {rate:.0f} GB/s" if rate else "")
            for took, rate in medians.values()
        )
        print(f"| {mib} MiB | " + " | ".join(cells) + " |")
        found.append(medians["beside"][0] / medians["window"][0])
    print(f"\nwith the window {', '.join(f'{gain:.2f}' for gain in found)} times as fast")
    return found


def main() -> int:
    results = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    problems = overlap(results) if "cells" in results else l2(results)
    for problem in problems:
        print(f"FAILED: {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

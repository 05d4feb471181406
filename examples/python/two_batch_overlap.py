"""Two batches of a mixture-of-experts layer in turns over several GPUs: while one batch computes,
the other's tokens travel to their experts and back.

Compares two partitions with a communicator each against running one batch after the other, plain
streams, stream priorities, NCCL limited to few blocks, and an all-to-all by copy engines. A short
sweep chooses the split and whether to set cuBLAS's SM count; the last line says whether overlapping
pays.

    torchrun --nproc-per-node 4 examples/python/two_batch_overlap.py
"""

from __future__ import annotations

import argparse
import gc
import os
from collections.abc import Callable

import common
import gcx
from twobatch import report, timeline
from twobatch.arms import ALONE, ARMS, Arm, candidates, known_arm
from twobatch.measure import Machine, Say, Times, choose, in_turns, ready
from twobatch.ranks import Ranks, agree, attempt, fail, place_of

MachineOf = Callable[[str, int], Machine]  # Takes the kind of layer and the tokens.
KINDS = ("products", "experts")


def measure(
    machine: Machine, ranks: Ranks, arguments: argparse.Namespace, say: Say
) -> tuple[report.Cell, list[Arm]]:
    """Runs the sweep, then all arms and the split that it chose in turns."""
    refused: dict[str, str] = {}
    swept = ready(machine, ranks, candidates(arguments.sms), refused)
    sweep: Times = {}
    chosen = None
    if swept:
        sweep = in_turns(machine, ranks, swept, arguments.sweep_repeats, lambda line: None)
        chosen = choose(swept, sweep)
        say("sweep: " + ", ".join(f"{name} {min(took):.2f}" for name, took in sweep.items()))
        say(f"sweep: {chosen.name} is chosen")
    names = {arm.name for arm in swept}
    others = ready(machine, ranks, [a for a in arguments.arms if a.name not in names], refused)
    arms = [*others, *(arm for arm in swept if arm in arguments.arms)]
    if chosen is not None:
        pair = [chosen, *(arm for arm in swept if arm == chosen.other())]
        arms.extend(arm for arm in pair if arm not in arms)
    gc.collect()
    gc.disable()  # A collection would delay launches.
    try:
        times = in_turns(machine, ranks, arms, arguments.repeats, say)
    finally:
        gc.enable()
    cell: report.Cell = {
        "layer": "",
        "tokens": 0,
        "sweep": sweep,
        "chosen": "" if chosen is None else chosen.name,
        "arms": times,
        "refused": refused,
        "spans": {},
    }
    return cell, arms


def run(
    machine_of: MachineOf, ranks: Ranks, arguments: argparse.Namespace, say: Say
) -> list[report.Cell]:
    """Measures each kind of layer with each number of tokens. All ranks return the same."""

    def one(layer: str, tokens: int) -> report.Cell:
        def about(line: str) -> None:
            say(f"{layer}, T = {tokens}: {line}")

        about("getting ready")
        machine, problem = attempt(lambda: machine_of(layer, tokens))
        agree(ranks, problem)
        cell, arms = measure(machine, ranks, arguments, about)
        cell["layer"], cell["tokens"] = layer, tokens
        for arm in arms:
            if arm.kind not in ALONE:
                cell["spans"][arm.name] = report.as_rows(machine.trace(arm))
        machine.close()  # After an error it would wait for a failed rank.
        return cell

    return [one(layer, tokens) for layer in arguments.layer for tokens in arguments.tokens]


def tokens_of(text: str) -> int:
    """For argparse."""
    count = common.positive(text)
    if count % 256:
        raise argparse.ArgumentTypeError(f"must be a multiple of 256, which GPUs share evenly, "
                                         f"not {count}")  # fmt: skip
    return count


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--tokens", nargs="+", type=tokens_of, default=[2048, 8192], metavar="T",
        help="of a batch, a GPU (2048 8192)")  # fmt: skip
    add("--layer", nargs="+", choices=KINDS, default=list(KINDS),
        help="products: plain ones; experts: DeepSeek-V3's proportions (both)")  # fmt: skip
    add("--sms", nargs="*", type=common.positive, default=[4, 6, 8, 12, 16, 24], metavar="SMS",
        help="SMs for communication in the sweep's splits (4 6 8 12 16 24)")  # fmt: skip
    add("--arms", nargs="+", type=known_arm, default=list(ARMS), metavar="ARM",
        help=f"beside the chosen split: of {', '.join(arm.name for arm in ARMS)}, and splits as "
        "split-8, split-8-target, split-8-target-ctas8 (all but splits)")  # fmt: skip
    add("--repeats", type=common.positive, default=10, help="of each arm (10)")
    add("--sweep-repeats", type=common.positive, default=3, help="of each split (3)")
    add("--layers", type=common.positive, default=6, help="that a batch passes (6)")
    add("--experts", type=common.positive, default=32, help="on each GPU (32)")
    add("--json", type=common.new_file, metavar="FILE", help="write all that was measured")
    add("--timeline", type=common.new_file, metavar="FILE", help="write what ran when, as SVG")
    arguments = parser.parse_args()
    arguments.arms = list(dict.fromkeys(arguments.arms))
    return arguments


def on_gpus(arguments: argparse.Namespace) -> report.Results | None:
    """Returns the results on rank 0, and None on the others."""
    try:
        place = place_of(os.environ)
    except ValueError as error:
        common.start()
        common.end(str(error))
    # Before CUDA starts: the two lanes wait for each other all the time.
    gcx.request_connections()
    if place.rank == 0:
        common.start()
    elif gcx.driver_info().simulated:
        raise SystemExit(2)  # Rank 0 says why.
    common.library("torch")
    from twobatch.gpu import Gpus

    def say(line: str) -> None:
        if place.rank == 0:
            print(line, flush=True)

    try:
        gpus = Gpus(place, arguments.layers, arguments.experts)
        cells = run(gpus.machine, gpus, arguments, say)
        gpus.close()
    except Exception as error:  # From any library. The other ranks must not wait for this one.
        fail(place.rank, error)
    if place.rank != 0:
        return None
    return {
        "device": gpus.name,
        "world": place.world,
        "sm_count": gpus.sm_count,
        "software": gpus.software,
        "layers": arguments.layers,
        "cells": cells,
    }


def main() -> None:
    arguments = parse()
    results = on_gpus(arguments)
    if results is None:
        return
    if arguments.json is not None:
        report.write(results, arguments.json)
        print(f"wrote {arguments.json}")
    report.table(results)
    if arguments.timeline is not None:
        arguments.timeline.write_text(timeline.draw(results), encoding="utf-8")
        print(f"wrote {arguments.timeline}")


if __name__ == "__main__":
    common.run(main)

"""Two batches of a mixture-of-experts layer in turns, over several GPUs: while one computes, the
other's tokens travel to their experts and back. On two partitions with a communicator for each,
beside one after the other, plain streams, priorities, NCCL limited to few blocks, and the
all-to-all by copy engines. A short sweep chooses the split, and whether to tell cuBLAS its SMs; in
the end it says whether overlapping pays at all.

    torchrun --nproc-per-node 4 examples/python/two_batch_overlap.py

--simulate runs without a GPU, by a table of what 4 H200s took.
"""

from __future__ import annotations

import argparse
import gc
import os
from collections.abc import Callable
from pathlib import Path

import common
import gcx
from twobatch import report, timeline
from twobatch.arms import ALONE, ARMS, Arm, candidates, known_arm
from twobatch.measure import Machine, Say, Times, choose, in_turns, ready
from twobatch.ranks import Alone, Ranks, agree, attempt, fail, place_of

MachineOf = Callable[[str, int], Machine]  # Of a kind of layer and tokens.
KINDS = ("products", "experts")


def measure(
    machine: Machine, ranks: Ranks, arguments: argparse.Namespace, say: Say
) -> tuple[report.Cell, list[Arm]]:
    """The sweep, then all arms with the split that it chose, side by side."""
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
    gc.disable()  # A collection would hold up launches.
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
    """Each kind of layer with each number of tokens. All ranks come to the same."""

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
        machine.close()  # Not after an error: it would wait for a rank that has failed.
        return cell

    return [one(layer, tokens) for layer in arguments.layer for tokens in arguments.tokens]


def tokens_of(text: str) -> int:
    """For argparse."""
    count = common.positive(text)
    if count % 256:
        raise argparse.ArgumentTypeError(f"tokens go to GPUs in equal parts: a multiple of 256, "
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
    add("--simulate", action="store_true", help="by a table, without a GPU")
    add("--json", type=common.new_file, metavar="FILE", help="write all that was measured")
    add("--from", type=Path, metavar="FILE", dest="source", help="measure nothing, read that")
    add("--timeline", type=common.new_file, metavar="FILE", help="write what ran when, as SVG")
    arguments = parser.parse_args()
    arguments.arms = list(dict.fromkeys(arguments.arms))
    return arguments


def simulated(arguments: argparse.Namespace) -> report.Results:
    from twobatch.simulated import LAYERS, NAME, SM_COUNT, TOKENS, WORLD, Simulated

    print(f"SIMULATED: no GPU is involved; by what {WORLD} x {NAME} took", flush=True)
    unknown = [tokens for tokens in arguments.tokens if tokens not in TOKENS]
    if unknown:
        common.end(f"the table has T = {' and '.join(map(str, TOKENS))}, not {unknown[0]}")
    if "products" not in arguments.layer:
        common.end("the table has plain products alone: --layer products")
    arguments.layer = ["products"]
    cells = run(lambda _, tokens: Simulated(tokens), Alone(), arguments, print)
    return {
        "device": NAME,
        "simulated": True,
        "world": WORLD,
        "sm_count": SM_COUNT,
        "software": {},
        "layers": LAYERS,
        "cells": cells,
    }


def on_gpus(arguments: argparse.Namespace) -> report.Results | None:
    """What rank 0 has to tell; the others tell nothing."""
    try:
        place = place_of(os.environ)
    except ValueError as error:
        common.start()
        common.end(str(error))
    # Read when CUDA starts: both lanes wait for each other all the time.
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
    except Exception as error:  # Of whichever library; the other ranks must not wait for ever.
        fail(place.rank, error)
    if place.rank != 0:
        return None
    return {
        "device": gpus.name,
        "simulated": False,
        "world": place.world,
        "sm_count": gpus.sm_count,
        "software": gpus.software,
        "layers": arguments.layers,
        "cells": cells,
    }


def main() -> None:
    arguments = parse()
    results: report.Results | None
    if arguments.source is not None:
        try:
            results = report.read(arguments.source)
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            common.end(f"--from: {error}")
    else:
        results = simulated(arguments) if arguments.simulate else on_gpus(arguments)
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

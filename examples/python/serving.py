"""Decode and prefill on leases that are resized at every step, by a policy that keeps a promised
time per token. Compared with chunked prefill, plain streams, priorities and fixed splits.

A transformer of Llama-3-8B's shape decodes a batch of 32 while prompts of 4,096 tokens come at
random moments, the same for each arm. Every graph is captured once and runs on any SMs. --simulate
serves without a GPU, by tables of an H200.
"""

from __future__ import annotations

import argparse
import gc
import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import common
import gcx
from serve import report
from serve.arms import Chunked, Dynamic, Fixed
from serve.costs import H200, PLAIN, PRIORITY, Costs
from serve.engine import Arm, poisson, serve
from serve.machine import Machine
from serve.policy import Promise
from serve.simulated import Simulated

ARMS = (
    *("plain", "priority", "chunked-512", "chunked-512-whole", "chunked-1024"),
    *("static-24", "dynamic-24", "dynamic-32", "policy"),
)
SPLITS = (24, 32, 40, 48, 56)


def arm_of(name: str, costs: Costs, promise: float) -> Arm:
    """Returns a new arm for each cell, since some learn."""
    kind, _, which = name.partition("-")
    if kind == "policy":
        return Promise(costs, promise)
    if kind == "chunked":
        return Chunked(which)
    if kind in ("static", "dynamic"):
        split = int(which)
        return Fixed(split) if kind == "static" else Dynamic(split, costs.sm_count)
    return Fixed({"plain": PLAIN, "priority": PRIORITY}[kind])


def known_arm(text: str) -> str:
    """For argparse."""
    kind, _, which = text.partition("-")
    numbered = kind in ("static", "dynamic") and which.isdecimal() and int(which) > 0
    if text not in ARMS and not numbered:
        raise argparse.ArgumentTypeError(
            f"{text!r} is none of {', '.join(ARMS)}, or another static-SMS or dynamic-SMS"
        )
    return text


def above_0(text: str) -> float:
    """For argparse."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e6:
        raise argparse.ArgumentTypeError(f"must be a number above 0, not {text!r}")
    return value


def on_gpu(arguments: argparse.Namespace) -> tuple[Any, Costs, str]:
    """Returns the GPU with a model, its measured costs, and its name."""
    # Before CUDA starts: waiting streams must not block all launches of the process.
    gcx.request_connections()
    device = common.start()
    torch = common.library("torch")
    from serve.calibrate import calibrate
    from serve.gpu import Gpu
    from serve.model import Model, Prefill, Shape, disagreement

    off = disagreement("cuda", torch.bfloat16)
    common.check(off < 0.2, f"prefill and decode differ from plain attention by {off:.2f} sigma")
    shape = Shape(layers=arguments.layers)
    need = 2**30 * (4 + shape.layers)
    free = torch.cuda.mem_get_info()[0]
    if free < need:
        common.end(f"needs {need >> 30} GiB of device memory, {free / 2**30:.0f} are free; "
                   "--layers takes fewer layers")  # fmt: skip
    splits = sorted({*arguments.sms, *numbers_in(arguments.arms)})
    if splits[-1] >= device.sm_count:
        common.end(f"a split of {splits[-1]} SMs leaves prefill none of {device.sm_count}")
    chunks = [name.partition("-")[2] for name in arguments.arms if name.startswith("chunked")]
    start = time.perf_counter()
    with torch.inference_mode():
        model = Model(shape, "cuda", torch.bfloat16)
        machine = Gpu(model, splits, chunks, arguments.merge, device.sm_count)
        took = time.perf_counter() - start
        print(
            f"{shape.layers} layers, {machine.captures} graphs, each captured once, on "
            f"{len(splits) + 2} layouts: {took:.1f} s",
            flush=True,
        )
        kinds = max(1, Prefill.KINDS // arguments.merge)
        costs = calibrate(machine, splits, kinds, lambda line: print(line, flush=True))
    return machine, costs, device.name


def numbers_in(names: list[str]) -> list[int]:
    """Returns the SMs of the fixed splits among the arms."""
    return [int(name.partition("-")[2]) for name in names if name[:3] in ("sta", "dyn")]


def measure(machine: Any, costs: Costs, arguments: argparse.Namespace) -> list[report.Cell]:
    """Measures every arm at every rate."""
    cells: list[report.Cell] = []
    promises = list(dict.fromkeys([*arguments.promise, *arguments.frontier]))
    for rate in arguments.rates:
        arrivals = poisson(rate, arguments.seconds, arguments.seed)
        for name in arguments.arms:
            for promise in promises if name == "policy" else [0.0]:
                label = f"policy {promise:g} ms" if promise else name
                try:
                    arm = arm_of(name, costs, promise)
                except ValueError as error:
                    print(f"{label}: {error}", flush=True)
                    continue
                used: Machine = Simulated(costs) if arguments.simulate else machine
                gc.collect()
                gc.disable()  # A collection would add to the latency.
                record = serve(used, arm, arrivals, arguments.warm_up * 1e3)
                gc.enable()
                cells.append(
                    {
                        "arm": label,
                        "promise": promise,
                        "rate": rate,
                        "tokens": in_us(record.tokens),
                        "steps": in_us(record.steps),
                        "first": in_us(record.first),
                        "arrivals": in_us(arrivals),
                        "layouts": [(round(at, 3), layout) for at, layout in record.layouts],
                        "elapsed": record.elapsed,
                    }
                )
                print(f"{rate:g}/s {label}: {report.in_short(record)}", flush=True)
    return cells


def in_us(times: list[float]) -> list[float]:
    """Rounds milliseconds to microseconds."""
    return [round(time, 3) for time in times]


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--arms", nargs="+", type=known_arm, default=list(ARMS), metavar="ARM",
        help=f"of {', '.join(ARMS)}, and other static-SMS, dynamic-SMS (all of these)")  # fmt: skip
    add("--rates", nargs="+", type=above_0, default=[2.0, 4.0, 5.5], metavar="RATE",
        help="prompts a second (2 4 5.5)")  # fmt: skip
    add("--promise", nargs="+", type=above_0, default=[17.5, 14.0], metavar="MS",
        help="the policy's milliseconds from token to token, for 99 of 100 (17.5 14)")  # fmt: skip
    add("--frontier", nargs="*", type=above_0, default=[], metavar="MS",
        help="further promises, for the frontier's plot")  # fmt: skip
    add("--sms", nargs="+", type=common.positive, default=list(SPLITS), metavar="SMS",
        help="decode's SMs that the policy chooses from (24 32 40 48 56)")  # fmt: skip
    add("--seconds", type=above_0, default=8.0, help="that prompts come in each cell (8)")
    add("--warm-up", type=above_0, default=0.5, help="seconds before each cell (0.5)")
    add("--seed", type=int, default=1, help="of the prompts' moments (1)")
    add("--layers", type=common.positive, default=32, help="of the model (32)")
    add("--merge", type=int, choices=(1, 5), default=1,
        help="pieces of a layer that are launched as one: 1 of its 5, or all 5 (1)")  # fmt: skip
    add("--simulate", action="store_true", help="by tables, without a GPU")
    add("--json", type=Path, metavar="FILE", help="write all that was measured")
    add(
        "--from", type=Path, metavar="FILE", dest="source", help="read results instead of measuring"
    )
    add("--plot", type=Path, metavar="FOLDER", help="write latency.svg, split.svg, frontier.svg")
    return parser.parse_args()


def main() -> None:
    arguments = parse()
    if arguments.source is not None:
        try:
            results: report.Results = json.loads(arguments.source.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            common.end(f"--from: {error}")
    else:
        if arguments.simulate:
            machine, costs, name = None, H200, "NVIDIA H200"
            print(f"SIMULATED: no GPU is involved; by the costs of an {name}", flush=True)
            arguments.arms = [one for one in arguments.arms if not one.endswith("-whole")]
            unknown = {*numbers_in(arguments.arms)} - {*costs.splits}
            if unknown:
                common.end(f"the tables have splits of {costs.splits} SMs, none of {min(unknown)}")
        else:
            machine, costs, name = on_gpu(arguments)
        cells = measure(machine, costs, arguments)
        results = {
            "device": name,
            "simulated": arguments.simulate,
            "sm_count": costs.sm_count,
            "costs": asdict(costs),
            "cells": cells,
        }
        if machine is not None:
            print(f"{machine.sides.changes} changes of the leases")
            machine.close()
        if arguments.json is not None:
            arguments.json.write_text(json.dumps(results), encoding="utf-8")
            print(f"wrote {arguments.json}")
    report.table(results["cells"])
    if arguments.plot is not None:
        report.plot(results, arguments.plot)


if __name__ == "__main__":
    common.run(main)

"""Measures the policy's tables: decode and prefill on this machine, alone and concurrently."""

from __future__ import annotations

import statistics
from collections.abc import Callable

from serve.arms import Fixed
from serve.costs import Costs
from serve.engine import serve
from serve.machine import Machine


def calibrate(
    machine: Machine, splits: list[int], kinds: int, say: Callable[[str], None], prompts: int = 4
) -> Costs:
    """Measures the costs, in a few seconds.

    Args:
        machine: The machine.
        splits: Decode's SMs in the concurrent layouts.
        kinds: Pieces of a layer.
        say: Prints a line of results.
        prompts: Prompts prefilled for each figure.
    """
    whole = machine.sm_count

    def decode(layout: int, steps: int = 30) -> float:
        times = []
        for _ in range(steps + 3):
            start = machine.now()
            machine.decode(layout)
            machine.wait(start + 1e4)
            machine.ended()
            times.append(machine.now() - start)
        return statistics.median(times[3:])

    def pieces(numbers: range, layout: int) -> float:
        start = machine.now()
        for number in numbers:
            machine.piece(number, layout)
        machine.finish()
        return machine.now() - start

    every = range(machine.pieces)
    pieces(every, 0)  # Raises the clocks.
    alone = {layout: min(pieces(every, layout) for _ in range(2)) for layout in (0, *splits)}
    say(f"prefill alone: {_line(alone, whole)}")
    of_kind = [pieces(range(kind, machine.pieces, kinds), 0) for kind in range(kinds)]
    layers = machine.pieces // kinds
    shares = tuple(of_kind[number % kinds] / sum(of_kind) / layers for number in every)
    decode_alone = {layout: decode(layout) for layout in (*splits, whole)}
    say(f"decode alone: {_line(decode_alone)}")
    decode_beside, prefill_beside = {}, {}
    for split in splits:
        record = serve(machine, Fixed(split), [0.0] * prompts, warm_up=1)
        decode_beside[split] = statistics.median(record.tokens)
        prefill_beside[split] = record.elapsed / prompts
    say(f"decode beside prefill: {_line(decode_beside)}")
    say(f"prefill beside decode: {_line(prefill_beside, whole)}")
    return Costs(whole, shares, decode_alone, decode_beside, alone, prefill_beside)


def _line(times: dict[int, float], of: int = 0) -> str:
    found = (f"{abs(of - sms)} SMs {took:.2f}" for sms, took in times.items())
    return ", ".join(found) + " ms"

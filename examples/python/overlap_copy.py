"""Copies overlapping with compute in one partition, in chunks.

Three streams of the partition's context, one for each direction and one for compute, ordered by
events: while one chunk is computed, the next arrives and the previous one leaves. Copy engines do
the copies and need no SMs.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import common
import gcx

BUFFERS = 3  # On the device: one arrives, one is computed, one leaves.


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sms", type=int, default=24, help="SMs of the partition (24)")
    parser.add_argument("--mib", type=common.positive, default=256, help="of data (256)")
    parser.add_argument("--chunks", type=common.positive, default=16, help="of them (16)")
    parser.add_argument("--rounds", type=common.positive, default=7, help="for medians (7)")
    arguments = parser.parse_args()
    length = (arguments.mib << 18) // arguments.chunks  # int32s of a chunk
    if length == 0:
        parser.error(f"{arguments.mib} MiB are too few for {arguments.chunks} chunks")
    common.start()
    torch = common.library("torch")

    # Pinned: from pageable memory a copy isn't asynchronous, whatever non_blocking says.
    source = torch.arange(arguments.chunks * length, dtype=torch.int32).pin_memory()
    target = torch.zeros_like(source).pin_memory()
    chunks = list(zip(source.split(length), target.split(length)))
    buffers = [torch.zeros(length, dtype=torch.int32, device="cuda") for _ in range(BUFFERS)]
    torch.cuda.synchronize()

    (part,) = gcx.split([arguments.sms])
    with part, part.context.stream() as in_stream, part.context.stream() as out_stream:
        arrive, compute, leave = (s.torch() for s in (in_stream, part.stream, out_stream))

        def work(number: int, passes: int) -> None:
            for _ in range(passes):
                buffers[number % BUFFERS].add_(1)

        def copies_in() -> None:
            with torch.cuda.stream(arrive):
                for number, (piece, _) in enumerate(chunks):
                    buffers[number % BUFFERS].copy_(piece, non_blocking=True)

        def copies_out() -> None:
            with torch.cuda.stream(leave):
                for number, (_, piece) in enumerate(chunks):
                    piece.copy_(buffers[number % BUFFERS], non_blocking=True)

        def compute_only(passes: int) -> None:
            with torch.cuda.stream(compute):
                for number in range(len(chunks)):
                    work(number, passes)

        def in_order(passes: int) -> None:
            with torch.cuda.stream(compute):
                for number, (piece, result) in enumerate(chunks):
                    buffers[number % BUFFERS].copy_(piece, non_blocking=True)
                    work(number, passes)
                    result.copy_(buffers[number % BUFFERS], non_blocking=True)

        def overlapped(passes: int) -> None:
            left: list[object] = []
            for number, (piece, result) in enumerate(chunks):
                buffer = buffers[number % BUFFERS]
                with torch.cuda.stream(arrive):
                    if number >= BUFFERS:  # What was in this buffer has to have left it.
                        arrive.wait_event(left[number - BUFFERS])
                    buffer.copy_(piece, non_blocking=True)
                with torch.cuda.stream(compute):
                    compute.wait_event(arrive.record_event())
                    work(number, passes)
                with torch.cuda.stream(leave):
                    leave.wait_event(compute.record_event())
                    result.copy_(buffer, non_blocking=True)
                    left.append(leave.record_event())

        def milliseconds(call: Callable[[], None]) -> float:
            """Wall time until all streams of the partition are done."""
            start = time.perf_counter()
            call()
            part.context.synchronize()
            return (time.perf_counter() - start) * 1e3

        def median(call: Callable[[], None]) -> float:
            call()
            part.context.synchronize()
            return statistics.median(milliseconds(call) for _ in range(arguments.rounds))

        # As much to compute as to copy: there overlapping can gain most.
        copy_ms = max(median(copies_in), median(copies_out))
        passes = max(1, round(copy_ms / (median(lambda: compute_only(8)) / 8)))

        ways: dict[str, Callable[[], None]] = {
            "copies in alone": copies_in,
            "compute alone": lambda: compute_only(passes),
            "copies out alone": copies_out,
            "one stream": lambda: in_order(passes),
            "overlapped": lambda: overlapped(passes),
        }
        for name in ("one stream", "overlapped"):
            target.zero_()
            milliseconds(ways[name])
            common.check(torch.equal(target, source + passes), f"{name}: the result is wrong")
        times: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(arguments.rounds):
            for name, way in ways.items():  # In turns, side by side.
                times[name].append(milliseconds(way))

        medians = {name: statistics.median(taken) for name, taken in times.items()}
        bound = max(list(medians.values())[:3])
        print(f"{part.sm_count} SMs; {arguments.mib} MiB in {len(chunks)} chunks, "
              f"{passes} passes over each; the results are right; medians in ms")  # fmt: skip
        common.table(
            ("", "ms", "/ overlapped"),
            [
                (name, f"{ms:.2f}", f"{ms / medians['overlapped']:.2f}")
                for name, ms in medians.items()
            ],
        )
        gain, over = medians["one stream"] / medians["overlapped"], medians["overlapped"] / bound
        print(f"overlapping is {gain:.2f} times as fast as one stream; it takes {over:.2f} of the "
              f"longest part, {bound:.2f} ms, which is its bound")  # fmt: skip


if __name__ == "__main__":
    common.run(main)

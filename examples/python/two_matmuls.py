"""Concurrent matrix products: small ones on a few SMs, a big one on the rest.

Three ways: one after the other on the whole GPU, concurrently in two plain streams, and in two
partitions. The number of small products makes the shares of the work equal to the shares of the
SMs, so the only question is how well both fit together.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable
from typing import Any

import common
import gcx

Work = Callable[[], None]
Times = tuple[float, float, float]
WAYS = ("one after the other", "two plain streams", "two partitions")


def once(torch: Any, streams: tuple[Any, Any], delay: Work, small: Work, big: Work) -> Times | None:
    """Returns the milliseconds from the common start to the end of the small ones, the big one and
    both; None if the host was too slow."""
    begin, small_end, big_end, end = (torch.cuda.Event(enable_timing=True) for _ in range(4))
    main = torch.cuda.current_stream()
    # Python submits more slowly than the GPU computes. This delays the start until all is queued.
    delay()
    begin.record()
    for stream, work, done in zip(streams, (small, big), (small_end, big_end)):
        with torch.cuda.stream(stream):
            stream.wait_event(begin)
            work()
            done.record()
            main.wait_event(done)
    in_time = not begin.query()
    end.record()
    end.synchronize()
    if not in_time:
        return None
    small_ms, big_ms, both_ms = (begin.elapsed_time(event) for event in (small_end, big_end, end))
    return small_ms, big_ms, both_ms


def product(torch: Any, size: int, count: int = 1) -> Work:
    a, b = (torch.randn(size, size, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    out = torch.empty_like(a)

    def work() -> None:
        for _ in range(count):
            torch.mm(a, b, out=out)

    return work


def alone_ms(torch: Any, delay: Work, work: Work) -> float:
    """Returns the milliseconds of one of several calls on the whole GPU."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    work()
    delay()
    start.record()
    for _ in range(10):
        work()
    end.record()
    end.synchronize()
    return float(start.elapsed_time(end)) / 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--sms", type=int, default=24, help="SMs for the small products (24)")
    add("--big", type=common.positive, default=8192, help="rows of the big one (8192)")
    add("--small", type=common.positive, nargs="+", default=[512, 1024, 2048, 4096],
        help="of the small ones (512 1024 2048 4096)")  # fmt: skip
    add("--rounds", type=common.positive, default=15, help="of which medians are taken (15)")
    arguments = parser.parse_args()
    common.start()
    torch = common.library("torch")

    few, many = gcx.split([arguments.sms, None])
    with few, many:
        print(f"partitions of {few.sm_count} and {many.sm_count} SMs; bfloat16; medians in ms")
        plain = torch.cuda.Stream(), torch.cuda.Stream()
        ways = (
            (plain[0], plain[0]),
            plain,
            (few.stream.torch(), many.stream.torch()),
        )
        big = product(torch, arguments.big)
        delay = product(torch, arguments.big, 4)
        delay()
        big_ms = alone_ms(torch, delay, big)
        verdicts = []
        for size in arguments.small:
            single = product(torch, size)
            share = big_ms * few.sm_count / many.sm_count
            count = max(1, round(share / alone_ms(torch, delay, single)))
            small = product(torch, size, count)
            times: list[list[Times]] = [[], [], []]
            for number in range(arguments.rounds + 2):
                for way, streams in enumerate(ways):  # In turns: a GPU's clock drifts.
                    result = once(torch, streams, delay, small, big)
                    if result is not None and number >= 2:
                        times[way].append(result)
            common.check(
                all(2 * len(results) > arguments.rounds for results in times),
                "this process was too slow at submitting; the machine is too busy to measure",
            )
            medians = [[statistics.median(part) for part in zip(*results)] for results in times]
            best = min(medians[0][2], medians[1][2])
            print(f"\n{count} x {size}^3 next to {arguments.big}^3")
            common.table(
                ("", "small done", "big done", "both done", "/ best without partitions"),
                [
                    (name, *(f"{ms:.3f}" for ms in row), f"{row[2] / best:.2f}")
                    for name, row in zip(WAYS, medians)
                ],
            )
            verdicts.append((size, medians[2][2] / best, medians[2][0] / medians[1][0]))

        print()
        for size, whole, latency in verdicts:
            # Two percent are noise.
            pays = "pays" if whole < 0.98 else "costs" if whole > 1.02 else "makes no difference"
            early = "sooner" if latency < 0.98 else "later" if latency > 1.02 else "no sooner"
            print(
                f"{size}^3: for both together the split {pays} ({whole:.2f} of the best without); "
                f"the small ones are done {early} than in a plain stream ({latency:.2f} of that)"
            )
        torch.cuda.synchronize()
        torch.cuda.empty_cache()  # PyTorch caches memory by stream, and these streams end here.


if __name__ == "__main__":
    common.run(main)

"""Signals with a handler that raises, at random moments of calls of gcx:

    python interrupts.py COUNT [CASE...]

Each interrupted call must leave nothing behind, and each signal must reach the program. Prints a
line for each case; the exit status is 1 if something was left or lost. Needs nothing but gcx, so
that any version of Python can run it.
"""

from __future__ import annotations

import gc
import logging
import random
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import gcx
from work import Work, alive  # type: ignore[import-not-found]

LONGEST = 0.002  # seconds until the signal
PATIENCE = 5  # seconds after which a signal counts as lost


class Interrupted(BaseException):
    """Raised by the handler; no Exception, so that no code takes it for an error."""


fired = 0
swallowed: list[str] = []


def handle(number: int, frame: object) -> None:
    global fired
    fired += 1
    raise Interrupted


def note_swallowed(unraisable: Any) -> None:
    swallowed.append(f"{unraisable.exc_type.__name__} in {unraisable.object!r}")


def lease_in_with() -> None:
    with gcx.acquire(8, name="mine") as lease:
        _ = lease.stream


def lease_closed() -> None:
    lease = None
    try:
        lease = gcx.acquire(8, name="mine")
    finally:
        if lease is not None:
            lease.close()


def lease_collected() -> None:
    lease = gcx.acquire(8, name="mine")
    lease.create_stream().record()


def lease_resized() -> None:
    lease = gcx.acquire(8)
    lease.resize(16)
    lease.close()


def lease_parked() -> None:
    giver, taker = gcx.acquire(8), gcx.acquire(8)
    gcx.resize({giver: gcx.PARKED, taker: 16})


def lease_in_cycle() -> None:
    cycle: list[object] = [gcx.acquire(8)]
    cycle.append(cycle)
    del cycle
    gc.collect(0)


def reservation() -> None:
    with gcx.reserve(8, name="mine") as reservation:
        reservation.acquire(None)


def split() -> None:
    with gcx.split([24, 32]):
        pass


def context_and_stream() -> None:
    context = gcx.Context(GROUP)
    stream = context.stream()
    gcx.Stream.from_native(stream.native)
    event = stream.record(gcx.Event(timing=True))
    gcx.Event.from_native(event.native)
    stream.wait(stream.native)


def cancel() -> None:
    with gcx.Cancel() as one:
        one.signal()


def graph() -> None:
    gcx.Graph(CAPTURED)


def graph_launched() -> None:
    with gcx.Graph(CAPTURED) as one:
        one.launch([NATIVE])


def prewarm() -> None:
    gcx.prewarm(GROUP)


def refused() -> None:
    with suppress(gcx.AlreadyAcquiredError):
        gcx.acquire(8)
        raise AssertionError("another lease has all SMs")


def waiting() -> None:
    with suppress(gcx.TimeoutError):
        gcx.acquire(8, timeout=0.001)
        raise AssertionError("another lease has all SMs")


def waiting_for_long() -> None:
    gcx.acquire(8, timeout=60)


def logged() -> None:
    """With a receiver of messages, which is where the handler of most signals runs."""
    part = gcx.Context(GROUP)
    try:
        gcx.acquire(1000)
    except gcx.ResourceConfigurationError:
        part.close()


CASES: dict[str, tuple[Callable[[], None], bool]] = {
    call.__name__: (call, call in (refused, waiting, waiting_for_long))
    for call in (
        *(lease_in_with, lease_closed, lease_collected, lease_resized, lease_parked),
        *(lease_in_cycle, reservation, split, context_and_stream, cancel, graph, graph_launched),
        *(prewarm, refused, waiting, waiting_for_long, logged),
    )
}


def until_interrupted(call: Callable[[], None], before: int) -> None:
    end = time.monotonic() + PATIENCE
    while fired == before and time.monotonic() < end:
        call()


def left() -> tuple[int, ...]:
    counts = alive()
    return (
        *(len(gcx.leases()), len(gcx.reservations()), gcx.cache_stats().in_use),
        *(counts.events, counts.graphs),
    )


def run(name: str, count: int, numbers: random.Random) -> bool:
    """Interrupts a case so often; whether nothing was left and no signal lost."""
    call, needs_all = CASES[name]
    taken = gcx.acquire(None) if needs_all else None
    seen, most, swallowed_before = 0, left(), len(swallowed)
    for _ in range(count):
        before = fired
        try:
            signal.setitimer(signal.ITIMER_REAL, 1e-5 + numbers.random() * LONGEST)
            until_interrupted(call, before)
        except Interrupted:
            seen += 1
    gc.collect()
    after = left()
    good = (seen, after, len(swallowed)) == (count, most, swallowed_before)
    print(f"{name}: {count} signals, {seen} seen, left {after} of {most}", flush=True)
    if taken is not None:
        taken.close()
    return good


def main() -> int:
    count, names = int(sys.argv[1]), sys.argv[2:] or list(CASES)
    signal.signal(signal.SIGALRM, handle)
    sys.unraisablehook = note_swallowed
    gcx.set_cache_limit(4)
    numbers = random.Random(count)
    good = True
    for name in names:
        logger = logging.getLogger("gcx")
        logger.setLevel(logging.DEBUG if name == "logged" else logging.NOTSET)
        for _ in range(3):  # What is created once and kept.
            if name not in ("refused", "waiting", "waiting_for_long"):
                CASES[name][0]()
        good = run(name, count, numbers) and good
    print(f"Python {sys.version.split()[0]}: {fired} signals, swallowed: {swallowed}")
    return 0 if good and not swallowed else 1


WORK = Work()
GROUP = gcx.Device(0).resources.sm.split([24]).groups[0]
CAPTURED = WORK.capture()
STREAM = gcx.Context(GROUP).stream()
NATIVE = STREAM.native

if __name__ == "__main__":
    sys.exit(main())

"""Waiting for SMs: who is first, giving up, Ctrl-C, threads, forks, and the process's end."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import gcx
import pytest


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(16) as pool:
        yield pool


@pytest.fixture
def held() -> Iterator[gcx.Lease]:
    """A lease of 100 SMs: 32 are free."""
    with gcx.acquire(100, name="held") as lease:
        yield lease


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def waiting() -> list[str]:
    """The names of those who wait, the first first."""
    return [lease.name for lease in gcx.leases() if lease.waiting]


def acquired(threads: ThreadPoolExecutor, count: int, name: str, **how: Any) -> Future[gcx.Lease]:
    """A lease that another thread waits for by now."""
    before = len(waiting())
    found = threads.submit(gcx.acquire, count, name=name, timeout=None, **how)
    until(lambda: len(waiting()) > before)
    return found


def test_wait_for_rest_is_listed_without_a_count(threads: ThreadPoolExecutor) -> None:
    with gcx.acquire(None) as held:
        late = threads.submit(gcx.acquire, None, name="late", timeout=None)
        until(lambda: waiting() == ["late"])
        assert [lease.sm_count for lease in gcx.leases()] == [132, None]
        held.close()
        late.result(60).close()


def test_a_time_out_in_the_main_thread_and_in_another(
    threads: ThreadPoolExecutor, held: gcx.Lease
) -> None:
    for call in (gcx.acquire, lambda *a, **k: threads.submit(gcx.acquire, *a, **k).result(60)):
        start = time.monotonic()
        with pytest.raises(
            gcx.AlreadyAcquiredError, match="timed out after 50 ms waiting for 64 SMs"
        ):
            call(64, timeout=0.05)
        assert time.monotonic() - start >= 0.05
        call(32, timeout=None).close()  # What is free is given at once.


def test_the_main_thread_waits_too(threads: ThreadPoolExecutor, held: gcx.Lease) -> None:
    def make_room() -> None:
        until(lambda: waiting() == ["main"])
        held.resize(24)

    made = threads.submit(make_room)
    with gcx.acquire(64, name="main", timeout=60) as lease:
        made.result(60)
        assert lease.sm_count == 64
        assert lease.resource.isdisjoint(held.resource)


@pytest.mark.parametrize("others", [0, 3])
def test_cancel_gives_up_all_waits(
    threads: ThreadPoolExecutor, held: gcx.Lease, others: int
) -> None:
    with gcx.Cancel() as cancel:
        assert repr(cancel) == "<gcx.Cancel>"
        found = [acquired(threads, 64, "other", cancel=cancel) for _ in range(others)]

        def give_up() -> None:
            until(lambda: len(waiting()) == others + 1)
            cancel.signal()

        threads.submit(give_up)
        with pytest.raises(gcx.NotPermittedError, match=r"cancelled by Cancel\.signal"):
            gcx.acquire(64, timeout=None, cancel=cancel)
        for one in found:
            with pytest.raises(gcx.NotPermittedError, match="64 SMs"):
                one.result(60)
        assert cancel.signalled
        assert repr(cancel) == "<gcx.Cancel, signalled>"
        with pytest.raises(gcx.NotPermittedError):  # For good.
            gcx.acquire(64, timeout=None, cancel=cancel)
        with pytest.raises(gcx.NotPermittedError):
            threads.submit(gcx.acquire, 64, timeout=None, cancel=cancel).result(60)
        assert waiting() == []
    with pytest.raises(gcx.InvalidHandleError, match=r"gcx\.Cancel is closed"):
        cancel.signal()
    with pytest.raises(gcx.InvalidHandleError, match=r"gcx\.Cancel is closed"):
        gcx.acquire(8, cancel=cancel)


def test_closing_a_cancel_gives_up_no_wait(threads: ThreadPoolExecutor, held: gcx.Lease) -> None:
    cancel = gcx.Cancel()
    found = acquired(threads, 64, "waits", cancel=cancel)
    cancel.close()
    held.resize(8)
    found.result(60).close()


def test_ctrl_c_gives_a_wait_up(threads: ThreadPoolExecutor, held: gcx.Lease) -> None:
    def interrupt() -> None:
        until(lambda: waiting() == ["main"])
        os.kill(os.getpid(), signal.SIGINT)

    # A process that a script started in the background is born with the signal ignored.
    former = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with gcx.Cancel() as cancel:
            for giving_up in (None, cancel):
                threads.submit(interrupt)
                with pytest.raises(KeyboardInterrupt):
                    gcx.acquire(64, name="main", timeout=300, cancel=giving_up)
                assert waiting() == []
            assert not cancel.signalled  # It is others' too.
            assert not cancel._waits
    finally:
        signal.signal(signal.SIGINT, former)
    assert len(gcx.leases()) == 1


def test_a_signal_that_raises_nothing_ends_no_wait(
    threads: ThreadPoolExecutor, held: gcx.Lease
) -> None:
    seen: list[int] = []
    former = signal.signal(signal.SIGUSR1, lambda number, frame: seen.append(number))
    try:

        def send() -> None:
            until(lambda: waiting() == ["main"])
            os.kill(os.getpid(), signal.SIGUSR1)
            until(lambda: seen == [signal.SIGUSR1])  # While it waits.
            assert waiting() == ["main"]
            held.close()

        sent = threads.submit(send)
        gcx.acquire(64, name="main", timeout=None).close()
        sent.result(60)
    finally:
        signal.signal(signal.SIGUSR1, former)


def test_others_run_while_one_waits(threads: ThreadPoolExecutor, held: gcx.Lease) -> None:
    """The GIL is given up, though nobody else would let go of it."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(100)
    try:
        found = threads.submit(gcx.acquire, 64, timeout=60)
        while not any(lease.waiting for lease in gcx.leases()):
            time.sleep(0)
        held.close()
        found.result(60).close()
    finally:
        sys.setswitchinterval(interval)


def test_threads_change_leases_that_others_use(threads: ThreadPoolExecutor) -> None:
    """Resizes, launches, closings and lists at once: nobody is hurt, no SM is two leases'."""
    rounds = 60
    with gcx.acquire(32, name="a") as a, gcx.acquire(32, name="b") as b:

        def resize() -> None:
            for number in range(rounds):
                count = 16 + 8 * (number % 4)
                gcx.resize({a: count, b: 72 - count}, deferred=number % 2 == 0)

        def use(lease: gcx.Lease) -> None:
            for _ in range(rounds):
                assert lease.stream is lease.stream
                assert len(lease.stream.sm_ids()) % 8 == 0
                lease.stream.record().close()
                lease.query()

        def come_and_go() -> None:
            for _ in range(rounds):
                with gcx.acquire(8, timeout=60) as mine, mine.create_stream() as stream:
                    mine.resize(16)
                    stream.synchronize()
                    assert mine.resource.isdisjoint(a.resource - b.resource)

        def look() -> None:
            for _ in range(rounds):
                held = [lease for lease in gcx.leases() if not lease.waiting]
                assert {"a", "b"} <= {lease.name for lease in held}
                gcx.prepare({a: 24, b: 48})

        done = [threads.submit(call) for call in (resize, come_and_go, come_and_go, look)]
        done += [threads.submit(use, lease) for lease in (a, b, a)]
        for one in done:
            one.result(300)
        assert a.resource.isdisjoint(b.resource)
    assert gcx.leases() == []


def test_closing_in_two_threads_at_once(threads: ThreadPoolExecutor) -> None:
    for _ in range(100):
        lease = gcx.acquire(8)
        stream = lease.stream
        barrier = threading.Barrier(3)

        def close(lease: gcx.Lease = lease, barrier: threading.Barrier = barrier) -> None:
            barrier.wait()
            lease.close()

        both = [threads.submit(close) for _ in range(2)]
        barrier.wait()
        with suppress(gcx.ContextDestroyedError, gcx.InvalidHandleError):
            stream.sm_ids()
        for one in both:
            one.result(60)
        assert lease.closed


def test_nothing_leaks(held: gcx.Lease) -> None:
    def failing() -> None:
        with pytest.raises(gcx.AlreadyAcquiredError):
            gcx.acquire(64)

    def back_and_forth() -> None:
        one.resize(8)
        one.resize(16)

    def handing_over() -> None:
        gcx.acquire(8, timeout=None).hand_over(one)
        one.resize(16)

    one = gcx.acquire(16)
    calls: list[tuple[int, Callable[[], object]]] = [
        (5000, lambda: gcx.acquire(8).close()),
        (5000, lambda: gcx.acquire(8, name="two").stream.native),
        (5000, back_and_forth),
        (5000, lambda: (one.sm_count, one.resource, one.query(), gcx.leases())),
        (5000, lambda: gcx.Cancel().signal()),
        (1000, failing),
        (50, handing_over),
    ]
    for rounds, call in calls:
        for _ in range(100):
            call()
        gc.collect()
        blocks = sys.getallocatedblocks()
        none = sys.getrefcount(None)
        for _ in range(rounds):
            call()
        gc.collect()
        assert sys.getallocatedblocks() - blocks < 100
        assert sys.getrefcount(None) - none < 100
    assert len(gcx.leases()) == 2


@pytest.mark.parametrize(
    "ending",
    [
        "",
        "del lease, stream",
        "raise SystemExit(0)",
        "import sys; sys.modules.clear()",
        "cycle = [lease, stream]; cycle.append(cycle); del lease, stream",
        "import builtins; builtins.kept = lease, stream",
        "import atexit; atexit.register(lease.close)",
        "import atexit; atexit.register(stream.close)",
        "import threading; threading.Thread(target=lease.synchronize).start()",
        # Threads that the process's end finds waiting, and in the midst of changes.
        "import threading, time; threading.Thread(target=gcx.acquire, args=(132,), "
        "kwargs={'timeout': None}, daemon=True).start(); time.sleep(0.1)",
        "import threading, time; threading.Thread(target=lambda: [lease.resize(n % 8 + 1) "
        "for n in range(10**9)], daemon=True).start(); time.sleep(0.05)",
        "import weakref; weakref.finalize(lease, print, end='')",
    ],
)
def test_the_process_ends_quietly_with_live_leases(script: Any, ending: str) -> None:
    code = "import gcx\nlease = gcx.acquire(24)\nstream = lease.stream\nlease.resize(32)\n"
    assert script(code + ending + "\n") == ""


def test_in_a_forked_child_nothing_raises_at_an_end(script: Any) -> None:
    code = """
import os, sys, gcx
with gcx.acquire(24, name="parent's") as lease, gcx.Cancel() as cancel:
    stream = lease.create_stream()
    child = os.fork()
    if child == 0:
        for thing in (lease, cancel, stream):
            assert repr(thing).startswith("<gcx."), thing
        for call in (lambda: gcx.acquire(8), lease.query, lambda: lease.resize(8), gcx.leases,
                     lambda: gcx.acquire(8, timeout=None), cancel.signal):
            try:
                call()
            except gcx.NotInitializedError as error:
                assert "spawn" in str(error), error
            else:
                raise SystemExit("no error")
if child == 0:
    sys.exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
"""
    script(code)


_RESET = """
import ctypes, gcx
lease = gcx.acquire(24)
stream = lease.create_stream()
own = lease.stream
assert ctypes.CDLL(gcx.driver_info().library).cuDevicePrimaryCtxReset_v2(0) == 0
for use in (stream.query, own.synchronize, lambda: own.native, lambda: lease.sm_count,
            lambda: lease.resize(32), lease.synchronize, lease.create_stream):
    try:
        use()
    except gcx.ContextDestroyedError as error:
        assert "reset" in str(error), error
        continue
    raise SystemExit("a lease outlived the reset")
assert repr(lease) == "<gcx.Lease: GCX_ERROR_CONTEXT_IS_DESTROYED>"
lease.close()
with gcx.acquire(None) as fresh:
    print(len(fresh.stream.sm_ids()))
"""


def test_a_reset_of_the_device_ends_leases(script: Any) -> None:
    """On a driver that permits it while green contexts live, as the simulated 12.4 does."""
    assert script(_RESET, driver="sim:h100@12.4") == "132\n"

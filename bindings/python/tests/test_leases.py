"""Leases: their attributes, waits, cancelling and Ctrl-C."""

from __future__ import annotations

import gc
import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import gcx
import pytest
from work import Work, until, waiting  # type: ignore[import-not-found]


@pytest.fixture
def blocker() -> Iterator[gcx.Lease]:
    """A lease of 100 SMs: 32 are free."""
    with gcx.acquire(100, name="blocker") as lease:
        yield lease


def acquire_later(
    threads: ThreadPoolExecutor, count: int | None, name: str, **how: Any
) -> Future[gcx.Lease]:
    """Returns a lease that another thread waits for by now."""
    before = len(waiting())
    found = threads.submit(gcx.acquire, count, name=name, timeout=None, **how)
    until(lambda: len(waiting()) > before)
    return found


def test_lease_attributes_and_list() -> None:
    assert gcx.leases() == []
    with gcx.acquire(24, name="ä" * 31) as one, gcx.acquire(16, shared=True) as two:
        assert (one.sm_count, one.exclusive_sm_count, one.device) == (24, 24, 0)
        assert (one.family, one.shared, one.changes, one.closed) == ("coscheduled", False, 0, False)
        assert repr(one) == f'<gcx.Lease "{"ä" * 31}": 24 SMs of device 0, coscheduled>'
        assert repr(two).startswith(f"<gcx.Lease {two.id}: 16 SMs")
        stream = two.create_stream()
        first, second = gcx.leases(0)
        assert (first.id, first.name, first.sm_count, first.shared) == (one.id, "ä" * 31, 24, False)
        assert first.resource == one.resource
        assert (second.sm_count, second.exclusive_sm_count, second.shared) == (16, 0, True)
        assert (second.stream_count, second.waiting, second.name) == (1, False, "")
        assert second.family == "coscheduled"
        del stream
        gc.collect()
        assert two.stream_count == 0
    with pytest.raises(gcx.InvalidDeviceError):
        gcx.leases(7)
    many = [gcx.acquire(8, shared=True) for _ in range(40)]
    assert len(gcx.leases()) == len(many)  # More than the first buffer has room for.


def test_lease_stands_for_its_present_stream() -> None:
    with gcx.acquire(24) as lease:
        stream, before = lease.stream, lease.stream.native
        assert lease.stream is stream
        lease.resize(64)
        assert lease.changes == 1
        assert stream.native != before
        assert stream.__cuda_stream__() == lease.__cuda_stream__() == (0, stream.native)
        assert stream.sm_count == len(stream.sm_ids()) == stream.resources.sm.sm_count == 64


def test_lease_records_the_work_of_its_stream(work: Work) -> None:
    with gcx.acquire(24) as lease, lease.create_stream() as other, gcx.Event(timing=True) as mine:
        work.spin(lease.stream, 5)
        work.spin(other, 50)
        assert lease.record(mine) is mine
        mine.synchronize()
        assert not lease.query()  # The other stream works.
        lease.synchronize()
        assert lease.query()
    for event in (None, mine):
        with pytest.raises(gcx.InvalidHandleError):
            lease.record(event)


def test_lease_stream_closed_is_recreated() -> None:
    with gcx.acquire(24, priority=-2) as lease:
        assert lease.stream_count == 0
        with lease.stream as stream:
            assert stream.priority == -2
        assert lease.stream is not stream
        assert lease.stream.priority == -2
        assert lease.stream_count == 1


def test_parked_lease_raises_in_its_streams() -> None:
    with gcx.acquire(32, name="decode") as decode:
        other, own = decode.create_stream(), decode.stream
        decode.resize(gcx.PARKED)
        assert (decode.sm_count, decode.resource.sm_count) == (0, 0)
        for call in (lambda: own.native, other.record, decode.create_stream, decode.record):
            with pytest.raises(gcx.LeaseParkedError, match='"decode" is parked'):
                call()
        with pytest.raises(TypeError):
            gcx.acquire(gcx.PARKED)  # type: ignore[arg-type]
        assert repr(gcx.PARKED) == "gcx.PARKED"


def test_closed_lease_and_its_streams_are_refused() -> None:
    lease = gcx.acquire(None)
    own, other = lease.stream, lease.create_stream(priority=-1)
    assert other.priority == -1
    lease.close()
    lease.close()
    assert repr(lease) == "<gcx.Lease, closed>"
    for stream in (own, other):
        for name in ("native", "sm_count"):
            with pytest.raises(gcx.ContextDestroyedError):
                getattr(stream, name)
        with pytest.raises(gcx.ContextDestroyedError):
            stream.query()
    calls: list[Any] = [
        *(lambda name=name: getattr(lease, name) for name in ("stream", "sm_count", "resource")),
        *(lease.create_stream, lease.synchronize, lease.query, lease.__enter__),
        *(lambda: lease.resize(8), lambda: gcx.prepare({lease: 8}), lease.__cuda_stream__),
    ]
    for call in calls:
        with pytest.raises(gcx.InvalidHandleError, match=r"this gcx\.Lease is closed"):
            call()
    other.close()


def test_wait_times_out_in_any_thread(threads: ThreadPoolExecutor, blocker: gcx.Lease) -> None:
    for call in (gcx.acquire, lambda *a, **k: threads.submit(gcx.acquire, *a, **k).result(60)):
        start = time.monotonic()
        with pytest.raises(gcx.TimeoutError, match="50 ms"):
            call(64, timeout=0.05)
        assert time.monotonic() - start >= 0.05
        call(32, timeout=None).close()  # Free SMs are acquired at once.


def test_wait_in_the_main_thread_is_served(threads: ThreadPoolExecutor, blocker: gcx.Lease) -> None:
    def make_room() -> None:
        until(lambda: waiting() == ["main"])
        blocker.resize(24)

    made = threads.submit(make_room)
    with gcx.acquire(64, name="main", timeout=60) as lease:
        made.result(60)
        assert lease.sm_count == 64
        assert lease.resource.isdisjoint(blocker.resource)


@pytest.mark.parametrize("others", [0, 3])
def test_cancel_ends_all_its_waits(
    threads: ThreadPoolExecutor, blocker: gcx.Lease, others: int
) -> None:
    with gcx.Cancel() as cancel:
        assert repr(cancel) == "<gcx.Cancel>"
        found = [acquire_later(threads, 64, "other", cancel=cancel) for _ in range(others)]

        def signal_all() -> None:
            until(lambda: len(waiting()) == others + 1)
            cancel.signal()

        threads.submit(signal_all)
        with pytest.raises(gcx.CancelledError, match=r"Cancel\.signal"):
            gcx.acquire(64, timeout=None, cancel=cancel)
        for one in found:
            with pytest.raises(gcx.CancelledError, match="64 SMs"):
                one.result(60)
        assert cancel.signalled
        assert repr(cancel) == "<gcx.Cancel, signalled>"
        for call in (gcx.acquire, lambda *a, **k: threads.submit(gcx.acquire, *a, **k).result(60)):
            with pytest.raises(gcx.CancelledError):  # Permanently.
                call(64, timeout=None, cancel=cancel)
        assert waiting() == []
    for use in (cancel.signal, lambda: gcx.acquire(8, cancel=cancel)):
        with pytest.raises(gcx.InvalidHandleError, match=r"gcx\.Cancel is closed"):
            use()


def test_cancel_closed_ends_no_wait(threads: ThreadPoolExecutor, blocker: gcx.Lease) -> None:
    cancel = gcx.Cancel()
    found = acquire_later(threads, 64, "waits", cancel=cancel)
    cancel.close()
    blocker.resize(8)
    found.result(60).close()


def test_ctrl_c_cancels_only_its_wait(threads: ThreadPoolExecutor, blocker: gcx.Lease) -> None:
    def interrupt() -> None:
        until(lambda: waiting() == ["main"])
        os.kill(os.getpid(), signal.SIGINT)

    # A process that a script starts in the background ignores the signal.
    former = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with gcx.Cancel() as shared:
            for cancel in (None, shared):
                threads.submit(interrupt)
                with pytest.raises(KeyboardInterrupt):
                    gcx.acquire(64, name="main", timeout=300, cancel=cancel)
                assert waiting() == []
            assert not shared.signalled
            assert not shared._waits
    finally:
        signal.signal(signal.SIGINT, former)
    assert len(gcx.leases()) == 1


def test_signal_handler_that_returns_ends_no_wait(
    threads: ThreadPoolExecutor, blocker: gcx.Lease
) -> None:
    seen: list[int] = []
    former = signal.signal(signal.SIGUSR1, lambda number, frame: seen.append(number))
    try:

        def send() -> None:
            until(lambda: waiting() == ["main"])
            os.kill(os.getpid(), signal.SIGUSR1)
            until(lambda: seen == [signal.SIGUSR1])  # During the wait.
            assert waiting() == ["main"]
            blocker.close()

        sent = threads.submit(send)
        gcx.acquire(64, name="main", timeout=None).close()
        sent.result(60)
    finally:
        signal.signal(signal.SIGUSR1, former)

"""Leases: their attributes, waits, cancelling and Ctrl-C, also in asyncio."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import os
import random
import signal
import time
from collections.abc import Callable, Coroutine, Iterator
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


# Waits of asyncio: cancelled at every moment, many at once, without their event loop


@pytest.fixture(autouse=True)
def _no_lease_is_left() -> Iterator[None]:
    """Checks after each test that every lease ends, also one that no task got."""
    yield
    all_is_free()


@pytest.fixture
def all_sms() -> Iterator[gcx.Lease]:
    """A lease of all SMs."""
    with gcx.acquire(None, name="all") as lease:
        yield lease


def all_is_free() -> None:
    """Waits until no lease has SMs, not even one that is granted and not made yet."""
    gc.collect()
    gcx.acquire(132, timeout=60).close()


async def soon(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.001)


def granted(name: str) -> bool:
    return any(lease.name == name and not lease.waiting for lease in gcx.leases())


def start(coroutine: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
    return asyncio.get_running_loop().create_task(coroutine)


async def waiting_task(name: str = "waits", count: int = 64) -> asyncio.Task[gcx.Lease]:
    """Returns a task whose request is in the queue."""
    task = start(gcx.acquire_async(count, name=name))
    await soon(lambda: name in waiting())
    return task


async def is_cancelled(task: asyncio.Task[Any]) -> bool:
    await asyncio.wait([task])
    return task.cancelled()


def test_acquire_async_has_the_arguments_of_acquire() -> None:
    async def main() -> None:
        lease = await gcx.acquire_async(
            20, name="ä", device=gcx.Device(0), min_sm_count=8, shared=True, exclusive_sm_count=8,
            family="fine", timeout=0, priority=-2,
        )  # fmt: skip
        with lease:
            assert (lease.name, lease.sm_count, lease.exclusive_sm_count) == ("ä", 20, 8)
            assert (lease.shared, lease.family, lease.stream.priority) == (True, "fine", -2)

    asyncio.run(main())


def test_acquire_async_lets_other_tasks_run(all_sms: gcx.Lease) -> None:
    async def main() -> None:
        task = await waiting_task()
        ticks = 0
        for _ in range(20):
            await asyncio.sleep(0.001)
            ticks += 1
        assert ticks == 20
        assert not task.done()
        all_sms.close()
        with await task as lease:
            assert lease.sm_count == 64

    asyncio.run(main())


def test_acquire_async_errors_are_those_of_acquire(all_sms: gcx.Lease) -> None:
    wrong: list[tuple[type[BaseException], dict[str, Any]]] = [
        (TypeError, {"sm_count": "8"}),
        (TypeError, {"sm_count": 8, "timeout": "1"}),
        (TypeError, {"sm_count": 8, "cancel": None}),
        (gcx.InvalidValueError, {"sm_count": 0}),
        (gcx.InvalidValueError, {"sm_count": 8, "timeout": -1}),
        (gcx.InvalidDeviceError, {"sm_count": 8, "device": 7}),
        (gcx.ResourceConfigurationError, {"sm_count": 133}),
        (gcx.AlreadyAcquiredError, {"sm_count": 8, "timeout": 0}),
        (gcx.TimeoutError, {"sm_count": 8, "timeout": 0.01}),
    ]

    async def main() -> None:
        for error, arguments in wrong:
            with pytest.raises(error):
                await gcx.acquire_async(**arguments)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(gcx.acquire_async(8), 0.01)
        assert waiting() == []

    asyncio.run(main())
    coroutine = gcx.acquire_async(8)
    with pytest.raises(RuntimeError, match="no running event loop"):
        coroutine.send(None)


def test_acquire_async_without_a_thread_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object) -> int:
        raise RuntimeError("can't start new thread")

    async def main() -> None:
        with pytest.raises(RuntimeError, match="new thread"):
            await gcx.acquire_async(8)

    monkeypatch.setattr("_thread.start_new_thread", refuse)
    asyncio.run(main())


def test_cancelled_task_has_left_the_queue(all_sms: gcx.Lease) -> None:
    async def main() -> None:
        first, second = await waiting_task("first"), await waiting_task("second")
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        assert waiting() == ["second"]
        all_sms.close()
        (await second).close()

    asyncio.run(main())


def test_task_cancelled_before_it_runs_acquires_nothing() -> None:
    async def main() -> None:
        task = start(gcx.acquire_async(64))
        task.cancel()
        assert await is_cancelled(task)
        assert gcx.leases() == []

    asyncio.run(main())


@pytest.mark.parametrize("delivered", [False, True])
def test_task_cancelled_after_the_grant_loses_no_lease(all_sms: gcx.Lease, delivered: bool) -> None:
    """The event loop does not know of the lease yet, or has it and the task has not run since."""

    async def main() -> None:
        task = await waiting_task("raced")
        all_sms.close()
        until(lambda: granted("raced"))
        if delivered:
            time.sleep(0.05)  # The delivery is the loop's next callback, or the one after that.
            asyncio.get_running_loop().call_soon(task.cancel)
        else:
            task.cancel()
        assert await is_cancelled(task)
        all_is_free()

    asyncio.run(main())


def test_tasks_cancelled_at_any_moment_lose_no_lease() -> None:
    pause = random.Random(20261124)
    ends = {"cancelled": 0, "acquired": 0}

    async def one(seconds: float) -> None:
        task = start(gcx.acquire_async(40))
        await asyncio.sleep(seconds)
        task.cancel()
        if await is_cancelled(task):
            ends["cancelled"] += 1
        else:
            ends["acquired"] += 1
            task.result().close()

    async def main() -> None:
        for _ in range(40):
            await asyncio.gather(*(one(pause.uniform(0, 0.004)) for _ in range(8)))
        all_is_free()

    asyncio.run(main())
    assert sum(ends.values()) == 320
    assert min(ends.values()) > 0, ends


def test_many_tasks_are_served_in_order(all_sms: gcx.Lease) -> None:
    async def main() -> None:
        tasks = [await waiting_task(str(number), 132) for number in range(60)]
        for task in tasks[::2]:
            task.cancel()
        await asyncio.wait(tasks[::2])
        assert waiting() == [str(number) for number in range(1, 60, 2)]
        assert await asyncio.to_thread(len, "ab") == 2  # They occupy no executor.
        order: list[str] = []

        async def finish(task: asyncio.Task[gcx.Lease]) -> None:
            with await task as lease:
                order.append(lease.name)

        all_sms.close()
        await asyncio.gather(*(finish(task) for task in tasks[1::2]))
        assert order == [str(number) for number in range(1, 60, 2)]

    asyncio.run(main())


@pytest.mark.parametrize("delivered", [False, True])
def test_event_loop_closed_during_a_wait_loses_no_lease(
    all_sms: gcx.Lease, delivered: bool
) -> None:
    """The lease comes after the end of the loop, or is among its callbacks, which never run."""
    loop = asyncio.new_event_loop()

    async def main() -> asyncio.Task[gcx.Lease]:
        return await waiting_task("orphan")

    task = loop.run_until_complete(main())
    if not delivered:
        loop.close()
    all_sms.close()
    if delivered:
        until(lambda: granted("orphan"))
        time.sleep(0.05)
        loop.close()
        del task, loop
    all_is_free()


def test_coroutine_that_is_closed_cancels_its_wait(all_sms: gcx.Lease) -> None:
    async def main() -> None:
        coroutine = gcx.acquire_async(64, name="closed")
        coroutine.send(None)
        await soon(lambda: waiting() == ["closed"])
        coroutine.close()
        assert waiting() == []

    asyncio.run(main())


def test_ctrl_c_ends_a_wait_of_the_main_task(script: Any) -> None:
    code = """
import asyncio, os, signal, gcx
signal.signal(signal.SIGINT, signal.default_int_handler)
blocker = gcx.acquire(None)

async def main():
    loop = asyncio.get_running_loop()
    loop.call_later(0.1, os.kill, os.getpid(), signal.SIGINT)
    await gcx.acquire_async(64)

try:
    asyncio.run(main())
except KeyboardInterrupt:
    print("interrupted", [lease.waiting for lease in gcx.leases()])
"""
    assert script(code) == "interrupted [False]\n"


def test_process_that_ends_during_a_wait_ends(script: Any) -> None:
    code = """
import asyncio, os, gcx
blocker = gcx.acquire(None)

async def main():
    coroutine = gcx.acquire_async(64)
    coroutine.send(None)
    while not any(lease.waiting for lease in gcx.leases()):
        await asyncio.sleep(0.001)
    return coroutine

kept = asyncio.run(main())
print("ends", flush=True)
"""
    assert script(code) == "ends\n"


def advance(milliseconds: float) -> None:
    """Lets time pass on the simulated device."""
    library = ctypes.CDLL(gcx.driver_info().library)
    library.gcx_sim_advance(ctypes.c_uint64(int(milliseconds * 1_000_000)))


def test_event_is_awaited(work: Work, part: gcx.Partition) -> None:
    async def main() -> None:
        event = gcx.Event()
        await event.wait_async()  # Never recorded.
        work.spin(part.stream, 5)
        part.stream.record(event)
        waits = [start(event.wait_async()) for _ in range(20)]
        await asyncio.sleep(0.01)
        assert not any(wait.done() for wait in waits)
        waits[0].cancel()
        assert await is_cancelled(waits[0])
        advance(10)
        await asyncio.wait_for(asyncio.gather(*waits[1:]), 60)
        assert event.query()

    asyncio.run(main())


def test_event_closed_during_a_wait_is_an_error(work: Work, part: gcx.Partition) -> None:
    async def main() -> None:
        work.spin(part.stream, 5)
        event = part.stream.record()
        wait = start(event.wait_async())
        await asyncio.sleep(0.005)
        event.close()
        with pytest.raises(gcx.InvalidHandleError):
            await wait
        with pytest.raises(gcx.InvalidHandleError):
            await event.wait_async()

    asyncio.run(main())
    part.synchronize()

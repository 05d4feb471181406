"""Waits of asyncio: cancelled at every moment, many at once, without their event loop."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import random
import time
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import gcx
import pytest
from work import Work, until, waiting  # type: ignore[import-not-found]


@pytest.fixture(autouse=True)
def _no_lease_is_left() -> Iterator[None]:
    """Checks after each test that every lease ends, also one that no task got."""
    yield
    all_is_free()


@pytest.fixture
def blocker() -> Iterator[gcx.Lease]:
    """A lease of all SMs."""
    with gcx.acquire(None, name="blocker") as lease:
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


def test_acquire_async_lets_other_tasks_run(blocker: gcx.Lease) -> None:
    async def main() -> None:
        task = await waiting_task()
        ticks = 0
        for _ in range(20):
            await asyncio.sleep(0.001)
            ticks += 1
        assert ticks == 20
        assert not task.done()
        blocker.close()
        with await task as lease:
            assert lease.sm_count == 64

    asyncio.run(main())


def test_acquire_async_errors_are_those_of_acquire(blocker: gcx.Lease) -> None:
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


def test_cancelled_task_has_left_the_queue(blocker: gcx.Lease) -> None:
    async def main() -> None:
        first, second = await waiting_task("first"), await waiting_task("second")
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        assert waiting() == ["second"]
        blocker.close()
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
def test_task_cancelled_after_the_grant_loses_no_lease(blocker: gcx.Lease, delivered: bool) -> None:
    """The event loop does not know of the lease yet, or has it and the task has not run since."""

    async def main() -> None:
        task = await waiting_task("raced")
        blocker.close()
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


def test_many_tasks_are_served_in_order(blocker: gcx.Lease) -> None:
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

        blocker.close()
        await asyncio.gather(*(finish(task) for task in tasks[1::2]))
        assert order == [str(number) for number in range(1, 60, 2)]

    asyncio.run(main())


@pytest.mark.parametrize("delivered", [False, True])
def test_event_loop_closed_during_a_wait_loses_no_lease(
    blocker: gcx.Lease, delivered: bool
) -> None:
    """The lease comes after the end of the loop, or is among its callbacks, which never run."""
    loop = asyncio.new_event_loop()

    async def main() -> asyncio.Task[gcx.Lease]:
        return await waiting_task("orphan")

    task = loop.run_until_complete(main())
    if not delivered:
        loop.close()
    blocker.close()
    if delivered:
        until(lambda: granted("orphan"))
        time.sleep(0.05)
        loop.close()
        del task, loop
    all_is_free()


def test_coroutine_that_is_closed_cancels_its_wait(blocker: gcx.Lease) -> None:
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

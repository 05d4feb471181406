"""Waits of asyncio, cancelled by the cancellation of their task."""

from __future__ import annotations

import _thread
from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from weakref import ref

from gcx._cancel import Cancel
from gcx._errors import InvalidHandleError
from gcx._owned import Owned

# Seconds between two queries: a tenth of the time that has passed, within these.
_SHORTEST_PAUSE = 0.00025
_LONGEST_PAUSE = 0.02


async def call_in_thread(call: Callable[[int], None], owner: Owned) -> None:
    """Makes call(handle of a Cancel), which fills in owner, in a thread of its own.

    If the task is cancelled, so is the call, and owner has no handle or is closed, whichever of the
    two came first. The event loop may be closed before the call returns. An executor's threads are
    few, and those that wait would keep other work of the loop from them. The thread may end after
    the task, so it keeps no reference to owner that would delay its collection.
    """
    from asyncio import get_running_loop

    loop = get_running_loop()
    done = loop.create_future()
    cancels: list[Cancel] = []
    calls, reference = [call], ref(owner)
    del call
    abandoned = False

    def deliver(error: BaseException | None) -> None:
        if abandoned or done.done():
            return  # Cancelled: the task closes the owner.
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(None)

    def close() -> None:
        live = reference()
        if live is not None:
            live.close()

    def run() -> None:
        failed: BaseException | None = None
        try:
            with Cancel() as own:  # Opens the driver, which may take a second.
                cancels.append(own)
                if not abandoned:
                    calls[0](own._live())
        except BaseException as error:
            failed = error
        if abandoned:
            close()
        calls.clear()
        if abandoned:
            return
        try:
            loop.call_soon_threadsafe(deliver, failed)
        except RuntimeError:  # The loop was closed.
            close()

    try:
        _thread.start_new_thread(run, ())
        await done
    except BaseException:
        abandoned = True
        with suppress(InvalidHandleError):  # The call has returned.
            for own in cancels:
                own.signal()
        owner.close()  # The call may have succeeded at the same moment.
        raise


async def poll(query: Callable[[], bool]) -> None:
    """Waits until query returns True, and lets other tasks run between two queries."""
    from asyncio import sleep

    begin = monotonic()
    while not query():
        await sleep(min(max((monotonic() - begin) / 10, _SHORTEST_PAUSE), _LONGEST_PAUSE))

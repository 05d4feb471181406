"""How what takes long is given up: by another thread, or by Ctrl-C."""

from __future__ import annotations

import _thread
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from gcx import _gcx
from gcx._errors import InvalidHandleError
from gcx._owned import Owned

# Seconds. A signal wakes the main thread, unless the system has another thread handle it.
_LOOK = 0.1


class Cancel(Owned):
    """What waits are given up with: give it to gcx.acquire or gcx.prewarm, and signal it from
    another thread.

    One may be given to any number of calls. Closing it gives up no wait.
    """

    __slots__ = ("_signalled", "_waits")

    def __init__(self) -> None:
        self._signalled = False
        self._waits: set[Cancel] = set()
        _gcx.gcx_cancel_create(self)

    @property
    def signalled(self) -> bool:
        """Whether signal was called."""
        return self._signalled

    def signal(self) -> None:
        """Gives up all waits with it, now and for good: they raise gcx.NotPermittedError."""
        handle = self._live()
        self._signalled = True  # Before it looks at who waits, as those look after they are there.
        _gcx.gcx_cancel_signal(handle)
        for wait in tuple(self._waits):
            with suppress(InvalidHandleError):  # That wait is over meanwhile.
                wait.signal()

    def _describe(self) -> str:
        return ", signalled" if self._signalled else ""


@contextmanager
def joined(cancel: Cancel | None) -> Iterator[Cancel]:
    """A Cancel of a call's own, for what gives up that call alone; signalled with the other too."""
    own = Cancel()
    try:
        if cancel is not None:
            cancel._live()
            cancel._waits.add(own)
            if cancel.signalled:
                own.signal()
        yield own
    finally:
        if cancel is not None:
            cancel._waits.discard(own)
        own.signal()  # Also where a second Ctrl-C came before a call's own signal.
        own.close()  # Not left to the collector, which would swallow a Ctrl-C of that moment.


def interruptible(call: Callable[[int], None], cancel: Cancel | None) -> None:
    """Makes a call that waits, with the handle of a Cancel, so that signals are handled meanwhile.

    Python handles them in the main thread alone, which a wait in C would keep from that. So the
    call is made in a thread of its own, and cancelled if a handler raises, as Ctrl-C's does.

    The thread is no threading.Thread: when one of those is collected, Python code runs, in which
    Python ignores what a signal's handler raises.
    """
    errors: list[BaseException] = []
    ended: list[bool] = []
    done = threading.Lock()

    def run() -> None:
        try:
            call(own._live())
        except BaseException as error:
            errors.append(error)
        finally:
            ended.append(True)
            done.release()

    with joined(cancel) as own:
        done.acquire()
        try:
            try:
                _thread.start_new_thread(run, ())
            except RuntimeError as error:
                if "thread" not in str(error):
                    raise  # by a signal's handler
                run()  # There are no threads in some interpreters, nor while the process ends.
            while not done.acquire(timeout=_LOOK):
                pass
        except BaseException:
            own.signal()
            if not ended:
                done.acquire(timeout=1)  # Takes that long if the signal came before the thread.
            raise
    if errors:
        raise errors.pop()

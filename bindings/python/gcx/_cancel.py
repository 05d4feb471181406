"""Blocking calls: timeouts, cancelling them from another thread, and Ctrl-C."""

from __future__ import annotations

import _thread
import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from gcx import _gcx
from gcx._errors import AlreadyAcquiredError, InvalidHandleError, InvalidValueError, TimeoutError
from gcx._owned import Owned

# Seconds. A signal wakes the main thread, unless the system has another thread handle it.
_POLL = 0.1
_LONGEST = (_gcx.GCX_FOREVER - 1) / 1000


class Cancel(Owned):
    """Cancels blocking calls from another thread: pass it to gcx.acquire, gcx.reserve or
    gcx.prewarm, and call signal.

    Any number of calls may use one. Closing it cancels nothing.
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
        """Cancels all calls that use it, current and future: they raise gcx.CancelledError."""
        handle = self._live()
        self._signalled = True  # Before _waits is read: a call adds itself, then reads this.
        _gcx.gcx_cancel_signal(handle)
        for wait in tuple(self._waits):
            with suppress(InvalidHandleError):  # That call has returned since.
                wait.signal()

    def _describe(self) -> str:
        return ", signalled" if self._signalled else ""


def check_cancel(cancel: Cancel | None) -> None:
    """Raises TypeError if cancel is neither a Cancel nor None."""
    if cancel is not None and not isinstance(cancel, Cancel):
        raise TypeError(f"cancel must be a gcx.Cancel, not {type(cancel).__name__}")


@contextmanager
def joined(cancel: Cancel | None) -> Iterator[Cancel]:
    """Yields a private Cancel for one call, which is signalled together with the caller's."""
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
        own.signal()  # A second Ctrl-C may have come before the call's own signal.
        own.close()  # A collector would swallow a Ctrl-C that came while it closed this.


def wait_for(
    ask: Callable[[int, int], None], owner: Owned, timeout: float | None, cancel: Cancel | None
) -> None:
    """Calls ask(milliseconds, handle of a Cancel), which fills in owner, so that Ctrl-C interrupts.

    Python runs signal handlers only in the main thread, and a wait in C would block it.
    """
    check_cancel(cancel)
    milliseconds = milliseconds_of(timeout)
    handle = 0 if cancel is None else cancel._live()
    if milliseconds == 0 or threading.get_ident() != threading.main_thread().ident:
        ask(milliseconds, handle)
        return
    # Usually the SMs are free, which needs no thread. TimeoutError: the folder is locked.
    with suppress(AlreadyAcquiredError, TimeoutError):
        ask(0, handle)
        return
    try:
        _interruptible(lambda own: ask(milliseconds, own), cancel)
    except BaseException:
        owner.close()  # The request may have been granted at the same moment.
        raise


def _interruptible(call: Callable[[int], None], cancel: Cancel | None) -> None:
    """Makes the call in a second thread, and cancels it if a signal handler raises in this one.

    The thread is no threading.Thread: collecting one of those runs Python code, in which Python
    ignores what a signal handler raises.
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
                    raise  # A signal handler raised it.
                run()  # Some interpreters have no threads, nor has a process that is ending.
            while not done.acquire(timeout=_POLL):
                pass
        except BaseException:
            own.signal()
            if not ended:
                done.acquire(timeout=1)  # Times out if the signal came before the thread started.
            raise
    if errors:
        raise errors.pop()


def milliseconds_of(timeout: Any) -> int:
    """Returns a timeout in seconds, or None, for C."""
    if timeout is None:
        return _gcx.GCX_FOREVER
    if isinstance(timeout, (bool, str, bytes)) or not (
        hasattr(timeout, "__float__") or hasattr(timeout, "__index__")
    ):
        raise TypeError(
            f"timeout must be a number of seconds or None, not {type(timeout).__name__}: "
            f"{timeout!r}"
        )
    try:
        seconds = float(timeout)
    except OverflowError:  # An int beyond every float.
        seconds = timeout = math.inf
    if not 0 <= seconds <= _LONGEST:  # Also refuses NaN.
        raise InvalidValueError(
            f"timeout must be 0 to {_LONGEST:.0f} seconds, not {timeout}; None waits forever"
        )
    return math.ceil(seconds * 1000)

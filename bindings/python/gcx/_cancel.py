"""How what takes long is given up: by another thread, or by Ctrl-C."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from gcx import _gcx
from gcx._errors import InvalidHandleError
from gcx._owned import Owned


class Cancel(Owned):
    """What waits are given up with: give it to gcx.acquire or gcx.prewarm, and signal it from
    another thread.

    One may be given to any number of calls. Closing it gives up no wait.
    """

    __slots__ = ("_signalled", "_waits")
    _destroy = staticmethod(_gcx.gcx_cancel_destroy)

    def __init__(self) -> None:
        self._signalled = False
        self._waits: set[Cancel] = set()
        self._handle = _gcx.gcx_cancel_create()

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
    call is made in a thread of its own, and given up if a handler raises, as Ctrl-C's does.
    """
    errors: list[BaseException] = []
    done = threading.Event()

    def run() -> None:
        try:
            call(own._live())
        except BaseException as error:
            errors.append(error)
        finally:
            done.set()

    with joined(cancel) as own:
        thread = threading.Thread(target=run, name="gcx.acquire")
        try:
            try:
                thread.start()
            except RuntimeError:  # Not in every interpreter, nor while the process ends.
                run()
            done.wait()
        except BaseException:
            own.signal()
            if thread.is_alive():
                thread.join()  # At once: nothing is waited for any more.
            raise
    if errors:
        raise errors.pop()

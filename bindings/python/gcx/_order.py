"""What streams and contexts share: they have resources, and an order of work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Union

from gcx import _gcx
from gcx._event import Event, event_of
from gcx._foreign import StreamLike, native_of
from gcx._owned import Owned
from gcx._resources import Resources


class Ordered(Owned):
    """What work is submitted to: a stream, or a context with all its streams."""

    __slots__ = ()

    _get_info: Callable[[int], tuple[int, ...]]
    _get_resource: Callable[[int, int], bytes]
    _synchronize: Callable[[int], None]
    _record: Callable[[int, int], None]
    _wait: Callable[[int, int], None]

    @property
    def device(self) -> int:
        """The ordinal of the device."""
        return self._get_info(self._live())[0]

    @property
    def resources(self) -> Resources:
        """Those of the context: `.sm`, `.workqueue`."""
        self._live()
        return Resources(
            f"a {type(self).__name__.lower()}",
            lambda kind: self._get_resource(self._live(), kind),
        )

    def synchronize(self) -> None:
        """Waits in the calling thread until all its work has finished, a context's that of all its
        streams. Errors of that work appear here. Ctrl-C interrupts only once it has finished."""
        self._synchronize(self._live())

    def record(self, event: Event | None = None) -> Event:
        """Captures the work submitted so far in the event, or in a new one, and returns it."""
        handle = self._live()
        if event is None:
            event = Event(self.device)
        self._record(handle, event_of(event))
        return event

    def wait(self, what: Waitable) -> None:
        """Holds all later work, a context's that of all its streams, until the event's work, or
        what was submitted so far to the other stream or context, has finished. The calling thread
        does not wait.

        Args:
            what: A gcx.Event, Stream, Context, Partition or Lease, or a stream of another library
                as Stream.from_native takes.
        """
        handle = self._live()
        if isinstance(what, Event):
            self._wait(handle, what._live())
            return
        # A partition's or a lease's. A lease's native stream may be another the next moment.
        stream = getattr(what, "stream", None)
        if isinstance(stream, Ordered):
            what = stream
        with what.record() if isinstance(what, Ordered) else _recorded(what) as event:
            self._wait(handle, event._live())


#: What can be waited for.
Waitable = Union[Event, Ordered, StreamLike]


def _recorded(stream: StreamLike) -> Event:
    """A new event with what was submitted so far to another library's stream."""
    with _gcx.gcx_stream_from_native(native_of(stream), Owned()) as theirs:
        event = Event(_gcx.gcx_stream_get_info(theirs._live())[0])
        _gcx.gcx_stream_record(theirs._live(), event._live())
        return event

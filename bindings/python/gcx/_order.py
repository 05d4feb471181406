"""The base of streams and contexts: resources and the order of work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Union

from gcx import _gcx
from gcx._event import Event, event_of
from gcx._external import StreamLike, native_of
from gcx._owned import Owned
from gcx._resource import Resources


class Ordered(Owned):
    """A stream, or a context, whose work is that of all its streams."""

    __slots__ = ()

    _get_info: Callable[[int], tuple[int, ...]]
    _get_resource: Callable[[int, int], bytes]
    _synchronize: Callable[[int], None]
    _record: Callable[[int, int], None]
    _wait: Callable[[int, int], None]

    def _info(self) -> tuple[int, ...]:
        return self._get_info(self._live())

    @property
    def device(self) -> int:
        """The ordinal of the device."""
        return self._info()[0]

    @property
    def resources(self) -> Resources:
        """The resources of the context: `.sm`, `.workqueue`."""
        self._live()
        return Resources(
            f"a {type(self).__name__.lower()}",
            lambda kind: self._get_resource(self._live(), kind),
        )

    def synchronize(self) -> None:
        """Blocks the calling thread until all its work has finished. Raises the errors of that
        work. Ctrl-C takes effect only afterwards."""
        self._synchronize(self._live())

    def record(self, event: Event | None = None) -> Event:
        """Records the work submitted so far in the event, or in a new one, and returns it."""
        handle = self._live()
        if event is None:
            event = Event(self.device)
        self._record(handle, event_of(event))
        return event

    def wait(self, what: Waitable) -> None:
        """Makes all later work wait, on the device, for the event or for the work submitted so far
        to the other stream or context.

        Args:
            what: A gcx.Event, Stream, Context, Partition or Lease, or a stream of another library
                as in Stream.from_native.
        """
        handle = self._live()
        if isinstance(what, Event):
            self._wait(handle, what._live())
            return
        # A partition or lease. A lease's native stream can change at any moment.
        stream = getattr(what, "stream", None)
        if isinstance(stream, Ordered):
            what = stream
        with what.record() if isinstance(what, Ordered) else _recorded(what) as event:
            self._wait(handle, event._live())


#: Accepted by wait.
Waitable = Union[Event, Ordered, StreamLike]


def _recorded(stream: StreamLike) -> Event:
    """Returns a new event with the work submitted so far to another library's stream."""
    with _gcx.gcx_stream_from_native(native_of(stream), Owned()) as external:
        event = Event(_gcx.gcx_stream_get_info(external._live())[0])
        _gcx.gcx_stream_record(external._live(), event._live())
        return event

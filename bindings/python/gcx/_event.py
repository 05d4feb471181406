"""Events."""

from __future__ import annotations

from gcx import _gcx
from gcx._async import poll
from gcx._checks import DeviceLike, flag_of, ordinal_of
from gcx._external import EventLike, native_event_of
from gcx._owned import Owned


class Event(Owned):
    """A point in the work of a stream or context that others can wait for.

    Args:
        device: The device whose streams record it: an ordinal or a gcx.Device.
        timing: Record a time for elapsed_time; costs more.
        blocking: Threads in synchronize sleep instead of spinning, and wake a little later.

    Raises:
        InvalidDeviceError: No such device.
    """

    __slots__ = ("_external",)
    _external: object

    def __init__(
        self, device: DeviceLike = 0, *, timing: bool = False, blocking: bool = False
    ) -> None:
        flags = _gcx.GCX_EVENT_TIMING if flag_of(timing, "timing") else 0
        flags |= _gcx.GCX_EVENT_BLOCKING_SYNC if flag_of(blocking, "blocking") else 0
        self._external = None
        _gcx.gcx_event_create(ordinal_of(device), flags, self)

    @classmethod
    def from_native(cls, event: EventLike) -> Event:
        """Wraps another library's event, which that library continues to own; the object is kept
        alive.

        Args:
            event: A cudaEvent_t as an int; or an event of PyTorch (which creates it at its first
                record), CuPy, Numba or cuda.core.

        Raises:
            TypeError: It is none of these.
            InvalidValueError: It is NULL.
        """
        pointer = native_event_of(event)
        self = cls.__new__(cls)
        self._external = event
        return _gcx.gcx_event_from_native(pointer, self)

    @property
    def native(self) -> int:
        """The CUevent, which is a cudaEvent_t too, as an int. Valid until close."""
        return self._native(_gcx.gcx_event_native, _gcx.gcx_event_query)

    def query(self) -> bool:
        """Returns whether the recorded work has finished, without waiting."""
        return _gcx.gcx_event_query(self._live())

    def synchronize(self) -> None:
        """Blocks the calling thread until the recorded work has finished."""
        _gcx.gcx_event_synchronize(self._live())

    async def wait_async(self) -> None:
        """Waits in asyncio until the recorded work has finished, and lets other tasks run. Uses no
        thread: it queries the event, and returns at most a tenth of the time that it waited (0.25
        to 20 ms), and what the event loop adds, after the work has finished. Cancelling the task
        ends the wait and not the work. Closing the event raises InvalidHandleError in the wait.
        Raises the errors of the work.
        """
        await poll(self.query)

    def elapsed_time(self, end: Event) -> float:
        """Returns the milliseconds from this event to a later one. Both need timing.

        Raises:
            InvalidHandleError: One has no timing or was never recorded, or they are of two devices.
            NotReadyError: One has not finished yet.
        """
        later = event_of(end)
        return _gcx.gcx_event_get_elapsed(self._live(), later)


def event_of(value: object) -> int:
    if not isinstance(value, Event):
        raise TypeError(f"expected a gcx.Event, not {type(value).__name__}")
    return value._live()

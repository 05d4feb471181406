"""Events."""

from __future__ import annotations

from gcx import _gcx
from gcx._checks import DeviceLike, flag_of, ordinal_of
from gcx._foreign import EventLike, native_event_of
from gcx._owned import Owned


class Event(Owned):
    """A point in the work of a stream or context, to wait for.

    Args:
        device: The device whose streams record it: an ordinal or a gcx.Device.
        timing: Whether it takes times, for elapsed_time; costs more.
        blocking: Whether threads in synchronize sleep instead of spinning: they leave the CPU to
            others, and wake a little later.

    Raises:
        InvalidDeviceError: No such device.
    """

    __slots__ = ("_foreign",)
    _foreign: object

    def __init__(
        self, device: DeviceLike = 0, *, timing: bool = False, blocking: bool = False
    ) -> None:
        flags = _gcx.GCX_EVENT_TIMING if flag_of(timing, "timing") else 0
        flags |= _gcx.GCX_EVENT_BLOCKING_SYNC if flag_of(blocking, "blocking") else 0
        self._foreign = None
        _gcx.gcx_event_create(ordinal_of(device), flags, self)

    @classmethod
    def from_native(cls, event: EventLike) -> Event:
        """An event that someone else made, to record, to wait for and to take times by.

        Args:
            event: A cudaEvent_t as an int; or an event of PyTorch (which has to be recorded once,
                since it is made then), CuPy, Numba or cuda.core. It stays its maker's; the object
                is kept alive.

        Raises:
            TypeError: It is none of these.
            InvalidValueError: It is NULL.
        """
        pointer = native_event_of(event)
        self = cls.__new__(cls)
        self._foreign = event
        return _gcx.gcx_event_from_native(pointer, self)

    @property
    def native(self) -> int:
        """The CUevent, which is a cudaEvent_t too, as an int. Valid until close."""
        return self._native(_gcx.gcx_event_native, _gcx.gcx_event_query)

    def query(self) -> bool:
        """Whether the work it captured has finished. Never waits."""
        return _gcx.gcx_event_query(self._live())

    def synchronize(self) -> None:
        """Waits in the calling thread until the work it captured has finished."""
        _gcx.gcx_event_synchronize(self._live())

    def elapsed_time(self, end: Event) -> float:
        """Milliseconds from this event's work to that of a later one. Both need timing.

        Raises:
            InvalidHandleError: One has no timing or was never recorded, or they are of two devices.
            NotReadyError: One has not finished yet.
        """
        later = event_of(end)
        return _gcx.gcx_event_get_elapsed(self._live(), later)


def event_of(value: object) -> int:
    """The handle of an event."""
    if not isinstance(value, Event):
        raise TypeError(f"expected a gcx.Event, not {type(value).__name__}")
    return value._live()

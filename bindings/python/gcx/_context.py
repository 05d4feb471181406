"""Contexts."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from contextlib import suppress
from typing import Union

from gcx import _gcx
from gcx._checks import flag_of
from gcx._errors import InvalidContextError, InvalidValueError, NotInitializedError
from gcx._order import Ordered
from gcx._resource import SMResource, WorkqueueResource
from gcx._stream import Stream, empty_stream, priority_of
from gcx.generated.records import ContextFields

_Resources = Union[SMResource, Iterable[Union[SMResource, WorkqueueResource]]]


class Context(Ordered, ContextFields):
    """A green context: SMs to run on, and optionally a workqueue configuration.

    The first context over some SMs takes 1 to 3 ms and waits for running kernels; later ones take
    microseconds. Its streams keep it alive: closing it releases only the handle.

    Args:
        resources: An SM resource; or several disjoint ones of one device and family, and at most
            one workqueue resource (drivers of CUDA 13.1 and newer).
        private: Never share the green context. By default contexts over equal resources share one,
            also between libraries of the process, and synchronizing or recording one covers the
            work of all.

    Raises:
        ResourceConfigurationError: They overlap, are of two devices or families, or are empty.
        InvalidResourceTypeError: There is no SM resource, or are two workqueues.
    """

    __slots__ = ()
    _get_info = staticmethod(_gcx.gcx_context_get_info)
    _get_resource = staticmethod(_gcx.gcx_context_get_resource)
    _synchronize = staticmethod(_gcx.gcx_context_synchronize)
    _record = staticmethod(_gcx.gcx_context_record)
    _wait = staticmethod(_gcx.gcx_context_wait)

    def __init__(self, resources: _Resources, *, private: bool = False) -> None:
        flags = _gcx.GCX_CONTEXT_PRIVATE if flag_of(private, "private") else 0
        _gcx.gcx_context_create(_values_of(resources), flags, self)

    @property
    def native(self) -> int:
        """The CUcontext as an int. Valid while this or a stream of it is alive."""
        return self._native(_gcx.gcx_context_native, _gcx.gcx_context_get_info)

    @property
    def native_green(self) -> int:
        """The CUgreenCtx as an int. Don't destroy it."""
        return self._native(_gcx.gcx_context_native_green, _gcx.gcx_context_get_info)

    @property
    def is_green(self) -> bool:
        """True: gcx makes only green contexts."""
        self._live()
        return True

    def stream(self, priority: int = 0, *, nonblocking: bool = True) -> Stream:
        """Creates a stream of this context.

        Args:
            priority: Lower is more urgent; clamped to the device's range.
            nonblocking: Must be True: green contexts have no blocking streams.

        Raises:
            InvalidValueError: nonblocking is False.
        """
        if nonblocking is not True and not flag_of(nonblocking, "nonblocking"):
            raise InvalidValueError(
                "a green context has no blocking streams; leave nonblocking True, and order "
                "streams by wait()"
            )
        return _gcx.gcx_stream_create(
            self._live(), _gcx.GCX_STREAM_NON_BLOCKING, priority_of(priority), empty_stream()
        )

    def push(self) -> None:
        """Pushes it onto the calling thread's CUDA context stack, and keeps it alive until pop."""
        _gcx.gcx_context_push(self._live())
        _pushed.contexts.append(self)

    def pop(self) -> None:
        """Pops it off the calling thread's CUDA context stack.

        Raises:
            InvalidContextError: It isn't on top.
        """
        stack = _pushed.contexts
        if not stack or stack[-1] is not self:
            raise InvalidContextError(
                "this context isn't the one that this thread pushed last"
                if self in stack
                else "this context isn't current in this thread"
            )
        _gcx.gcx_context_pop()
        stack.pop()

    def make_current(self) -> _Current:
        """Returns a context manager that pushes it and pops it at the end.

        Inside, the driver orders nothing between the legacy default stream and other streams, and
        refuses the per-thread default stream: order work by events. Streams that a library creates
        inside, such as PyTorch's pool, die with the context: keep it as long as they are used.

        At the end the stack of contexts is as it was before, also if a library set another context
        inside, as torch.cuda.set_device does.

        Don't await inside: other tasks of the thread would run in this context, and contexts that
        they push could not be popped in order.
        """
        return _Current(self)

    def _describe(self) -> str:
        device, sm_count, _, number, _ = _gcx.gcx_context_get_info(self._handle)
        return f" {number}: {sm_count} SMs of device {device}"


class _Current:
    __slots__ = ("_context",)

    def __init__(self, context: Context) -> None:
        context._live()
        self._context = context

    def __enter__(self) -> Context:
        self._context.push()
        return self._context

    def __exit__(self, *error: object) -> None:
        with suppress(NotInitializedError):  # Nothing is current in a forked child.
            self._context.pop()


class _Pushed(threading.local):
    """Keeps the contexts that this thread has pushed alive."""

    def __init__(self) -> None:
        self.contexts: list[Context] = []


_pushed = _Pushed()


def current_context() -> Context | None:
    """Returns the context that this thread pushed last, if it is still current."""
    if _gcx.gcx_context_get_current() == 0:
        return None
    return _pushed.contexts[-1] if _pushed.contexts else None


def _values_of(resources: _Resources) -> list[bytes]:
    if isinstance(resources, SMResource):
        return [resources._value]
    if not isinstance(resources, Iterable) or isinstance(resources, (str, bytes)):
        raise TypeError(
            "a context is made of a gcx.SMResource or several resources, "
            f"not of {type(resources).__name__}"
        )
    values = []
    for resource in resources:
        if not isinstance(resource, (SMResource, WorkqueueResource)):
            raise TypeError(
                "a context is made of gcx.SMResource and gcx.WorkqueueResource, "
                f"not of {type(resource).__name__}"
            )
        values.append(resource._value)
    if not values:
        raise InvalidValueError("a context needs at least one resource; the list is empty")
    return values

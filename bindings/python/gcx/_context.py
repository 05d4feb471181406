"""What lives: contexts, streams, events. Each is closed once, by hand, by `with` or when it is
collected, and refuses to be used afterwards."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from types import TracebackType
from typing import Any, NoReturn

from gcx import _gcx
from gcx._device import ordinal_of
from gcx._errors import Error, InvalidContextError, InvalidHandleError, InvalidValueError, closed
from gcx._request import flag_of, whole
from gcx._resource import Resources, SMResource, WorkqueueResource

_INT32 = 0x7FFFFFFF


class _Owned:
    """An object with a handle of its own."""

    __slots__ = ("__weakref__", "_handle")

    _handle: int
    # As an attribute: while the interpreter exits a module's names may be gone already.
    _destroy: Callable[[int], None]

    def _live(self) -> int:
        """The handle, or InvalidHandleError."""
        return self._handle or self._raise_closed()

    def _raise_closed(self) -> NoReturn:
        raise closed(type(self).__name__)

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return not self._handle

    def close(self) -> None:
        """Gives it up. Work that was submitted finishes. Closing again does nothing."""
        handle = self._handle
        if handle:
            try:  # noqa: SIM105 - suppress takes as long as the whole call
                self._destroy(handle)
            except InvalidHandleError:
                pass  # Another thread closed it meanwhile.
            self._handle = 0

    def __del__(self) -> None:
        try:
            if self._handle:
                self._destroy(self._handle)
        except Exception:
            pass  # Never made; or there is nobody to tell: after a fork, at exit.

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"a gcx.{type(self).__name__} can't be pickled: it lives in this process")

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def _native(handle: int, ask: Callable[[int], int], check: Callable[[int], object]) -> int:
    """A native handle; the error that stands behind a NULL."""
    native = ask(handle)
    if native == 0:
        check(handle)
        raise Error(_gcx.gcx_last_error_message())
    return native


class Event(_Owned):
    """A point in the work of a stream or context, to wait for.

    Args:
        device: The device whose streams record it: an ordinal or a gcx.Device.
        timing: Whether it takes times, for elapsed; costs more.

    Raises:
        InvalidDeviceError: No such device.
    """

    __slots__ = ()
    _destroy = staticmethod(_gcx.gcx_event_destroy)

    def __init__(self, device: object = 0, *, timing: bool = False) -> None:
        flags = _gcx.GCX_EVENT_TIMING if flag_of(timing, "timing") else 0
        self._handle = _gcx.gcx_event_create(ordinal_of(device), flags)

    @property
    def native(self) -> int:
        """The CUevent, which is a cudaEvent_t too, as an int. Valid until close."""
        return _native(self._live(), _gcx.gcx_event_native, _gcx.gcx_event_query)

    def query(self) -> bool:
        """Whether the work it captured has finished. Never waits."""
        return _gcx.gcx_event_query(self._live())

    def synchronize(self) -> None:
        """Waits in the calling thread until the work it captured has finished."""
        _gcx.gcx_event_synchronize(self._live())

    def elapsed(self, end: Event) -> float:
        """Milliseconds from this event's work to that of a later one. Both need timing.

        Raises:
            InvalidHandleError: One has no timing or was never recorded.
            NotReadyError: One has not finished yet.
        """
        if not isinstance(end, Event):
            raise TypeError(f"elapsed takes a gcx.Event, not {type(end).__name__}")
        return _gcx.gcx_event_get_elapsed(self._live(), end._live())

    def __enter__(self) -> Event:
        self._live()
        return self

    def __repr__(self) -> str:
        return "<gcx.Event, closed>" if self.closed else f"<gcx.Event {self._handle:#x}>"


def _event_of(value: object) -> int:
    if not isinstance(value, Event):
        raise TypeError(f"expected a gcx.Event, not {type(value).__name__}")
    return value._live()


class _Ordered(_Owned):
    """What work is submitted to: a stream, or a context with all its streams."""

    __slots__ = ()

    _get_info: Callable[[int], tuple[int, int, int, int]]
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
        streams. Errors of that work appear here."""
        self._synchronize(self._live())

    def record(self, event: Event | None = None) -> Event:
        """Captures the work submitted so far in the event, or in a new one, and returns it."""
        handle = self._live()
        if event is None:
            event = Event(self.device)
        self._record(handle, _event_of(event))
        return event

    def wait(self, what: object) -> None:
        """Holds all later work, a context's that of all its streams, until the event's work, or
        what was submitted so far to the other stream or context, has finished. The calling thread
        does not wait.

        Args:
            what: A gcx.Event, Stream or Context, or a stream of another library as
                Stream.from_native takes.
        """
        handle = self._live()
        if isinstance(what, Event):
            self._wait(handle, what._live())
        elif isinstance(what, _Ordered):
            with what.record() as event:
                self._wait(handle, event._live())
        else:
            with Stream.from_native(what) as stream, stream.record() as event:
                self._wait(handle, event._live())


class Stream(_Ordered):
    """A CUDA stream whose kernels run on a partition's SMs alone; made by Context.stream.

    It keeps its context. Any library takes it: it has `__cuda_stream__`, `native`, `torch()`,
    `cupy()` and `numba()`, and torch.cuda.stream() takes it as it is. Keep it as long as work is
    submitted to it. Memory that another library allocated in it may live longer.

    >>> with torch.cuda.stream(part.stream):
    ...     y = model(x)
    """

    __slots__ = ("_foreign",)
    _destroy = staticmethod(_gcx.gcx_stream_destroy)
    _get_info = staticmethod(_gcx.gcx_stream_get_info)
    _get_resource = staticmethod(_gcx.gcx_stream_get_resource)
    _synchronize = staticmethod(_gcx.gcx_stream_synchronize)
    _record = staticmethod(_gcx.gcx_stream_record)
    _wait = staticmethod(_gcx.gcx_stream_wait)

    def __init__(self, context: Context, priority: int = 0) -> None:
        self._foreign: object = None
        if not isinstance(context, Context):
            raise TypeError(f"a stream is made of a gcx.Context, not of {type(context).__name__}")
        if priority != 0 or type(priority) is not int:
            priority = whole(priority, "priority", -_INT32 - 1, _INT32)
        self._handle = _gcx.gcx_stream_create(context._live(), priority)

    @classmethod
    def from_native(cls, stream: object) -> Stream:
        """A stream that someone else made, to ask for its SMs and to wait for it.

        Args:
            stream: A cudaStream_t as an int; or any object with `__cuda_stream__`; or a stream of
                PyTorch, CuPy or Numba. It stays its maker's; the object is kept alive.

        Raises:
            TypeError: It is none of these.
            InvalidValueError: It is CUDA's default stream, which has no context of its own.
        """
        pointer = native_of(stream)
        self = cls.__new__(cls)
        self._foreign = stream
        self._handle = _gcx.gcx_stream_from_native(pointer)
        return self

    @property
    def native(self) -> int:
        """The CUstream, which is a cudaStream_t too, as an int. Valid until close."""
        return _native(self._live(), _gcx.gcx_stream_native, _gcx.gcx_stream_get_info)

    def __cuda_stream__(self) -> tuple[int, int]:
        """The protocol's version, 0, and the native stream."""
        return 0, self.native

    @property
    def priority(self) -> int:
        """Lower is more urgent: 0 to -5 on an H100."""
        return self._get_info(self._live())[1]

    @property
    def sm_count(self) -> int:
        """How many SMs its kernels can run on."""
        return self._get_info(self._live())[2]

    @property
    def context_id(self) -> int:
        """The id of its context, as Context.id; 0 if the context isn't gcx's."""
        return self._get_info(self._live())[3]

    def query(self) -> bool:
        """Whether all its work has finished. Never waits."""
        return _gcx.gcx_stream_query(self._live())

    def wait(self, what: object) -> None:
        """Holds all later work of this stream until the event's work, or what was submitted so far
        to the other stream, has finished. The calling thread does not wait.

        Args:
            what: A gcx.Event, Stream or Context, or a stream of another library as from_native
                takes; of PyTorch also the default stream, for
                `stream.wait(torch.cuda.current_stream())`.
        """
        if hasattr(what, "record_event") and getattr(what, "cuda_stream", None) == 0:
            # It has no context that gcx could record an event in; PyTorch has.
            self.torch().wait_event(what.record_event())
            return
        super().wait(what)

    def sm_ids(self) -> tuple[int, ...]:
        """The numbers of the SMs that its kernels really run on, ascending, from the hardware: a
        probe kernel of well under a millisecond notes them. Waits for the stream.

        Raises:
            CaptureError: The stream captures a graph.
        """
        return _gcx.gcx_stream_probe_sms(self._live())

    # What torch.cuda.stream() asks of a stream.

    @property
    def stream_id(self) -> int:
        """PyTorch's number of an external stream, which is the native one."""
        return self.native

    @property
    def device_index(self) -> int:
        """PyTorch's name for the device's ordinal."""
        return self.device

    @property
    def device_type(self) -> int:
        """PyTorch's number for CUDA."""
        return 1

    def torch(self) -> Any:
        """A torch.cuda.ExternalStream of this stream, which it keeps.

        Raises:
            ImportError: PyTorch isn't installed.
        """
        import torch

        return _keeping(torch.cuda.ExternalStream(self.native, device=self.device), self)

    def cupy(self) -> Any:
        """A CuPy stream of this one.

        Raises:
            ImportError: CuPy isn't installed.
        """
        import cupy

        # CuPy 14 deprecates the class that older ones have alone.
        from_external = getattr(cupy.cuda.Stream, "from_external", None)
        if from_external is not None:
            return _keeping(from_external(self), self)
        return _keeping(cupy.cuda.ExternalStream(self.native, self.device), self)

    def numba(self) -> Any:
        """A Numba stream of this one.

        Raises:
            ImportError: Numba isn't installed.
        """
        from numba import cuda

        return _keeping(cuda.external_stream(self.native), self)

    def __enter__(self) -> Stream:
        self._live()
        return self

    def __repr__(self) -> str:
        if self.closed:
            return "<gcx.Stream, closed>"
        try:
            device, priority, sm_count, _ = _gcx.gcx_stream_get_info(self._handle)
        except Error as error:
            return f"<gcx.Stream: {error.name}>"
        return f"<gcx.Stream on {sm_count} SMs of device {device}, priority {priority}>"


class _Current:
    """What Context.make_current returns: the context is current inside `with`."""

    __slots__ = ("_context",)

    def __init__(self, context: Context) -> None:
        context._live()
        self._context = context

    def __enter__(self) -> Context:
        self._context.push()
        return self._context

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._context.pop()


class _Pushed(threading.local):
    """The contexts that the thread made current, which are kept as long as they are."""

    def __init__(self) -> None:
        self.contexts: list[Context] = []


_pushed = _Pushed()


class Context(_Ordered):
    """A green context: SMs to run on, and perhaps a workqueue configuration.

    Making one for resources that had one before takes microseconds; the first takes 1 to 3 ms and
    waits for running kernels. Its streams keep it: closing it gives up the handle alone.

    Args:
        resources: An SM resource; or several disjoint ones of one device and family, and at most
            one workqueue resource (drivers of CUDA 13.1 and newer).

    Raises:
        ResourceConfigurationError: They overlap, are of two devices or families, or hold no SMs.
        InvalidResourceTypeError: There is no SM resource, or are two workqueues.
    """

    __slots__ = ()
    _destroy = staticmethod(_gcx.gcx_context_destroy)
    _get_info = staticmethod(_gcx.gcx_context_get_info)
    _get_resource = staticmethod(_gcx.gcx_context_get_resource)
    _synchronize = staticmethod(_gcx.gcx_context_synchronize)
    _record = staticmethod(_gcx.gcx_context_record)
    _wait = staticmethod(_gcx.gcx_context_wait)

    def __init__(self, resources: SMResource | Iterable[SMResource | WorkqueueResource]) -> None:
        if isinstance(resources, SMResource):
            self._handle = _gcx.gcx_context_create((resources._handle,))
            return
        if not hasattr(resources, "__iter__") or isinstance(resources, (str, bytes)):
            raise TypeError(
                "a context is made of a gcx.SMResource or several resources, "
                f"not of {type(resources).__name__}"
            )
        handles = []
        for resource in resources:
            if not isinstance(resource, (SMResource, WorkqueueResource)):
                raise TypeError(
                    "a context is made of gcx.SMResource and gcx.WorkqueueResource, "
                    f"not of {type(resource).__name__}"
                )
            handles.append(resource._handle)
        if not handles:
            raise InvalidValueError("a context needs at least one resource; the list is empty")
        self._handle = _gcx.gcx_context_create(handles)

    @classmethod
    def from_native(cls, native: int) -> Context:
        """A further handle for the context of gcx that stands behind a CUcontext.

        Raises:
            NotFoundError: It isn't one of gcx's.
        """
        self = cls.__new__(cls)
        self._handle = _gcx.gcx_context_from_native(whole(native, "native", 1, (1 << 64) - 1))
        return self

    @property
    def native(self) -> int:
        """The CUcontext as an int. Valid as long as this or a stream of it is alive."""
        return _native(self._live(), _gcx.gcx_context_native, _gcx.gcx_context_get_info)

    @property
    def native_green(self) -> int:
        """The CUgreenCtx as an int. Never destroy it."""
        return _native(self._live(), _gcx.gcx_context_native_green, _gcx.gcx_context_get_info)

    @property
    def is_green(self) -> bool:
        """True: gcx makes green contexts alone."""
        self._live()
        return True

    @property
    def sm_count(self) -> int:
        """How many SMs it has."""
        return self._get_info(self._live())[1]

    @property
    def stream_count(self) -> int:
        """Live gcx streams of the green context, those of other handles for it too."""
        return self._get_info(self._live())[2]

    @property
    def id(self) -> int:
        """The same for two contexts exactly if they share a green context, as those over equal
        resources do."""
        return self._get_info(self._live())[3]

    def stream(self, priority: int = 0, *, nonblocking: bool = True) -> Stream:
        """A stream of this context.

        Args:
            priority: Lower is more urgent; clamped to what the device has.
            nonblocking: True. Green contexts have no streams that wait for the default stream.

        Raises:
            InvalidValueError: nonblocking is False.
        """
        if nonblocking is not True and not flag_of(nonblocking, "nonblocking"):
            raise InvalidValueError(
                "a green context has no blocking streams, which wait for the default stream; "
                "leave nonblocking True, and order streams by wait()"
            )
        return Stream(self, priority)

    def push(self) -> None:
        """Makes it current in the calling thread, on top of CUDA's stack; kept until pop."""
        _gcx.gcx_context_push(self._live())
        _pushed.contexts.append(self)

    def pop(self) -> None:
        """Takes it off CUDA's stack.

        Raises:
            InvalidContextError: It isn't the one on top in this thread.
        """
        stack = _pushed.contexts
        if not stack or stack[-1] is not self:
            raise InvalidContextError(
                "this context isn't the one that was made current last in this thread"
                if self in stack
                else "this context isn't current in this thread"
            )
        _gcx.gcx_context_pop()
        stack.pop()

    def make_current(self) -> _Current:
        """For `with`: the context is current in the calling thread inside, and what was current
        before is again afterwards."""
        return _Current(self)

    def __enter__(self) -> Context:
        self._live()
        return self

    def __repr__(self) -> str:
        if self.closed:
            return "<gcx.Context, closed>"
        try:
            device, sm_count, _, number = _gcx.gcx_context_get_info(self._handle)
        except Error as error:
            return f"<gcx.Context: {error.name}>"
        return f"<gcx.Context {number}: {sm_count} SMs of device {device}>"


SMResource._context_type = Context


def current_context() -> Context | None:
    """The context that the calling thread made current last, if it is current."""
    if _gcx.gcx_context_get_current() == 0:
        return None
    return _pushed.contexts[-1] if _pushed.contexts else None


def native_of(stream: object) -> int:
    """The cudaStream_t of an int or of any library's stream."""
    if isinstance(stream, Stream):
        return stream.native
    if hasattr(stream, "__index__"):
        return whole(stream, "a native stream", 0, (1 << 64) - 1)
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        answer = protocol() if callable(protocol) else protocol
        try:
            version, pointer = answer
        except (TypeError, ValueError):
            raise TypeError(
                f"__cuda_stream__ of {type(stream).__name__} gave {answer!r}, not (0, handle)"
            ) from None
        if version != 0:
            raise TypeError(
                f"__cuda_stream__ of {type(stream).__name__} is of version {version!r}; gcx knows 0"
            )
        return whole(int(pointer), "a native stream", 0, (1 << 64) - 1)
    # PyTorch, CuPy, Numba; the last holds a ctypes pointer or one of cuda.bindings.
    for name in ("cuda_stream", "ptr", "handle"):
        pointer = getattr(stream, name, None)
        if pointer is not None:
            pointer = getattr(pointer, "value", pointer)
            return whole(int(pointer or 0), "a native stream", 0, (1 << 64) - 1)
    raise TypeError(
        "expected a stream: an int, or an object with __cuda_stream__ or of PyTorch, CuPy or "
        f"Numba, not {type(stream).__name__}"
    )


def _keeping(wrapper: Any, stream: Stream) -> Any:
    """Another library's stream, which keeps ours as long as it lives, where it can."""
    with suppress(AttributeError):
        wrapper._gcx_stream = stream
    return wrapper

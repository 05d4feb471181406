"""Leases: exclusive use of SMs within the process, and streams that follow them."""

from __future__ import annotations

import enum
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final, NoReturn, SupportsIndex, Union

from gcx import _gcx
from gcx._async import call_in_thread
from gcx._cancel import Cancel, milliseconds_of, wait_for
from gcx._checks import DeviceLike, chosen, flag_of, ordinal_of, sms_of, text_of, whole
from gcx._errors import InvalidValueError, described
from gcx._event import Event
from gcx._order import Waitable
from gcx._owned import Closing
from gcx._request import FAMILIES, Count, Family
from gcx._resource import FAMILY_NAMES, SMResource, sm_resource
from gcx._stream import Claim, Stream, empty_stream, priority_of
from gcx.generated.records import LeaseFields, LiveLease, live_lease_of


class _Parked(enum.Enum):
    PARKED = 0

    def __repr__(self) -> str:
        return "gcx.PARKED"


#: In gcx.resize in place of a count: the lease has no SMs until it is resized again.
PARKED: Final = _Parked.PARKED
#: What gcx.resize takes for a lease.
Size = Union[Count, _Parked]


class Lease(LeaseFields, Closing):
    """Exclusive use of SMs within the process, unless it is shared; made by gcx.acquire.

    It ends by `with`, by close, or when it and its streams are collected. It can be passed where a
    stream is expected, and then stands for its `stream`. See docs/reference/python.md, "Leases".

    >>> with gcx.acquire(32, name="decode") as part:
    ...     part.resize(64)
    ...     with torch.cuda.stream(part.stream.torch()):
    ...         step()
    """

    __slots__ = ("__weakref__", "_claim", "_lock", "_priority", "_stream")
    _claim: Claim
    _lock: threading.RLock  # Reentrant: a handler of log messages may use the lease.
    _priority: int
    _stream: Stream | None

    def __init__(self) -> None:
        raise TypeError("a gcx.Lease is made by gcx.acquire")

    def _info(self) -> tuple[int, int, int, int, int, int, int, int, str]:
        return _gcx.gcx_lease_get_info(self._claim._live())

    @property
    def resource(self) -> SMResource:
        """Which SMs it has now."""
        return sm_resource(_gcx.gcx_lease_get_resource(self._claim._live()))

    @property
    def stream(self) -> Stream:
        """A stream of the lease, created at the first use and recreated if it was closed. See
        create_stream."""
        with self._lock:
            self._claim._live()
            if self._stream is None or self._stream.closed:
                self._stream = self.create_stream(self._priority)
            return self._stream

    def create_stream(self, priority: int = 0) -> Stream:
        """Creates another stream that follows the lease.

        Its `native` is a CUstream of the SMs that the lease has at that call, ordered behind all
        earlier work of the stream. What torch(), cupy() and numba() return holds such a CUstream:
        take it again for each step, and submit nothing to it while another thread resizes the
        lease.

        Args:
            priority: Lower is more urgent; clamped to the device's range.
        """
        claim = self._claim
        stream = empty_stream(claim)
        return _gcx.gcx_lease_stream_create(
            claim._live(), _gcx.GCX_STREAM_NON_BLOCKING, priority_of(priority), stream
        )

    def __cuda_stream__(self) -> tuple[int, int]:
        """Returns the protocol's version, 0, and the current CUstream of its stream."""
        return self.stream.__cuda_stream__()

    def wait(self, what: Waitable) -> None:
        """Makes later work of its stream wait, see Stream.wait."""
        self.stream.wait(what)

    def record(self, event: Event | None = None) -> Event:
        """Records the work submitted so far to its stream, see Stream.record; query and synchronize
        are for the work of all its streams."""
        return self.stream.record(event)

    def resize(self, sm_count: Size, *, deferred: bool = False) -> None:
        """Resizes the lease, see gcx.resize."""
        resize({self: sm_count}, deferred=deferred)

    def synchronize(self) -> None:
        """Blocks the calling thread until all work of its streams has finished, including work
        submitted before the last resize. Raises the errors of that work. Streams that capture a
        graph are skipped. Ctrl-C takes effect only afterwards."""
        _gcx.gcx_lease_synchronize(self._claim._live())

    def query(self) -> bool:
        """Returns whether that work has finished, without waiting."""
        return _gcx.gcx_lease_query(self._claim._live())

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._claim.closed

    def close(self) -> None:
        """Releases the lease. Its SMs are free at once; its work finishes, and the next owner's
        work waits for that on the device. Its streams end with it and raise
        gcx.ContextDestroyedError. Closing again does nothing."""
        self._claim.close()
        stream = self._stream
        if stream is not None:
            stream.close()

    def __enter__(self) -> Lease:
        self._claim._live()
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError("a gcx.Lease can't be pickled: it belongs to this process")

    def __repr__(self) -> str:
        return "<gcx.Lease, closed>" if self.closed else described("Lease", self._describe)

    def _describe(self) -> str:
        device, family, _, sm_count, _, _, number, _, name = self._info()
        label = f'"{name}"' if name else number
        return f" {label}: {sm_count} SMs of device {device}, {FAMILY_NAMES[family]}"


def acquire(
    sm_count: Count,
    *,
    name: str = "",
    device: DeviceLike = 0,
    min_sm_count: SupportsIndex | None = None,
    shared: bool = False,
    exclusive_sm_count: SupportsIndex = 0,
    family: Family | None = None,
    timeout: float | None = 0,
    cancel: Cancel | None = None,
    priority: int = 0,
    require_workqueues: bool = False,
) -> Lease:
    """Acquires SMs for exclusive use within the process.

    >>> decode, prefill = gcx.acquire(32, name="decode"), gcx.acquire(None, name="prefill")

    Requests are served in order of arrival, so a later request never overtakes a waiting one.
    Ctrl-C cancels the wait.

    Args:
        sm_count: How many SMs, rounded up to whole atoms: read the lease's sm_count. None requests
            all that are free.
        name: Name in messages and gcx.leases; at most 63 bytes of UTF-8.
        device: An ordinal, a gcx.Device, or a torch.device.
        min_sm_count: Smallest acceptable count. None: sm_count, or one atom if that is None.
        shared: Other shared leases may have its SMs too.
        exclusive_sm_count: How many SMs of a shared lease no other lease may have.
        family: "coscheduled" (None), "fine" or "max-cluster", see SMResource.split.
        timeout: Seconds to wait for the SMs; 0: don't wait; None: no limit.
        cancel: Cancels the wait from another thread.
        priority: Of the lease's `stream`; lower is more urgent.
        require_workqueues: Fail if the driver can't give the lease workqueues of its own. Leases
            have them from CUDA 13.1 on and share the process's before, see gcx.queue_info.

    Raises:
        AlreadyAcquiredError: Other leases or earlier requests have the SMs, and timeout is 0; the
            message names them.
        TimeoutError: They still have the SMs after the timeout. Also a built-in TimeoutError.
        CancelledError: Cancel.signal was called.
        ResourceConfigurationError: The device has fewer SMs than requested.
        SmsNotMappedError: There are leases of another family, and the SMs of the families are
            unknown: call Device.map_sms for both.
        NotSupportedError: require_workqueues on a driver before CUDA 13.1.
        InvalidValueError, TypeError: A count of 0; min_sm_count or exclusive_sm_count above
            sm_count; a name that is too long; a negative timeout.
    """
    lease, ask = lease_request(
        ordinal_of(device), sm_count, name, min_sm_count, shared, exclusive_sm_count, priority,
        family, require_workqueues,
    )  # fmt: skip
    wait_for(ask, lease._claim, timeout, cancel)
    return lease


async def acquire_async(
    sm_count: Count,
    *,
    name: str = "",
    device: DeviceLike = 0,
    min_sm_count: SupportsIndex | None = None,
    shared: bool = False,
    exclusive_sm_count: SupportsIndex = 0,
    family: Family | None = None,
    timeout: float | None = None,
    priority: int = 0,
    require_workqueues: bool = False,
) -> Lease:
    """Acquires SMs as gcx.acquire does, in asyncio: other tasks run while this one waits.

    >>> lease = await gcx.acquire_async(64, name="decode")

    Cancelling the task cancels the request, and no lease is lost if it was granted at the same
    moment. The request is out of the queue when the task gets its CancelledError; a lease that was
    being made ends as soon as it exists. The wait has a thread of its own, since creating a context
    blocks. The event loop may be closed during it.

    Args:
        As gcx.acquire. timeout: Seconds to wait for the SMs; 0: don't wait; None: no limit.

    Raises:
        As gcx.acquire, and asyncio.CancelledError, which is not gcx.CancelledError.
        RuntimeError: No event loop runs in this thread; or the system gives no thread.
    """
    lease, ask = lease_request(
        ordinal_of(device), sm_count, name, min_sm_count, shared, exclusive_sm_count, priority,
        family, require_workqueues,
    )  # fmt: skip
    milliseconds = milliseconds_of(timeout)
    await call_in_thread(lambda cancel_handle: ask(milliseconds, cancel_handle), lease._claim)
    return lease


def lease_request(
    device: int,
    sm_count: object,
    name: object,
    min_sm_count: object,
    shared: object,
    exclusive_sm_count: object,
    priority: object,
    family: Family | None = None,
    require_workqueues: object = False,
    reservation: int = 0,
) -> tuple[Lease, Callable[[int, int], None]]:
    """Returns a lease, and what acquires it, given milliseconds and a Cancel's handle."""
    lease = Lease.__new__(Lease)
    lease._claim = claim = Claim()
    lease._lock = threading.RLock()
    lease._priority = priority_of(priority)
    lease._stream = None
    flags = _gcx.GCX_LEASE_SHARED if flag_of(shared, "shared") else 0
    if flag_of(require_workqueues, "require_workqueues"):
        flags |= _gcx.GCX_LEASE_REQUIRE_WORKQUEUES
    request = (device, *request_of(sm_count, flags, family, min_sm_count))
    exclusive = whole(exclusive_sm_count, "exclusive_sm_count")
    text = name_of(name)

    def ask(milliseconds: int, cancel_handle: int) -> None:
        _gcx.gcx_lease_acquire(
            *request, exclusive, milliseconds, cancel_handle, text, reservation, claim
        )

    return lease, ask


def request_of(
    sm_count: object, flags: int, family: Family | None, min_sm_count: object
) -> tuple[int, int, int, int]:
    """Returns for C what requests for leases and reservations have in common."""
    return (
        sm_count_of(sm_count),
        flags,
        _gcx.GCX_SM_FAMILY_NONE if family is None else chosen(family, "family", FAMILIES),
        0 if min_sm_count is None else whole(min_sm_count, "min_sm_count", 1),
    )


def name_of(name: object) -> str:
    """Returns the name of a lease or reservation for C."""
    return text_of(name, "name", _gcx.GCX_MAX_LEASE_NAME - 1)


def resize(sizes: Mapping[Lease, Size], *, deferred: bool = False) -> None:
    """Resizes leases in one operation, so that one can grow by what another releases. If it fails,
    nothing changes.

    >>> gcx.resize({decode: 64, prefill: None})
    >>> gcx.resize({prefill: gcx.PARKED, decode: None})  # also while others wait for SMs

    Work in flight finishes where it runs. Later work of their streams runs on the new SMs, behind
    earlier work of its stream and behind the work of the SMs' former owners. The host waits for
    none of it. It takes microseconds if the contexts of the new sets are cached, see gcx.prepare.

    Args:
        sizes: Leases of one device and family with their counts, rounded up to whole atoms. None:
            what the other leases leave; several share it. gcx.PARKED: no SMs. The lease keeps its
            streams, which raise gcx.LeaseParkedError until it is resized again.
        deferred: A lease that only grows stays on its old SMs until all new ones are free, instead
            of waiting for the work of their former owners. A lease that loses SMs moves at once.

    Raises:
        AlreadyAcquiredError: Other leases or waiting requests have the SMs; the message names them.
        ResourceConfigurationError: The leases are of two devices or families; the device has fewer
            SMs than requested; a count below a shared lease's exclusive_sm_count.
        InvalidHandleError: One of them is closed.
        InvalidValueError, TypeError: No leases, a count of 0; not leases with counts.
    """
    values = _sizes_of(sizes)
    is_deferred = flag_of(deferred, "deferred")
    flags = _gcx.GCX_RESIZE_DEFERRED if is_deferred else _gcx.GCX_RESIZE_DEFAULT
    _gcx.gcx_lease_resize(values, flags)


def prepare(sizes: Mapping[Lease, Size]) -> None:
    """Creates the contexts that gcx.resize with these sizes would need, so that it takes
    microseconds later; changes no lease. Call it once for each layout. The contexts are cached
    within gcx.set_cache_limit.

    Raises:
        As gcx.resize.
    """
    _gcx.gcx_lease_prepare(_sizes_of(sizes))


def layout(sizes: Mapping[Lease, Size]) -> dict[Lease, SMResource]:
    """Returns the SMs that gcx.resize with these sizes would give to each lease, and changes
    nothing. A lease that is gcx.PARKED there has an empty resource.

    It makes graphs ready for a layout that the leases don't have yet:

    >>> sizes = {decode: 64, prefill: None}
    >>> gcx.prepare(sizes)  # from now on resizes to these sizes return to these SMs
    >>> graph.prepare(gcx.layout(sizes)[decode], for_leases=True)

    Without gcx.prepare, a resize between this call and that to these sizes can change the SMs, but
    not their number. May be called from any thread; waits while another one resizes a lease of it.

    Raises:
        As gcx.resize.
    """
    resources, _ = _gcx.gcx_lease_get_layout(_sizes_of(sizes))
    return dict(zip(sizes, map(sm_resource, resources)))


def leases(device: DeviceLike | None = None) -> list[LiveLease]:
    """Returns the leases of one device or of all, in the order in which they were acquired, then
    the requests that wait, in order of arrival.

    Raises:
        InvalidDeviceError: No such device.
    """
    found = _gcx.gcx_lease_list(-1 if device is None else ordinal_of(device))
    return [live_lease_of(raw) for raw in found]


def _sizes_of(sizes: object) -> list[tuple[int, int, int]]:
    if not isinstance(sizes, Mapping):
        raise TypeError(
            "leases are given with their counts, as in {decode: 64, prefill: None}, "
            f"not as {type(sizes).__name__}"
        )
    if not sizes:
        raise InvalidValueError("there are no leases in it")
    return [
        (_claim_of(lease)._live(), 0, _gcx.GCX_SIZE_PARKED)
        if count is PARKED
        else (_claim_of(lease)._live(), sm_count_of(count), 0)
        for lease, count in sizes.items()
    ]


def _claim_of(lease: Any) -> Claim:
    if not isinstance(lease, Lease):
        raise TypeError(f"expected a gcx.Lease with its count, not {type(lease).__name__}")
    return lease._claim


def sm_count_of(value: object) -> int:
    """Returns a requested SM count for C."""
    if value is None:
        return _gcx.GCX_REST
    return sms_of(
        value,
        "sm_count",
        "None requests the rest, gcx.PARKED in gcx.resize takes all SMs of a lease",
    )

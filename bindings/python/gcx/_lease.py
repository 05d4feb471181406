"""Leases: SMs that are somebody's, and streams that follow them."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any, NoReturn

from gcx import _gcx
from gcx._checks import flag_of, sms_of
from gcx._errors import InvalidValueError, described
from gcx._order import Waitable
from gcx._owned import Closing
from gcx._request import Count
from gcx._resource import FAMILY_NAMES, SMResource, sm_resource
from gcx._stream import Claim, Stream, empty_stream, priority_of


class Lease(Closing):
    """SMs that no other lease of the process has, unless both are shared; made by gcx.acquire.

    It is given up by `with`, by close, or when it and its streams are collected. Where a stream is
    asked for it stands for its stream.

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
    def device(self) -> int:
        """The ordinal of the device."""
        return self._info()[0]

    @property
    def family(self) -> str:
        """How its SMs are taken, see SMResource.split."""
        return FAMILY_NAMES[self._info()[1]]

    @property
    def shared(self) -> bool:
        """Whether others that are shared may have its SMs too."""
        return bool(self._info()[2] & _gcx.GCX_LEASE_SHARED)

    @property
    def sm_count(self) -> int:
        """How many SMs it has now."""
        return self._info()[3]

    @property
    def exclusive_sm_count(self) -> int:
        """How many of them are its alone."""
        return self._info()[4]

    @property
    def stream_count(self) -> int:
        """Its live streams."""
        return self._info()[5]

    @property
    def id(self) -> int:
        """Never used twice in a process; LiveLease.id."""
        return self._info()[6]

    @property
    def changes(self) -> int:
        """How often its SMs have changed."""
        return self._info()[7]

    @property
    def name(self) -> str:
        """The name that it was given, "" if none."""
        return self._info()[8]

    @property
    def resource(self) -> SMResource:
        """Which SMs it has now."""
        return sm_resource(_gcx.gcx_lease_get_resource(self._claim._live()))

    @property
    def stream(self) -> Stream:
        """A stream of the lease that follows it, made when it is first asked for, and made anew if
        it was closed. See create_stream."""
        with self._lock:
            self._claim._live()
            if self._stream is None or self._stream.closed:
                self._stream = self.create_stream(self._priority)
            return self._stream

    def create_stream(self, priority: int = 0) -> Stream:
        """A further stream of the lease, that follows it.

        It stands for the lease: `native`, and every function that takes the stream, uses a CUstream
        of the SMs that the lease has at that call, behind all work of the CUstream before. A
        CUstream that was taken before a change still is a live stream of the SMs which the lease
        had then, until its work is done: so take it anew for each step, and submit nothing to it
        while another thread changes the lease. What torch(), cupy() and numba() give holds such a
        CUstream.

        Args:
            priority: Lower is more urgent; clamped to what the device has.
        """
        claim = self._claim
        stream = empty_stream(claim)
        return _gcx.gcx_lease_stream_create(
            claim._live(), _gcx.GCX_STREAM_NON_BLOCKING, priority_of(priority), stream
        )

    def __cuda_stream__(self) -> tuple[int, int]:
        """The protocol's version, 0, and the native stream of its stream, as it is now."""
        return self.stream.__cuda_stream__()

    def wait(self, what: Waitable) -> None:
        """Holds all later work of its stream, see Stream.wait."""
        self.stream.wait(what)

    def resize(self, sm_count: Count, *, deferred: bool = False) -> None:
        """Gives the lease another size, see gcx.resize."""
        resize({self: sm_count}, deferred=deferred)

    def hand_over(self, to: Lease, *, deferred: bool = False) -> None:
        """Closes this lease and gives all its SMs to the other, past those who wait.

        Args:
            to: A lease of the same device and family.
            deferred: As in gcx.resize.

        Raises:
            As gcx.resize; this lease is as it was then.
        """
        if not isinstance(to, Lease):
            raise TypeError(f"a lease is handed over to a gcx.Lease, not to {type(to).__name__}")
        if to is self:
            raise InvalidValueError("a lease can't be handed over to itself")
        claim = self._claim
        _gcx.gcx_lease_hand_over(claim._live(), to._claim._live(), _change_flags(deferred))
        claim._forget()
        self.close()

    def synchronize(self) -> None:
        """Waits in the calling thread until the work of its streams has finished, on whatever SMs
        it was submitted. Errors of that work appear here. A stream that captures a graph is not
        waited for. Ctrl-C interrupts only once the work has finished."""
        _gcx.gcx_lease_synchronize(self._claim._live())

    def query(self) -> bool:
        """Whether that work has finished. Never waits."""
        return _gcx.gcx_lease_query(self._claim._live())

    @property
    def closed(self) -> bool:
        """Whether it was closed or handed over."""
        return self._claim.closed

    def close(self) -> None:
        """Gives it up. Its SMs are free at once; its work finishes, and the work of who has them
        next waits for that on the device. Its streams end with it, and raise
        gcx.ContextDestroyedError. Closing again does nothing."""
        self._claim.close()
        stream = self._stream
        if stream is not None:
            stream.close()

    def __enter__(self) -> Lease:
        self._claim._live()
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError("a gcx.Lease can't be pickled: it lives in this process")

    def __repr__(self) -> str:
        return "<gcx.Lease, closed>" if self.closed else described("Lease", self._describe)

    def _describe(self) -> str:
        device, family, _, sm_count, _, _, number, _, name = self._info()
        label = f'"{name}"' if name else number
        return f" {label}: {sm_count} SMs of device {device}, {FAMILY_NAMES[family]}"


def lease_of(claim: Claim, priority: int) -> Lease:
    """A lease of what the C API gives or is about to give."""
    lease = Lease.__new__(Lease)
    lease._claim = claim
    lease._lock = threading.RLock()
    lease._priority = priority
    lease._stream = None
    return lease


def resize(sizes: Mapping[Lease, Count], *, deferred: bool = False) -> None:
    """Gives leases other sizes, all in one operation or none: one can grow by what another gives.

    >>> gcx.resize({decode: 64, prefill: None})

    Work in flight finishes where it runs; later work of their streams runs on the new SMs, behind
    what was before in its stream, and on SMs that others had behind the others' work. The host
    waits for none of it. It takes microseconds where contexts of the new sets are kept, see
    gcx.prepare.

    Args:
        sizes: Leases of one device and family with their counts, rounded up to what the device can
            give. None: what the others here and all other leases leave; several share it.
        deferred: Don't wait for the former holders' work where a lease only grows: its streams stay
            on the old SMs until all new ones are free, and move when they are used after that. A
            lease that loses SMs moves now, as without this.

    Raises:
        AlreadyAcquiredError: What the leases have and what is free doesn't suffice, or others wait
            for it; the message says who.
        ResourceConfigurationError: The leases are of two devices or families; the device has not so
            many SMs; less than a shared lease's exclusive_sm_count.
        InvalidHandleError: One of them is closed.
        InvalidValueError, TypeError: No leases, a count of 0; not leases with counts.
    """
    _gcx.gcx_lease_resize(_sizes_of(sizes), _change_flags(deferred))


def prepare(sizes: Mapping[Lease, Count]) -> None:
    """Makes the contexts that gcx.resize with these sizes would need, and changes nothing: for a
    thread of the program's that makes ahead of time what is changed in microseconds later. One call
    for each layout. They are kept within gcx.set_cache_limit.

    Raises:
        As gcx.resize.
    """
    _gcx.gcx_lease_prepare(_sizes_of(sizes))


def _sizes_of(sizes: object) -> list[tuple[int, int]]:
    """The sizes for C of leases with their counts."""
    if not isinstance(sizes, Mapping):
        raise TypeError(
            "leases are given with their counts, as in {decode: 64, prefill: None}, "
            f"not as {type(sizes).__name__}"
        )
    if not sizes:
        raise InvalidValueError("there are no leases in it")
    return [(_claim_of(lease)._live(), sm_count_of(count)) for lease, count in sizes.items()]


def _claim_of(lease: Any) -> Claim:
    if not isinstance(lease, Lease):
        raise TypeError(f"expected a gcx.Lease with its count, not {type(lease).__name__}")
    return lease._claim


def sm_count_of(value: object) -> int:
    """A lease's SM count for C."""
    if value is None:
        return _gcx.GCX_REST
    hint = "None asks for the rest, and close() gives the lease up"
    return sms_of(value, "a lease's count", hint)


def count_or_rest(sm_count: int) -> int | None:
    """The SMs that a lease or reservation has or waits for, from C: None for the rest."""
    return None if sm_count == _gcx.GCX_REST else sm_count


def _change_flags(deferred: object) -> int:
    return _gcx.GCX_RESIZE_DEFERRED if flag_of(deferred, "deferred") else _gcx.GCX_RESIZE_DEFAULT

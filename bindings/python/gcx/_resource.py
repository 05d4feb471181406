"""Resources: values that say which SMs, or how work is queued."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, NoReturn, overload

from gcx import _gcx
from gcx._errors import (
    InvalidResourceTypeError,
    InvalidValueError,
    NotReadyError,
    ResourceConfigurationError,
)
from gcx._request import (
    FAMILIES,
    FAMILY_NAMES,
    Count,
    SplitOptions,
    family_flag,
    requests_of,
    whole,
)

if TYPE_CHECKING:
    from gcx._context import Context

_new = object.__new__


class _Resource:
    """What both types share: a value of bytes that only this process understands."""

    __slots__ = ("_handle", "_info")

    _handle: bytes
    _info: tuple[int, ...]
    _types: tuple[int, ...] = ()

    def __init__(self, handle: bytes) -> None:
        if not isinstance(handle, bytes):
            raise TypeError(f"a resource's handle is bytes, not {type(handle).__name__}")
        info = _gcx.gcx_resource_get_info(handle)
        if info[0] not in self._types:
            raise InvalidResourceTypeError(
                f"the handle isn't one of a gcx.{type(self).__name__}; its type is {info[0]}"
            )
        self._handle = handle
        self._info = info

    @property
    def handle(self) -> bytes:
        """The value itself: the bytes of the C API's gcx_resource."""
        return self._handle

    def _field(self, number: int) -> int:
        try:
            return self._info[number]
        except AttributeError:  # Nobody asked before.
            self._info = _gcx.gcx_resource_get_info(self._handle)
            return self._info[number]

    @property
    def device(self) -> int:
        """The ordinal of the device."""
        return self._field(1)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Resource):
            return NotImplemented
        return self._handle == other._handle

    def __hash__(self) -> int:
        return hash(self._handle)

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"a gcx.{type(self).__name__} can't be pickled: it is valid in this process alone. "
            "Send its counts, and split again there"
        )

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: object) -> Any:
        return self


class WorkqueueResource(_Resource):
    """How a context's work is queued: CUDA's workqueue resource, drivers of CUDA 13.1 and newer."""

    __slots__ = ()
    _types = (_gcx.GCX_RESOURCE_WORKQUEUE_CONFIG, _gcx.GCX_RESOURCE_WORKQUEUE)

    @property
    def scope(self) -> Literal["device_ctx", "green_ctx_balanced"] | None:
        """Who shares the workqueues: "device_ctx" all contexts of the device;
        "green_ctx_balanced" none of the other balanced ones, where possible. None for a shared
        workqueue, which has no configuration."""
        if self._field(0) != _gcx.GCX_RESOURCE_WORKQUEUE_CONFIG:
            return None
        return _SCOPE_NAMES[self._field(9)]

    @property
    def concurrency_limit(self) -> int:
        """How many concurrent stream-ordered workloads are expected."""
        return self._field(10)

    def configured(
        self,
        scope: Literal["device_ctx", "green_ctx_balanced"] | None = None,
        concurrency_limit: int | None = None,
    ) -> WorkqueueResource:
        """The same configuration with another scope or limit; None keeps what it has.

        Raises:
            InvalidValueError: No such scope; a limit below 1.
            InvalidResourceTypeError: This is a shared workqueue, which can't be configured.
        """
        if scope is None:
            scope = self.scope or "device_ctx"
        if not isinstance(scope, str):
            raise TypeError(f"scope must be a string, not {type(scope).__name__}")
        if scope not in _SCOPES:
            raise InvalidValueError(
                f"scope must be one of {', '.join(map(repr, _SCOPES))}, not {scope!r}"
            )
        limit = 0 if concurrency_limit is None else whole(concurrency_limit, "concurrency_limit", 1)
        return _workqueue(_gcx.gcx_workqueue_configure(self._handle, _SCOPES[scope], limit))

    def __repr__(self) -> str:
        if self.scope is None:
            return f"<gcx.WorkqueueResource: a workqueue of device {self.device}>"
        return (
            f"<gcx.WorkqueueResource of device {self.device}: {self.scope}, "
            f"concurrency limit {self.concurrency_limit}>"
        )


_SCOPES = {
    "device_ctx": _gcx.GCX_WORKQUEUE_SCOPE_DEVICE_CTX,
    "green_ctx_balanced": _gcx.GCX_WORKQUEUE_SCOPE_GREEN_CTX_BALANCED,
}
_SCOPE_NAMES: dict[int, Literal["device_ctx", "green_ctx_balanced"]] = {
    _gcx.GCX_WORKQUEUE_SCOPE_DEVICE_CTX: "device_ctx",
    _gcx.GCX_WORKQUEUE_SCOPE_GREEN_CTX_BALANCED: "green_ctx_balanced",
}


class Plan(NamedTuple):
    """What a split would give, in SMs."""

    groups: tuple[int, ...]
    remainder: int


class SMResource(_Resource):
    """A set of SMs of one device: a value, made by splitting a device's SMs or joining others.

    Nothing is held by it: make a context of it to run something there. `a | b` are the SMs of both,
    `a - b` those of a without those of b, `a & b` those in both. An empty one is false.
    """

    __slots__ = ()
    _types = (_gcx.GCX_RESOURCE_SM,)
    #: Set by the module of contexts, which needs this one.
    _context_type: ClassVar[type[Context]]

    @property
    def sm_count(self) -> int:
        """How many SMs it holds."""
        return self._field(3)

    @property
    def family(self) -> str:
        """How its SMs were split off: "coscheduled", "fine", "max-cluster" or "structured"."""
        return FAMILY_NAMES[self._field(2)]

    @property
    def min_partition_size(self) -> int:
        """The fewest SMs that splitting this can give."""
        return self._field(5)

    @property
    def coscheduled_alignment(self) -> int:
        """The step, in SMs, of the sizes that splitting this can give."""
        return self._field(6)

    @property
    def flags(self) -> int:
        """The CUdevSmResourceGroup_flags that it was made with."""
        return self._field(7)

    @property
    def locality_domain(self) -> int | None:
        """The locality domain it was asked from, if one was."""
        if self._field(7) & _gcx.GCX_SM_REQUEST_LOCALITY_DOMAIN_ID:
            return self._field(8)
        return None

    @property
    def atoms(self) -> tuple[SMResource, ...]:
        """The smallest sets it is made of, each a resource of its own."""
        return tuple(
            _sm(_gcx.gcx_resource_get_atom(self._handle, number))
            for number in range(self._field(4))
        )

    @overload
    def split(
        self,
        options: SplitOptions | Count | Sequence[Count],
        *,
        family: str | None = None,
        exact: bool = False,
        dry_run: Literal[False] = False,
    ) -> Split: ...
    @overload
    def split(
        self,
        options: SplitOptions | Count | Sequence[Count],
        *,
        family: str | None = None,
        exact: bool = False,
        dry_run: Literal[True],
    ) -> Plan: ...
    def split(
        self,
        options: SplitOptions | Count | Sequence[Count],
        *,
        family: str | None = None,
        exact: bool = False,
        dry_run: bool = False,
    ) -> Split | Plan:
        """Divides the SMs into disjoint groups and a remainder; makes nothing on the device.

        Args:
            options: Counts like [24, None], or SplitOptions. Counts are rounded up to what the
                device can give; None takes what the others leave, and several share it.
            family: "coscheduled", "fine" or "max-cluster"; None: that of this resource. Another
                family than this resource's can be split off a whole device alone.
            exact: Refuse a count that would be rounded.
            dry_run: Give the counts alone: a Plan.

        Raises:
            ResourceConfigurationError: The groups don't fit, or one would be empty; a count can't
                be met with exact; another family than this resource's.
            NotSupportedError: The driver lacks structured splits (before CUDA 13.1) or locality
                domains (before 13.4); the device has no such family.
            InvalidValueError, TypeError: As SplitOptions; a structured split that breaks one of
                CUDA's rules.
        """
        requests = requests_of(options)
        flags = 0 if family is None and exact is False else self._flags(family, exact)
        if dry_run:
            return Plan(*_gcx.gcx_sm_plan(self._handle, requests, flags))
        groups, remainder = _gcx.gcx_sm_split(self._handle, requests, flags)
        return Split(tuple(map(_sm, groups)), _sm(remainder))

    def plan(
        self,
        options: SplitOptions | Count | Sequence[Count],
        *,
        family: str | None = None,
        exact: bool = False,
    ) -> Plan:
        """What `split` would give, in SMs: the same computation. Raises what `split` raises."""
        return Plan(
            *_gcx.gcx_sm_plan(self._handle, requests_of(options), self._flags(family, exact))
        )

    def _flags(self, family: str | None, exact: bool) -> int:
        if family is None and exact is False:
            return 0
        if not isinstance(exact, bool):
            raise TypeError(f"exact must be True or False, not {type(exact).__name__}")
        flags = family_flag(family)
        if family == "coscheduled" and self.family != family:
            raise ResourceConfigurationError(
                f"the resource is of the family {self.family}; only a whole device can be split "
                "into another"
            )
        return flags | (_gcx.GCX_SPLIT_EXACT if exact else 0)

    def context(self, workqueue: WorkqueueResource | None = None) -> Context:
        """A context over these SMs, see gcx.Context."""
        return self._context_type(self if workqueue is None else (self, workqueue))

    def __or__(self, other: SMResource) -> SMResource:
        if not isinstance(other, SMResource):
            return NotImplemented
        return _sm(_gcx.gcx_resource_union(self._handle, other._handle))

    def __sub__(self, other: SMResource) -> SMResource:
        if not isinstance(other, SMResource):
            return NotImplemented
        return _sm(_gcx.gcx_resource_subtract(self._handle, other._handle))

    def __and__(self, other: SMResource) -> SMResource:
        if not isinstance(other, SMResource):
            return NotImplemented
        return _sm(_gcx.gcx_resource_intersect(self._handle, other._handle))

    def __bool__(self) -> bool:
        return self.sm_count != 0

    def overlap(self, other: SMResource) -> int:
        """How many SMs both hold; 0 for resources of two devices.

        Raises:
            NotReadyError: They are of two families and it isn't known yet which SMs those hold.
                Device.map_sms finds out.
        """
        if not isinstance(other, SMResource):
            raise TypeError(f"overlap takes a gcx.SMResource, not {type(other).__name__}")
        return _gcx.gcx_resource_get_overlap(self._handle, other._handle)

    def sm_ids(self) -> tuple[int, ...]:
        """The numbers (%smid) of its SMs, ascending.

        The first call for a device and family maps it, as Device.map_sms does and at its cost.

        Raises:
            InvalidValueError: The family is "structured", which can't be mapped.
        """
        try:
            return _gcx.gcx_resource_get_sm_ids(self._handle)
        except NotReadyError:
            _gcx.gcx_device_map_sms(self.device, FAMILIES[self.family])
            return _gcx.gcx_resource_get_sm_ids(self._handle)

    def __repr__(self) -> str:
        return f"<gcx.SMResource of device {self.device}: {self.sm_count} SMs, {self.family}>"


class Split(NamedTuple):
    """What a split gave: a resource for each group, and what is left over, which can be empty."""

    groups: tuple[SMResource, ...]
    remainder: SMResource


def _sm(handle: bytes) -> SMResource:
    """An SM resource of what the C API gave, which needs no check."""
    resource = _new(SMResource)
    resource._handle = handle
    return resource


def _workqueue(handle: bytes) -> WorkqueueResource:
    resource = _new(WorkqueueResource)
    resource._handle = handle
    return resource


class Resources:
    """The resources of a device, a context or a stream."""

    __slots__ = ("_get", "_of")

    def __init__(self, of: str, get: Callable[[int], bytes]) -> None:
        self._of = of
        self._get = get

    @property
    def sm(self) -> SMResource:
        """Its SMs.

        Raises:
            NotFoundError: A stream that others made in a green context of their own; its sm_count
                is known nevertheless.
        """
        return _sm(self._get(_gcx.GCX_RESOURCE_SM))

    @property
    def workqueue(self) -> WorkqueueResource:
        """Its workqueue configuration.

        Raises:
            NotSupportedError: The driver is older than CUDA 13.1.
            InvalidResourceTypeError: The context was made without one.
        """
        return _workqueue(self._get(_gcx.GCX_RESOURCE_WORKQUEUE_CONFIG))

    @property
    def shared_workqueue(self) -> WorkqueueResource:
        """A context's workqueue itself: a context made with it shares it.

        Raises:
            NotSupportedError: The driver is older than CUDA 13.1.
            InvalidResourceTypeError: A device has none, nor has a context made without one.
        """
        return _workqueue(self._get(_gcx.GCX_RESOURCE_WORKQUEUE))

    def __repr__(self) -> str:
        return f"<gcx.Resources of {self._of}>"

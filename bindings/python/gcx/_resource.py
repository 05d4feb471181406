"""Resources: values that say which SMs, or how work is queued."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, NoReturn

from gcx import _gcx
from gcx._checks import chosen, whole
from gcx._errors import (
    InvalidResourceTypeError,
    NotReadyError,
    ResourceConfigurationError,
    described,
)
from gcx._request import FAMILIES, Counts, Family, requests_of, split_flags

_new = object.__new__
FAMILY_NAMES = {
    **{number: name for name, number in FAMILIES.items()},
    _gcx.GCX_SM_FAMILY_STRUCTURED: "structured",
    _gcx.GCX_SM_FAMILY_FOREIGN: "foreign",
}
#: Who shares a context's workqueues, see WorkqueueResource.scope.
Scope = Literal["device_ctx", "green_ctx_balanced"]


class Resource:
    """What both types share: a value of bytes that only this process understands."""

    __slots__ = ("_info", "_value")

    _value: bytes
    _info: tuple[int, ...]
    _types: tuple[int, ...] = ()

    def __init__(self, value: bytes) -> None:
        kind = type(self).__name__
        if not isinstance(value, bytes):
            raise TypeError(
                f"a gcx.{kind} is made of the bytes of another, not of {type(value).__name__}; "
                "Device.resources has the first"
            )
        info = _gcx.gcx_resource_get_info(value)
        if info[0] not in self._types:
            raise InvalidResourceTypeError(
                f"the bytes aren't those of a gcx.{kind}; their type is {info[0]}"
            )
        self._value = value
        self._info = info

    def __bytes__(self) -> bytes:
        """The value itself: the C API's gcx_resource."""
        return self._value

    def _field(self, number: int) -> int:
        try:
            return self._info[number]
        except AttributeError:  # Nobody asked before.
            self._info = _gcx.gcx_resource_get_info(self._value)
            return self._info[number]

    @property
    def device(self) -> int:
        """The ordinal of the device."""
        return self._field(1)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Resource):
            return NotImplemented
        return self._value == other._value

    def __hash__(self) -> int:
        return hash(self._value)

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"a gcx.{type(self).__name__} can't be pickled: it is valid in this process alone. "
            "Send its counts, and split again there"
        )

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: object) -> Any:
        return self

    def __repr__(self) -> str:
        return described(type(self).__name__, self._describe)

    def _describe(self) -> str:
        """What repr says behind the kind."""
        raise NotImplementedError


class WorkqueueResource(Resource):
    """How a context's work is queued: CUDA's workqueue resource, drivers of CUDA 13.1 and newer."""

    __slots__ = ()
    _types = (_gcx.GCX_RESOURCE_WORKQUEUE_CONFIG, _gcx.GCX_RESOURCE_WORKQUEUE)

    @property
    def scope(self) -> Scope | None:
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
        scope: Scope | None = None,
        concurrency_limit: int | None = None,
    ) -> WorkqueueResource:
        """The same configuration with another scope or limit; None keeps what it has.

        Raises:
            InvalidValueError: No such scope; a limit below 1.
            InvalidResourceTypeError: This is a shared workqueue, which can't be configured.
        """
        if scope is None:
            scope = self.scope or "device_ctx"
        number = chosen(scope, "scope", _SCOPES)
        limit = 0 if concurrency_limit is None else whole(concurrency_limit, "concurrency_limit", 1)
        return workqueue_resource(_gcx.gcx_workqueue_configure(self._value, number, limit))

    def _describe(self) -> str:
        if self.scope is None:
            return f": a workqueue of device {self.device}"
        return f" of device {self.device}: {self.scope}, concurrency limit {self.concurrency_limit}"


_SCOPES = {
    "device_ctx": _gcx.GCX_WORKQUEUE_SCOPE_DEVICE_CTX,
    "green_ctx_balanced": _gcx.GCX_WORKQUEUE_SCOPE_GREEN_CTX_BALANCED,
}
_SCOPE_NAMES: dict[int, Scope] = {
    _gcx.GCX_WORKQUEUE_SCOPE_DEVICE_CTX: "device_ctx",
    _gcx.GCX_WORKQUEUE_SCOPE_GREEN_CTX_BALANCED: "green_ctx_balanced",
}


class Plan(NamedTuple):
    """What a split would give, in SMs."""

    groups: tuple[int, ...]
    remainder: int


class SMResource(Resource):
    """A set of SMs of one device: a value, made by splitting a device's SMs or joining others.

    Nothing is held by it: make a gcx.Context of it to run something there. As with Python's sets
    `a | b` are the SMs of both, `a - b` those of a without those of b, `a & b` those in both;
    `a <= b` is whether b holds all of a, `a < b` whether it holds more. An empty one is false.
    """

    __slots__ = ()
    _types = (_gcx.GCX_RESOURCE_SM,)

    @property
    def sm_count(self) -> int:
        """How many SMs it holds."""
        return self._field(3)

    @property
    def family(self) -> str:
        """How its SMs were split off: "coscheduled", "fine", "max-cluster", "structured";
        "foreign" if others did, so that its counts are known and it can't be split or compared."""
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
            sm_resource(_gcx.gcx_resource_get_atom(self._value, number))
            for number in range(self._field(4))
        )

    def split(
        self,
        counts: Counts,
        *,
        family: Family | None = None,
        exact: bool = False,
        exclude_leased: bool = False,
        exclude_shared: bool = False,
    ) -> Split:
        """Divides the SMs into disjoint groups and a remainder; makes nothing on the device.

        Args:
            counts: Counts like [24, None], or SplitOptions. Each is the least that its group gets:
                what the device can't give exactly is rounded up, so that groups of one count can
                differ where the device's last SMs are no whole group ([8] * 16 on an H100 gives
                one group of 12). None takes what the others leave, and several share it.
            family: "coscheduled", "fine" or "max-cluster"; None: that of this resource. Another
                family than this resource's can be split off a whole device alone.
            exact: Refuse a count that would be rounded.
            exclude_leased: Split only what no lease has, see gcx.acquire.
            exclude_shared: Leave out the atom with the SMs of Device.shared_sms, which has to have
                found them; after Device.map_sms.

        Raises:
            ResourceConfigurationError: The groups don't fit, or one would be empty; a count can't
                be met with exact; another family than this resource's.
            NotReadyError: With exclude_shared, the shared SMs or the atom that holds them aren't
                known.
            NotSupportedError: The driver lacks structured splits (before CUDA 13.1) or locality
                domains (before 13.4); the device has no such family.
            InvalidValueError, TypeError: As SplitOptions; a structured split that breaks one of
                CUDA's rules.
        """
        groups, remainder = _gcx.gcx_sm_split(
            self._value,
            requests_of(counts),
            self._flags(family, exact, exclude_leased, exclude_shared),
        )
        return Split(tuple(map(sm_resource, groups)), sm_resource(remainder))

    def plan(
        self,
        counts: Counts,
        *,
        family: Family | None = None,
        exact: bool = False,
        exclude_leased: bool = False,
        exclude_shared: bool = False,
    ) -> Plan:
        """What `split` would give, in SMs: the same computation. Raises what `split` raises."""
        flags = self._flags(family, exact, exclude_leased, exclude_shared)
        return Plan(*_gcx.gcx_sm_plan(self._value, requests_of(counts), flags))

    def _flags(
        self, family: Family | None, exact: bool, exclude_leased: bool, exclude_shared: bool
    ) -> int:
        flags = split_flags(family, exact, exclude_leased, exclude_shared)
        if family == "coscheduled" and self.family != family:
            raise ResourceConfigurationError(
                f"the resource is of the family {self.family}; only a whole device can be split "
                "into another"
            )
        return flags

    def __or__(self, other: SMResource) -> SMResource:
        if not isinstance(other, SMResource):
            return NotImplemented
        return sm_resource(_gcx.gcx_resource_union(self._value, other._value))

    def __sub__(self, other: SMResource) -> SMResource:
        if not isinstance(other, SMResource):
            return NotImplemented
        return sm_resource(_gcx.gcx_resource_subtract(self._value, other._value))

    def __and__(self, other: SMResource) -> SMResource:
        if not isinstance(other, SMResource):
            return NotImplemented
        return sm_resource(_gcx.gcx_resource_intersect(self._value, other._value))

    def __bool__(self) -> bool:
        return self.sm_count != 0

    def overlap(self, other: SMResource) -> int:
        """How many SMs both hold; 0 for resources of two devices.

        Raises:
            NotReadyError: They are of two families and it isn't known yet which SMs those hold.
                Device.map_sms finds out.
            NotSupportedError: One is of the family "structured", which can't be mapped.
        """
        if not isinstance(other, SMResource):
            raise TypeError(f"overlap takes a gcx.SMResource, not {type(other).__name__}")
        return _gcx.gcx_resource_get_overlap(self._value, other._value)

    def live_overlap(self) -> int:
        """How many of its SMs any live context of this process holds, see gcx.live_contexts.

        Raises:
            NotReadyError: Some hold SMs of another family, and it isn't known yet which those are.
                Device.map_sms finds out.
        """
        return _gcx.gcx_resource_get_live_overlap(self._value)

    def max_cluster_size(self) -> int:
        """The most blocks that a thread block cluster on these SMs can have, sizes above the
        portable 8 included; 1 on a device without clusters. It follows from how the SMs were split
        off, not from their number. The first call makes a context of them, at its cost.

        Raises:
            ResourceConfigurationError: It is empty.
        """
        return _gcx.gcx_resource_get_max_cluster_size(self._value)

    def isdisjoint(self, other: SMResource) -> bool:
        """Whether no SM is in both. Raises what `overlap` raises."""
        return self.overlap(other) == 0

    def __le__(self, other: SMResource) -> bool:
        if not isinstance(other, SMResource):
            return NotImplemented
        return self.overlap(other) == self.sm_count

    def __lt__(self, other: SMResource) -> bool:
        if not isinstance(other, SMResource):
            return NotImplemented
        return self.overlap(other) == self.sm_count < other.sm_count

    def __ge__(self, other: SMResource) -> bool:
        if not isinstance(other, SMResource):
            return NotImplemented
        return other <= self

    def __gt__(self, other: SMResource) -> bool:
        if not isinstance(other, SMResource):
            return NotImplemented
        return other < self

    def sm_ids(self) -> tuple[int, ...]:
        """The numbers (%smid) of its SMs, ascending.

        The first call for a device and family maps it, as Device.map_sms does and at its cost.

        Raises:
            NotSupportedError: The family is "structured", which can't be mapped: ask sm_ids of a
                stream.
        """
        try:
            return _gcx.gcx_resource_get_sm_ids(self._value)
        except NotReadyError:
            _gcx.gcx_device_map_sms(self.device, FAMILIES[self.family])
            return _gcx.gcx_resource_get_sm_ids(self._value)

    def _describe(self) -> str:
        return f" of device {self.device}: {self.sm_count} SMs, {self.family}"


class Split(NamedTuple):
    """What a split gave: a resource for each group, and what is left over, which can be empty."""

    groups: tuple[SMResource, ...]
    remainder: SMResource


def sm_resource(value: bytes) -> SMResource:
    """An SM resource of what the C API gave, which needs no check."""
    resource = _new(SMResource)
    resource._value = value
    return resource


def workqueue_resource(value: bytes) -> WorkqueueResource:
    """The same of a workqueue resource."""
    resource = _new(WorkqueueResource)
    resource._value = value
    return resource

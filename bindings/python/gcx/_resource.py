"""Resources: values that name SMs, or configure workqueues."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, NoReturn

from gcx import _gcx
from gcx._checks import chosen, whole
from gcx._errors import (
    InvalidResourceTypeError,
    ResourceConfigurationError,
    SmsNotMappedError,
    described,
)
from gcx._record import json_of
from gcx._request import FAMILIES, Counts, Family, requests_of, split_flags

_new = object.__new__
FAMILY_NAMES = {
    **{number: name for name, number in FAMILIES.items()},
    _gcx.GCX_SM_FAMILY_STRUCTURED: "structured",
    _gcx.GCX_SM_FAMILY_EXTERNAL: "external",
}
#: Which contexts share workqueues, see WorkqueueResource.scope.
Scope = Literal["device_ctx", "green_ctx_balanced"]


class Resource:
    """The base of both types: bytes that are valid only in this process."""

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
        """Returns the C API's gcx_resource."""
        return self._value

    def _field(self, number: int) -> int:
        try:
            return self._info[number]
        except AttributeError:  # The first use.
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
            f"a gcx.{type(self).__name__} can't be pickled: it is valid only in this process. "
            "Send its counts, and split again there"
        )

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: object) -> Any:
        return self

    def __repr__(self) -> str:
        return described(type(self).__name__, self._describe)

    def _describe(self) -> str:
        raise NotImplementedError


class WorkqueueResource(Resource):
    """A workqueue configuration for contexts. Needs a driver of CUDA 13.1 or newer."""

    __slots__ = ()
    _types = (_gcx.GCX_RESOURCE_WORKQUEUE_CONFIG, _gcx.GCX_RESOURCE_WORKQUEUE)

    @property
    def scope(self) -> Scope | None:
        """Which contexts share the workqueues: "device_ctx": all of the device;
        "green_ctx_balanced": as few balanced ones as possible. None for a shared workqueue, which
        has no configuration."""
        if self._field(0) != _gcx.GCX_RESOURCE_WORKQUEUE_CONFIG:
            return None
        return _SCOPE_NAMES[self._field(9)]

    @property
    def concurrency_limit(self) -> int:
        """How many stream-ordered workloads are expected to run concurrently."""
        return self._field(10)

    def configured(
        self,
        scope: Scope | None = None,
        concurrency_limit: int | None = None,
    ) -> WorkqueueResource:
        """Returns a copy with another scope or limit; None keeps the current one.

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
    """The SM counts that a split would give."""

    groups: tuple[int, ...]
    remainder: int

    def to_json(self) -> dict[str, Any]:
        """Returns the fields as values for json.dumps."""
        return json_of(self)


class SMResource(Resource):
    """A set of SMs of one device: a value that occupies nothing on the device.

    Make a gcx.Context of it to run work there. The operators are those of Python's sets: `a | b`,
    `a - b`, `a & b`, `a <= b` (b contains all SMs of a), `a < b`. An empty set is false.
    """

    __slots__ = ()
    _types = (_gcx.GCX_RESOURCE_SM,)

    @property
    def sm_count(self) -> int:
        """How many SMs it has."""
        return self._field(3)

    @property
    def family(self) -> str:
        """How its SMs were split off: "coscheduled", "fine", "max-cluster" or "structured".
        "external" if another library made it: its count is known, but it can't be split or
        compared."""
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
        """Its CUdevSmResourceGroup_flags."""
        return self._field(7)

    @property
    def locality_domain(self) -> int | None:
        """The locality domain that was requested for it, if any."""
        if self._field(7) & _gcx.GCX_SM_REQUEST_LOCALITY_DOMAIN_ID:
            return self._field(8)
        return None

    @property
    def atoms(self) -> tuple[SMResource, ...]:
        """The smallest sets that it consists of."""
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
        """Splits the SMs into disjoint groups and a remainder; makes nothing on the device.

        Args:
            counts: Counts like [24, None], or SplitOptions. Each is rounded up to whole atoms, and
                atoms differ in size: [8] * 16 on an H100 gives one group of 12. None takes what the
                others leave; several share it.
            family: "coscheduled", "fine" or "max-cluster"; None: that of this resource. Only a
                whole device can be split into another family.
            exact: Fail instead of rounding a count.
            exclude_leased: Split only SMs that no lease has, see gcx.acquire.
            exclude_shared: Leave out the atom with the SMs of Device.shared_sms. Call that and
                Device.map_sms first.

        Raises:
            ResourceConfigurationError: The groups don't fit, or one would be empty; exact, and a
                count would be rounded; another family than this resource's.
            SharedSmsUnknownError: exclude_shared, and the shared SMs are unknown; call
                Device.shared_sms.
            SmsNotMappedError: exclude_shared, and their atom is unknown; call Device.map_sms.
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
        """Returns the SM counts that `split` would give. Raises what `split` raises."""
        flags = self._flags(family, exact, exclude_leased, exclude_shared)
        return Plan(*_gcx.gcx_sm_split_counts(self._value, requests_of(counts), flags))

    def _flags(
        self, family: Family | None, exact: bool, exclude_leased: bool, exclude_shared: bool
    ) -> int:
        flags = split_flags(family, exact, exclude_leased, exclude_shared)
        if family == "coscheduled" and self.family != family:
            raise ResourceConfigurationError(
                f"the resource has the family {self.family}; only a whole device can be split into "
                "another"
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
        return self - (self - other)

    def __bool__(self) -> bool:
        return self.sm_count != 0

    def overlap(self, other: SMResource) -> int:
        """Returns how many SMs both have; 0 for resources of two devices.

        Raises:
            SmsNotMappedError: They have two families whose SMs are unknown; call Device.map_sms.
            NotSupportedError: One has the family "structured", which can't be mapped.
        """
        if not isinstance(other, SMResource):
            raise TypeError(f"overlap takes a gcx.SMResource, not {type(other).__name__}")
        return _gcx.gcx_resource_get_overlap(self._value, other._value)

    def max_cluster_size(self) -> int:
        """Returns the most blocks that a thread block cluster can have on these SMs, including
        sizes above the portable 8; 1 on a device without clusters. It depends on how the SMs were
        split off, not on their number. The first call makes a context of them.

        Raises:
            ResourceConfigurationError: It is empty.
        """
        return _gcx.gcx_resource_find_max_cluster_size(self._value)

    def isdisjoint(self, other: SMResource) -> bool:
        """Returns whether no SM is in both. Raises what `overlap` raises."""
        return self.overlap(other) == 0

    def __le__(self, other: SMResource) -> bool:
        if not isinstance(other, SMResource):
            return NotImplemented
        return self.overlap(other) == self.sm_count

    def __lt__(self, other: SMResource) -> bool:
        if not isinstance(other, SMResource):
            return NotImplemented
        return self <= other and self.sm_count < other.sm_count

    def __ge__(self, other: SMResource) -> bool:
        return other <= self if isinstance(other, SMResource) else NotImplemented

    def __gt__(self, other: SMResource) -> bool:
        return other < self if isinstance(other, SMResource) else NotImplemented

    def sm_ids(self) -> tuple[int, ...]:
        """Returns the numbers (%smid) of its SMs, ascending. The first call for a device and
        family maps it, as Device.map_sms does.

        Raises:
            NotSupportedError: The family is "structured", which can't be mapped; use
                Stream.sm_ids.
        """
        try:
            return _gcx.gcx_resource_get_sm_ids(self._value)
        except SmsNotMappedError:
            _gcx.gcx_device_map_sms(self.device, FAMILIES[self.family])
            return _gcx.gcx_resource_get_sm_ids(self._value)

    def to_json(self) -> dict[str, Any]:
        """Returns its device, family and number of SMs as values for json.dumps."""
        return {"device": self.device, "family": self.family, "sm_count": self.sm_count}

    def _pickled(self) -> tuple[bytes, tuple[int, ...]]:
        """Returns what a record keeps of it in a pickle. In other processes C refuses the value."""
        self._field(0)
        return self._value, self._info

    @staticmethod
    def _unpickled(value: bytes, info: tuple[int, ...]) -> SMResource:
        resource = sm_resource(value)
        resource._info = info
        return resource

    def _describe(self) -> str:
        return f" of device {self.device}: {self.sm_count} SMs, {self.family}"


class Split(NamedTuple):
    """The result of a split: a resource for each group, and the rest, which can be empty."""

    groups: tuple[SMResource, ...]
    remainder: SMResource

    def to_json(self) -> dict[str, Any]:
        """Returns the fields as values for json.dumps."""
        return json_of(self)


def sm_resource(value: bytes) -> SMResource:
    """Returns an SM resource of bytes from the C API, unchecked."""
    resource = _new(SMResource)
    resource._value = value
    return resource


def workqueue_resource(value: bytes) -> WorkqueueResource:
    """Returns a workqueue resource of bytes from the C API, unchecked."""
    resource = _new(WorkqueueResource)
    resource._value = value
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
            NotSupportedError: A stream in another library's green context, on a driver before 13.1;
                its sm_count is known nevertheless.
        """
        return sm_resource(self._get(_gcx.GCX_RESOURCE_SM))

    @property
    def workqueue(self) -> WorkqueueResource:
        """Its workqueue configuration.

        Raises:
            NotSupportedError: The driver is older than CUDA 13.1.
            InvalidResourceTypeError: The context was made without one.
        """
        return workqueue_resource(self._get(_gcx.GCX_RESOURCE_WORKQUEUE_CONFIG))

    @property
    def shared_workqueue(self) -> WorkqueueResource:
        """A context's workqueue itself: a context made with it shares it.

        Raises:
            NotSupportedError: The driver is older than CUDA 13.1.
            InvalidResourceTypeError: A device has none, nor has a context made without one.
        """
        return workqueue_resource(self._get(_gcx.GCX_RESOURCE_WORKQUEUE))

    def __repr__(self) -> str:
        return f"<gcx.Resources of {self._of}>"

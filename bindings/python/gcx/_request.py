"""Requests for groups of SMs, converted to the C API."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, NoReturn, Optional, SupportsIndex, Union

from gcx import _gcx
from gcx._checks import chosen, flag_of, items_of, sms_of, whole
from gcx._errors import InvalidValueError

#: How SMs are grouped, see SMResource.split.
Family = Literal["coscheduled", "fine", "max-cluster"]
#: SMs of a group; None: what the other groups leave.
Count = Optional[SupportsIndex]

FAMILIES = {
    "coscheduled": _gcx.GCX_SM_FAMILY_COSCHEDULED,
    "fine": _gcx.GCX_SM_FAMILY_FINE,
    "max-cluster": _gcx.GCX_SM_FAMILY_MAX_CLUSTER,
}
_FAMILY_FLAGS = {
    "coscheduled": _gcx.GCX_SPLIT_DEFAULT,
    "fine": _gcx.GCX_SPLIT_IGNORE_SM_COSCHEDULING,
    "max-cluster": _gcx.GCX_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE,
}
_MOST = 0xFFFFFFFF
_Row = tuple[int, int, int, int, int]


class SplitOptions:
    """The groups of a split, with more than their counts. Immutable.

    Each field is a scalar for every group, or has one value for each group. Sequences must agree in
    length, and are kept as tuples. With only scalars there is one group.

    Args:
        count: SMs of a group, rounded up to whole atoms. None takes what the other groups leave;
            several share it.
        coscheduled_sm_count: SMs that are guaranteed to run a cluster together. This and the fields
            below need a driver of CUDA 13.1 or newer, and CUDA's own rules apply: no rounding.
        preferred_coscheduled_sm_count: The same, as a preference.
        backfill: Allow SMs that can't be coscheduled, to reach the count.
        locality_domain: The locality domain of the SMs, or "any". Needs a driver of CUDA 13.4 or
            newer.

    Raises:
        TypeError: A value of another type; a bool is no number.
        InvalidValueError: An empty list, lists of different lengths, a count of 0, a negative or
            huge number.
    """

    __slots__ = (
        "_requests",
        "backfill",
        "coscheduled_sm_count",
        "count",
        "locality_domain",
        "preferred_coscheduled_sm_count",
    )

    count: Count | tuple[Count, ...]
    coscheduled_sm_count: Count | tuple[Count, ...]
    preferred_coscheduled_sm_count: Count | tuple[Count, ...]
    backfill: bool | tuple[bool, ...]
    locality_domain: Count | Literal["any"] | tuple[Count | Literal["any"], ...]
    _requests: tuple[_Row, ...]

    def __init__(
        self,
        count: Count | Iterable[Count] = None,
        coscheduled_sm_count: Count | Iterable[Count] = None,
        preferred_coscheduled_sm_count: Count | Iterable[Count] = None,
        backfill: bool | Iterable[bool] = False,
        locality_domain: Count | Literal["any"] | Iterable[Count | Literal["any"]] = None,
    ) -> None:
        given: dict[str, Any] = {
            "count": count,
            "coscheduled_sm_count": coscheduled_sm_count,
            "preferred_coscheduled_sm_count": preferred_coscheduled_sm_count,
            "backfill": backfill,
            "locality_domain": locality_domain,
        }
        for name, value in given.items():
            items = items_of(value)
            given[name] = value if items is None else tuple(items)
            object.__setattr__(self, name, given[name])
        object.__setattr__(self, "_requests", _rows(given))

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"SplitOptions can't be changed; make new ones to set {name}")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"SplitOptions can't be changed; {name} stays")

    def __reduce__(self) -> tuple[type[SplitOptions], tuple[Any, ...]]:
        return SplitOptions, tuple(getattr(self, name) for name in _FIELDS)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SplitOptions):
            return NotImplemented
        return self._requests == other._requests

    def __hash__(self) -> int:
        return hash(self._requests)

    def __repr__(self) -> str:
        fields = [
            f"{name}={getattr(self, name)!r}"
            for name, default in _FIELDS.items()
            if getattr(self, name) is not default
        ]
        return f"gcx.SplitOptions({', '.join(fields)})"


# The values that repr omits.
_FIELDS = {
    "count": ...,
    "coscheduled_sm_count": None,
    "preferred_coscheduled_sm_count": None,
    "backfill": False,
    "locality_domain": None,
}

#: Accepted by a split: a count, several, or SplitOptions.
Counts = Union[SplitOptions, Count, Iterable[Count]]


def _rows(columns: dict[str, Any]) -> tuple[_Row, ...]:
    lengths = {name: len(value) for name, value in columns.items() if isinstance(value, tuple)}
    for name, length in lengths.items():
        if length == 0:
            raise InvalidValueError(f"{name} is empty; a split has at least one group")
    if len(set(lengths.values())) > 1:
        found = ", ".join(f"{name} has {length}" for name, length in sorted(lengths.items()))
        raise InvalidValueError(f"the lists must agree in length: {found}")
    groups = next(iter(lengths.values()), 1)
    rows = {
        name: value if name in lengths else (value,) * groups for name, value in columns.items()
    }
    return tuple(_row(**{name: rows[name][number] for name in rows}) for number in range(groups))


def _row(
    count: object,
    coscheduled_sm_count: object,
    preferred_coscheduled_sm_count: object,
    backfill: object,
    locality_domain: object,
) -> _Row:
    def optional(value: object, what: str) -> int:
        return 0 if value is None else whole(value, what, 1)

    flags = _gcx.GCX_SM_REQUEST_BACKFILL if flag_of(backfill, "backfill") else 0
    domain = 0
    if locality_domain is not None:
        flags |= _gcx.GCX_SM_REQUEST_LOCALITY_DOMAIN_ID
        if isinstance(locality_domain, str):
            if locality_domain != "any":
                raise InvalidValueError(
                    f'locality_domain must be a number or "any", not {locality_domain!r}'
                )
            domain = _gcx.GCX_LOCALITY_DOMAIN_ID_ANY
        else:
            domain = whole(locality_domain, "locality_domain", 0, _MOST - 1)
    return (
        _count_of(count),
        optional(coscheduled_sm_count, "coscheduled_sm_count"),
        optional(preferred_coscheduled_sm_count, "preferred_coscheduled_sm_count"),
        flags,
        domain,
    )


def _count_of(value: object) -> int:
    if value is None:
        return _gcx.GCX_REST
    return sms_of(value, "a group's count", "None asks for what the others leave")


def requests_of(wanted: Counts) -> Sequence[int | _Row]:
    """Returns the requests for C of what a split accepts."""
    if isinstance(wanted, SplitOptions):
        return wanted._requests
    counts = wanted if isinstance(wanted, (list, tuple)) else items_of(wanted)
    if counts is None:
        if wanted is None or hasattr(wanted, "__index__"):
            return [_count_of(wanted)]
        raise TypeError(
            "a split takes counts like [24, None] or gcx.SplitOptions, "
            f"not {type(wanted).__name__}: {wanted!r}"
        )
    if not counts:
        raise InvalidValueError("the list of counts is empty; a split has at least one group")
    for count in counts:
        if type(count) is not int or not 0 < count < _MOST:
            return [_count_of(count) for count in counts]
    return counts  # The usual case, kept fast: a split takes microseconds.


def split_flags(
    family: Family | None, exact: bool, exclude_leased: bool, exclude_shared: bool
) -> int:
    """Returns the flags of a split for C."""
    if family is None and exact is False and exclude_leased is False and exclude_shared is False:
        return 0
    flags = 0 if family is None else chosen(family, "family", _FAMILY_FLAGS)
    if flag_of(exact, "exact"):
        flags |= _gcx.GCX_SPLIT_EXACT
    if flag_of(exclude_leased, "exclude_leased"):
        flags |= _gcx.GCX_SPLIT_EXCLUDE_LEASED
    if flag_of(exclude_shared, "exclude_shared"):
        flags |= _gcx.GCX_SPLIT_EXCLUDE_SHARED
    return flags


def count_or_rest(sm_count: int) -> int | None:
    """Returns a count from C: None for the rest."""
    return None if sm_count == _gcx.GCX_REST else sm_count

"""What people ask for, checked and turned into the numbers of the C API."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any, Union

from gcx import _gcx
from gcx._errors import InvalidValueError

#: How many SMs a group is to have; None: what the other groups leave.
Count = Union[int, None]

_MOST = 0xFFFFFFFF
# These can be iterated, but the order or the items are not what was meant.
NO_LISTS = (str, bytes, bytearray, dict, set, frozenset)

FAMILIES = {
    "coscheduled": _gcx.GCX_SM_FAMILY_COSCHEDULED,
    "fine": _gcx.GCX_SM_FAMILY_FINE,
    "max-cluster": _gcx.GCX_SM_FAMILY_MAX_CLUSTER,
    "structured": _gcx.GCX_SM_FAMILY_STRUCTURED,
}
FAMILY_NAMES = {number: name for name, number in FAMILIES.items()}
FAMILY_FLAGS = {
    "coscheduled": _gcx.GCX_SPLIT_DEFAULT,
    "fine": _gcx.GCX_SPLIT_IGNORE_SM_COSCHEDULING,
    "max-cluster": _gcx.GCX_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE,
}


def whole(value: object, what: str, least: int = 0, most: int = _MOST) -> int:
    """The value as an int within limits; TypeError for what isn't a whole number, bool included,
    InvalidValueError (a ValueError) for what is too small or large."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{what} must be an int, not {type(value).__name__}: {value!r}")
    number = index(value)
    if number < least:
        raise InvalidValueError(f"{what} must be at least {least}, not {number}")
    if number > most:
        raise InvalidValueError(f"{what} must be at most {most}, not {number}")
    return number


def count_of(value: object) -> int:
    """A group's SM count for C, where 0 is what None is here."""
    if value is None:
        return 0
    if value == 0 and not isinstance(value, (bool, float, str)):
        raise InvalidValueError(
            "a group's count must be at least 1, not 0; None asks for what the others leave"
        )
    return whole(value, "a group's count", 1)


def flag_of(value: object, what: str) -> bool:
    """The value as a bool; TypeError for anything else."""
    if not isinstance(value, bool):
        raise TypeError(f"{what} must be True or False, not {type(value).__name__}: {value!r}")
    return value


def family_flag(family: object) -> int:
    """The flag of a split that chooses the family."""
    if family is None:
        return _gcx.GCX_SPLIT_DEFAULT
    if not isinstance(family, str):
        raise TypeError(f"family must be a string or None, not {type(family).__name__}")
    try:
        return FAMILY_FLAGS[family]
    except KeyError:
        raise InvalidValueError(
            f"family must be one of {', '.join(map(repr, FAMILY_FLAGS))}, not {family!r}"
        ) from None


def _is_list(value: object) -> bool:
    return isinstance(value, (list, tuple)) or (
        isinstance(value, Sequence) and not isinstance(value, (str, bytes, bytearray))
    )


class SplitOptions:
    """What the groups of a split are to be.

    Each field is a scalar, which counts for every group, or a sequence with one value for each
    group; sequences must agree in length. With scalars alone it is one group.

    Args:
        count: SMs of a group. None takes what the other groups leave; several share it. Counts
            alone work on every driver and are rounded up to what the device can give.
        coscheduled_sm_count: SMs that are guaranteed to run a cluster together. Drivers of CUDA
            13.1 and newer, as the fields below; CUDA's own rules hold then, which round nothing.
        preferred_coscheduled_sm_count: The same, where possible.
        backfill: Allow SMs that can't be coscheduled, to reach the count.
        locality_domain: The number of the locality domain the SMs are to come from, or "any".
            Drivers of CUDA 13.4 and newer.

    Raises:
        TypeError: A value of another type; bool isn't a number here.
        InvalidValueError: An empty sequence, sequences of different lengths, a count of 0, a
            negative or huge number.
    """

    __slots__ = (
        "_requests",
        "backfill",
        "coscheduled_sm_count",
        "count",
        "locality_domain",
        "preferred_coscheduled_sm_count",
    )

    def __init__(
        self,
        count: Count | Sequence[Count] = None,
        coscheduled_sm_count: Count | Sequence[Count] = None,
        preferred_coscheduled_sm_count: Count | Sequence[Count] = None,
        backfill: bool | Sequence[bool] = False,
        locality_domain: int | str | Sequence[int | str | None] | None = None,
    ) -> None:
        self.count = count
        self.coscheduled_sm_count = coscheduled_sm_count
        self.preferred_coscheduled_sm_count = preferred_coscheduled_sm_count
        self.backfill = backfill
        self.locality_domain = locality_domain
        self._requests = self._resolve()

    def __repr__(self) -> str:
        fields = [
            f"{name}={getattr(self, name)!r}"
            for name, default in (
                ("count", ...),
                ("coscheduled_sm_count", None),
                ("preferred_coscheduled_sm_count", None),
                ("backfill", False),
                ("locality_domain", None),
            )
            if getattr(self, name) is not default
        ]
        return f"gcx.SplitOptions({', '.join(fields)})"

    def _resolve(self) -> tuple[tuple[int, int, int, int, int], ...]:
        names = [name for name in self.__slots__ if name != "_requests"]
        columns: dict[str, Any] = {name: getattr(self, name) for name in names}
        lengths = {name: len(value) for name, value in columns.items() if _is_list(value)}
        for name, length in lengths.items():
            if length == 0:
                raise InvalidValueError(f"{name} is empty; a split has at least one group")
        if len(set(lengths.values())) > 1:
            found = ", ".join(f"{name} has {length}" for name, length in sorted(lengths.items()))
            raise InvalidValueError(f"the sequences must agree in length: {found}")
        groups = next(iter(lengths.values()), 1)
        rows = {
            name: list(value) if name in lengths else [value] * groups
            for name, value in columns.items()
        }
        return tuple(
            self._row(**{name: values[i] for name, values in rows.items()}) for i in range(groups)
        )

    @staticmethod
    def _row(
        count: object,
        coscheduled_sm_count: object,
        preferred_coscheduled_sm_count: object,
        backfill: object,
        locality_domain: object,
    ) -> tuple[int, int, int, int, int]:
        def optional(value: object, what: str) -> int:
            return 0 if value is None else whole(value, what, 1)

        flags = _gcx.GCX_SM_REQUEST_BACKFILL if flag_of(backfill, "backfill") else 0
        domain = 0
        if locality_domain is not None:
            flags |= _gcx.GCX_SM_REQUEST_LOCALITY_DOMAIN_ID
            if isinstance(locality_domain, str):
                if locality_domain != "any":
                    raise InvalidValueError(
                        f"locality_domain must be a number, 'any' or None, not {locality_domain!r}"
                    )
                domain = _gcx.GCX_LOCALITY_DOMAIN_ID_ANY
            else:
                domain = whole(locality_domain, "locality_domain", 0, _MOST - 1)
        return (
            count_of(count),
            optional(coscheduled_sm_count, "coscheduled_sm_count"),
            optional(preferred_coscheduled_sm_count, "preferred_coscheduled_sm_count"),
            flags,
            domain,
        )


def requests_of(
    wanted: SplitOptions | Count | Sequence[Count],
) -> Sequence[int | tuple[int, int, int, int, int]]:
    """The requests for C of whatever a split takes."""
    if isinstance(wanted, (list, tuple)):
        if not wanted:
            raise InvalidValueError("the list of counts is empty; a split has at least one group")
        for count in wanted:
            if type(count) is not int or not 0 < count <= _MOST:
                return [count_of(count) for count in wanted]
        return wanted  # Nearly always: a split takes microseconds, which checks should not double.
    if isinstance(wanted, SplitOptions):
        return wanted._requests
    if wanted is None or hasattr(wanted, "__index__"):
        return [count_of(wanted)]
    if hasattr(wanted, "__iter__") and not isinstance(wanted, NO_LISTS):
        return requests_of(list(wanted))
    raise TypeError(
        "a split takes counts like [24, None] or gcx.SplitOptions, "
        f"not {type(wanted).__name__}: {wanted!r}"
    )

"""The functions of sgl_kernel.spatial, with which SGLang multiplexes prefill and decode, on gcx.

    -from sgl_kernel import spatial
    +from gcx.compat import sglang as spatial

Arguments, results and exceptions are those of all its versions, with these differences:

- Counts that the device can give exactly aren't rounded: 76 and 56 stay so on an H100. Two floors
  may be any counts.
- Streams end with their torch objects. Repeated counts make no new green contexts.
- It needs a driver of CUDA 12.4 or newer, and no extension of sgl_kernel.
"""

from __future__ import annotations

from contextlib import suppress
from functools import reduce
from operator import or_
from typing import Any

import gcx
from gcx._checks import whole
from gcx._errors import in_python
from gcx.compat._common import device_of, driver_counts, torch_stream

__all__ = [
    "create_asymmetric_overlapped_greenctx_stream_by_value",
    "create_greenctx_stream_by_value",
    "create_overlapped_greenctx_stream_by_value",
    "get_sm_available",
]

_INT64 = 0x7FFFFFFFFFFFFFFF
_Overlapped = tuple[Any, Any, tuple[int, int, int, int, int]]


def create_greenctx_stream_by_value(
    SM_a: int, SM_b: int, device_id: int | None = None
) -> tuple[Any, Any]:
    """Returns two torch streams on disjoint parts of a device.

    Args:
        SM_a: SMs of the first (prefill in SGLang), rounded up to what the device can give.
        SM_b: SMs of the second (decode), likewise. If both don't fit rounded, it gets what the
            first leaves: 66 and 66 of an H100's 132 are 68 and 64. If the first leaves nothing, the
            second is rounded up and the first gets the rest: 130 and 2 are 124 and 8.
        device_id: The device's ordinal; None: PyTorch's current device.

    Raises:
        RuntimeError: "SM counts must be positive"; "Not enough SMs available for the requested
            configuration"; or a gcx.Error, if the driver refused.
    """
    first, second = _count(SM_a, "SM_a"), _count(SM_b, "SM_b")
    if first <= 0 or second <= 0:
        raise RuntimeError(f"SM counts must be positive, not {first} and {second}")
    sms = device_of(device_id).resources.sm
    not_enough = (
        f"Not enough SMs available for the requested configuration: {first} + {second} of "
        f"{sms.sm_count}"
    )
    if first + second > sms.sm_count:
        raise RuntimeError(not_enough)
    try:
        groups = _split_in_two(sms, first, second)
    except gcx.ResourceConfigurationError as error:
        raise RuntimeError(f"{not_enough}. {in_python(error.message)}") from error
    return torch_stream(groups[0]), torch_stream(groups[1])


def create_overlapped_greenctx_stream_by_value(
    reserved_sm: int, device_id: int | None = None
) -> _Overlapped:
    """Returns two torch streams with that many exclusive SMs each, which share all others. The
    second (decode) has priority -1.

    Args:
        reserved_sm: SMs of each, rounded up to what the device can give.
        device_id: The device's ordinal; None: PyTorch's current device.

    Returns:
        The streams, and the SM counts of prefill, decode, prefill exclusively, decode exclusively,
        and shared.

    Raises:
        RuntimeError: "The lane reservations must be positive and leave shared SMs"; "CUDA could not
            create two equal protected SM partitions"; "The requested SM reservations leave no
            shared partition"; or a gcx.Error, if the driver refused.
    """
    return _overlapped(reserved_sm, reserved_sm, device_id)


def create_asymmetric_overlapped_greenctx_stream_by_value(
    prefill_reserved_sm: int, decode_reserved_sm: int, device_id: int | None = None
) -> _Overlapped:
    """create_overlapped_greenctx_stream_by_value with two different counts, which need no common
    divisor here."""
    return _overlapped(prefill_reserved_sm, decode_reserved_sm, device_id)


def get_sm_available(device_id: int | None = None) -> int:
    """Returns how many SMs a device has.

    Args:
        device_id: The device's ordinal, or a torch.device; None: PyTorch's current device.

    Raises:
        AssertionError: "Invalid device id".
    """
    try:
        return device_of(device_id).sm_count
    except gcx.InvalidDeviceError as error:
        raise AssertionError(f"Invalid device id: {in_python(error.message)}") from error


def _count(value: object, what: str) -> int:
    return whole(value, what, -_INT64 - 1, _INT64)


def _split_in_two(sms: gcx.SMResource, first: int, second: int) -> tuple[gcx.SMResource, ...]:
    choices: tuple[list[int | None], ...] = (
        [*driver_counts(sms, [first, second])],
        [first, None],
        [None, second],
    )
    for counts in choices[:-1]:
        with suppress(gcx.ResourceConfigurationError):
            return sms.split(counts).groups
    return sms.split(choices[-1]).groups


def _overlapped(prefill_sm: object, decode_sm: object, device_id: int | None) -> _Overlapped:
    prefill, decode = _count(prefill_sm, "prefill's SMs"), _count(decode_sm, "decode's SMs")
    sms = device_of(device_id).resources.sm
    if prefill <= 0 or decode <= 0 or prefill + decode >= sms.sm_count:
        raise RuntimeError(
            "The lane reservations must be positive and leave shared SMs: "
            f"{prefill} + {decode} of {sms.sm_count}"
        )
    (for_prefill, for_decode), shared = _split_with_rest(sms, [prefill, decode])
    try:
        return _make_streams(for_prefill, for_decode, shared)
    except gcx.ResourceConfigurationError:  # Of drivers from CUDA 13.1 on.
        return _make_streams(*_from_both_ends(sms, prefill, decode))


def _make_streams(
    for_prefill: gcx.SMResource, for_decode: gcx.SMResource, shared: gcx.SMResource
) -> _Overlapped:
    all_of_prefill, all_of_decode = for_prefill | shared, for_decode | shared
    counts = (
        all_of_prefill.sm_count,
        all_of_decode.sm_count,
        for_prefill.sm_count,
        for_decode.sm_count,
        shared.sm_count,
    )
    return torch_stream(all_of_prefill), torch_stream(all_of_decode, priority=-1), counts


def _split_with_rest(sms: gcx.SMResource, counts: list[int]) -> gcx.Split:
    """Splits by these counts so that a remainder is left: rounded as the driver rounds, or else
    with as few SMs beyond the counts as possible."""
    where = f"{counts[0]} + {counts[1]} of {sms.sm_count} SMs"
    try:
        for asked in (driver_counts(sms, counts), counts):
            split = sms.split(asked)
            if split.remainder:
                return split
    except gcx.ResourceConfigurationError as error:
        equal = "equal " if counts[0] == counts[1] else ""
        raise RuntimeError(
            f"CUDA could not create two {equal}protected SM partitions: {where}. "
            f"{in_python(error.message)}"
        ) from error
    raise RuntimeError(_nothing_shared(where))


def _from_both_ends(
    sms: gcx.SMResource, prefill: int, decode: int
) -> tuple[gcx.SMResource, gcx.SMResource, gcx.SMResource]:
    """Returns the SMs of prefill, of decode, and the shared ones, for drivers from CUDA 13.1 on.
    Those combine a device's remainder atom, its last, only with the atoms right before it. So one
    side gets the first atoms, the side that fits better the last, and the middle is shared."""
    choices: list[tuple[gcx.SMResource, gcx.SMResource, gcx.SMResource]] = []
    for swapped in (False, True):
        atoms = list(sms.atoms)
        first = _taken(atoms, 0, decode if swapped else prefill)
        last = _taken(atoms, -1, prefill if swapped else decode)
        if atoms and first and last:
            one, other = (last, first) if swapped else (first, last)
            choices.append((reduce(or_, one), reduce(or_, other), reduce(or_, atoms)))
    if not choices:
        raise RuntimeError(_nothing_shared(f"{prefill} + {decode} of {sms.sm_count} SMs"))
    return max(choices, key=lambda choice: choice[2].sm_count)


def _taken(atoms: list[gcx.SMResource], end: int, count: int) -> list[gcx.SMResource]:
    """Removes atoms with at least count SMs from one end; returns none if there are too few."""
    taken: list[gcx.SMResource] = []
    while atoms and sum(atom.sm_count for atom in taken) < count:
        taken.append(atoms.pop(end))
    return taken if sum(atom.sm_count for atom in taken) >= count else []


def _nothing_shared(where: str) -> str:
    return f"The requested SM reservations leave no shared partition: {where}"

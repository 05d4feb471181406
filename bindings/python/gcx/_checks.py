"""Checks and conversions of arguments: numbers, flags, devices, lists."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import index
from typing import Any, Protocol, SupportsIndex, TypeVar, Union

from gcx._errors import InvalidDeviceError, InvalidValueError

_Meaning = TypeVar("_Meaning")
_MOST = 0xFFFFFFFF
_MOST_SMS = _MOST - 1  # GCX_REST is no count.
_MOST_DEVICES = 0x7FFFFFFF
# These can be iterated, but their order or items are not what the caller meant.
_NO_LISTS = (str, bytes, bytearray, dict, set, frozenset)


class _TorchDevice(Protocol):
    """A torch.device."""

    @property
    def type(self) -> str: ...
    @property
    def index(self) -> int | None: ...


class _CoreDevice(Protocol):
    """A Device of cuda.core."""

    @property
    def device_id(self) -> int: ...


#: What names a device: an ordinal, a gcx.Device, a torch.device with a number, a Device of
#: cuda.core.
DeviceLike = Union[SupportsIndex, _TorchDevice, _CoreDevice]


def whole(value: object, what: str, least: int = 0, most: int = _MOST) -> int:
    """Returns the value as an int. Raises TypeError if it is no integer or a bool, and
    InvalidValueError (a ValueError) if it is out of range."""
    number = _number(value)
    if number is None:
        raise TypeError(f"{what} must be an int, not {type(value).__name__}: {value!r}")
    if number < least:
        raise InvalidValueError(f"{what} must be at least {least}, not {number}")
    if number > most:
        raise InvalidValueError(f"{what} must be at most {most}, not {number}")
    return number


def sms_of(value: object, what: str, none: str) -> int:
    """Returns a count of SMs for C. none tells what to write instead of 0."""
    number = _number(value)
    if number is not None and number < 1:
        raise InvalidValueError(f"{what} must be at least 1, not {number}; {none}")
    return whole(value, what, 1, _MOST_SMS)


def _number(value: Any) -> int | None:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        return None
    try:
        return index(value)
    except TypeError:  # An array of several numbers, or of no integers.
        return None


def flag_of(value: object, what: str) -> bool:
    """Returns the value if it is a bool, else raises TypeError."""
    if not isinstance(value, bool):
        raise TypeError(f"{what} must be True or False, not {type(value).__name__}: {value!r}")
    return value


def text_of(value: object, what: str, most: int) -> str:
    """Returns the value if it is text of at most that many bytes of UTF-8."""
    if not isinstance(value, str):
        raise TypeError(f"{what} must be a string, not {type(value).__name__}: {value!r}")
    if "\0" in value:
        raise InvalidValueError(f"{what} must have no null character: {value!r}")
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise InvalidValueError(f"{what} must be text that UTF-8 can hold: {value!r}") from None
    if size > most:
        raise InvalidValueError(f"{what} must be at most {most} bytes of UTF-8, not {size}")
    return value


def chosen(value: object, what: str, choices: Mapping[str, _Meaning]) -> _Meaning:
    """Returns what one of several names stands for."""
    if not isinstance(value, str):
        raise TypeError(f"{what} must be a string, not {type(value).__name__}: {value!r}")
    if value not in choices:
        raise InvalidValueError(
            f"{what} must be one of {', '.join(map(repr, choices))}, not {value!r}"
        )
    return choices[value]


def items_of(value: object) -> list[Any] | None:
    """Returns the items of a sequence or array; None for a scalar or a zero-dimensional array."""
    if isinstance(value, _NO_LISTS) or not isinstance(value, Iterable):
        return None
    try:
        return list(value)
    except TypeError:
        if hasattr(value, "__index__"):
            return None
        raise


def ordinal_of(device: object) -> int:
    """Returns the ordinal of whatever names a device."""
    if type(device) is int and 0 <= device <= _MOST_DEVICES:
        return device
    named = device
    kind = getattr(device, "type", None)
    if isinstance(kind, str):
        if kind != "cuda":
            raise InvalidDeviceError(f"{device!r} is no CUDA device")
        named = getattr(device, "index", None)
        if named is None:
            raise InvalidDeviceError(f"{device!r} has no index; name one, as in 'cuda:0'")
    elif not hasattr(device, "__index__"):
        named = getattr(device, "device_id", device)
    number = _number(named)
    if number is None:
        raise TypeError(
            "a device is an int, a gcx.Device or a torch.device, "
            f"not {type(device).__name__}: {device!r}"
        )
    if not 0 <= number <= _MOST_DEVICES:
        raise InvalidDeviceError(f"there is no device {number}; the first is 0")
    return number

"""The base of all exceptions, and the Python names in messages."""

from __future__ import annotations

import re
from collections.abc import Callable

from gcx import _gcx
from gcx.generated.names import NAMES

# Calls that messages suggest, with their C arguments.
_MAP_SMS = re.compile(r"gcx_device_map_sms\((\d+), \d+\), the ([\w-]+) family")
_SHARED_SMS = re.compile(r"gcx_device_find_shared_sms\((\d+)\)")
_SPAWN = 'start processes by multiprocessing\'s method "spawn"'


def in_python(text: str) -> str:
    """Returns a message of the C library with Python's names."""
    text = _MAP_SMS.sub(r'gcx.Device(\1).map_sms("\2")', text)
    text = _SHARED_SMS.sub(r"gcx.Device(\1).shared_sms()", text)
    text = re.sub(r"\b(gcx|GCX)_\w+", lambda found: NAMES.get(found[0], found[0]), text)
    return text.replace("start it with exec", _SPAWN).replace("params->", "")


class Error(RuntimeError):
    """The base of all exceptions of gcx. A RuntimeError, as those of PyTorch and CuPy are.

    Attributes:
        code: The result's number: a CUresult's, as 915, or gcx's own from 10000 on.
        name: Its name: "GCX_ERROR_INVALID_RESOURCE_CONFIGURATION".
        message: What is wrong and what to do, with C's names; str() has Python's.
    """

    code: int = 999
    name: str = "GCX_ERROR_UNKNOWN"

    def __init__(self, message: str = "", code: int | None = None, name: str | None = None) -> None:
        super().__init__(message, code, name)
        self.message = message
        if code is not None:
            self.code = code
            self.name = name if name is not None else _gcx.gcx_result_name(code)

    def __str__(self) -> str:
        if not self.message:
            return f"{self.name} ({self.code}): {_gcx.gcx_result_string(self.code)}"
        return f"{in_python(self.message)} [{self.name}, {self.code}]"


def described(kind: str, describe: Callable[[], str]) -> str:
    """Returns a repr that never fails, even after a fork or a reset of the device."""
    try:
        return f"<gcx.{kind}{describe()}>"
    except Error as error:
        return f"<gcx.{kind}: {error.name}>"

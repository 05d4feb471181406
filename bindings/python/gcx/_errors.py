"""The exceptions: one class for each kind of error, all of them gcx.Error."""

from __future__ import annotations

from gcx import _gcx
from gcx._error import Error, described, in_python
from gcx.generated.errors import *  # noqa: F403
from gcx.generated.errors import CLASSES
from gcx.generated.errors import __all__ as _kinds

__all__ = ["Error", "described", "in_python", "make_error"]
__all__ += _kinds


def make_error(code: int, name: str, message: str) -> Error:
    """The exception for a result that isn't success."""
    return CLASSES.get(code, Error)(message, code, name)


_gcx.set_error_factory(make_error)

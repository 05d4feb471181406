"""The exceptions: a subclass of gcx.Error for each kind of error."""

from __future__ import annotations

from gcx import _gcx
from gcx._error import Error, described, in_python
from gcx.generated.errors import *  # noqa: F403
from gcx.generated.errors import CLASSES
from gcx.generated.errors import __all__ as _kinds

__all__ = ["Error", "described", "in_python", "make_error"]
__all__ += _kinds


def make_error(code: int, name: str, message: str) -> Error:
    """Returns the exception for a result other than success."""
    return CLASSES.get(code, Error)(message, code, name)


_gcx.set_error_factory(make_error)

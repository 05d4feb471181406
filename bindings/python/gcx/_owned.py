"""The base of objects that own a handle: closed by close, by `with`, or when collected."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn, TypeVar

from gcx import _gcx
from gcx._errors import Error, InvalidHandleError, described

if TYPE_CHECKING:
    from gcx._gcx import Owner
else:
    Owner = _gcx.make_owner_type()

__all__ = ["Closing", "Owned", "Owner", "closed"]

_Self = TypeVar("_Self", bound="Owned")


class Closing:
    """Closed at the end of a `with`."""

    __slots__ = ()

    def close(self) -> None:
        raise NotImplementedError

    def __exit__(self, *error: object) -> None:
        self.close()


class Owned(Closing, Owner):
    """Owns a handle, and can't be used after it is closed.

    C code stores and releases the handle, so that a signal handler that raises, as Ctrl-C's does,
    can't lose it. A function of _gcx that creates a handle takes the object as its last argument
    and returns it.
    """

    __slots__ = ("__weakref__",)

    def _live(self) -> int:
        """Returns the handle, or raises InvalidHandleError."""
        return self._handle or self._raise_closed()

    def _raise_closed(self) -> NoReturn:
        raise closed(type(self).__name__)

    def _native(self, ask: Callable[[int], int], check: Callable[[int], object]) -> int:
        """Returns a native handle; raises the error of the check if it is NULL."""
        handle = self._live()
        native = ask(handle)
        if native == 0:
            check(handle)
            raise Error(_gcx.gcx_last_error_message())
        return native

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return not self._handle

    def close(self) -> None:
        """Releases it. Submitted work finishes. Closing again does nothing."""
        self._release()

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"a gcx.{type(self).__name__} can't be pickled: it belongs to this process")

    def __enter__(self: _Self) -> _Self:
        self._live()
        return self

    def __repr__(self) -> str:
        kind = type(self).__name__
        return f"<gcx.{kind}, closed>" if self.closed else described(kind, self._describe)

    def _describe(self) -> str:
        return f" {self._handle:#x}"


def closed(kind: str) -> InvalidHandleError:
    return InvalidHandleError(f"this gcx.{kind} is closed; make a new one")

"""Every function and constant of gcx.h, under its own name: the layer below the rest of gcx.

Each function has the header's documentation: help(gcx.raw.gcx_sm_split). In its terms:

- A resource is 128 bytes. An array is a sequence.
- A handle is an int, and so is a native one, such as a CUstream; 0 is NULL.
- A function that creates a handle takes a Handle as its last argument and returns it. The Handle
  destroys it when it is collected, or by destroy().
- A struct of parameters is its fields, one argument each. A struct that is filled in is returned as
  a tuple of its fields. Both are in the header's order, without struct_size.
- A string is a str, or None for NULL; paths may be bytes or an os.PathLike.
- Results other than success raise gcx.Error.

>>> whole = gcx.raw.gcx_device_get_resource(0, gcx.raw.GCX_RESOURCE_SM)
>>> (part,), rest = gcx.raw.gcx_sm_split(whole, [16], gcx.raw.GCX_SPLIT_DEFAULT)
>>> context = gcx.raw.gcx_context_create([part], 0, gcx.raw.Handle())
>>> gcx.raw.gcx_context_native(context.value)

gcx_log_set_callback is missing: messages go to the logger "gcx".
"""

from __future__ import annotations

from gcx import _gcx
from gcx._gcx import *  # noqa: F403
from gcx._owned import Owner as _Owner

__all__ = ["Handle"]
__all__ += [name for name in dir(_gcx) if name.startswith(("gcx_", "GCX_"))]


class Handle(_Owner):
    """Owns a handle that a function creates."""

    __slots__ = ()

    @property
    def value(self) -> int:
        """The handle; 0 if there is none."""
        return self._handle

    def destroy(self) -> None:
        """Destroys the handle's object. Does nothing if there is none."""
        self._release()

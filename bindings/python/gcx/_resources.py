"""What a device, a context or a stream has of each type of resource."""

from __future__ import annotations

from collections.abc import Callable

from gcx import _gcx
from gcx._resource import SMResource, WorkqueueResource, sm_resource, workqueue_resource


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
            NotSupportedError: A stream that others made in a green context of their own, on a
                driver before 13.1; its sm_count is known nevertheless.
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

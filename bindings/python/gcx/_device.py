"""Devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gcx import _gcx
from gcx._checks import DeviceLike, chosen, ordinal_of
from gcx._errors import InvalidDeviceError
from gcx._request import FAMILIES, Family
from gcx._resource import Resources
from gcx.generated.records import DeviceFields


class Device(DeviceFields):
    """A GPU. Unpickling gives the device with the same UUID, whose ordinal may differ.

    Args:
        ordinal: CUDA's ordinal, after CUDA_VISIBLE_DEVICES; or a torch.device or other device.

    Raises:
        InvalidDeviceError: There is no such device.
        DriverNotFoundError: There is no driver library.
        NotSupportedError: The driver is older than CUDA 12.4.
    """

    __slots__ = ("_ordinal", "_read")

    def __init__(self, ordinal: DeviceLike = 0) -> None:
        self._ordinal = ordinal_of(ordinal)
        self._read = _gcx.gcx_device_get_info(self._ordinal)

    def _info(self) -> tuple[Any, ...]:
        return self._read

    @property
    def ordinal(self) -> int:
        """CUDA's ordinal of the device."""
        return self._ordinal

    @property
    def compute_capability(self) -> tuple[int, int]:
        """Major and minor: (9, 0) for an H100."""
        return self._read[0], self._read[1]

    @property
    def stream_priority_range(self) -> tuple[int, int]:
        """The lowest and the highest priority of streams: (0, -5) on an H100."""
        return _gcx.gcx_device_get_stream_priority_range(self._ordinal)

    @property
    def resources(self) -> Resources:
        """`.sm` are all its SMs, `.workqueue` is the default configuration."""
        ordinal = self._ordinal
        return Resources(
            f"device {ordinal}", lambda kind: _gcx.gcx_device_get_resource(ordinal, kind)
        )

    def map_sms(self, family: Family = "coscheduled") -> None:
        """Finds out which SMs each atom of a family has, for SMResource.sm_ids and for overlaps
        between families. Makes a few temporary contexts (1 to 3 ms each, waits for running kernels,
        loses 4 MiB of device memory); later calls for the family do nothing."""
        _gcx.gcx_device_map_sms(self._ordinal, chosen(family, "family", FAMILIES))

    def shared_sms(self) -> tuple[int, ...]:
        """Returns the SMs that all partitions of this process share: two on compute capability 9.x
        once a module with dynamic parallelism is loaded. Kernels of every partition also run there.

        If no probe has shown any yet, makes and probes two contexts, which are cached. Found SMs
        stay known. Modules load lazily: if none are found, call it again after the first launch of
        a kernel of the module.

        Raises:
            NotSupportedError: Compute capability 9.x under MPS, where SM numbers are virtual.
        """
        return _gcx.gcx_device_find_shared_sms(self._ordinal)

    def __reduce__(self) -> tuple[Callable[[str], Device], tuple[str]]:
        return _device_with, (self.uuid,)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Device):
            return NotImplemented
        return self._ordinal == other._ordinal

    def __hash__(self) -> int:
        return hash((Device, self._ordinal))

    def __index__(self) -> int:
        return self._ordinal

    def __repr__(self) -> str:
        return f"<gcx.Device {self._ordinal}: {self.name}, {self.sm_count} SMs>"


def devices() -> list[Device]:
    """Returns all devices of the driver, in its order.

    Raises:
        NoDeviceError, DriverNotFoundError, NotSupportedError: As opening the driver.
    """
    return [Device(ordinal) for ordinal in range(_gcx.gcx_device_get_count())]


def _device_with(uuid: str) -> Device:
    found = devices()
    for device in found:
        if device.uuid == uuid:
            return device
    there = ", ".join(f"{device.uuid} ({device.name})" for device in found)
    raise InvalidDeviceError(
        f"unpickling a gcx.Device: this process has no device {uuid}; it has {there}. Check "
        "CUDA_VISIBLE_DEVICES and GCX_DRIVER"
    )

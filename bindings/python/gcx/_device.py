"""Devices."""

from __future__ import annotations

from collections.abc import Callable

from gcx import _gcx
from gcx._checks import DeviceLike, chosen, ordinal_of
from gcx._errors import InvalidDeviceError
from gcx._request import FAMILIES, Family
from gcx._resources import Resources


class Device:
    """A GPU. Pickled, it is the device with the same UUID in the process that unpickles it, whose
    ordinal may be another.

    Args:
        ordinal: CUDA's number of it, after CUDA_VISIBLE_DEVICES; or what else names a device, as a
            torch.device.

    Raises:
        InvalidDeviceError: There is no such device.
        DriverNotFoundError: There is no driver library.
        NotSupportedError: The driver is older than CUDA 12.4.
    """

    __slots__ = ("_info", "_ordinal")

    def __init__(self, ordinal: DeviceLike = 0) -> None:
        self._ordinal = ordinal_of(ordinal)
        self._info = _gcx.gcx_device_get_info(self._ordinal)

    @property
    def ordinal(self) -> int:
        """CUDA's number of the device."""
        return self._ordinal

    @property
    def name(self) -> str:
        """As the driver reports it; begins with "SIMULATED" on the simulated driver."""
        return self._info[6]

    @property
    def compute_capability(self) -> tuple[int, int]:
        """Major and minor: (9, 0) for an H100."""
        return self._info[0], self._info[1]

    @property
    def sm_count(self) -> int:
        """How many SMs the device has."""
        return self._info[2]

    @property
    def locality_domain_count(self) -> int:
        """How many locality domains the device has; 1 where the driver doesn't tell."""
        return self._info[5]

    @property
    def stream_priority_range(self) -> tuple[int, int]:
        """The least and the greatest priority of streams; lower is more urgent: (0, -5) on an
        H100."""
        return _gcx.gcx_device_get_stream_priority_range(self._ordinal)

    @property
    def uuid(self) -> str:
        """As nvidia-smi prints it: "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"."""
        return uuid_text(self._info[7])

    @property
    def resources(self) -> Resources:
        """The whole device's: `.sm` all SMs, `.workqueue` the default configuration."""
        ordinal = self._ordinal
        return Resources(
            f"device {ordinal}", lambda kind: _gcx.gcx_device_get_resource(ordinal, kind)
        )

    def map_sms(self, family: Family = "coscheduled") -> None:
        """Finds out which SMs each atom of a family holds, for SMResource.sm_ids and for overlaps
        between families. Makes a few contexts for a moment, each at the cost of a first one (1 to
        3 ms, waits for running kernels, 4 MiB of device memory); once a process and family."""
        _gcx.gcx_device_map_sms(self._ordinal, chosen(family, "family", FAMILIES))

    def shared_sms(self) -> tuple[int, ...]:
        """Finds the SMs that all partitions of this process share: on compute capability 9.x two,
        as soon as a module with dynamic parallelism is loaded. Kernels of every partition
        also run there.

        Returns what streams' sm_ids or gcx.verify have shown; if that is nothing, makes and probes
        two contexts, each at the cost of a first one, and keeps them. Found SMs stay known.
        Modules load lazily: while none are found, call it again after a kernel of the module was
        launched.

        Raises:
            NotSupportedError: Compute capability 9.x under MPS, where the numbers are virtual.
        """
        return _gcx.gcx_device_get_shared_sms(self._ordinal)

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
    """All devices of the driver, in its order.

    Raises:
        NoDeviceError, DriverNotFoundError, NotSupportedError: As opening the driver.
    """
    return [Device(ordinal) for ordinal in range(_gcx.gcx_device_get_count())]


def _device_with(uuid: str) -> Device:
    """The device of this process that has the UUID."""
    found = devices()
    for device in found:
        if device.uuid == uuid:
            return device
    there = ", ".join(f"{device.uuid} ({device.name})" for device in found)
    raise InvalidDeviceError(
        f"unpickling a gcx.Device: this process has no device {uuid}; it has {there}. Check "
        "CUDA_VISIBLE_DEVICES and GCX_DRIVER"
    )


def uuid_text(value: bytes) -> str:
    """A device's UUID as nvidia-smi prints it."""
    digits = value.hex()
    return "GPU-" + "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))

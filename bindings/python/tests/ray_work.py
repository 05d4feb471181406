"""Actors and tasks for test_ray.py, in a module that Ray's workers can import."""

from __future__ import annotations

import os
from typing import Any

import gcx
import gcx.ray
import ray


def seen(reservation: gcx.Reservation) -> dict[str, Any]:
    """Describes a reservation, with the number of SMs that a kernel ran on."""
    with reservation.acquire(None) as part:
        ran_on = len(part.stream.sm_ids())
    return {
        "pid": os.getpid(),
        "name": reservation.name,
        "atoms": reservation.atoms,
        "sm_count": reservation.sm_count,
        "ran_on": ran_on,
        "uuid": reservation.device_uuid,
        "id": reservation.id,
    }


@ray.remote(max_restarts=1)
class Reserving:
    """Reserves what Ray counts for it, and doesn't keep the object."""

    def __init__(self, timeout: float | None = 60) -> None:
        self.seen = seen(gcx.ray.reserve(timeout=timeout))

    def tell(self) -> dict[str, Any]:
        return self.seen


@ray.remote(num_cpus=0)
class KnowsNothing:
    """A program that isn't written for gcx, and would use all of device 0."""

    def sm_count(self) -> int:
        return gcx.Device(0).sm_count

    def reserve(self) -> dict[str, Any] | str:
        """Returns the description of a reservation, or the error."""
        try:
            return seen(gcx.ray.reserve(timeout=0))
        except gcx.Error as error:
            return f"{type(error).__name__}: {error}"


@ray.remote(num_cpus=0)  # type: ignore[misc]
def reserve_in_a_task(timeout: float = 60) -> dict[str, Any]:
    with gcx.ray.reserve(timeout=timeout) as reservation:
        return seen(reservation)

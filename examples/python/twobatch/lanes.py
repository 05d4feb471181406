"""The streams of compute and communication: partitions of gcx."""

from __future__ import annotations

from contextlib import suppress

import gcx

from twobatch.arms import Arm


class Splits:
    """The partitions of the arms, each pair from one split, so that they share no SM. Cached."""

    def __init__(self, device: int) -> None:
        self.device = device
        self._made: dict[int, gcx.Partitions] = {}

    def parts(self, arm: Arm) -> tuple[gcx.Partition, gcx.Partition]:
        """Returns the partitions of communication and compute.

        Raises:
            gcx.Error: The device has no such split; nothing was made.
        """
        made = self._made.get(arm.sms)
        if made is None:
            # exact: a rounded count would belong to another arm.
            made = self._made[arm.sms] = gcx.split(
                [arm.sms, None],
                device=self.device,
                family="fine" if arm.fine else "coscheduled",
                exact=True,
            )
        return made[0], made[1]

    def close(self) -> None:
        for parts in self._made.values():
            with suppress(gcx.Error):  # After a device error closing fails too.
                parts.close()
        self._made.clear()

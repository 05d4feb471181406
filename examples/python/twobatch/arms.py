"""The ways ("arms") to run two batches, by name.

compute, exchange: one lane only, a bound for all others. sequence: all in one stream. plain: a
stream for each lane. priority: the same, communication with the highest priority. split-N: N SMs
for communication, the rest for compute. Suffixes: -target sets the compute partition's SM count in
libraries at each launch, -told before they were set up, -ctasN limits NCCL to N blocks, -copies
moves data by copy engines, which need no SMs.
"""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass, replace

ALONE = ("compute", "exchange")
_KINDS = (*ALONE, "sequence", "plain", "priority", "split")
_NAME = re.compile(
    r"(?P<kind>[a-z]+)(-(?P<sms>[1-9]\d{0,3}))?(?P<target>-target)?(?P<told>-told)?"
    r"(-ctas(?P<ctas>[1-9]\d?))?(?P<copies>-copies)?"
)
# Coscheduled partitions have multiples of 8 SMs. Other counts need the fine family, in which
# clusters have at most 2 blocks.
_EIGHT = 8


@dataclass(frozen=True)
class Arm:
    """A way to run two batches.

    Attributes:
        kind: One of the words above.
        sms: SMs for communication, in a split.
        target: Set the SM count of compute in libraries at each launch.
        told: It was set before the libraries were set up.
        ctas: NCCL's limit of blocks; 0: its default.
        copies: Move data by copy engines, not by NCCL's kernels.
    """

    kind: str
    sms: int = 0
    target: bool = False
    told: bool = False
    ctas: int = 0
    copies: bool = False

    @property
    def name(self) -> str:
        return (
            self.kind
            + (f"-{self.sms}" if self.sms else "")
            + ("-target" if self.target else "")
            + ("-told" if self.told else "")
            + (f"-ctas{self.ctas}" if self.ctas else "")
            + ("-copies" if self.copies else "")
        )

    @property
    def is_split(self) -> bool:
        return self.kind == "split"

    @property
    def overlaps(self) -> bool:
        """Whether batches run concurrently."""
        return self.kind in ("plain", "priority", "split")

    @property
    def fine(self) -> bool:
        return self.is_split and self.sms % _EIGHT != 0

    def other(self) -> Arm:
        """Returns the same arm with `target` flipped."""
        return replace(self, target=not self.target, told=False)


def arm_of(name: str) -> Arm:
    """
    Raises:
        ValueError: There is none of this name.
    """
    found = _NAME.fullmatch(name)
    if found is None or found["kind"] not in _KINDS:
        raise ValueError(f"{name!r} is none of {', '.join(_KINDS[:-1])}, split-SMS")
    arm = Arm(
        kind=found["kind"],
        sms=int(found["sms"] or 0),
        target=found["target"] is not None,
        told=found["told"] is not None,
        ctas=int(found["ctas"] or 0),
        copies=found["copies"] is not None,
    )
    if arm.is_split != bool(arm.sms):
        raise ValueError(f"{name!r}: only splits have SMs for communication, as split-8")
    if (arm.target or arm.told) and not arm.is_split:
        raise ValueError(f"{name!r}: without a split there is nothing to tell libraries")
    if arm.target and arm.told:
        raise ValueError(f"{name!r}: libraries that were told need no target")
    if arm.copies and arm.ctas:
        raise ValueError(f"{name!r}: copy engines have no blocks to limit")
    if arm.copies and (arm.is_split or arm.kind == "priority"):
        raise ValueError(f"{name!r}: copy engines need no SMs: plain, sequence or exchange")
    if arm.kind == "compute" and (arm.ctas or arm.copies):
        raise ValueError(f"{name!r}: nothing is communicated there")
    return arm


def known_arm(text: str) -> Arm:
    """For argparse."""
    try:
        return arm_of(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


# The sweep adds splits.
ARMS = tuple(
    arm_of(name)
    for name in (
        *("compute", "exchange", "exchange-copies", "sequence", "sequence-copies"),
        *("plain", "plain-ctas8", "plain-copies", "priority", "priority-ctas8"),
    )
)


def candidates(sms: list[int]) -> list[Arm]:
    """Returns the splits of the sweep, each without and with the target."""
    return [
        Arm("split", sms=count, target=target)
        for count in dict.fromkeys(sms)
        for target in (False, True)
    ]

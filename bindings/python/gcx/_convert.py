"""Conversions of what C writes."""

from __future__ import annotations

import sys

from gcx import _gcx

_MPS = {_gcx.GCX_MPS_OFF: False, _gcx.GCX_MPS_ON: True, _gcx.GCX_MPS_UNKNOWN: None}


def atoms_in(words: bytes) -> tuple[int, ...]:
    """Returns the numbers of the bits that are set in words of 64 bits."""
    found = []
    for word in range(0, len(words), 8):
        bits = int.from_bytes(words[word : word + 8], sys.byteorder)
        found += [word * 8 + bit for bit in range(64) if bits >> bit & 1]
    return tuple(found)


def mps_of(state: int) -> bool | None:
    """Returns a gcx_mps_state as a bool; None: the driver doesn't tell."""
    return _MPS[state]


def uuid_text(value: bytes) -> str:
    """Returns a device's UUID as nvidia-smi prints it."""
    digits = value.hex()
    return "GPU-" + "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def version_of(number: int) -> tuple[int, int]:
    """Returns 13000 as (13, 0)."""
    return number // 1000, number % 1000 // 10

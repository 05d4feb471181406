"""Structured splits, by the text of cuda.h of CUDA 13.5 about cuDevSmResourceSplit; not measured.

The driver chooses the SMs of a group. So the model has only counts, and only for requests whose
counts don't depend on that choice: of one coscheduled size, with a last group with backfill that
takes all other SMs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tests.vectors.gpus import Gpu
from tests.vectors.planner import REST

BACKFILL = 1
DOMAIN_ID = 2
SUPPLEMENTAL = 4
ANY_DOMAIN = 0xFFFFFFFF


class Request(NamedTuple):
    """The fields of gcx_sm_request."""

    sm_count: int
    coscheduled: int = 0
    preferred: int = 0
    flags: int = 0
    domain: int = 0

    @property
    def is_plain(self) -> bool:
        return self[1:] == (0, 0, 0, 0)


def needs(requests: Sequence[Request]) -> int:
    """Returns the driver version that supports the requests."""
    in_domains = any(request.flags & (DOMAIN_ID | SUPPLEMENTAL) for request in requests)
    return 1304 if in_domains else 1301


def breaks_a_rule(device: Gpu, requests: Sequence[Request]) -> bool:
    """Whether a group is malformed: an odd or too large coscheduled count, or an unknown flag.
    docs/reference/simulated-driver.md assumes INVALID_VALUE."""
    maximum = 32 if device.has_clusters else 2
    return any(
        request.coscheduled % 2 or request.coscheduled > maximum or request.flags > 7
        for request in requests
    )


def counts(device: Gpu, requests: Sequence[Request]) -> list[int] | None:
    """Returns the SMs of each group, or None if a count is too large or not a multiple of 2 and of
    the coscheduled count."""
    default = 8 if device.has_clusters else 2
    used: dict[int, int] = {}  # by locality domain; -1: all
    given: list[int] = []
    for request in requests:
        size = request.coscheduled or default
        domain = request.domain if request.flags & DOMAIN_ID else -1
        gpcs = list(device.gpcs)
        maximum = device.sm_count
        if domain not in (-1, ANY_DOMAIN):
            # Each of two dies has half of the GPCs. Without the supplemental flag a domain has only
            # its guaranteed SMs.
            half = len(gpcs) // device.domain_count
            gpcs = gpcs[domain * half : (domain + 1) * half]
            maximum = device.domain_sm_count
        room = device.sm_count
        if not request.flags & BACKFILL:
            room = min(sum(len(gpc) // size for gpc in gpcs) * size, maximum // size * size)
        room -= used.get(domain, 0)
        count = room if request.sm_count == REST else request.sm_count
        whole = count % 2 == 0 and (count % size == 0 or request.flags & BACKFILL)
        if count > room or count == 0 or not whole:
            return None
        given.append(count)
        used[domain] = used.get(domain, 0) + count
    return given

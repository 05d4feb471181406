"""SM partitioning for NVIDIA GPUs.

gcx divides the streaming multiprocessors (SMs) of a GPU into partitions and creates streams whose
kernels run only on one partition's SMs:

>>> import gcx, torch
>>> decode, prefill = gcx.split([24, None])
>>> with torch.cuda.stream(decode.stream.torch()):
...     step()

A lease gives one part of the program exclusive use of some SMs, and can be resized while work runs:

>>> decode, prefill = gcx.acquire(32, name="decode"), gcx.acquire(None, name="prefill")
>>> gcx.resize({decode: 64, prefill: None})

A graph that was captured once runs on the SMs of any stream:

>>> step = gcx.Graph(captured)
>>> step.launch(decode.stream)

CUDA's own steps are available too: Device(0).resources.sm, its split(), a Context of a resource, a
context's stream(). Every error is a gcx.Error; diagnostics go to the logger "gcx". The environment
variable GCX_DRIVER=sim:h100@13.0 selects the simulated driver, which `pip install gcx[sim]`
installs. See docs/reference/python.md.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import TYPE_CHECKING, Any

if "t" in getattr(sys, "abiflags", ""):
    raise ImportError(
        "gcx: this is a free-threaded build of Python, which gcx does not support; use a standard "
        f"build of Python {sys.version_info[0]}.{sys.version_info[1]}, one with the GIL"
    )

from gcx import _gcx, _log, raw  # noqa: F401 - logs from the first call on
from gcx._cache import cache_stats, live_contexts, prewarm, set_cache_limit, trim_cache
from gcx._cancel import Cancel
from gcx._checks import DeviceLike
from gcx._command import info
from gcx._context import Context, current_context
from gcx._current import current
from gcx._device import Device, devices
from gcx._driver import DriverInfo, driver_info, open_driver, report_partition_counts
from gcx._errors import Error
from gcx._event import Event
from gcx._external import EventLike, GraphLike, KernelLike, StreamLike
from gcx._graph import Graph, GraphNode
from gcx._lease import (
    PARKED,
    Lease,
    Size,
    acquire,
    acquire_async,
    layout,
    leases,
    prepare,
    resize,
)
from gcx._order import Waitable
from gcx._partition import Partition, Partitions, split
from gcx._publish import publish, published_leases, published_processes, stop_publishing
from gcx._queue import queue_info, request_connections
from gcx._request import Count, Counts, Family, SplitOptions
from gcx._reservation import Reservation, join_reservation, reservations, reserve
from gcx._resource import Plan, Resources, Scope, SMResource, Split, WorkqueueResource
from gcx._stream import Stream
from gcx._verify import Verification, VerifiedGroup, verify
from gcx.generated import errors as _exceptions
from gcx.generated import records as _records
from gcx.generated.errors import *  # noqa: F403
from gcx.generated.records import *  # noqa: F403

if TYPE_CHECKING:
    from gcx.tune import Choice, Tuning, tune

__all__ = [
    "PARKED",
    "Cancel",
    "Choice",
    "Context",
    "Count",
    "Counts",
    "Device",
    "DeviceLike",
    "DriverInfo",
    "Error",
    "Event",
    "EventLike",
    "Family",
    "Graph",
    "GraphLike",
    "GraphNode",
    "KernelLike",
    "Lease",
    "Partition",
    "Partitions",
    "Plan",
    "Reservation",
    "Resources",
    "SMResource",
    "Scope",
    "Size",
    "Split",
    "SplitOptions",
    "Stream",
    "StreamLike",
    "Tuning",
    "Verification",
    "VerifiedGroup",
    "Waitable",
    "WorkqueueResource",
    "acquire",
    "acquire_async",
    "cache_stats",
    "current",
    "current_context",
    "devices",
    "driver_info",
    "info",
    "join_reservation",
    "layout",
    "leases",
    "live_contexts",
    "open_driver",
    "prepare",
    "prewarm",
    "publish",
    "published_leases",
    "published_processes",
    "queue_info",
    "raw",
    "report_partition_counts",
    "request_connections",
    "reservations",
    "reserve",
    "resize",
    "set_cache_limit",
    "split",
    "stop_publishing",
    "trim_cache",
    "tune",
    "verify",
]
__all__ += _exceptions.__all__
__all__ += _records.__all__

# The library and the command look there for the simulated driver.
if not os.environ.get("GCX_SIM_LIBRARY"):
    try:
        import gcx_sim
    except ImportError:
        pass  # gcx[sim] is not installed
    else:
        os.environ["GCX_SIM_LIBRARY"] = gcx_sim.LIBRARY

_number = _gcx.gcx_version()
__version__ = f"{_number // 10000}.{_number // 100 % 100}.{_number % 100}{_gcx.VERSION_SUFFIX}"

# Users find these names here, not in the modules that define them.
for _name in __all__:
    if getattr(globals().get(_name), "__module__", "").startswith("gcx."):
        globals()[_name].__module__ = "gcx"


def __getattr__(name: str) -> Any:
    """Loads gcx.tune at its first use: what it imports would make `import gcx` take longer."""
    if name not in ("Choice", "Tuning", "tune"):
        raise AttributeError(f"module 'gcx' has no attribute {name!r}")
    module = importlib.import_module("gcx.tune")
    return module if name == "tune" else getattr(module, name)

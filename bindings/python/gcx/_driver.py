"""The driver, the cache of contexts, and the command."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from gcx import _gcx
from gcx._errors import Error
from gcx._request import whole

_FOLDER = __file__.rpartition("/")[0]
#: What open_driver was given, for the command in a process of its own.
_opened: str | None = None


class DriverInfo(NamedTuple):
    """The driver that was opened.

    Attributes:
        version: (13, 0) is CUDA 13.0.
        header_version: Of the cuda.h that gcx was built with.
        simulated: Whether no GPU is involved.
        library: What was opened.
        capabilities: By name, whether the driver has it.
    """

    version: tuple[int, int]
    header_version: tuple[int, int]
    simulated: bool
    library: str
    capabilities: dict[str, bool]


class CacheStats(NamedTuple):
    """Counters of green contexts, since the driver was opened.

    Attributes:
        limit: How many are kept without context or stream, see set_cache_limit.
        in_use: Those with a context or stream.
        kept: Those without.
        hits: Contexts given from kept ones or from ones in use.
        misses: Green contexts made.
        evicted: Destroyed by the limit.
        lost: Dead by a reset of the device.
    """

    limit: int
    in_use: int
    kept: int
    hits: int
    misses: int
    evicted: int
    lost: int


def open_driver(spec: str | os.PathLike[str] | None = None) -> None:
    """Chooses the driver and opens it, before anything else does. Calling it is optional.

    Args:
        spec: None for the environment's GCX_DRIVER or else libcuda.so.1; "sim:h100@13.0" for the
            simulated driver; otherwise a path or name of a library.

    Raises:
        DriverAlreadyOpenError: Another driver is open already.
        DriverNotFoundError: There is none, or it can't be loaded.
        NotSupportedError: It is older than CUDA 12.4.
        NoDeviceError: It has no device.
    """
    global _opened
    if spec is not None and not isinstance(spec, (str, os.PathLike)):
        raise TypeError(f"a driver is named by a string or None, not {type(spec).__name__}")
    name = None if spec is None else os.fspath(spec)
    _gcx.gcx_driver_open(name)
    _opened = name


def _version(number: int) -> tuple[int, int]:
    return number // 1000, number % 1000 // 10


def driver_info() -> DriverInfo:
    """What driver is open, and what it can do; opens it if none is."""
    version, header_version, simulated, library = _gcx.gcx_driver_get_info()
    capabilities = {}
    for number in range(_gcx.GCX_CAPABILITY_COUNT):
        available, _, name = _gcx.gcx_capability_get_info(number)
        capabilities[name] = bool(available)
    return DriverInfo(
        _version(version), _version(header_version), bool(simulated), library, capabilities
    )


def cache_stats() -> CacheStats:
    """What is kept, and how often that helped."""
    return CacheStats(*_gcx.gcx_cache_get_stats())


def set_cache_limit(kept_contexts: int) -> None:
    """How many green contexts without context or stream are kept, over all devices; 64 at first.

    Each holds about 5 MiB of device memory. Those beyond are destroyed, the longest unused first.
    """
    _gcx.gcx_cache_set_limit(whole(kept_contexts, "kept_contexts"))


def command() -> str:
    """The program that `python -m gcx` runs."""
    return f"{_FOLDER}/bin/gcx"


def info() -> dict[str, Any]:
    """What `gcx info --json` says of driver, devices, families and environment.

    The command runs in a process of its own, with the driver that is open here.

    Raises:
        Error: What the command says of the driver.
    """
    import json
    import subprocess

    arguments = [command(), "info", "--json"]
    if _opened:
        arguments += ["--driver", _opened]
    else:
        _gcx.gcx_driver_get_info()  # Its exception says more than an exit status.
    done = subprocess.run(
        arguments, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise Error(f"gcx info: {done.stderr.strip() or done.stdout.strip()}")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer

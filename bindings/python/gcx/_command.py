"""The command gcx, which comes with the package."""

from __future__ import annotations

import os
import sys
from typing import Any, NoReturn

from gcx import _gcx
from gcx._errors import Error

_PROGRAM = f"{__file__.rpartition('/')[0]}/bin/gcx"


def main() -> NoReturn:
    """What `gcx` and `python -m gcx` run."""
    os.execv(_PROGRAM, [_PROGRAM, *sys.argv[1:]])


def info() -> dict[str, Any]:
    """What `gcx info --json` says of driver, devices, families and environment.

    The command runs in a process of its own, with the driver that is open here; opens it if none
    is.

    Raises:
        Error: What the command says of the driver.
    """
    import json
    import subprocess

    _, _, simulated, library = _gcx.gcx_driver_get_info()
    driver, environment = library, dict(os.environ)
    if simulated:
        driver = f"sim:{_simulated(library)}"
        environment["GCX_SIM_LIBRARY"] = library
    done = subprocess.run(
        [_PROGRAM, "info", "--json", "--driver", driver],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise Error(f"gcx info: {done.stderr.strip() or done.stdout.strip()}")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def _simulated(library: str) -> str:
    """What the simulated driver that is open simulates; it tells by a function of its own."""
    import ctypes

    specification = ctypes.CDLL(library).gcx_sim_spec
    specification.restype = ctypes.c_char_p
    return os.fsdecode(specification())

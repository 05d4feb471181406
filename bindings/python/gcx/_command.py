"""The command gcx, which the package contains."""

from __future__ import annotations

import os
import sys
from typing import Any, NoReturn

from gcx import _gcx
from gcx._errors import Error

_PROGRAM = f"{__file__.rpartition('/')[0]}/bin/gcx"


def main() -> NoReturn:
    """Runs the command: the entry point of `gcx` and `python -m gcx`."""
    os.execv(_PROGRAM, [_PROGRAM, *sys.argv[1:]])


def info() -> dict[str, Any]:
    """Returns what `gcx info --json` prints: driver, devices, families and environment.

    Runs the command as a child process on the driver that is open here; opens it if none is.

    Raises:
        Error: The command failed.
    """
    import json
    import subprocess

    _, _, simulated, library, _ = _gcx.gcx_driver_get_info()
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
    """Returns the specification of the open simulated driver, which a function of it returns."""
    import ctypes

    specification = ctypes.CDLL(library).gcx_sim_spec
    specification.restype = ctypes.c_char_p
    return os.fsdecode(specification())

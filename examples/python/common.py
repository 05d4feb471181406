"""What the examples share: the checks at their start, ends without a traceback, and a table."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

_INSTALL = {"cupy": "cupy-cuda13x (or cupy-cuda12x, as the driver is)"}


def end(message: str, status: int = 2) -> NoReturn:
    """Ends the program with a line on standard error: 2 if it can't run so, 1 if it went wrong."""
    print(f"{Path(sys.argv[0]).name}: {message}", file=sys.stderr)
    raise SystemExit(status)


try:
    import gcx
except ImportError as error:
    end(f"needs the package gcx ({error}): pip install . in gcx's repository")


def start(*, computes: bool = True) -> gcx.Device:
    """Says which GPU and driver it is. What computes ends here if there is no GPU to do it."""
    driver = gcx.driver_info()
    device = gcx.Device(0)
    if driver.simulated:
        print("SIMULATED: no GPU is involved")
    version = ".".join(map(str, driver.version))
    print(f"device 0: {device.name}, {device.sm_count} SMs, driver of CUDA {version}", flush=True)
    if computes and driver.simulated:
        end(
            "needs a GPU: the simulated driver, which GCX_DRIVER asks for, computes nothing. "
            "Unset GCX_DRIVER where there is an NVIDIA GPU; split.py runs without one"
        )
    return device


def library(name: str) -> Any:
    """Imports what not everybody has installed."""
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        end(f"needs {name} ({error}): pip install {_INSTALL.get(name, name)}")
    if name == "torch" and not module.cuda.is_available():
        end("needs a PyTorch that can use the GPU; torch.cuda.is_available() is False here")
    return module


def positive(text: str) -> int:
    """For argparse: a whole number from 1 on."""
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"must be a whole number from 1 on, not {text!r}")
    return int(text)


def new_file(text: str) -> Path:
    """For argparse: a file that can be written there. To learn that after minutes is too late."""
    path = Path(text)
    if path.is_dir() or not path.parent.is_dir():
        raise argparse.ArgumentTypeError(f"{text!r}: there is no folder for such a file")
    return path


def check(holds: bool, message: str) -> None:
    """Ends the program loudly where a result is wrong: figures of such a run mean nothing."""
    if not holds:
        end(f"FAILED: {message}", status=1)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Prints columns: the first to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(head, *rows)]
    for row in (head, *rows):
        cells = [row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]
        print("  " + "  ".join(cells).rstrip())


def run(main: Callable[[], None]) -> None:
    """Runs an example. What gcx refuses is said in gcx's own words, which name what would work."""
    try:
        main()
    except gcx.Error as error:
        end(str(error))
    except KeyboardInterrupt:
        end("interrupted", status=130)

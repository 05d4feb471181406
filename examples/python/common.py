"""Shared by the examples: checks at the start, errors without a traceback, and a table."""

from __future__ import annotations

import argparse
import importlib
import io
import math
import random
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

_INSTALL = {"cupy": "cupy-cuda13x (or cupy-cuda12x, by the driver)"}


def end(message: str, status: int = 2) -> NoReturn:
    """Ends the program with a line on standard error. Status 2: it can't run; 1: it failed."""
    print(f"{Path(sys.argv[0]).name}: {message}", file=sys.stderr)
    raise SystemExit(status)


try:
    import gcx
except ImportError as error:
    end(f"needs the package gcx ({error}): pip install . in gcx's repository")


def start(*, computes: bool = True) -> gcx.Device:
    """Prints the GPU and driver. Ends a program that computes if there is no GPU."""
    driver = gcx.driver_info()
    device = gcx.Device(0)
    if driver.simulated:
        print("SIMULATED: no GPU is involved")
    version = ".".join(map(str, driver.version))
    print(f"device 0: {device.name}, {device.sm_count} SMs, driver of CUDA {version}", flush=True)
    if computes and driver.simulated:
        end(
            "needs a GPU: the simulated driver, which GCX_DRIVER selects, computes nothing; unset "
            "GCX_DRIVER on a machine with an NVIDIA GPU, or run split.py, which needs none"
        )
    return device


def library(name: str) -> Any:
    """Imports an optional library."""
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


def check(condition: bool, message: str) -> None:
    """Ends the program if a result is wrong, since its measurements mean nothing then."""
    if not condition:
        end(f"FAILED: {message}", status=1)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Prints columns: the first aligned left, the others right."""
    widths = [max(map(len, column)) for column in zip(head, *rows)]
    for row in (head, *rows):
        cells = [row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]
        print("  " + "  ".join(cells).rstrip())


def percentile(times: Sequence[float], share: float) -> float:
    ordered = sorted(times)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def poisson(rate: float, seconds: float) -> list[float]:
    """Returns arrivals in milliseconds: a Poisson process conditioned on its count, the same each
    time. At least one."""
    chance = random.Random(f"{rate} 1")
    count = max(1, round(rate * seconds))
    return sorted(chance.uniform(0, seconds * 1e3) for _ in range(count))


def run(main: Callable[[], None]) -> None:
    """Runs an example. Prints errors of gcx, which say what to do, without a traceback."""
    try:
        main()
    except gcx.Error as error:
        end(str(error))
    except KeyboardInterrupt:
        end("interrupted", status=130)


DARK = """\
<style>
@media (prefers-color-scheme: dark) {
  [style*="fill: #ffffff"] { fill: #16181c !important; }
  [style*="stroke: #000000"] { stroke: #9aa4ae !important; }
  text:not([style*="fill: #"]) { fill: #d5dbe1; }
}
</style>
"""


def write_plot(figure: Any, path: str | Path) -> None:
    """Writes a figure as SVG that follows the viewer's light or dark preference."""
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None})
    Path(path).write_text(text.getvalue().replace("<defs>", DARK + "<defs>", 1), encoding="utf-8")
    print(f"wrote {path}")

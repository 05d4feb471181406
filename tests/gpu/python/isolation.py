"""What breaks isolation, in calls of PyTorch and CuPy: measures the latency of a small kernel in a
partition while another thread calls them on the other partition, without partitions, and alone.

    python3 tests/gpu/python/isolation.py LIBRARY [--quick] [--only WORD]

LIBRARY is libgcx-gpu-critical.so of a build, which launches and times the small kernel without the
GIL. Each cell has its own process. The lines are those of gcx-gpu-isolation; tests/gpu/isolation.sh
combines both into one table.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import math
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import gcx
from isolation_rows import DONE, ROWS, Body, Missing, Row, Side

COSTS, BREAKS = 2, 10  # Times the 99th percentile alone.
MOST = 200_000  # Launches.


class Times:
    """Measures latencies in us by the library until it is stopped."""

    def __init__(self, library: Any) -> None:
        self.library = library
        self.stop = ctypes.c_int(0)
        self.values = (ctypes.c_double * MOST)()
        self.count = 0

    def measure(self, stream: gcx.Stream, least: int) -> None:
        self.count = self.library.gcx_critical_measure(
            ctypes.c_void_p(stream.native), self.values, least, MOST, ctypes.byref(self.stop)
        )

    def figures(self) -> list[float]:
        """p50, p99, max."""
        ordered = sorted(self.values[: max(self.count, 0)])
        if not ordered:
            return [0.0, 0.0, 0.0]
        return [ordered[math.ceil(share * len(ordered)) - 1] for share in (0.5, 0.99, 1.0)]


def run_cell(row: Row, own: bool, library: str, launches: int) -> dict[str, Any]:
    """One cell, in this process."""
    loaded = ctypes.CDLL(library)
    loaded.gcx_critical_load()
    if own:
        small, rest = gcx.split([24, None])
        streams = small.stream, rest.stream
    else:
        context = gcx.Context(gcx.Device(0).resources.sm)
        streams = context.stream(), context.stream()
    alone = Times(loaded)
    alone.stop.value = 1  # Stops after the minimum.
    alone.measure(streams[0], 20)
    alone.measure(streams[0], launches)
    next_to, calls, failure = Times(loaded), 0, None
    body: Body | None = None
    ready = threading.Event()
    missing = ""

    def neighbour() -> None:
        nonlocal body, calls, failure, missing
        try:
            body = row.prepare(Side(streams[1]))
        except Missing as error:
            missing = str(error)
            return
        finally:
            ready.set()
        until = time.monotonic() + 15
        least = time.monotonic() + 2
        while calls < 5 or time.monotonic() < min(least, until):
            try:
                ended = body() is DONE
            except Exception as error:  # A failure can be the result.
                failure = f"{type(error).__name__}: {error}".splitlines()[0]
                ended = True
            calls += 1
            if ended or time.monotonic() > until:
                break
        next_to.stop.value = 1

    thread = threading.Thread(target=neighbour)
    thread.start()
    ready.wait()
    if not missing:
        next_to.measure(streams[0], 1)
    thread.join()
    return {
        "alone": alone.figures(),
        "next_to": next_to.figures(),
        "launches": max(next_to.count, 0),
        "calls": calls,
        "error": min(next_to.count, 0),
        "failure": failure,
        "missing": missing,
    }


def cell_apart(row: Row, own: bool, arguments: argparse.Namespace) -> dict[str, Any] | None:
    """Measures in a child process; returns None if that failed."""
    words = [sys.executable, __file__, arguments.library, "--cell", row.name]
    words += ["--own"] * own + ["--quick"] * arguments.quick
    environment = {**os.environ, "CUDA_DEVICE_MAX_CONNECTIONS": "32", **row.environment}
    read, write = os.pipe()  # Standard output belongs to kernels that print.
    try:
        done = subprocess.run(
            [*words, "--result", str(write)],
            env=environment,
            pass_fds=[write],
            timeout=180,
            stdout=subprocess.DEVNULL,
            check=False,
        )
    except subprocess.TimeoutExpired:
        os.close(write)
        os.close(read)
        return None
    os.close(write)
    with os.fdopen(read) as file:
        text = file.read()
    return json.loads(text) if done.returncode == 0 and text else None


def seen(cell: dict[str, Any]) -> str:
    """Returns the class of the result."""
    if cell["error"] != 0 or cell["failure"]:
        return "breaks"
    alone, next_to = cell["alone"][1], cell["next_to"][1]
    times = next_to / alone if alone > 0 else 0.0
    return "holds" if times < COSTS else "costs" if times < BREAKS else "breaks"


def show(row: Row, own: dict[str, Any] | None, plain: dict[str, Any] | None) -> bool:
    """Prints the line of a row; returns False if it failed."""
    if own is None or plain is None:
        cells, verdict, what = ["0"] * 12, "FAILED: its process ended badly", "-"
    else:
        figures = [f"{value:.1f}" for value in own["alone"] + own["next_to"] + plain["next_to"]]
        cells = [*figures, str(own["launches"]), str(own["calls"]), str(own["error"])]
        what = "-" if own["missing"] else seen(own)
        if own["missing"]:
            verdict = f"skipped: {own['missing']}"
        elif row.known not in {"-", what}:
            verdict = "FAILED: known otherwise"
        else:
            verdict = "passed" + (f"; {own['failure']}" if own["failure"] else "")
    print("\t".join([row.name, row.known, what, *cells, verdict]), flush=True)
    return not verdict.startswith("FAILED")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--cell")
    parser.add_argument("--own", action="store_true")
    parser.add_argument("--result", type=int)
    arguments = parser.parse_args()
    arguments.library = str(Path(arguments.library).resolve())
    if arguments.cell is not None:
        [row] = [row for row in ROWS if row.name == arguments.cell]
        cell = run_cell(row, arguments.own, arguments.library, 50 if arguments.quick else 1000)
        os.write(arguments.result, json.dumps(cell).encode())
        os._exit(0)  # Skips the cleanup of what the row left.
    good = True
    for row in ROWS:
        if arguments.only in row.name:
            cells = [cell_apart(row, own, arguments) for own in (True, False)]
            good = show(row, *cells) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

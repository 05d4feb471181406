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
import importlib
import json
import math
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import gcx

COSTS, BREAKS = 2, 10  # Times the 99th percentile alone.
MOST = 200_000  # Launches.
MIB = 1 << 20
DONE = object()  # Returned by a body that has nothing more to do.
Body = Callable[[], object]
Prepare = Callable[[gcx.Stream], Body]  # The stream is partition A's, or of the whole device.
EXPANDABLE = "expandable_segments:True"


class Missing(Exception):
    """This machine lacks what the row needs."""


class Row(NamedTuple):
    """What the other thread does. known: holds, costs, breaks, or - if it was never measured."""

    name: str
    prepare: Prepare
    known: str
    environment: dict[str, str]


ROWS: list[Row] = []


def row(name: str, known: str = "-", **environment: str) -> Callable[[Prepare], Prepare]:
    """Adds a row that the function prepares. Of several decorators the last one is added first."""

    def add(prepare: Prepare) -> Prepare:
        ROWS.append(Row(name, prepare, known, environment))
        return prepare

    return add


def library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise Missing(str(error)) from error


def torch_on(stream: gcx.Stream) -> Any:
    """PyTorch with the stream current in this thread."""
    torch = library("torch")
    torch.cuda.set_stream(stream.torch())
    return torch


def cupy_on(stream: gcx.Stream) -> Any:
    """CuPy with the stream current in this thread."""
    cupy = library("cupy")
    stream.cupy().use()
    return cupy


@row("Python, nothing", known="holds")
def nothing(stream: gcx.Stream) -> Body:
    """Python that sleeps: what the measurement itself costs."""
    del stream

    def body() -> None:
        time.sleep(0.001)

    return body


@row("torch, the same, expandable segments", PYTORCH_CUDA_ALLOC_CONF=EXPANDABLE)
@row("torch, the allocator grows and shrinks")
def torch_grows(stream: gcx.Stream) -> Body:
    torch = torch_on(stream)
    kept: list[Any] = []

    def body() -> None:
        kept.append(torch.empty(256 * MIB, dtype=torch.uint8, device="cuda"))
        if len(kept) == 16:
            kept.clear()
            torch.cuda.empty_cache()

    return body


@row("torch, the allocator reuses")
def torch_reuses(stream: gcx.Stream) -> Body:
    torch = torch_on(stream)

    def body() -> None:
        torch.empty(64 * MIB, dtype=torch.uint8, device="cuda")

    return body


@row("torch, pinned memory grows")
def torch_pinned(stream: gcx.Stream) -> Body:
    torch = torch_on(stream)
    kept: list[Any] = []

    def body() -> object:
        kept.append(torch.empty(32 * MIB, dtype=torch.uint8, pin_memory=True))
        return DONE if len(kept) == 40 else None

    return body


@row("torch, sum().item()")
def torch_item(stream: gcx.Stream) -> Body:
    """A copy from the device, and waiting for it."""
    torch = torch_on(stream)
    x = torch.ones(MIB, device="cuda")

    def body() -> None:
        x.sum().item()

    return body


@row("torch, products of 4096^3")
def torch_matmul(stream: gcx.Stream) -> Body:
    """Products with an existing cuBLAS handle and plans."""
    torch = torch_on(stream)
    x = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
    torch.mm(x, x)

    def body() -> None:
        torch.mm(x, x)
        stream.synchronize()

    return body


def torch_capture(mode: str) -> Prepare:
    """Graphs captured in a mode of PyTorch's; "global" is its default."""

    def prepare(stream: gcx.Stream) -> Body:
        torch = torch_on(stream)
        x = torch.zeros(MIB, device="cuda")
        capturing = stream.torch()

        def body() -> None:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, stream=capturing, capture_error_mode=mode):
                for _ in range(50):
                    x.add_(1)
            graph.replay()
            stream.synchronize()

        return body

    return prepare


row("torch, graphs captured, global mode")(torch_capture("global"))
row("torch, graphs captured, thread_local")(torch_capture("thread_local"))


@row("torch, its profiler")
def torch_profiler(stream: gcx.Stream) -> Body:
    """PyTorch's profiler, which is CUPTI's."""
    torch = torch_on(stream)
    x = torch.ones(MIB, device="cuda")

    def body() -> None:
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]):
            for _ in range(20):
                x.mul_(1)
            stream.synchronize()

    return body


@row("torch, GreenContext.create")
def torch_green_contexts(stream: gcx.Stream) -> Body:
    """PyTorch's own green contexts. Each loses 4 MiB."""
    torch = torch_on(stream)
    made = getattr(torch.cuda, "GreenContext", None)
    if made is None:
        raise Missing("this PyTorch has no GreenContext")
    left = [200]

    def body() -> object:
        made.create(num_sms=8, device_id=0)
        left[0] -= 1
        return DONE if left[0] == 0 else None

    return body


@row("cuBLAS handles made and destroyed")
def cublas_set_up(stream: gcx.Stream) -> Body:
    cupy_on(stream)
    from cupy_backends.cuda.libs import cublas

    def body() -> None:
        handle = cublas.create()
        cublas.destroy(handle)

    return body


@row("NCCL communicators made and destroyed")
def nccl_set_up(stream: gcx.Stream) -> Body:
    cupy = cupy_on(stream)
    try:
        from cupy.cuda import nccl
    except ImportError as error:
        raise Missing(str(error)) from error
    if not getattr(nccl, "available", False):
        raise Missing("this CuPy has no NCCL")
    x = cupy.ones(MIB, dtype=cupy.float32)

    def body() -> None:
        communicator = nccl.NcclCommunicator(1, nccl.get_unique_id(), 0)
        communicator.allReduce(
            x.data.ptr, x.data.ptr, x.size, nccl.NCCL_FLOAT32, nccl.NCCL_SUM, stream.native
        )
        stream.synchronize()
        communicator.destroy()

    return body


@row("CuPy, the pool grows and shrinks")
def cupy_grows(stream: gcx.Stream) -> Body:
    cupy = cupy_on(stream)
    kept: list[Any] = []

    def body() -> None:
        kept.append(cupy.empty(256 * MIB, dtype=cupy.uint8))
        if len(kept) == 16:
            kept.clear()
            cupy.get_default_memory_pool().free_all_blocks()

    return body


@row("printf")
def printf(stream: gcx.Stream) -> Body:
    cupy = cupy_on(stream)
    source = r'extern "C" __global__ void say(int n) { printf("%d\n", n); }'
    say = cupy.RawKernel(source, "say")
    sys.stdout.flush()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # The driver prints there; the result is saved.

    def body() -> None:
        say((4,), (32,), (cupy.int32(7),))
        stream.synchronize()

    return body


@row("CuPy, ever more local memory")
def local_memory(stream: gcx.Stream) -> Body:
    cupy = cupy_on(stream)
    source = "\n".join(
        f'extern "C" __global__ void k{n}(int* out, int at) {{ int room[{128 * n}]; '
        f"for (int i = 0; i < {128 * n}; i++) room[i] = i * at; *out = room[at]; }}"
        for n in range(1, 25)
    )
    module = cupy.RawModule(code=source)
    kernels = [module.get_function(f"k{n}") for n in range(1, 25)]
    out = cupy.zeros(1, dtype=cupy.int32)

    def body() -> object:
        kernels.pop(0)((1,), (1,), (out, cupy.int32(3)))
        stream.synchronize()
        return None if kernels else DONE

    return body


@row("CuPy, first launches, eager", CUDA_MODULE_LOADING="EAGER")
@row("CuPy, first launches, lazy", CUDA_MODULE_LOADING="LAZY")
def first_launches(stream: gcx.Stream) -> Body:
    """Kernels of one module, each launched for the first time."""
    cupy = cupy_on(stream)
    count = 200
    source = "\n".join(
        f'extern "C" __global__ void k{n}(int* out) {{ *out = {n}; }}' for n in range(count)
    )
    module = cupy.RawModule(code=source)
    out = cupy.zeros(1, dtype=cupy.int32)
    number = [0]

    def body() -> object:
        module.get_function(f"k{number[0]}")((1,), (1,), (out,))
        stream.synchronize()
        number[0] += 1
        return DONE if number[0] == count else None

    return body


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
            body = row.prepare(streams[1])
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

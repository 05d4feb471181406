"""The rows of isolation.py: what another thread does with PyTorch and CuPy."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import gcx

MIB = 1 << 20
# Returned by a body that has nothing more to do.
DONE = object()
Body = Callable[[], object]


class Missing(Exception):
    """This machine lacks what the row needs."""


class Side(NamedTuple):
    """Where the other thread works."""

    stream: gcx.Stream  # Partition A's, or one of the whole device.


class Row(NamedTuple):
    """What the other thread does. known: holds, costs, breaks, or - if it was never measured."""

    name: str
    prepare: Callable[[Side], Body]
    known: str = "-"
    environment: Mapping[str, str] = MappingProxyType({})


def torch_on(side: Side) -> Any:
    """PyTorch with the side's stream current in this thread."""
    try:
        import torch
    except ImportError as error:
        raise Missing(str(error)) from error
    torch.cuda.set_stream(side.stream.torch())
    return torch


def cupy_on(side: Side) -> Any:
    """CuPy with the side's stream current in this thread."""
    try:
        import cupy
    except ImportError as error:
        raise Missing(str(error)) from error
    side.stream.cupy().use()
    return cupy


def torch_grows(side: Side) -> Body:
    """The allocator allocates memory and frees all of it."""
    torch = torch_on(side)
    kept: list[Any] = []

    def body() -> None:
        kept.append(torch.empty(256 * MIB, dtype=torch.uint8, device="cuda"))
        if len(kept) == 16:
            kept.clear()
            torch.cuda.empty_cache()

    return body


def torch_reuses(side: Side) -> Body:
    """The allocator reuses its memory, without calls of the driver."""
    torch = torch_on(side)

    def body() -> None:
        torch.empty(64 * MIB, dtype=torch.uint8, device="cuda")

    return body


def torch_pinned(side: Side) -> Body:
    """Pinned memory that grows."""
    torch = torch_on(side)
    kept: list[Any] = []

    def body() -> object:
        kept.append(torch.empty(32 * MIB, dtype=torch.uint8, pin_memory=True))
        return DONE if len(kept) == 40 else None

    return body


def torch_item(side: Side) -> Body:
    """A copy from the device, and waiting for it."""
    torch = torch_on(side)
    x = torch.ones(MIB, device="cuda")

    def body() -> None:
        x.sum().item()

    return body


def torch_matmul(side: Side) -> Body:
    """Products with an existing cuBLAS handle and plans."""
    torch = torch_on(side)
    x = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
    torch.mm(x, x)

    def body() -> None:
        torch.mm(x, x)
        side.stream.synchronize()

    return body


def torch_capture(mode: str) -> Callable[[Side], Body]:
    """Graphs captured in a mode of PyTorch's; "global" is its default."""

    def prepare(side: Side) -> Body:
        torch = torch_on(side)
        x = torch.zeros(MIB, device="cuda")
        stream = side.stream.torch()

        def body() -> None:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, stream=stream, capture_error_mode=mode):
                for _ in range(50):
                    x.add_(1)
            graph.replay()
            side.stream.synchronize()

        return body

    return prepare


def torch_profiler(side: Side) -> Body:
    """PyTorch's profiler, which is CUPTI's."""
    torch = torch_on(side)
    x = torch.ones(MIB, device="cuda")

    def body() -> None:
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]):
            for _ in range(20):
                x.mul_(1)
            side.stream.synchronize()

    return body


def torch_green_contexts(side: Side) -> Body:
    """PyTorch's own green contexts. Each loses 4 MiB."""
    torch = torch_on(side)
    made = getattr(torch.cuda, "GreenContext", None)
    if made is None:
        raise Missing("this PyTorch has no GreenContext")
    left = [200]

    def body() -> object:
        made.create(num_sms=8, device_id=0)
        left[0] -= 1
        return DONE if left[0] == 0 else None

    return body


def cublas_set_up(side: Side) -> Body:
    """cuBLAS handles made, used and destroyed."""
    cupy_on(side)
    from cupy_backends.cuda.libs import cublas

    def body() -> None:
        handle = cublas.create()
        cublas.destroy(handle)

    return body


def nccl_set_up(side: Side) -> Body:
    """NCCL communicators of one process."""
    cupy = cupy_on(side)
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
            x.data.ptr, x.data.ptr, x.size, nccl.NCCL_FLOAT32, nccl.NCCL_SUM, side.stream.native
        )
        side.stream.synchronize()
        communicator.destroy()

    return body


def cupy_grows(side: Side) -> Body:
    """CuPy's pool allocates memory and frees all of it."""
    cupy = cupy_on(side)
    kept: list[Any] = []

    def body() -> None:
        kept.append(cupy.empty(256 * MIB, dtype=cupy.uint8))
        if len(kept) == 16:
            kept.clear()
            cupy.get_default_memory_pool().free_all_blocks()

    return body


def printf(side: Side) -> Body:
    """Kernels that print."""
    cupy = cupy_on(side)
    source = r'extern "C" __global__ void say(int n) { if (n < 0) printf("%d\n", n); }'
    say = cupy.RawKernel(source.replace("if (n < 0) ", ""), "say")
    sys.stdout.flush()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # The driver prints there; the result is saved.

    def body() -> None:
        say((4,), (32,), (cupy.int32(7),))
        side.stream.synchronize()

    return body


def local_memory(side: Side) -> Body:
    """Each kernel needs more local memory than any before."""
    cupy = cupy_on(side)
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
        side.stream.synchronize()
        return None if kernels else DONE

    return body


def first_launches(side: Side) -> Body:
    """Kernels of one module, each launched for the first time."""
    cupy = cupy_on(side)
    count = 200
    source = "\n".join(
        f'extern "C" __global__ void k{n}(int* out) {{ *out = {n}; }}' for n in range(count)
    )
    module = cupy.RawModule(code=source)
    out = cupy.zeros(1, dtype=cupy.int32)
    number = [0]

    def body() -> object:
        module.get_function(f"k{number[0]}")((1,), (1,), (out,))
        side.stream.synchronize()
        number[0] += 1
        return DONE if number[0] == count else None

    return body


def nothing(side: Side) -> Body:
    """Python that sleeps: what the measurement itself costs."""
    del side

    def body() -> None:
        time.sleep(0.001)

    return body


EXPANDABLE = {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}
ROWS = [
    Row("Python, nothing", nothing, "holds"),
    Row("torch, the allocator grows and shrinks", torch_grows),
    Row("torch, the same, expandable segments", torch_grows, environment=EXPANDABLE),
    Row("torch, the allocator reuses", torch_reuses),
    Row("torch, pinned memory grows", torch_pinned),
    Row("torch, sum().item()", torch_item),
    Row("torch, products of 4096^3", torch_matmul),
    Row("torch, graphs captured, global mode", torch_capture("global")),
    Row("torch, graphs captured, thread_local", torch_capture("thread_local")),
    Row("torch, its profiler", torch_profiler),
    Row("torch, GreenContext.create", torch_green_contexts),
    Row("cuBLAS handles made and destroyed", cublas_set_up),
    Row("NCCL communicators made and destroyed", nccl_set_up),
    Row("CuPy, the pool grows and shrinks", cupy_grows),
    Row("printf", printf),
    Row("CuPy, ever more local memory", local_memory),
    Row("CuPy, first launches, lazy", first_launches, environment={"CUDA_MODULE_LOADING": "LAZY"}),
    Row(
        "CuPy, first launches, eager", first_launches, environment={"CUDA_MODULE_LOADING": "EAGER"}
    ),
]

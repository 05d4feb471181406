"""Graphs captured once: launched by gcx on partitions, and by PyTorch elsewhere."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import common
import gcx
import torch


class Captures:
    """Captures graphs of one lane, decode or prefill, and counts them.

    Each lane has its own stream and memory pool for captures: cuBLAS has a workspace for each
    stream, and graphs that share one must not run concurrently.
    """

    def __init__(self, priority: int = 0) -> None:
        self.stream = torch.cuda.Stream(priority=priority)
        self.pool = torch.cuda.graph_pool_handle()
        self.count = 0

    def warm_up(self, *works: Callable[[], None]) -> None:
        """Runs work directly, to load its kernels and create the workspaces."""
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            for work in works:
                work()
        self.stream.synchronize()

    def capture(self, work: Callable[[], None]) -> Graph:
        captured = torch.cuda.CUDAGraph(keep_graph=True)
        with torch.cuda.stream(self.stream):
            captured.capture_begin(pool=self.pool, capture_error_mode="thread_local")
            try:
                work()
            finally:
                captured.capture_end()
        self.count += 1
        return Graph(captured)


class Graph:
    """A captured graph."""

    def __init__(self, captured: Any) -> None:
        self._captured = captured  # Owns the memory of the graph.
        self._moved = gcx.Graph(captured)
        self._instantiated = False

    def prepare(self, lease: gcx.Lease) -> None:
        """Creates the executable for the lease's current SMs."""
        self._moved.prepare(lease)

    def launch(self, lease: gcx.Lease) -> gcx.Event:
        """Launches it on the lease's current SMs; returns an event at its end."""
        stream = lease.stream
        self._moved.launch(stream)
        return stream.record()

    def instantiate(self) -> None:
        """Prepares replay."""
        if not self._instantiated:
            self._captured.instantiate()
            self._instantiated = True

    def replay(self, stream: Any) -> Any:
        """Launches it by PyTorch in a stream without a partition; returns an event at its end."""
        with torch.cuda.stream(stream):
            self._captured.replay()
        return stream.record_event()


@contextmanager
def sm_count_target(count: int) -> Iterator[None]:
    """Sets cuBLAS's SM count target in this block; graphs captured in it keep the plan. It helps on
    decode's few SMs and harms on those of prefill."""
    library = _cublas()
    handle = ctypes.c_void_p(torch.cuda.current_blas_handle())
    _check(library.cublasSetSmCountTarget(handle, count))
    try:
        yield
    finally:
        _check(library.cublasSetSmCountTarget(handle, 0))


def _cublas() -> Any:
    """Returns the cuBLAS that PyTorch has loaded."""
    for version in (13, 12):
        with suppress(OSError):
            return ctypes.CDLL(f"libcublas.so.{version}", mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    return common.end("PyTorch's cuBLAS isn't loaded as libcublas.so.13 or .12")


def _check(status: int) -> None:
    common.check(status == 0, f"cublasSetSmCountTarget gave status {status}")

"""Graphs that are captured once: by PyTorch where there are no partitions, by gcx where there are.

This is the one place that knows gcx.Graph and cuBLAS.
"""

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
    """Captures graphs of one lane, decode's or prefill's, and counts them.

    A lane has a stream of its own to capture in, and a memory pool of its own: cuBLAS keeps a
    workspace for each stream, and two graphs that share one must never run at the same time.
    """

    def __init__(self, priority: int = 0) -> None:
        self.stream = torch.cuda.Stream(priority=priority)
        self.pool = torch.cuda.graph_pool_handle()
        self.count = 0

    def warm_up(self, *works: Callable[[], None]) -> None:
        """Runs work as it is, so that its kernels are loaded and the workspaces made."""
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
        self._captured = captured  # Holds the memory that the graph works in.
        self._moved = gcx.Graph(captured)
        self._instantiated = False

    def prepare(self, lease: gcx.Lease) -> None:
        """Makes it ready for the SMs that the lease has now, so that no launch takes long."""
        self._moved.prepare(lease)

    def launch(self, lease: gcx.Lease) -> gcx.Event:
        """Launches it on the SMs that the lease has now; the event is its end."""
        stream = lease.stream
        self._moved.launch(stream)
        return stream.record()

    def instantiate(self) -> None:
        """Makes it ready for replay."""
        if not self._instantiated:
            self._captured.instantiate()
            self._instantiated = True

    def replay(self, stream: Any) -> Any:
        """Launches it as PyTorch does, in a stream that has no partition; the event is its end."""
        with torch.cuda.stream(stream):
            self._captured.replay()
        return stream.record_event()


@contextmanager
def sm_count_target(count: int) -> Iterator[None]:
    """cuBLAS plans its products for so many SMs in this block: what is captured in it keeps that
    plan. It helps on the few SMs of decode's part, and harms on prefill's."""
    library = _cublas()
    handle = ctypes.c_void_p(torch.cuda.current_blas_handle())
    _check(library.cublasSetSmCountTarget(handle, count))
    try:
        yield
    finally:
        _check(library.cublasSetSmCountTarget(handle, 0))


def _cublas() -> Any:
    """The cuBLAS that PyTorch has loaded; another one would not know its handle."""
    for version in (13, 12):
        with suppress(OSError):
            return ctypes.CDLL(f"libcublas.so.{version}", mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    return common.end("PyTorch's cuBLAS isn't loaded as libcublas.so.13 or .12")


def _check(status: int) -> None:
    common.check(status == 0, f"cublasSetSmCountTarget gave status {status}")

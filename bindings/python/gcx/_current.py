"""Makes a partition current for PyTorch, and sets its SM count in libraries that accept one.

Each setting has a list of the calls that changed it and have not been left yet. A call that is left
restores the value before it, or passes that value on to the call after it. So everything is
restored whatever the order in which generators, tasks and threads leave.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

from gcx._checks import flag_of
from gcx._errors import InvalidContextError, NotSupportedError, make_error
from gcx._lease import Lease
from gcx._partition import Partition
from gcx._stream import Stream

_lock = threading.RLock()


class _Change:
    """One change of a setting, with the value before it."""

    def __init__(self, before: object) -> None:
        self.before = before


_Table = dict[object, list[_Change]]
_process: _Table = {}  # The changes of each setting of the process.


class _Thread(threading.local):
    def __init__(self) -> None:
        self.table: _Table = {}


_thread = _Thread()


def _change(
    entered: ExitStack,
    table: _Table,
    setting: object,
    value: object,
    get: Callable[[], Any],
    put: Callable[[Any], object],
) -> None:
    """Changes a setting until the stack is left."""

    def restore() -> None:
        with _lock:
            changes = table.get(setting, [])
            if own not in changes:
                return  # Ctrl-C interrupted the entry.
            index = changes.index(own)
            later = changes[index + 1 : index + 2]
            other_thread = table is not _process and table is not _thread.table
            if later:
                later[0].before = own.before
            elif not other_thread:
                put(own.before)
            del changes[index]
            if not changes:
                del table[setting]
        if other_thread and not later:
            raise InvalidContextError(
                "gcx.current was entered in another thread, whose PyTorch stream is unchanged; "
                "leave it in the thread that entered it"
            )

    with _lock:
        own = _Change(get())
        entered.callback(restore)  # Before the change, in case of a Ctrl-C.
        table.setdefault(setting, []).append(own)
        put(value)


def current(
    where: Partition | Lease | Stream, *, cublas: bool = False, deep_gemm: bool = False
) -> AbstractContextManager[Any]:
    """Returns a context manager that makes a partition's stream PyTorch's current one, in the
    calling thread, and restores the former stream and device at the end.

    >>> with gcx.current(decode, cublas=True):
    ...     step()

    It yields the torch stream. Inside, kernels of PyTorch, Triton and libraries that ask PyTorch
    for its stream run on the partition's SMs; on those that a lease has at the entry, so enter it
    for each step. It can be nested and left in any order, as generators do, but only in the thread
    that entered it. Don't await inside. See docs/reference/python.md for what libraries plan for.

    Args:
        where: A partition, a lease, or a gcx.Stream.
        cublas: Set the SM count target of this thread's cuBLAS handle to the partition's SMs.
            Captured graphs keep the plan. It helps on small partitions and makes large ones slower,
            so measure it. cuBLASLt, as for linear layers with a bias, ignores it.
        deep_gemm: Set DeepGEMM's SM count, if it is imported. It is one for all threads of the
            process; DeepGEMM may recompile its kernels for each count.

    Raises:
        ImportError: PyTorch isn't installed.
        NotSupportedError: cublas, and PyTorch's cuBLAS has no such target or isn't loaded.
        InvalidHandleError: The partition, lease or stream is closed.
        InvalidContextError: It was left in another thread.
    """
    if not isinstance(where, (Partition, Lease, Stream)):
        raise TypeError(
            f"current takes a gcx.Partition, Lease or Stream, not {type(where).__name__}"
        )
    return _current(where, flag_of(cublas, "cublas"), flag_of(deep_gemm, "deep_gemm"))


@contextmanager
def _current(where: Partition | Lease | Stream, cublas: bool, deep_gemm: bool) -> Iterator[Any]:
    import torch

    stream = where if isinstance(where, Stream) else where.stream
    count = stream.sm_count
    wrapper = stream.torch()
    with ExitStack() as entered:
        _make_current(torch, wrapper, stream.device, entered)
        if cublas:
            _set_cublas(torch, count, entered)
        if deep_gemm:
            _set_deep_gemm(count, entered)
        yield wrapper


def _make_current(torch: Any, wrapper: Any, device: int, entered: ExitStack) -> None:
    """Sets the thread's current device, and the current stream of that device."""
    cuda, table = torch.cuda, _thread.table

    def set_stream(stream: Any) -> None:
        # This also makes the stream's device current, which is the other setting.
        now = cuda.current_device()
        cuda.set_stream(stream)
        if now != device:
            cuda.set_device(now)

    def get_stream() -> Any:
        return cuda.current_stream(device)

    def set_device(ordinal: int) -> None:
        # PyTorch's function makes the primary context current even if the device is the same, and
        # so replaces a partition's context that the caller has pushed.
        if cuda.current_device() != ordinal:
            cuda.set_device(ordinal)

    _change(entered, table, ("stream", device), wrapper, get_stream, set_stream)
    _change(entered, table, "device", device, cuda.current_device, set_device)


def _set_cublas(torch: Any, count: int, entered: ExitStack) -> None:
    library = _cublas(torch)
    # PyTorch has a handle for each thread and device.
    handle = torch.cuda.current_blas_handle()

    def get() -> int:
        found = ctypes.c_int()
        _check("cublasGetSmCountTarget", library, ctypes.c_void_p(handle), ctypes.byref(found))
        return found.value

    def put(target: int) -> None:
        _check("cublasSetSmCountTarget", library, ctypes.c_void_p(handle), ctypes.c_int(target))

    _change(entered, _process, ("cublas", handle), count, get, put)


def _cublas(torch: Any) -> Any:
    """Returns the cuBLAS that PyTorch has loaded, without loading one."""
    major = str(torch.version.cuda or "").partition(".")[0]
    name = f"libcublas.so.{major}"
    try:
        library = ctypes.CDLL(name, mode=os.RTLD_NOW | os.RTLD_NOLOAD)
    except OSError:
        raise NotSupportedError(
            f"PyTorch of CUDA {torch.version.cuda} has not loaded {name}, so its SM count target "
            "can't be set"
        ) from None
    if not hasattr(library, "cublasSetSmCountTarget"):
        raise NotSupportedError(f"{name} is too old to have an SM count target")
    return library


def _check(name: str, library: Any, *arguments: Any) -> None:
    status = getattr(library, name)(*arguments)
    if status != 0:
        raise make_error(999, "GCX_ERROR_UNKNOWN", f"{name} of cuBLAS failed with status {status}")


def _set_deep_gemm(count: int, entered: ExitStack) -> None:
    module: Any = sys.modules.get("deep_gemm")
    if module is not None:
        get, put = module.get_num_sms, module.set_num_sms
        _change(entered, _process, "deep_gemm", count, get, put)

"""A partition made current for PyTorch, and told to the libraries that want to know its SMs.

Each thing that is set has a list of those who set it and haven't left yet. Whoever leaves puts back
what was before, or hands that on to who came after: so that whatever the order in which generators,
tasks and threads leave, in the end everything is as it was.
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


class _Set:
    """What was before somebody set a thing."""

    def __init__(self, before: object) -> None:
        self.before = before


_Table = dict[object, list[_Set]]
_everybody_s: _Table = {}  # Of the process, by what was set.


class _OfThread(threading.local):
    def __init__(self) -> None:
        self.table: _Table = {}


_thread = _OfThread()


def _put_in(
    entered: ExitStack,
    table: _Table,
    what: object,
    value: object,
    get: Callable[[], Any],
    put: Callable[[Any], object],
) -> None:
    """Sets something, until what was entered is left."""

    def take_back() -> None:
        with _lock:
            those = table.get(what, [])
            if mine not in those:
                return  # Ctrl-C came before.
            place = those.index(mine)
            above = those[place + 1 : place + 2]  # Who has set it after, and is still there.
            elsewhere = table is not _everybody_s and table is not _thread.table
            if above:
                above[0].before = mine.before
            elif not elsewhere:
                put(mine.before)
            del those[place]
            if not those:
                del table[what]
        if elsewhere and not above:
            raise InvalidContextError(
                "gcx.current was entered in another thread than it is left in; PyTorch's current "
                "stream of that thread stays as it is"
            )

    with _lock:
        mine = _Set(get())
        entered.callback(take_back)  # First, for the sake of a Ctrl-C.
        table.setdefault(what, []).append(mine)
        put(value)


def current(
    where: Partition | Lease | Stream, *, cublas: bool = False, deep_gemm: bool = False
) -> AbstractContextManager[Any]:
    """For `with`: a partition's stream is PyTorch's current one inside, in the calling thread, and
    what was before is again afterwards, the device too.

    >>> with gcx.current(decode, cublas=True):
    ...     step()

    It gives the torch stream. Inside, what is launched by PyTorch, Triton and libraries that ask
    PyTorch for its stream runs on the partition's SMs: of a lease on those that it has when this is
    entered, so enter it anew for each step. It can be nested, and left in any order, as generators
    do, but in the thread in which it was entered. Don't await inside.

    Libraries plan for all SMs of the device inside a partition, and may be told better:

    Args:
        where: A partition, a lease, or a gcx.Stream.
        cublas: Set the SM count target of this thread's cuBLAS handle to the partition's SMs. What
            is captured inside keeps the plan. Measured, it helps on small partitions and makes
            large ones slower, so measure it; matrix products that PyTorch gives to cuBLASLt, as
            linear layers with a bias, don't heed it.
        deep_gemm: Set DeepGEMM's SM count, if it was imported. It is the process's: who set it last
            counts, in all threads. DeepGEMM may compile its kernels anew for each count.

    Triton has nothing to be set: give the kernel a grid that fits, by `sm_count`.

    Raises:
        ImportError: PyTorch isn't installed.
        NotSupportedError: cublas, and PyTorch's cuBLAS has no such target or isn't loaded.
        InvalidHandleError: The partition, lease or stream is closed.
        InvalidContextError: When it is left in another thread.
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
    """PyTorch keeps a current device for each thread, and a current stream for each of these."""
    cuda, table = torch.cuda, _thread.table

    def set_stream(stream: Any) -> None:
        # This makes the stream's device current too, which is the next thing's to decide.
        now = cuda.current_device()
        cuda.set_stream(stream)
        if now != device:
            cuda.set_device(now)

    def get_stream() -> Any:
        return cuda.current_stream(device)

    def set_device(ordinal: int) -> None:
        # PyTorch's makes the primary context current even if nothing changes, in the place of a
        # partition's that the caller has made current so that libraries are told its SMs.
        if cuda.current_device() != ordinal:
            cuda.set_device(ordinal)

    _put_in(entered, table, ("stream", device), wrapper, get_stream, set_stream)
    _put_in(entered, table, "device", device, cuda.current_device, set_device)


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

    _put_in(entered, _everybody_s, ("cublas", handle), count, get, put)


def _cublas(torch: Any) -> Any:
    """The cuBLAS that PyTorch has loaded; none is loaded that isn't there."""
    major = str(torch.version.cuda or "").partition(".")[0]
    name = f"libcublas.so.{major}"
    try:
        library = ctypes.CDLL(name, mode=os.RTLD_NOW | os.RTLD_NOLOAD)
    except OSError:
        raise NotSupportedError(
            f"PyTorch of CUDA {torch.version.cuda} has not loaded {name}, whose SM count target "
            "was to be set"
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
        _put_in(entered, _everybody_s, "deep_gemm", count, get, put)

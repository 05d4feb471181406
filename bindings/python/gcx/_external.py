"""Streams, events, graphs and kernels of other libraries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, SupportsIndex, SupportsInt, Union

from gcx._checks import whole
from gcx._errors import InvalidValueError

_MOST = (1 << 64) - 1


class _WithProtocol(Protocol):
    """cuda.core, CuPy 14 and newer."""

    @property
    def __cuda_stream__(self) -> Any: ...


class _OfTorch(Protocol):
    @property
    def cuda_stream(self) -> Any: ...


class _OfCupy(Protocol):
    @property
    def ptr(self) -> Any: ...


class _OfNumba(Protocol):
    @property
    def handle(self) -> Any: ...


class _GraphOfTorch(Protocol):
    def raw_cuda_graph(self) -> int: ...


class _GraphOfCupy(Protocol):
    @property
    def graph(self) -> Any: ...


class _GraphOfCore(Protocol):
    @property
    def graph_definition(self) -> Any: ...


class _OfTriton(Protocol):
    @property
    def function(self) -> Any: ...


class _OfCupyKernel(Protocol):
    @property
    def kernel(self) -> Any: ...


class _EventOfTorch(Protocol):
    @property
    def cuda_event(self) -> Any: ...


#: Accepted as a stream: a cudaStream_t as an int, an object with `__cuda_stream__`, a stream of
#: PyTorch, CuPy or Numba.
StreamLike = Union[SupportsIndex, _WithProtocol, _OfTorch, _OfCupy, _OfNumba]
#: Accepted as an event: a cudaEvent_t as an int, an event of PyTorch, CuPy, Numba or cuda.core.
EventLike = Union[SupportsIndex, _EventOfTorch, _OfCupy, _OfNumba]
#: Accepted as a captured graph: a CUgraph as an int, PyTorch's CUDAGraph(keep_graph=True), a
#: graph of CuPy, of cuda.core or cuda.bindings.
GraphLike = Union[SupportsInt, _GraphOfTorch, _GraphOfCupy, _GraphOfCore, _OfNumba]
#: Accepted as a kernel: a CUfunction or CUkernel as an int, a compiled kernel of Triton, a
#: RawKernel of CuPy, a Kernel of cuda.core.
KernelLike = Union[SupportsIndex, _OfTriton, _OfCupyKernel, _OfCupy, _OfNumba]
_ATTRIBUTES = ("__cuda_stream__", "cuda_stream", "ptr", "handle")


def looks_like_a_stream(value: object) -> bool:
    """Returns whether it is a stream object; an int could be anything."""
    return any(hasattr(value, name) for name in _ATTRIBUTES)


def native_of(stream: object) -> int:
    """Returns the cudaStream_t of any library's stream."""
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        return _answer(type(stream).__name__, protocol() if callable(protocol) else protocol)
    pointer = _pointer(stream, _ATTRIBUTES[1:], "a native stream")
    if pointer is None:
        raise TypeError(
            "expected a stream: an int, or an object with __cuda_stream__ or of PyTorch, CuPy or "
            f"Numba, not {type(stream).__name__}"
        )
    return pointer


def native_event_of(event: object) -> int:
    """Returns the cudaEvent_t of any library's event."""
    pointer = _pointer(event, ("cuda_event", "ptr", "handle"), "a native event")
    if pointer is None:
        raise TypeError(
            "expected an event: an int, or one of PyTorch, CuPy, Numba or cuda.core, "
            f"not {type(event).__name__}"
        )
    if pointer == 0:
        raise InvalidValueError("the event is NULL; one of PyTorch is made when it is recorded")
    return pointer


def native_graph_of(captured: object) -> int:
    """Returns the CUgraph of any library's captured graph."""
    raw = getattr(captured, "raw_cuda_graph", None)
    if raw is not None:
        return _graph_in(raw(), captured)  # PyTorch's own message asks for keep_graph=True.
    definition = getattr(captured, "graph_definition", captured)
    for name in ("graph", "handle"):
        found = getattr(definition, name, None)
        if found is not None:
            return _graph_in(found, captured)
    return _graph_in(definition, captured)


def _graph_in(found: Any, captured: object) -> int:
    if "exec" in type(found).__name__.lower():
        raise TypeError(
            f"{type(captured).__name__} is an executable graph, which CUDA can't copy; pass the "
            "graph that it was made from"
        )
    if isinstance(found, bool) or not (hasattr(found, "__index__") or hasattr(found, "__int__")):
        raise TypeError(
            "expected a captured graph: a torch.cuda.CUDAGraph(keep_graph=True), one of CuPy or "
            f"cuda.core, or a CUgraph as an int, not {type(captured).__name__}"
        )
    if isinstance(found, (float, complex, str, bytes)):
        raise TypeError(f"a graph's handle must be an int, not {type(found).__name__}")
    pointer = whole(int(found), "a native graph", 0, _MOST)
    if pointer == 0:
        raise InvalidValueError("the graph is NULL: nothing was captured yet")
    return pointer


def native_function_of(kernel: object) -> int:
    """Returns the CUfunction or CUkernel of any library's compiled kernel."""
    within = getattr(kernel, "kernel", None)  # The function of CuPy's RawKernel.
    found = kernel if within is None else within
    pointer = _pointer(found, ("function", "handle", "ptr"), "a kernel")
    if pointer is None:
        raise TypeError(
            "expected a kernel: a CUfunction as an int, or a compiled kernel of Triton, CuPy or "
            f"cuda.core, not {type(kernel).__name__}"
        )
    if pointer == 0:
        raise InvalidValueError("the kernel is NULL")
    return pointer


def _pointer(value: object, names: Sequence[str], what: str) -> int | None:
    """Returns an int as it is, or the value of the first of these attributes that exists."""
    if hasattr(value, "__index__"):
        return whole(value, what, 0, _MOST)
    for name in names:
        pointer = getattr(value, name, None)
        if pointer is not None:
            # Numba has a ctypes pointer or one of cuda.bindings.
            pointer = getattr(pointer, "value", pointer)
            return whole(int(pointer or 0), what, 0, _MOST)
    return None


def _answer(kind: str, answer: Any) -> int:
    """Returns the stream in the answer of `__cuda_stream__`."""
    try:
        version, pointer = answer
    except (TypeError, ValueError):
        raise TypeError(f"__cuda_stream__ of {kind} returned {answer!r}, not (0, handle)") from None
    if version != 0:
        raise TypeError(f"__cuda_stream__ of {kind} has version {version!r}; gcx supports 0")
    return whole(int(pointer), "a native stream", 0, _MOST)

"""Streams."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn, SupportsIndex

from gcx import _gcx
from gcx._checks import whole
from gcx._errors import ContextDestroyedError
from gcx._external import KernelLike, StreamLike, native_function_of, native_of
from gcx._order import Ordered, Waitable
from gcx._owned import Owned, closed
from gcx.generated.records import KernelFit, StreamFields, kernel_fit_of

# Attributes of PyTorch's streams. PyTorch crashes on objects that have only some of them, so a
# gcx.Stream has none.
_OF_TORCH = (
    *("cuda_stream", "device_index", "device_type", "record_event", "stream_id"),
    *("wait_event", "wait_stream"),
)
# cudaStreamLegacy and cudaStreamPerThread are 1 and 2.
_DEFAULT_STREAMS = (0, 1, 2)
_INT32 = 0x7FFFFFFF


class Claim(Owned):
    """The handle of a lease, kept by the lease and its streams. Streams don't keep the lease, so
    that no reference cycle delays the release of its SMs."""

    __slots__ = ()

    def _raise_closed(self) -> NoReturn:
        raise closed("Lease")


class Stream(Ordered, StreamFields):
    """A CUDA stream whose kernels run only on a partition's SMs; made by Context.stream, or by a
    gcx.Lease, which its streams follow.

    It keeps its context or lease alive. Other libraries accept it through `__cuda_stream__`,
    `native`, `torch()`, `cupy()` or `numba()`. Keep it as long as work is submitted to it.

    >>> with torch.cuda.stream(part.stream.torch()):
    ...     y = model(x)
    """

    __slots__ = ("_keeps",)
    _keeps: object
    _get_info = staticmethod(_gcx.gcx_stream_get_info)
    _get_resource = staticmethod(_gcx.gcx_stream_get_resource)
    _synchronize = staticmethod(_gcx.gcx_stream_synchronize)
    _record = staticmethod(_gcx.gcx_stream_record)
    _wait = staticmethod(_gcx.gcx_stream_wait)

    def __init__(self) -> None:
        raise TypeError(
            "a gcx.Stream is made by Context.stream, Lease.create_stream or Stream.from_native"
        )

    def _raise_closed(self) -> NoReturn:
        if isinstance(self._keeps, Claim) and self._keeps.closed:
            raise ContextDestroyedError(
                "the lease of this gcx.Stream was closed; use a stream of another"
            )
        super()._raise_closed()

    @classmethod
    def from_native(cls, stream: StreamLike) -> Stream:
        """Wraps another library's stream, which that library continues to own; the object is kept
        alive.

        Args:
            stream: A cudaStream_t as an int; or any object with `__cuda_stream__`; or a stream of
                PyTorch, CuPy or Numba.

        Raises:
            TypeError: It is none of these.
            InvalidValueError: It is one of CUDA's default streams, which belong to no context.
        """
        return _gcx.gcx_stream_from_native(native_of(stream), empty_stream(stream))

    @property
    def native(self) -> int:
        """The CUstream, which is a cudaStream_t too, as an int. Valid until close. That of a
        lease changes when the lease is resized: give it to libraries again for each step. Work
        submitted to an earlier one runs on the SMs that the lease had then, which another lease
        may have now."""
        return self._native(_gcx.gcx_stream_native, _gcx.gcx_stream_get_info)

    def __cuda_stream__(self) -> tuple[int, int]:
        """Returns the protocol's version, 0, and the CUstream."""
        return 0, self.native

    def query(self) -> bool:
        """Returns whether all its work has finished, without waiting."""
        return _gcx.gcx_stream_query(self._live())

    def wait(self, what: Waitable) -> None:
        """As Context.wait. PyTorch's default stream is accepted too."""
        if getattr(what, "cuda_stream", None) in _DEFAULT_STREAMS:
            # gcx can record no event without a context, but PyTorch can.
            theirs: Any = what
            self.torch().wait_event(theirs.record_event())
            return
        super().wait(what)

    def sm_ids(self) -> tuple[int, ...]:
        """Returns the numbers of the SMs that its kernels run on, ascending, as measured by a probe
        kernel of well under a millisecond. Waits for the stream.

        Raises:
            CaptureError: The stream captures a graph.
        """
        return _gcx.gcx_stream_probe_sms(self._live())

    def kernel_fit(
        self,
        kernel: KernelLike,
        block_threads: SupportsIndex,
        *,
        dynamic_shared_bytes: SupportsIndex = 0,
        cluster_blocks: SupportsIndex = 0,
    ) -> KernelFit:
        """Returns how much of a kernel fits the stream's idle SMs at once, for kernels that size
        their grid by the SMs. A kernel with a grid-wide barrier hangs if its grid does not fit, and
        the device's SM count is too high in a partition.

        For a lease's stream it uses the lease's current SMs; during a capture, those that the graph
        will run on.

        Args:
            kernel: A CUfunction or CUkernel as an int, a compiled kernel of Triton, a RawKernel of
                CuPy, a Kernel of cuda.core.
            block_threads: Threads of a block, 1 to 1024.
            dynamic_shared_bytes: Dynamic shared memory of a block.
            cluster_blocks: Blocks of a cluster, even if the kernel was compiled with it; 0: it is
                launched without clusters.

        Raises:
            TypeError: It is no kernel.
            InvalidValueError: block_threads is not 1 to 1024.
            InvalidHandleError: The driver knows no such kernel.
        """
        function = native_function_of(kernel)
        return kernel_fit_of(
            _gcx.gcx_stream_get_kernel_fit(
                self._live(),
                function,
                whole(block_threads, "block_threads", 1, 1024),
                whole(dynamic_shared_bytes, "dynamic_shared_bytes"),
                whole(cluster_blocks, "cluster_blocks"),
            )
        )

    def torch(self) -> Any:
        """Returns a torch.cuda.ExternalStream of this stream, which it keeps alive. It has the
        current CUstream: call this again for each step on a lease.

        Raises:
            ImportError: PyTorch isn't installed.
        """
        import torch

        return _keeping(torch.cuda.ExternalStream(self.native, device=self.device), self)

    def cupy(self) -> Any:
        """Returns a CuPy stream of this one, see torch.

        Raises:
            ImportError: CuPy isn't installed.
        """
        import cupy

        # CuPy 14 deprecates ExternalStream; older versions have nothing else.
        from_external = getattr(cupy.cuda.Stream, "from_external", None)
        if from_external is not None:
            return _keeping(from_external(self), self)
        return _keeping(cupy.cuda.ExternalStream(self.native, self.device), self)

    def numba(self) -> Any:
        """Returns a Numba stream of this one, see torch.

        Raises:
            ImportError: Numba isn't installed.
        """
        from numba import cuda

        return _keeping(cuda.external_stream(self.native), self)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            hint = "; pass torch() to PyTorch" if name in _OF_TORCH else ""
            raise AttributeError(f"a gcx.Stream has no attribute {name!r}{hint}")

    def _describe(self) -> str:
        device, priority, sm_count, _ = _gcx.gcx_stream_get_info(self._handle)
        return f" on {sm_count} SMs of device {device}, priority {priority}"


def priority_of(value: object) -> int:
    """Returns a stream's priority for C."""
    if type(value) is int and -_INT32 <= value <= _INT32:
        return value
    return whole(value, "priority", -_INT32 - 1, _INT32)


def empty_stream(keeps: object = None) -> Stream:
    """Returns a stream without a handle yet, which keeps an object alive."""
    stream = Stream.__new__(Stream)
    stream._keeps = keeps
    return stream


def _keeping(wrapper: Any, stream: Stream) -> Any:
    """Makes another library's stream keep ours alive, if it accepts attributes."""
    with suppress(AttributeError):
        wrapper._gcx_stream = stream
    return wrapper

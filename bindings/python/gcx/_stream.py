"""Streams."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, SupportsIndex

from gcx import _gcx
from gcx._checks import whole
from gcx._errors import ContextDestroyedError
from gcx._foreign import KernelLike, StreamLike, native_function_of, native_of
from gcx._order import Ordered, Waitable
from gcx._owned import Owned, closed

# What PyTorch looks for in a stream. It takes such objects half, and ends the process in the other
# half, so a gcx.Stream has none of them.
_OF_TORCH = (
    *("cuda_stream", "device_index", "device_type", "record_event", "stream_id"),
    *("wait_event", "wait_stream"),
)
# cudaStreamLegacy and cudaStreamPerThread are 1 and 2.
_DEFAULT_STREAMS = (0, 1, 2)
_INT32 = 0x7FFFFFFF


class Claim(Owned):
    """The handle of a lease. The lease and its streams keep it, and the streams don't keep the
    lease, so that no cycle holds SMs until Python's collector runs."""

    __slots__ = ()

    def _raise_closed(self) -> NoReturn:
        raise closed("Lease")


class KernelFit(NamedTuple):
    """How much of a kernel fits a stream's SMs at once.

    Attributes:
        sm_count: SMs that the stream's kernels can run on.
        blocks_per_sm: Blocks that an SM holds at once; 0: it can't run.
        max_blocks: The largest grid that runs all at once, and so the largest cooperative one.
        max_clusters: Clusters that run at once, each of as many blocks as was said; 0 without.
        max_cluster_blocks: The most blocks that a cluster of this kernel can have; 1 on a device
            without clusters; 0: it can't run.
    """

    sm_count: int
    blocks_per_sm: int
    max_blocks: int
    max_clusters: int
    max_cluster_blocks: int


class Stream(Ordered):
    """A CUDA stream whose kernels run on a partition's SMs alone; made by Context.stream, and by a
    gcx.Lease, whose streams follow it.

    It keeps its context or lease. Any library takes it: it has `__cuda_stream__`, `native`,
    `torch()`, `cupy()` and `numba()`. Keep it as long as work is submitted to it. Memory that
    another library allocated in it may live longer.

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
                "the lease of this gcx.Stream was closed or handed over; take a stream of another"
            )
        super()._raise_closed()

    @classmethod
    def from_native(cls, stream: StreamLike) -> Stream:
        """A stream that someone else made, to ask for its SMs and to wait for it.

        Args:
            stream: A cudaStream_t as an int; or any object with `__cuda_stream__`; or a stream of
                PyTorch, CuPy or Numba. It stays its maker's; the object is kept alive.

        Raises:
            TypeError: It is none of these.
            InvalidValueError: It is one of CUDA's default streams, which have no context of their
                own.
        """
        return _gcx.gcx_stream_from_native(native_of(stream), empty_stream(stream))

    @property
    def native(self) -> int:
        """The CUstream, which is a cudaStream_t too, as an int. Valid until close. A lease's stream
        has another after each change of the lease: see Lease.create_stream."""
        return self._native(_gcx.gcx_stream_native, _gcx.gcx_stream_get_info)

    def __cuda_stream__(self) -> tuple[int, int]:
        """The protocol's version, 0, and the native stream."""
        return 0, self.native

    @property
    def priority(self) -> int:
        """Lower is more urgent: 0 to -5 on an H100."""
        return self._get_info(self._live())[1]

    @property
    def sm_count(self) -> int:
        """How many SMs its kernels can run on."""
        return self._get_info(self._live())[2]

    @property
    def context_id(self) -> int:
        """The id of its context, as Context.id; 0 if the context isn't gcx's."""
        return self._get_info(self._live())[3]

    def query(self) -> bool:
        """Whether all its work has finished. Never waits."""
        return _gcx.gcx_stream_query(self._live())

    def wait(self, what: Waitable) -> None:
        """Holds all later work of this stream until the event's work, or what was submitted so far
        to the other stream, has finished. The calling thread does not wait.

        Args:
            what: A gcx.Event, Stream, Context, Partition or Lease, or a stream of another library
                as from_native takes; of PyTorch also the default stream, for
                `stream.wait(torch.cuda.current_stream())`.
        """
        if getattr(what, "cuda_stream", None) in _DEFAULT_STREAMS:
            # It has no context that gcx could record an event in; PyTorch has.
            theirs: Any = what
            self.torch().wait_event(theirs.record_event())
            return
        super().wait(what)

    def sm_ids(self) -> tuple[int, ...]:
        """The numbers of the SMs that its kernels really run on, ascending, from the hardware: a
        probe kernel of well under a millisecond notes them. Waits for the stream.

        Raises:
            CaptureError: The stream captures a graph.
        """
        return _gcx.gcx_stream_probe_sms(self._live())

    def max_cluster_size(self) -> int:
        """The most blocks that a thread block cluster of its kernels can have, see
        SMResource.max_cluster_size."""
        return _gcx.gcx_stream_get_max_cluster_size(self._live())

    def kernel_fit(
        self,
        kernel: KernelLike,
        block_threads: SupportsIndex,
        *,
        dynamic_shared_bytes: SupportsIndex = 0,
        cluster_blocks: SupportsIndex = 0,
    ) -> KernelFit:
        """How much of a kernel fits the stream's SMs at once, when nothing else is there: for
        kernels that size their grid by the SMs. A kernel with a barrier of its own over a grid that
        does not fit hangs, and the device's SM count is the whole device's in a partition too.

        A lease's stream answers for the SMs that the lease has at that call; one that captures a
        graph for those that the graph will run on.

        Args:
            kernel: A CUfunction or CUkernel as an int, a compiled kernel of Triton, a RawKernel of
                CuPy, a Kernel of cuda.core.
            block_threads: Threads of a block, 1 to 1024.
            dynamic_shared_bytes: Dynamic shared memory of a block.
            cluster_blocks: Blocks of a cluster, also of one that the kernel was compiled with; 0:
                it is launched without clusters.

        Raises:
            TypeError: It is no kernel.
            InvalidValueError: block_threads is not 1 to 1024.
            InvalidHandleError: It is no kernel's number, as far as the driver notices.
        """
        function = native_function_of(kernel)
        return KernelFit(
            *_gcx.gcx_stream_get_kernel_fit(
                self._live(),
                function,
                whole(block_threads, "block_threads", 1, 1024),
                whole(dynamic_shared_bytes, "dynamic_shared_bytes"),
                whole(cluster_blocks, "cluster_blocks"),
            )
        )

    def torch(self) -> Any:
        """A torch.cuda.ExternalStream of this stream, which it keeps. It holds the native stream of
        this moment: of a lease's stream take it anew for each step.

        Raises:
            ImportError: PyTorch isn't installed.
        """
        import torch

        return _keeping(torch.cuda.ExternalStream(self.native, device=self.device), self)

    def cupy(self) -> Any:
        """A CuPy stream of this one; of a lease's stream as it is now, see torch.

        Raises:
            ImportError: CuPy isn't installed.
        """
        import cupy

        # CuPy 14 deprecates the class that older ones have alone.
        from_external = getattr(cupy.cuda.Stream, "from_external", None)
        if from_external is not None:
            return _keeping(from_external(self), self)
        return _keeping(cupy.cuda.ExternalStream(self.native, self.device), self)

    def numba(self) -> Any:
        """A Numba stream of this one; of a lease's stream as it is now, see torch.

        Raises:
            ImportError: Numba isn't installed.
        """
        from numba import cuda

        return _keeping(cuda.external_stream(self.native), self)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            hint = "; PyTorch takes what torch() gives" if name in _OF_TORCH else ""
            raise AttributeError(f"a gcx.Stream has no attribute {name!r}{hint}")

    def _describe(self) -> str:
        device, priority, sm_count, _ = _gcx.gcx_stream_get_info(self._handle)
        return f" on {sm_count} SMs of device {device}, priority {priority}"


def priority_of(value: object) -> int:
    """A stream's priority for C."""
    if type(value) is int and -_INT32 <= value <= _INT32:
        return value
    return whole(value, "priority", -_INT32 - 1, _INT32)


def empty_stream(keeps: object = None) -> Stream:
    """A stream without a handle yet, which keeps the object that it stands for."""
    stream = Stream.__new__(Stream)
    stream._keeps = keeps
    return stream


def _keeping(wrapper: Any, stream: Stream) -> Any:
    """Another library's stream, which keeps ours as long as it lives, where it can."""
    with suppress(AttributeError):
        wrapper._gcx_stream = stream
    return wrapper

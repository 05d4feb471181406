"""Graphs that were captured once, launched on the SMs of any stream."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, SupportsIndex, Union

from gcx import _gcx
from gcx._checks import flag_of, items_of, whole
from gcx._context import Context
from gcx._errors import InvalidValueError
from gcx._foreign import GraphLike, StreamLike, native_graph_of
from gcx._lease import Lease
from gcx._owned import Owned
from gcx._partition import Partition
from gcx._resource import SMResource
from gcx._stream import Claim, Stream

_KINDS = {
    _gcx.GCX_GRAPH_NODE_KERNEL: "kernel",
    _gcx.GCX_GRAPH_NODE_MEMCPY: "memcpy",
    _gcx.GCX_GRAPH_NODE_MEMSET: "memset",
    _gcx.GCX_GRAPH_NODE_HOST: "host",
    _gcx.GCX_GRAPH_NODE_GRAPH: "graph",
    _gcx.GCX_GRAPH_NODE_EMPTY: "empty",
    _gcx.GCX_GRAPH_NODE_WAIT_EVENT: "wait event",
    _gcx.GCX_GRAPH_NODE_EVENT_RECORD: "event record",
    _gcx.GCX_GRAPH_NODE_SEMAPHORE_SIGNAL: "semaphore signal",
    _gcx.GCX_GRAPH_NODE_SEMAPHORE_WAIT: "semaphore wait",
}
_Dim = Union[SupportsIndex, Sequence[SupportsIndex]]
#: What SMs a graph is prepared for.
Place = Union[SMResource, Partition, Lease, Stream, Context]
#: What a graph is launched in.
Launched = Union[Stream, Partition, Lease, StreamLike]


class GraphInfo(NamedTuple):
    """What a graph has, and what it came to since it was made.

    Attributes:
        device: The ordinal of the device.
        node_priorities: Whether kernels run with the priorities that they were captured with.
        node_count: Nodes, those of child graphs too.
        kernel_count: Of these, kernels.
        part_count: Parts, which can have SMs of their own each.
        executables: Executables that are kept now, one for each set of SMs.
        max_executables: How many are kept.
        launches: Launches.
        made: Executables made.
        evicted: Of these, given up for max_executables.
    """

    device: int
    node_priorities: bool
    node_count: int
    kernel_count: int
    part_count: int
    executables: int
    max_executables: int
    launches: int
    made: int
    evicted: int


class GraphNode(NamedTuple):
    """A node of a graph. What kernels alone have is 0 or empty in others.

    Attributes:
        number: Its place in Graph.nodes.
        kind: "kernel", "memcpy", "memset", "host", "graph" (a child graph), "empty", "wait event",
            "event record", "semaphore signal", "semaphore wait".
        name: The kernel's name, as compiled.
        parent: The number of the node whose child graph it is in, or None.
        part: The part it is of.
        grid: Blocks.
        block: Threads.
        cluster: Blocks of a cluster; (0, 0, 0) without clusters.
        shared_bytes: Dynamic shared memory of a block.
        cooperative: Whether it is a cooperative launch.
        blocks_per_sm: Blocks that an SM holds at once. The largest grid whose blocks may wait for
            each other is this times the partition's SMs.
    """

    number: int
    kind: str
    name: str
    parent: int | None
    part: int
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    cluster: tuple[int, int, int]
    shared_bytes: int
    cooperative: bool
    blocks_per_sm: int


class Graph(Owned):
    """A captured graph, launched on the SMs of any stream and never captured again.

    >>> captured = torch.cuda.CUDAGraph(keep_graph=True)
    >>> with torch.cuda.graph(captured):
    ...     step()
    >>> step = gcx.Graph(captured)
    >>> step.launch(decode.stream)

    One executable is made for each set of SMs, at the first launch there or by prepare, and kept.
    It works on the memory that it was captured with, which is the captured object's: that is kept
    alive as long as this is.

    Args:
        captured: A torch.cuda.CUDAGraph(keep_graph=True), a graph of CuPy, a GraphDefinition of
            cuda.core or a GraphBuilder that has one, a CUgraph of cuda.bindings, or the number of
            one, which is a cudaGraph_t too. It is copied; its own executables run on.
        max_executables: How many are kept, those that were used last; None: 16.
        node_priorities: Kernels run with the priorities that they were captured with; else with
            that of the stream in which they are launched.

    Raises:
        TypeError: It is none of these.
        NotSupportedError: A node can't be moved; the message has its kind and number.
        ResourceConfigurationError: It has kernels of two devices, or of more than 16 contexts.
        InvalidContextError: It has no kernels, and no context is current that tells its device.
    """

    __slots__ = ("_captured",)
    _captured: object

    def __init__(
        self,
        captured: GraphLike,
        *,
        max_executables: SupportsIndex | None = None,
        node_priorities: bool = False,
    ) -> None:
        most = 0 if max_executables is None else whole(max_executables, "max_executables", 1)
        flags = _gcx.GCX_GRAPH_NODE_PRIORITIES if flag_of(node_priorities, "node_priorities") else 0
        self._captured = captured
        _gcx.gcx_graph_create(native_graph_of(captured), flags, most, self)

    def launch(self, stream: Launched | Sequence[Launched]) -> None:
        """Launches it in the stream, on the SMs that the stream has now. The first launch on a set
        of SMs makes the executable, see prepare; later ones cost what CUDA's own do.

        In a stream of another library that has no partition it runs as it was captured.

        Args:
            stream: A gcx.Stream, a partition or a lease, which stand for their stream, or a stream
                of another library. Or a list of them, one for each part: it is launched in the
                first, behind what all of them were given before, and what they are given afterwards
                runs behind it.

        Raises:
            InvalidDeviceError: The stream is of another device.
            CaptureError: The stream captures a graph.
            InvalidValueError: There aren't as many streams as parts.
            As prepare.
        """
        handle = self._live()
        if isinstance(stream, Stream):
            _gcx.gcx_graph_launch(handle, stream._live())
            return
        several = None if _is_one_stream(stream) else items_of(stream)
        if several is None:
            one = _stream_of(stream)
            _gcx.gcx_graph_launch(handle, one._live())
        else:
            streams = [_stream_of(one) for one in several]
            _gcx.gcx_graph_launch_parts(handle, [one._live() for one in streams])

    def prepare(self, where: Place | Sequence[Place]) -> None:
        """Makes the executable for those SMs ahead of time, 1.3 to 2 us a node, and their context
        if there is none; nothing if it is kept already.

        Args:
            where: An SMResource, a partition, a lease (for the SMs that it has now), a stream or a
                context. Or a list of them, one for each part.

        Raises:
            LaunchTooLargeError: A cooperative grid is larger than the SMs hold; the message has the
                kernel's name, its grid and the largest.
            InvalidDeviceError: SMs of another device.
            InvalidValueError: There is neither one nor one for each part; leases and others.
            NotSupportedError: The driver did not move a node as it was told.
        """
        handle = self._live()
        items = [where] if isinstance(where, _PLACES) else items_of(where)
        if items is None:
            raise _no_place(where)
        places = [_place(item) for item in items]
        flags = {of_lease for _, of_lease in places}
        if len(flags) > 1:
            raise InvalidValueError("the SMs of leases and others can't be prepared in one call")
        _gcx.gcx_graph_prepare(
            handle,
            [value for value, _ in places],
            _gcx.GCX_PREPARE_FOR_LEASES if True in flags else 0,
        )

    def set_part(self, nodes: _Node | Iterable[_Node], part: SupportsIndex) -> None:
        """Says which part nodes are of. At first there is one for each context that the kernels
        were captured in. The executables for several sets of SMs are given up.

        Args:
            nodes: A GraphNode or its number, or several. A child graph's stands for all of its.
                If there are none, nothing changes.
            part: One that there is, or the next, which needs at least one node.

        Raises:
            InvalidValueError: No such node; part is more than the number of parts, or than 15, or
                is the next and there are no nodes.
        """
        several = None if isinstance(nodes, GraphNode) else items_of(nodes)
        numbers = [_number_of(node) for node in ([nodes] if several is None else several)]
        _gcx.gcx_graph_set_part(self._live(), numbers, whole(part, "part"))

    def set_kernel(
        self,
        node: _Node,
        *,
        grid: _Dim | None = None,
        block: _Dim | None = None,
        shared_bytes: SupportsIndex | None = None,
        arguments: bytes | None = None,
    ) -> None:
        """Gives a kernel other parameters, in all executables or nowhere: launches from then on
        have them. A kernel's own stay where None is given.

        Args:
            node: A GraphNode, whose parameters stay then, or its number.
            grid: Blocks, up to three numbers.
            block: Threads, up to three numbers.
            shared_bytes: Dynamic shared memory of a block.
            arguments: All of them, each at its place as in a C struct (struct.pack).

        Raises:
            InvalidValueError: No such node, or not a kernel's; arguments that are too short; what
                the driver says of the parameters.
            As prepare.
        """
        handle = self._live()
        number = _number_of(node)
        given = None if grid is None else _dim(grid, "grid")
        threads = None if block is None else _dim(block, "block")
        shared = None if shared_bytes is None else whole(shared_bytes, "shared_bytes")
        if arguments is not None and not isinstance(arguments, bytes):
            raise TypeError(f"arguments must be bytes, not {type(arguments).__name__}")
        if given is None or threads is None or shared is None:
            now = node if isinstance(node, GraphNode) else self._node(number)
            given, threads = given or now.grid, threads or now.block
            shared = now.shared_bytes if shared is None else shared
        _gcx.gcx_graph_set_kernel(handle, number, shared, *given, *threads, arguments)

    def update(self, captured: GraphLike) -> None:
        """Takes over all parameters of another captured graph with the same nodes and order, as of
        the same code captured again, in all executables or nowhere. Parts stay. This graph works
        on the other's memory from then on, and keeps it alive: keep the former until its launches
        have ended.

        Raises:
            GraphUpdateError: The nodes or their order differ; the message says where.
            As gcx.Graph.
        """
        _gcx.gcx_graph_update(self._live(), native_graph_of(captured))
        self._captured = captured

    def nodes(self) -> list[GraphNode]:
        """Its nodes: in the order of cuGraphGetNodes, those of a child graph right behind the node
        that stands for it."""
        return [
            GraphNode(
                number,
                _KINDS[fields[0]],
                fields[15],
                None if fields[1] == _gcx.GCX_NO_NODE else fields[1],
                fields[2],
                fields[4:7],
                fields[7:10],
                fields[10:13],
                fields[13],
                bool(fields[3]),
                fields[14],
            )
            for number, fields in enumerate(_gcx.gcx_graph_get_nodes(self._live()))
        ]

    def _node(self, number: int) -> GraphNode:
        nodes = self.nodes()
        if number >= len(nodes):
            raise InvalidValueError(f"there is no node {number}; the graph has {len(nodes)}")
        return nodes[number]

    @property
    def info(self) -> GraphInfo:
        """What it has, and what it came to."""
        device, flags, *counts = _gcx.gcx_graph_get_info(self._live())
        return GraphInfo(device, bool(flags & _gcx.GCX_GRAPH_NODE_PRIORITIES), *counts)

    @property
    def device(self) -> int:
        """The ordinal of the device."""
        return self.info.device

    def close(self) -> None:
        """Gives it and its executables up; work in flight finishes. The captured object isn't kept
        any longer, whose memory that work may need. Closing again does nothing."""
        super().close()
        self._captured = None

    def _describe(self) -> str:
        device, _, nodes, kernels, parts, *_ = _gcx.gcx_graph_get_info(self._handle)
        several = f", {parts} parts" if parts > 1 else ""
        return f" of {nodes} nodes, {kernels} of them kernels, on device {device}{several}"


_Node = Union[GraphNode, SupportsIndex]
_PLACES = (SMResource, Partition, Lease, Stream, Context)


def _is_one_stream(value: object) -> bool:
    """A stream, or an object that stands for one; some of other libraries can be iterated."""
    return isinstance(value, (Stream, Partition, Lease)) or items_of(value) is None


def _stream_of(value: Any) -> Stream:
    """The stream of what a graph is launched in, to be kept during the launch."""
    stream = value.stream if isinstance(value, (Partition, Lease)) else value
    return stream if isinstance(stream, Stream) else Stream.from_native(stream)


def _place(where: Any) -> tuple[bytes, bool]:
    """SMs, and whether they are a lease's."""
    if isinstance(where, Lease):
        return where.resource._value, True
    if isinstance(where, (Stream, Context)):
        of_lease = isinstance(getattr(where, "_keeps", None), Claim)
        return where.resources.sm._value, of_lease
    if isinstance(where, Partition):
        return where.resource._value, False
    if isinstance(where, SMResource):
        return where._value, False
    raise _no_place(where)


def _no_place(where: object) -> TypeError:
    return TypeError(
        "a graph is prepared for a gcx.SMResource, Partition, Lease, Stream or Context, "
        f"not {type(where).__name__}"
    )


def _number_of(node: object) -> int:
    return whole(node.number if isinstance(node, GraphNode) else node, "a node's number")


def _dim(value: object, what: str) -> tuple[int, int, int]:
    """One to three numbers, the rest 1."""
    items = items_of(value)
    sizes = [whole(size, what, 1) for size in ([value] if items is None else items)]
    if not 1 <= len(sizes) <= 3:
        raise InvalidValueError(f"{what} has one to three numbers, not {len(sizes)}")
    x, y, z = (*sizes, 1, 1)[:3]
    return x, y, z

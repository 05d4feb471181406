"""Graphs: captured once, launched on the SMs of any stream."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, SupportsIndex, Union

from gcx import _gcx
from gcx._checks import flag_of, items_of, whole
from gcx._context import Context
from gcx._errors import InvalidValueError
from gcx._external import GraphLike, StreamLike, native_graph_of
from gcx._lease import Lease
from gcx._owned import Owned
from gcx._partition import Partition
from gcx._record import json_of
from gcx._resource import SMResource
from gcx._stream import Claim, Stream
from gcx.generated.records import GraphInfo, graph_info_of

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
#: The SMs that a graph is prepared for.
Target = Union[SMResource, Partition, Lease, Stream, Context]
#: The stream that a graph is launched in.
Launched = Union[Stream, Partition, Lease, StreamLike]


class GraphNode(NamedTuple):
    """A node of a graph. Fields of kernels are 0 or empty for other nodes."""

    number: int  #: Its index in Graph.nodes.
    kind: str  #: As "kernel", "memcpy", "memset", "host", "empty"; "graph" is a child graph.
    name: str  #: The kernel's name, as compiled.
    parent: int | None  #: The number of the node whose child graph contains it.
    part: int  #: The part it belongs to.
    grid: tuple[int, int, int]  #: Blocks.
    block: tuple[int, int, int]  #: Threads.
    cluster: tuple[int, int, int]  #: Blocks of a cluster; (0, 0, 0) without clusters.
    shared_bytes: int  #: Dynamic shared memory of a block.
    cooperative: bool  #: Whether it is a cooperative launch.
    blocks_per_sm: (
        int  #: Blocks that fit on an SM at once; times the SMs: the largest cooperative grid.
    )

    def to_json(self) -> dict[str, Any]:
        """Returns the fields as values for json.dumps."""
        return json_of(self)


class Graph(Owned):
    """A captured graph, launched on the SMs of any stream and never captured again.

    >>> captured = torch.cuda.CUDAGraph(keep_graph=True)
    >>> with torch.cuda.graph(captured):
    ...     step()
    >>> step = gcx.Graph(captured)
    >>> step.launch(decode.stream)

    An executable is created for each set of SMs, by prepare or the first launch there, and cached.
    It uses the memory of the capture, so the captured object is kept alive. See
    docs/guides/graphs.md.

    Args:
        captured: A torch.cuda.CUDAGraph(keep_graph=True), a graph of CuPy, a GraphDefinition of
            cuda.core or a GraphBuilder that has one, a CUgraph of cuda.bindings, or the number of
            one, which is a cudaGraph_t too. It is copied.
        max_executables: How many executables are cached, the most recently used; None: 16.
        node_priorities: Kernels run with the priorities of the capture, instead of that of the
            stream in which they are launched.

    Raises:
        TypeError: It is none of these.
        NotSupportedError: A node can't run on other SMs; the message has its kind and number.
        ResourceConfigurationError: It has kernels of two devices or of more than 16 contexts.
        InvalidContextError: It has no kernels, and no current context determines its device.
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
        of SMs creates the executable, see prepare. In a stream of another library without a
        partition it runs on the SMs of its capture.

        Args:
            stream: A gcx.Stream, a partition or lease (its stream), or a stream of another library.
                Or a list of one, or of one for each part: the graph is launched in the first,
                behind the earlier work of all, and later work of all runs behind it.

        Raises:
            InvalidDeviceError: The stream has another device.
            CaptureError: The stream captures a graph.
            InvalidValueError: The number of streams is neither 1 nor that of the parts.
            As prepare.
        """
        handle = self._live()
        if isinstance(stream, Stream):
            _gcx.gcx_graph_launch(handle, (stream._live(),))
            return
        several = items_of(stream)
        streams = [stream_of(one) for one in ([stream] if several is None else several)]
        _gcx.gcx_graph_launch(handle, [one._live() for one in streams])

    def prepare(self, where: Target | Sequence[Target], *, for_leases: bool = False) -> None:
        """Creates the executable for those SMs ahead of time, and their context. Does nothing if
        it is cached.

        Args:
            where: An SMResource, a partition, a lease (its current SMs), a stream or a context.
                Or a list of them, one for each part.
            for_leases: Leases will have the SMResources, see gcx.layout. Leases have workqueues of
                their own on drivers of CUDA 13.1 and newer, and so other contexts.

        Raises:
            LaunchTooLargeError: A cooperative grid doesn't fit the SMs; the message has the
                kernel's name, its grid and the largest that fits.
            InvalidDeviceError: SMs of another device.
            InvalidValueError: Neither one nor one for each part; leases mixed with others;
                for_leases with a partition, a context or a stream of one.
            NotSupportedError: The driver did not place a node as requested.
        """
        handle = self._live()
        items = [where] if isinstance(where, _TARGETS) else items_of(where)
        if items is None:
            raise _not_a_target(where)
        flag_of(for_leases, "for_leases")
        targets = [_target_of(item, for_leases) for item in items]
        flags = {of_lease for _, of_lease in targets}
        if len(flags) > 1 or (for_leases and False in flags):
            raise InvalidValueError("a graph can't be prepared for leases and others in one call")
        _gcx.gcx_graph_prepare(
            handle,
            [value for value, _ in targets],
            _gcx.GCX_PREPARE_FOR_LEASES if True in flags else 0,
        )

    def set_part(self, nodes: _Node | Iterable[_Node], part: SupportsIndex) -> None:
        """Assigns nodes to a part. Initially there is one part for each context of the capture.
        Destroys the executables for several sets of SMs.

        Args:
            nodes: A GraphNode or its number, or several. That of a child graph includes all its
                nodes. An empty list changes nothing.
            part: An existing part, or the next one, which needs at least one node.

        Raises:
            InvalidValueError: No such node; part is above the number of parts or above 15; no nodes
                for a new part.
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
        """Changes the parameters of a kernel for all later launches. If it fails, nothing changes.
        None keeps the kernel's own value.

        Args:
            node: A GraphNode, or its number.
            grid: Blocks, up to three numbers.
            block: Threads, up to three numbers.
            shared_bytes: Dynamic shared memory of a block.
            arguments: All arguments, laid out as in a C struct (struct.pack).

        Raises:
            InvalidValueError: No such node, or no kernel; arguments that are too short; parameters
                that the driver refuses.
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
        """Takes all parameters of another captured graph with the same nodes and order, for all
        later launches. If it fails, nothing changes. Parts stay. The graph then uses the other's
        memory and keeps it alive: keep the former one until earlier launches have finished.

        Raises:
            GraphUpdateError: The nodes or their order differ; the message names the first.
            As gcx.Graph.
        """
        _gcx.gcx_graph_update(self._live(), native_graph_of(captured))
        self._captured = captured

    def nodes(self) -> list[GraphNode]:
        """Returns its nodes in the order of cuGraphGetNodes; those of a child graph follow their
        node."""
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
        """Its size and counters."""
        return graph_info_of(_gcx.gcx_graph_get_info(self._live()))

    @property
    def device(self) -> int:
        """The ordinal of the device."""
        return self.info.device

    def close(self) -> None:
        """Destroys it and its executables; work in flight finishes. The captured object, whose
        memory that work may need, is no longer kept. Closing again does nothing."""
        super().close()
        self._captured = None

    def _describe(self) -> str:
        device, _, nodes, kernels, parts, *_ = _gcx.gcx_graph_get_info(self._handle)
        several = f", {parts} parts" if parts > 1 else ""
        return f" of {nodes} nodes, {kernels} of them kernels, on device {device}{several}"


_Node = Union[GraphNode, SupportsIndex]
_TARGETS = (SMResource, Partition, Lease, Stream, Context)


def stream_of(value: Any) -> Stream:
    """Returns the stream that a partition, a lease or another library's object stands for."""
    stream = value.stream if isinstance(value, (Partition, Lease)) else value
    return stream if isinstance(stream, Stream) else Stream.from_native(stream)


def _target_of(target: Any, for_leases: bool) -> tuple[bytes, bool]:
    """Returns the SMs, and whether a lease has them or, of an SMResource, is to have them."""
    if isinstance(target, Lease):
        return target.resource._value, True
    if isinstance(target, (Stream, Context)):
        of_lease = isinstance(getattr(target, "_keeps", None), Claim)
        return target.resources.sm._value, of_lease
    if isinstance(target, Partition):
        return target.resource._value, False
    if isinstance(target, SMResource):
        return target._value, for_leases
    raise _not_a_target(target)


def _not_a_target(target: object) -> TypeError:
    return TypeError(
        "a graph is prepared for a gcx.SMResource, Partition, Lease, Stream or Context, "
        f"not {type(target).__name__}"
    )


def _number_of(node: object) -> int:
    return whole(node.number if isinstance(node, GraphNode) else node, "a node's number")


def _dim(value: object, what: str) -> tuple[int, int, int]:
    """Returns three sizes of one to three; the rest are 1."""
    items = items_of(value)
    sizes = [whole(size, what, 1) for size in ([value] if items is None else items)]
    if not 1 <= len(sizes) <= 3:
        raise InvalidValueError(f"{what} has one to three numbers, not {len(sizes)}")
    x, y, z = (*sizes, 1, 1)[:3]
    return x, y, z

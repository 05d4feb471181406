"""Graphs: arguments, conversion of nodes and kernels, lifetimes, threads, forks."""

from __future__ import annotations

import gc
import struct
import types
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import gcx
import pytest
from work import Captured, Work  # type: ignore[import-not-found]


@pytest.fixture
def captured(work: Work) -> Iterator[Captured]:
    captured = work.capture()
    yield captured
    captured.destroy()


def test_graph_launches_in_all_that_stands_for_a_stream(
    work: Work, captured: Captured, parts: gcx.Partitions
) -> None:
    part, other, _ = parts
    external = types.SimpleNamespace(cuda_stream=part.stream.native)
    with gcx.Graph(captured) as graph:
        work.note()
        for stream in (part, part.stream, external, part.stream.native, [part], (external,)):
            graph.launch(stream)
        part.synchronize()
        graph.launch(other)
        other.synchronize()
        sms = [part.stream.sm_ids()] * 6 + [other.stream.sm_ids()]
        assert [run.sms for run in work.runs()] == sms
        assert part.context.stream_count == 1  # Borrowed streams were returned.
        assert graph.info == gcx.GraphInfo(0, False, 1, 1, 1, 2, 16, 7, 2, 0)
        assert graph.device == 0
        assert repr(graph) == "<gcx.Graph of 1 nodes, 1 of them kernels, on device 0>"
        for wrong in (None, "stream", 1.5, [None]):
            with pytest.raises(TypeError):
                graph.launch(wrong)  # type: ignore[arg-type]
    assert repr(graph) == "<gcx.Graph, closed>"


def test_graph_is_prepared_for_any_target(captured: Captured, parts: gcx.Partitions) -> None:
    small, rest, _ = parts
    with gcx.Graph(captured, max_executables=2) as graph, gcx.acquire(16) as lease:
        targets: list[Any] = [small, small.resource, small.stream, small.context, [small]]
        for target in targets:
            graph.prepare(target)
            assert graph.info.instantiated == 1
        graph.prepare(rest)
        graph.prepare(lease)
        graph.prepare(lease.stream)
        assert graph.info[5:] == (2, 2, 0, 3, 1)
        wrong_targets: list[Any] = [[lease, small], [small, small]]
        for several in wrong_targets:
            with pytest.raises(gcx.InvalidValueError):
                graph.prepare(several)
        for wrong in (0, None, "24", [8]):
            with pytest.raises(TypeError, match="a graph is prepared for"):
                graph.prepare(wrong)  # type: ignore[arg-type]


def test_graph_is_prepared_for_a_layout(captured: Captured) -> None:
    with gcx.Graph(captured) as graph, gcx.acquire(24) as decode, gcx.acquire(None) as prefill:
        planned = gcx.layout({decode: 64, prefill: gcx.PARKED})
        assert list(planned) == [decode, prefill]
        assert [sms.sm_count for sms in planned.values()] == [64, 0]
        graph.prepare(planned[decode], for_leases=True)
        gcx.resize({decode: 64, prefill: None})
        graph.launch(decode)
        decode.synchronize()
        assert graph.info.instantiated == 1
    wrong: list[tuple[type[Exception], Any]] = [
        (gcx.InvalidHandleError, {decode: 8}),
        (gcx.InvalidValueError, {}),
        (TypeError, [decode]),
        (TypeError, {"decode": 8}),
    ]
    for error, sizes in wrong:
        with pytest.raises(error):
            gcx.layout(sizes)


def test_graph_for_leases_takes_no_partition(captured: Captured, part: gcx.Partition) -> None:
    with gcx.Graph(captured) as graph:
        for target in (part, part.context, part.stream):
            with pytest.raises(gcx.InvalidValueError, match="leases"):
                graph.prepare(target, for_leases=True)
        with pytest.raises(TypeError, match="for_leases must be"):
            graph.prepare(part.resource, for_leases=1)  # type: ignore[arg-type]


def test_graph_nodes_and_streams_are_lists(work: Work, parts: gcx.Partitions) -> None:
    captured = work.capture(*(part.stream for part in parts[:2]))
    graph = gcx.Graph(captured)
    captured.destroy()  # It was copied.
    kernels = [node for node in graph.nodes() if node.kind == "kernel"]
    assert sorted(node.part for node in kernels) == [0, 1]
    assert ", 2 parts" in repr(graph)
    two: list[Any] = [parts[0].stream, parts[2]]
    graph.prepare(two)
    graph.launch(two)
    for part in parts:
        part.synchronize()
    for nodes in (kernels, [node.number for node in kernels], kernels[0], []):
        graph.set_part(nodes, 0)
    graph.set_part(kernels[1], 1)
    assert graph.info.part_count == 2
    for node, part_number in ((99, 0), ([], 2)):
        with pytest.raises(gcx.InvalidValueError):
            graph.set_part(node, part_number)
    with pytest.raises(TypeError):
        graph.set_part("0", 0)  # type: ignore[arg-type]


def test_graph_kernel_parameters_are_converted(
    work: Work, captured: Captured, part: gcx.Partition
) -> None:
    graph = gcx.Graph(captured, node_priorities=True)
    assert graph.info.node_priorities
    (node,) = graph.nodes()
    assert (node.number, node.kind, node.name, node.parent) == (0, "kernel", "gcx_spin", None)
    assert (node.grid, node.block, node.cluster) == ((1, 1, 1), (1, 1, 1), (0, 0, 0))
    assert not node.cooperative
    assert node.blocks_per_sm > 0
    work.note()
    graph.set_kernel(node, grid=(4, 2), arguments=struct.pack("Q", 3_000_000))
    graph.launch(part)
    graph.set_kernel(0, block=32)
    graph.launch(part)
    part.synchronize()
    assert [run.end_ns - run.begin_ns for run in work.runs()] == [3_000_000] * 2
    (now,) = graph.nodes()
    assert (now.grid, now.block) == ((4, 2, 1), (32, 1, 1))
    wrong: list[tuple[type[Exception], dict[str, Any]]] = [
        (gcx.InvalidValueError, {"grid": 0}),
        (gcx.InvalidValueError, {"grid": ()}),
        (gcx.InvalidValueError, {"block": (1, 1, 1, 1)}),
        (gcx.InvalidValueError, {"arguments": b"123"}),
        (TypeError, {"arguments": "12345678"}),
        (TypeError, {"shared_bytes": "0"}),
    ]
    for error, what in wrong:
        with pytest.raises(error):
            graph.set_kernel(0, **what)
    with pytest.raises(gcx.InvalidValueError, match="there is no node 7; the graph has 1"):
        graph.set_kernel(7, grid=1)
    assert graph.nodes() == [now]


def test_graph_update_keeps_the_new_capture(
    work: Work, captured: Captured, parts: gcx.Partitions
) -> None:
    graph = gcx.Graph(captured)
    again = work.capture()
    graph.update(again)
    again.destroy()
    assert graph._captured is again
    other = work.capture(*(part.stream for part in parts))
    with pytest.raises(gcx.GraphUpdateError):
        graph.update(other)
    other.destroy()
    assert graph._captured is again


class CUgraphExec:
    """An executable of cuda.bindings."""

    def __int__(self) -> int:
        return 0x1000


def test_graphs_of_other_libraries_are_accepted(captured: Captured) -> None:
    handle: int = captured.handle

    class CUgraph:
        def __int__(self) -> int:
            return handle

    definition = types.SimpleNamespace(handle=CUgraph())
    others: list[Any] = [
        handle,
        CUgraph(),
        types.SimpleNamespace(graph=handle, graphExec=1),  # CuPy
        definition,  # cuda.core's GraphDefinition
        types.SimpleNamespace(graph_definition=definition),  # and GraphBuilder
    ]
    for other in others:
        with gcx.Graph(other) as graph:
            assert graph._captured is other
            assert graph.info.kernel_count == 1
        assert graph._captured is None

    def refuse() -> int:
        raise RuntimeError("keep_graph=True")

    wrong: list[tuple[Any, type[Exception], str]] = [
        (CUgraphExec(), TypeError, "executable"),
        (types.SimpleNamespace(handle=CUgraphExec()), TypeError, "executable"),
        *(
            (it, TypeError, "expected|must")
            for it in (None, "graph", 1.5, True, types.SimpleNamespace(), -1.0)
        ),
        (0, gcx.InvalidValueError, "NULL"),
        (types.SimpleNamespace(raw_cuda_graph=refuse), RuntimeError, "keep_graph"),
    ]
    for bad, error, words in wrong:
        with pytest.raises(error, match=words):
            gcx.Graph(bad)
    with pytest.raises(gcx.InvalidValueError):
        gcx.Graph(captured, max_executables=0)
    for options in ({"max_executables": 1.5}, {"node_priorities": 1}):
        with pytest.raises(TypeError):
            gcx.Graph(captured, **options)


def test_kernels_of_other_libraries_fit(work: Work, part: gcx.Partition) -> None:
    kernel = work.spinner.value
    fit = part.stream.kernel_fit(kernel, 1024)
    assert fit.sm_count == 24
    assert fit.max_blocks == fit.blocks_per_sm * 24 > 0
    assert fit.max_clusters == 0
    others: list[Any] = [
        types.SimpleNamespace(function=kernel),  # Triton
        types.SimpleNamespace(kernel=types.SimpleNamespace(ptr=kernel)),  # CuPy
        types.SimpleNamespace(handle=work.spinner),  # cuda.core
    ]
    for other in others:
        assert part.stream.kernel_fit(other, 1024) == fit
    clusters = part.stream.kernel_fit(kernel, 1024, dynamic_shared_bytes=100, cluster_blocks=2)
    assert clusters.max_blocks == 2 * clusters.max_clusters > 0
    for wrong in (None, "kernel", part):
        with pytest.raises(TypeError, match="expected a kernel"):
            part.stream.kernel_fit(wrong, 32)  # type: ignore[arg-type]
    for native, threads, words in ((0, 32, "NULL"), (1, 0, "threads"), (1, 1025, "threads")):
        with pytest.raises(gcx.InvalidValueError, match=words):
            part.stream.kernel_fit(native, threads)
    with pytest.raises(TypeError):
        part.stream.kernel_fit(kernel, 32.0)  # type: ignore[arg-type]


def test_closed_graph_and_closed_targets_are_refused(captured: Captured) -> None:
    (part,) = gcx.split([24])
    lease = gcx.acquire(8)
    stream = lease.stream
    graph = gcx.Graph(captured)
    part.close()
    lease.close()
    launches: list[Any] = [part, part.stream, lease, stream]
    targets: list[Any] = [part.stream, part.context, lease, stream]
    for closed in launches:
        with pytest.raises(gcx.Error):
            graph.launch(closed)
    for closed in targets:
        with pytest.raises(gcx.Error):
            graph.prepare(closed)
    graph.close()
    graph.close()
    calls = (
        *(lambda: graph.launch(part), lambda: graph.launch([part]), lambda: graph.prepare(part)),
        *(lambda: graph.set_part(0, 0), lambda: graph.set_kernel(0, grid=1), graph.nodes),
        *(lambda: graph.update(captured), lambda: graph.info, graph.__enter__),
    )
    for call in calls:
        with pytest.raises(gcx.InvalidHandleError, match=r"this gcx\.Graph is closed"):
            call()
    with pytest.raises(TypeError, match="pickled"):
        graph.__reduce__()


def test_graph_and_partition_are_collected_in_any_order(captured: Captured) -> None:
    for graph_first in (True, False):
        objects: dict[str, Any] = {"part": gcx.split([24])[0], "graph": gcx.Graph(captured)}
        objects["graph"].launch(objects["part"])
        for name in ("graph", "part") if graph_first else ("part", "graph"):
            del objects[name]
            gc.collect()
    assert gcx.live_contexts() == []


def test_graph_closed_while_threads_launch(
    captured: Captured, parts: gcx.Partitions, threads: ThreadPoolExecutor
) -> None:
    graph = gcx.Graph(captured)

    def launch(number: int) -> int:
        done = 0
        try:
            for _ in range(200):
                graph.launch(parts[number % 2].stream)
                done += 1
        except gcx.InvalidHandleError:
            pass
        return done

    found = [threads.submit(launch, number) for number in range(4)]
    while graph.info.launches < 100:
        pass
    graph.close()
    assert sum(done.result(60) for done in found) >= 100
    for part in parts:
        part.synchronize()


def test_graphs_at_exit_and_after_a_fork(script: Any) -> None:
    code = f"""
import os, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from work import Work
import gcx
work = Work()
(part,) = gcx.split([24])
graphs = [gcx.Graph(work.capture()) for _ in range(3)]
for graph in graphs:
    graph.launch(part)
graphs.append(graphs)
child = os.fork()
if child == 0:
    try:
        graph.nodes()
    except gcx.NotInitializedError:
        print("refused", repr(graph), flush=True)
    graph.close()
    os._exit(0)
os.waitpid(child, 0)
"""
    assert script(code) == "refused <gcx.Graph: GCX_ERROR_NOT_INITIALIZED>\n"

"""Graphs that are captured once and launched on any SMs."""

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


@pytest.fixture
def parts() -> Iterator[gcx.Partitions]:
    with gcx.split([24, None]) as parts:
        yield parts


def test_a_graph_runs_where_it_is_launched(
    work: Work, captured: Captured, parts: gcx.Partitions
) -> None:
    with gcx.Graph(captured) as graph:
        work.note()
        for _ in range(2):
            for part in parts:
                graph.launch(part.stream)
                part.synchronize()
        assert [run.sms for run in work.runs()] == [part.stream.sm_ids() for part in parts] * 2
        assert graph.info == gcx.GraphInfo(0, False, 1, 1, 1, 2, 16, 4, 2, 0)
        assert graph.device == 0
        assert repr(graph) == "<gcx.Graph of 1 nodes, 1 of them kernels, on device 0>"
    assert graph.closed
    assert repr(graph) == "<gcx.Graph, closed>"


def test_all_that_stands_for_a_stream(
    work: Work, captured: Captured, parts: gcx.Partitions
) -> None:
    part = parts[0]
    theirs = types.SimpleNamespace(cuda_stream=part.stream.native)
    graph = gcx.Graph(captured)
    work.note()
    for stream in (part, part.stream, theirs, part.stream.native, [part], (theirs,)):
        graph.launch(stream)
    part.synchronize()
    assert [run.sms for run in work.runs()] == [part.stream.sm_ids()] * 6
    assert part.context.stream_count == 1  # What was borrowed was given back.
    for wrong in (None, "stream", 1.5, [None]):
        with pytest.raises(TypeError):
            graph.launch(wrong)  # type: ignore[arg-type]


def test_executables_are_made_ahead(captured: Captured, parts: gcx.Partitions) -> None:
    small, rest = parts
    with gcx.Graph(captured, max_executables=2) as graph, gcx.acquire(16) as lease:
        places: list[Any] = [small, small.resource, small.stream, small.context, [small]]
        for place in places:
            graph.prepare(place)
            assert graph.info.made == 1
        graph.launch(small)
        assert graph.info.made == 1
        graph.prepare(rest)
        graph.prepare(lease)
        graph.prepare(lease.stream)
        assert graph.info[5:] == (2, 2, 1, 3, 1)
        graph.launch(lease)
        lease.synchronize()
        assert graph.info.made == 3
        with pytest.raises(gcx.InvalidValueError, match="leases and others"):
            graph.prepare([lease, small])
        with pytest.raises(gcx.InvalidValueError):
            graph.prepare([small, small])  # There is one part.
        for wrong in (0, None, "24", [8]):
            with pytest.raises(TypeError, match="a graph is prepared for"):
                graph.prepare(wrong)  # type: ignore[arg-type]


def test_parts_have_sms_of_their_own(work: Work, parts: gcx.Partitions) -> None:
    captured = work.capture(*(part.stream for part in parts))
    graph = gcx.Graph(captured)
    captured.destroy()  # It was copied.
    kernels = [node for node in graph.nodes() if node.kind == "kernel"]
    assert sorted(node.part for node in kernels) == [0, 1]
    assert graph.info.part_count == 2
    assert ", 2 parts" in repr(graph)
    with gcx.split([16, 32, None]) as others:
        two = [others[0].stream, others[1].stream]
        graph.prepare(others[:2])
        work.note()
        graph.launch(two)
        for stream in two:
            stream.synchronize()
        assert {run.sms for run in work.runs()} == {stream.sm_ids() for stream in two}
        with pytest.raises(gcx.InvalidValueError):
            graph.launch(others)
        for nodes in (kernels, [node.number for node in kernels]):
            graph.set_part(nodes, 0)
            graph.set_part(kernels[1], 1)
        graph.set_part(kernels, 0)
        work.note()
        graph.launch(others[2].stream)
        others[2].synchronize()
        assert {run.sms for run in work.runs()} == {others[2].stream.sm_ids()}
    with pytest.raises(gcx.InvalidValueError):
        graph.set_part(99, 0)
    count = graph.info.part_count
    with pytest.raises(gcx.InvalidValueError, match="at least one node"):
        graph.set_part([], count)
    graph.set_part([], 0)  # Nothing changes.
    assert graph.info.part_count == count
    with pytest.raises(TypeError):
        graph.set_part("0", 0)  # type: ignore[arg-type]


def test_a_kernel_s_parameters(work: Work, captured: Captured, parts: gcx.Partitions) -> None:
    graph = gcx.Graph(captured)
    (node,) = graph.nodes()
    assert (node.number, node.kind, node.name, node.parent) == (0, "kernel", "gcx_spin", None)
    assert (node.grid, node.block, node.cluster) == ((1, 1, 1), (1, 1, 1), (0, 0, 0))
    assert not node.cooperative
    assert node.blocks_per_sm > 0
    graph.prepare(parts[0])
    work.note()
    graph.set_kernel(node, grid=(4, 2), arguments=struct.pack("Q", 3_000_000))
    graph.launch(parts[0])
    graph.set_kernel(0, block=32)
    graph.launch(parts[0])
    parts[0].synchronize()
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


def test_an_update_of_all_executables(
    work: Work, captured: Captured, parts: gcx.Partitions
) -> None:
    graph = gcx.Graph(captured)
    for part in parts:
        graph.prepare(part)
    again = work.capture()
    graph.update(again)
    again.destroy()
    assert graph._captured is again
    graph.launch(parts[0])
    other = work.capture(*(part.stream for part in parts))
    with pytest.raises(gcx.GraphUpdateError):
        graph.update(other)
    other.destroy()
    assert graph._captured is again
    assert graph.info.part_count == 1


def test_a_cooperative_grid_that_is_too_large(work: Work, parts: gcx.Partitions) -> None:
    small, rest = parts
    (node,) = nodes_of(work.capture(cooperative=1))
    blocks = 108 * node.blocks_per_sm
    captured = work.capture(cooperative=blocks)
    graph = gcx.Graph(captured)
    graph.launch(rest)
    for call in (graph.prepare, graph.launch):
        with pytest.raises(gcx.LaunchTooLargeError, match="gcx_spin"):
            call(small)
    captured.destroy()


def nodes_of(captured: Captured) -> list[gcx.GraphNode]:
    with gcx.Graph(captured) as graph:
        captured.destroy()
        return graph.nodes()


class CUgraphExec:
    """What cuda.bindings gives for an executable."""

    def __int__(self) -> int:
        return 0x1000


def test_graphs_of_other_libraries(captured: Captured) -> None:
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
    for executable in (CUgraphExec(), types.SimpleNamespace(handle=CUgraphExec())):
        with pytest.raises(TypeError, match="is an executable"):
            gcx.Graph(executable)
    for wrong in (None, "graph", 1.5, True, types.SimpleNamespace(), -1.0):
        with pytest.raises(TypeError):
            gcx.Graph(wrong)  # type: ignore[arg-type]
    with pytest.raises(gcx.InvalidValueError, match="NULL"):
        gcx.Graph(0)


def test_what_torch_says_of_a_graph_it_did_not_keep() -> None:
    def refuse() -> int:
        raise RuntimeError("keep_graph=True")

    with pytest.raises(RuntimeError, match="keep_graph"):
        gcx.Graph(types.SimpleNamespace(raw_cuda_graph=refuse))


def test_wrong_arguments_of_a_graph(captured: Captured) -> None:
    with pytest.raises(gcx.InvalidValueError):
        gcx.Graph(captured, max_executables=0)
    with pytest.raises(TypeError):
        gcx.Graph(captured, max_executables=1.5)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        gcx.Graph(captured, node_priorities=1)  # type: ignore[arg-type]
    with gcx.Graph(captured, node_priorities=True) as graph:
        assert graph.info.node_priorities


def test_a_closed_graph(captured: Captured, parts: gcx.Partitions) -> None:
    graph = gcx.Graph(captured)
    graph.launch(parts[0])
    graph.close()
    graph.close()
    calls = (
        lambda: graph.launch(parts[0]),
        lambda: graph.launch([parts[0]]),
        lambda: graph.prepare(parts[0]),
        lambda: graph.set_part(0, 0),
        lambda: graph.set_kernel(0, grid=1),
        lambda: graph.update(captured),
        graph.nodes,
        lambda: graph.info,
        graph.__enter__,
    )
    for call in calls:
        with pytest.raises(gcx.InvalidHandleError, match=r"this gcx\.Graph is closed"):
            call()
    with pytest.raises(TypeError, match="pickled"):
        graph.__reduce__()


def test_a_closed_stream_or_partition(captured: Captured) -> None:
    (part,) = gcx.split([24])
    lease = gcx.acquire(8)
    stream = lease.stream
    part.close()
    lease.close()
    with gcx.Graph(captured) as graph:
        launches: list[Any] = [part, part.stream, lease, stream]
        for closed in launches:
            with pytest.raises(gcx.Error):
                graph.launch(closed)
        places: list[Any] = [part.stream, part.context, lease, stream]
        for closed in places:
            with pytest.raises(gcx.Error):
                graph.prepare(closed)


def test_collected_in_any_order(captured: Captured) -> None:
    for order in ("gp", "pg"):
        (part,) = gcx.split([24])
        graph = gcx.Graph(captured)
        graph.launch(part)
        if order == "gp":
            del graph, part
        else:
            del part
            gc.collect()
            del graph
        gc.collect()
    assert gcx.live_contexts() == []


def test_threads_launch_and_close_one_graph(captured: Captured, parts: gcx.Partitions) -> None:
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

    with ThreadPoolExecutor(4) as threads:
        found = [threads.submit(launch, number) for number in range(4)]
        while graph.info.launches < 100:
            pass
        graph.close()
        assert sum(done.result(60) for done in found) >= 100
    for part in parts:
        part.synchronize()


HERE = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})"


def test_the_process_ends_with_live_graphs(script: Any) -> None:
    code = """
from work import Work
import gcx
work = Work()
(part,) = gcx.split([24])
graphs = [gcx.Graph(work.capture()) for _ in range(3)]
for graph in graphs:
    graph.launch(part)
graphs.append(graphs)
print(len(graphs))
"""
    assert script(HERE + code) == "4\n"


def test_a_graph_in_a_forked_child(script: Any) -> None:
    code = """
import os
from work import Work
import gcx
graph = gcx.Graph(Work().capture())
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
    assert script(HERE + code) == "refused <gcx.Graph: GCX_ERROR_NOT_INITIALIZED>\n"

"""gcx.compat.tensorrt_llm, called as TensorRT-LLM calls it, on the simulated driver."""

from __future__ import annotations

import ctypes
import sys
from typing import Any

import gcx
import pytest
from engines import RouterBesideFc1  # type: ignore[import-not-found]
from gcx.compat import tensorrt_llm
from stand_ins import (  # type: ignore[import-not-found]
    FakeStream,
    FakeTorch,
    PlainStream,
    counts_of,
    flat,
    in_process,
    sms_of,
)
from work import Work  # type: ignore[import-not-found]


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> FakeTorch:
    torch = FakeTorch()
    monkeypatch.setitem(sys.modules, "torch", torch)
    return torch


def test_a_router_beside_fc1_runs_on_gcx(torch: FakeTorch, work: Work) -> None:
    layer = RouterBesideFc1(torch, tensorrt_llm.create_sm_only_gc_streams, 132)
    assert not layer.refused
    assert list(layer.pool) == [108, 116, 124]
    count = tensorrt_llm.get_current_stream_gc_sm_count
    for fc1_sms, streams in layer.pool.items():
        assert layer.run(fc1_sms, count, count) == (fc1_sms, 132 - fc1_sms)
        assert sms_of(streams[0]).isdisjoint(sms_of(streams[1]))
        with gcx.Stream.from_native(streams[0]) as fc1, gcx.Stream.from_native(streams[1]) as two:
            captured = work.capture(fc1, two)
            work.note()
            with gcx.Graph(captured) as graph:
                graph.launch(fc1)
                fc1.synchronize()
            captured.destroy()


def test_counts_in_a_capture(torch: FakeTorch, work: Work) -> None:
    """The engine asks for them in the midst of a graph's capture, which goes on."""
    fc1, router, cleanup = tensorrt_llm.create_sm_only_gc_streams(108, 24, 0)
    graph, nodes = ctypes.c_void_p(), ctypes.c_size_t()
    native = ctypes.c_void_p(fc1.cuda_stream)
    work.call("cuStreamBeginCapture_v2", native, 0)
    work.spin(fc1.cuda_stream, 1)
    for stream, count in ((fc1, 108), (router, 24), (torch.default, -1)):
        torch.current = stream
        assert tensorrt_llm.get_current_stream_gc_sm_count() == count
    work.call("cuStreamEndCapture", native, ctypes.byref(graph))
    work.call("cuGraphGetNodes", graph, None, ctypes.byref(nodes))
    assert nodes.value == 1
    work.call("cuGraphDestroy", graph)
    cleanup()


def test_counts_of_streams(torch: FakeTorch) -> None:
    """Of gcx's contexts, those over all SMs too; of no green context."""
    (part,) = gcx.split([None])
    cases = [
        (part.stream.torch(), 132),
        (PlainStream(0), -1),
        *((FakeStream(number), -1) for number in (0, 1, 2)),
    ]
    with gcx.acquire(24) as lease:
        for stream, count in [*cases, (lease.stream.torch(), 24)]:
            torch.current = stream
            assert tensorrt_llm.get_current_stream_gc_sm_count() == count
    torch.current = torch.default
    part.close()


@pytest.mark.parametrize(
    ("router_sms", "given"),
    [(24, [108, 24]), (28, [104, 28]), (10, [116, 16]), (1, [124, 8]), (0, [124, 8])],
)
def test_what_a_router_leaves(torch: FakeTorch, router_sms: int, given: list[int]) -> None:
    for fc1_sms in (132 - router_sms, 8):
        fc1, router, _ = tensorrt_llm.create_sm_only_gc_streams(fc1_sms, router_sms, 0)
        assert counts_of(fc1, router) == given


def test_a_cleanup_takes_nothing_from_others(torch: FakeTorch) -> None:
    """Streams live until it was called and their torch objects are gone, in either order."""
    fc1, router, cleanup = tensorrt_llm.create_sm_only_gc_streams(108, 24, 0)
    numbers = {fc1.cuda_stream, router.cuda_stream}
    cleanup()
    cleanup()
    fc1.synchronize()
    others = tensorrt_llm.create_sm_only_gc_streams(108, 24, 0)
    assert not numbers & {stream.cuda_stream for stream in others[:2]}
    others[2]()
    del others
    assert counts_of(fc1, router) == [108, 24]
    del fc1, router
    assert gcx.cache_stats().in_use == 0
    fc1, router, cleanup = tensorrt_llm.create_sm_only_gc_streams(108, 24, 0)
    del fc1, router
    assert gcx.cache_stats().in_use == 2
    cleanup()
    assert gcx.cache_stats().in_use == 0
    fc1, router, cleanup = tensorrt_llm.create_sm_only_gc_streams(108, 24, 0)
    del cleanup, fc1, router
    assert gcx.cache_stats().in_use == 0


def test_workqueues_of_their_own(torch: FakeTorch, version: tuple[int, int]) -> None:
    create = tensorrt_llm.create_wq_isolated_gc_streams
    if version < (13, 1):
        with pytest.raises(
            RuntimeError, match=r"^cuDeviceGetDevResource\(WQ_CONFIG\) failed with CUDA error code"
        ):
            create(108, 24, 0)
        return
    fc1, router, cleanup = create(108, 24, 0)
    assert counts_of(fc1, router) == [108, 24]
    for stream in (fc1, router):
        with gcx.Stream.from_native(stream) as mine:
            assert mine.resources.workqueue.scope == "green_ctx_balanced"
    cleanup()


def test_exceptions_of_tensorrt_llm(torch: FakeTorch) -> None:
    create = tensorrt_llm.create_sm_only_gc_streams
    refusals = [
        (
            (8, 133, 0),
            r"^cuDevSmResourceSplitByCount\(router\) failed with CUDA error code 915: .*",
        ),
        ((8, -1, 0), r"^cuDevSmResourceSplitByCount\(router\) failed with CUDA error code 915: .*"),
        ((8, 132, 0), r"^cuDevResourceGenerateDesc\(fc1\) failed with CUDA error code 914: .*132"),
        ((8, 8, 5), r"^cuDeviceGetDevResource\(SM\) failed with CUDA error code 101: .*device 5"),
        ((8, 8, -1), r"^cuDeviceGetDevResource\(SM\) failed with CUDA error code 101: "),
    ]
    for arguments, words in refusals:
        with pytest.raises(RuntimeError, match=words):
            create(*arguments)
    wrong: list[tuple[Any, Any, Any]] = [(8, 8.0, 0), (8, 8, "0"), (8, None, 0)]
    for values in wrong:
        with pytest.raises(TypeError, match="must be an int"):
            create(*values)


def test_rounds_of_tensorrt_llm_leave_nothing(torch: FakeTorch) -> None:
    held: list[Any] = []

    def turn(number: int) -> None:
        fc1, router, cleanup = tensorrt_llm.create_sm_only_gc_streams(
            8, (24, 28, 10)[number % 3], 0
        )
        torch.current = router
        assert tensorrt_llm.get_current_stream_gc_sm_count() > 0
        torch.current = torch.default
        if number % 2:
            cleanup()
        held[:] = [fc1, cleanup]  # Until the next turn.

    flat(turn)
    held.clear()


THEIRS = """
libcuda = ctypes.CDLL(gcx.driver_info().library)
everything, group = ctypes.create_string_buffer(144), ctypes.create_string_buffer(144)
assert libcuda.cuDeviceGetDevResource(0, everything, 1) == 0
one, description, green, context, stream = ctypes.c_uint(1), *(ctypes.c_void_p() for _ in range(4))
split = libcuda.cuDevSmResourceSplitByCount(group, ctypes.byref(one), everything, None, 0, 16)
assert split == libcuda.cuDevResourceGenerateDesc(ctypes.byref(description), group, 1) == 0
assert libcuda.cuGreenCtxCreate(ctypes.byref(green), description, 0, 1) == 0
assert libcuda.cuCtxFromGreenCtx(ctypes.byref(context), green) == 0
assert libcuda.cuCtxPushCurrent_v2(context) == 0
assert libcuda.cuStreamCreate(ctypes.byref(stream), 1) == 0
torch.current = FakeStream(stream.value)
print(tensorrt_llm.get_current_stream_gc_sm_count())
"""


def test_the_count_of_a_green_context_of_others(script: Any) -> None:
    assert in_process(script, THEIRS, "sim:h100@12.4") == "16\n"


def test_without_a_driver(script: Any) -> None:
    code = """
for call in (
    lambda: tensorrt_llm.create_sm_only_gc_streams(108, 24, 0),
    tensorrt_llm.get_current_stream_gc_sm_count,
    lambda: sglang.create_greenctx_stream_by_value(8, 8),
):
    torch.current = FakeStream(0x1000)
    try:
        call()
    except RuntimeError as error:
        print(str(error).partition(":")[0], isinstance(error, gcx.Error))
"""
    assert in_process(script, code, "/nowhere/libcuda.so.1").splitlines() == [
        "Cannot load libcuda (CUDA Driver API) shared library False",
        "Cannot load libcuda (CUDA Driver API) shared library False",
        "gcx.Device True",
    ]

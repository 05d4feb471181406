"""gcx.compat with a fake PyTorch; sglang and tensorrt_llm are called as those engines call them."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable
from typing import Any

import gcx
import pytest
from engines import Multiplexer, RouterNextToFc1, sgl_kernel  # type: ignore[import-not-found]
from fakes import (  # type: ignore[import-not-found]
    FakeDevice,
    FakeStream,
    FakeTorch,
    PlainStream,
    assert_rounds_leave_nothing,
    counts_of,
    in_process,
    sms_of,
)
from gcx.compat import flashinfer, sglang, tensorrt_llm
from gcx.compat.torch import GreenContext, SMPartition
from work import Work  # type: ignore[import-not-found]

CUDA = FakeDevice("cuda:0")


def test_flashinfer_equal_groups_have_a_remainder(torch: Any) -> None:
    streams, resources = flashinfer.split_device_green_ctx(CUDA, 2, 16)
    assert [resource.sm.smCount for resource in resources] == counts_of(*streams) == [16, 16, 100]
    assert resources[0].sm.minSmPartitionSize == 8
    assert resources[0].sm.smCoscheduledAlignment == 8
    assert repr(resources[0]) == "sm : smCount : 16"
    assert resources[0].resource.isdisjoint(resources[1].resource)


@pytest.mark.parametrize(
    ("requested", "given"),
    [
        ([8, 16, 24], [8, 16, 24, 84]),
        ([7], [8, 124]),
        ([10], [16, 116]),
        ([17], [24, 108]),
        ([108, 24], [108, 24]),
    ],
)
def test_flashinfer_counts_are_rounded_as_by_the_driver(
    torch: Any, requested: list[int], given: list[int]
) -> None:
    by_count = flashinfer.split_device_green_ctx_by_sm_count
    streams, resources = by_count(FakeDevice("cuda"), requested)
    assert [resource.sm.smCount for resource in resources] == given
    assert len({stream.cuda_stream for stream in streams}) == len(given)


def test_flashinfer_exceptions_are_those_of_flashinfer(torch: Any) -> None:
    by_count = flashinfer.split_device_green_ctx_by_sm_count
    equal = flashinfer.split_device_green_ctx
    by_domain = flashinfer.split_device_green_ctx_by_locality_domain
    cases: list[tuple[Any, type[Exception], str]] = [
        *(
            (lambda bad=bad: by_count(CUDA, bad), ValueError, "sm_counts")
            for bad in ([], [0], [-1])
        ),
        (lambda: by_count(CUDA, [8.0]), TypeError, "int"),  # type: ignore[list-item]
        (lambda: by_count(CUDA, [120, 17]), RuntimeError, r"\[120, 24\], 144 together.* 132"),
        (lambda: equal(CUDA, 3, 64), RuntimeError, r"code=915\(CUDA_ERROR_INVALID_RESOURCE_CONFIG"),
        (lambda: equal(CUDA, 10**9, 8), RuntimeError, "132"),
        (lambda: equal(CUDA, 0, 8), ValueError, "num_groups"),
        (lambda: by_count(FakeDevice("cuda:5"), [8]), RuntimeError, "CUDA_ERROR_INVALID_DEVICE"),
        (lambda: by_domain(CUDA), RuntimeError, "locality domains"),
        *(
            (lambda call=call: call(FakeDevice("cpu")), RuntimeError, "is no CUDA device")
            for call in (lambda cpu: equal(cpu, 1, 8), lambda cpu: by_count(cpu, [8]), by_domain)
        ),
    ]
    for call, error, words in cases:
        with pytest.raises(error, match=words):
            call()


def test_flashinfer_repeated_splits_reuse_streams(torch: Any) -> None:
    first, _ = flashinfer.split_device_green_ctx(CUDA, 1, 24)
    second, _ = flashinfer.split_device_green_ctx(CUDA, 1, 24)
    assert first[0].cuda_stream != second[0].cuda_stream
    natives = {stream.cuda_stream for stream in first}
    del first
    gc.collect()
    third, _ = flashinfer.split_device_green_ctx(CUDA, 1, 24)
    natives |= {stream.cuda_stream for stream in (*second, *third)}
    del second, third
    gc.collect()
    misses = gcx.cache_stats().misses
    for _ in range(20):
        again, _ = flashinfer.split_device_green_ctx(CUDA, 1, 24)
        assert {stream.cuda_stream for stream in again} <= natives
    assert gcx.cache_stats().misses == misses


def test_flashinfer_locality_domains_are_split(script: Any) -> None:
    code = """
for backfill in (True, False):
    streams, resources = flashinfer.split_device_green_ctx_by_locality_domain(
        FakeDevice("cuda:0"), backfill)
    print([resource.sm.smCount for resource in resources], len(streams))
"""
    assert in_process(script, code, "sim:b200@13.5") == "[74, 74] 2\n[64, 64] 2\n"


def test_flashinfer_constraints_are_those_of_the_capability() -> None:
    for major, expected in ((6, (1, 1)), (7, (2, 2)), (8, (4, 2)), (9, (8, 8)), (12, (8, 8))):
        assert flashinfer.get_sm_count_constraint(major, 0) == expected
    assert flashinfer.get_compute_capability(CUDA) == gcx.Device(0).compute_capability
    with pytest.raises(ValueError, match="CUDA device"):
        flashinfer.get_compute_capability(FakeDevice("cpu"))
    with pytest.raises(ValueError, match=r"5\.2"):
        flashinfer.get_sm_count_constraint(5, 2)


class OfNumpy:
    """A count as numpy.uint32, which is no int."""

    def __index__(self) -> int:
        return 10


def test_green_context_has_the_count_and_32_streams(torch: Any) -> None:
    context = GreenContext.create(24)
    assert (context.sm_count, context.device_id) == (24, 0)
    count: Any = OfNumpy()
    for ten in (10, count):
        assert GreenContext.create(num_sms=ten, device_id=0).sm_count == 16
    assert context.resource.sm_count == context.sm_partition.sm_count == 24
    pointers = [context.Stream().cuda_stream for _ in range(64)]
    assert len(set(pointers)) == 32
    assert pointers[:32] == pointers[32:]
    assert "24 SMs" in repr(context)


def test_green_context_set_and_pop_order_both_streams(torch: Any) -> None:
    parent = torch.cuda.current_stream()
    context = GreenContext(num_sms=24)
    context.set_context()
    current = torch.cuda.current_stream()
    assert counts_of(current) == [24]
    assert [event.stream for event in current.waited] == [parent]
    with pytest.raises(RuntimeError, match="already"):
        context.set_context()
    with pytest.raises(gcx.ContextInUseError):
        context.close()
    inner = GreenContext(num_sms=64)
    inner.set_context()
    with pytest.raises(RuntimeError, match="isn't the current"):
        context.pop_context()
    assert [event.stream for event in torch.cuda.current_stream().waited] == [current]
    inner.pop_context()
    assert torch.cuda.current_stream() is current
    context.pop_context()
    assert torch.cuda.current_stream() is parent
    assert gcx.current_context() is None
    assert [event.stream.cuda_stream for event in parent.waited] == [current.cuda_stream]
    with pytest.raises(RuntimeError, match="isn't the current"):
        context.pop_context()
    context.set_context()
    context.pop_context()
    context.close()


def test_green_contexts_of_one_split_are_disjoint(torch: Any, sms: gcx.SMResource) -> None:
    one, two = (GreenContext(sm_partition=group) for group in sms.split([24, None]).groups)
    assert gcx.verify([context.Stream() for context in (one, two)]).ok


def test_sm_partition_splits_into_disjoint_groups(torch: Any, sms: gcx.SMResource) -> None:
    whole = SMPartition.from_device()
    assert (whole.device_id, whole.sm_count, whole.coscheduled_sm_count) == (0, 132, 8)
    assert (whole.locality_domain_id, repr(whole)) == (None, "<SMPartition of 132 SMs on device 0>")
    (few, more), rest = whole.split(num_sms=(24, 40), coscheduled_sm_count=8)
    assert rest is not None
    assert [part.sm_count for part in (few, more, rest)] == [24, 40, 68]
    contexts = [GreenContext(sm_partition=part) for part in (few, more, rest)]
    assert gcx.verify([context.Stream() for context in contexts]).ok
    assert contexts[2].sm_partition.resource == rest.resource
    (all_of_it,), nothing = rest.split()
    assert (all_of_it.sm_count, nothing) == (68, None)
    (eight,), left = contexts[1].sm_partition.split(num_sms=8)
    assert left is not None
    assert (eight.sm_count, left.sm_count) == (8, 32)
    (pair, last), _ = whole.split(num_sms=[16, 0], preferred_coscheduled_sm_count=16)
    assert (pair.sm_count, last.sm_count) == (16, 116)


def test_green_context_split_makes_disjoint_contexts(torch: Any) -> None:
    few, more = GreenContext.split(num_sms=(24, 40), coscheduled_sm_count=8, device_id=0)
    assert (few.sm_count, more.sm_count, few.locality_domain_id) == (24, 40, None)
    assert gcx.verify([few.Stream(), more.Stream()]).ok
    (whole,) = GreenContext.split()
    assert whole.sm_count == 132


def test_sm_partition_options_need_newer_drivers(torch: Any, version: tuple[int, int]) -> None:
    whole = SMPartition.from_device()
    if version < (13, 1):
        for options in ({"backfill": True}, {"coscheduled_sm_count": 16}):
            with pytest.raises(gcx.NotSupportedError, match=r"13\.1"):
                whole.split(num_sms=16, **options)
    else:
        (wide,), _ = whole.split(num_sms=32, coscheduled_sm_count=16)
        (odd,), _ = whole.split(num_sms=10, backfill=True)
        assert (wide.sm_count, odd.sm_count) == (32, 10)
    if version < (13, 4):
        with pytest.raises(gcx.NotSupportedError):
            whole.split(num_sms=16, locality_domain_ids=0)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"num_sms": 10}, gcx.ResourceConfigurationError, "10"),
        ({"num_sms": [64, 128]}, gcx.ResourceConfigurationError, "132"),
        ({"num_sms": []}, ValueError, "at least one group"),
        ({"num_sms": [8, 8], "backfill": [True]}, ValueError, "different lengths"),
        ({"num_sms": -1}, ValueError, "num_sms must not be negative: -1"),
        ({"num_sms": True}, ValueError, "num_sms takes int, not True"),
        ({"num_sms": "24"}, ValueError, "num_sms takes int, not '24'"),
        ({"backfill": 1}, ValueError, "backfill takes bool, not 1"),
        ({"locality_domain_ids": -1}, ValueError, "must not be negative"),
    ],
)
def test_sm_partition_arguments_are_checked(
    torch: Any, options: dict[str, Any], error: type[Exception], words: str
) -> None:
    for split in (SMPartition.from_device(0).split, GreenContext.split):
        with pytest.raises(error, match=words):
            split(**options)
    with pytest.raises(TypeError, match=r"made of a gcx\.SMResource, not int"):
        SMPartition(3)  # type: ignore[arg-type]


def test_green_context_workqueues_need_13_1(torch: Any, version: tuple[int, int]) -> None:
    if version < (13, 1):
        with pytest.raises(gcx.NotSupportedError, match=r"13\.1"):
            GreenContext(num_sms=24, workqueue_scope="balanced")
        with pytest.raises(gcx.NotSupportedError, match=r"13\.1"):
            GreenContext.max_workqueue_concurrency()
        return
    most = GreenContext.max_workqueue_concurrency(0)
    context = GreenContext(workqueue_scope="balanced", workqueue_concurrency_limit=most)
    assert context.sm_count == 132
    with pytest.raises(ValueError, match="balanced"):
        GreenContext(num_sms=24, workqueue_scope="other")


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({}, RuntimeError, "num_sms"),
        ({"num_sms": 8, "workqueue_concurrency_limit": 2}, RuntimeError, "workqueue_scope"),
        ({"num_sms": 8, "sm_partition": 24}, ValueError, "not both"),
        ({"sm_partition": 24}, TypeError, "int"),
        ({"num_sms": 8, "device_id": 7}, RuntimeError, "device 7"),
        ({"num_sms": "24"}, TypeError, "int"),
        ({"num_sms": 1000}, gcx.ResourceConfigurationError, "132"),
    ],
)
def test_green_context_arguments_are_checked(
    torch: Any, arguments: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        GreenContext(**arguments)


def test_green_context_of_another_device_restores_the_first(script: Any) -> None:
    code = """
first, second = (torch.cuda.current_stream(device) for device in (0, 1))
context = GreenContext.create(24, device_id=1)
assert GreenContext(sm_partition=context.resource).device_id == 1
try:
    GreenContext(sm_partition=context.resource, device_id=0)
except ValueError as error:
    assert "of device 1, not of 0" in str(error), error
for _ in range(2):
    context.set_context()
    inside = torch.cuda.current_stream()
    assert inside.device == 1 and inside not in (first, second)
    assert [event.stream for event in inside.waited] == [first]
    context.pop_context()
    assert torch.cuda.current_device() == 0
    assert torch.mine()[1] == [first, second]
    assert [event.stream for event in first.waited] == [inside] and second.waited == []
    first.waited.clear()
"""
    in_process(script, code, "sim:2xh100@13.0")


def test_closed_green_context_is_refused_and_its_streams_live(torch: Any) -> None:
    context = GreenContext.create(24)
    streams = [context.Stream() for _ in range(3)]
    context.close()
    assert repr(context) == "<GreenContext, closed>"
    uses: list[Any] = [
        *(context.Stream, context.set_context, lambda: context.sm_count),
        *(lambda: context.device_id, lambda: context.resource),
    ]
    for use in uses:
        for _ in range(40):
            with pytest.raises(gcx.InvalidHandleError, match="closed"):
                use()
    assert counts_of(*streams) == [24] * 3


# SGLang and TensorRT-LLM


def test_sglang_multiplexing_has_the_counts_of_the_engine(torch: FakeTorch, work: Work) -> None:
    """Runs all pairs in turn."""
    with sgl_kernel(sglang):
        engine = Multiplexer(torch, 0)
    assert engine.sm_counts[1:-1] == [(count, 132 - count) for count in (112, 104, 96, 88, 80, 72)]
    work.note()
    for number in range(1, len(engine.pairs) - 1):
        engine.choose(number)
        finished = engine.step(
            lambda: work.spin(torch.cuda.current_stream().cuda_stream, 3),
            lambda: work.spin(torch.cuda.current_stream().cuda_stream, 1),
        )
        assert not finished.query(), "prefill is to run on while decode has ended"
        finished.synchronize()
        decode, prefill = work.runs()[-2:]
        if decode.end_ns > prefill.end_ns:
            decode, prefill = prefill, decode
        assert (prefill.sm_count, decode.sm_count) == engine.sm_counts[number]
        assert sms_of(engine.pairs[number][0]).isdisjoint(sms_of(engine.pairs[number][1]))
    engine.choose(0)
    assert counts_of(*engine.pairs[0]) == [132, 132]
    with sgl_kernel(sglang):
        assert counts_of(*engine.capped_prefill(0, 40)) == [40, 132]


@pytest.mark.parametrize(
    ("requested", "given"),
    [
        ((112, 20), [112, 20]),
        ((76, 56), [76, 56]),
        ((7, 50), [8, 56]),
        ((66, 66), [68, 64]),
        ((128, 4), [124, 8]),
        ((130, 2), [124, 8]),
    ],
)
def test_sglang_counts_are_given(
    torch: FakeTorch, requested: tuple[int, int], given: list[int]
) -> None:
    pair = sglang.create_greenctx_stream_by_value(SM_a=requested[0], SM_b=requested[1])
    assert isinstance(pair, tuple)
    assert counts_of(*pair) == given
    assert sms_of(pair[0]).isdisjoint(sms_of(pair[1]))


@pytest.mark.parametrize(
    ("floors", "given", "from_13_1"),
    [
        ((8, 8), (8, 8, 116), (8, 12, 112)),
        ((12, 24), (12, 24, 96), (12, 24, 96)),
        ((28, 28), (32, 32, 68), (32, 28, 72)),
        ((8, 24), (8, 24, 100), (8, 28, 96)),
        ((20, 50), (24, 56, 52), (24, 52, 56)),
    ],
)
def test_sglang_floors_are_given(
    torch: FakeTorch,
    version: tuple[int, int],
    floors: tuple[int, int],
    given: tuple[int, int, int],
    from_13_1: tuple[int, int, int],
) -> None:
    create = sglang.create_asymmetric_overlapped_greenctx_stream_by_value
    first, second, shared = from_13_1 if version >= (13, 1) else given
    expected = (first + shared, second + shared, first, second, shared)
    prefill, decode, counts = create(*floors)
    assert counts == expected
    assert counts_of(prefill, decode) == list(expected[:2])
    assert sms_of(prefill).overlap(sms_of(decode)) == shared
    with gcx.Stream.from_native(decode) as stream:
        assert stream.priority == -1
    if floors[0] == floors[1]:
        *_, counts = sglang.create_overlapped_greenctx_stream_by_value(floors[0], 0)
        assert counts == expected


def test_sglang_exceptions_are_those_of_sglang(torch: FakeTorch) -> None:
    by_value = sglang.create_greenctx_stream_by_value
    overlapped = sglang.create_overlapped_greenctx_stream_by_value
    asymmetric = sglang.create_asymmetric_overlapped_greenctx_stream_by_value
    calls: list[tuple[Callable[[], object], str]] = [
        (lambda: by_value(0, 8), "^SM counts must be positive"),
        (lambda: by_value(8, -1), "^SM counts must be positive"),
        (
            lambda: by_value(100, 33),
            r"^Not enough SMs available for the requested configuration: 100 \+ 33 of 132",
        ),
        (lambda: by_value(2**62, 2**62), "^Not enough SMs available for the requested conf"),
        (lambda: by_value(8, 8, 5), "device 5"),
        (lambda: by_value(8, 8, -1), "device -1"),
        (lambda: overlapped(0), "^The lane reservations must be positive and leave shared SMs"),
        (lambda: overlapped(66), "^The lane reservations must be positive and leave shared SMs"),
        (lambda: asymmetric(8, 0), "^The lane reservations must be positive and leave shared SMs"),
        (lambda: overlapped(65), "^CUDA could not create two equal protected SM partitions"),
        (lambda: asymmetric(70, 61), "^CUDA could not create two protected SM partitions"),
        (lambda: asymmetric(64, 66), "^The requested SM reservations leave no shared partition"),
    ]
    for call, words in calls:
        with pytest.raises(RuntimeError, match=words):
            call()
    for bad in (8.0, "8", None, True):
        with pytest.raises(TypeError, match="SM_b must be an int"):
            by_value(8, bad)  # type: ignore[arg-type]
    with pytest.raises(AssertionError, match="Invalid device id"):
        sglang.get_sm_available(5)


def test_sglang_rounds_leave_nothing(torch: FakeTorch) -> None:
    by_value = sglang.create_greenctx_stream_by_value
    turns: list[Callable[[], object]] = [
        lambda: by_value(112, 20, 0),
        lambda: sglang.create_overlapped_greenctx_stream_by_value(8),
        lambda: by_value(66, 66),
        lambda: pytest.raises(RuntimeError, by_value, 130, 3),
    ]

    def turn(number: int) -> None:
        turns[number % len(turns)]()

    assert_rounds_leave_nothing(turn)


@pytest.mark.parametrize(("driver", "lanes"), [("12.4", "124, 132"), ("13.5", "120, 132")])
def test_engines_on_compute_capability_10(script: Any, driver: str, lanes: str) -> None:
    """TensorRT-LLM's layer exists only for that capability."""
    code = """
with sgl_kernel(sglang):
    engine = Multiplexer(torch, 0, [(112, 36), (100, 48), (84, 64), (30, 30)])
    print([counts_of(*pair) for pair in engine.pairs])
    engine = Multiplexer(torch, 0, [(1, 1)], (16, 24))
    print(engine.sm_counts)
layer = RouterNextToFc1(torch, tensorrt_llm.create_sm_only_gc_streams, 148)
print([counts_of(*pair) for pair in layer.pool.values()], layer.refused)
"""
    assert in_process(script, code, f"sim:b200@{driver}").splitlines() == [
        "[[148, 148], [112, 36], [100, 48], [84, 64], [32, 32], [148, 148]]",
        f"[(148, 0), ({lanes}), (0, 148)]",
        "[[108, 40], [116, 32], [124, 24], [132, 16], [140, 8]] {}",
    ]


def test_sglang_device_defaults_to_that_of_torch(script: Any) -> None:
    """None is PyTorch's current device."""
    code = """
print(sglang.get_sm_available(), sglang.get_sm_available(1))
torch.set_device(1)
pairs = [sglang.create_greenctx_stream_by_value(48, 60, gpu) for gpu in (None, 0, 1)]
print(sglang.get_sm_available(), [[stream.device for stream in pair] for pair in pairs])
print([counts_of(*pair) for pair in pairs])
"""
    assert in_process(script, code, "sim:h100,a100@13.0").splitlines() == [
        "132 108",
        "108 [[1, 1], [0, 0], [1, 1]]",
        "[[48, 60], [48, 60], [48, 60]]",
    ]


def test_engines_failure_at_the_second_object_leaves_nothing(script: Any) -> None:
    """The driver has no memory for the second context, then none for the second stream."""
    code = """
gcx.Device(0)
for function in ("cuGreenCtxCreate", "cuGreenCtxStreamCreate"):
    for call in (
        lambda: sglang.create_greenctx_stream_by_value(16, 24),
        lambda: sglang.create_overlapped_greenctx_stream_by_value(16),
        lambda: tensorrt_llm.create_sm_only_gc_streams(108, 24, 0),
    ):
        print(failing(function, call).partition(": ")[0])
"""
    sglangs = "gcx.Context", "gcx.Context", "cuGreenCtxCreate(router) failed with CUDA error code 2"
    assert in_process(script, code, "sim:h100@13.0").splitlines() == [
        *sglangs,
        *("Context.stream", "Context.stream"),
        "cuGreenCtxStreamCreate(router) failed with CUDA error code 2",
    ]


def test_tensorrt_llm_router_and_fc1_are_disjoint(torch: FakeTorch, work: Work) -> None:
    layer = RouterNextToFc1(torch, tensorrt_llm.create_sm_only_gc_streams, 132)
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


def test_tensorrt_llm_count_in_a_capture_keeps_the_capture(torch: FakeTorch, work: Work) -> None:
    """The engine queries them during a capture."""
    fc1, router, cleanup = tensorrt_llm.create_sm_only_gc_streams(108, 24, 0)
    graph, nodes = ctypes.c_void_p(), ctypes.c_size_t()
    native = ctypes.c_void_p(fc1.cuda_stream)
    work.call("cuStreamBeginCapture_v2", native, 0)
    work.spin(fc1.cuda_stream, 1)
    for stream, count in ((fc1, 108), (router, 24), (torch.cuda.current_stream(), -1)):
        torch.cuda.set_stream(stream)
        assert tensorrt_llm.get_current_stream_gc_sm_count() == count
    work.call("cuStreamEndCapture", native, ctypes.byref(graph))
    work.call("cuGraphGetNodes", graph, None, ctypes.byref(nodes))
    assert nodes.value == 1
    work.call("cuGraphDestroy", graph)
    cleanup()


def test_tensorrt_llm_count_of_any_stream(torch: FakeTorch) -> None:
    """Counts streams of gcx, also over all SMs, and streams of no green context."""
    (part,) = gcx.split([None])
    cases = [
        (part.stream.torch(), 132),
        (PlainStream(0), -1),
        *((FakeStream(number), -1) for number in (0, 1, 2)),
    ]
    with gcx.acquire(24) as lease:
        for stream, count in [*cases, (lease.stream.torch(), 24)]:
            torch.cuda.set_stream(stream)
            assert tensorrt_llm.get_current_stream_gc_sm_count() == count
    torch.cuda.set_stream(FakeStream(0))
    part.close()


@pytest.mark.parametrize(
    ("router_sms", "given"),
    [(24, [108, 24]), (28, [104, 28]), (10, [116, 16]), (1, [124, 8]), (0, [124, 8])],
)
def test_tensorrt_llm_fc1_has_what_the_router_leaves(
    torch: FakeTorch, router_sms: int, given: list[int]
) -> None:
    for fc1_sms in (132 - router_sms, 8):
        fc1, router, _ = tensorrt_llm.create_sm_only_gc_streams(fc1_sms, router_sms, 0)
        assert counts_of(fc1, router) == given


def test_tensorrt_llm_cleanup_leaves_streams_in_use(torch: FakeTorch) -> None:
    """Streams end once it was called and their torch objects are gone, in either order."""
    fc1, router, cleanup = tensorrt_llm.create_sm_only_gc_streams(108, 24, 0)
    numbers = {fc1.cuda_stream, router.cuda_stream}
    cleanup()
    cleanup()
    fc1.synchronize()
    *others, end = tensorrt_llm.create_sm_only_gc_streams(108, 24, 0)
    assert not numbers & {stream.cuda_stream for stream in others}
    assert counts_of(fc1, router) == [108, 24]
    del fc1, router
    assert gcx.cache_stats().in_use == 2
    del others
    assert gcx.cache_stats().in_use == 2
    end()
    assert gcx.cache_stats().in_use == 0
    streams = tensorrt_llm.create_sm_only_gc_streams(108, 24, 0)
    del streams  # Without a call.
    assert gcx.cache_stats().in_use == 0


def test_tensorrt_llm_isolated_workqueues_need_13_1(
    torch: FakeTorch, version: tuple[int, int]
) -> None:
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


def test_tensorrt_llm_exceptions_name_the_driver_call(torch: FakeTorch) -> None:
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


def test_tensorrt_llm_rounds_leave_nothing(torch: FakeTorch) -> None:
    kept: list[Any] = []

    def turn(number: int) -> None:
        fc1, router, cleanup = tensorrt_llm.create_sm_only_gc_streams(
            8, (24, 28, 10)[number % 3], 0
        )
        torch.cuda.set_stream(router)
        assert tensorrt_llm.get_current_stream_gc_sm_count() > 0
        torch.cuda.set_stream(FakeStream(0))
        if number % 2:
            cleanup()
        kept[:] = [fc1, cleanup]  # Until the next turn.

    assert_rounds_leave_nothing(turn)
    kept.clear()


EXTERNAL = """
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
torch.cuda.set_stream(FakeStream(stream.value))
print(tensorrt_llm.get_current_stream_gc_sm_count())
"""


def test_tensorrt_llm_count_of_an_external_green_context(script: Any) -> None:
    assert in_process(script, EXTERNAL, "sim:h100@12.4") == "16\n"


def test_engines_without_a_driver_raise_runtime_error(script: Any) -> None:
    code = """
for call in (
    lambda: tensorrt_llm.create_sm_only_gc_streams(108, 24, 0),
    tensorrt_llm.get_current_stream_gc_sm_count,
    lambda: sglang.create_greenctx_stream_by_value(8, 8),
):
    torch.cuda.set_stream(FakeStream(0x1000))
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

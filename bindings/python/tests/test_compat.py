"""gcx.compat.flashinfer and gcx.compat.torch, with a fake PyTorch."""

from __future__ import annotations

import gc
from typing import Any

import gcx
import pytest
from fakes import FakeDevice, counts_of, in_process  # type: ignore[import-not-found]
from gcx.compat import flashinfer
from gcx.compat.torch import GreenContext, SMPartition

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


def test_green_context_has_the_count_and_32_streams(torch: Any) -> None:
    context = GreenContext.create(24)
    assert (context.sm_count, context.device_id) == (24, 0)
    assert GreenContext.create(num_sms=10, device_id=0).sm_count == 16
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

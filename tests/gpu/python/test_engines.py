"""gcx.compat.sglang and gcx.compat.tensorrt_llm, called as those engines call them, and
SGLang's own module if it is installed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gcx
import pytest
from gcx.compat import sglang, tensorrt_llm

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "bindings" / "python" / "tests"))

from engines import (  # type: ignore[import-not-found]
    Multiplexer,
    RouterNextToFc1,
    module_of_sglang,
    sgl_kernel,
)

ROUNDS = 1000


@pytest.fixture
def sms() -> int:
    count = gcx.Device(0).sm_count
    if count < 128:
        pytest.skip(f"the engines split GPUs of 128 SMs and more, not of {count}")
    return count


@pytest.fixture
def spatial() -> Iterator[None]:
    with sgl_kernel(sglang):
        yield


def counts_of(*streams: Any) -> tuple[int, ...]:
    return tuple(gcx.Stream.from_native(stream).sm_count for stream in streams)


def used_by(stream: Any) -> set[int]:
    """Returns the SMs that the stream's kernels run on."""
    return set(gcx.Stream.from_native(stream).sm_ids())


# SGLang


@pytest.mark.usefixtures("spatial")
def test_sglang_multiplexing_has_the_counts_of_the_engine(torch: Any, sms: int) -> None:
    engine = Multiplexer(torch, 0)
    prompt, token, weights = (
        torch.randn(rows, 4096, device="cuda", dtype=torch.bfloat16) for rows in (8192, 64, 4096)
    )
    expected = token @ weights
    results: list[Any] = []
    torch.cuda.synchronize()
    for number in range(1, len(engine.pairs) - 1):
        engine.choose(number)
        results.clear()
        finished = engine.step(
            lambda: results.append(prompt @ weights),
            lambda: results.append(token @ weights),
        )
        finished.synchronize()
        assert torch.allclose(results[0], expected, rtol=0.1, atol=1.0)
        prefill, decode = engine.pairs[number]
        assert not used_by(prefill) & used_by(decode)
        counts = counts_of(prefill, decode)
        print(f"asked for {engine.sm_counts[number]}, got {counts}")
        if sms == 132:
            assert counts == engine.sm_counts[number]
    engine.choose(0)
    assert counts_of(*engine.pairs[0]) == (sms, sms)


@pytest.mark.usefixtures("spatial")
@pytest.mark.parametrize("floors", [(8, 8), (28, 28), (8, 24), (12, 24), (20, 50)])
def test_sglang_floors_share_the_rest(torch: Any, sms: int, floors: tuple[int, int]) -> None:
    engine = Multiplexer(torch, 0, [(sms - 32, 32)], floors)
    prefill, decode = engine.pairs[1]
    first, second = used_by(prefill), used_by(decode)
    print(f"floors {floors}: {len(first - second)}, {len(second - first)}, {len(first & second)}")
    assert (len(first), len(second)) == engine.sm_counts[1]
    assert len(first - second) >= floors[0]
    assert len(second - first) >= floors[1]
    assert len(first | second) == sms
    assert gcx.Stream.from_native(decode).priority == -1


@pytest.mark.usefixtures("spatial")
def test_sglang_own_module_runs_on_gcx(torch: Any, sms: int) -> None:
    """SGLang's own, unchanged."""
    module = module_of_sglang()
    if module is None:
        pytest.skip("SGLang isn't installed")
    divisions = [[sms - 32, 32, 1], [sms - 56, 56, 8]]
    config = module.PDMuxConfig(sm_group_num=4, manual_divisions=divisions)
    module.initialize_stream_groups(0, config)
    groups, counts = module.get_stream_groups(), module.get_sm_counts()
    assert len(groups) == len(counts) == 4
    for pair, (prefill_sm, decode_sm) in list(zip(groups, counts))[1:-1]:
        got = counts_of(*pair)
        print(f"asked for {(prefill_sm, decode_sm)}, got {got}")
        assert not used_by(pair[0]) & used_by(pair[1])
        if sms == 132:
            assert got == (prefill_sm, decode_sm)
    wrong = module.PDMuxConfig(sm_group_num=3, manual_divisions=[[sms, 8, 1]])
    with pytest.raises((RuntimeError, ValueError), match=r"Not enough SMs|needs \d+ SMs"):
        module.initialize_stream_groups(0, wrong)  # Later versions check by themselves.
    module.STREAM_GROUPS.clear()


# TensorRT-LLM


def test_tensorrt_llm_router_and_fc1_are_disjoint(torch: Any, sms: int) -> None:
    """Like the engine's tuner: captures each split in a separate graph and queries the counts."""
    layer = RouterNextToFc1(torch, tensorrt_llm.create_sm_only_gc_streams, sms, sms - 24)
    assert not layer.refused
    assert len(layer.pool) == 3
    x = torch.randn(256, 4096, device="cuda", dtype=torch.bfloat16)
    experts = torch.randn(4096, 8192, device="cuda", dtype=torch.bfloat16)
    gate = torch.randn(4096, 256, device="cuda", dtype=torch.bfloat16)
    expected = x @ experts, x @ gate
    torch.cuda.synchronize()
    count = tensorrt_llm.get_current_stream_gc_sm_count
    counted: list[int] = []

    def product(matrix: Any) -> Any:
        counted.append(count())
        return x @ matrix

    for fc1_sms, (fc1, router) in layer.pool.items():
        assert not used_by(fc1) & used_by(router)
        layer.run(fc1_sms, lambda: product(experts), lambda: product(gate))  # Warms up.
        torch.cuda.synchronize()
        counted.clear()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            main = torch.cuda.current_stream()
            assert count() == -1
            for stream in (fc1, router):
                stream.wait_stream(main)
            results = layer.run(fc1_sms, lambda: product(experts), lambda: product(gate))
            for stream in (fc1, router):
                main.wait_stream(stream)
        for result in results:
            result.zero_()
        graph.replay()
        torch.cuda.synchronize()
        print(f"asked for {fc1_sms}, got {counted[::-1]}")
        assert tuple(counted[::-1]) == counts_of(fc1, router)
        for result, right in zip(results, expected):
            assert torch.allclose(result, right, rtol=0.1, atol=1.0)
        del graph


def test_tensorrt_llm_cleanup_leaves_streams_in_use(torch: Any, sms: int) -> None:
    fc1, router, cleanup = tensorrt_llm.create_sm_only_gc_streams(sms - 24, 24, 0)
    cleanup()
    cleanup()
    others = tensorrt_llm.create_sm_only_gc_streams(sms - 24, 24, 0)
    numbers = {stream.cuda_stream for stream in (fc1, router, *others[:2])}
    assert len(numbers) == 4
    with torch.cuda.stream(router):
        x = torch.ones(1 << 20, device="cuda").sum()
    router.synchronize()
    assert x.item() == 1 << 20
    others[2]()


def test_tensorrt_llm_count_of_torch_green_context(torch: Any, sms: int) -> None:
    module = pytest.importorskip("torch.cuda.green_contexts", reason="no green contexts in PyTorch")
    if not hasattr(module.GreenContext, "Stream"):
        pytest.skip(f"the GreenContext of PyTorch {torch.__version__} has no streams")
    context = module.GreenContext.create(num_sms=24, device_id=0)
    stream = context.Stream()  # It ends with its context.
    with torch.cuda.stream(stream):
        assert tensorrt_llm.get_current_stream_gc_sm_count() == 24


# Both


def test_rounds_leave_memory_flat(torch: Any, sms: int) -> None:
    def turn() -> None:
        sglang.create_greenctx_stream_by_value(sms - 32, 32, 0)
        sglang.create_overlapped_greenctx_stream_by_value(8)
        fc1, _, cleanup = tensorrt_llm.create_sm_only_gc_streams(sms - 24, 24, 0)
        with torch.cuda.stream(fc1):
            assert tensorrt_llm.get_current_stream_gc_sm_count() == counts_of(fc1)[0]
        cleanup()

    for _ in range(10):
        turn()
    torch.cuda.synchronize()
    before, misses = torch.cuda.mem_get_info()[0], gcx.cache_stats().misses
    for _ in range(ROUNDS):
        turn()
    torch.cuda.synchronize()
    lost = before - torch.cuda.mem_get_info()[0]
    print(f"{ROUNDS} rounds of 3 pairs: {lost / 2**20:.2f} MiB of device memory less")
    assert gcx.cache_stats().misses == misses
    assert lost <= 0

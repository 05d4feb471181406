"""gcx.compat.sglang, called as SGLang calls it, on the simulated driver."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import gcx
import pytest
from engines import Multiplexer, module_of_sglang, sgl_kernel  # type: ignore[import-not-found]
from gcx.compat import sglang
from stand_ins import (  # type: ignore[import-not-found]
    FakeTorch,
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


@pytest.fixture
def spatial(torch: FakeTorch) -> Iterator[None]:
    with sgl_kernel(sglang):
        yield


@pytest.mark.usefixtures("spatial")
def test_multiplexing_runs_on_gcx(torch: FakeTorch, work: Work) -> None:
    """All pairs in turn, prefill beside decode, each on as many SMs as the engine was told."""
    engine = Multiplexer(torch, 0)
    assert engine.sm_counts[1:-1] == [(count, 132 - count) for count in (112, 104, 96, 88, 80, 72)]
    work.note()
    for number in range(1, len(engine.pairs) - 1):
        engine.choose(number)
        finished = engine.step(
            lambda: work.spin(torch.current.cuda_stream, 3),
            lambda: work.spin(torch.current.cuda_stream, 1),
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


@pytest.mark.usefixtures("spatial", "torch")
def test_the_module_of_sglang_runs_on_gcx() -> None:
    """SGLang's own, unchanged, where it is installed."""
    pytest.importorskip("yaml")
    module = module_of_sglang()
    if module is None:
        pytest.skip("SGLang isn't installed")
    module.initialize_stream_groups(0, module.PDMuxConfig())
    groups, counts = module.get_stream_groups(), module.get_sm_counts()
    assert counts[1:-1] == [(count, 132 - count) for count in (112, 104, 96, 88, 80, 72)]
    for pair, (prefill, decode) in [*zip(groups, counts)][1:-1]:
        assert counts_of(*pair) == [prefill, decode]
        assert sms_of(pair[0]).isdisjoint(sms_of(pair[1]))
    manual = module.PDMuxConfig(sm_group_num=3, manual_divisions=[[100, 32, 1]])
    module.initialize_stream_groups(0, manual)
    assert counts_of(*module.get_stream_groups()[1]) == [100, 32]
    module.set_current_stream_idx(1)
    assert module.get_current_stream_idx() == 1
    with pytest.raises(RuntimeError, match="Not enough SMs"):
        module.initialize_stream_groups(0, module.PDMuxConfig(3, [[132, 8, 1]]))
    module.STREAM_GROUPS.clear()


@pytest.mark.usefixtures("spatial")
def test_multiplexing_by_floors_runs_on_gcx(torch: FakeTorch, version: tuple[int, int]) -> None:
    newer = version >= (13, 1)  # Where the odd group of 12 is with the last ones alone.
    for floors, alone in (
        ((8, 8), (8, 12) if newer else (8, 8)),
        ((28, 28), (32, 28) if newer else (32, 32)),
        ((12, 24), (12, 24)),
    ):
        engine = Multiplexer(torch, 0, [(96, 36), (64, 68)], floors)
        shared = 132 - sum(alone)
        assert engine.sm_counts[1:-1] == [(alone[0] + shared, alone[1] + shared)] * 2
        prefill, decode = engine.pairs[1]
        assert counts_of(prefill, decode) == list(engine.sm_counts[1])
        assert sms_of(prefill).overlap(sms_of(decode)) == shared
        with gcx.Stream.from_native(decode) as stream:
            assert stream.priority == -1
    prefill, decode = engine.capped_prefill(0, 40)
    assert counts_of(prefill, decode) == [40, 132]


@pytest.mark.parametrize(
    ("asked", "given"),
    [
        ((112, 20), [112, 20]),
        ((76, 56), [76, 56]),
        ((16, 44), [16, 44]),
        ((1, 1), [8, 8]),
        ((7, 50), [8, 56]),
        ((66, 66), [68, 64]),
        ((101, 31), [104, 28]),
        ((128, 4), [124, 8]),
        ((130, 2), [124, 8]),
        ((131, 1), [124, 8]),
    ],
)
def test_what_two_counts_give(torch: FakeTorch, asked: tuple[int, int], given: list[int]) -> None:
    pair = sglang.create_greenctx_stream_by_value(SM_a=asked[0], SM_b=asked[1])
    assert isinstance(pair, tuple)
    assert counts_of(*pair) == given
    assert sms_of(pair[0]).isdisjoint(sms_of(pair[1]))


@pytest.mark.parametrize(
    ("floors", "given", "from_13_1"),
    [
        ((8, 8), (8, 8, 116), (8, 12, 112)),
        ((28, 28), (32, 32, 68), (32, 28, 72)),
        ((60, 60), (60, 64, 8), (60, 64, 8)),
        ((8, 24), (8, 24, 100), (8, 28, 96)),
        ((12, 8), (12, 8, 112), (12, 8, 112)),
        ((20, 50), (24, 56, 52), (24, 52, 56)),
    ],
)
def test_what_two_floors_give(
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
    if floors[0] == floors[1]:
        *_, counts = sglang.create_overlapped_greenctx_stream_by_value(floors[0], 0)
        assert counts == expected


def test_exceptions_of_sglang(torch: FakeTorch) -> None:
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


def test_rounds_of_sglang_leave_nothing(torch: FakeTorch) -> None:
    by_value = sglang.create_greenctx_stream_by_value
    turns: list[Callable[[], object]] = [
        lambda: by_value(112, 20, 0),
        lambda: sglang.create_overlapped_greenctx_stream_by_value(8),
        lambda: by_value(66, 66),
        lambda: pytest.raises(RuntimeError, by_value, 130, 3),
    ]

    def turn(number: int) -> None:
        turns[number % len(turns)]()

    flat(turn)


@pytest.mark.parametrize(("driver", "lanes"), [("12.4", "124, 132"), ("13.5", "120, 132")])
def test_on_compute_capability_10(script: Any, driver: str, lanes: str) -> None:
    """With TensorRT-LLM's layer, which is for that one alone."""
    code = """
with sgl_kernel(sglang):
    engine = Multiplexer(torch, 0, [(112, 36), (100, 48), (84, 64), (30, 30)])
    print([counts_of(*pair) for pair in engine.pairs])
    engine = Multiplexer(torch, 0, [(1, 1)], (16, 24))
    print(engine.sm_counts)
layer = RouterBesideFc1(torch, tensorrt_llm.create_sm_only_gc_streams, 148)
print([counts_of(*pair) for pair in layer.pool.values()], layer.refused)
"""
    assert in_process(script, code, f"sim:b200@{driver}").splitlines() == [
        "[[148, 148], [112, 36], [100, 48], [84, 64], [32, 32], [148, 148]]",
        f"[(148, 0), ({lanes}), (0, 148)]",
        "[[108, 40], [116, 32], [124, 24], [132, 16], [140, 8]] {}",
    ]


def test_the_device_that_is_meant(script: Any) -> None:
    """None is PyTorch's current device; each call is for one device alone."""
    code = """
print(sglang.get_sm_available(), sglang.get_sm_available(1))
torch.device = 1
pairs = [sglang.create_greenctx_stream_by_value(48, 60, gpu) for gpu in (None, 0, 1)]
print(sglang.get_sm_available(), [[stream.device for stream in pair] for pair in pairs])
print([counts_of(*pair) for pair in pairs])
"""
    assert in_process(script, code, "sim:h100,a100@13.0").splitlines() == [
        "132 108",
        "108 [[1, 1], [0, 0], [1, 1]]",
        "[[48, 60], [48, 60], [48, 60]]",
    ]


def test_what_fails_half_way_leaves_nothing(script: Any) -> None:
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

"""Repartitioning takes microseconds, also under load. pytest -s shows the measurements."""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable
from typing import Any

import gcx
import pytest
from gcx.compat import flashinfer


def _with_gcx(counts: list[int]) -> None:
    """Splits, makes two contexts and streams, and closes them."""
    (first, second), _ = gcx.Device(0).resources.sm.split(counts)
    contexts = gcx.Context(first), gcx.Context(second)
    streams = contexts[0].stream(), contexts[1].stream()
    for made in (*streams, *contexts):
        made.close()


def _times_us(call: Callable[[], object], rounds: int) -> list[float]:
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        call()
        times.append((time.perf_counter() - start) * 1e6)
    return times


def _ratio(name: str, driver: list[float], ours: list[float]) -> float:
    slow, fast = statistics.median(driver), statistics.median(ours)
    print(f"{name}: the driver's calls {slow:.0f} us, gcx {fast:.2f} us, {slow / fast:.0f} times")
    return slow / fast


def _free_bytes(torch: Any) -> int:
    torch.cuda.synchronize()
    return int(torch.cuda.mem_get_info()[0])


@pytest.fixture
def driver_calls() -> Callable[[int], None]:
    """FlashInfer's driver calls for groups of 24 SMs, plus the destruction that it omits."""
    driver = pytest.importorskip("cuda.bindings.driver", reason="cuda.bindings isn't installed")

    def ask(answer: Any) -> Any:
        assert int(answer[0]) == 0, answer[0]
        return answer[1] if len(answer) == 2 else answer[1:]

    ask((*driver.cuInit(0), None))
    device = ask(driver.cuDeviceGet(0))
    kind = driver.CUdevResourceType.CU_DEV_RESOURCE_TYPE_SM

    def call(count: int) -> None:
        whole = ask(driver.cuDeviceGetDevResource(device, kind))
        groups, _, _ = ask(driver.cuDevSmResourceSplitByCount(count, whole, 0, 24))
        made = []
        for group in groups:
            description = ask(driver.cuDevResourceGenerateDesc([group], 1))
            context = ask(driver.cuGreenCtxCreate(description, device, 1))
            stream = ask(driver.cuGreenCtxStreamCreate(context, 1, 0))
            made.append((context, stream))
        for context, stream in made:
            ask((*driver.cuStreamDestroy(stream), None))
            ask((*driver.cuGreenCtxDestroy(context), None))

    return call


def test_repartitioning_is_faster_than_driver_calls(driver_calls: Callable[[int], None]) -> None:
    with gcx.Context(gcx.Device(0).resources.sm.split([8]).groups[0]):
        driver_calls(2)
        _with_gcx([24, 24])
        driver: list[float] = []
        ours: list[float] = []
        for _ in range(5):
            driver += _times_us(lambda: driver_calls(2), 10)
            ours += _times_us(lambda: _with_gcx([24, 24]), 500)
    # Far below the usual ratio, for busy machines.
    assert _ratio("split, 2 contexts, 2 streams, close", driver, ours) > 30


def test_resize_under_load_is_faster_than_driver_calls(
    torch: Any, driver_calls: Callable[[int], None]
) -> None:
    """Other SMs are busy for about 15 ms in each round; the driver may wait for all of that."""
    a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    b = a @ a
    with gcx.acquire(64) as busy, gcx.acquire(24) as lease:
        counts = itertools.cycle((64, 24))

        def resize() -> None:
            lease.resize(next(counts))

        resize()
        driver_calls(1)
        torch.cuda.synchronize()
        driver: list[float] = []
        ours: list[float] = []
        for _ in range(20):
            with torch.cuda.stream(busy.stream.torch()):
                for _ in range(10):
                    torch.mm(a, a, out=b)
            ours += _times_us(resize, 100)
            assert not busy.query(), "the load ended before all was measured"
            driver += _times_us(lambda: driver_calls(1), 1)
            busy.synchronize()
    assert _ratio("a resize under load", driver, ours) > 100


def test_compat_is_flat_over_1000_rounds(torch: Any) -> None:
    device = torch.device("cuda:0")
    for _ in range(3):
        flashinfer.split_device_green_ctx(device, 1, 24)
    free = _free_bytes(torch)
    for _ in range(1000):
        flashinfer.split_device_green_ctx(device, 1, 24)
    assert free - _free_bytes(torch) < 8 << 20

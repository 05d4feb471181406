"""Beyond, 3: microseconds, under load, in bounded memory.

Each prints what it measured: pytest -s."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import gcx
import pytest
from gcx.compat import flashinfer


def _with_gcx(sms: gcx.SMResource, counts: list[int]) -> None:
    """Split, two contexts, two streams, and close."""
    groups, _ = sms.split(counts)
    contexts = [group.context() for group in groups]
    streams = [context.stream() for context in contexts]
    for thing in (*streams, *contexts):
        thing.close()


def _median_us(call: Callable[[], object], rounds: int) -> float:
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e6


@pytest.fixture
def driver() -> Any:
    return pytest.importorskip("cuda.bindings.driver", reason="cuda.bindings isn't installed")


def test_repartitioning_beside_raw_calls(driver: Any) -> None:
    """Beside what FlashInfer does: the driver's own calls through cuda.bindings, with the
    destruction that it leaves out."""

    def ask(answer: Any) -> Any:
        assert int(answer[0]) == 0, answer[0]
        return answer[1] if len(answer) == 2 else answer[1:]

    sms = gcx.Device(0).resources.sm
    with sms.split([8]).groups[0].context():
        device = ask(driver.cuDeviceGet(0))
        kind = driver.CUdevResourceType.CU_DEV_RESOURCE_TYPE_SM

        def raw() -> None:
            whole = ask(driver.cuDeviceGetDevResource(device, kind))
            groups, _, _ = ask(driver.cuDevSmResourceSplitByCount(2, whole, 0, 24))
            made = []
            for group in groups:
                description = ask(driver.cuDevResourceGenerateDesc([group], 1))
                context = ask(driver.cuGreenCtxCreate(description, device, 1))
                stream = ask(driver.cuGreenCtxStreamCreate(context, 1, 0))
                made.append((context, stream))
            for context, stream in made:
                ask((*driver.cuStreamDestroy(stream), None))
                ask((*driver.cuGreenCtxDestroy(context), None))

        raw()
        _with_gcx(sms, [24, 24])
        theirs = _median_us(raw, 30)
        ours = _median_us(lambda: _with_gcx(sms, [24, 24]), 1000)
    print(f"split, 2 contexts, 2 streams, close: raw {theirs:.0f} us, gcx {ours:.1f} us, "
          f"{theirs / ours:.0f} times")  # fmt: skip
    assert theirs / ours > 30


def test_repartitioning_beside_cuda_core() -> None:
    core = pytest.importorskip("cuda.core", reason="cuda.core isn't installed")
    if not all(hasattr(core, name) for name in ("Device", "SMResourceOptions", "ContextOptions")):
        pytest.skip(f"this cuda.core ({getattr(core, '__version__', '?')}) has no green contexts")
    device = core.Device(0)
    device.set_current()

    def theirs_once() -> None:
        groups, _ = device.resources.sm.split(core.SMResourceOptions(count=(24, 24)))
        contexts = [
            device.create_context(core.ContextOptions(resources=[group])) for group in groups
        ]
        streams = [context.create_stream() for context in contexts]
        for thing in (*streams, *contexts):
            thing.close()

    try:
        theirs_once()
    except Exception as error:
        pytest.skip(f"cuda.core can't do this here: {type(error).__name__}: {error}")
    sms = gcx.Device(0).resources.sm
    _with_gcx(sms, [24, 24])
    theirs = _median_us(theirs_once, 30)
    ours = _median_us(lambda: _with_gcx(sms, [24, 24]), 1000)
    print(f"split, 2 contexts, 2 streams, close: cuda.core {theirs:.0f} us, gcx {ours:.1f} us, "
          f"{theirs / ours:.0f} times")  # fmt: skip
    assert theirs / ours > 30


def test_device_memory_is_flat_over_10000_rounds(torch: Any) -> None:
    sms = gcx.Device(0).resources.sm
    counts = ([24, None], [108, 24], [64, 64]) if sms.sm_count >= 132 else ([24, None], [32, 8])
    for wanted in counts:
        for part in gcx.split(wanted):
            part.close()
    torch.cuda.synchronize()
    free = torch.cuda.mem_get_info()[0]
    for number in range(10_000):
        for part in gcx.split(counts[number % len(counts)]):
            part.close()
    torch.cuda.synchronize()
    lost = free - torch.cuda.mem_get_info()[0]
    print(f"10,000 rounds: {lost / 2**20:.1f} MiB less is free; {gcx.cache_stats()}")
    assert lost < 8 << 20


def test_compat_is_flat_over_1000_rounds(torch: Any) -> None:
    device = torch.device("cuda:0")
    for _ in range(3):
        flashinfer.split_device_green_ctx(device, 1, 24)
    torch.cuda.synchronize()
    free = torch.cuda.mem_get_info()[0]
    for _ in range(1000):
        flashinfer.split_device_green_ctx(device, 1, 24)
    assert free - torch.cuda.mem_get_info()[0] < 8 << 20


def test_a_context_that_is_kept_waits_for_no_kernel(torch: Any) -> None:
    """While the whole device computes, splitting again takes microseconds."""
    sms = gcx.Device(0).resources.sm
    _with_gcx(sms, [24, 24])
    x = torch.randn(16384, 16384, device="cuda", dtype=torch.bfloat16)
    x @ x
    torch.cuda.synchronize()
    for _ in range(20):
        x @ x
    busy = not torch.cuda.current_stream().query()
    took = _median_us(lambda: _with_gcx(sms, [24, 24]), 100)
    still_busy = not torch.cuda.current_stream().query()
    torch.cuda.synchronize()
    print(f"under load: {took:.1f} us")
    assert busy, "the load ended before anything was measured"
    assert still_busy, "the load ended before all was measured"
    assert took < 1000

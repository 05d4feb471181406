"""Costs: microseconds, under load, in bounded memory. pytest -s shows the measurements."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import gcx
import pytest
from gcx.compat import flashinfer
from gcx.compat.torch import GreenContext


def _with_gcx(sms: gcx.SMResource, counts: list[int]) -> None:
    """Splits, makes two contexts and streams, and closes them."""
    (first, second), _ = sms.split(counts)
    contexts = gcx.Context(first), gcx.Context(second)
    streams = contexts[0].stream(), contexts[1].stream()
    streams[0].close()
    streams[1].close()
    contexts[0].close()
    contexts[1].close()


def _median_us(call: Callable[[], object], rounds: int) -> float:
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e6


def _side_by_side(name: str, theirs: Callable[[], object], ours: Callable[[], object]) -> None:
    """Compares the medians of both, measured in turns."""
    theirs()
    ours()
    rounds = [(_median_us(theirs, 10), _median_us(ours, 500)) for _ in range(5)]
    slow, fast = (statistics.median(times) for times in zip(*rounds))
    print(f"split, 2 contexts, 2 streams, close: {name} {slow:.0f} us, gcx {fast:.2f} us, "
          f"{slow / fast:.0f} times")  # fmt: skip
    assert slow / fast > 30  # Far below the usual ratio, for busy machines.


def test_costs_of_each_call() -> None:
    sms = gcx.Device(0).resources.sm
    (group, _), _ = sms.split([24, 24])
    with gcx.Context(group) as context:
        calls: dict[str, Callable[[], object]] = {
            "split": lambda: sms.split([24, 24]),
            "plan": lambda: sms.plan([24, 24]),
            "context, close": lambda: gcx.Context(group).close(),
            "stream, close": lambda: context.stream().close(),
        }
        for name, call in calls.items():
            print(f"{name}: {_median_us(call, 1000):.2f} us")
    assert gcx.cache_stats().in_use == 0


@pytest.fixture
def driver() -> Any:
    return pytest.importorskip("cuda.bindings.driver", reason="cuda.bindings isn't installed")


def test_repartitioning_is_faster_than_driver_calls(driver: Any) -> None:
    """Compares with FlashInfer's driver calls by cuda.bindings, plus the destruction it omits."""

    def ask(answer: Any) -> Any:
        assert int(answer[0]) == 0, answer[0]
        return answer[1] if len(answer) == 2 else answer[1:]

    sms = gcx.Device(0).resources.sm
    with gcx.Context(sms.split([8]).groups[0]):
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

        _side_by_side("the driver's calls", raw, lambda: _with_gcx(sms, [24, 24]))


def test_repartitioning_is_faster_than_cuda_core() -> None:
    core = pytest.importorskip("cuda.core", reason="cuda.core isn't installed")
    if not all(hasattr(core, name) for name in ("Device", "SMResourceOptions", "ContextOptions")):
        pytest.skip(f"this cuda.core ({getattr(core, '__version__', '?')}) has no green contexts")
    device = core.Device(0)
    device.set_current()

    def theirs_once() -> None:
        (first, second), _ = device.resources.sm.split(core.SMResourceOptions(count=(24, 24)))
        contexts = (
            device.create_context(core.ContextOptions(resources=[first])),
            device.create_context(core.ContextOptions(resources=[second])),
        )
        streams = contexts[0].create_stream(), contexts[1].create_stream()
        streams[0].close()
        streams[1].close()
        contexts[0].close()
        contexts[1].close()

    try:
        theirs_once()
    except Exception as error:
        pytest.skip(f"cuda.core can't do this here: {type(error).__name__}: {error}")
    sms = gcx.Device(0).resources.sm
    _side_by_side("cuda.core", theirs_once, lambda: _with_gcx(sms, [24, 24]))


def test_repartitioning_is_faster_than_torch(torch: Any) -> None:
    """PyTorch's class splits in create, without disjointness, and destroys in its destructor."""
    theirs = pytest.importorskip("torch.cuda.green_contexts", reason="PyTorch has no GreenContext")
    torch.zeros(1, device="cuda")

    def once(kind: Any) -> None:
        contexts = kind.create(num_sms=24, device_id=0), kind.create(num_sms=24, device_id=0)
        for context in contexts:
            context.Stream()

    sms = gcx.Device(0).resources.sm
    _side_by_side("PyTorch", lambda: once(theirs.GreenContext), lambda: _with_gcx(sms, [24, 24]))
    _side_by_side("PyTorch", lambda: once(theirs.GreenContext), lambda: once(GreenContext))


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


def test_cached_context_waits_for_no_kernel(torch: Any) -> None:
    """A repeated split takes microseconds while the whole device computes."""
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


@pytest.mark.parametrize("mib", [16, 256])
def test_elementwise_kernel_on_few_sms(torch: Any, mib: int) -> None:
    """Measures it alone and next to a matrix product on the other SMs, for tensors within the L2
    cache and larger ones."""
    x = torch.zeros(mib << 18, device="cuda")
    y = torch.empty_like(x)
    a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    b, c = torch.randn_like(a), torch.empty_like(a)
    moved = 2 * x.numel() * x.element_size()
    rounds, products = 2560 // mib, 12

    class Timed:
        """Milliseconds of each of a number of calls in a stream."""

        def __init__(self, stream: Any, calls: int, call: Callable[[], object]) -> None:
            self._start, self._end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            self._calls = calls
            with torch.cuda.stream(stream):
                self._start.record()
                for _ in range(calls):
                    call()
                self._end.record()

        def running(self) -> bool:
            return not self._end.query()

        def each(self) -> float:
            self._end.synchronize()
            return float(self._start.elapsed_time(self._end)) / self._calls

    def elementwise(stream: Any) -> Timed:
        return Timed(stream, rounds, lambda: torch.mul(x, 2.0, out=y))

    def product(stream: Any) -> Timed:
        return Timed(stream, products, lambda: torch.mm(a, b, out=c))

    plain = torch.cuda.Stream()
    elementwise(plain).each()
    product(plain).each()
    whole = statistics.median(elementwise(plain).each() for _ in range(5))
    print(f"elementwise, {mib} MiB to {mib} MiB, whole device: {whole:.4f} ms, "
          f"{moved / whole / 1e9:.2f} TB/s")  # fmt: skip
    print("SMs  alone ms  TB/s  by share ms  beside ms  beside/alone  product: alone ms  beside ms")
    for count in (8, 16, 24, 32, 48, 64):
        small, rest = gcx.split([count, None])
        with small, rest:
            few, many = small.stream.torch(), rest.stream.torch()
            elementwise(few).each()
            product(many).each()
            alone = statistics.median(elementwise(few).each() for _ in range(5))
            product_alone = product(many).each()
            load = product(many)
            beside = elementwise(few).each()
            assert load.running(), "the product ended before the elementwise kernels"
            product_beside = load.each()
            torch.cuda.empty_cache()
        share = whole * gcx.Device(0).sm_count / small.sm_count
        print(f"{small.sm_count:3}  {alone:8.4f}  {moved / alone / 1e9:4.2f}  {share:11.4f}  "
              f"{beside:9.4f}  {beside / alone:12.2f}  {product_alone:17.3f}  "
              f"{product_beside:9.3f}")  # fmt: skip
        assert alone > 2 * whole or small.sm_count > 16

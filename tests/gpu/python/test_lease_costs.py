"""The cost of a resize compared with other ways to the same SMs, idle and next to a busy neighbour.

pytest -s shows the measurements with their distributions.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import gcx
import pytest

# What changes: 24 SMs and 64, in turns, while a neighbour has 64 others or is asked for nothing.
SIZES = (24, 64)
NEIGHBOUR = 64


def _times_us(call: Callable[[int], object], rounds: int) -> list[float]:
    times = []
    for number in range(rounds):
        start = time.perf_counter()
        call(number)
        times.append((time.perf_counter() - start) * 1e6)
    return sorted(times)


def _said(name: str, times: list[float]) -> str:
    return (
        f"{name}: {times[len(times) // 2]:.2f} us, 99th percentile "
        f"{times[len(times) * 99 // 100]:.2f}, longest {times[-1]:.1f}, of {len(times)}"
    )


class _Neighbour:
    """A lease with work of about 15 ms at a time."""

    PRODUCTS = 10

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
        self._b = torch.empty_like(self._a)
        self._lease = gcx.acquire(NEIGHBOUR, name="neighbour")
        self.begin()
        self._lease.synchronize()

    def begin(self) -> None:
        with self._torch.cuda.stream(self._lease.stream.torch()):
            for _ in range(self.PRODUCTS):
                self._torch.mm(self._a, self._a, out=self._b)

    def end(self) -> bool:
        """Waits for the work; returns whether there was any left."""
        busy = not self._lease.query()
        self._lease.synchronize()
        return busy

    def close(self) -> None:
        self._lease.close()


@pytest.fixture
def neighbour(torch: Any) -> Iterator[_Neighbour]:
    made = _Neighbour(torch)
    yield made
    made.close()


def _lease_ways() -> Iterator[tuple[str, Callable[[int], object]]]:
    def acquire_and_release(_: int) -> None:
        gcx.acquire(SIZES[0]).close()

    acquire_and_release(0)
    yield "acquire and release", acquire_and_release
    with gcx.acquire(SIZES[0]) as lease:
        for size in SIZES:
            lease.resize(size)
        yield "resize", lambda number: lease.resize(SIZES[number % 2])


def _raw() -> Callable[[int], object]:
    """Makes FlashInfer's driver calls, plus the destruction that it omits."""
    driver = pytest.importorskip("cuda.bindings.driver", reason="cuda.bindings isn't installed")

    def ask(answer: Any) -> Any:
        assert int(answer[0]) == 0, answer[0]
        return answer[1] if len(answer) == 2 else answer[1:]

    device = ask(driver.cuDeviceGet(0))
    kind = driver.CUdevResourceType.CU_DEV_RESOURCE_TYPE_SM

    def once(number: int) -> None:
        whole = ask(driver.cuDeviceGetDevResource(device, kind))
        groups, _, _ = ask(driver.cuDevSmResourceSplitByCount(1, whole, 0, SIZES[number % 2]))
        description = ask(driver.cuDevResourceGenerateDesc([groups[0]], 1))
        context = ask(driver.cuGreenCtxCreate(description, device, 1))
        stream = ask(driver.cuGreenCtxStreamCreate(context, 1, 0))
        ask((*driver.cuStreamDestroy(stream), None))
        ask((*driver.cuGreenCtxDestroy(context), None))

    return once


def _cuda_core() -> Callable[[int], object]:
    core = pytest.importorskip("cuda.core", reason="cuda.core isn't installed")
    if not hasattr(core, "SMResourceOptions"):
        pytest.skip(f"this cuda.core ({getattr(core, '__version__', '?')}) has no green contexts")
    device = core.Device(0)
    device.set_current()

    def once(number: int) -> None:
        options = core.SMResourceOptions(count=SIZES[number % 2])
        (group,), _ = device.resources.sm.split(options)
        context = device.create_context(core.ContextOptions(resources=[group]))
        context.create_stream().close()
        context.close()

    return once


def _torch_own() -> Callable[[int], object]:
    theirs = pytest.importorskip("torch.cuda.green_contexts", reason="PyTorch has no GreenContext")

    def once(number: int) -> None:
        theirs.GreenContext.create(num_sms=SIZES[number % 2], device_id=0).Stream()

    return once


def _flashinfer() -> Callable[[int], object]:
    green = pytest.importorskip("flashinfer.green_ctx", reason="FlashInfer isn't installed")
    torch = pytest.importorskip("torch")
    device = torch.device("cuda:0")
    return lambda number: green.split_device_green_ctx(device, 1, SIZES[number % 2])


OTHERS = {
    "the driver's calls": _raw,
    "cuda.core": _cuda_core,
    "PyTorch": _torch_own,
    "FlashInfer": _flashinfer,
}


def test_lease_costs_idle_and_next_to_a_neighbour(neighbour: _Neighbour) -> None:
    for name, call in _lease_ways():
        print(_said(f"{name}, idle", _times_us(call, 2000)))
    for name, call in _lease_ways():
        times: list[float] = []
        for _ in range(20):
            neighbour.begin()
            times += _times_us(call, 100)
            assert neighbour.end(), "the neighbour's work ended before all was measured"
        print(_said(f"{name}, beside a busy neighbour", sorted(times)))


@pytest.mark.parametrize("other", OTHERS)
def test_resize_compared_with_other_ways(neighbour: _Neighbour, other: str) -> None:
    """Measures in turns a resize, and another way to the same SMs."""
    theirs = OTHERS[other]()

    def tell(where: str, ours: list[float], slow: list[float]) -> float:
        times = sorted(slow)[len(slow) // 2] / sorted(ours)[len(ours) // 2]
        print(_said(f"{other}, {where}", sorted(slow)))
        print(_said(f"gcx's resize, {where}", sorted(ours)), f"- {times:.0f} times faster")
        return times

    with gcx.acquire(SIZES[0]) as lease:

        def resize(number: int) -> None:
            lease.resize(SIZES[number % 2])

        for number in range(2):
            resize(number)
            theirs(number)
        ours, slow = [], []
        for _ in range(20):
            ours += _times_us(resize, 100)
            slow += _times_us(theirs, 2)
        tell("idle", ours, slow)
        ours, slow = [], []
        for _ in range(20):
            neighbour.begin()
            ours += _times_us(resize, 100)
            # It may wait for all of the neighbour's work.
            slow += _times_us(theirs, 1)
            neighbour.end()
        under_load = tell("beside a busy neighbour", ours, slow)
    # Below the usual ratio, for busy machines.
    assert under_load > 100


def test_memory_is_flat_over_10000_random_changes(torch: Any) -> None:
    import random
    import resource

    pick = random.Random(20261121)

    def change() -> None:
        gcx.resize({first: pick.choice((16, 24, 32, 48, 64)), second: None})

    with gcx.acquire(24) as first, gcx.acquire(None) as second:
        for size in (16, 24, 32, 48, 64):
            gcx.resize({first: size, second: None})
        for _ in range(1000):
            change()
        torch.cuda.synchronize()
        free = torch.cuda.mem_get_info()[0]
        host = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for _ in range(10_000):
            change()
        torch.cuda.synchronize()
        lost = free - torch.cuda.mem_get_info()[0]
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - host
    print(f"10,000 changes: {lost} bytes of device memory, {grown} KiB of the host's")
    assert lost == 0
    assert grown < 1024

"""Several GPUs in one process: partitions, leases, events and graphs of both, memory of a peer
read from a partition, and what mixes the two refused."""

from __future__ import annotations

import random
import threading
from typing import Any

import gcx
import pytest


@pytest.fixture(autouse=True)
def _two(torch: Any) -> None:
    if len(gcx.devices()) < 2 or torch.cuda.device_count() < 2:
        pytest.skip("this needs two GPUs of one host")


@pytest.fixture
def sides() -> Any:
    """A partition of 24 SMs of each device."""
    parts = [gcx.split([24, None], device=ordinal) for ordinal in (0, 1)]
    yield [part[0] for part in parts]
    for part in parts:
        for one in part:
            one.stream.synchronize()
        part.close()
    assert gcx.cache_stats().in_use == 0


def test_partitions_of_two_devices_run_on_their_sms(sides: Any) -> None:
    for ordinal, part in enumerate(sides):
        assert part.device == ordinal
        assert gcx.verify([part]).ok
    with pytest.raises(gcx.InvalidValueError, match="devices 0, 1; verify those of each"):
        gcx.verify(sides)


def test_products_on_both_devices_are_right(sides: Any, torch: Any) -> None:
    streams = [part.stream.torch() for part in sides]
    products, wanted = [], []
    for ordinal in (0, 1):
        x = torch.randn(2048, 2048, device=f"cuda:{ordinal}")
        wanted.append(x @ x)
        torch.cuda.synchronize(ordinal)
        with torch.cuda.stream(streams[ordinal]):
            products.append(x @ x)
    for ordinal, part in enumerate(sides):
        part.stream.synchronize()
        torch.testing.assert_close(products[ordinal], wanted[ordinal], rtol=1e-3, atol=1e-2)


def test_partition_waits_for_the_other_device(sides: Any, torch: Any) -> None:
    first, second = sides
    x = torch.ones(1 << 20, device="cuda:1")
    torch.cuda.synchronize(1)
    with torch.cuda.device(0), torch.cuda.stream(first.stream.torch()):
        torch.cuda._sleep(500_000_000)  # Cycles: about 0.3 s.
    second.wait(first)
    with torch.cuda.device(1), torch.cuda.stream(second.stream.torch()):
        x += 1
    assert not second.stream.query()
    second.stream.synchronize()
    assert first.stream.query()
    assert bool((x == 2).all())


def test_partition_reads_a_copy_from_a_peer(sides: Any, torch: Any) -> None:
    if not torch.cuda.can_device_access_peer(0, 1):
        pytest.skip("device 0 can't reach device 1's memory")
    there = torch.arange(1 << 22, device="cuda:1", dtype=torch.float32)
    torch.cuda.synchronize(1)
    with torch.cuda.device(0), torch.cuda.stream(sides[0].stream.torch()):
        here = there.to("cuda:0", non_blocking=True) * 2
    sides[0].stream.synchronize()
    assert bool((here.cpu() == there.cpu() * 2).all())


def test_mixed_devices_are_refused(sides: Any) -> None:
    first, second = sides
    with pytest.raises(gcx.ResourceConfigurationError):
        gcx.Context([first.context.resources.sm, second.context.resources.sm])
    with gcx.Event(0) as event, pytest.raises(gcx.InvalidHandleError):
        second.stream.record(event)
    with gcx.acquire(24, device=0) as here, gcx.acquire(24, device=1) as there:
        with pytest.raises(gcx.ResourceConfigurationError):
            gcx.resize({here: 16, there: 16})
        assert (here.sm_count, there.sm_count) == (24, 24)


def test_graphs_of_both_devices_run(sides: Any, torch: Any) -> None:
    graphs = []
    for ordinal, part in enumerate(sides):
        x = torch.zeros(1 << 20, device=f"cuda:{ordinal}")
        graph = torch.cuda.CUDAGraph(keep_graph=True)
        with torch.cuda.device(ordinal):
            torch.cuda.synchronize()
            with torch.cuda.graph(graph, stream=part.stream.torch()):
                x += 1
        graphs.append((gcx.Graph(graph), x, graph))
    for ordinal, (moved, x, _) in enumerate(graphs):
        with pytest.raises(gcx.InvalidDeviceError):
            moved.launch(sides[1 - ordinal].stream)
        before = float(x[0])
        moved.launch(sides[ordinal].stream)
        sides[ordinal].stream.synchronize()
        assert bool((x == before + 1).all())
        moved.close()


def test_threads_use_both_devices(torch: Any) -> None:
    failures: list[BaseException] = []

    def work(number: int) -> None:
        chance = random.Random(number)
        try:
            for _ in range(50):
                device, count = chance.randrange(2), 8 * chance.randint(1, 3)
                with gcx.acquire(count, device=device, timeout=60) as lease:
                    with torch.cuda.stream(lease.stream.torch()):
                        x = torch.ones(1 << 16, device=f"cuda:{device}") * number
                    lease.synchronize()
                    assert lease.device == device
                    assert bool((x == number).all())
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures
    assert gcx.leases() == []

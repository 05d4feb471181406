"""gcx.current: where PyTorch's work runs, and the SM count target of its cuBLAS."""

from __future__ import annotations

import ctypes
import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import gcx
import pytest

torch: Any = pytest.importorskip("torch", reason="PyTorch isn't installed")
if not torch.cuda.is_available():
    pytest.skip("this PyTorch has no CUDA", allow_module_level=True)


def target() -> int:
    """Returns the SM count target of this thread's handle, without gcx."""
    name = f"libcublas.so.{torch.version.cuda.partition('.')[0]}"
    library = ctypes.CDLL(name, mode=os.RTLD_NOW | os.RTLD_NOLOAD)
    found = ctypes.c_int(-1)
    handle = ctypes.c_void_p(torch.cuda.current_blas_handle())
    assert library.cublasGetSmCountTarget(handle, ctypes.byref(found)) == 0
    return found.value


def sms_of_current() -> set[int]:
    """Returns the SMs of PyTorch's current stream."""
    return set(gcx.Stream.from_native(torch.cuda.current_stream()).sm_ids())


def product() -> Any:
    torch.manual_seed(0)
    a, b = (torch.randn(2048, 2048, device="cuda").half() for _ in range(2))
    result = a @ b
    torch.cuda.current_stream().synchronize()
    return result


@pytest.fixture(autouse=True)
def _all_is_as_before() -> Any:
    former = torch.cuda.current_stream(), target()
    yield
    assert (torch.cuda.current_stream(), target()) == former


def test_work_runs_on_the_partition(parts: gcx.Partitions) -> None:
    for part in parts:
        with gcx.current(part) as stream:
            assert torch.cuda.current_stream() == stream
            assert sms_of_current() == set(part.resource.sm_ids())


def test_cublas_target_is_set_and_restored(parts: gcx.Partitions) -> None:
    small, rest = parts
    assert target() == 0
    with gcx.current(small, cublas=True):
        assert target() == small.sm_count
        with gcx.current(rest, cublas=True):
            assert target() == rest.sm_count
        with gcx.current(rest):
            assert target() == small.sm_count
        assert target() == small.sm_count
    assert target() == 0
    with pytest.raises(ZeroDivisionError), gcx.current(small, cublas=True):
        raise ZeroDivisionError
    assert target() == 0


def test_products_with_a_target_are_right(parts: gcx.Partitions) -> None:
    wanted = product()
    for part in parts:
        with gcx.current(part, cublas=True):
            found = product()
        torch.testing.assert_close(found, wanted, rtol=2e-2, atol=2e-1)


def test_graph_captured_inside_keeps_the_target(parts: gcx.Partitions) -> None:
    small, _ = parts
    a = torch.randn(1024, 1024, device="cuda")
    with gcx.current(small, cublas=True) as stream:
        wanted = a @ a
        graph = torch.cuda.CUDAGraph()
        stream.synchronize()
        with torch.cuda.graph(graph, stream=stream):
            found = a @ a
        found.zero_()
        graph.replay()
        stream.synchronize()
    torch.testing.assert_close(found, wanted, rtol=1e-3, atol=1e-2)


def test_lease_is_current_with_its_sms_at_each_step() -> None:
    with gcx.acquire(16, name="current") as lease:
        for count in (16, 32, 16):
            lease.resize(count)
            with gcx.current(lease, cublas=True):
                assert target() == lease.sm_count
                assert sms_of_current() == set(lease.resource.sm_ids())


def test_threads_have_private_handles(parts: gcx.Partitions) -> None:
    def run(part: gcx.Partition) -> list[int]:
        seen = [target()]
        for _ in range(20):
            with gcx.current(part, cublas=True):
                product()
                seen.append(target())
                assert sms_of_current() == set(part.resource.sm_ids())
            seen.append(target())
        return seen

    with ThreadPoolExecutor(2) as threads:
        found = [threads.submit(run, part) for part in parts]
        for part, done in zip(parts, found):
            assert done.result(300) == [0, *[part.sm_count, 0] * 20]

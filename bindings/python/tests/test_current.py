"""gcx.current with a fake PyTorch, cuBLAS and DeepGEMM."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import types
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import gcx
import pytest
from fakes import FakeCublas, FakeTorch  # type: ignore[import-not-found]


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> FakeTorch:
    torch = FakeTorch(device=1)
    monkeypatch.setitem(sys.modules, "torch", torch)
    return torch


@pytest.fixture
def cublas(monkeypatch: pytest.MonkeyPatch) -> FakeCublas:
    library = FakeCublas()

    def load(name: str, mode: int) -> FakeCublas:
        assert mode & os.RTLD_NOLOAD
        if name != "libcublas.so.13":
            raise OSError(name)
        return library

    monkeypatch.setattr(ctypes, "CDLL", load)
    return library


@pytest.fixture
def deep_gemm(monkeypatch: pytest.MonkeyPatch) -> Iterator[types.SimpleNamespace]:
    state = types.SimpleNamespace(count=132)
    module = types.SimpleNamespace(
        get_num_sms=lambda: state.count,
        set_num_sms=lambda count: setattr(state, "count", count),
    )
    monkeypatch.setitem(sys.modules, "deep_gemm", module)
    yield state
    assert state.count == 132


BEFORE = (1, 0, 0)


def inside(part: Any) -> tuple[int, int, int]:
    return 0, part.stream.native, 0


def test_former_stream_and_device_are_restored(torch: FakeTorch, parts: gcx.Partitions) -> None:
    with gcx.current(parts[0]) as stream:
        assert torch.seen() == inside(parts[0])
        assert stream.cuda_stream == parts[0].stream.native
        with gcx.current(parts[1].stream):
            assert torch.seen() == inside(parts[1])
            with gcx.current(parts[0]):
                assert torch.seen() == inside(parts[0])
        assert torch.seen() == inside(parts[0])
    assert torch.seen() == BEFORE


def test_settings_are_restored_after_an_error(
    torch: FakeTorch, cublas: FakeCublas, deep_gemm: Any, parts: gcx.Partitions
) -> None:
    def fail() -> None:
        assert list(cublas.targets.values()) == [24]
        assert deep_gemm.count == 24
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), gcx.current(parts[0], cublas=True, deep_gemm=True):
        fail()
    assert torch.seen() == BEFORE
    assert list(cublas.targets.values()) == [0]


def test_pushed_context_stays_current(torch: FakeTorch, parts: gcx.Partitions) -> None:
    torch.set_device(0)
    before = torch.devices_set
    with parts[0].context.make_current():
        with gcx.current(parts[0]), gcx.current(parts[1]):
            assert torch.seen() == inside(parts[1])
        assert torch.seen()[0] == 0
    assert torch.devices_set == before


def test_ctrl_c_during_the_entry_restores(
    torch: FakeTorch, parts: gcx.Partitions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stream is set by then, and the device is not restored yet."""
    left = [1]

    def set_device(device: int) -> None:
        torch.set_device(device)
        if left:
            left.pop()
            raise KeyboardInterrupt

    monkeypatch.setattr(torch.cuda, "set_device", set_device)
    with pytest.raises(KeyboardInterrupt), gcx.current(parts[0]):
        pytest.fail("it was entered")
    assert not left
    assert torch.seen() == BEFORE


def test_lease_has_its_sms_of_the_entry(torch: FakeTorch, deep_gemm: Any) -> None:
    with gcx.acquire(16) as lease:
        for count in (16, 32):
            lease.resize(count)
            with gcx.current(lease, deep_gemm=True):
                assert torch.seen() == inside(lease)
                assert deep_gemm.count == count
        assert torch.seen() == BEFORE


def test_generators_leave_in_any_order(
    torch: FakeTorch, cublas: FakeCublas, deep_gemm: Any, parts: gcx.Partitions
) -> None:
    def steps(part: gcx.Partition) -> Generator[int, None, None]:
        with gcx.current(part, cublas=True, deep_gemm=True):
            yield part.sm_count

    for order in ([0, 1, 2], [2, 1, 0], [1, 0, 2], [0, 2, 1]):
        running = [steps(part) for part in parts]
        assert [next(one) for one in running] == [24, 32, 76]
        left = [0, 1, 2]
        for number in order:
            running[number].close()
            left.remove(number)
            if left:
                assert torch.seen() == inside(parts[left[-1]])
                assert deep_gemm.count == parts[left[-1]].sm_count
                assert list(cublas.targets.values()) == [parts[left[-1]].sm_count]
        assert torch.seen() == BEFORE
        assert deep_gemm.count == 132
        assert list(cublas.targets.values()) == [0]


def test_threads_have_private_streams_and_targets(
    torch: FakeTorch, cublas: FakeCublas, deep_gemm: Any, parts: gcx.Partitions
) -> None:
    both = threading.Barrier(2)

    def run(part: gcx.Partition) -> None:
        for _ in range(50):
            with gcx.current(part, cublas=True, deep_gemm=True):
                both.wait(60)
                assert torch.seen() == inside(part)
                assert cublas.targets[torch.cuda.current_blas_handle()] == part.sm_count
                assert deep_gemm.count in (24, 32)
            assert torch.seen() == BEFORE

    with ThreadPoolExecutor(2) as threads:
        for done in [threads.submit(run, part) for part in parts[:2]]:
            done.result(60)
    assert set(cublas.targets.values()) == {0}
    assert len(cublas.targets) == 2


def test_leaving_in_another_thread_is_refused(
    torch: FakeTorch, cublas: FakeCublas, deep_gemm: Any, parts: gcx.Partitions
) -> None:
    entered = gcx.current(parts[0], cublas=True, deep_gemm=True)
    with ThreadPoolExecutor(1) as threads:
        threads.submit(entered.__enter__).result(60)
        assert deep_gemm.count == 24
        with pytest.raises(gcx.InvalidContextError, match="another thread"):
            entered.__exit__(None, None, None)
        assert torch.seen() == BEFORE
        assert deep_gemm.count == 132
        assert list(cublas.targets.values()) == [0]
        assert threads.submit(torch.seen).result(60) == inside(parts[0])


def test_settings_not_requested_are_unchanged(
    torch: FakeTorch, cublas: FakeCublas, parts: gcx.Partitions
) -> None:
    assert "deep_gemm" not in sys.modules
    with gcx.current(parts[0], deep_gemm=True):
        assert torch.seen() == inside(parts[0])
        assert cublas.targets == {}
    assert "deep_gemm" not in sys.modules


def test_cublas_without_target_is_refused(
    torch: FakeTorch,
    cublas: FakeCublas,
    parts: gcx.Partitions,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refused(match: str, error: type[Exception] = gcx.NotSupportedError) -> None:
        with pytest.raises(error, match=match), gcx.current(parts[0], cublas=True):
            pytest.fail("it was entered")
        assert torch.seen() == BEFORE

    torch.version.cuda = "12.8"
    refused(r"PyTorch of CUDA 12\.8 has not loaded libcublas\.so\.12")
    torch.version.cuda = None
    refused("has not loaded")
    torch.version.cuda = "13.0"
    cublas.status = 7
    refused("cublasGetSmCountTarget of cuBLAS failed with status 7", gcx.Error)
    cublas.status = 0
    monkeypatch.delattr(FakeCublas, "cublasSetSmCountTarget")
    refused("too old")


def test_wrong_arguments_are_refused(torch: FakeTorch, parts: gcx.Partitions) -> None:
    for wrong in (None, 24, parts, parts[0].context, parts[0].resource, parts[0].stream.native):
        with pytest.raises(TypeError, match="current takes a"):
            gcx.current(wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="cublas"):
        gcx.current(parts[0], cublas=1)  # type: ignore[arg-type]
    (closed,) = gcx.split([8])
    closed.close()
    with pytest.raises(gcx.InvalidHandleError), gcx.current(closed):
        pytest.fail("it was entered")
    assert torch.seen() == BEFORE
    once = gcx.current(parts[0])
    with once:
        pass
    with pytest.raises((AttributeError, RuntimeError)), once:  # As any of contextlib's.
        pass
    assert torch.seen() == BEFORE


def test_missing_torch_raises_import_error(script: Any) -> None:
    code = """
import sys
sys.modules["torch"] = None
import gcx
(part,) = gcx.split([24])
try:
    with gcx.current(part):
        print("entered")
except ImportError:
    print("refused")
"""
    assert script(code) == "refused\n"

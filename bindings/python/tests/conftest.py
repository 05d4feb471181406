"""Tests of the installed package on the simulated driver.

A process has one driver, which GCX_DRIVER selects; an H100 with CUDA 13.0 by default. tests/run.sh
runs them on each driver that matters.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

os.environ.setdefault("GCX_DRIVER", "sim:h100@13.0")

import gcx
from fakes import FakeTorch, events_waited_for  # type: ignore[import-not-found]
from work import Work, run_program  # type: ignore[import-not-found]

PACKAGE = Path(gcx.__file__).resolve().parent
if PACKAGE.parent == Path(__file__).resolve().parent.parent:
    raise RuntimeError(f"the tests are to run from an installed wheel, not from {PACKAGE}")


@pytest.fixture
def script() -> Callable[..., str]:
    """Runs Python code in a process, and returns what it prints. The process must end with the
    status and print no error."""

    def run(code: str, driver: str | None = None, status: int = 0) -> str:
        env = {**os.environ, **({"GCX_DRIVER": driver} if driver is not None else {})}
        done = run_program(sys.executable, "-W", "error", "-c", code, env=env)
        assert (done.returncode, done.stderr) == (status, ""), done.stdout + done.stderr
        return done.stdout  # type: ignore[no-any-return]

    return run


@pytest.fixture(scope="session")
def version() -> tuple[int, int]:
    """The version of the driver."""
    return gcx.driver_info().version


@pytest.fixture
def sms() -> gcx.SMResource:
    """All SMs of device 0."""
    return gcx.Device(0).resources.sm


@pytest.fixture
def group(sms: gcx.SMResource) -> gcx.SMResource:
    return sms.split([24]).groups[0]


@pytest.fixture
def part() -> Iterator[gcx.Partition]:
    with gcx.split([24])[0] as part:
        yield part


@pytest.fixture
def parts() -> Iterator[gcx.Partitions]:
    with gcx.split([24, 32, None]) as parts:
        yield parts


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(16) as pool:
        yield pool


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A private folder for reservations and published leases."""
    tmp_path.chmod(0o700)
    monkeypatch.setenv("GCX_RESERVATION_DIR", str(tmp_path))
    yield tmp_path
    gcx.stop_publishing()


@pytest.fixture
def torch_class() -> type[FakeTorch]:
    return FakeTorch  # type: ignore[no-any-return]


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch, torch_class: type[FakeTorch]) -> Iterator[FakeTorch]:
    torch = torch_class()
    monkeypatch.setitem(sys.modules, "torch", torch)
    yield torch
    torch.state = threading.local()  # pytest still has the module, and streams keep contexts.
    events_waited_for.clear()


@pytest.fixture
def work() -> Iterator[Work]:
    """Work for the simulated driver."""
    work = Work()
    yield work
    gc.collect()
    work.close()


@pytest.fixture(autouse=True)
def _nothing_is_left() -> Iterator[None]:
    """Checks after each test that every context was released."""
    yield
    gc.collect()
    assert gcx.cache_stats().in_use == 0
    gc.freeze()  # Later collections need not look through the objects of other modules.

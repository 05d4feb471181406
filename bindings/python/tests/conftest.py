"""Tests of the installed package, on the simulated driver.

A process has one driver: GCX_DRIVER chooses it, an H100 with CUDA 13.0 otherwise. run.py runs
all of this on each driver that matters.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

os.environ.setdefault("GCX_DRIVER", "sim:h100@13.0")

import gcx
from work import Work  # type: ignore[import-not-found]

PACKAGE = Path(gcx.__file__).resolve().parent
if PACKAGE.parent == Path(__file__).resolve().parent.parent:
    raise RuntimeError(f"the tests are to run from an installed wheel, not from {PACKAGE}")


class Scripts:
    """Runs Python code in processes of their own."""

    def __call__(self, code: str, driver: str | None = None, status: int = 0) -> str:
        """What the code prints. It must end with the status and print no error."""
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", code],
            env={**os.environ, **({"GCX_DRIVER": driver} if driver is not None else {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert (done.returncode, done.stderr) == (status, ""), done.stdout + done.stderr
        return done.stdout


@pytest.fixture
def script() -> Scripts:
    return Scripts()


@pytest.fixture(scope="session")
def version() -> tuple[int, int]:
    """The version of the driver."""
    return gcx.driver_info().version


@pytest.fixture
def sms() -> gcx.SMResource:
    """All SMs of device 0."""
    return gcx.Device(0).resources.sm


@pytest.fixture
def work() -> Iterator[Work]:
    """Work for the simulated driver."""
    work = Work()
    yield work
    gc.collect()
    work.close()


@pytest.fixture(autouse=True)
def _nothing_is_left() -> Iterator[None]:
    """After each test every context was given back."""
    yield
    gc.collect()
    assert gcx.cache_stats().in_use == 0
    gc.freeze()  # nothing of gcx: what other modules keep needn't be looked through again

"""Access policy windows on partitions' streams, as examples/python/l2_window.py sets them."""

from __future__ import annotations

import ctypes
import importlib
import sys
from pathlib import Path
from typing import Any

import gcx
import pytest

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "python"
if str(EXAMPLES) not in sys.path:
    sys.path.insert(0, str(EXAMPLES))
l2: Any = importlib.import_module("l2_window")

pytestmark = pytest.mark.skipif(
    gcx.driver_info().version != (13, 0), reason="another driver's run has it"
)
NONE = (0, 0, 0.0, 0, 0)
TABLE = (0x7F0000000000, 16 << 20)


@pytest.fixture
def cache() -> Any:
    return l2.Cache()


def test_what_a_device_tells(cache: Any) -> None:
    assert 0 < cache.most_set_aside < cache.bytes
    assert cache.most_window > cache.bytes


def test_a_partition_s_stream_has_a_window_of_its_own(cache: Any) -> None:
    with gcx.split([24, None]) as (part, rest):
        cache.window(part.stream.native, *TABLE, l2.PERSISTING, ratio=0.5, miss=l2.STREAMING)
        assert cache.window_of(part.stream.native) == (*TABLE, 0.5, l2.PERSISTING, l2.STREAMING)
        assert cache.window_of(rest.stream.native) == NONE
        cache.window(part.stream.native, 0, 0, l2.NORMAL)
        assert cache.window_of(part.stream.native)[1] == 0


def test_a_lease_that_has_changed_has_no_window(cache: Any) -> None:
    with gcx.acquire(16, name="table") as lease:
        cache.window(lease.stream.native, *TABLE, l2.PERSISTING)
        lease.resize(24)
        assert cache.window_of(lease.stream.native) == NONE
        cache.window(lease.stream.native, *TABLE, l2.PERSISTING)
        assert cache.window_of(lease.stream.native)[:2] == TABLE


def test_what_is_no_window(cache: Any) -> None:
    with gcx.split([24, None]) as (part, _):
        for size, ratio, miss in (
            (cache.most_window + 1, 1.0, l2.NORMAL),
            (4096, 1.5, l2.NORMAL),
            (4096, 1.0, l2.PERSISTING),
        ):
            with pytest.raises(RuntimeError, match=r"cuStreamSetAttribute: .*_INVALID_VALUE"):
                cache.window(part.stream.native, 0, size, l2.PERSISTING, ratio=ratio, miss=miss)
        assert cache.window_of(part.stream.native) == NONE


def test_the_set_aside_is_clamped_and_put_back(cache: Any) -> None:
    with gcx.split([24, None]) as parts, parts[0].context.make_current():
        assert cache.is_set_aside() == 0
        assert cache.set_aside(1 << 20) == 1 << 20
        assert cache.set_aside(1 << 40) == cache.most_set_aside
        cache.reset()
        assert cache.set_aside(0) == 0


class Recorded:
    """As much of a Bench as steering needs."""

    def __init__(self, cache: Any, parts: gcx.Partitions) -> None:
        self.cache = cache
        self.reader, self.neighbour = parts
        self.table, self.streamed = Array(48 << 20), Array(120 << 20)


class Array:
    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes
        self.data = ctypes.c_void_p(0x7F0000000000)
        self.data.ptr = 0x7F0000000000  # type: ignore[attr-defined]


@pytest.mark.parametrize("arm", l2.ARMS, ids=lambda arm: arm.name)
def test_each_arm_steers_and_puts_back(cache: Any, arm: Any) -> None:
    with gcx.split([24, None]) as parts, parts[0].context.make_current():
        streams = [part.stream.native for part in parts]
        bench = Recorded(cache, parts)
        with l2.Bench.steered(bench, arm):
            table, neighbour = (cache.window_of(stream) for stream in streams)
            assert table[1] == (48 << 20 if arm.window else 0)
            assert neighbour[1] == (120 << 20 if arm.marked else 0)
            assert cache.is_set_aside() == (cache.most_set_aside if arm.set_aside else 0)
            if arm.window and arm.set_aside:  # As much of the table as fits.
                assert table[2] == pytest.approx(cache.most_set_aside / (48 << 20))
        assert [cache.window_of(stream)[1] for stream in streams] == [0, 0]
        assert cache.is_set_aside() == 0

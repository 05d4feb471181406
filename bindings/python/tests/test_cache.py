"""The context cache: prewarm and its progress, trimming, the list of live contexts."""

from __future__ import annotations

import ctypes
import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

import gcx
import pytest


@pytest.fixture(autouse=True)
def _cache_is_empty() -> Iterator[None]:
    gcx.trim_cache(0)
    yield
    gcx.set_cache_limit(64)
    gcx.trim_cache(0)


@pytest.fixture
def groups(sms: gcx.SMResource) -> tuple[gcx.SMResource, ...]:
    return sms.split([24, 32, 40]).groups


def test_prewarm_creates_each_context_once(groups: tuple[gcx.SMResource, ...]) -> None:
    before, seen = gcx.cache_stats(), list[tuple[int, int]]()
    gcx.prewarm(groups, progress=lambda *at: seen.append(at))
    assert seen == [(1, 3), (2, 3), (3, 3)]
    now = gcx.cache_stats()
    assert (now.cached, now.misses - before.misses, now.prepared - before.prepared) == (3, 3, 3)
    assert now.creation_ns >= now.longest_creation_ns > 0
    gcx.prewarm(groups)
    gcx.prewarm(groups[0])
    with gcx.split([24, None]) as parts:
        gcx.prewarm(parts[0])
    assert gcx.cache_stats().hits > before.hits


def test_prewarm_progress_may_raise_and_call_gcx(groups: tuple[gcx.SMResource, ...]) -> None:
    class Stop(Exception):
        pass

    threads: list[int] = []

    def stop(done: int, count: int) -> None:
        threads.append(threading.get_ident())
        gcx.prewarm(groups[0])
        if done == 2:
            raise Stop

    with gcx.Cancel() as cancel:
        with pytest.raises(Stop):
            gcx.prewarm(groups, progress=stop, cancel=cancel)
        assert not cancel.signalled
        assert not cancel._waits
    assert gcx.cache_stats().cached == 2
    assert set(threads) == {threading.get_ident()}
    # An error of another gcx call in it isn't mistaken for the call's own.
    with pytest.raises(gcx.InvalidDeviceError):
        gcx.prewarm(groups, progress=lambda *at: gcx.Device(99))


def test_prewarm_is_cancelled_by_cancel_and_ctrl_c(groups: tuple[gcx.SMResource, ...]) -> None:
    with gcx.Cancel() as cancel:
        with pytest.raises(gcx.CancelledError, match=r"Cancel\.signal"):
            gcx.prewarm(groups, progress=lambda *at: cancel.signal(), cancel=cancel)
        with pytest.raises(gcx.CancelledError):
            gcx.prewarm(groups, cancel=cancel)
    assert gcx.cache_stats().cached == 1

    former = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            gcx.prewarm(groups, progress=lambda *at: os.kill(os.getpid(), signal.SIGINT))
    finally:
        signal.signal(signal.SIGINT, former)
    assert gcx.cache_stats().cached < 3


def test_prewarm_arguments_are_checked(groups: Any) -> None:
    with pytest.raises(gcx.InvalidValueError, match="no resources"):
        gcx.prewarm([])
    for wrong in (None, 24, "24", [24], {groups[0]}):
        with pytest.raises(TypeError):
            gcx.prewarm(wrong)  # type: ignore[arg-type]
    for name in ("progress", "cancel", "for_leases"):
        with pytest.raises(TypeError, match=name):
            gcx.prewarm(groups, **{name: 1})  # type: ignore[arg-type]
    closed = gcx.Cancel()
    closed.close()
    with pytest.raises(gcx.InvalidHandleError):
        gcx.prewarm(groups, cancel=closed)
    gcx.set_cache_limit(2)
    with pytest.raises(gcx.CacheLimitExceededError, match=r"gcx\.set_cache_limit"):
        gcx.prewarm(groups)


def test_cache_is_limited_and_trimmed(groups: tuple[gcx.SMResource, ...]) -> None:
    gcx.prewarm(groups)
    trimmed = gcx.trim_cache(1)
    assert trimmed[:4] == (2, 0, 0, 0)
    assert trimmed.bytes >= 0
    with gcx.Context(groups[2]) as context:
        context.stream().close()
        assert gcx.cache_stats().cached_streams == 1
        assert gcx.trim_cache(1).streams == 1
    gcx.set_cache_limit(0)
    assert (gcx.cache_stats().limit, gcx.cache_stats().cached) == (0, 0)
    for call in (gcx.set_cache_limit, gcx.trim_cache):
        with pytest.raises(gcx.InvalidValueError, match="at least 0"):
            call(-1)
        with pytest.raises(TypeError):
            call("many")  # type: ignore[arg-type]


def test_live_contexts_are_listed(sms: gcx.SMResource) -> None:
    (small, other), _ = sms.split([24, 16])
    with gcx.Context(small) as context, context.stream(), gcx.Context(other, private=True) as mine:
        first, second = sorted(gcx.live_contexts(0), key=lambda live: live.private)
        assert first == (context.id, 0, 24, 1, 1, False, context.native_id, small)
        assert second == (mine.id, 0, 16, 1, 0, True, mine.native_id, other)
        for one in (context, mine):
            driver_id, driver = ctypes.c_uint64(), ctypes.CDLL(gcx.driver_info().library)
            assert driver.cuCtxGetId(ctypes.c_void_p(one.native), ctypes.byref(driver_id)) == 0
            assert one.native_id == driver_id.value
    assert gcx.live_contexts(gcx.Device(0)) == []
    for number in (7, -1):
        with pytest.raises(gcx.InvalidDeviceError):
            gcx.live_contexts(number)
    with gcx.split([2] * 66, family="fine") as parts:  # More than the first buffer has room for.
        assert {live.id for live in gcx.live_contexts()} == {part.context.id for part in parts}

"""Contexts made ahead of time, what is kept of them, and what of a kernel fits."""

from __future__ import annotations

import os
import signal
import threading
import types
from collections.abc import Iterator
from typing import Any

import gcx
import pytest
from work import Work  # type: ignore[import-not-found]


@pytest.fixture(autouse=True)
def _nothing_is_kept() -> Iterator[None]:
    gcx.trim_cache(0)
    yield
    gcx.set_cache_limit(64)
    gcx.trim_cache(0)


@pytest.fixture
def groups(sms: gcx.SMResource) -> tuple[gcx.SMResource, ...]:
    return sms.split([24, 32, 40]).groups


def test_contexts_are_made_ahead(groups: tuple[gcx.SMResource, ...]) -> None:
    before, seen = gcx.cache_stats(), list[tuple[int, int]]()
    gcx.prewarm(groups, progress=lambda *at: seen.append(at))
    assert seen == [(1, 3), (2, 3), (3, 3)]
    now = gcx.cache_stats()
    assert (now.kept, now.misses - before.misses, now.prepared - before.prepared) == (3, 3, 3)
    assert now.making_ns > before.making_ns
    assert now.making_ns >= now.longest_making_ns > 0
    gcx.prewarm(groups)
    gcx.prewarm(groups[0])
    for group in groups:
        gcx.Context(group).close()
    assert gcx.cache_stats().misses == now.misses


def test_leases_find_theirs_made(sms: gcx.SMResource) -> None:
    with gcx.acquire(16) as lease:
        resource = lease.resource
    gcx.trim_cache(0)
    gcx.prewarm(resource, for_leases=True)
    misses = gcx.cache_stats().misses
    with gcx.acquire(16) as lease:
        assert lease.resource == resource
        lease.stream.synchronize()
    assert gcx.cache_stats().misses == misses


def test_a_partition_may_stand_for_its_sms() -> None:
    with gcx.split([24, None]) as parts:
        gcx.prewarm(parts)
        gcx.prewarm(parts[0])


def test_what_progress_raises_comes_out(groups: tuple[gcx.SMResource, ...]) -> None:
    class Own(Exception):
        pass

    def stop(done: int, count: int) -> None:
        gcx.cache_stats()  # It may call gcx.
        if done == 2:
            raise Own

    with gcx.Cancel() as cancel:
        with pytest.raises(Own):
            gcx.prewarm(groups, progress=stop, cancel=cancel)
        assert not cancel.signalled
        assert not cancel._waits
    assert gcx.cache_stats().kept == 2
    # What another call of gcx in it raises is not mistaken for the call's own.
    with pytest.raises(gcx.InvalidDeviceError):
        gcx.prewarm(groups, progress=lambda *at: gcx.Device(99))
    gcx.prewarm(groups)
    assert gcx.cache_stats().kept == 3


def test_it_is_given_up_by_a_cancel(groups: tuple[gcx.SMResource, ...]) -> None:
    with gcx.Cancel() as cancel:
        cancelled = r"cancelled by Cancel\.signal after 1 of 3"
        with pytest.raises(gcx.NotPermittedError, match=cancelled):
            gcx.prewarm(groups, progress=lambda *at: cancel.signal(), cancel=cancel)
        with pytest.raises(gcx.NotPermittedError, match="after 0 of 3"):
            gcx.prewarm(groups, cancel=cancel)
    assert gcx.cache_stats().kept == 1


def test_a_signal_s_handler_gives_it_up(groups: tuple[gcx.SMResource, ...]) -> None:
    def interrupt(done: int, count: int) -> None:
        if done == 1:
            os.kill(os.getpid(), signal.SIGINT)

    former = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            gcx.prewarm(groups, progress=interrupt)
    finally:
        signal.signal(signal.SIGINT, former)
    assert gcx.cache_stats().kept < 3


def test_progress_is_told_in_the_calling_thread(groups: tuple[gcx.SMResource, ...]) -> None:
    seen: list[int] = []

    def run() -> None:
        gcx.prewarm(groups, progress=lambda *at: seen.append(threading.get_ident()))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert set(seen) == {thread.ident}


def test_preparing_within_progress(groups: tuple[gcx.SMResource, ...]) -> None:
    gcx.prewarm(groups[0], progress=lambda *at: gcx.prewarm(groups[1:]))
    assert gcx.cache_stats().kept == 3


def test_what_can_not_be_prepared(sms: gcx.SMResource, groups: Any) -> None:
    with pytest.raises(gcx.InvalidValueError, match="no resources"):
        gcx.prewarm([])
    for wrong in (None, 24, "24", [24], {groups[0]}):
        with pytest.raises(TypeError):
            gcx.prewarm(wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="callable"):
        gcx.prewarm(groups, progress=1)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="cancel"):
        gcx.prewarm(groups, cancel=1)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="for_leases"):
        gcx.prewarm(groups, for_leases=1)  # type: ignore[arg-type]
    closed = gcx.Cancel()
    closed.close()
    with pytest.raises(gcx.InvalidHandleError):
        gcx.prewarm(groups, cancel=closed)
    gcx.set_cache_limit(2)
    with pytest.raises(gcx.InvalidValueError, match=r"raise the limit with gcx\.set_cache_limit"):
        gcx.prewarm(groups)
    assert gcx.cache_stats().kept == 0


def test_trimming(groups: tuple[gcx.SMResource, ...]) -> None:
    gcx.prewarm(groups)
    trimmed = gcx.trim_cache(1)
    assert trimmed[:4] == (2, 0, 0, 0)
    assert trimmed.bytes >= 0
    assert gcx.trim_cache(1)[:4] == (0, 0, 0, 0)
    with gcx.Context(groups[2]) as context:
        context.stream().close()
        assert gcx.cache_stats().kept_streams == 1
        assert gcx.trim_cache(1).streams == 1
    with pytest.raises(gcx.InvalidValueError):
        gcx.trim_cache(-1)


def test_what_of_a_kernel_fits() -> None:
    work = Work()
    kernel = work.spinner.value
    with gcx.split([24])[0] as part, gcx.acquire(16) as lease:
        fit = part.stream.kernel_fit(kernel, 1024)
        assert fit.sm_count == 24
        assert fit.max_blocks == fit.blocks_per_sm * 24 > 0
        assert fit.max_clusters == 0
        for other in (
            types.SimpleNamespace(function=kernel),  # Triton
            types.SimpleNamespace(kernel=types.SimpleNamespace(ptr=kernel)),  # CuPy
            types.SimpleNamespace(handle=work.spinner),  # cuda.core
        ):
            assert part.stream.kernel_fit(other, 1024) == fit
        clusters = part.stream.kernel_fit(kernel, 1024, cluster_blocks=2)
        assert clusters.max_blocks == 2 * clusters.max_clusters > 0
        shared = part.stream.kernel_fit(kernel, 1024, dynamic_shared_bytes=100)
        assert shared.blocks_per_sm <= fit.blocks_per_sm
        for count in (16, 48):
            lease.resize(count)
            assert lease.stream.kernel_fit(kernel, 1024).sm_count == count
        for wrong in (None, "kernel", part):
            with pytest.raises(TypeError, match="expected a kernel"):
                part.stream.kernel_fit(wrong, 32)  # type: ignore[arg-type]
        with pytest.raises(gcx.InvalidValueError, match="NULL"):
            part.stream.kernel_fit(0, 32)
        for threads in (0, 1025):
            with pytest.raises(gcx.InvalidValueError, match="block_threads"):
                part.stream.kernel_fit(kernel, threads)
        with pytest.raises(TypeError):
            part.stream.kernel_fit(kernel, 32.0)  # type: ignore[arg-type]
    with pytest.raises(gcx.InvalidHandleError):
        part.stream.kernel_fit(kernel, 32)
    work.close()

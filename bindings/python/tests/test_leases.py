"""Leases: who has which SMs, streams that follow them, and the order of work, by the clock of the
simulated driver."""

from __future__ import annotations

import gc
import pickle
import sys
import types
from collections.abc import Iterator
from itertools import permutations
from typing import Any

import gcx
import pytest
from work import Work  # type: ignore[import-not-found]


@pytest.fixture
def pair() -> Iterator[tuple[gcx.Lease, gcx.Lease]]:
    """Decode beside prefill."""
    with gcx.acquire(32, name="decode") as decode, gcx.acquire(None, name="prefill") as prefill:
        yield decode, prefill


def test_nobody_else_has_them(sms: gcx.SMResource) -> None:
    with gcx.acquire(24, name="one") as one, gcx.acquire(24, name="two") as two:
        assert (one.sm_count, one.exclusive_sm_count, one.device, one.name) == (24, 24, 0, "one")
        assert (one.family, one.shared, one.changes, one.closed) == ("coscheduled", False, 0, False)
        assert one.resource.isdisjoint(two.resource)
        assert not set(one.stream.sm_ids()) & set(two.stream.sm_ids())
        assert repr(one) == '<gcx.Lease "one": 24 SMs of device 0, coscheduled>'
        with pytest.raises(gcx.AlreadyAcquiredError, match='84 are free; "one" has 24; "two"'):
            gcx.acquire(100)
        with pytest.raises(gcx.ResourceConfigurationError, match="132"):
            gcx.acquire(140)
        assert sms.live_overlap() == 48
        assert gcx.verify([one, two]).ok
        groups, rest = sms.split([24], exclude_leased=True)
        assert groups[0].isdisjoint(one.resource | two.resource)
        assert rest.sm_count == 132 - 72
        assert sms.plan(None, exclude_leased=True) == ((84,), 0)
        assert sms.split([24]).groups[0].overlap(one.resource) == 24
        with gcx.split([24], exclude_leased=True) as parts:
            assert parts[0].resource == groups[0]
    with pytest.raises(TypeError, match="exclude_leased"):
        sms.split([24], exclude_leased=1)  # type: ignore[arg-type]


def test_the_list() -> None:
    assert gcx.leases() == []
    with gcx.acquire(24, name="ä" * 31) as one, gcx.acquire(16, shared=True) as two:
        stream = two.create_stream()
        first, second = gcx.leases(0)
        assert (first.id, first.name, first.sm_count, first.shared) == (one.id, "ä" * 31, 24, False)
        assert first.resource == one.resource
        assert (second.sm_count, second.exclusive_sm_count, second.shared) == (16, 0, True)
        assert (second.stream_count, second.waiting, second.name) == (1, False, "")
        assert second.family == "coscheduled"
        assert two.stream_count == 1
        assert repr(two).startswith(f"<gcx.Lease {two.id}: 16 SMs")
        del stream
        gc.collect()
        assert two.stream_count == 0
    with pytest.raises(gcx.InvalidDeviceError):
        gcx.leases(7)
    many = [gcx.acquire(8, shared=True) for _ in range(40)]
    assert len(gcx.leases()) == 40  # More than there is room for at first.
    assert many[0].shared


def test_streams_follow(work: Work) -> None:
    with gcx.acquire(24) as lease:
        stream = lease.stream
        assert lease.stream is stream
        before, small = stream.native, stream.sm_ids()
        gcx.prepare({lease: 64})  # Making a context would wait for the kernel.
        work.spin(before, 5)
        lease.resize(64)
        assert lease.changes == 1
        # Nothing that stands for the stream has kept the one before.
        assert stream.native != before
        assert stream.__cuda_stream__() == lease.__cuda_stream__() == (0, stream.native)
        assert not stream.query()
        assert not lease.query()
        assert work.free_at(stream) >= 5
        lease.synchronize()
        assert lease.query()
        assert stream.sm_count == len(stream.sm_ids()) == stream.resources.sm.sm_count == 64
        assert set(small) < set(stream.sm_ids())
        with gcx.Stream.from_native(before) as former:
            assert former.sm_ids() == small
        misses = gcx.cache_stats().misses
        lease.resize(24)
        assert stream.sm_ids() == small
        assert gcx.cache_stats().misses == misses


def test_what_other_libraries_are_given_is_of_that_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    class External:
        def __init__(self, pointer: int, device: int) -> None:
            self.cuda_stream = pointer

    torch: Any = types.ModuleType("torch")
    torch.cuda = types.SimpleNamespace(ExternalStream=External)
    monkeypatch.setitem(sys.modules, "torch", torch)
    with gcx.acquire(24) as lease:
        before = lease.stream.torch()
        assert before.cuda_stream == lease.stream.native
        lease.resize(64)
        after = lease.stream.torch()
        assert after.cuda_stream == lease.stream.native != before.cuda_stream
        assert gcx.Stream.from_native(before).sm_count == 24
        assert gcx.Stream.from_native(after).sm_count == 64


def test_handed_over(work: Work, pair: tuple[gcx.Lease, gcx.Lease]) -> None:
    decode, prefill = pair
    kept = decode.create_stream()
    own = decode.stream
    work.spin(own, 3)
    with pytest.raises(gcx.InvalidValueError, match="itself"):
        decode.hand_over(decode)
    with pytest.raises(TypeError, match=r"gcx\.Lease, not to Stream"):
        decode.hand_over(own)  # type: ignore[arg-type]
    decode.hand_over(prefill)
    assert decode.closed
    assert own.closed
    with pytest.raises(gcx.ContextDestroyedError, match="handed over"):
        _ = own.native
    assert prefill.sm_count == 132
    assert work.free_at(prefill.stream) >= 3
    with pytest.raises(gcx.ContextDestroyedError, match='"decode" was released'):
        kept.query()
    with pytest.raises(gcx.InvalidHandleError, match=r"gcx\.Lease is closed"):
        prefill.hand_over(decode)
    assert not prefill.closed
    assert len(gcx.leases()) == 1
    decode.close()


def test_waiting_for_a_lease_and_in_one(work: Work, pair: tuple[gcx.Lease, gcx.Lease]) -> None:
    decode, prefill = pair
    work.spin(decode.stream, 4)
    decode.resize(16)
    prefill.wait(decode)
    assert work.free_at(prefill.stream) >= 4
    work.spin(prefill.stream, 6)
    with prefill.stream.record() as event:
        decode.stream.wait(event)
    assert work.free_at(decode.stream) >= 10
    with gcx.Stream.from_native(decode) as same:
        assert same.sm_count == 16


def test_a_released_lease_and_its_streams(work: Work) -> None:
    lease = gcx.acquire(None)
    own, other = lease.stream, lease.create_stream(priority=-1)
    assert other.priority == -1
    work.spin(other, 7)
    lease.close()
    lease.close()
    assert lease.closed
    assert repr(lease) == "<gcx.Lease, closed>"
    assert gcx.leases() == []
    for use in (lambda: other.native, other.query, other.synchronize, lambda: other.sm_count):
        with pytest.raises(gcx.ContextDestroyedError, match="released"):
            use()
    assert own.closed
    for use in (lambda: own.native, own.query, own.synchronize, lambda: own.sm_count):
        with pytest.raises(gcx.ContextDestroyedError, match="lease of this"):
            use()
    calls: list[Any] = [
        *(lambda name=name: getattr(lease, name) for name in ("stream", "sm_count", "resource")),
        *(lease.create_stream, lease.synchronize, lease.query, lease.__enter__),
        *(lambda: lease.resize(8), lambda: gcx.prepare({lease: 8}), lease.__cuda_stream__),
    ]
    for call in calls:
        with pytest.raises(gcx.InvalidHandleError, match=r"this gcx\.Lease is closed"):
            call()
    with gcx.acquire(None) as next_one:
        assert work.free_at(next_one.stream) >= 7
    other.close()


def test_its_stream_is_made_anew_if_it_was_closed() -> None:
    with gcx.acquire(24, priority=-2) as lease:
        assert lease.stream_count == 0
        with lease.stream as stream:
            assert stream.priority == -2
        assert lease.stream is not stream
        assert lease.stream.priority == -2
        assert lease.stream_count == 1


def test_streams_keep_it_and_nothing_else_does() -> None:
    """Without Python's collector of cycles: SMs are free as soon as nobody has the lease."""
    gc.disable()
    try:
        stream = gcx.acquire(24).create_stream()
        assert len(stream.sm_ids()) == 24
        lease = gcx.acquire(24)
        lease.stream.synchronize()
        assert len(gcx.leases()) == 2
        del stream, lease
        assert gcx.leases() == []
    finally:
        gc.enable()


def test_objects_end_in_any_order() -> None:
    for order in permutations(range(4)):
        lease = gcx.acquire(24)
        things: list[Any] = [lease, lease.stream, lease.create_stream(), lease.stream.record()]
        del lease
        for number in order:
            things[number] = None
        assert gcx.leases() == []


def test_wrong_values(pair: tuple[gcx.Lease, gcx.Lease]) -> None:
    decode, _ = pair
    decode.resize(8)
    acquire: Any = gcx.acquire
    resize: Any = gcx.resize
    of_one: Any = decode.resize
    wrong: list[tuple[type[Exception], str, Any]] = [
        (gcx.InvalidDeviceError, "7", lambda: acquire(8, device=7)),
        (gcx.InvalidValueError, "at least 1, not 0", lambda: acquire(0)),
        (gcx.InvalidValueError, "at least 1, not -1; None", lambda: acquire(-1)),
        (gcx.InvalidValueError, "at most 4294967294", lambda: acquire(2**32 - 1)),
        (TypeError, "'8'", lambda: acquire("8")),
        (TypeError, "True", lambda: acquire(True)),
        (TypeError, "positional", lambda: acquire(8, "name")),
        (TypeError, "name", lambda: acquire(8, name=b"x")),
        (TypeError, "name", lambda: acquire(8, name=None)),
        (gcx.InvalidValueError, "null", lambda: acquire(8, name="a\0b")),
        (gcx.InvalidValueError, "UTF-8", lambda: acquire(8, name="\udcff")),
        (gcx.InvalidValueError, "63 bytes", lambda: acquire(8, name="ä" * 32)),
        (gcx.InvalidValueError, "Fine", lambda: acquire(8, family="Fine")),
        (TypeError, "shared", lambda: acquire(8, shared=1)),
        (gcx.InvalidValueError, "min_sm_count is 9, more", lambda: acquire(8, min_sm_count=9)),
        (gcx.InvalidValueError, "at least 1", lambda: acquire(8, min_sm_count=0)),
        (gcx.InvalidValueError, "shared=True", lambda: acquire(8, exclusive_sm_count=8)),
        (TypeError, "priority", lambda: acquire(8, priority=0.5)),
        (TypeError, "timeout", lambda: acquire(8, timeout="1")),
        (TypeError, "timeout", lambda: acquire(8, timeout=True)),
        (gcx.InvalidValueError, "not -1", lambda: acquire(8, timeout=-1)),
        (gcx.InvalidValueError, "0 to 4294967 s", lambda: acquire(8, timeout=10**5000)),
        (gcx.InvalidValueError, "None waits", lambda: acquire(8, timeout=float("inf"))),
        (gcx.InvalidValueError, "not nan", lambda: acquire(8, timeout=float("nan"))),
        (TypeError, "cancel", lambda: acquire(8, cancel=1)),
        (gcx.InvalidValueError, "no leases", lambda: resize({})),
        (TypeError, "not as list", lambda: resize([decode])),
        (TypeError, "not as Lease", lambda: resize(decode)),
        (TypeError, "not Stream", lambda: resize({decode.stream: 8})),
        (gcx.InvalidValueError, "close", lambda: resize({decode: 0})),
        (TypeError, "'8'", lambda: of_one("8")),
        (TypeError, "deferred", lambda: of_one(16, deferred=1)),
        (TypeError, "pickled", lambda: pickle.dumps(decode)),
        (TypeError, r"gcx\.acquire", gcx.Lease),
    ]
    for kind, words, call in wrong:
        with pytest.raises(kind, match=words):
            call()
    assert [lease.sm_count for lease in gcx.leases()] == [8, 100]

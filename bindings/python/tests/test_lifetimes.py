"""How objects live and end: closing, garbage collection, threads, forks, exits, leaks."""

from __future__ import annotations

import gc
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import permutations
from typing import Any

import gcx
import pytest
from work import alive  # type: ignore[import-not-found]


def test_context_current_is_pushed_and_popped(group: gcx.SMResource) -> None:
    with gcx.Context(group) as context, gcx.Context(group) as other:
        with context.make_current() as current:
            assert current is context is gcx.current_context()
            with pytest.raises(gcx.ContextInUseError, match="current"):
                context.close()
            assert not context.closed
            with other.make_current():
                assert gcx.current_context() is other
                with pytest.raises(gcx.InvalidContextError, match="last"):
                    context.pop()
            found: list[object] = []
            thread = threading.Thread(target=lambda: found.append(gcx.current_context()))
            thread.start()
            thread.join()
            assert found == [None]
        assert gcx.current_context() is None
        with pytest.raises(gcx.InvalidContextError):
            context.pop()
        with pytest.raises(RuntimeError, match="inside"), context.make_current():
            raise RuntimeError("inside")
        assert gcx.current_context() is None


def test_context_pushed_is_kept_alive(group: gcx.SMResource) -> None:
    gcx.Context(group).push()
    gc.collect()
    context = gcx.current_context()
    assert context is not None
    assert context.sm_count == 24
    context.pop()
    context.close()


def test_stream_keeps_its_context(group: gcx.SMResource) -> None:
    context = gcx.Context(group)
    stream = context.stream(priority=-1)
    number = context.id
    context.close()
    del context
    gc.collect()
    assert (stream.sm_count, stream.device, stream.context_id) == (24, 0, number)
    assert stream.priority == -1
    assert stream.query()
    stream.close()


def test_closed_objects_are_refused(group: gcx.SMResource) -> None:
    context = gcx.Context(group)
    stream = context.stream()
    event = stream.record()
    for thing in (event, stream, context):
        thing.close()
        thing.close()
        assert thing.closed
        assert repr(thing).endswith("closed>")
    calls: list[Callable[[], Any]] = [
        *(lambda name=name: getattr(context, name) for name in ("sm_count", "native", "resources")),
        *(lambda name=name: getattr(stream, name) for name in ("sm_count", "native", "resources")),
        *(context.stream, context.make_current, context.push, context.synchronize, context.record),
        *(stream.synchronize, stream.query, stream.record, stream.sm_ids, stream.__cuda_stream__),
        *(thing.__enter__ for thing in (context, stream, event)),
        *(lambda: context.wait(event), lambda: stream.wait(event), lambda: context.is_green),
        *(lambda: gcx.Stream.from_native(stream), lambda: gcx.verify(stream)),
        *(event.query, event.synchronize, lambda: event.native),
    ]
    for call in calls:
        with pytest.raises(gcx.InvalidHandleError, match="closed"):
            call()


def test_partition_with_a_closed_half_is_closed() -> None:
    for half in ("stream", "context"):
        (part,) = gcx.split([24])
        getattr(part, half).close()
        assert repr(part) == "<gcx.Partition, closed>"
        with pytest.raises(gcx.InvalidHandleError), part:
            pass
        part.close()
        assert part.context.closed
        assert part.stream.closed


def test_split_is_closed_as_a_whole() -> None:
    with gcx.split([24, 32]) as parts:
        assert repr(parts) == "<gcx.Partitions of 24, 32 SMs, 76 left over>"
        with gcx.Partition(parts.remainder) as rest:
            assert rest.sm_count == 76
    assert all(part.closed for part in parts)
    parts.close()
    parts = gcx.split([24, 32, None])
    with parts[1].context.make_current(), pytest.raises(gcx.ContextInUseError):
        parts.close()
    assert [part.closed for part in parts] == [True, False, True]
    assert not parts[1].stream.closed
    parts.close()


def test_failing_split_leaves_nothing(script: Any) -> None:
    """The driver has no memory for the second context, then none for the second stream."""
    for function in ("cuGreenCtxCreate", "cuGreenCtxStreamCreate"):
        script(f"""
import ctypes, gc, gcx
gcx.Device(0)
sim = ctypes.CDLL(gcx.driver_info().library)
gcx.split([8]).close()
gcx.set_cache_limit(0)
gcx.set_cache_limit(64)
sim.gcx_sim_fail(b"{function}", ctypes.c_uint64(2), 2)
try:
    gcx.split([16, 24])
except MemoryError as error:
    assert isinstance(error, gcx.OutOfMemoryError)
else:
    raise SystemExit("no error")
gc.collect()
assert gcx.cache_stats().in_use == 0, gcx.cache_stats()
""", "sim:h100@13.0")  # fmt: skip


def test_collected_object_is_closed(group: gcx.SMResource) -> None:
    """Code that resurrects it must not use a handle that may belong to another object."""
    context = gcx.Context(group)
    context.__del__()
    assert context.closed
    with pytest.raises(gcx.InvalidHandleError):
        _ = context.sm_count
    context.__del__()


def test_lease_is_released_without_the_cycle_collector() -> None:
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


def test_objects_end_in_any_order(group: gcx.SMResource) -> None:
    for order in permutations(range(4)):
        context, lease = gcx.Context(group), gcx.acquire(24)
        stream = context.stream()
        things: list[Any] = [context, stream, stream.record(), stream.resources]
        others: list[Any] = [lease, lease.stream, lease.create_stream(), lease.stream.record()]
        del context, stream, lease
        for number in order:
            things[number] = others[number] = None
        assert gcx.leases() == []
    for _ in range(100):
        gcx.split([24, None])
    gc.collect()
    assert gcx.cache_stats().in_use == 0


def test_threads_use_private_and_shared_objects(
    sms: gcx.SMResource, threads: ThreadPoolExecutor
) -> None:
    with gcx.Context(sms.split([24]).groups[0]) as shared, shared.stream() as stream:

        def work(number: int) -> None:
            for _ in range(200):
                (mine,), _ = sms.split([8 * (1 + number % 4)])
                with gcx.Context(mine) as context, context.stream() as own:
                    own.wait(stream)
                    stream.record().close()
                    with context.make_current():
                        assert gcx.current_context() is context
                with pytest.raises(gcx.ResourceConfigurationError, match="1000"):
                    sms.split([1000])

        for done in [threads.submit(work, number) for number in range(8)]:
            done.result(300)


def test_close_in_two_threads_succeeds_once(
    group: gcx.SMResource, threads: ThreadPoolExecutor
) -> None:
    for _ in range(100):
        context, lease = gcx.Context(group), gcx.acquire(8)
        stream, own = context.stream(), lease.stream
        barrier = threading.Barrier(3)

        def close(things: Any = (stream, lease), barrier: threading.Barrier = barrier) -> None:
            barrier.wait()
            for thing in things:
                thing.close()

        both = [threads.submit(close) for _ in range(2)]
        barrier.wait()
        with suppress(gcx.ContextDestroyedError, gcx.InvalidHandleError):
            own.sm_ids()
        for one in both:
            one.result(60)
        assert stream.closed
        assert lease.closed
        context.close()


def test_blocking_calls_release_the_gil(group: gcx.SMResource) -> None:
    counted = 0
    done = threading.Event()

    def count() -> None:
        nonlocal counted
        while not done.is_set():
            counted += 1
            time.sleep(0)

    with gcx.Context(group) as context, context.stream() as stream:
        interval = sys.getswitchinterval()
        sys.setswitchinterval(100)  # Only a released GIL lets the other thread run.
        try:
            thread = threading.Thread(target=count)
            thread.start()
            before = counted
            deadline = time.monotonic() + 10
            while counted == before and time.monotonic() < deadline:
                stream.synchronize()
            during = counted - before
        finally:
            done.set()
            sys.setswitchinterval(interval)
        thread.join()
    assert during > 0


def test_forked_child_gets_an_error_and_ends_quietly(script: Any) -> None:
    """repr and close work there; other uses raise and say what to do."""
    script("""
import gc, os, sys, gcx
(part,) = gcx.split([24])
event, device = part.stream.record(), gcx.Device(0)
sms = device.resources.sm
with part, gcx.split([8]) as parts, part.context.make_current(), gcx.Cancel() as cancel, \\
        gcx.acquire(24, name="parent's") as lease:
    stream = lease.create_stream()
    child = os.fork()
    if child == 0:
        for thing in (part, part.context, part.stream, event, part.resource, sms, device,
                      parts, lease, cancel, stream):
            assert repr(thing).startswith("<gcx."), thing
        for call in (part.stream.synchronize, part.context.stream, part.context.push,
                     lambda: gcx.split([8]), lambda: gcx.acquire(8), lease.query,
                     lambda: lease.resize(8), gcx.leases, cancel.signal,
                     lambda: gcx.acquire(8, timeout=None)):
            try:
                call()
            except gcx.NotInitializedError as error:
                assert "spawn" in str(error) and "exec" not in str(error), error
            else:
                raise SystemExit("no error in the child")
if child == 0:
    sys.exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
assert gcx.split([8])[0].sm_count == 8
""")


def test_fork_before_the_driver_is_open_works(script: Any) -> None:
    script("""
import gcx, os
child = os.fork()
if child == 0:
    assert gcx.split([8])[0].sm_count == 8
    raise SystemExit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
assert gcx.split([8])[0].sm_count == 8
""")


@pytest.mark.parametrize(
    "ending",
    [
        "",
        "del parts, lease, stream",
        "raise SystemExit(0)",
        "import sys; sys.modules.clear()",
        "import gc; cycle = [parts, lease]; cycle.append(cycle); del parts, lease; gc.collect()",
        "import builtins; builtins.kept = parts, lease, stream",
        "import threading; local = threading.local(); local.parts = parts, stream",
        "import atexit; atexit.register(lambda: [part.close() for part in parts])",
        "import atexit; atexit.register(lease.close); atexit.register(stream.close)",
        "import weakref; [weakref.finalize(it, print, end='') for it in (parts[0].stream, lease)]",
        "parts[0].context.push()",
        "event = parts[0].stream.record(); parts[1].stream.wait(event)",
        "streams = [part.stream for part in parts]; parts = [part.context for part in parts]",
        "import threading; threading.Thread(target=parts[0].stream.synchronize).start()",
        "import threading; threading.Thread(target=lease.synchronize).start()",
        "import threading, time; threading.Thread(target=lambda: [part.stream.synchronize() "
        "for _ in range(10**9) for part in parts], daemon=True).start(); time.sleep(0.05)",
        "import threading, time; threading.Thread(target=gcx.acquire, args=(132,), "
        "kwargs={'timeout': None}, daemon=True).start(); time.sleep(0.1)",
        "import threading, time; threading.Thread(target=lambda: [lease.resize(n % 8 + 1) "
        "for n in range(10**9)], daemon=True).start(); time.sleep(0.05)",
    ],
)
def test_exit_with_live_objects_is_quiet(script: Any, ending: str) -> None:
    objects = "parts = gcx.split([24, None]); lease = gcx.acquire(24); stream = lease.stream"
    assert script(f"import gcx\n{objects}\nlease.resize(32)\n{ending}\n") == ""


CALLS = (
    *("resources", "plan", "context", "context closed", "stream", "event", "record and wait"),
    *("external stream", "info", "error", "lease", "lease with stream", "resize", "lease info"),
    *("cancel", "lease error", "park", "partition"),
)


@pytest.mark.parametrize("name", CALLS)
def test_repeated_calls_leak_nothing(group: gcx.SMResource, name: str) -> None:
    context = gcx.Context(group)
    stream, sms = context.stream(), gcx.Device(0).resources.sm
    event, lease = stream.record(), gcx.acquire(16)

    def fails(call: Callable[[], object]) -> None:
        with suppress(gcx.Error):
            call()

    def partition() -> None:
        with gcx.split([24, None])[0] as part:
            part.stream.record().close()
            part.context.resources.sm.sm_ids()

    def park() -> None:
        lease.resize(gcx.PARKED)
        lease.resize(16)

    calls: dict[str, tuple[int, Callable[[], object]]] = {
        "resources": (50_000, lambda: (sms.split([24, None]), group | group, group.sm_count)),
        "plan": (50_000, lambda: sms.plan([10, None])),
        "context": (50_000, lambda: gcx.Context(group)),
        "context closed": (50_000, lambda: gcx.Context(group).close()),
        "stream": (50_000, lambda: context.stream().native),
        "event": (50_000, gcx.Event),
        "record and wait": (
            50_000,
            lambda: (stream.record(event), stream.wait(event), stream.query()),  # type: ignore[func-returns-value]
        ),
        "external stream": (50_000, lambda: gcx.Stream.from_native(stream)),
        "info": (50_000, lambda: (context.id, stream.sm_count, stream.resources.sm)),
        "error": (5000, lambda: fails(lambda: sms.split([1000]))),
        "lease": (5000, lambda: gcx.acquire(8).close()),
        "lease with stream": (5000, lambda: gcx.acquire(8, name="two").stream.native),
        "resize": (5000, lambda: (lease.resize(8), lease.resize(16))),  # type: ignore[func-returns-value]
        "lease info": (5000, lambda: (lease.resource, lease.query(), gcx.leases())),
        "cancel": (5000, lambda: gcx.Cancel().signal()),
        "lease error": (1000, lambda: fails(lambda: gcx.acquire(130))),
        "park": (5000, park),
        "partition": (1000, partition),
    }
    assert (*calls,) == CALLS
    rounds, call = calls[name]
    for _ in range(rounds // 50):
        call()
    gc.collect()
    before, blocks = alive(), sys.getallocatedblocks()
    references = sys.getrefcount(None), sys.getrefcount(group), sys.getrefcount(bytes(group))
    for _ in range(rounds):
        call()
    gc.collect()
    after = alive()
    for field in ("green_contexts", "streams", "events", "modules", "device_bytes_lost"):
        assert getattr(after, field) == getattr(before, field), field
    assert sys.getallocatedblocks() - blocks < 100
    grown = sys.getrefcount(None), sys.getrefcount(group), sys.getrefcount(bytes(group))
    assert all(b - a < 100 for a, b in zip(references, grown)), (references, grown)
    lease.close()

"""Contexts, streams and events: what they do, how they live and end."""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import gcx
import pytest
from work import alive  # type: ignore[import-not-found]


@pytest.fixture
def group(sms: gcx.SMResource) -> gcx.SMResource:
    return sms.split([24]).groups[0]


def test_row_2_a_context_from_resources(group: gcx.SMResource) -> None:
    with gcx.Context(group) as context:
        assert context.is_green
        assert (context.sm_count, context.device, context.stream_count) == (24, 0, 0)
        assert context.native != 0
        assert context.native_green != 0
        assert context.resources.sm == group
        assert gcx.current_context() is None
        with gcx.Context.from_native(context.native) as same, gcx.Context(group) as equal:
            assert same.id == equal.id == context.id
        assert "24 SMs" in repr(context)
    assert context.closed
    assert "closed" in repr(context)
    with pytest.raises(gcx.NotFoundError):
        gcx.Context.from_native(0xDEAD0)
    rest = gcx.Device(0).resources.sm - group
    with gcx.Context([group, rest]) as both:
        assert both.sm_count == 132


def test_row_2_making_current_and_popping(group: gcx.SMResource) -> None:
    with gcx.Context(group) as context, gcx.Context(group) as other:
        with context.make_current() as current:
            assert current is context
            assert gcx.current_context() is context
            with pytest.raises(gcx.ContextInUseError, match="current"):
                context.close()
            assert not context.closed
            with other.make_current():
                assert gcx.current_context() is other
                with pytest.raises(gcx.InvalidContextError, match="last"):
                    context.pop()
            assert gcx.current_context() is context
        assert gcx.current_context() is None
        with pytest.raises(gcx.InvalidContextError):
            context.pop()
        context.push()
        context.pop()
        with pytest.raises(RuntimeError, match="inside"), context.make_current():
            raise RuntimeError("inside")
        assert gcx.current_context() is None


def test_a_pushed_context_is_kept(group: gcx.SMResource) -> None:
    gcx.Context(group).push()
    gc.collect()
    context = gcx.current_context()
    assert context is not None
    assert context.sm_count == 24
    context.pop()
    context.close()


def test_row_2_a_stream_keeps_its_context(group: gcx.SMResource) -> None:
    context = gcx.Context(group)
    stream = context.stream(priority=-1)
    number = context.id
    context.close()
    del context
    gc.collect()
    assert (stream.sm_count, stream.device, stream.context_id) == (24, 0, number)
    assert stream.priority == -1
    assert stream.resources.sm == group
    stream.synchronize()
    assert stream.query()
    stream.close()


def test_row_2_streams_are_non_blocking_only(group: gcx.SMResource) -> None:
    with gcx.Context(group) as context, context.stream(nonblocking=True) as stream:
        assert stream.sm_count == group.sm_count
        with pytest.raises(ValueError, match="no blocking streams"):
            context.stream(nonblocking=False)
        with pytest.raises(TypeError, match="nonblocking"):
            context.stream(nonblocking=0)  # type: ignore[arg-type]
        assert context.stream_count == 1


def test_row_2_events(group: gcx.SMResource) -> None:
    with gcx.Context(group) as context, context.stream() as one, context.stream() as two:
        start, end = gcx.Event(timing=True), gcx.Event(0, timing=True)
        with start, end:
            assert one.record(start) is start
            two.wait(start)
            two.record(end)
            end.synchronize()
            assert end.query()
            assert start.elapsed_time(end) >= 0
            assert start.native != 0
            context.record(end)
            context.wait(start)
        with one.record() as event, context.record() as both:
            two.wait(event)
            two.wait(one)
            two.wait(context)
            context.wait(two)
            context.wait(both)
            with pytest.raises(gcx.InvalidHandleError):
                event.elapsed_time(both)
        context.synchronize()
        wrong: list[Any] = [0.5, "event", None]
        for bad in wrong:
            with pytest.raises(TypeError):
                one.wait(bad)
        with pytest.raises(TypeError, match=r"gcx\.Event"):
            one.record(two)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match=r"gcx\.Event"):
            start.elapsed_time(1.0)  # type: ignore[arg-type]
        with pytest.raises(TypeError):
            gcx.Event(timing=1)  # type: ignore[arg-type]


def test_use_after_close(group: gcx.SMResource) -> None:
    context = gcx.Context(group)
    stream = context.stream()
    event = stream.record()
    for thing in (event, stream, context):
        thing.close()
        thing.close()
        assert thing.closed
    calls: list[Callable[[], Any]] = [
        lambda: context.sm_count,
        lambda: context.native,
        lambda: context.resources,
        lambda: context.is_green,
        lambda: context.stream(),
        lambda: context.make_current(),
        lambda: context.push(),
        lambda: context.synchronize(),
        lambda: context.record(),
        lambda: context.wait(event),
        lambda: context.__enter__(),
        lambda: stream.native,
        lambda: stream.__cuda_stream__(),
        lambda: stream.sm_count,
        lambda: stream.resources,
        lambda: stream.synchronize(),
        lambda: stream.query(),
        lambda: stream.record(),
        lambda: stream.wait(event),
        lambda: stream.sm_ids(),
        lambda: stream.__enter__(),
        lambda: gcx.Stream.from_native(stream),
        lambda: gcx.verify(stream),
        lambda: event.query(),
        lambda: event.synchronize(),
        lambda: event.native,
        lambda: event.__enter__(),
    ]
    for call in calls:
        with pytest.raises(gcx.InvalidHandleError, match="closed"):
            call()
    assert "closed" in repr(stream) + repr(event)


def test_row_8_bad_arguments(group: gcx.SMResource) -> None:
    for bad in (None, 1, "resources", object()):
        with pytest.raises(TypeError, match="resource"):
            gcx.Context(bad)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"gcx\.SMResource"):
        gcx.Context([group, "workqueue"])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="empty"):
        gcx.Context([])
    for overlapping in ([group, group], [group, group.atoms[0]]):
        with pytest.raises(gcx.ResourceConfigurationError):
            gcx.Context(overlapping)
    with pytest.raises(gcx.ResourceConfigurationError, match="no SMs"):
        gcx.Context(group - group)
    fine = gcx.Device(0).resources.sm.split([2], family="fine").groups[0]
    with pytest.raises(gcx.ResourceConfigurationError):
        gcx.Context([group, fine])
    with pytest.raises(TypeError, match=r"Context\.stream"):
        gcx.Stream()
    with gcx.Context(group) as context:
        for bad in ("0", 0.5, None, True):
            with pytest.raises(TypeError, match="priority"):
                context.stream(bad)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="priority"):
            context.stream(2**31)
        for thing in (context, context.stream()):
            with pytest.raises(TypeError, match="pickled"):
                pickle.dumps(thing)


def test_threads(sms: gcx.SMResource) -> None:
    """Every thread makes, uses and closes its own, and all use one."""
    errors: list[BaseException] = []
    with gcx.Context(sms.split([24]).groups[0]) as shared, shared.stream() as stream:

        def work(number: int) -> None:
            try:
                for _ in range(200):
                    (mine,), _ = sms.split([8 * (1 + number % 4)])
                    with gcx.Context(mine) as context, context.stream() as own:
                        own.wait(stream)
                        stream.record().close()
                        with context.make_current():
                            assert gcx.current_context() is context
                    try:
                        sms.split([1000])
                    except gcx.ResourceConfigurationError as error:
                        assert "1000" in error.message  # noqa: PT017 - not this thread's raise
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not errors, errors[0]


def test_closing_in_two_threads_at_once(group: gcx.SMResource) -> None:
    errors: list[BaseException] = []
    for _ in range(200):
        context = gcx.Context(group)
        stream = context.stream()
        barrier = threading.Barrier(2)

        def close(stream: gcx.Stream = stream, barrier: threading.Barrier = barrier) -> None:
            barrier.wait()
            try:
                stream.close()
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=close) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        context.close()
    assert not errors, errors[0]


def test_a_context_current_elsewhere_is_not_this_threads(group: gcx.SMResource) -> None:
    found: list[object] = []
    with gcx.Context(group) as context, context.make_current():
        thread = threading.Thread(target=lambda: found.append(gcx.current_context()))
        thread.start()
        thread.join()
    assert found == [None]


def test_the_interpreter_runs_on_while_a_call_waits(group: gcx.SMResource) -> None:
    """The GIL is given up in calls that can block: another thread counts meanwhile."""
    counted = 0
    done = threading.Event()

    def count() -> None:
        nonlocal counted
        while not done.is_set():
            counted += 1
            time.sleep(0)

    with gcx.Context(group) as context, context.stream() as stream:
        interval = sys.getswitchinterval()
        sys.setswitchinterval(100)  # Only who gives up the GIL lets the other thread run.
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


def test_after_a_fork_the_child_gets_an_error(group: gcx.SMResource) -> None:
    context = gcx.Context(group)
    stream = context.stream()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        failed = 1
        try:
            calls: list[Callable[[], Any]] = [
                stream.synchronize, context.stream, context.push, lambda: gcx.split([8])
            ]  # fmt: skip
            for call in calls:
                try:
                    call()
                except gcx.NotInitializedError as error:
                    assert "fork" in str(error)  # noqa: PT017 - pytest isn't the child's
                else:
                    raise AssertionError("no error in the child")
            del call, calls, stream, context
            gc.collect()
            failed = 0
        finally:
            os.write(write, bytes([failed]))
            os._exit(failed)
    os.close(write)
    answer = os.read(read, 1)
    os.close(read)
    assert os.waitpid(child, 0)[1] == 0
    assert answer == b"\0"
    stream.synchronize()
    stream.close()
    context.close()


def test_a_fork_before_anything_was_used_is_fine(script: Any) -> None:
    code = """
import gcx, os
child = os.fork()
if child == 0:
    assert gcx.split([8])[0].sm_count == 8
    raise SystemExit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
assert gcx.split([8])[0].sm_count == 8
"""
    script(code)


@pytest.mark.parametrize(
    "ending",
    [
        "",
        "del parts",
        "raise SystemExit(0)",
        "import sys; sys.modules.clear()",
        "import gc; cycle = [parts]; cycle.append(cycle); del parts; gc.collect()",
        "import builtins; builtins.kept = parts",
        "import threading; local = threading.local(); local.parts = parts",
        "import atexit; atexit.register(lambda: [part.close() for part in parts])",
        "import weakref; [weakref.finalize(part.stream, print, end='') for part in parts]",
        "parts[0].context.push()",
        "event = parts[0].stream.record(); parts[1].stream.wait(event)",
        "streams = [part.stream for part in parts]; parts = [part.context for part in parts]",
        "import threading; threading.Thread(target=lambda: parts[0].stream.synchronize()).start()",
        "import threading, time; threading.Thread(target=lambda: [part.stream.synchronize() "
        "for _ in range(10**9) for part in parts], daemon=True).start(); time.sleep(0.05)",
    ],
)
def test_interpreter_exit_with_live_partitions_is_quiet(script: Any, ending: str) -> None:
    assert script(f"import gcx\nparts = gcx.split([24, None])\n{ending}\n") == ""


def test_objects_end_in_any_order(group: gcx.SMResource) -> None:
    from itertools import permutations

    for order in permutations(range(4)):
        context = gcx.Context(group)
        stream = context.stream()
        things: list[Any] = [context, stream, stream.record(), stream.resources]
        del context, stream
        for number in order:
            things[number] = None
        gc.collect()
    assert gcx.cache_stats().in_use == 0


ROUNDS = 100_000


def _rounds(group: gcx.SMResource) -> dict[str, Callable[[], object]]:
    context = gcx.Context(group)
    stream = context.stream()
    event = stream.record()
    sms = gcx.Device(0).resources.sm

    def failing() -> None:
        with contextlib.suppress(gcx.Error):
            sms.split([1000])

    def fence() -> None:
        stream.record(event)
        stream.wait(event)
        stream.query()

    return {
        "resources": lambda: (sms.split([24, None]), group | group, group.sm_count),
        "plan": lambda: sms.plan([10, None]),
        "context": lambda: gcx.Context(group),
        "context closed": lambda: gcx.Context(group).close(),
        "stream": lambda: context.stream().native,
        "event": lambda: gcx.Event(),
        "record and wait": fence,
        "foreign stream": lambda: gcx.Stream.from_native(stream),
        "info": lambda: (context.id, stream.sm_count, stream.resources.sm),
        "error": failing,
    }


@pytest.mark.parametrize("what", list(range(10)))
def test_no_leaks_over_100000_rounds(group: gcx.SMResource, what: int) -> None:
    name, call = list(_rounds(group).items())[what]
    rounds = ROUNDS if name != "error" else ROUNDS // 10
    for _ in range(1000):
        call()
    gc.collect()
    before, blocks = alive(), sys.getallocatedblocks()
    references = sys.getrefcount(None), sys.getrefcount(group), sys.getrefcount(bytes(group))
    for _ in range(rounds):
        call()
    gc.collect()
    after = alive()
    for field in ("green_contexts", "streams", "events", "modules", "device_bytes_lost"):
        assert getattr(after, field) == getattr(before, field), f"{name}: {field}"
    assert sys.getallocatedblocks() - blocks < 100, name
    grown = sys.getrefcount(None), sys.getrefcount(group), sys.getrefcount(bytes(group))
    assert all(b - a < 100 for a, b in zip(references, grown)), (name, references, grown)


def test_no_memory_of_python_is_kept(group: gcx.SMResource) -> None:
    def round_() -> None:
        with gcx.split([24, None])[0] as part:
            part.stream.record().close()
            part.context.resources.sm.sm_ids()

    for _ in range(100):
        round_()
    tracemalloc.start()
    try:
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(1000):
            round_()
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] - before < 4096
    finally:
        tracemalloc.stop()


_RESET = """
import ctypes, sys, types
import gcx
from gcx.compat import flashinfer

class Stream:
    def __init__(self, pointer, device): self.cuda_stream = pointer

sys.modules["torch"] = types.SimpleNamespace(cuda=types.SimpleNamespace(ExternalStream=Stream))
part = gcx.split([24])[0]
flashinfer.split_device_green_ctx(0, 1, 24)  # Thrown away, so that its streams are kept.
assert ctypes.CDLL(gcx.driver_info().library).cuDevicePrimaryCtxReset_v2(0) == 0
for use in (lambda: part.stream.native, lambda: part.stream.torch(), part.stream.synchronize,
            part.context.stream, lambda: part.context.native):
    try:
        use()
    except gcx.ContextDestroyedError:
        continue
    raise SystemExit("a stream outlived the reset")
part.close()
streams, _ = flashinfer.split_device_green_ctx(0, 1, 24)
for stream in streams:
    with gcx.Stream.from_native(stream) as again:
        again.synchronize()
print(gcx.verify([24, None]).ok)
"""


def test_a_reset_of_the_device_is_noticed(script: Any) -> None:
    """On a driver that permits it while green contexts live, as the simulated 12.4 does."""
    assert script(_RESET, driver="sim:h100@12.4") == "True\n"


def test_in_a_forked_child_nothing_raises_at_an_end(script: Any) -> None:
    """What shows or closes objects of the parent works there; what uses them says what to do."""
    code = """
import os, sys, gcx
(part,) = gcx.split([24])
event, sms = part.stream.record(), gcx.Device(0).resources.sm
things = [part, part.context, part.stream, event, part.resource, sms, gcx.Device(0)]
with part, gcx.split([8]) as parts, part.context.make_current():
    child = os.fork()
    if child == 0:
        for thing in [*things, parts]:
            assert repr(thing).startswith("<gcx."), thing
        try:
            part.stream.synchronize()
        except gcx.NotInitializedError as error:
            assert "spawn" in str(error) and "exec" not in str(error), error
        else:
            raise SystemExit("no error")
if child == 0:
    sys.exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
"""
    script(code)


def test_a_collected_object_is_closed(group: gcx.SMResource) -> None:
    """Whoever got hold of it again while it was collected can't use its handle, which may be
    another's by then."""
    context = gcx.Context(group)
    context.__del__()
    assert context.closed
    with pytest.raises(gcx.InvalidHandleError):
        _ = context.sm_count
    context.__del__()

"""Conversion of arguments and results: counts, options, devices, resources, wrong values, types."""

from __future__ import annotations

import copy
import inspect
import operator
import pickle
import sys
import typing
from pathlib import Path
from typing import Any

import gcx
import pytest


def counts(split: gcx.Split) -> tuple[list[int], int]:
    return [group.sm_count for group in split.groups], split.remainder.sm_count


class Array:
    """Numbers as NumPy and PyTorch have them: comparing gives an array, which is neither true nor
    false, and an array of one number is an index."""

    def __init__(self, *numbers: Any, scalar: bool = False) -> None:
        self.numbers = numbers
        self.scalar = scalar

    def __eq__(self, other: object) -> Any:
        return Array(*(number == other for number in self.numbers))

    def __bool__(self) -> bool:
        raise ValueError("The truth value of an array with more than one element is ambiguous")

    def __iter__(self) -> Any:
        if self.scalar:
            raise TypeError("iteration over a 0-d array")
        return iter(Array(number, scalar=True) for number in self.numbers)

    def __index__(self) -> int:
        if len(self.numbers) != 1 or type(self.numbers[0]) is not int:
            raise TypeError("only integer scalar arrays can be converted to a scalar index")
        return self.numbers[0]


@pytest.mark.parametrize(
    ("requested", "given"),
    [
        ([108, 24], ([108, 24], 0)),
        ([24, None], ([24, 108], 0)),
        ([10], ([12], 120)),
        ([None], ([132], 0)),
        (24, ([24], 108)),
        ((24, 24), ([24, 24], 84)),
        (range(8, 25, 8), ([8, 16, 24], 84)),
        (gcx.SplitOptions([16, None]), ([16, 116], 0)),
        (gcx.SplitOptions(16), ([16], 116)),
        (Array(8, 16), ([8, 16], 108)),
        (Array(24, scalar=True), ([24], 108)),
        ([Array(24, scalar=True)], ([24], 108)),
        (gcx.SplitOptions(Array(8, 16)), ([8, 16], 108)),
    ],
)
def test_counts_are_converted(
    sms: gcx.SMResource, requested: Any, given: tuple[list[int], int]
) -> None:
    assert counts(sms.split(requested)) == given
    assert sms.plan(requested) == (tuple(given[0]), given[1])
    with gcx.split(requested) as parts:
        assert [part.sm_count for part in parts] == given[0]


def refused(error: type[Exception], *bad: Any) -> list[tuple[Any, type[Exception]]]:
    return [(one, error) for one in bad]


BAD = [
    *refused(TypeError, "24", b"24", 24.0, True, {24}, {24: 1}, ["24"], [24.0], [True], [[24]]),
    *refused(TypeError, [object()], Array(8.0), Array(8.0, scalar=True), [Array(8, 16)]),
    *refused(TypeError, Array(True, "x")),
    *refused(ValueError, [], (), iter([]), Array(), 0, [0], -8, [24, -8], [24, 0]),
    *refused(ValueError, [2**32 - 1], [2**32], [2**80], Array(-1, scalar=True)),
]


@pytest.mark.parametrize(("bad", "error"), BAD, ids=[repr(bad)[:24] for bad, _ in BAD])
def test_bad_counts_are_refused(sms: gcx.SMResource, bad: Any, error: type[Exception]) -> None:
    for call in (sms.split, sms.plan, gcx.split, gcx.verify):
        with pytest.raises(error) as caught:
            call(bad)
        assert len(str(caught.value)) > 10
    if error is ValueError:
        assert isinstance(caught.value, gcx.Error)


def test_split_arguments_are_converted(sms: gcx.SMResource) -> None:
    with gcx.split(10, family="fine", priority=-2) as (fine,):
        assert (fine.sm_count, fine.resource.family, fine.stream.priority) == (10, "fine", -2)
    for options, error in (
        ({"exact": True}, gcx.ResourceConfigurationError),
        ({"family": "large"}, ValueError),
        *(({name: 1}, TypeError) for name in ("family", "exact", "exclude_leased")),
    ):
        with pytest.raises(error):
            sms.split([10], **options)  # type: ignore[arg-type]
    for call in (gcx.split, gcx.verify):  # 108, 24 is a slip for [108, 24], not device 24.
        with pytest.raises(TypeError, match="positional"):
            call(108, 24)  # type: ignore[misc]


def test_structured_options_need_13_1(sms: gcx.SMResource, version: tuple[int, int]) -> None:
    options = gcx.SplitOptions(count=16, coscheduled_sm_count=[8, 8], backfill=False)
    assert repr(options) == "gcx.SplitOptions(count=16, coscheduled_sm_count=(8, 8))"
    if version < (13, 1):
        with pytest.raises(gcx.NotSupportedError, match=r"13\.1"):
            sms.split(options)
        return
    groups, _ = sms.split(options)
    assert [(group.sm_count, group.family) for group in groups] == [(16, "structured")] * 2
    with pytest.raises(gcx.Error) as caught:
        groups[0].sm_ids()
    assert "map_sms" not in str(caught.value).partition(":")[2]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"count": []}, ValueError),
        ({"count": [8, 8], "backfill": [True]}, ValueError),
        ({"count": "8"}, TypeError),
        ({"count": 8, "backfill": 1}, TypeError),
        ({"count": 8, "coscheduled_sm_count": -1}, ValueError),
        ({"count": 8, "coscheduled_sm_count": 8.0}, TypeError),
        ({"count": 8, "preferred_coscheduled_sm_count": 2**40}, ValueError),
        ({"count": 8, "locality_domain": "near"}, ValueError),
        ({"count": 8, "locality_domain": -1}, ValueError),
        ({"count": 8, "locality_domain": 1.5}, TypeError),
    ],
)
def test_bad_options_are_refused(arguments: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        gcx.SplitOptions(**arguments)


def test_options_are_an_immutable_value() -> None:
    counts = [8, 16]
    options = gcx.SplitOptions(counts, backfill=True)
    counts.append(24)
    assert options.count == (8, 16)
    assert options == gcx.SplitOptions((8, 16), backfill=[True, True])
    assert options != gcx.SplitOptions((8, 16))
    assert options != [8, 16]
    assert len({options, gcx.SplitOptions([8, 16], backfill=True), gcx.SplitOptions(8)}) == 2
    assert pickle.loads(pickle.dumps(options)) == copy.deepcopy(options) == options
    for name in ("count", "_requests", "nonsense"):
        with pytest.raises(AttributeError, match="can't be changed"):
            setattr(options, name, 8)
    with pytest.raises(AttributeError, match="can't be changed"):
        del options.count


def test_resources_are_values_and_sets(sms: gcx.SMResource) -> None:
    (small, other), rest = sms.split([24, 16])
    assert (sms.sm_count, sms.device, sms.family) == (132, 0, "coscheduled")
    assert (sms.min_partition_size, sms.coscheduled_alignment) == (8, 8)
    assert gcx.SMResource(bytes(small)) == copy.deepcopy(small) == copy.copy(small) == small
    assert len({small, sms.split([24]).groups[0], other}) == 2
    assert small != "24 SMs"
    assert ((small | other) - other, (small | other) & small) == (small, small)
    assert [atom.sm_count for atom in small.atoms] == [8, 8, 8]
    empty = small - small
    assert not empty
    assert empty <= small <= small <= sms
    assert empty < small < sms
    assert not small < small
    assert sms >= small
    assert sms > small
    assert not small <= other
    assert not small <= rest
    assert small.isdisjoint(other)
    assert not small.isdisjoint(sms)
    wrong: Any = 24
    for use in (operator.le, operator.lt, operator.gt, operator.ge, operator.or_, operator.sub):
        with pytest.raises(TypeError):
            use(small, wrong)
    for method in (small.isdisjoint, small.overlap, gcx.SMResource, gcx.Partition):
        with pytest.raises(TypeError):
            method(wrong)
    with pytest.raises(TypeError, match="only in this process"):
        pickle.dumps(small)
    for forged in (bytes(128), b"\1" * 128):
        with pytest.raises((gcx.InvalidResourceTypeError, gcx.ResourceConfigurationError)):
            gcx.SMResource(forged)
    with pytest.raises(ValueError, match="128 bytes"):
        gcx.SMResource(b"short")
    with pytest.raises(gcx.InvalidResourceTypeError):
        gcx.WorkqueueResource(bytes(small))


def test_sm_ids_map_the_family_at_the_first_use(script: Any) -> None:
    script("""
import gcx
device = gcx.Device(0)
a, b = (device.resources.sm.split([8], family=name).groups[0] for name in ("coscheduled", "fine"))
try:
    a.overlap(b)
except gcx.SmsNotMappedError as error:
    assert 'gcx.Device(0).map_sms("' in str(error), error
else:
    raise SystemExit("no error")
assert a.sm_ids() == tuple(sorted(a.sm_ids())) and len(b.sm_ids()) == 8
assert a.overlap(b) == len(set(a.sm_ids()) & set(b.sm_ids()))
with gcx.Partition(a) as part:
    assert part.stream.sm_ids() == a.sm_ids()
    assert a.max_cluster_size() == 8
""")


def test_workqueues_are_converted(sms: gcx.SMResource, version: tuple[int, int]) -> None:
    if version < (13, 1):
        with pytest.raises(gcx.NotSupportedError, match=r"13\.1"):
            _ = gcx.Device(0).resources.workqueue
        with pytest.raises(gcx.NotSupportedError, match=r"13\.1"):
            gcx.acquire(8, require_workqueues=True)
        return
    gcx.acquire(8, require_workqueues=True).close()
    default = gcx.Device(0).resources.workqueue
    assert default.scope == "device_ctx"
    mine = default.configured("green_ctx_balanced", 4)
    assert (mine.scope, mine.concurrency_limit, mine.device) == ("green_ctx_balanced", 4, 0)
    assert mine.configured(concurrency_limit=2).scope == "green_ctx_balanced"
    assert "green_ctx_balanced" in repr(mine)
    with gcx.Context([sms.split([24]).groups[0], mine]) as context, context.stream() as stream:
        assert context.resources.workqueue.concurrency_limit == 4
        assert stream.resources.workqueue.scope == "green_ctx_balanced"
    with gcx.split([24], workqueue=mine) as (part,):
        assert part.context.resources.workqueue == mine
    for arguments, error in ((("shared",), ValueError), ((1,), TypeError), ((None, 0), ValueError)):
        with pytest.raises(error):
            default.configured(*arguments)


@pytest.mark.parametrize("bad", ["cuda:0", 0.0, True, None, object()])
def test_bad_devices_are_refused(bad: Any) -> None:
    for call in (gcx.Device, lambda device: gcx.split([8], device=device), gcx.Event):
        with pytest.raises(TypeError, match="device"):
            call(bad)


def test_contexts_streams_and_events_are_converted(group: gcx.SMResource) -> None:
    with gcx.Context(group) as context, context.stream() as one, context.stream() as two:
        assert context.is_green
        assert (context.sm_count, context.device, context.stream_count) == (24, 0, 2)
        assert context.native != 0
        assert context.native_green != 0
        assert context.resources.sm == group
        assert "24 SMs" in repr(context)
        start, end = gcx.Event(timing=True), gcx.Event(0, timing=True)
        with start, end, one.record() as event, context.record() as both:
            assert one.record(start) is start
            for what in (start, one, context, both):
                two.wait(what)
                context.wait(what)
            two.record(end)
            end.synchronize()
            assert end.query()
            assert start.elapsed_time(end) >= 0
            with pytest.raises(gcx.InvalidHandleError):
                event.elapsed_time(both)
        context.synchronize()


def test_wrong_values_are_refused(group: gcx.SMResource, part: gcx.Partition) -> None:
    decode = gcx.acquire(8)
    a: Any = gcx  # Without the types.
    stream: Any = part.stream
    context: Any = part.context
    wrong: list[tuple[type[Exception], str, Any]] = [
        (gcx.InvalidDeviceError, "7", lambda: a.Device(7)),
        (gcx.InvalidDeviceError, "no device -1", lambda: a.Device(-1)),
        (gcx.InvalidDeviceError, "no device", lambda: a.Device(2**40)),
        *((TypeError, "resource", lambda bad=bad: a.Context(bad)) for bad in (None, 1, "r")),
        (TypeError, "gcx.SMResource", lambda: a.Context([group, "workqueue"])),
        (ValueError, "empty", lambda: a.Context([])),
        (gcx.ResourceConfigurationError, "", lambda: a.Context([group, group])),
        (TypeError, "private", lambda: a.Context(group, private=1)),
        (TypeError, "Context.stream", a.Stream),
        *((TypeError, "priority", lambda bad=bad: context.stream(bad)) for bad in ("0", 0.5, True)),
        (ValueError, "priority", lambda: context.stream(2**31)),
        (ValueError, "no blocking streams", lambda: context.stream(nonblocking=False)),
        (TypeError, "nonblocking", lambda: context.stream(nonblocking=0)),
        *((TypeError, "", lambda bad=bad: stream.wait(bad)) for bad in (0.5, "event", None)),
        (TypeError, "gcx.Event", lambda: stream.record(part.stream)),
        (TypeError, "gcx.Event", lambda: gcx.Event(timing=True).elapsed_time(a)),
        (TypeError, "timing", lambda: a.Event(timing=1)),
        (TypeError, "blocking", lambda: a.Event(blocking=1)),
        *((TypeError, "pickled", lambda it=it: pickle.dumps(it)) for it in (part.context, decode)),
        (gcx.InvalidDeviceError, "7", lambda: a.acquire(8, device=7)),
        (gcx.InvalidValueError, "at least 1, not 0", lambda: a.acquire(0)),
        (gcx.InvalidValueError, "at least 1, not -1; None", lambda: a.acquire(-1)),
        (gcx.InvalidValueError, "at most 4294967294", lambda: a.acquire(2**32 - 1)),
        (TypeError, "'8'", lambda: a.acquire("8")),
        (TypeError, "True", lambda: a.acquire(True)),
        (TypeError, "positional", lambda: a.acquire(8, "name")),
        (TypeError, "name", lambda: a.acquire(8, name=b"x")),
        (TypeError, "name", lambda: a.acquire(8, name=None)),
        (gcx.InvalidValueError, "null", lambda: a.acquire(8, name="a\0b")),
        (gcx.InvalidValueError, "UTF-8", lambda: a.acquire(8, name="\udcff")),
        (gcx.InvalidValueError, "63 bytes", lambda: a.acquire(8, name="ä" * 32)),
        (gcx.InvalidValueError, "Fine", lambda: a.acquire(8, family="Fine")),
        (TypeError, "shared", lambda: a.acquire(8, shared=1)),
        (TypeError, "require_workqueues", lambda: a.acquire(8, require_workqueues=1)),
        (gcx.InvalidValueError, "min_sm_count", lambda: a.acquire(8, min_sm_count=9)),
        (gcx.InvalidValueError, "at least 1", lambda: a.acquire(8, min_sm_count=0)),
        (gcx.InvalidValueError, "shared=True", lambda: a.acquire(8, exclusive_sm_count=8)),
        (TypeError, "priority", lambda: a.acquire(8, priority=0.5)),
        *((TypeError, "timeout", lambda t=t: a.acquire(8, timeout=t)) for t in ("1", True)),
        (gcx.InvalidValueError, "not -1", lambda: a.acquire(8, timeout=-1)),
        (gcx.InvalidValueError, "0 to 4294967 s", lambda: a.acquire(8, timeout=10**5000)),
        (gcx.InvalidValueError, "None waits", lambda: a.acquire(8, timeout=float("inf"))),
        (gcx.InvalidValueError, "not nan", lambda: a.acquire(8, timeout=float("nan"))),
        (TypeError, "cancel", lambda: a.acquire(8, cancel=1)),
        (gcx.InvalidValueError, "no leases", lambda: a.resize({})),
        (TypeError, "not as list", lambda: a.resize([decode])),
        (TypeError, "not as Lease", lambda: a.resize(decode)),
        (TypeError, "not Stream", lambda: a.resize({decode.stream: 8})),
        (gcx.InvalidValueError, "gcx.PARKED", lambda: a.resize({decode: 0})),
        (TypeError, "'8'", lambda: a.prepare({decode: "8"})),
        (TypeError, "deferred", lambda: a.resize({decode: 16}, deferred=1)),
        (TypeError, "gcx.acquire", a.Lease),
        (TypeError, "is made by", a.Reservation),
        (gcx.InvalidValueError, "at least 1, not 0", lambda: a.reserve(0)),
        (gcx.InvalidValueError, "", lambda: a.reserve(8, min_sm_count=16)),
        (gcx.InvalidValueError, "name", lambda: a.reserve(8, name="x" * 64)),
        (gcx.InvalidValueError, "-1", lambda: a.reserve(8, timeout=-1)),
        (gcx.InvalidValueError, "another", lambda: a.reserve(8, family="another")),
        *((TypeError, "", lambda n=n: a.reserve(8, **{n: 1})) for n in ("inherit", "folder")),
        (gcx.InvalidDeviceError, "7", lambda: a.reserve(8, device=7)),
        (gcx.ResourceConfigurationError, "132", lambda: a.reserve(133)),
        *((ValueError, "name must", lambda x=x: a.publish(x)) for x in ("x" * 64, "a\0", "\udcff")),
        (TypeError, "name must be a string", lambda: a.publish(1)),
        *((ValueError, "connections", lambda n=n: a.request_connections(n)) for n in (0, 33, -1)),
        (TypeError, "connections", lambda: a.request_connections("8")),
    ]
    for kind, words, call in wrong:
        with pytest.raises(kind) as caught:
            call()
        assert words in str(caught.value), words
    assert [lease.sm_count for lease in gcx.leases()] == [8]


def misuse(sms: gcx.SMResource, stream: gcx.Stream, lease: gcx.Lease) -> None:
    """Never called. mypy must refuse each line: an ignore that isn't needed is an error itself."""
    gcx.Device("cuda:0")  # type: ignore[arg-type]
    gcx.Device(None)  # type: ignore[arg-type]
    gcx.Event("cuda:0")  # type: ignore[arg-type]
    gcx.split([8], device="cuda:0")  # type: ignore[arg-type]
    gcx.split([8], 0)  # type: ignore[misc]
    gcx.split("8")  # type: ignore[arg-type]
    gcx.split([8], family="Fine")  # type: ignore[arg-type]
    sms.plan([8.0])  # type: ignore[list-item]
    gcx.verify("x")  # type: ignore[arg-type]
    gcx.SplitOptions(8, locality_domain="near")  # type: ignore[arg-type]
    gcx.SplitOptions(8).count = 16
    gcx.Stream.from_native("stream")  # type: ignore[arg-type]
    stream.wait("event")  # type: ignore[arg-type]
    gcx.acquire()  # type: ignore[call-arg]
    gcx.acquire("8")  # type: ignore[arg-type]
    gcx.acquire(8, "name")  # type: ignore[misc]
    gcx.acquire(8, timeout="1")  # type: ignore[arg-type]
    gcx.acquire(8, cancel=lease)  # type: ignore[arg-type]
    gcx.resize([lease])  # type: ignore[arg-type]
    gcx.resize({stream: 8})  # type: ignore[dict-item]
    gcx.prepare({lease: "8"})  # type: ignore[dict-item]
    gcx.acquire(gcx.PARKED)  # type: ignore[arg-type]
    gcx.Graph("graph")  # type: ignore[arg-type]
    gcx.Graph(1).launch("stream")  # type: ignore[arg-type]
    gcx.Graph(1).prepare(8)  # type: ignore[arg-type]
    gcx.current(sms)  # type: ignore[arg-type]
    gcx.prewarm([8])  # type: ignore[list-item]
    gcx.prewarm(sms, progress="x")  # type: ignore[arg-type]
    gcx.reserve("8")  # type: ignore[arg-type]
    stream.kernel_fit("kernel", 32)  # type: ignore[arg-type]
    stream.cuda_stream  # type: ignore[attr-defined]  # noqa: B018


def whole_numbers() -> typing.Iterator[typing.SupportsIndex]:
    yield 8
    yield 16


def test_what_type_checkers_accept_works(sms: gcx.SMResource, folder: Path) -> None:
    numbers: gcx.Counts = whole_numbers()
    family: gcx.Family = "fine"
    count: gcx.Count = None
    device: gcx.DeviceLike = gcx.Device(0)
    assert [group.sm_count for group in sms.split(numbers, exact=bool(sms)).groups] == [8, 16]
    assert sms.plan(count).groups == (132,)
    with gcx.split([8], device=device, family=family) as (part,), gcx.reserve(count) as reservation:
        with part.context as context, context.stream() as stream, stream.record() as event:
            things: tuple[gcx.Context, gcx.Stream, gcx.Event] = context, stream, event
        assert all(thing.closed for thing in things)
        assert reservation.sm_count == 132
    with gcx.acquire(count, device=device, timeout=0.5) as lease, gcx.Cancel() as cancel:
        sizes: dict[gcx.Lease, gcx.Count] = {lease: 8}
        gcx.resize(sizes)
        gcx.Stream.from_native(lease).wait(lease)
        gcx.acquire(8, min_sm_count=4, timeout=1, cancel=cancel).close()


@pytest.mark.skipif(sys.version_info < (3, 10), reason="int | None is no type before Python 3.10")
def test_hints_resolve() -> None:
    checked = 0
    for name in gcx.__all__:
        what: Any = getattr(gcx, name)
        if inspect.isfunction(what):
            assert "return" in typing.get_type_hints(what), name
            checked += 1
        if inspect.isclass(what):
            for member in vars(what).values():
                function = getattr(member, "fget", getattr(member, "__func__", member))
                if inspect.isfunction(function) and function.__module__.startswith("gcx"):
                    typing.get_type_hints(function)
                    checked += 1
    assert checked > 100

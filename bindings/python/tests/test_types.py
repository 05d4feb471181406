"""Types: what type checkers accept works, and what fails they refuse."""

from __future__ import annotations

import inspect
import sys
import typing
from typing import Any

import gcx
import pytest


def misuse(sms: gcx.SMResource, stream: gcx.Stream, lease: gcx.Lease) -> None:
    """Never called. Each line is one that mypy has to refuse: an ignore that nothing needs is an
    error of its own."""
    gcx.Device("cuda:0")  # type: ignore[arg-type]
    gcx.Device(None)  # type: ignore[arg-type]
    gcx.Event("cuda:0")  # type: ignore[arg-type]
    gcx.split([8], device="cuda:0")  # type: ignore[arg-type]
    gcx.split([8], 0)  # type: ignore[misc]
    gcx.split("8")  # type: ignore[arg-type]
    gcx.split([8], family="Fine")  # type: ignore[arg-type]
    sms.split([8], family="Fine")  # type: ignore[arg-type]
    sms.plan([8.0])  # type: ignore[list-item]
    gcx.verify("x")  # type: ignore[arg-type]
    gcx.verify([8], family="Fine")  # type: ignore[arg-type]
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
    lease.hand_over(stream)  # type: ignore[arg-type]
    gcx.Graph("graph")  # type: ignore[arg-type]
    gcx.Graph(1).launch("stream")  # type: ignore[arg-type]
    gcx.Graph(1).prepare(8)  # type: ignore[arg-type]
    gcx.current(sms)  # type: ignore[arg-type]
    gcx.prewarm([8])  # type: ignore[list-item]
    gcx.prewarm(sms, progress="x")  # type: ignore[arg-type]
    stream.kernel_fit("kernel", 32)  # type: ignore[arg-type]
    stream.cuda_stream  # type: ignore[attr-defined]  # noqa: B018


def whole_numbers() -> typing.Iterator[typing.SupportsIndex]:
    yield 8
    yield 16


def test_what_type_checkers_accept_works(sms: gcx.SMResource) -> None:
    sure = bool(sms)
    counts: gcx.Counts = whole_numbers()
    family: gcx.Family = "fine"
    count: gcx.Count = None
    device: gcx.DeviceLike = gcx.Device(0)
    assert [group.sm_count for group in sms.split(counts, exact=sure).groups] == [8, 16]
    assert sms.plan(count).groups == (132,)
    with gcx.split([8], device=device, family=family) as parts:
        (part,) = parts
        typing.assert_type(part, gcx.Partition) if sys.version_info >= (3, 11) else None
        with part.context as context, context.stream() as stream, stream.record() as event:
            things: tuple[gcx.Context, gcx.Stream, gcx.Event] = context, stream, event
    assert all(thing.closed for thing in things)
    with gcx.acquire(count, device=device, timeout=0.5) as lease, gcx.Cancel() as cancel:
        sizes: dict[gcx.Lease, gcx.Count] = {lease: 8}
        gcx.resize(sizes)
        stream.from_native(lease).wait(lease)
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

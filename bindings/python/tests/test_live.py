"""What lives in the process: contexts of one's own, and what others hold."""

from __future__ import annotations

import gcx
import pytest


def test_live_contexts_are_those_in_use(sms: gcx.SMResource) -> None:
    assert gcx.live_contexts() == []
    (small, other), _ = sms.split([24, 16])
    with gcx.Context(small) as context, context.stream() as stream, gcx.Context(small):
        with gcx.Context(other, private=True) as mine:
            first, second = sorted(gcx.live_contexts(0), key=lambda live: live.private)
            assert first == (context.id, 0, 24, 2, 1, False, small)
            assert second == (mine.id, 0, 16, 1, 0, True, other)
            assert small.live_overlap() == 24
            assert sms.live_overlap() == 40
        context.close()
        (live,) = gcx.live_contexts()
        assert (live.handle_count, live.stream_count) == (1, 1)
        assert live.id == stream.context_id
    assert gcx.live_contexts(gcx.Device(0)) == []
    assert sms.live_overlap() == 0
    with pytest.raises(gcx.InvalidDeviceError):
        gcx.live_contexts(7)
    with pytest.raises(gcx.InvalidDeviceError):
        gcx.live_contexts(-1)
    with pytest.raises(TypeError, match="private"):
        gcx.Context(small, private=1)  # type: ignore[arg-type]


def test_many_live_contexts(sms: gcx.SMResource) -> None:
    with gcx.split([2] * 66, family="fine") as parts:
        assert {live.id for live in gcx.live_contexts()} == {part.context.id for part in parts}

"""The short way, and the proof."""

from __future__ import annotations

import gc
from typing import Any
from xml.etree import ElementTree

import gcx
import pytest


def test_the_short_way() -> None:
    decode, prefill = gcx.split([24, None])
    assert (decode.sm_count, prefill.sm_count) == (24, 108)
    assert decode.resource.overlap(prefill.resource) == 0
    assert decode.stream.sm_count == 24
    assert decode.device == 0
    with decode, prefill:
        assert decode.context.stream_count == 1
    assert decode.closed
    assert decode.stream.closed
    assert "closed" in repr(decode)
    assert "108 SMs" in repr(gcx.split([108])[0])


def test_the_short_way_takes_what_split_takes() -> None:
    (fine,) = gcx.split(10, family="fine", priority=-2)
    assert (fine.sm_count, fine.resource.family, fine.stream.priority) == (10, "fine", -2)
    assert [part.sm_count for part in gcx.split(gcx.SplitOptions([8, None]))] == [8, 124]
    with pytest.raises(gcx.ResourceConfigurationError):
        gcx.split([10], exact=True)


class TorchDevice:
    """What a torch.device looks like."""

    def __init__(self, index: int | None, kind: str = "cuda") -> None:
        self.index = index
        self.type = kind


def test_a_torch_device_names_a_device() -> None:
    (part,) = gcx.split([8], device=TorchDevice(0))
    assert part.device == 0
    with pytest.raises(gcx.InvalidDeviceError):
        gcx.split([8], device=TorchDevice(3))
    with pytest.raises(ValueError, match="cuda:0"):
        gcx.split([8], device=TorchDevice(None))
    with pytest.raises(gcx.InvalidDeviceError, match="isn't a CUDA device"):
        gcx.split([8], device=TorchDevice(0, "cpu"))


def test_a_failing_split_makes_nothing(script: Any) -> None:
    """The driver has no memory for the second context, then none for the second stream."""
    for function in ("cuGreenCtxCreate", "cuGreenCtxStreamCreate"):
        code = f"""
import ctypes, gcx
gcx.Device(0)
sim = ctypes.CDLL(gcx.driver_info().library)
for part in gcx.split([8]):
    part.close()
gcx.set_cache_limit(0)
gcx.set_cache_limit(64)
sim.gcx_sim_fail(b"{function}", ctypes.c_uint64(2), 2)
try:
    gcx.split([16, 24])
except MemoryError as error:
    assert isinstance(error, gcx.OutOfMemoryError)
else:
    raise SystemExit("no error")
del error
import gc; gc.collect()
assert gcx.cache_stats().in_use == 0, gcx.cache_stats()
"""
        code = code.replace("del error\n", "")
        script(code, "sim:h100@13.0")


def test_closing_a_current_partition_is_refused() -> None:
    (part,) = gcx.split([24])
    with part.context.make_current(), pytest.raises(gcx.ContextInUseError):
        part.close()
    assert not part.closed
    assert not part.stream.closed
    part.close()
    with pytest.raises(gcx.InvalidHandleError, match="closed"), part:
        pass


def test_partition_of_a_resource(sms: gcx.SMResource) -> None:
    with gcx.Partition(sms.split([24]).groups[0], priority=-1) as part:
        assert part.stream.priority == -1
    with pytest.raises(TypeError):
        gcx.Partition(24)  # type: ignore[arg-type]


def test_beyond_4_verify_shows_which_sms_are_used() -> None:
    parts = gcx.split([24, None])
    proof = gcx.verify(parts)
    assert proof
    assert proof.ok
    assert proof.simulated
    assert [group.sm_count for group in proof.groups] == [24, 108]
    assert [len(group.seen) for group in proof.groups] == [24, 108]
    assert not proof.problems
    assert not proof.overlap
    assert not proof.unused
    text = str(proof)
    assert text.startswith("SIMULATED")
    assert "A  24 SMs, all seen" in text
    assert text.count("A") >= 24
    assert text.splitlines()[-1].startswith("ok: ")
    assert "24, 108" in repr(proof)


def test_beyond_4_verify_finds_an_overlap(sms: gcx.SMResource) -> None:
    with gcx.Partition(sms.split([24]).groups[0]) as one:
        with gcx.Partition(sms.split([16]).groups[0]) as two:
            proof = gcx.verify([one, two.stream])
        assert not proof.ok
        assert len(proof.overlap) == 16
        assert "partitions A and B share 16 SMs: " in proof.problems[0]
        assert len(proof.unused) == 108
        assert "FAILED: 1 problem" in str(proof)
        assert "!" in str(proof)
        assert "108 SMs, seen in no partition" in str(proof)


def test_verify_shared_leases_may_share() -> None:
    with (
        gcx.acquire(64, shared=True) as one,
        gcx.acquire(None, shared=True) as other,
    ):
        found = gcx.verify([one, other])
        assert found.ok
        assert found.problems == []
        assert len(found.overlap) == one.resource.overlap(other.resource) > 0
        assert [group.shared for group in found.groups] == [True, True]
        assert "ok" in repr(found)
        assert f"have {len(found.overlap)} SMs in common" in str(found)


def test_verify_claims_nothing_by_virtual_numbers(
    script: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GCX_SIM_MPS", "1")
    script("""
import gcx
proof = gcx.verify([108, 24])
assert proof.virtual_sm_numbers and proof.ok and proof.groups[1].seen == tuple(range(24))
assert (proof.overlap, proof.unused, proof._repr_svg_()) == ((), (), None)
assert "  B  24 SMs, all seen" in str(proof) and "as far as can be seen" in str(proof)
assert proof._repr_html_().startswith("<pre>SIMULATED")
for refused in (proof.svg, gcx.Device(0).map_sms):
    try:
        refused()
    except gcx.NotSupportedError as error:
        assert "virtual" in str(error)
    else:
        raise SystemExit("not refused")
""")


def test_verify_names_shared_sms(script: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GCX_SIM_DYNAMIC_PARALLELISM", "1")
    script("""
import gcx
reason = (
    "SMs 124-125 are shared by all partitions of this process: a module with dynamic parallelism "
    "is loaded"
)
device = gcx.Device(0)
try:
    device.resources.sm.split([24], exclude_shared=True)
except gcx.NotReadyError as error:
    assert "gcx.Device(0).shared_sms()" in str(error), error
else:
    raise SystemExit("not refused")
proof = gcx.verify([24, 16])
assert not proof.ok and proof.problems == [reason], proof.problems
assert proof.shared_by_all == (124, 125)
assert reason in str(proof)
with gcx.split([24, 16]) as parts:
    assert set(parts[0].stream.sm_ids()) & set(parts[1].stream.sm_ids()) == {124, 125}
assert device.shared_sms() == (124, 125)

try:
    device.resources.sm.split([24], exclude_shared=True)
except gcx.NotReadyError as error:
    assert 'gcx.Device(0).map_sms("coscheduled")' in str(error), error
else:
    raise SystemExit("not refused")
device.map_sms()
groups, remainder = device.resources.sm.split([24, 96], exclude_shared=True)
assert remainder.sm_count == 0
assert not {124, 125} & {sm for group in groups for sm in group.sm_ids()}
assert device.resources.sm.plan([100], exclude_shared=True) == ((104,), 16)
with gcx.split([24], exclude_shared=True) as parts:
    assert parts.remainder.sm_count == 96
""")


def test_shared_sms_without_a_module_are_none(script: Any) -> None:
    script("""
import gcx
assert gcx.Device(0).shared_sms() == ()
proof = gcx.verify([24, 16])
assert proof.ok and proof.shared_by_all == ()
""")


def test_verify_of_counts_and_of_one_stream() -> None:
    proof = gcx.verify([8, 8])
    assert proof.ok
    assert len(proof.unused) == 116
    assert gcx.verify(24).groups[0].sm_count == 24
    assert gcx.verify(gcx.SplitOptions([8]), family="fine").ok
    (part,) = gcx.split([8])
    assert gcx.verify(part).groups[0].seen == gcx.verify(part.stream).groups[0].seen
    with pytest.raises(TypeError, match="mixture"):
        gcx.verify([part, 24])
    many = gcx.verify([2] * 30, family="fine")
    assert [group.name for group in many.groups][25:28] == ["Z", "AA", "AB"]
    ElementTree.fromstring(many.svg())


def test_the_picture(sms: gcx.SMResource) -> None:
    with gcx.Partition(sms.split([24]).groups[0]) as one, gcx.Partition(one.resource) as two:
        for proof in (gcx.verify([24, 24]), gcx.verify([one, two])):
            root = ElementTree.fromstring(proof.svg())
            cells = [node.attrib for node in root.iter() if node.attrib.get("class") == "sm"]
            assert len(cells) == 132
            assert "SIMULATED" in proof.svg()
            assert proof._repr_svg_() == proof.svg()
            assert proof.svg() in proof._repr_html_()
            owners = {cell["data-partition"] for cell in cells}
            assert owners == ({"A", "B", ""} if proof.ok else {"!", ""})


def test_garbage_gives_everything_back() -> None:
    for _ in range(100):
        gcx.split([24, None])
    gc.collect()
    assert gcx.cache_stats().in_use == 0


def test_a_split_is_closed_as_a_whole() -> None:
    with gcx.split([24, 32]) as parts:
        decode, prefill = parts
        assert repr(parts) == "<gcx.Partitions of 24, 32 SMs, 76 left over>"
        assert parts.remainder.sm_count == 76
        assert parts.remainder.isdisjoint(decode.resource | prefill.resource)
        with gcx.Partition(parts.remainder) as rest:
            assert rest.sm_count == 76
    assert decode.closed
    assert prefill.closed
    assert repr(parts) == "<gcx.Partitions of closed, closed SMs, 76 left over>"
    parts.close()
    assert not gcx.split([None]).remainder


def test_a_split_with_a_current_part_closes_the_others() -> None:
    parts = gcx.split([24, 32, None])
    with parts[1].context.make_current(), pytest.raises(gcx.ContextInUseError):
        parts.close()
    assert [part.closed for part in parts] == [True, False, True]
    parts.close()
    assert all(part.closed for part in parts)


@pytest.mark.parametrize("half", ["stream", "context"])
def test_a_partition_of_which_half_was_closed_is_closed(half: str) -> None:
    (part,) = gcx.split([24])
    assert not part.closed
    getattr(part, half).close()
    assert part.closed
    assert repr(part) == "<gcx.Partition, closed>"
    with pytest.raises(gcx.InvalidHandleError), part:
        pass
    part.close()
    assert part.context.closed
    assert part.stream.closed


def test_the_device_goes_by_keyword() -> None:
    """108, 24 is a slip for [108, 24], not device 24."""
    for call in (gcx.split, gcx.verify):
        with pytest.raises(TypeError, match="positional"):
            call(108, 24)  # type: ignore[misc]

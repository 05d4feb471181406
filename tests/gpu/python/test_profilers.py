"""Whether a context's native_id is what profilers show, with CUPTI and PyTorch's profiler."""

from __future__ import annotations

import ctypes
import json
from pathlib import Path
from typing import Any

import gcx
import pytest


@pytest.fixture
def cupti(torch: Any) -> ctypes.CDLL:
    """Returns the CUPTI that PyTorch has loaded."""
    return ctypes.CDLL(f"libcupti.so.{torch.version.cuda.partition('.')[0]}")


def test_native_id_is_cuptis_context_id(parts: gcx.Partitions, cupti: ctypes.CDLL) -> None:
    with gcx.Context(parts[0].resource, private=True) as private:
        shown = {}
        for context in (parts[0].context, parts[1].context, private):
            found, native = ctypes.c_uint32(), ctypes.c_void_p(context.native)
            assert cupti.cuptiGetContextId(native, ctypes.byref(found)) == 0
            shown[context.native_id] = found.value
        print(f"native_id: CUPTI's id {shown}")
        assert len(shown) == 3
        assert list(shown.keys()) == list(shown.values())


def test_native_id_is_in_the_profilers_trace(
    parts: gcx.Partitions, torch: Any, tmp_path: Path
) -> None:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        for part in parts:
            with torch.cuda.stream(part.stream.torch()):
                torch.zeros(1 << 20, device="cuda").add_(1)
        torch.cuda.synchronize()
    trace = tmp_path / "trace.json"
    profile.export_chrome_trace(str(trace))
    events = json.loads(trace.read_text())["traceEvents"]
    seen = {event["args"]["context"] for event in events if event.get("cat") == "kernel"}
    assert seen == {part.context.native_id for part in parts}

"""examples/python-ctypes: what is wrong is Python's error, structs are laid out as C's."""

from __future__ import annotations

import ctypes
import importlib.util
import json
import os
import threading
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "python-ctypes" / "by_ctypes.py"
API = json.loads((ROOT / "docs" / "gcx-api.json").read_text(encoding="utf-8"))


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("by_ctypes", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


by_ctypes = load()


@pytest.fixture(scope="module")
def gcx() -> Any:
    library = by_ctypes.Library(os.environ["GCX_LIBRARY"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GCX_DRIVER", "sim:2xh100@13.0")
        library.device(0)  # opens the driver
    return library


@pytest.mark.parametrize(
    ("name", "mirror"),
    [
        ("gcx_resource", by_ctypes.Resource),
        ("gcx_sm_request", by_ctypes.Request),
        ("gcx_device_info", by_ctypes.DeviceInfo),
        ("gcx_cache_stats", by_ctypes.CacheStats),
    ],
)
def test_layout(name: str, mirror: Any) -> None:
    (struct,) = (struct for struct in API["structs"] if struct["name"] == name)
    assert ctypes.sizeof(mirror) == struct["size"]
    assert [field[0] for field in mirror._fields_] == [field["name"] for field in struct["fields"]]
    for field in struct["fields"]:
        mirrored = getattr(mirror, field["name"])
        assert (mirrored.offset, mirrored.size) == (field["offset"], field["size"]), field["name"]


@pytest.mark.parametrize("name", by_ctypes.PARAMETERS)
def test_parameters(name: str) -> None:
    (function,) = (function for function in API["functions"] if function["name"] == name)
    assert len(by_ctypes.PARAMETERS[name]) == len(function["parameters"])


def test_what_is_closed_is_refused(gcx: Any) -> None:
    (group,) = gcx.split(gcx.device(0), [24])
    part = by_ctypes.Part(gcx, group)
    part.close()
    for misuse in (part.close, part.probe):
        with pytest.raises(by_ctypes.GcxError, match=r"INVALID_HANDLE: gcx_stream_.*destroyed"):
            misuse()
    with pytest.raises(by_ctypes.GcxError, match="INVALID_HANDLE: gcx_context_destroy"):
        gcx("gcx_context_destroy", part.context)
    with pytest.raises(by_ctypes.GcxError, match="INVALID_HANDLE"):
        gcx("gcx_context_destroy", None)
    with pytest.raises(by_ctypes.GcxError, match="INVALID_HANDLE"):
        gcx("gcx_stream_destroy", 0xDEADBEEF)


@pytest.mark.parametrize("count", [-1, 2**32, 2**32 + 24])
def test_counts_are_not_cut_down(gcx: Any, count: int) -> None:
    with pytest.raises(ValueError, match=f"{count} is no number of SMs"):
        gcx.split(gcx.device(0), [count])


def test_wrong_values(gcx: Any) -> None:
    device = gcx.device(0)
    with pytest.raises(TypeError):
        gcx.split(device, [7.5])
    with pytest.raises(ctypes.ArgumentError):
        gcx("gcx_context_create", 24, 1, None, None)
    with pytest.raises(by_ctypes.GcxError, match="INVALID_VALUE"):
        gcx.split(device, [])
    with pytest.raises(by_ctypes.GcxError, match="INVALID_DEVICE"):
        gcx.device(2)
    with pytest.raises(by_ctypes.GcxError, match="INVALID_RESOURCE_TYPE"):
        by_ctypes.Part(gcx, by_ctypes.Resource())


def test_each_thread_gets_its_own_message(gcx: Any) -> None:
    device = gcx.device(0)
    wrong: list[str] = []

    def ask(count: int) -> None:
        for _ in range(200):
            try:
                gcx.split(device, [count])
            except by_ctypes.GcxError as error:
                if f"asked for {count} SMs" not in str(error):
                    wrong.append(str(error))

    threads = [threading.Thread(target=ask, args=(1000 + i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_part_that_got_no_stream_leaves_nothing(gcx: Any, monkeypatch: Any) -> None:
    (group,) = gcx.split(gcx.device(0), [24])

    def refuse(*_: object) -> int:
        return 400

    monkeypatch.setattr(gcx.c, "gcx_stream_create", refuse)
    with pytest.raises(by_ctypes.GcxError):
        by_ctypes.Part(gcx, group)
    stats = by_ctypes.CacheStats(struct_size=ctypes.sizeof(by_ctypes.CacheStats))
    gcx("gcx_cache_get_stats", ctypes.byref(stats))
    assert stats.in_use == 0

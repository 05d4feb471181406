"""examples/python-ctypes: what is wrong is Python's error, structs are laid out as C's."""

from __future__ import annotations

import ctypes
import importlib.util
import json
import os
import threading
from collections.abc import Callable
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
        ("gcx_lease_params", by_ctypes.LeaseParams),
        ("gcx_lease_size", by_ctypes.LeaseSize),
        ("gcx_lease_info", by_ctypes.LeaseInfo),
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


def test_count_zero_is_refused(gcx: Any) -> None:
    device = gcx.device(0)
    with by_ctypes.Lease(gcx, 0, 24) as lease:
        calls: list[Callable[[], object]] = [
            lambda: gcx.split(device, [0]),
            lambda: gcx.split(device, [8, 0]),
            lambda: by_ctypes.Lease(gcx, 0, 0),
            lambda: gcx.resize([(lease, 0)]),
        ]
        for call in calls:
            with pytest.raises(by_ctypes.GcxError, match=r"INVALID_VALUE.* is 0; GCX_REST"):
                call()
        assert lease.sm_count() == 24
    assert len(gcx.split(device, [by_ctypes.REST, 24])) == 2


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


def test_a_lease_grows_by_what_another_gives(gcx: Any) -> None:
    decode = by_ctypes.Lease(gcx, 0, 32, "decode")
    with by_ctypes.Lease(gcx, 0, by_ctypes.REST, "prefill") as prefill:
        before = decode.probe()
        gcx.resize([(decode, 64), (prefill, by_ctypes.REST)])
        assert (decode.sm_count(), prefill.sm_count()) == (64, 68)
        after = decode.probe()
        assert len(after) == 64
        assert set(before) < set(after)
        assert not set(after) & set(prefill.probe())
        with pytest.raises(by_ctypes.GcxError, match=r'ALREADY_ACQUIRED.*"decode" has 64'):
            by_ctypes.Lease(gcx, 0, 8, timeout_ms=2)
        with pytest.raises(by_ctypes.GcxError, match="INVALID_RESOURCE_CONFIGURATION"):
            gcx.resize([(decode, 72), (prefill, 68)])
        with pytest.raises(by_ctypes.GcxError, match="ALREADY_ACQUIRED"):
            gcx.resize([(decode, 72)])
        decode.close()
    for misuse in (decode.close, decode.sm_count, decode.probe, lambda: gcx.resize([(decode, 8)])):
        with pytest.raises(by_ctypes.GcxError, match="INVALID_HANDLE"):
            misuse()


def test_a_wait_ends_when_another_thread_gives_back(gcx: Any) -> None:
    held = by_ctypes.Lease(gcx, 0, by_ctypes.REST)
    given_back = threading.Timer(0.05, held.close)
    given_back.start()
    with by_ctypes.Lease(gcx, 0, 24, timeout_ms=60_000) as lease:
        assert lease.sm_count() == 24
    given_back.join()


def test_wrong_values_of_leases(gcx: Any) -> None:
    with by_ctypes.Lease(gcx, 0, 24) as lease:
        for count in (-8, 2**32):
            with pytest.raises(ValueError, match="is no number of SMs"):
                by_ctypes.Lease(gcx, 0, count)
            with pytest.raises(ValueError, match="is no number of SMs"):
                gcx.resize([(lease, count)])
        with pytest.raises(by_ctypes.GcxError, match="INVALID_VALUE"):
            gcx.resize([])
        with pytest.raises(by_ctypes.GcxError, match="INVALID_VALUE"):
            gcx.resize([(lease, 8), (lease, 16)])
        with pytest.raises(by_ctypes.GcxError, match="INVALID_VALUE"):
            by_ctypes.Lease(gcx, 0, 8, "n" * 64)
        with pytest.raises(by_ctypes.GcxError, match="INVALID_DEVICE"):
            by_ctypes.Lease(gcx, 2, 8)


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


def test_what_got_no_stream_leaves_nothing(gcx: Any, monkeypatch: Any) -> None:
    (group,) = gcx.split(gcx.device(0), [24])

    def refuse(*_: object) -> int:
        return 400

    monkeypatch.setattr(gcx.c, "gcx_stream_create", refuse)
    with pytest.raises(by_ctypes.GcxError):
        by_ctypes.Part(gcx, group)
    monkeypatch.setattr(gcx.c, "gcx_lease_stream_create", refuse)
    with pytest.raises(by_ctypes.GcxError):
        by_ctypes.Lease(gcx, 0, 24)
    stats = by_ctypes.CacheStats(struct_size=ctypes.sizeof(by_ctypes.CacheStats))
    gcx("gcx_cache_get_stats", ctypes.byref(stats))
    assert stats.in_use == 0

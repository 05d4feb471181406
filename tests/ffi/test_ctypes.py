"""bindings/ctypes: layout of structs, values and errors."""

from __future__ import annotations

import ctypes
import gc
import os
import threading
import weakref
from ctypes import byref

import gcx_ctypes as gcx
import pytest

from bindings.generator.api import Struct, load

API = load()


@pytest.fixture(scope="module")
def c() -> ctypes.CDLL:
    library = gcx.open(os.environ["GCX_LIBRARY"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GCX_DRIVER", "sim:2xh100@13.0")
        library.gcx_device_get_info(0, byref(gcx.sized(gcx.gcx_device_info)))  # opens the driver
    return library


@pytest.mark.parametrize("struct", API.structs, ids=lambda struct: struct.name)
def test_struct_matches_c(struct: Struct) -> None:
    mirror = getattr(gcx, struct.name)
    assert ctypes.sizeof(mirror) == struct.size
    assert [field[0] for field in mirror._fields_] == [field.name for field in struct.fields]
    for field in struct.fields:
        mirrored = getattr(mirror, field.name)
        assert (mirrored.offset, mirrored.size) == (field.offset, field.size), field.name


def test_values_and_functions_match_c() -> None:
    values = [value for enum in API.enums for value in enum.values]
    assert all(getattr(gcx, of.name) == of.value for of in (*values, *API.constants))
    assert list(gcx.FUNCTIONS) == [function.name for function in API.functions]


def split(c: ctypes.CDLL, count: int) -> gcx.gcx_resource:
    device, group = gcx.gcx_resource(), gcx.gcx_resource()
    c.gcx_device_get_resource(0, gcx.GCX_RESOURCE_SM, byref(device))
    c.gcx_sm_split(
        byref(device), byref(gcx.gcx_sm_request(count)), 1, 0, byref(group), None, None, None
    )
    return group


def test_values_keep_their_types(c: ctypes.CDLL) -> None:
    lease, stream, count = gcx.gcx_lease(), gcx.gcx_stream(), ctypes.c_uint32()
    params = gcx.sized(gcx.gcx_lease_params, name=b"decode")
    c.gcx_lease_acquire(0, 24, byref(params), byref(lease))
    live = (gcx.gcx_live_lease * 2)()
    c.gcx_lease_list(0, live, 2, byref(count))
    assert (count.value, live[0].name, live[0].sm_count) == (1, b"decode", 24)
    c.gcx_lease_stream_create(lease, None, byref(stream))
    assert c.gcx_stream_native(stream)
    assert c.gcx_stream_query(stream) in (gcx.GCX_SUCCESS, gcx.GCX_ERROR_NOT_READY)
    calls = []
    # Keeps the callback alive until the call returns.
    progress = gcx.gcx_progress_callback(lambda done, of, _: calls.append((done, of)))
    prepare = gcx.sized(gcx.gcx_prepare_params, progress=progress)
    c.gcx_cache_prepare(byref(split(c, 8)), 1, byref(prepare))
    assert calls == [(1, 1)]
    c.gcx_stream_destroy(stream)
    c.gcx_lease_release(lease)
    with pytest.raises(gcx.GcxError, match="INVALID_HANDLE: gcx_lease_release: "):
        c.gcx_lease_release(lease)
    with pytest.raises(gcx.GcxError, match="INVALID_HANDLE"):
        c.gcx_lease_release(None)
    with pytest.raises(ctypes.ArgumentError):
        c.gcx_context_create(24, 1, None, None)


class Number:
    """An integer that is no int, as numpy's are."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __index__(self) -> int:
        return self.value

    def __str__(self) -> str:
        return str(self.value)


def test_value_that_c_would_change_is_refused(c: ctypes.CDLL) -> None:
    lease = gcx.gcx_lease()
    for device, count, message in (
        (0, Number(-1), "gcx_lease_acquire: sm_count is -1; "),
        (0, -1, "gcx_lease_acquire: sm_count is -1; it must be an integer from 0 to 4294967295"),
        (0, 2**32 + 24, "sm_count is 4294967320; "),
        (2**32, 8, "device is 4294967296; "),
        (0, 8.5, "cannot be interpreted as an integer|TypeError"),
    ):
        with pytest.raises(ctypes.ArgumentError, match=message):
            c.gcx_lease_acquire(device, count, None, byref(lease))
    with pytest.raises(ctypes.ArgumentError, match="gcx_reservation_join: token is b'a"):
        c.gcx_reservation_join(b"a\0b", byref(gcx.gcx_reservation()))
    with pytest.raises(gcx.GcxError, match="sm_count is 0; GCX_REST requests"):
        c.gcx_lease_acquire(0, 0, None, byref(lease))
    with pytest.raises(ValueError, match=r"gcx_lease_params\.name is b'a"):
        gcx.sized(gcx.gcx_lease_params, name=b"a\0b")
    with pytest.raises(ValueError, match=r"gcx_sm_request\.sm_count is 4294967296; "):
        gcx.gcx_sm_request(2**32)
    with pytest.raises(ValueError, match=r"gcx_sm_request\.sm_count is -1; "):
        gcx.gcx_sm_request(Number(-1))
    for grid, wrong in (((1, -1, 1), r"grid\[1\] is -1; "), ((2**32, 1, 1), r"grid\[0\] is 42")):
        with pytest.raises(ValueError, match=rf"gcx_kernel_params\.{wrong}"):
            gcx.sized(gcx.gcx_kernel_params, grid=grid)
    with pytest.raises(AttributeError, match="gcx_lease_params has no field 'timeout'"):
        gcx.sized(gcx.gcx_lease_params, timeout=5)


def test_log_callback_without_a_reference_is_called(c: ctypes.CDLL) -> None:
    messages: list[bytes] = []
    callback = gcx.gcx_log_callback(lambda _level, message, _data: messages.append(message))
    released = weakref.ref(callback)
    c.gcx_log_set_callback(gcx.GCX_LOG_DEBUG, callback, None)
    del callback
    gc.collect()
    assert released() is not None  # else the next call would jump into freed memory
    with pytest.raises(gcx.GcxError):
        c.gcx_lease_release(None)
    c.gcx_log_set_callback(gcx.GCX_LOG_NONE, gcx.gcx_log_callback(), None)
    assert released() is None
    assert any(b"the lease handle is NULL" in message for message in messages)


def test_each_thread_gets_its_own_message(c: ctypes.CDLL) -> None:
    wrong: list[str] = []

    def ask(count: int) -> None:
        for _ in range(200):
            try:
                split(c, count)
            except gcx.GcxError as error:
                if f"requested {count} SMs" not in str(error):
                    wrong.append(str(error))

    threads = [threading.Thread(target=ask, args=(1000 + i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []

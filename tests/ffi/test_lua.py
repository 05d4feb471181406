"""bindings/lua: layout of structs, values and errors."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from bindings.generator.api import ROOT, load

TYPES = """
local lease, live = ffi.new("gcx_lease[1]"), ffi.new("gcx_live_lease[2]")
local stream, count = ffi.new("gcx_stream[1]"), ffi.new("uint32_t[1]")
local params = gcx.new("gcx_lease_params")
params.name = "decode"
gcx.check(C.gcx_lease_acquire(0, 24, params, lease))
gcx.check(C.gcx_lease_list(0, live, 2, count))
assert(count[0] == 1 and ffi.string(live[0].name) == "decode" and live[0].sm_count == 24)
gcx.check(C.gcx_lease_stream_create(lease[0], nil, stream))
assert(C.gcx_stream_native(stream[0]) ~= nil)
assert(pcall(C.gcx_stream_destroy, lease[0]) == false) -- a handle of another type
gcx.check(C.gcx_lease_release(lease[0]))
local worked, failure = pcall(gcx.check, C.gcx_lease_release(lease[0]))
assert(not worked and failure.result == C.GCX_ERROR_INVALID_HANDLE)
assert(tostring(failure):find("^GCX_ERROR_INVALID_HANDLE: gcx_lease_release: ."))
assert(gcx.new("gcx_sm_request").sm_count == 0) -- without struct_size
gcx.check(C.gcx_lease_acquire(0, 8, nil, lease)) -- the process ends with it
"""
REFUSALS = r"""
local function refused(message, call, ...)
    local worked, failure = pcall(call, ...)
    assert(not worked and tostring(failure):find(message, 1, true), tostring(failure))
end
local out = ffi.new("gcx_lease[1]")
local acquire = C.gcx_lease_acquire
local numbers = "; it must be an integer from 0 to 4294967295"
refused("gcx_lease_acquire: sm_count is -1" .. numbers, acquire, 0, -1, nil, out)
refused("gcx_lease_acquire: sm_count is 4294967320" .. numbers, acquire, 0, 2^32 + 24, nil, out)
refused("sm_count is 4294967296ULL; ", acquire, 0, 2ULL^32, nil, out)
refused("sm_count is -1LL; ", acquire, 0, -1LL, nil, out)
refused("sm_count is 8.5; ", acquire, 0, 8.5, nil, out)
refused("gcx_lease_acquire: device is nan; ", acquire, 0/0, 8, nil, out)
refused("device is 4294967296; ", acquire, 2^32, 8, nil, out)
refused("device is nil; ", acquire, nil, 8, nil, out)
refused("sm_count is 0; GCX_REST requests", function() gcx.check(acquire(0, 0, nil, out)) end)
local reservation = ffi.new("gcx_reservation[1]")
refused("gcx_reservation_join: token is ", C.gcx_reservation_join, "a\0b", reservation)
refused("convert 'number' to 'const char *'", C.gcx_driver_open, 5)
refused("gcx_lease_params: name is ", gcx.new, "gcx_lease_params", { name = "a\0b" })
refused("gcx_lease_params: timeout_ms is -1; ", gcx.new, "gcx_lease_params", { timeout_ms = -1 })
refused("gcx_kernel_params: grid[2] is -1; ", gcx.new, "gcx_kernel_params", { grid = { 1, -1, 1 } })
local ids, count = ffi.new("uint32_t[?]", 4), ffi.new("uint32_t[1]")
refused("gcx_stream_probe_sms: sm_ids has 16 bytes; C uses 4096", C.gcx_stream_probe_sms, nil, ids,
    C.GCX_MAX_SMS, count)
local one, requests = ffi.new("gcx_resource"), ffi.new("gcx_sm_request[2]")
local function split(count)
    return C.gcx_sm_split(one, requests, count, 0, one, nil, nil, nil)
end
refused("gcx_sm_split: groups has 128 bytes; C uses 256", split, 2)
refused("gcx_sm_split: request_count is nil; ", split, nil)
refused("callback is a Lua function, which ", C.gcx_log_set_callback, 4, function() end, nil)
refused("no member named 'size'", gcx.new, "gcx_lease_params", { size = 1 })
gcx.check(acquire(0LL, 8ULL, gcx.new("gcx_lease_params", { timeout_ms = C.GCX_FOREVER }), out))
package.loaded.gcx = nil
local again = require("gcx")
refused("gcx_version: the library is not open; call gcx.open() first", function()
    return again.C.gcx_version()
end)
assert(again.open(arg[1]).gcx_version() == C.gcx_version())
"""
CALLBACKS = """
local device, calls = ffi.new("gcx_resource"), 0
gcx.check(C.gcx_device_get_resource(0, C.GCX_RESOURCE_SM, device))
local params = gcx.new("gcx_prepare_params", { progress = function()
    calls = calls + 1
    error({ "stop" })
end })
local resources = ffi.new("gcx_resource[2]", device, device)
local worked, failure = pcall(C.gcx_cache_prepare, resources, 2, params)
assert(not worked and failure[1] == "stop" and calls == 1)
assert(C.gcx_cache_prepare(resources, 2, nil) == C.GCX_SUCCESS)
"""
LOG = """
local messages = 0
local callback = ffi.cast("gcx_log_callback", function() messages = messages + 1 end)
gcx.check(C.gcx_log_set_callback(C.GCX_LOG_DEBUG, callback, nil))
local lease = ffi.new("gcx_lease[1]")
gcx.check(C.gcx_lease_acquire(0, 8, nil, lease))
for i = 1, 1000 do -- enough for LuaJIT to compile it
    if i == 900 then
        gcx.check(C.gcx_lease_release(lease[0]))
        messages = 0
    end
    C.gcx_lease_query(lease[0])
end
assert(messages == 101) -- the failed calls
"""


def run(tmp_path: Path, program: str) -> None:
    file = tmp_path / "test.lua"
    begin = f"""
package.path = "{ROOT}/bindings/lua/generated/?.lua;" .. package.path
local ffi, gcx = require("ffi"), require("gcx")
local C = gcx.open(arg[1])
"""
    file.write_text(begin + program, encoding="utf-8")
    done = subprocess.run(
        ["luajit", file, os.environ["GCX_LIBRARY"]],
        env={**os.environ, "GCX_DRIVER": "sim:2xh100@13.0"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_declarations_match_c(tmp_path: Path) -> None:
    api = load()
    facts = []
    for struct in api.structs:
        facts.append(f'ffi.sizeof("{struct.name}") == {struct.size}')
        for field in struct.fields:
            facts.append(f'ffi.offsetof("{struct.name}", "{field.name}") == {field.offset}')
    values = [value for enum in api.enums for value in enum.values]
    facts += [f"C.{of.name} == {of.value}" for of in (*values, *api.constants)]
    facts += [f"C.{function.name} ~= nil" for function in api.functions]
    run(tmp_path, "\n".join(f"assert({fact}, [[{fact}]])" for fact in facts))


def test_values_keep_their_types(tmp_path: Path) -> None:
    run(tmp_path, TYPES)


def test_value_that_c_would_change_is_refused(tmp_path: Path) -> None:
    run(tmp_path, REFUSALS)


def test_error_in_a_callback_is_raised_after_the_call(tmp_path: Path) -> None:
    run(tmp_path, CALLBACKS)


def test_hot_call_that_logs_calls_lua(tmp_path: Path) -> None:
    run(tmp_path, LOG)

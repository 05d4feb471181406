"""bindings/lua: structs are laid out as C's, values and errors arrive as they are."""

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

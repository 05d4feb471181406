-- What is wrong is an error of Lua's, never a crash.
--
--     GCX_DRIVER=sim:2xh100@13.0 luajit misuse_test.lua LIBRARY

package.path = arg[0]:gsub("[^/]*$", "") .. "?.lua;" .. package.path
local ffi = require("ffi")
local gcx = require("gcx")

-- The call has to fail with this of gcx's names, or with a Lua error that holds these words.
local function refused(want, call, ...)
    local worked, failure = pcall(call, ...)
    assert(not worked, "nothing was refused; expected " .. want)
    local said = tostring(failure)
    assert(said:find(want, 1, true), "expected " .. want .. ", got " .. said)
    if want:find("^GCX_") then
        assert(failure.name == want and #failure.message > 20, said)
    end
end

refused("the library is not open; call gcx.open first", gcx.acquire, 0, 8)
refused("the library is not open; call gcx.open first", gcx.device, 0)
gcx.open(arg[1])

local function opened()
    local context = gcx.context(gcx.split(gcx.device(0), { 24 })[1])
    return context, context:stream()
end

-- Closed twice, used after closing.
local context, stream = opened()
stream:close()
context:close()
for _, call in ipairs({ stream.close, stream.probe, stream.native }) do
    refused("GCX_ERROR_INVALID_HANDLE", call, stream)
end
for _, call in ipairs({ context.close, context.stream }) do
    refused("GCX_ERROR_INVALID_HANDLE", call, context)
end
refused("GCX_ERROR_INVALID_HANDLE", stream.probe, { handle = ffi.cast("gcx_stream", 0xdeadbeef) })
refused("GCX_ERROR_INVALID_HANDLE", stream.probe, {})

-- A stream keeps its context.
context, stream = opened()
context:close()
assert(#stream:probe() == 24 and stream:native() ~= nil)
stream:close()
assert(gcx.contexts_in_use() == 0)

-- Wrong values.
local device = gcx.device(0)
for _, wrong in ipairs({ -1, 7.5, 2 ^ 32, 0 / 0, 1 / 0, "24", {} }) do
    refused("is no number of SMs", gcx.split, device, { wrong })
end
refused("GCX_ERROR_INVALID_VALUE", gcx.split, device, {})
refused("GCX_ERROR_INVALID_RESOURCE_CONFIGURATION", gcx.split, device, { 2 ^ 32 - 2 })
refused("GCX_ERROR_INVALID_DEVICE", gcx.device, 2)

-- A count of 0 is refused; the rest has a word of its own.
refused("GCX_ERROR_INVALID_VALUE", gcx.split, device, { 0 })
refused("GCX_ERROR_INVALID_VALUE", gcx.split, device, { 8, 0 })
refused("GCX_ERROR_INVALID_VALUE", gcx.acquire, 0, 0)
local lease = gcx.acquire(0, 24)
refused("GCX_ERROR_INVALID_VALUE", gcx.resize, { { lease, 0 } })
assert(lease:sm_count() == 24)
lease:close()
assert(#gcx.split(device, { gcx.REST, 24 }) == 2)

-- Devices, names, timeouts and lists of another type or range.
for _, wrong in ipairs({ 2 ^ 32, -2 ^ 32, 2 ^ 31, 0 / 0, 1 / 0, 1.5, "0", {} }) do
    refused("is no device", gcx.device, wrong)
    refused("is no device", gcx.device_info, wrong)
    refused("is no device", gcx.acquire, wrong, 8)
end
refused("is no device", gcx.device, nil)
refused("GCX_ERROR_INVALID_DEVICE", gcx.device, -1)
for _, wrong in ipairs({ 5, {}, true, ffi.new("char[2]") }) do
    refused("a lease's name is a string", gcx.acquire, 0, 8, wrong)
end
for _, wrong in ipairs({ "a\0b", "\0", "a\0" }) do
    refused("a lease's name has a 0 byte in it", gcx.acquire, 0, 8, wrong)
end
for _, wrong in ipairs({ -1, 0.5, 2 ^ 32, 0 / 0, "5" }) do
    refused("is no timeout", gcx.acquire, 0, 8, "name", wrong)
end
for _, wrong in ipairs({ "24", 24, true }) do
    refused("is a table", gcx.split, device, wrong)
    refused("is a table", gcx.resize, wrong)
    refused("is a table", gcx.resize, { wrong })
end
refused("the library is a string", gcx.open, 5)
refused("the library has a 0 byte in it", gcx.open, "libgcx.so\0.1")
gcx.acquire(0, gcx.REST):close()

refused("GCX_ERROR_INVALID_RESOURCE_TYPE", gcx.context, ffi.new("gcx_resource"))
local changed = ffi.new("gcx_resource", device)
changed.opaque[3] = changed.opaque[3] + 1
refused("GCX_ERROR_INVALID_RESOURCE_CONFIGURATION", gcx.context, changed)
refused("cannot convert", gcx.context, "24")
refused("cannot convert", gcx.context, ffi.new("uint64_t[2]"))

-- Leases: one grows by what another gives, and its stream follows.
local decode = gcx.acquire(0, 32, "decode")
local prefill = gcx.acquire(0, gcx.REST, "prefill", 10)
local steps = decode:stream()
local before = steps:native()
gcx.resize({ { decode, 64 }, { prefill, gcx.REST } })
assert(decode:sm_count() == 64 and prefill:sm_count() == 68)
assert(steps:native() ~= before and #steps:probe() == 64)
local never = { { decode, 72 }, { prefill, 68 } }
refused("GCX_ERROR_INVALID_RESOURCE_CONFIGURATION", gcx.resize, never)
refused("GCX_ERROR_ALREADY_ACQUIRED", gcx.resize, { { decode, 72 } })
refused("GCX_ERROR_ALREADY_ACQUIRED", gcx.acquire, 0, 8, nil, 2)
refused("is no number of SMs", gcx.resize, { { decode, -8 } })
refused("is no number of SMs", gcx.acquire, 0, 7.5)
refused("GCX_ERROR_INVALID_VALUE", gcx.resize, {})
refused("GCX_ERROR_INVALID_VALUE", gcx.resize, { { decode, 8 }, { decode, 16 } })
refused("GCX_ERROR_INVALID_VALUE", gcx.acquire, 1, 8, ("n"):rep(64))
refused("GCX_ERROR_INVALID_DEVICE", gcx.acquire, 2, 8)
decode:close()
prefill:close()
refused("GCX_ERROR_CONTEXT_IS_DESTROYED", steps.probe, steps)
refused("GCX_ERROR_CONTEXT_IS_DESTROYED", steps.native, steps)
steps:close()
for _, call in ipairs({ decode.close, decode.sm_count, decode.stream }) do
    refused("GCX_ERROR_INVALID_HANDLE", call, decode)
end
refused("GCX_ERROR_INVALID_HANDLE", gcx.resize, { { decode, 8 } })
refused("its lease is of type nil", gcx.resize, { {} })
refused("its lease is of type number", gcx.resize, { { 24, 8 } })
refused("cannot convert", gcx.resize, { { { handle = 24 }, 8 } })
assert(gcx.contexts_in_use() == 0)

-- Groups stay what they are when the split that made them is collected.
local groups = gcx.split(device, { 24, 32 })
local second = groups[2]
groups = nil -- luacheck: ignore
for _ = 1, 200 do
    gcx.split(device, { 8, 16 })
end
collectgarbage()
local kept = gcx.context(second)
local of_second = kept:stream()
assert(#of_second:probe() == 32)
local leased = gcx.acquire(0, 8)
assert(leased:stream():native() ~= nil)

print("all of it was refused")
-- And the process ends with live objects.

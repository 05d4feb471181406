-- Splits device 0 into 108 and 24 SMs and shows on which ones each part's kernels run. LuaJIT opens
-- libgcx.so by dlopen; nothing is compiled.
--
--     luajit scenario.lua [LIBRARY]

local here = arg[0]:match("^.*/") or ""
package.path = here .. "../../bindings/lua/generated/?.lua;" .. package.path
local ffi = require("ffi")
local gcx = require("gcx")
local check, C = gcx.check, nil -- C is the library, once it is open

-- The disjoint groups of a resource, one for each count.
local function split(resource, counts)
    local requests = ffi.new("gcx_sm_request[?]", #counts)
    for i, count in ipairs(counts) do
        requests[i - 1].sm_count = count
    end
    local groups = ffi.new("gcx_resource[?]", #counts)
    check(C.gcx_sm_split(resource, requests, #counts, C.GCX_SPLIT_DEFAULT, groups, nil, nil, nil))
    return groups
end

-- 108 and 24 SMs, proved to be disjoint; an error. It appends what has to be given back to made.
local function scenario(made)
    local device = ffi.new("gcx_resource")
    check(C.gcx_device_get_resource(0, C.GCX_RESOURCE_SM, device))
    local groups, owner = split(device, { 108, 24 }), {}
    for i = 0, 1 do
        local context, stream = ffi.new("gcx_context[1]"), ffi.new("gcx_stream[1]")
        check(C.gcx_context_create(groups + i, 1, nil, context))
        table.insert(made, { C.gcx_context_destroy, context[0] })
        check(C.gcx_stream_create(context[0], nil, stream)) -- gcx_stream_native: its cudaStream_t
        table.insert(made, { C.gcx_stream_destroy, stream[0] })

        local ids, count = ffi.new("uint32_t[?]", C.GCX_MAX_SMS), ffi.new("uint32_t[1]")
        check(C.gcx_stream_probe_sms(stream[0], ids, C.GCX_MAX_SMS, count)) -- a kernel notes where it runs
        local sms = {}
        for n = 1, count[0] do
            sms[n] = ids[n - 1]
            assert(not owner[sms[n]], ("SM %d is in two partitions"):format(sms[n]))
            owner[sms[n]] = i
        end
        print(("partition %d runs on %d SMs: %s"):format(i, #sms, table.concat(sms, " ")))
    end
    print("no SM is in both")

    local given, refusal = pcall(split, device, { 140 })
    assert(not given, "140 SMs were given")
    print("140 SMs: " .. tostring(refusal))
end

local function main()
    C = gcx.open(arg[1])
    local info = gcx.new("gcx_device_info")
    check(C.gcx_device_get_info(0, info))
    print(("%s, %d SMs"):format(ffi.string(info.name), info.sm_count))

    local made = {}
    local worked, failure = pcall(scenario, made)
    for i = #made, 1, -1 do
        check(made[i][1](made[i][2]))
    end
    if not worked then
        error(failure, 0)
    end
    local stats = gcx.new("gcx_cache_stats")
    check(C.gcx_cache_get_stats(stats))
    print(("given back: %d contexts in use"):format(stats.in_use))
end

local worked, failure = pcall(main)
if not worked then
    io.stderr:write(tostring(failure), "\n")
    os.exit(1)
end

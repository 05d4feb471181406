-- Splits device 0 into 108 and 24 SMs and shows on which ones each part's kernels run. LuaJIT opens
-- libgcx.so by dlopen; nothing is compiled.
--
--     luajit scenario.lua [LIBRARY]

package.path = arg[0]:gsub("[^/]*$", "") .. "?.lua;" .. package.path
local gcx = require("gcx")

-- 108 and 24 SMs, proved to be disjoint; an error. What it opens it adds to opened.
local function scenario(opened)
    local device = gcx.device(0)
    local owner = {}
    for i, group in ipairs(gcx.split(device, { 108, 24 })) do
        local context = gcx.context(group)
        table.insert(opened, context)
        local stream = context:stream() -- stream:native() is the cudaStream_t
        table.insert(opened, stream)

        local sms = stream:probe() -- a kernel notes where it runs
        print(("partition %d runs on %d SMs: %s"):format(i - 1, #sms, table.concat(sms, " ")))
        for _, sm in ipairs(sms) do
            assert(not owner[sm], ("SM %d is in two partitions"):format(sm))
            owner[sm] = i
        end
    end
    print("no SM is in both")

    local given, refusal = pcall(gcx.split, device, { 140 })
    assert(not given, "140 SMs were given")
    print("140 SMs: " .. tostring(refusal))
end

local function main()
    gcx.open(arg[1])
    local info = gcx.device_info(0)
    print(("%s, %d SMs"):format(info.name, info.sm_count))

    local opened = {}
    local worked, failure = pcall(scenario, opened)
    for i = #opened, 1, -1 do
        opened[i]:close()
    end
    if not worked then
        error(failure, 0)
    end
    print(("given back: %d contexts in use"):format(gcx.contexts_in_use()))
end

local worked, failure = pcall(main)
if not worked then
    io.stderr:write(tostring(failure), "\n")
    os.exit(1)
end

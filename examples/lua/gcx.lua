-- What this example needs of libgcx in Lua: LuaJIT's ffi takes gcx.h's own declarations, so structs
-- are laid out as C lays them out. Contexts and streams are given up once, by close(); what is closed
-- raises an error from then on, a second close() too.

local ffi = require("ffi")

ffi.cdef([[
typedef struct { uint64_t opaque[16]; } gcx_resource;
typedef struct {
    uint32_t sm_count, coscheduled_sm_count, preferred_coscheduled_sm_count, flags;
    uint32_t locality_domain_id;
    uint32_t reserved[11];
} gcx_sm_request;
typedef struct {
    uint32_t struct_size;
    int32_t compute_capability_major, compute_capability_minor;
    uint32_t sm_count, min_partition_size, coscheduled_alignment, locality_domain_count;
    char name[128];
    uint8_t uuid[16];
} gcx_device_info;
typedef struct {
    uint32_t struct_size, limit, in_use, kept;
    uint64_t hits, misses, evicted, lost;
} gcx_cache_stats;
typedef struct gcx_context_s* gcx_context;
typedef struct gcx_stream_s* gcx_stream;
typedef struct gcx_lease_s* gcx_lease;
typedef struct {
    uint32_t struct_size, flags;
    int family;
    uint32_t min_sm_count, exclusive_sm_count, timeout_ms;
    void* cancel;
    const char* name;
} gcx_lease_params;
typedef struct {
    gcx_lease lease;
    uint32_t sm_count, reserved;
} gcx_lease_size;
typedef struct {
    uint32_t struct_size;
    int32_t device;
    int family;
    uint32_t flags, sm_count, exclusive_sm_count, stream_count, reserved;
    uint64_t id, changes;
    char name[64];
} gcx_lease_info;

const char* gcx_result_name(int result);
const char* gcx_last_error_message(void);
int gcx_device_get_info(int32_t device, gcx_device_info* info);
int gcx_device_get_resource(int32_t device, int type, gcx_resource* resource);
int gcx_sm_split(const gcx_resource* input, const gcx_sm_request* requests,
                 uint32_t request_count, uint32_t flags, gcx_resource* groups,
                 gcx_resource* remainder);
int gcx_context_create(const gcx_resource* resources, uint32_t resource_count, const void* params,
                       gcx_context* context);
int gcx_context_destroy(gcx_context context);
int gcx_stream_create(gcx_context context, const void* params, gcx_stream* stream);
int gcx_stream_destroy(gcx_stream stream);
void* gcx_stream_native(gcx_stream stream);
int gcx_stream_query(gcx_stream stream);
int gcx_stream_probe_sms(gcx_stream stream, uint32_t* sm_ids, uint32_t capacity, uint32_t* count);
int gcx_cache_get_stats(gcx_cache_stats* stats);
int gcx_lease_acquire(int32_t device, uint32_t sm_count, const gcx_lease_params* params,
                      gcx_lease* lease);
int gcx_lease_release(gcx_lease lease);
int gcx_lease_resize(const gcx_lease_size* sizes, uint32_t count, uint32_t flags);
int gcx_lease_get_info(gcx_lease lease, gcx_lease_info* info);
int gcx_lease_stream_create(gcx_lease lease, const void* params, gcx_stream* stream);
]])

local RESOURCE_SM = 1
local MAX_SMS = 1024

local gcx = {}
-- As a count: all SMs that are free, or what the other groups leave. A count of 0 is refused.
gcx.REST = 2 ^ 32 - 1
-- The library, once it is open.
local C = setmetatable({}, {
    __index = function()
        error("the library is not open; call gcx.open first", 3)
    end,
})

-- Every argument is checked before it crosses to C: ffi makes an int32_t or uint32_t of any number,
-- and C reads a string up to its first 0 byte.

local function counted(count, level)
    if type(count) ~= "number" or count % 1 ~= 0 or count < 0 or count >= 2 ^ 32 then
        error(tostring(count) .. " is no number of SMs", level + 1)
    end
    return count
end

local function ordinal(device, level)
    if type(device) ~= "number" or device % 1 ~= 0 or device < -2 ^ 31 or device >= 2 ^ 31 then
        error(tostring(device) .. " is no device; a device is a whole number from 0 on", level + 1)
    end
    return device
end

local function milliseconds(timeout, level)
    if type(timeout) ~= "number" or timeout % 1 ~= 0 or timeout < 0 or timeout >= 2 ^ 32 then
        error(tostring(timeout) .. " is no timeout in whole milliseconds", level + 1)
    end
    return timeout
end

local function text(what, value, level)
    if type(value) ~= "string" then
        error(what .. " is a string, not of type " .. type(value), level + 1)
    end
    if value:find("\0", 1, true) then
        error(what .. " has a 0 byte in it", level + 1)
    end
    return value
end

local function listed(what, value, level)
    if type(value) ~= "table" then
        error(what .. " is a table, not of type " .. type(value), level + 1)
    end
    return value
end

-- Loads libgcx from a path, or by a name that the loader looks up. Comes first, once.
function gcx.open(library)
    if library ~= nil then
        text("the library", library, 2)
    end
    C = ffi.load(library or "libgcx.so.1")
end

-- What a failed call raises: a table with the result's number and name, and the message in words.
local Error = {}
Error.__index = Error
function Error:__tostring()
    return self.name .. ": " .. self.message
end

local function check(result)
    if result ~= 0 then
        error(setmetatable({
            result = result,
            name = ffi.string(C.gcx_result_name(result)),
            message = ffi.string(C.gcx_last_error_message()),
        }, Error), 0)
    end
end

-- A struct whose struct_size is filled in.
local function sized(name)
    local value = ffi.new(name)
    value.struct_size = ffi.sizeof(name)
    return value
end

function gcx.device_info(device)
    local info = sized("gcx_device_info")
    check(C.gcx_device_get_info(ordinal(device, 2), info))
    return { name = ffi.string(info.name), sm_count = info.sm_count }
end

-- How many green contexts are in use.
function gcx.contexts_in_use()
    local stats = sized("gcx_cache_stats")
    check(C.gcx_cache_get_stats(stats))
    return stats.in_use
end

-- All SMs of a device: a value, with nothing to close.
function gcx.device(device)
    local resource = ffi.new("gcx_resource")
    check(C.gcx_device_get_resource(ordinal(device, 2), RESOURCE_SM, resource))
    return resource
end

-- The disjoint groups of a resource, one for each count; gcx.REST takes what the others leave.
function gcx.split(resource, counts)
    local wanted = #listed("counts", counts, 2)
    local requests = ffi.new("gcx_sm_request[?]", wanted)
    for i = 1, wanted do
        requests[i - 1].sm_count = counted(counts[i], 2)
    end
    local groups = ffi.new("gcx_resource[?]", wanted)
    check(C.gcx_sm_split(resource, requests, wanted, 0, groups, nil))
    local copies = {}
    for i = 1, wanted do
        -- A copy: a reference into the array would not keep it alive.
        copies[i] = ffi.new("gcx_resource", groups[i - 1])
    end
    return copies
end

local Stream = {}
Stream.__index = Stream

-- The cudaStream_t, for any CUDA code. It stays gcx's. A lease's stream follows the lease, so ask
-- anew for each step.
function Stream:native()
    local native = C.gcx_stream_native(self.handle)
    if native == nil then
        check(C.gcx_stream_query(self.handle)) -- says why
        error("the stream has no CUstream", 2)
    end
    return native
end

-- The SMs that a kernel in the stream runs on, as it notes them.
function Stream:probe()
    local ids, count = ffi.new("uint32_t[?]", MAX_SMS), ffi.new("uint32_t[1]")
    check(C.gcx_stream_probe_sms(self.handle, ids, MAX_SMS, count))
    local sms = {}
    for i = 1, count[0] do
        sms[i] = ids[i - 1]
    end
    return sms
end

-- Gives the stream up; work in it finishes.
function Stream:close()
    check(C.gcx_stream_destroy(self.handle))
end

local Context = {}
Context.__index = Context

-- A context over a resource.
function gcx.context(resource)
    local handle = ffi.new("gcx_context[1]")
    check(C.gcx_context_create(resource, 1, nil, handle))
    return setmetatable({ handle = handle[0] }, Context)
end

function Context:stream()
    local handle = ffi.new("gcx_stream[1]")
    check(C.gcx_stream_create(self.handle, nil, handle))
    return setmetatable({ handle = handle[0] }, Stream)
end

-- Gives the context up; its streams keep it.
function Context:close()
    check(C.gcx_context_destroy(self.handle))
end

local Lease = {}
Lease.__index = Lease

-- SMs of a device that no other lease of the process has; gcx.REST: all that are free. It waits for
-- them up to a time-out in milliseconds, and holds up the interpreter meanwhile.
function gcx.acquire(device, sms, name, timeout_ms)
    local params = sized("gcx_lease_params")
    params.timeout_ms = milliseconds(timeout_ms or 0, 2)
    if name ~= nil then
        params.name = text("a lease's name", name, 2)
    end
    local handle = ffi.new("gcx_lease[1]")
    check(C.gcx_lease_acquire(ordinal(device, 2), counted(sms, 2), params, handle))
    return setmetatable({ handle = handle[0] }, Lease)
end

-- Gives leases other sizes, all in one operation or none: { { lease, sms }, ... }.
function gcx.resize(changes)
    local count = #listed("changes", changes, 2)
    local sizes = ffi.new("gcx_lease_size[?]", count)
    for i = 1, count do
        local change = listed("a change", changes[i], 2)
        if type(change[1]) ~= "table" then
            error("a change is { lease, sms }, and its lease is of type " .. type(change[1]), 2)
        end
        sizes[i - 1].lease, sizes[i - 1].sm_count = change[1].handle, counted(change[2], 2)
    end
    check(C.gcx_lease_resize(sizes, count, 0))
end

function Lease:sm_count()
    local info = sized("gcx_lease_info")
    check(C.gcx_lease_get_info(self.handle, info))
    return info.sm_count
end

-- A stream that follows the lease.
function Lease:stream()
    local handle = ffi.new("gcx_stream[1]")
    check(C.gcx_lease_stream_create(self.handle, nil, handle))
    return setmetatable({ handle = handle[0] }, Stream)
end

-- Gives the SMs up; work on them finishes, and the lease's streams end.
function Lease:close()
    check(C.gcx_lease_release(self.handle))
end

return gcx

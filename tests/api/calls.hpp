// The functions of gcx.h that take resources, contexts, streams or events, and those that take
// nothing, as a table. Tests call all of them with stale, dead or forged objects, after a fork, and
// while driver calls fail.
#pragma once

#include "support.hpp"

#include <span>

namespace support {

// Has one object of each type; the events record times, and were recorded.
struct Objects {
    gcx_resource resource{};
    gcx_resource other{};
    gcx_context context = nullptr;
    gcx_stream stream = nullptr;
    gcx_event event = nullptr;
    gcx_event end = nullptr;

    static Objects make(uint32_t sm_count = 8);
    void destroy() const;
};

// Receives what the functions write.
struct Outputs {
    gcx_driver_info driver = GCX_DRIVER_INFO_INIT;
    gcx_device_info device = GCX_DEVICE_INFO_INIT;
    gcx_resource_info of_resource = GCX_RESOURCE_INFO_INIT;
    gcx_context_info of_context = GCX_CONTEXT_INFO_INIT;
    gcx_stream_info of_stream = GCX_STREAM_INFO_INIT;
    gcx_cache_stats stats = GCX_CACHE_STATS_INIT;
    gcx_kernel_fit fit = GCX_KERNEL_FIT_INIT;
    gcx_resource resource{};
    gcx_resource remainder{};
    gcx_live_context live[64] = {};
    gcx_context context = nullptr;
    gcx_stream stream = nullptr;
    gcx_event event = nullptr;
    uint32_t ids[GCX_MAX_SMS] = {};
    uint32_t number = 7;
    uint32_t more = 7;
    int32_t least = 7;
    int32_t greatest = 7;
    float milliseconds = 7;
};

// What a call uses.
enum : unsigned {
    kNothing = 1,
    kResource = 2,
    kContext = 4,
    kStream = 8,
    kEvent = 16,
    kDestroys = 32,     // succeeds with dead objects, too
    kEffects = 64,      // fails with good objects, or changes which objects are alive or current
    kNative = 128,      // answers null instead of an error
    kAnyResource = 256, // also takes resources that gcx did not create
};
struct Call {
    const char* name;
    unsigned uses;
    gcx_result (*run)(const Objects& objects, Outputs& out);
};
std::span<const Call> all_calls();

// Calls each function that uses one of these types, except those with the flags of except. Checks
// that each call fails with this result and writes nothing.
void refuse_calls(const Objects& objects, unsigned uses, gcx_result expected, unsigned except = 0);

} // namespace support

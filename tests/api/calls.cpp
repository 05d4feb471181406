#include "calls.hpp"

namespace support {
namespace {

gcx_result result_of(const void* native) {
    return native != nullptr ? GCX_SUCCESS : GCX_ERROR_UNKNOWN;
}

const gcx_sm_request kRequest = requests_for({8})[0];
const gcx_kernel_fit_params kFit = [] {
    gcx_kernel_fit_params params = GCX_KERNEL_FIT_PARAMS_INIT;
    params.block_threads = 32;
    return params;
}();

#define CALL(uses, function, ...)                                                                  \
    {#function, uses, []([[maybe_unused]] const Objects& o, [[maybe_unused]] Outputs& out) {       \
         return function(__VA_ARGS__);                                                             \
     }}
#define NATIVE_CALL(uses, function, ...)                                                           \
    {#function, (uses) | kNative,                                                                  \
     [](const Objects& o, Outputs&) { return result_of(function(__VA_ARGS__)); }}

const Call kCalls[] = {
    CALL(kNothing | kEffects, gcx_driver_open, nullptr),
    CALL(kNothing, gcx_driver_get_info, &out.driver),
    CALL(kNothing, gcx_device_get_count, &out.least),
    CALL(kNothing, gcx_device_get_info, 0, &out.device),
    CALL(kNothing, gcx_device_get_stream_priority_range, 0, &out.least, &out.greatest),
    CALL(kNothing, gcx_device_get_resource, 0, GCX_RESOURCE_SM, &out.resource),
    CALL(kNothing, gcx_device_map_sms, 0, GCX_SM_FAMILY_COSCHEDULED),
    CALL(kResource | kAnyResource, gcx_resource_get_info, &o.resource, &out.of_resource),
    CALL(kResource, gcx_sm_split, &o.resource, &kRequest, 1, 0, &out.resource, &out.remainder,
         nullptr, nullptr),
    CALL(kResource, gcx_sm_split, &o.resource, &kRequest, 1, 0, nullptr, nullptr, &out.number,
         &out.more),
    CALL(kResource, gcx_resource_union, &o.resource, &o.other, &out.resource),
    CALL(kResource, gcx_resource_subtract, &o.other, &o.resource, &out.resource),
    CALL(kResource, gcx_resource_get_overlap, &o.other, &o.resource, &out.number),
    CALL(kResource | kEffects, gcx_resource_get_sm_ids, &o.resource, out.ids, GCX_MAX_SMS,
         &out.number), // needs a map
    CALL(kResource | kAnyResource | kEffects, gcx_workqueue_configure, &o.resource,
         GCX_WORKQUEUE_SCOPE_GREEN_CTX_BALANCED, 0, &out.resource), // takes no SMs
    CALL(kResource, gcx_resource_get_atom, &o.resource, 0, &out.resource),
    CALL(kResource, gcx_resource_find_max_cluster_size, &o.resource, &out.number),
    CALL(kResource | kEffects, gcx_context_create, &o.resource, 1, nullptr, &out.context),
    CALL(kResource | kEffects, gcx_cache_prepare, &o.resource, 1, nullptr),
    CALL(kContext, gcx_context_get_info, o.context, &out.of_context),
    CALL(kContext, gcx_context_get_resource, o.context, GCX_RESOURCE_SM, &out.resource),
    NATIVE_CALL(kContext, gcx_context_native, o.context),
    NATIVE_CALL(kContext, gcx_context_native_green, o.context),
    CALL(kNothing, gcx_context_list, -1, out.live, 64, &out.number),
    CALL(kContext | kEffects, gcx_context_push, o.context),
    CALL(kNothing | kEffects, gcx_context_pop, &out.context),
    CALL(kNothing, gcx_context_get_current, &out.context),
    CALL(kContext, gcx_context_synchronize, o.context),
    CALL(kContext | kEvent, gcx_context_record, o.context, o.event),
    CALL(kContext | kEvent, gcx_context_wait, o.context, o.event),
    CALL(kContext | kEffects, gcx_stream_create, o.context, nullptr, &out.stream),
    CALL(kNothing | kEffects, gcx_stream_from_native, forged<struct CUstream_st*>(64), &out.stream),
    NATIVE_CALL(kStream, gcx_stream_native, o.stream),
    CALL(kStream, gcx_stream_get_info, o.stream, &out.of_stream),
    CALL(kStream, gcx_stream_get_resource, o.stream, GCX_RESOURCE_SM, &out.resource),
    CALL(kStream | kEffects, gcx_stream_get_kernel_fit, o.stream, forged<struct CUfunc_st*>(64),
         &kFit, &out.fit),
    CALL(kStream, gcx_stream_synchronize, o.stream),
    CALL(kStream, gcx_stream_query, o.stream),
    CALL(kStream | kEvent, gcx_stream_record, o.stream, o.event),
    CALL(kStream | kEvent, gcx_stream_wait, o.stream, o.event),
    CALL(kStream, gcx_stream_probe_sms, o.stream, out.ids, GCX_MAX_SMS, &out.number),
    CALL(kNothing | kEffects, gcx_event_create, 0, 0, &out.event),
    CALL(kNothing | kEffects, gcx_event_from_native, forged<struct CUevent_st*>(64), &out.event),
    NATIVE_CALL(kEvent, gcx_event_native, o.event),
    CALL(kEvent, gcx_event_synchronize, o.event),
    CALL(kEvent, gcx_event_query, o.event),
    CALL(kEvent, gcx_event_get_elapsed, o.event, o.end, &out.milliseconds),
    CALL(kEvent | kEffects, gcx_event_get_elapsed, o.end, o.event, &out.milliseconds),
    CALL(kNothing | kEffects, gcx_cache_set_limit, 0),
    CALL(kNothing | kEffects, gcx_cache_trim, 0, nullptr),
    CALL(kNothing, gcx_cache_get_stats, &out.stats),
    CALL(kEvent | kDestroys | kEffects, gcx_event_destroy, o.event),
    CALL(kStream | kDestroys | kEffects, gcx_stream_destroy, o.stream),
    CALL(kContext | kDestroys | kEffects, gcx_context_destroy, o.context),
};
#undef CALL
#undef NATIVE_CALL

} // namespace

Objects Objects::make(uint32_t sm_count) {
    const Split made = split(whole_device(), {sm_count, 24});
    Objects objects{made.groups[0], made.groups[1]};
    objects.context = make_context(objects.resource);
    objects.stream = make_stream(objects.context);
    for (gcx_event* event : {&objects.event, &objects.end}) {
        *event = make_event(0, GCX_EVENT_TIMING);
        CHECK_OK(gcx_stream_record(objects.stream, *event));
    }
    CHECK_OK(gcx_stream_synchronize(objects.stream));
    return objects;
}

void Objects::destroy() const {
    CHECK_OK(gcx_event_destroy(event));
    CHECK_OK(gcx_event_destroy(end));
    CHECK_OK(gcx_stream_destroy(stream));
    CHECK_OK(gcx_context_destroy(context));
}

std::span<const Call> all_calls() {
    return kCalls;
}

void refuse_calls(const Objects& objects, unsigned uses, gcx_result expected, unsigned except) {
    const Outputs untouched;
    Outputs out;
    std::memcpy(&out, &untouched, sizeof out);
    for (const Call& call : kCalls) {
        if ((call.uses & uses) == 0 || (call.uses & except) != 0)
            continue;
        const gcx_result result = call.run(objects, out);
        if ((call.uses & kNative) != 0)
            CHECK(result != GCX_SUCCESS && message_has(std::string(call.name) + ":"));
        else
            refused(result, expected, __FILE__, __LINE__, call.name);
        // NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): padding was copied, too
        if (!CHECK_EQ(std::memcmp(&out, &untouched, sizeof out), 0))
            std::fprintf(stderr, "    %s\n", call.name);
    }
}

} // namespace support

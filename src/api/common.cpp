#include "api/common.hpp"

#include "api/guard.hpp"

#include <algorithm>

namespace gcx {
namespace {

gcx_resource context_workqueue_config(Library& lib, const GreenContext& green) {
    lib.driver.require(GCX_CAPABILITY_WORKQUEUES, "workqueue resources");
    CUdevResource native{};
    GCX_CALL(lib.driver, cuGreenCtxGetDevResource, green.green, &native,
             cu::kResourceWorkqueueConfig);
    return seal_workqueue_config(*green.key.device, native);
}

gcx_resource context_workqueue(Library& lib, GreenContext& green) {
    lib.driver.require(GCX_CAPABILITY_WORKQUEUES, "workqueue resources");
    ResourceWords words;
    words.type = GCX_RESOURCE_WORKQUEUE;
    words.device = green.key.device->ordinal();
    words.workqueue.queue = lib.cache.queue_of(green);
    return seal(words);
}

} // namespace

gcx_resource seal_workqueue_config(const Device& device, const CUdevResource& native) {
    const auto fields = cu::get_fields<cu::WorkqueueFields>(native);
    ResourceWords words;
    words.type = GCX_RESOURCE_WORKQUEUE_CONFIG;
    words.device = device.ordinal();
    words.workqueue.scope = static_cast<gcx_workqueue_scope>(fields.scope);
    words.workqueue.concurrency_limit = fields.concurrency_limit;
    return seal(words);
}

gcx_resource resource_of(Library& lib, GreenContext& green, gcx_resource_type type) {
    switch (type) {
    case GCX_RESOURCE_SM:
        return seal({green.key.device, green.key.family, green.key.set});
    case GCX_RESOURCE_WORKQUEUE_CONFIG:
        return context_workqueue_config(lib, green);
    case GCX_RESOURCE_WORKQUEUE:
        return context_workqueue(lib, green);
    }
    refuse_type(type);
}

gcx_resource resource_of_external(Library& lib, const Stream& stream, const Stream::Target& target,
                                  gcx_resource_type type) {
    if (type == GCX_RESOURCE_WORKQUEUE_CONFIG || type == GCX_RESOURCE_WORKQUEUE)
        fail(GCX_ERROR_NOT_FOUND, "the stream is not of a context of gcx, and the driver tells no "
                                  "workqueue of a stream");
    if (type != GCX_RESOURCE_SM)
        refuse_type(type);
    Device& device = lib.device(stream.device());
    const uint32_t count = stream.sm_count(target);
    if (count == device.sm_count()) {
        const auto family = device.family(GCX_SM_FAMILY_COSCHEDULED);
        return seal({&device, family, family->all()});
    }
    lib.driver.require(GCX_CAPABILITY_STREAM_RESOURCE,
                       format("the resource of a stream whose green context gcx did not make, here "
                              "of %u SMs (gcx_stream_get_info tells their number on any driver)",
                              count)
                           .c_str());
    CUdevResource native{};
    GCX_CALL(lib.driver, cuStreamGetDevResource, target.native, &native, cu::kResourceSm);
    const auto fields = cu::get_fields<cu::SmFields>(native);
    ResourceWords words;
    words.device = device.ordinal();
    words.family = GCX_SM_FAMILY_FOREIGN;
    words.external = {fields.sm_count, fields.min_partition_size, fields.coscheduled_alignment,
                      fields.flags};
    return seal(words);
}

gcx_stream_params stream_params(const gcx_stream_params* params) {
    gcx_stream_params wanted = GCX_STREAM_PARAMS_INIT;
    if (params != nullptr) {
        check_size(params, "params");
        wanted = *params;
    }
    if (wanted.sync != GCX_STREAM_NON_BLOCKING)
        fail(GCX_ERROR_INVALID_VALUE,
             format("params->sync is %d; a green context has only streams that don't wait for the "
                    "default stream, GCX_STREAM_NON_BLOCKING (0)",
                    wanted.sync));
    return wanted;
}

void refuse_type(gcx_resource_type type) {
    fail(GCX_ERROR_INVALID_RESOURCE_TYPE,
         format("there is no resource type %d; there are GCX_RESOURCE_SM (1), "
                "GCX_RESOURCE_WORKQUEUE_CONFIG (1000) and GCX_RESOURCE_WORKQUEUE (10000)",
                type));
}

gcx_result ready_or_fail(const Driver& driver, CUresult result, const char* function) {
    if (result != CUDA_ERROR_NOT_READY)
        driver.check(result, function);
    return static_cast<gcx_result>(result);
}

void give_sm_ids(const std::vector<uint32_t>& ids, uint32_t* sm_ids, uint32_t capacity,
                 uint32_t* count) {
    if (count == nullptr || (sm_ids == nullptr && capacity != 0))
        fail(GCX_ERROR_INVALID_VALUE, count == nullptr ? "count is NULL" : "sm_ids is NULL");
    *count = static_cast<uint32_t>(ids.size());
    if (ids.size() > capacity)
        fail(GCX_ERROR_INVALID_VALUE,
             format("there are %zu SMs, and room for %u; *count is what is needed", ids.size(),
                    capacity));
    std::copy(ids.begin(), ids.end(), sm_ids);
}

} // namespace gcx

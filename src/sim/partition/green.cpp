// Green contexts.
#include "sim/edge/entry.hpp"
#include "sim/partition/resource.hpp"

#include <algorithm>

namespace gcx::sim {
namespace {

// Recorded: each create and destroy loses 4 MiB. 300 at once take 1646 MiB, so while it lives each
// has about 1.47 MiB more, and destroying gives none of it back: the next one takes it over.
constexpr uint64_t kLostBytes = 4ULL << 20;
constexpr uint64_t kSlotBytes = 3ULL << 19;

bool fits_flags(const Machine& machine, unsigned flags) {
    return flags == cu::kGreenCtxDefaultStream ||
           (flags == 0 && machine.has(kAcceptsNoDefaultStream));
}

bool take_memory(Device& device) {
    const bool kept = device.free_context_slots > 0;
    if (!charge_memory(device, kLostBytes + (kept ? 0 : kSlotBytes)))
        return false;
    if (kept)
        device.free_context_slots--;
    return true;
}

void apply(const Descriptor& descriptor, Context& context) {
    if (descriptor.sms.any()) {
        context.sms = descriptor.sms;
        context.reported_sms = descriptor.reported_sms;
        context.fragments = descriptor.fragments;
        context.min_partition_size = descriptor.min_partition_size;
        context.alignment = descriptor.alignment;
        context.resource_flags = descriptor.flags;
        context.locality_domain = descriptor.locality_domain;
    }
    if (descriptor.has_workqueue) {
        context.workqueue = descriptor.workqueue;
        if (context.workqueue.id == 0 && context.workqueue.scope == cu::kWorkqueueScopeBalanced)
            context.workqueue.id = new_handle();
    }
}

// The green context that is current, or the one named.
CUresult get_green(Machine& machine, CUgreenCtx handle, Context*& context) {
    if (handle != nullptr)
        return check_green(machine, handle, context);
    const CUresult code = current_context(machine, context);
    if (code != CUDA_SUCCESS)
        return code;
    return context->kind == Context::Kind::Green ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

bool is_capturing(const Machine& machine, const Context& context) {
    return std::any_of(machine.captures.begin(), machine.captures.end(), [&](const auto& entry) {
        const auto& tips = entry.second->tips;
        return std::any_of(tips.begin(), tips.end(),
                           [&](const auto& tip) { return tip.first->context == &context; });
    });
}

void invalidate_captures(Machine& machine, const Context& context) {
    for (const auto& [id, capture] : machine.captures)
        for (const auto& [stream, nodes] : capture->tips)
            if (stream->context == &context)
                invalidate_capture(machine, *capture);
}

CUresult check_uncaptured(Machine& machine, const Context& context) {
    if (!is_capturing(machine, context))
        return CUDA_SUCCESS;
    invalidate_captures(machine, context);
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult record_event(Machine& machine, const Context& context, CUevent handle) {
    Event* const event = find(machine.events, handle);
    if (event == nullptr || event->context->device != context.device)
        return CUDA_ERROR_INVALID_HANDLE;
    if (const CUresult code = check_uncaptured(machine, context); code != CUDA_SUCCESS)
        return code;
    event->recorded = true;
    event->capture = nullptr;
    event->done_at = std::max(machine.clock_ns, context_busy_until(machine, context));
    return CUDA_SUCCESS;
}

CUresult wait_event(Machine& machine, Context& context, CUevent handle) {
    const Event* const event = find(machine.events, handle);
    if (event == nullptr)
        return CUDA_ERROR_INVALID_HANDLE;
    if (event->capture != nullptr) {
        invalidate_capture(machine, *event->capture);
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    if (const CUresult code = check_uncaptured(machine, context); code != CUDA_SUCCESS)
        return code;
    if (event->recorded)
        context.busy_barrier = std::max(context.busy_barrier, event->done_at);
    return CUDA_SUCCESS;
}

} // namespace

CUresult check_green(Machine& machine, CUgreenCtx handle, Context*& context) {
    const auto found = machine.greens.find(to_handle(handle));
    if (found == machine.greens.end())
        return CUDA_ERROR_INVALID_CONTEXT;
    context = found->second;
    return context->alive ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

void end_green(Machine& machine, Context& context) {
    kill_context(machine, context);
    context.device->memory_lost += kLostBytes;
    context.device->free_context_slots++;
}

Handle green_handle_of(Machine& machine, Context& context) {
    if (machine.has(kGivesGreenHandleBack))
        return context.kind == Context::Kind::Green ? context.green : 0;
    // Recorded on 13.0: a handle, but another one, and one for a plain stream as well.
    if (context.green_alias == 0) {
        context.green_alias = new_handle();
        machine.greens[context.green_alias] = &context;
    }
    return context.green_alias;
}

GCX_SIM_API(cuGreenCtxCreate, CUgreenCtx* out, CUdevResourceDesc handle, CUdevice ordinal,
            unsigned flags) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        Device* const device = machine.device(ordinal);
        if (out == nullptr || !fits_flags(machine, flags))
            return CUDA_ERROR_INVALID_VALUE;
        if (device == nullptr)
            return CUDA_ERROR_INVALID_DEVICE;
        const Descriptor* const descriptor = find(machine.descriptors, handle);
        // Recorded: no descriptor is as good as one of the whole device.
        if (handle != nullptr && descriptor == nullptr)
            return CUDA_ERROR_INVALID_VALUE;
        if (descriptor != nullptr && descriptor->device != nullptr && descriptor->device != device)
            return CUDA_ERROR_INVALID_DEVICE;
        if (!take_memory(*device))
            return CUDA_ERROR_OUT_OF_MEMORY;
        // Recorded: it waits for all that runs anywhere on the device.
        machine.clock_ns =
            std::max(machine.clock_ns, device->busy_until + call_cost("cuGreenCtxCreate"));
        Context& primary = retain_primary(machine, *device);
        Context& context = new_context(machine, *device, Context::Kind::Green);
        context.primary = &primary;
        context.flags = flags;
        context.green = new_handle();
        context.green_id = machine.next_green_id++;
        machine.greens[context.green] = &context;
        if (descriptor != nullptr)
            apply(*descriptor, context);
        *out = to_pointer<CUgreenCtx>(context.green);
        return CUDA_SUCCESS;
    });
}

GCX_SIM_API(cuGreenCtxDestroy, CUgreenCtx handle) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        Context* context = nullptr;
        if (const CUresult code = check_green(machine, handle, context); code != CUDA_SUCCESS)
            return code;
        if (context->kind != Context::Kind::Green)
            return CUDA_ERROR_INVALID_CONTEXT;
        Device& device = *context->device;
        end_green(machine, *context);
        release_primary(machine, device);
        return CUDA_SUCCESS;
    });
}

GCX_SIM_API(cuCtxFromGreenCtx, CUcontext* out, CUgreenCtx handle) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        if (out == nullptr)
            return CUDA_ERROR_INVALID_VALUE;
        Context* context = nullptr;
        const CUresult code = check_green(machine, handle, context);
        if (code == CUDA_SUCCESS)
            *out = to_pointer<CUcontext>(context->handle);
        return code;
    });
}

GCX_SIM_API(cuGreenCtxGetDevResource, CUgreenCtx handle, CUdevResource* resource,
            CUdevResourceType type) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        Context* context = nullptr;
        const CUresult code = check_green(machine, handle, context);
        return code == CUDA_SUCCESS
                   ? query_resource(machine, *context->device, context, resource, type)
                   : code;
    });
}

GCX_SIM_API(cuGreenCtxGetId, CUgreenCtx handle, unsigned long long* out) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        if (out == nullptr)
            return CUDA_ERROR_INVALID_VALUE;
        Context* context = nullptr;
        const CUresult code = get_green(machine, handle, context);
        if (code == CUDA_SUCCESS)
            *out = context->green_id;
        return code;
    });
}

GCX_SIM_API(cuGreenCtxRecordEvent, CUgreenCtx handle, CUevent event) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        Context* context = nullptr;
        const CUresult code = get_green(machine, handle, context);
        return code == CUDA_SUCCESS ? record_event(machine, *context, event) : code;
    });
}

GCX_SIM_API(cuGreenCtxWaitEvent, CUgreenCtx handle, CUevent event) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        Context* context = nullptr;
        const CUresult code = get_green(machine, handle, context);
        return code == CUDA_SUCCESS ? wait_event(machine, *context, event) : code;
    });
}

GCX_SIM_API(cuCtxRecordEvent, CUcontext handle, CUevent event) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        Context* context = nullptr;
        const CUresult code = check_context(machine, handle, context);
        return code == CUDA_SUCCESS ? record_event(machine, *context, event) : code;
    });
}

GCX_SIM_API(cuCtxWaitEvent, CUcontext handle, CUevent event) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        Context* context = nullptr;
        const CUresult code = check_context(machine, handle, context);
        return code == CUDA_SUCCESS ? wait_event(machine, *context, event) : code;
    });
}

} // namespace gcx::sim

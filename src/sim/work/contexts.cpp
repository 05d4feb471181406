// Primary and other contexts, and which is current.
#include "sim/edge/entry.hpp"
#include "sim/partition/resource.hpp"

#include <algorithm>

namespace gcx::sim {
namespace {

// Recorded: 112 ms for the first retain of the primary context.
constexpr uint64_t kPrimaryCreateNs = 112'229'000;
// Assumed: what a context takes of device memory.
constexpr uint64_t kContextBytes = 400ULL << 20;

struct CurrentStack {
    uint64_t epoch = 0;
    std::vector<Handle> contexts;
};

std::vector<Handle>& current_stack(const Machine& machine) {
    thread_local CurrentStack stack;
    if (stack.epoch != machine.epoch) {
        stack.contexts.clear();
        stack.epoch = machine.epoch;
    }
    return stack.contexts;
}

CUresult get_context(Machine& machine, CUcontext handle, Context*& context) {
    return handle == nullptr ? current_context(machine, context)
                             : check_context(machine, handle, context);
}

bool fits_flags(unsigned flags) {
    constexpr unsigned kKnownFlags = 0xff;
    return (flags & ~kKnownFlags) == 0 && (flags & CU_CTX_SCHED_MASK) != 3 &&
           (flags & CU_CTX_SCHED_MASK) <= 4;
}

CUresult create_context(Machine& machine, CUcontext* out, unsigned flags, CUdevice ordinal) {
    Device* const device = machine.device(ordinal);
    if (out == nullptr || !fits_flags(flags))
        return CUDA_ERROR_INVALID_VALUE;
    if (device == nullptr)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!charge_memory(*device, kContextBytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    Context& context = new_context(machine, *device, Context::Kind::Created);
    context.flags = flags;
    current_stack(machine).push_back(context.handle);
    *out = to_pointer<CUcontext>(context.handle);
    return CUDA_SUCCESS;
}

CUresult synchronize(Machine& machine, const Context& context) {
    for (const auto& [id, capture] : machine.captures) {
        if (capture->origin->context == &context && !capture->invalid) {
            invalidate_capture(machine, *capture);
            return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
    }
    wait_until(machine, context_busy_until(machine, context));
    return CUDA_SUCCESS;
}

std::size_t default_limit(int limit) {
    switch (limit) {
    case CU_LIMIT_STACK_SIZE:
        return 1024;
    case CU_LIMIT_PRINTF_FIFO_SIZE:
        return std::size_t{7} << 20;
    case CU_LIMIT_MALLOC_HEAP_SIZE:
        return std::size_t{8} << 20;
    case CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH:
        return 2;
    case CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT:
        return 2048;
    case CU_LIMIT_MAX_L2_FETCH_GRANULARITY:
        return 128;
    default:
        return 0;
    }
}

} // namespace

Device* Machine::device(CUdevice ordinal) {
    if (ordinal < 0 || static_cast<std::size_t>(ordinal) >= devices.size())
        return nullptr;
    return devices[static_cast<std::size_t>(ordinal)].get();
}

Context* find_context(Machine& machine, CUcontext context) {
    return find(machine.contexts, context);
}

CUresult check_context(Machine& machine, CUcontext handle, Context*& context) {
    context = find(machine.contexts, handle);
    if (context == nullptr)
        return CUDA_ERROR_INVALID_CONTEXT;
    return context->alive ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

CUresult current_context(Machine& machine, Context*& context) {
    const auto& stack = current_stack(machine);
    if (stack.empty() || stack.back() == 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    return check_context(machine, to_pointer<CUcontext>(stack.back()), context);
}

Context& new_context(Machine& machine, Device& device, Context::Kind kind) {
    auto made = std::make_unique<Context>();
    Context& context = *made;
    context.handle = new_handle();
    context.device = &device;
    context.kind = kind;
    context.id = machine.next_context_id++;
    context.sms = device.profile.all();
    context.reported_sms = device.profile.sm_count;
    context.min_partition_size = device.profile.min_partition_size;
    context.alignment = device.profile.coscheduled_alignment;
    context.fragments = resource_fragments(machine, device_resource(device));
    context.null_stream.context = &context;
    context.null_stream.id = machine.next_stream_id++;
    machine.contexts[context.handle] = std::move(made);
    return context;
}

void kill_context(Machine& machine, Context& context) {
    context.alive = false;
    for (const auto& [id, capture] : machine.captures)
        for (const auto& [stream, nodes] : capture->tips)
            if (stream->context == &context)
                invalidate_capture(machine, *capture);
}

Context& retain_primary(Machine& machine, Device& device) {
    if (device.primary == nullptr) {
        machine.clock_ns += kPrimaryCreateNs;
        device.primary = &new_context(machine, device, Context::Kind::Primary);
        device.memory_used += kContextBytes;
    }
    device.primary_retains++;
    return *device.primary;
}

void reset_primary(Machine& machine, Device& device) {
    if (device.primary == nullptr)
        return;
    Context* const primary = device.primary;
    kill_context(machine, *primary);
    // Assumed, where the driver lets a reset through at all: the green contexts on it go with it,
    // and with each its hold on the primary.
    for (const auto& [handle, context] : machine.contexts) {
        if (context->kind == Context::Kind::Green && context->device == &device && context->alive) {
            end_green(machine, *context);
            device.primary_retains--;
        }
    }
    for (auto it = machine.allocations.begin(); it != machine.allocations.end();) {
        const Allocation& allocation = it->second;
        const bool dies = allocation.context != nullptr && !allocation.context->alive &&
                          allocation.device == &device;
        it = dies ? drop_allocation(machine, it) : std::next(it);
    }
    std::erase_if(machine.modules, [&](const auto& entry) {
        return !entry.second->is_library && entry.second->context == primary;
    });
    std::erase_if(machine.events, [&](const auto& entry) {
        return entry.second->context != nullptr && !entry.second->context->alive;
    });
    for (const auto& [handle, stream] : machine.streams)
        stream->gone = stream->gone || !stream->context->alive;
    device.primary = nullptr;
    device.memory_used -= std::min(device.memory_used, kContextBytes);
}

void release_primary(Machine& machine, Device& device) {
    if (device.primary_retains == 0)
        return;
    device.primary_retains--;
    if (device.primary_retains == 0)
        reset_primary(machine, device);
}

GCX_SIM_API(cuDevicePrimaryCtxRetain, CUcontext* out, CUdevice ordinal) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        Device* const device = machine.device(ordinal);
        if (out == nullptr)
            return CUDA_ERROR_INVALID_VALUE;
        if (device == nullptr)
            return CUDA_ERROR_INVALID_DEVICE;
        *out = to_pointer<CUcontext>(retain_primary(machine, *device).handle);
        return CUDA_SUCCESS;
    });
}

GCX_SIM_API(cuDevicePrimaryCtxRelease_v2, CUdevice ordinal) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        Device* const device = machine.device(ordinal);
        if (device == nullptr)
            return CUDA_ERROR_INVALID_DEVICE;
        if (device->primary_retains == 0)
            return CUDA_ERROR_INVALID_CONTEXT;
        release_primary(machine, *device);
        return CUDA_SUCCESS;
    });
}

GCX_SIM_API(cuDevicePrimaryCtxReset_v2, CUdevice ordinal) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        Device* const device = machine.device(ordinal);
        if (device == nullptr)
            return CUDA_ERROR_INVALID_DEVICE;
        const bool in_use =
            std::any_of(machine.contexts.begin(), machine.contexts.end(), [&](const auto& entry) {
                const Context& context = *entry.second;
                return context.kind == Context::Kind::Green && context.device == device &&
                       context.alive;
            });
        if (in_use && machine.has(kRefusesResets))
            return CUDA_ERROR_NOT_PERMITTED;
        reset_primary(machine, *device);
        // The retains are the callers', and stay to be released.
        return CUDA_SUCCESS;
    });
}

GCX_SIM_API(cuDevicePrimaryCtxSetFlags_v2, CUdevice ordinal, unsigned flags) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        Device* const device = machine.device(ordinal);
        if (device == nullptr)
            return CUDA_ERROR_INVALID_DEVICE;
        if (!fits_flags(flags))
            return CUDA_ERROR_INVALID_VALUE;
        device->primary_flags = flags;
        return CUDA_SUCCESS;
    });
}

GCX_SIM_API(cuDevicePrimaryCtxGetState, CUdevice ordinal, unsigned* flags, int* active) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        const Device* const device = machine.device(ordinal);
        if (device == nullptr)
            return CUDA_ERROR_INVALID_DEVICE;
        if (flags == nullptr || active == nullptr)
            return CUDA_ERROR_INVALID_VALUE;
        *flags = device->primary_flags;
        *active = device->primary != nullptr ? 1 : 0;
        return CUDA_SUCCESS;
    });
}

GCX_SIM_API(cuCtxCreate_v2, CUcontext* out, unsigned flags, CUdevice ordinal) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return create_context(machine, out, flags, ordinal);
    });
}

GCX_SIM_API(cuCtxCreate_v3, CUcontext* out, CUexecAffinityParam* affinity, int count,
            unsigned flags, CUdevice ordinal) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        // Execution affinity belongs to MPS, which is not simulated.
        if (affinity != nullptr && count > 0)
            return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
        return create_context(machine, out, flags, ordinal);
    });
}

GCX_SIM_API(cuCtxCreate_v4, CUcontext* out, void* parameters, unsigned flags, CUdevice ordinal) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        if (parameters != nullptr) // affinity and CIG are not simulated
            return CUDA_ERROR_NOT_SUPPORTED;
        return create_context(machine, out, flags, ordinal);
    });
}

GCX_SIM_API(cuCtxDestroy_v2, CUcontext handle) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        Context* context = nullptr;
        if (const CUresult code = check_context(machine, handle, context); code != CUDA_SUCCESS)
            return code;
        if (context->kind != Context::Kind::Created)
            return CUDA_ERROR_INVALID_CONTEXT;
        wait_until(machine, context_busy_until(machine, *context));
        kill_context(machine, *context);
        context->device->memory_used -= std::min(context->device->memory_used, kContextBytes);
        auto& stack = current_stack(machine);
        if (!stack.empty() && stack.back() == context->handle)
            stack.pop_back();
        return CUDA_SUCCESS;
    });
}

GCX_SIM_API(cuCtxPushCurrent_v2, CUcontext handle) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        Context* context = nullptr;
        if (const CUresult code = check_context(machine, handle, context); code != CUDA_SUCCESS)
            return code;
        current_stack(machine).push_back(context->handle);
        return CUDA_SUCCESS;
    });
}

GCX_SIM_API(cuCtxPopCurrent_v2, CUcontext* out) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        auto& stack = current_stack(machine);
        if (stack.empty())
            return CUDA_ERROR_INVALID_CONTEXT;
        if (out != nullptr)
            *out = to_pointer<CUcontext>(stack.back());
        stack.pop_back();
        return CUDA_SUCCESS;
    });
}

GCX_SIM_API(cuCtxSetCurrent, CUcontext handle) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        auto& stack = current_stack(machine);
        if (handle != nullptr) {
            Context* context = nullptr;
            if (const CUresult code = check_context(machine, handle, context); code != CUDA_SUCCESS)
                return code;
        }
        if (!stack.empty())
            stack.pop_back();
        if (handle != nullptr)
            stack.push_back(to_handle(handle));
        return CUDA_SUCCESS;
    });
}

GCX_SIM_API(cuCtxGetCurrent, CUcontext* out) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        if (out == nullptr)
            return CUDA_ERROR_INVALID_VALUE;
        // A destroyed context stays current, as recorded.
        const auto& stack = current_stack(machine);
        *out = stack.empty() ? nullptr : to_pointer<CUcontext>(stack.back());
        return CUDA_SUCCESS;
    });
}

GCX_SIM_API(cuCtxGetDevice, CUdevice* out) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        if (out == nullptr)
            return CUDA_ERROR_INVALID_VALUE;
        Context* context = nullptr;
        const CUresult code = current_context(machine, context);
        if (code == CUDA_SUCCESS)
            *out = context->device->ordinal;
        return code;
    });
}

GCX_SIM_API(cuCtxGetDevice_v2, CUdevice* out, CUcontext handle) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        if (out == nullptr)
            return CUDA_ERROR_INVALID_VALUE;
        Context* context = nullptr;
        const CUresult code = get_context(machine, handle, context);
        if (code == CUDA_SUCCESS)
            *out = context->device->ordinal;
        return code;
    });
}

GCX_SIM_API(cuCtxGetId, CUcontext handle, unsigned long long* out) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        if (out == nullptr)
            return CUDA_ERROR_INVALID_VALUE;
        Context* context = nullptr;
        const CUresult code = get_context(machine, handle, context);
        if (code == CUDA_SUCCESS)
            *out = context->id;
        return code;
    });
}

GCX_SIM_API(cuCtxGetFlags, unsigned* out) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        if (out == nullptr)
            return CUDA_ERROR_INVALID_VALUE;
        Context* context = nullptr;
        const CUresult code = current_context(machine, context);
        if (code == CUDA_SUCCESS)
            *out = context->kind == Context::Kind::Created ? context->flags
                                                           : context->device->primary_flags;
        return code;
    });
}

GCX_SIM_API(cuCtxSetFlags, unsigned flags) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        Context* context = nullptr;
        const CUresult code = current_context(machine, context);
        if (code != CUDA_SUCCESS)
            return code;
        if (!fits_flags(flags))
            return CUDA_ERROR_INVALID_VALUE;
        (context->kind == Context::Kind::Created ? context->flags
                                                 : context->device->primary_flags) = flags;
        return CUDA_SUCCESS;
    });
}

GCX_SIM_API(cuCtxSynchronize) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        Context* context = nullptr;
        const CUresult code = current_context(machine, context);
        return code == CUDA_SUCCESS ? synchronize(machine, *context) : code;
    });
}

GCX_SIM_API(cuCtxSynchronize_v2, CUcontext handle) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        Context* context = nullptr;
        const CUresult code = get_context(machine, handle, context);
        return code == CUDA_SUCCESS ? synchronize(machine, *context) : code;
    });
}

GCX_SIM_API(cuCtxGetDevResource, CUcontext handle, CUdevResource* resource,
            CUdevResourceType type) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        Context* context = nullptr;
        const CUresult code = get_context(machine, handle, context);
        return code == CUDA_SUCCESS
                   ? query_resource(machine, *context->device, context, resource, type)
                   : code;
    });
}

GCX_SIM_API(cuCtxGetApiVersion, CUcontext handle, unsigned* out) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        if (out == nullptr)
            return CUDA_ERROR_INVALID_VALUE;
        Context* context = nullptr;
        const CUresult code = get_context(machine, handle, context);
        if (code == CUDA_SUCCESS)
            *out = 3020; // that of cuCtxCreate_v2
        return code;
    });
}

GCX_SIM_API(cuCtxGetLimit, std::size_t* out, CUlimit limit) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        if (out == nullptr)
            return CUDA_ERROR_INVALID_VALUE;
        Context* context = nullptr;
        if (const CUresult code = current_context(machine, context); code != CUDA_SUCCESS)
            return code;
        if (limit > CU_LIMIT_PERSISTING_L2_CACHE_SIZE)
            return CUDA_ERROR_UNSUPPORTED_LIMIT;
        const auto found = context->limits.find(limit);
        *out = found == context->limits.end() ? default_limit(limit) : found->second;
        return CUDA_SUCCESS;
    });
}

GCX_SIM_API(cuCtxSetLimit, CUlimit limit, std::size_t value) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        Context* context = nullptr;
        if (const CUresult code = current_context(machine, context); code != CUDA_SUCCESS)
            return code;
        if (limit > CU_LIMIT_PERSISTING_L2_CACHE_SIZE)
            return CUDA_ERROR_UNSUPPORTED_LIMIT;
        context->limits[limit] = value;
        return CUDA_SUCCESS;
    });
}

GCX_SIM_API(cuCtxGetCacheConfig, CUfunc_cache* out) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        if (out == nullptr)
            return CUDA_ERROR_INVALID_VALUE;
        Context* context = nullptr;
        const CUresult code = current_context(machine, context);
        if (code == CUDA_SUCCESS)
            *out = static_cast<CUfunc_cache>(context->cache_config);
        return code;
    });
}

GCX_SIM_API(cuCtxSetCacheConfig, CUfunc_cache config) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        Context* context = nullptr;
        const CUresult code = current_context(machine, context);
        if (code == CUDA_SUCCESS)
            context->cache_config = config;
        return code;
    });
}

GCX_SIM_API(cuCtxGetStreamPriorityRange, int* least, int* greatest) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        Context* context = nullptr;
        const CUresult code = current_context(machine, context);
        if (code != CUDA_SUCCESS)
            return code;
        if (least != nullptr)
            *least = 0;
        if (greatest != nullptr)
            *greatest = -5; // recorded: prio 0..-5
        return CUDA_SUCCESS;
    });
}

GCX_SIM_API(cuCtxEnablePeerAccess, CUcontext peer, unsigned flags) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        Context* context = nullptr;
        Context* other = nullptr;
        if (const CUresult code = current_context(machine, context); code != CUDA_SUCCESS)
            return code;
        if (const CUresult code = check_context(machine, peer, other); code != CUDA_SUCCESS)
            return code;
        if (flags != 0)
            return CUDA_ERROR_INVALID_VALUE;
        if (other->device == context->device)
            return CUDA_ERROR_INVALID_DEVICE;
        return context->peers.insert(other->device->ordinal).second
                   ? CUDA_SUCCESS
                   : CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
    });
}

GCX_SIM_API(cuCtxDisablePeerAccess, CUcontext peer) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        Context* context = nullptr;
        Context* other = nullptr;
        if (const CUresult code = current_context(machine, context); code != CUDA_SUCCESS)
            return code;
        if (const CUresult code = check_context(machine, peer, other); code != CUDA_SUCCESS)
            return code;
        return context->peers.erase(other->device->ordinal) != 0
                   ? CUDA_SUCCESS
                   : CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
    });
}

GCX_SIM_API(cuCtxResetPersistingL2Cache) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        Context* context = nullptr;
        return current_context(machine, context);
    });
}

} // namespace gcx::sim

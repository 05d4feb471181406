// What can be asked of a context, and set.
#include "sim/device/device.hpp"
#include "sim/edge/entry.hpp"
#include "sim/partition/partition.hpp"
#include "sim/work/work.hpp"

#include <algorithm>

namespace gcx::sim {
namespace {

void synchronize(Machine& machine, const Context& context) {
    for (const auto& [id, capture] : machine.captures) {
        const bool takes_part =
            std::any_of(capture->tips.begin(), capture->tips.end(),
                        [&](const auto& tip) { return tip.first->context == &context; });
        if (takes_part && !capture->invalid) {
            capture->invalid = true;
            refuse(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        }
    }
    wait_until(machine, context_busy_until(machine, context));
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

// The limits of the current context, of which this is one.
std::map<int, std::size_t>& limits_with(Machine& machine, CUlimit limit) {
    Context& context = current_context(machine);
    require(limit <= CU_LIMIT_PERSISTING_L2_CACHE_SIZE, CUDA_ERROR_UNSUPPORTED_LIMIT);
    return context.limits;
}

} // namespace

GCX_SIM_API(cuCtxGetDevice, CUdevice* out) {
    GCX_SIM_BODY({
        require(out != nullptr);
        *out = current_context(machine).device->ordinal;
    });
}

GCX_SIM_API(cuCtxGetDevice_v2, CUdevice* out, CUcontext handle) {
    GCX_SIM_BODY({
        require(out != nullptr);
        *out = context_or_current(machine, handle).device->ordinal;
    });
}

GCX_SIM_API(cuCtxGetId, CUcontext handle, unsigned long long* out) {
    GCX_SIM_BODY({
        require(out != nullptr);
        *out = context_or_current(machine, handle).id;
    });
}

GCX_SIM_API(cuCtxSynchronize) {
    GCX_SIM_BODY(synchronize(machine, current_context(machine)));
}

GCX_SIM_API(cuCtxSynchronize_v2, CUcontext handle) {
    GCX_SIM_BODY(synchronize(machine, context_or_current(machine, handle)));
}

GCX_SIM_API(cuCtxGetDevResource, CUcontext handle, CUdevResource* resource,
            CUdevResourceType type) {
    GCX_SIM_BODY({
        const Context& context = context_or_current(machine, handle);
        query_resource(machine, *context.device, &context, resource, type);
    });
}

GCX_SIM_API(cuCtxGetLimit, std::size_t* out, CUlimit limit) {
    GCX_SIM_BODY({
        require(out != nullptr);
        const auto& limits = limits_with(machine, limit);
        const auto found = limits.find(limit);
        *out = found == limits.end() ? default_limit(limit) : found->second;
    });
}

GCX_SIM_API(cuCtxSetLimit, CUlimit limit, std::size_t value) {
    GCX_SIM_BODY({
        std::size_t& mine = limits_with(machine, limit)[limit];
        // The header: a hint, which can be clamped. Assumed: to what the device says.
        if (limit == CU_LIMIT_PERSISTING_L2_CACHE_SIZE)
            value = std::min(value, max_persisting_l2(*current_context(machine).device));
        mine = value;
    });
}

GCX_SIM_API(cuCtxGetStreamPriorityRange, int* least, int* greatest) {
    GCX_SIM_BODY({
        current_context(machine);
        if (least != nullptr)
            *least = 0;
        if (greatest != nullptr)
            *greatest = -5; // recorded: prio 0..-5
    });
}

GCX_SIM_API(cuCtxEnablePeerAccess, CUcontext peer, unsigned flags) {
    GCX_SIM_BODY({
        Context& context = current_context(machine);
        const Device& other = *context_of(machine, peer).device;
        require(flags == 0);
        require(&other != context.device, CUDA_ERROR_INVALID_DEVICE);
        require(context.peers.insert(other.ordinal).second, CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
    });
}

GCX_SIM_API(cuCtxResetPersistingL2Cache) {
    GCX_SIM_BODY(current_context(machine));
}

} // namespace gcx::sim

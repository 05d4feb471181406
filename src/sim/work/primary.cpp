// The primary context of a device, which is counted.
#include "sim/device/device.hpp"
#include "sim/edge/entry.hpp"
#include "sim/partition/partition.hpp"
#include "sim/work/work.hpp"

#include <algorithm>

namespace gcx::sim {
namespace {

// Recorded: 112 ms for the first retain of the primary context.
constexpr uint64_t kPrimaryCreateNs = 112'229'000;

bool is_live_green(const Context& context, const Device& device) {
    return context.kind == Context::Kind::Green && context.device == &device && context.alive;
}

void drop_memory_of_the_dead(Machine& machine, const Device& device) {
    for (auto it = machine.allocations.begin(); it != machine.allocations.end();) {
        const Allocation& allocation = it->second;
        const bool dies = allocation.context != nullptr && !allocation.context->alive &&
                          allocation.device == &device;
        it = dies ? drop_allocation(machine, it) : std::next(it);
    }
}

void reset_primary(Machine& machine, Device& device) {
    if (device.primary == nullptr)
        return;
    Context* const primary = device.primary;
    kill_context(machine, *primary);
    // Assumed, where the driver lets a reset through at all: the green contexts on it go with it,
    // and with each its reservation on the primary.
    for (const auto& [handle, context] : machine.contexts) {
        if (is_live_green(*context, device)) {
            end_green(machine, *context);
            device.primary_retains--;
        }
    }
    drop_memory_of_the_dead(machine, device);
    std::erase_if(machine.modules, [&](const auto& entry) {
        return !entry.second->is_library && entry.second->context == primary;
    });
    std::erase_if(machine.events, [&](const auto& entry) {
        return entry.second->context != nullptr && !entry.second->context->alive;
    });
    for (const auto& [handle, stream] : machine.streams)
        stream->gone = stream->gone || !stream->context->alive;
    device.primary = nullptr;
    return_memory(device, kContextBytes);
}

} // namespace

Context& retain_primary(Machine& machine, Device& device) {
    if (device.primary == nullptr) {
        machine.clock_ns += kPrimaryCreateNs;
        device.primary = &new_context(machine, device, Context::Kind::Primary);
        device.memory_used += kContextBytes;
    }
    device.primary_retains++;
    return *device.primary;
}

void release_primary(Machine& machine, Device& device) {
    if (device.primary_retains == 0)
        return;
    device.primary_retains--;
    if (device.primary_retains == 0)
        reset_primary(machine, device);
}

GCX_SIM_API(cuDevicePrimaryCtxRetain, CUcontext* out, CUdevice ordinal) {
    GCX_SIM_BODY({
        require(out != nullptr);
        give(out, retain_primary(machine, device_of(machine, ordinal)).handle);
    });
}

GCX_SIM_API(cuDevicePrimaryCtxRelease_v2, CUdevice ordinal) {
    GCX_SIM_BODY({
        Device& device = device_of(machine, ordinal);
        require(device.primary_retains > 0, CUDA_ERROR_INVALID_CONTEXT);
        release_primary(machine, device);
    });
}

GCX_SIM_API(cuDevicePrimaryCtxReset_v2, CUdevice ordinal) {
    GCX_SIM_BODY({
        Device& device = device_of(machine, ordinal);
        const bool in_use =
            std::any_of(machine.contexts.begin(), machine.contexts.end(),
                        [&](const auto& entry) { return is_live_green(*entry.second, device); });
        require(!in_use || !machine.has(kRefusesResets), CUDA_ERROR_NOT_PERMITTED);
        reset_primary(machine, device); // the retains are the callers', and stay to be released
    });
}

GCX_SIM_API(cuDevicePrimaryCtxSetFlags_v2, CUdevice ordinal, unsigned flags) {
    GCX_SIM_BODY({
        Device& device = device_of(machine, ordinal);
        require(fits_context_flags(flags));
        device.primary_flags = flags;
    });
}

GCX_SIM_API(cuDevicePrimaryCtxGetState, CUdevice ordinal, unsigned* flags, int* active) {
    GCX_SIM_BODY({
        const Device& device = device_of(machine, ordinal);
        require(flags != nullptr && active != nullptr);
        *flags = device.primary_flags;
        *active = device.primary != nullptr ? 1 : 0;
    });
}

} // namespace gcx::sim

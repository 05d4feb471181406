// Green contexts.
#include "sim/device/device.hpp"
#include "sim/entry/entry.hpp"
#include "sim/partition/partition.hpp"
#include "sim/work/work.hpp"

#include <algorithm>

namespace gcx::sim {
namespace {

// Recorded: each create and destroy loses 4 MiB. 300 contexts at once use 1646 MiB, so that each
// live context uses about 1.47 MiB more. Destroying returns none of it; the next context reuses it.
constexpr uint64_t kLostBytes = 4ULL << 20;
constexpr uint64_t kSlotBytes = 3ULL << 19;

bool fits_flags(const Machine& machine, unsigned flags) {
    return flags == cu::kGreenCtxDefaultStream ||
           (flags == 0 && machine.has(kAcceptsNoDefaultStream));
}

void take_memory(Device& device) {
    const bool reused = device.free_context_slots > 0;
    charge_memory(device, kLostBytes + (reused ? 0 : kSlotBytes));
    if (reused)
        device.free_context_slots--;
}

// By the header's text: "when possible, use non-overlapping workqueue resources with other balanced
// green contexts", where the concurrency limit is the expected number of workloads. So a balanced
// context gets that many private queues. A context created with another's workqueue shares them.
void give_queues(const Machine& machine, Context& context) {
    Workqueue& requested = context.workqueue;
    if (requested.id == 0 && requested.scope == cu::kWorkqueueScopeBalanced) {
        requested.id = new_handle();
        requested.queues = std::make_shared<Queues>();
        requested.queues->count = requested.concurrency_limit;
        return;
    }
    for (const auto& [handle, other] : machine.contexts)
        if (requested.id != 0 && other->workqueue.id == requested.id &&
            other->workqueue.queues != nullptr)
            requested.queues = other->workqueue.queues;
}

void apply(const Machine& machine, const Descriptor& descriptor, Context& context) {
    if (descriptor.sms.any())
        static_cast<Sms&>(context) = descriptor;
    if (descriptor.has_workqueue) {
        context.workqueue = descriptor.workqueue;
        give_queues(machine, context);
    }
}

void create_green(Machine& machine, CUgreenCtx* out, CUdevResourceDesc handle, CUdevice ordinal,
                  unsigned flags) {
    require(out != nullptr && fits_flags(machine, flags));
    Device& device = device_of(machine, ordinal);
    const Descriptor* const descriptor = find(machine.descriptors, handle);
    // Recorded: a NULL descriptor means the whole device.
    require(handle == nullptr || descriptor != nullptr);
    require(descriptor == nullptr || descriptor->device == nullptr || descriptor->device == &device,
            CUDA_ERROR_INVALID_DEVICE);
    take_memory(device);
    // Recorded: it waits for all running kernels of the device. Assumed: not for host functions, nor
    // for kernels behind one, which do not run yet.
    Moment busy = device.busy;
    settle(busy);
    wait_until(machine, {busy.ns + call_cost("cuGreenCtxCreate"), {}});
    Context& primary = retain_primary(machine, device);
    Context& context = new_context(machine, device, Context::Kind::Green);
    context.primary = &primary;
    context.green = new_handle();
    context.green_id = machine.next_green_id++;
    machine.greens[context.green] = &context;
    if (descriptor != nullptr)
        apply(machine, *descriptor, context);
    give(out, context.green);
}

} // namespace

Context& green_of(Machine& machine, CUgreenCtx handle) {
    const auto found = machine.greens.find(to_handle(handle));
    require(found != machine.greens.end(), CUDA_ERROR_INVALID_CONTEXT);
    require(found->second->alive, CUDA_ERROR_CONTEXT_IS_DESTROYED);
    return *found->second;
}

Context& green_or_current(Machine& machine, CUgreenCtx handle) {
    if (handle != nullptr)
        return green_of(machine, handle);
    Context& context = current_context(machine);
    require(context.kind == Context::Kind::Green, CUDA_ERROR_INVALID_CONTEXT);
    return context;
}

void end_green(Machine& machine, Context& context) {
    kill_context(machine, context);
    context.device->memory_lost += kLostBytes;
    context.device->free_context_slots++;
}

Handle green_handle_of(Machine& machine, Context& context) {
    if (machine.has(kGivesGreenHandleBack))
        return context.kind == Context::Kind::Green ? context.green : 0;
    // Recorded on 13.0: returns another handle, for plain streams as well.
    if (context.green_alias == 0) {
        context.green_alias = new_handle();
        machine.greens[context.green_alias] = &context;
    }
    return context.green_alias;
}

GCX_SIM_API(cuGreenCtxCreate, CUgreenCtx* out, CUdevResourceDesc descriptor, CUdevice ordinal,
            unsigned flags) {
    GCX_SIM_BODY(create_green(machine, out, descriptor, ordinal, flags));
}

GCX_SIM_API(cuGreenCtxDestroy, CUgreenCtx handle) {
    GCX_SIM_BODY({
        Context& context = green_of(machine, handle);
        require(context.kind == Context::Kind::Green, CUDA_ERROR_INVALID_CONTEXT);
        end_green(machine, context);
        release_primary(machine, *context.device);
    });
}

GCX_SIM_API(cuCtxFromGreenCtx, CUcontext* out, CUgreenCtx handle) {
    GCX_SIM_GIVE(out, green_of(machine, handle).handle);
}

GCX_SIM_API(cuGreenCtxGetDevResource, CUgreenCtx handle, CUdevResource* resource,
            CUdevResourceType type) {
    GCX_SIM_BODY({
        const Context& context = green_of(machine, handle);
        query_resource(machine, *context.device, &context, resource, type);
    });
}

GCX_SIM_API(cuGreenCtxGetId, CUgreenCtx handle, unsigned long long* out) {
    GCX_SIM_GIVE(out, green_or_current(machine, handle).green_id);
}

} // namespace gcx::sim

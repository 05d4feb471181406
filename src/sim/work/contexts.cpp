// Contexts: created and primary ones, the current context, settings, and events of all their work.
#include "sim/device/device.hpp"
#include "sim/entry/entry.hpp"
#include "sim/partition/partition.hpp"
#include "sim/partition/resource.hpp"
#include "sim/work/work.hpp"

#include <pthread.h>

#include <algorithm>

namespace gcx::sim {

namespace {

struct CurrentStack {
    uint64_t epoch = 0;
    std::vector<Handle> contexts;
};

// Destroyed by pthread_key_create()'s destructor: after the thread_local objects of the program,
// whose destructors can still make calls, and never at process exit, where its handlers can.
CurrentStack& thread_stack() {
    static const pthread_key_t key = [] {
        pthread_key_t made{};
        require(pthread_key_create(
                    &made, [](void* stack) { delete static_cast<CurrentStack*>(stack); }) == 0,
                CUDA_ERROR_OUT_OF_MEMORY);
        return made;
    }();
    auto* stack = static_cast<CurrentStack*>(pthread_getspecific(key));
    if (stack == nullptr) {
        keep_loaded(); // the destructor is in this library
        auto made = std::make_unique<CurrentStack>();
        require(pthread_setspecific(key, made.get()) == 0, CUDA_ERROR_OUT_OF_MEMORY);
        stack = made.release();
    }
    return *stack;
}

std::vector<Handle>& current_stack(const Machine& machine) {
    CurrentStack& stack = thread_stack();
    if (stack.epoch != machine.epoch) {
        stack.contexts.clear();
        stack.epoch = machine.epoch;
    }
    return stack.contexts;
}

bool are_context_flags(unsigned flags) {
    constexpr unsigned kKnownFlags = 0xff;
    return (flags & ~kKnownFlags) == 0 && (flags & CU_CTX_SCHED_MASK) != 3 &&
           (flags & CU_CTX_SCHED_MASK) <= 4;
}

void create_context(Machine& machine, CUcontext* out, unsigned flags, CUdevice ordinal) {
    require(out != nullptr && are_context_flags(flags));
    Device& device = device_of(machine, ordinal);
    charge_memory(device, kContextBytes);
    Context& context = new_context(machine, device, Context::Kind::Created);
    context.flags = flags;
    current_stack(machine).push_back(context.handle);
    give(out, context.handle);
}

void destroy_context(Machine& machine, CUcontext handle) {
    Context& context = context_of(machine, handle);
    require(context.kind == Context::Kind::Created, CUDA_ERROR_INVALID_CONTEXT);
    wait_until(machine, context.busy);
    require(context.alive, CUDA_ERROR_CONTEXT_IS_DESTROYED); // by another thread until then
    kill_context(machine, context);
    return_memory(*context.device, kContextBytes);
    auto& stack = current_stack(machine);
    if (!stack.empty() && stack.back() == context.handle)
        stack.pop_back();
}

} // namespace

Context& context_of(Machine& machine, CUcontext handle) {
    Context& context = known(find(machine.contexts, handle), CUDA_ERROR_INVALID_CONTEXT);
    require(context.alive, CUDA_ERROR_CONTEXT_IS_DESTROYED);
    return context;
}

Context& current_context(Machine& machine) {
    const auto& stack = current_stack(machine);
    require(!stack.empty(), CUDA_ERROR_INVALID_CONTEXT);
    return context_of(machine, to_pointer<CUcontext>(stack.back()));
}

void refuse_dead_context(Machine& machine) {
    if (!current_stack(machine).empty())
        current_context(machine);
}

Context& context_or_current(Machine& machine, CUcontext handle) {
    return handle == nullptr ? current_context(machine) : context_of(machine, handle);
}

Context& new_context(Machine& machine, Device& device, Context::Kind kind) {
    Context& context = create(machine.contexts);
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
    return context;
}

void kill_context(Machine& machine, Context& context) {
    context.alive = false;
    for (const auto& [id, capture] : machine.captures)
        for (const auto& [stream, nodes] : capture->tips)
            if (stream->context == &context)
                capture->invalid = true;
}

GCX_SIM_API(cuCtxCreate_v2, CUcontext* out, unsigned flags, CUdevice ordinal) {
    GCX_SIM_BODY(create_context(machine, out, flags, ordinal));
}

GCX_SIM_API(cuCtxCreate_v3, CUcontext* out, CUexecAffinityParam* affinity, int count,
            unsigned flags, CUdevice ordinal) {
    GCX_SIM_BODY({
        // Execution affinity belongs to MPS, which is not simulated.
        require(affinity == nullptr || count <= 0, CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY);
        create_context(machine, out, flags, ordinal);
    });
}

GCX_SIM_API(cuCtxCreate_v4, CUcontext* out, void* parameters, unsigned flags, CUdevice ordinal) {
    GCX_SIM_BODY({
        // Affinity and CIG are not simulated.
        require(parameters == nullptr, CUDA_ERROR_NOT_SUPPORTED);
        create_context(machine, out, flags, ordinal);
    });
}

GCX_SIM_API(cuCtxDestroy_v2, CUcontext handle) {
    GCX_SIM_BODY(destroy_context(machine, handle));
}

GCX_SIM_API(cuCtxPushCurrent_v2, CUcontext handle) {
    GCX_SIM_BODY(current_stack(machine).push_back(context_of(machine, handle).handle));
}

GCX_SIM_API(cuCtxPopCurrent_v2, CUcontext* out) {
    GCX_SIM_BODY({
        auto& stack = current_stack(machine);
        require(!stack.empty(), CUDA_ERROR_INVALID_CONTEXT);
        if (out != nullptr)
            give(out, stack.back());
        stack.pop_back();
    });
}

GCX_SIM_API(cuCtxSetCurrent, CUcontext handle) {
    GCX_SIM_BODY({
        auto& stack = current_stack(machine);
        // Recorded: a destroyed context can become current.
        require(handle == nullptr || find(machine.contexts, handle) != nullptr,
                CUDA_ERROR_INVALID_CONTEXT);
        if (!stack.empty())
            stack.pop_back();
        if (handle != nullptr)
            stack.push_back(to_handle(handle));
    });
}

GCX_SIM_API(cuCtxGetCurrent, CUcontext* out) {
    GCX_SIM_BODY({
        // Recorded: a destroyed context stays current.
        const auto& stack = current_stack(machine);
        give(out, stack.empty() ? Handle{0} : stack.back());
    });
}

// Primary contexts.

namespace {

// Recorded: the first retain of the primary context takes 112 ms.
constexpr uint64_t kPrimaryCreateNs = 112'229'000;

bool is_live_green(const Context& context, const Device& device) {
    return context.kind == Context::Kind::Green && context.device == &device && context.alive;
}

void free_memory_of_dead_contexts(Machine& machine, const Device& device) {
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
    // Assumed for drivers that allow the reset: it also destroys the device's green contexts, and
    // each of them releases the primary one.
    for (const auto& [handle, context] : machine.contexts) {
        if (is_live_green(*context, device)) {
            end_green(machine, *context);
            device.primary_retains--;
        }
    }
    free_memory_of_dead_contexts(machine, device);
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
        device.primary->flags = device.primary_flags;
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
    GCX_SIM_GIVE(out, retain_primary(machine, device_of(machine, ordinal)).handle);
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
        const bool in_use = std::ranges::any_of(machine.contexts, [&](const auto& entry) {
            return is_live_green(*entry.second, device);
        });
        require(!in_use || !machine.has(kRefusesResets), CUDA_ERROR_NOT_PERMITTED);
        reset_primary(machine, device); // callers still have to release their retains
    });
}

GCX_SIM_API(cuDevicePrimaryCtxSetFlags_v2, CUdevice ordinal, unsigned flags) {
    GCX_SIM_BODY({
        Device& device = device_of(machine, ordinal);
        require(are_context_flags(flags));
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

// Settings.

namespace {

void synchronize(Machine& machine, const Context& context) {
    for (const auto& [id, capture] : machine.captures) {
        const bool takes_part = std::ranges::any_of(
            capture->tips, [&](const auto& tip) { return tip.first->context == &context; });
        if (takes_part && !capture->invalid) {
            capture->invalid = true;
            refuse(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        }
    }
    wait_until(machine, later(context.busy, context.barrier));
    trim_pools(machine);
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

// Returns the limits of the current context; refuses an unknown limit. Recorded: a green context's
// are those of its primary one.
std::map<int, std::size_t>& limits_with(Machine& machine, CUlimit limit) {
    Context& context = current_context(machine);
    require(limit <= CU_LIMIT_PERSISTING_L2_CACHE_SIZE, CUDA_ERROR_UNSUPPORTED_LIMIT);
    return context.owner().limits;
}

} // namespace

GCX_SIM_API(cuCtxGetDevice, CUdevice* out) {
    GCX_SIM_GIVE(out, current_context(machine).device->ordinal);
}

GCX_SIM_API(cuCtxGetDevice_v2, CUdevice* out, CUcontext handle) {
    GCX_SIM_GIVE(out, context_or_current(machine, handle).device->ordinal);
}

GCX_SIM_API(cuCtxGetId, CUcontext handle, unsigned long long* out) {
    GCX_SIM_GIVE(out, context_or_current(machine, handle).id);
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
        std::size_t& current = limits_with(machine, limit)[limit];
        // Recorded: more than the device has is refused.
        require(limit != CU_LIMIT_PERSISTING_L2_CACHE_SIZE ||
                value <= max_persisting_l2(*current_context(machine).device));
        current = value;
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
        // Recorded: enabled for the primary context, it is enabled for its green ones.
        require(context.owner().peers.insert(other.ordinal).second,
                CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
    });
}

// Recorded for a primary context and a green one.
GCX_SIM_API(cuCtxGetApiVersion, CUcontext handle, unsigned* out) {
    GCX_SIM_BODY({
        context_or_current(machine, handle);
        give(out, 3020U);
    });
}

// Recorded: CU_CTX_MAP_HOST is always set.
GCX_SIM_API(cuCtxGetFlags, unsigned* out) {
    GCX_SIM_GIVE(out, current_context(machine).owner().flags | CU_CTX_MAP_HOST);
}

GCX_SIM_API(cuCtxSetCacheConfig, CUfunc_cache config) {
    GCX_SIM_BODY({
        Context& context = current_context(machine);
        require(config <= CU_FUNC_CACHE_PREFER_EQUAL);
        context.cache_config = config;
    });
}

GCX_SIM_API(cuCtxGetCacheConfig, CUfunc_cache* out) {
    GCX_SIM_GIVE(out, current_context(machine).cache_config);
}

// There is no profiler.
GCX_SIM_API(cuProfilerStart) {
    GCX_SIM_BODY(current_context(machine));
}

GCX_SIM_API(cuProfilerStop) {
    GCX_SIM_BODY(current_context(machine));
}

GCX_SIM_API(cuCtxResetPersistingL2Cache) {
    GCX_SIM_BODY(current_context(machine));
}

// Events.

namespace {

// A capture on the context's streams can contain neither operation and becomes invalid.
void refuse_capturing(const Machine& machine, const Context& context) {
    bool found = false;
    for (const auto& [id, capture] : machine.captures)
        for (const auto& [stream, nodes] : capture->tips)
            if (stream->context == &context)
                found = capture->invalid = true;
    require(!found, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

void record(Machine& machine, const Context& context, CUevent handle) {
    Event& event = known(find(machine.events, handle), CUDA_ERROR_INVALID_HANDLE);
    require(event.context->device == context.device, CUDA_ERROR_INVALID_HANDLE);
    refuse_capturing(machine, context);
    event.recorded = true;
    event.capture = nullptr;
    event.done = later(context.busy, context.barrier);
    event.done.ns = std::max(event.done.ns, machine.clock_ns);
}

void wait(Machine& machine, const Context& context, CUevent handle) {
    const Event& event = known(find(machine.events, handle), CUDA_ERROR_INVALID_HANDLE);
    refuse_capturing(machine, context);
    if (event.capture != nullptr) {
        event.capture->invalid = true; // measured on 13.0
        refuse(CUDA_ERROR_CAPTURED_EVENT);
    }
    if (!event.recorded)
        return;
    // The header: the green contexts of a primary context wait too.
    for (const auto& [id, other] : machine.contexts)
        if (other.get() == &context || other->primary == &context)
            extend(other->barrier, event.done);
}

} // namespace

GCX_SIM_API(cuGreenCtxRecordEvent, CUgreenCtx handle, CUevent event) {
    GCX_SIM_BODY(record(machine, green_or_current(machine, handle), event));
}

GCX_SIM_API(cuGreenCtxWaitEvent, CUgreenCtx handle, CUevent event) {
    GCX_SIM_BODY(wait(machine, green_or_current(machine, handle), event));
}

} // namespace gcx::sim

// Contexts: made, destroyed, and current in a thread.
#include "sim/device/device.hpp"
#include "sim/edge/entry.hpp"
#include "sim/partition/resource.hpp"
#include "sim/work/work.hpp"

namespace gcx::sim {
namespace {

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

void create_context(Machine& machine, CUcontext* out, unsigned flags, CUdevice ordinal) {
    require(out != nullptr && fits_context_flags(flags));
    Device& device = device_of(machine, ordinal);
    charge_memory(device, kContextBytes);
    const Context& context = new_context(machine, device, Context::Kind::Created);
    current_stack(machine).push_back(context.handle);
    give(out, context.handle);
}

void destroy_context(Machine& machine, CUcontext handle) {
    Context& context = context_of(machine, handle);
    require(context.kind == Context::Kind::Created, CUDA_ERROR_INVALID_CONTEXT);
    wait_until(machine, context_busy_until(machine, context));
    kill_context(machine, context);
    return_memory(*context.device, kContextBytes);
    auto& stack = current_stack(machine);
    if (!stack.empty() && stack.back() == context.handle)
        stack.pop_back();
}

} // namespace

bool fits_context_flags(unsigned flags) {
    constexpr unsigned kKnownFlags = 0xff;
    return (flags & ~kKnownFlags) == 0 && (flags & CU_CTX_SCHED_MASK) != 3 &&
           (flags & CU_CTX_SCHED_MASK) <= 4;
}

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
        if (handle != nullptr)
            context_of(machine, handle);
        if (!stack.empty())
            stack.pop_back();
        if (handle != nullptr)
            stack.push_back(to_handle(handle));
    });
}

GCX_SIM_API(cuCtxGetCurrent, CUcontext* out) {
    GCX_SIM_BODY({
        // A destroyed context stays current, as recorded.
        const auto& stack = current_stack(machine);
        give(out, stack.empty() ? Handle{0} : stack.back());
    });
}

} // namespace gcx::sim

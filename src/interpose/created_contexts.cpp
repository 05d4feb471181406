#include "interpose/created_contexts.hpp"

#include "interpose/real_driver.hpp"

#include <exception>
#include <memory>
#include <mutex>

namespace gcx::interpose {
namespace {

using State = CreatedContext::State;

// Each takes 5 MiB of the device's memory.
constexpr std::size_t kMaxContexts = 8;

// The newest context, from which `next` leads to all others.
constinit std::atomic<CreatedContext*> newest{nullptr};

// Ids of contexts that use a green context again. The driver counts its own from 1.
constinit std::atomic<uint64_t> next_id{uint64_t{1} << 63};

// Returns the first context for which a function returns true, or null.
template <class Matches>
CreatedContext* find_if(const Matches& matches) {
    CreatedContext* context = newest.load(std::memory_order_acquire);
    while (context != nullptr && !matches(*context))
        context = context->next;
    return context;
}

bool claim(CreatedContext& context, State from) {
    return context.state.compare_exchange_strong(from, State::Busy);
}

// Returns a context in the state Busy, one with a green context if possible. Returns null if all
// are in use.
CreatedContext* claim_any(Partition& partition) {
    std::size_t count = 0;
    for (const State from : {State::Destroyed, State::Unused})
        if (CreatedContext* const found = find_if([&](CreatedContext& context) {
                return &context.partition == &partition && claim(context, from);
            }))
            return found;
    const std::lock_guard lock(partition.mutex);
    find_if([&](const CreatedContext& context) {
        count += &context.partition == &partition ? 1 : 0;
        return false;
    });
    if (count == kMaxContexts)
        return nullptr;
    auto* const added = new CreatedContext(partition);
    added->next = newest.load();
    while (!newest.compare_exchange_weak(added->next, added)) {
    }
    return added;
}

// Creates the green context of a claimed context, or takes the one that it has.
CUresult prepare(CreatedContext& context) {
    if (context.green.load() != nullptr) {
        context.id.store(next_id++);
        return CUDA_SUCCESS;
    }
    const CUresult result = create_further_context(context.partition, &context.context);
    if (result != CUDA_SUCCESS)
        return result;
    const CUcontext green = gcx_context_native(context.context);
    if (green == nullptr) { // destroyed by a reset in another thread
        gcx_context_destroy(context.context);
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    }
    forget_former_context(green);
    context.id.store(0);
    context.green.store(green);
    return CUDA_SUCCESS;
}

// Frees an object by the driver. The context must be current.
void free_by_driver(Object kind, uint64_t handle) {
    const auto pointer = [&]<class Handle>(CUresult (*)(Handle)) {
        // NOLINTNEXTLINE(performance-no-int-to-ptr): the list has handles as numbers
        return reinterpret_cast<Handle>(handle);
    };
    switch (kind) {
    case Object::Stream:
        StreamOrder::destroy(pointer(&::cuStreamDestroy), GCX_DRIVER(cuStreamDestroy_v2).find());
        break;
    case Object::Event:
        GCX_DRIVER(cuEventDestroy_v2)(pointer(&::cuEventDestroy));
        break;
    case Object::Module:
        GCX_DRIVER(cuModuleUnload)(pointer(&::cuModuleUnload));
        break;
    case Object::MipmappedArray:
        GCX_DRIVER(cuMipmappedArrayDestroy)(pointer(&::cuMipmappedArrayDestroy));
        break;
    case Object::Array:
        GCX_DRIVER(cuArrayDestroy)(pointer(&::cuArrayDestroy));
        break;
    case Object::Memory:
        GCX_DRIVER(cuMemFree_v2)(handle);
        break;
    case Object::Registration:
        GCX_DRIVER(cuMemHostUnregister)(pointer(&::cuMemHostUnregister));
        break;
    case Object::HostMemory:
        GCX_DRIVER(cuMemFreeHost)(pointer(&::cuMemFreeHost));
        break;
    }
}

// Frees all objects of a claimed context, which must be current.
void free_objects(CreatedContext& context) {
    std::set<std::pair<Object, uint64_t>> objects;
    std::vector<BlockingStream*> thread_streams;
    {
        const std::lock_guard lock(context.mutex);
        objects.swap(context.objects);
        thread_streams.swap(context.thread_streams);
        context.generation++;
    }
    for (BlockingStream* const stream : thread_streams)
        context.order.destroy(*stream, GCX_DRIVER(cuStreamDestroy_v2).find());
    for (const auto& [kind, handle] : objects)
        free_by_driver(kind, handle);
}

} // namespace

CreatedContext* find_created(CUcontext green) {
    return green == nullptr ? nullptr : find_if([&](const CreatedContext& context) {
        return context.green.load(std::memory_order_acquire) == green;
    });
}

CreatedContext* as_created(ProgramContext& context) {
    const ProgramContext* const of_partition = &context.partition;
    return &context != of_partition ? static_cast<CreatedContext*>(&context) : nullptr;
}

bool is_alive(ProgramContext& context) {
    const CreatedContext* const created = as_created(context);
    return created == nullptr || created->state.load() == State::Alive;
}

CUresult create_context(Partition& partition, CUcontext* out, unsigned flags) {
    constexpr unsigned kKnownFlags = 0xff;
    const unsigned schedule = flags & CU_CTX_SCHED_MASK;
    if (out == nullptr || (flags & ~kKnownFlags) != 0 || schedule == 3 || schedule > 4)
        return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult usable = check_driver_usable(); usable != CUDA_SUCCESS)
        return usable;
    CreatedContext* context = nullptr;
    try {
        context = claim_any(partition);
    } catch (const std::exception&) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (context == nullptr) {
        log_line("device %d: cuCtxCreate fails with CUDA_ERROR_OUT_OF_MEMORY: the program has %zu "
                 "contexts, and gcx exec allows no more at once; destroy one first",
                 partition.device.load(), kMaxContexts);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    CUresult result = prepare(*context);
    if (result == CUDA_SUCCESS)
        result = GCX_DRIVER(cuCtxPushCurrent_v2)(context->green.load());
    if (result != CUDA_SUCCESS) {
        context->state.store(context->green.load() != nullptr ? State::Destroyed : State::Unused);
        return result;
    }
    context->flags.store(flags);
    context->users.store(1);
    context->state.store(State::Alive);
    *out = context->green.load();
    return CUDA_SUCCESS;
}

CUresult destroy_context(CreatedContext& context) {
    if (const CUresult usable = check_driver_usable(); usable != CUDA_SUCCESS)
        return usable;
    const CUcontext green = context.green.load();
    CUcontext popped = nullptr;
    CUresult result = GCX_DRIVER(cuCtxPushCurrent_v2)(green);
    if (result != CUDA_SUCCESS)
        return result;
    // Measured: the driver waits for the context's work. Other threads can still submit what that
    // waits for. After an error of the work, it is destroyed all the same.
    GCX_DRIVER(cuCtxSynchronize)();
    const bool claimed = claim(context, State::Alive);
    if (claimed)
        free_objects(context);
    GCX_DRIVER(cuCtxPopCurrent_v2)(&popped);
    if (!claimed) // another thread has destroyed it
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    CUcontext current = nullptr;
    if (GCX_DRIVER(cuCtxGetCurrent)(&current) == CUDA_SUCCESS && current == green)
        result = GCX_DRIVER(cuCtxPopCurrent_v2)(&popped);
    context.state.store(State::Destroyed);
    return result;
}

bool has_created_contexts(const Partition& partition) {
    return find_if([&](const CreatedContext& context) {
               const State state = context.state.load();
               return &context.partition == &partition &&
                      (state == State::Alive || state == State::Busy);
           }) != nullptr;
}

bool has_cached_contexts(const Partition& partition) {
    return find_if([&](const CreatedContext& context) {
               return &context.partition == &partition && context.state.load() == State::Destroyed;
           }) != nullptr;
}

CUresult destroy_cached_contexts(Partition& partition) {
    CUresult result = CUDA_SUCCESS;
    find_if([&](CreatedContext& context) {
        if (&context.partition != &partition || !claim(context, State::Destroyed))
            return false;
        result = destroy_green_context(context);
        if (result == CUDA_SUCCESS) {
            context.green.store(nullptr);
            context.order.clear();
        }
        context.state.store(result == CUDA_SUCCESS ? State::Unused : State::Destroyed);
        return result != CUDA_SUCCESS;
    });
    return result;
}

CUresult add_object(ProgramContext* context, Object kind, uint64_t handle) {
    CreatedContext* const created = context != nullptr ? as_created(*context) : nullptr;
    if (created == nullptr)
        return CUDA_SUCCESS;
    try {
        const std::lock_guard lock(created->mutex);
        created->objects.emplace(kind, handle);
        return CUDA_SUCCESS;
    } catch (const std::exception&) {
        free_by_driver(kind, handle);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
}

CreatedContext* remove_object(Object kind, uint64_t handle) {
    return find_if([&](CreatedContext& context) {
        const std::lock_guard lock(context.mutex);
        return context.objects.erase({kind, handle}) != 0;
    });
}

void add_again(CreatedContext& context, Object kind, uint64_t handle) {
    try {
        const std::lock_guard lock(context.mutex);
        context.objects.emplace(kind, handle);
    } catch (const std::exception&) { // NOLINT(bugprone-empty-catch): not freed with the context
    }
}

} // namespace gcx::interpose

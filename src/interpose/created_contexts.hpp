// Contexts that the program creates by cuCtxCreate.
//
// Each has a further green context over the partition's SMs, whose handle the program gets, with its
// own order (stream_order.hpp) and thread streams (thread_streams.hpp).
//
// Memory, events and modules of a green context belong to the primary context (measured with driver
// 580), so the driver would not free them. Hooks list the objects that are created while such a
// context is current, and cuCtxDestroy frees them. A destroyed green context leaks 4 MiB of device
// memory (measured), so the next cuCtxCreate uses it again.
#pragma once

#include "driver/cuda_api.h"

#include "interpose/partition.hpp"

#include <atomic>
#include <cstdint>
#include <set>
#include <utility>

namespace gcx::interpose {

// What the driver frees with a context. Freed in this order.
enum class Object : uint8_t {
    Stream,
    Event,
    Module,
    MipmappedArray,
    Array,
    Memory,
    Registration, // of host memory
    HostMemory,
};

struct CreatedContext : ProgramContext {
    using ProgramContext::ProgramContext;

    enum class State : uint8_t {
        Unused,    // without a green context
        Busy,      // a thread creates or destroys it
        Alive,     // the program has it
        Destroyed, // its green context can be used again
    };
    std::atomic<State> state{State::Busy};
    std::atomic<uint64_t> id{0}; // as from cuCtxGetId; 0: the green context's
    std::atomic<unsigned> flags{0};
    std::atomic<int> users{1};                     // see cuCtxAttach
    std::set<std::pair<Object, uint64_t>> objects; // by handle; guarded by mutex
    CreatedContext* next = nullptr;                // of all; none is ever freed
};

// Returns the context with this green context, in any state, or null.
CreatedContext* find_created(CUcontext green);

// Returns the context as one of cuCtxCreate, or null if it is in the place of a primary context.
CreatedContext* as_created(ProgramContext& context);

// Returns false for a destroyed context of cuCtxCreate.
bool is_alive(ProgramContext& context);

// Creates a context in the partition, and makes it current. At most 8 can be alive in a partition.
CUresult create_context(Partition& partition, CUcontext* out, unsigned flags);

// Waits for the work of a context, frees its objects and pops it if it is current in this thread.
CUresult destroy_context(CreatedContext& context);

// Returns whether the program has such contexts, or is creating or destroying one.
bool has_created_contexts(const Partition& partition);

// Returns whether there are green contexts of destroyed ones.
bool has_cached_contexts(const Partition& partition);

// Destroys these before a reset of the device, or forgets them after it. Returns the first error.
CUresult destroy_cached_contexts(Partition& partition);

// Lists an object of the context, if that is one of cuCtxCreate. Frees the object and fails if there
// is no memory.
CUresult add_object(ProgramContext* context, Object kind, uint64_t handle);

// Removes an object from its context's list, before it is freed. Returns that context, to which it
// must be added again if it could not be freed; null if the object is in no list.
CreatedContext* remove_object(Object kind, uint64_t handle);

// Lists an object that remove_object() removed.
void add_again(CreatedContext& context, Object kind, uint64_t handle);

} // namespace gcx::interpose

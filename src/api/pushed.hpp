// What the calling thread has made current with gcx_context_push, and not yet taken off.
#pragma once

#include "core/context_cache.hpp"

namespace gcx::pushed {

struct Entry {
    uint64_t handle;
    ContextCache::Ref green;
};

// Makes room for one more, so that putting it can't fail.
void reserve();
void put(Entry entry) noexcept;
// Lets go of the room that nothing came into.
void release_room() noexcept;

// The last one; null if there is none.
const Entry* top();
void drop_top();
bool contains(uint64_t handle);

// Whether the thread is ending, and so what it had pushed was taken off. Destructors of the thread
// may ask that run later.
bool ended();

} // namespace gcx::pushed

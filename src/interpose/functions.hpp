// The functions that the library changes.
#pragma once

#include <cstddef>

namespace gcx::shim {

// A variant of a driver function, as cuGetProcAddress tells them apart.
struct Changed {
    const char* base;   // the name that cuGetProcAddress is asked for
    const char* symbol; // the variant's
    int since;          // the driver version that first had the variant
    bool per_thread;    // a NULL stream in it is the thread's own
    void (*ours)();
};
extern const Changed kChanged[];
extern const std::size_t kChangedCount;

} // namespace gcx::shim

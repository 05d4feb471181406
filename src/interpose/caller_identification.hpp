// Identifies the library that calls a hook, for hooks that do not answer all callers alike.
#pragma once

namespace gcx::interpose {

enum class Caller {
    // A cuBLAS that leaves parts of products unwritten if it sees a partition's SM count, or a
    // cuBLAS of unknown version. docs/counts.md has the measurements.
    kOldCublas,
    kOther,
};

// Identifies the caller of a function by the address that the function returns to. That works for
// cuBLAS, since its CUDA runtime is part of its library file.
Caller caller_at(const void* return_address);

} // namespace gcx::interpose

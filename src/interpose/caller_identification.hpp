// Who asks, where the answer is not the same for all.
#pragma once

namespace gcx::shim {

enum class Asker {
    // A cuBLAS that leaves parts of products out when it is told a partition's count, or one of
    // which nobody knows: docs/counts.md has what was measured.
    kOldCublas,
    kOther,
};

// By the address that a function returns to. cuBLAS has a CUDA runtime of its own inside, and so
// asks the driver by itself.
Asker asker_at(const void* return_address);

} // namespace gcx::shim

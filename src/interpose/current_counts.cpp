// In a process that uses gcx itself: the SMs of the green context that the calling thread has
// current on the device. An old cuBLAS has a target of its own for that, cublasSetSmCountTarget.
#include "interpose/counts.hpp"
#include "interpose/real_driver.hpp"

#include <cstdlib>
#include <cstring>

namespace gcx::shim {
namespace {

// Written before the facade is opened, by which everybody else comes here; kept for good.
constinit std::atomic<const char*> path{nullptr};

} // namespace

const char* real_path() {
    return path.load(std::memory_order_acquire);
}

CUresult find_told_count(CUdevice device, Asker asker, int* count) {
    *count = asker == Asker::kOldCublas ? 0 : current_count(device);
    return CUDA_SUCCESS;
}

} // namespace gcx::shim

// For gcx alone, of which a process may have several copies: the first says where the real libcuda
// is, and each is told.
extern "C" GCX_SHIM_EXPORT const char* gcx_count_partitions(const char* real_path) {
    const char* known = nullptr;
    if (real_path == nullptr)
        return gcx::shim::path.load(std::memory_order_acquire);
    char* const copy = strdup(real_path);
    if (gcx::shim::path.compare_exchange_strong(known, copy))
        return copy;
    free(copy);
    return known;
}

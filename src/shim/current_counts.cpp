// In a process that uses gcx itself: the SMs of the green context that the calling thread has
// current on the device.
#include "shim/counts.hpp"
#include "shim/real.hpp"

namespace gcx::shim {
namespace {

// Written before the facade is opened, by which everybody else comes here.
constinit std::atomic<const char*> path{nullptr};

} // namespace

const char* real_path() {
    return path.load(std::memory_order_acquire);
}

int told_count(CUdevice device) {
    CUcontext current = nullptr;
    CUdevice its_device = -1;
    CUdevResource sms{};
    if (GCX_REAL_ALONE(cuCtxGetCurrent)(&current) != CUDA_SUCCESS || current == nullptr ||
        GCX_REAL_ALONE(cuCtxGetDevice)(&its_device) != CUDA_SUCCESS || its_device != device ||
        GCX_REAL_ALONE(cuCtxGetDevResource)(current, &sms, cu::kResourceSm) != CUDA_SUCCESS)
        return 0;
    return static_cast<int>(cu::get_fields<cu::SmFields>(sms).sm_count);
}

} // namespace gcx::shim

// Says where the real libcuda is; the text has to stay. For gcx alone.
extern "C" GCX_SHIM_EXPORT void gcx_counts_use(const char* real_path) {
    gcx::shim::path.store(real_path, std::memory_order_release);
}

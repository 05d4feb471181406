// The primary contexts of the devices that the plan names: with the first retain the partition is
// made, and with a reset it goes.
#include "shim/green.hpp"
#include "shim/partition.hpp"
#include "shim/real.hpp"

namespace gcx::shim {
namespace {

// The lock must be held. True if the driver may do now what it refused while the green context was
// there.
bool give_way(Partition& partition, CUresult refused) {
    if (refused != CUDA_ERROR_NOT_PERMITTED || partition.green.load() == nullptr ||
        program_has_green_contexts())
        return false;
    // In this thread it must not be current while it goes.
    CUcontext current = nullptr;
    if (GCX_REAL_ALONE(cuCtxGetCurrent)(&current) != CUDA_SUCCESS ||
        (current == partition.green.load() &&
         GCX_REAL_ALONE(cuCtxSetCurrent)(partition.primary.load()) != CUDA_SUCCESS))
        return false;
    unmake(partition);
    return true;
}

template <class Reset>
CUresult reset(CUdevice device, Reset& real_reset) {
    Partition* partition = nullptr;
    CUresult result = find_partition(device, &partition);
    if (result != CUDA_SUCCESS || partition == nullptr)
        return result == CUDA_SUCCESS ? real_reset(device) : result;
    const std::lock_guard lock(partition->making);
    result = real_reset(device);
    if (give_way(*partition, result))
        result = real_reset(device);
    // Before 13.0 the driver resets all the same, and the green context is gone.
    else if (result == CUDA_SUCCESS)
        unmake(*partition);
    return result;
}

// The partition holds the primary context too, and the program must not give up that hold.
template <class Release>
CUresult release(CUdevice device, Release& real_release) {
    Partition* partition = nullptr;
    CUresult result = find_partition(device, &partition);
    if (result != CUDA_SUCCESS)
        return result;
    if (partition == nullptr || partition->green.load() == nullptr)
        return real_release(device);
    uint32_t held = partition->retains.load();
    do {
        if (held == 0)
            return CUDA_ERROR_INVALID_CONTEXT;
    } while (!partition->retains.compare_exchange_weak(held, held - 1));
    result = real_release(device);
    if (result != CUDA_SUCCESS)
        partition->retains++;
    return result;
}

} // namespace

GCX_SHIM_API(cuDevicePrimaryCtxRetain, CUcontext* out, CUdevice device) {
    CUcontext primary = nullptr;
    CUresult result =
        GCX_REAL(cuDevicePrimaryCtxRetain)(out != nullptr ? &primary : nullptr, device);
    if (result != CUDA_SUCCESS)
        return result;
    Partition* partition = nullptr;
    result = find_partition(device, &partition);
    if (result == CUDA_SUCCESS && partition != nullptr)
        result = make(*partition);
    if (result != CUDA_SUCCESS) {
        GCX_REAL_ALONE(cuDevicePrimaryCtxRelease_v2)(device);
        return result;
    }
    if (partition != nullptr)
        partition->retains++;
    *out = primary;
    return CUDA_SUCCESS;
}

GCX_SHIM_API(cuDevicePrimaryCtxRelease, CUdevice device) {
    return release(device, GCX_REAL(cuDevicePrimaryCtxRelease));
}

GCX_SHIM_API(cuDevicePrimaryCtxRelease_v2, CUdevice device) {
    return release(device, GCX_REAL(cuDevicePrimaryCtxRelease_v2));
}

GCX_SHIM_API(cuDevicePrimaryCtxReset, CUdevice device) {
    return reset(device, GCX_REAL(cuDevicePrimaryCtxReset));
}

GCX_SHIM_API(cuDevicePrimaryCtxReset_v2, CUdevice device) {
    return reset(device, GCX_REAL(cuDevicePrimaryCtxReset_v2));
}

} // namespace gcx::shim

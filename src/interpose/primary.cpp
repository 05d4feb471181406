// The primary contexts of the devices that the plan names: with the first retain the partition is
// made, and with a reset it goes.
#include "interpose/green.hpp"
#include "interpose/partition.hpp"
#include "interpose/real_driver.hpp"
#include "interpose/thread_streams.hpp"

namespace gcx::shim {
namespace {

// Whether the driver refused since the partition's green context is there, or one of before that it
// didn't let go.
bool is_in_the_way(const Partition& partition, CUdevice device, CUresult refused) {
    return refused == CUDA_ERROR_NOT_PERMITTED && !program_has_green_contexts(device) &&
           (partition.green.load() != nullptr || partition.former_count.load() != 0);
}

// The lock must be held.
CUresult give_way(Partition& partition) {
    // In this thread it must not be current while it goes.
    CUcontext current = nullptr;
    CUresult result = GCX_REAL_ALONE(cuCtxGetCurrent)(&current);
    if (result == CUDA_SUCCESS && current != nullptr && current == partition.green.load())
        result = GCX_REAL_ALONE(cuCtxSetCurrent)(partition.primary.load());
    if (result == CUDA_SUCCESS) {
        destroy_thread_streams(partition);
        result = unmake(partition);
    }
    if (result != CUDA_SUCCESS)
        return result;
    forget(partition);
    return static_cast<CUresult>(gcx_cache_trim(0, nullptr));
}

template <class Reset>
CUresult reset(CUdevice device, Reset& real_reset) {
    Partition* partition = nullptr;
    CUresult result = find_partition(device, &partition);
    if (result != CUDA_SUCCESS || partition == nullptr)
        return result == CUDA_SUCCESS ? real_reset(device) : result;
    if (result = ask_usable(); result != CUDA_SUCCESS)
        return result;
    const std::lock_guard lock(partition->making);
    result = real_reset(device);
    if (is_in_the_way(*partition, device, result)) {
        result = give_way(*partition);
        return result == CUDA_SUCCESS ? real_reset(device) : result;
    }
    // Before 13.0 the driver resets all the same, and the green context is gone.
    if (result == CUDA_SUCCESS) {
        unmake(*partition);
        forget(*partition);
        forget_green_contexts(device);
    }
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
    if (out == nullptr)
        return GCX_REAL(cuDevicePrimaryCtxRetain)(out, device);
    CUcontext primary = nullptr;
    CUresult result = GCX_REAL(cuDevicePrimaryCtxRetain)(&primary, device);
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

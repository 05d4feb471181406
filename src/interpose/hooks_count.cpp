#include "interpose/counts.hpp"

#include "interpose/real_driver.hpp"

namespace gcx::shim {
namespace {

// The grid that fills the SMs which the program is told of; as it was where nothing is told.
CUresult fit_grid(int* grid, const int* block, CUfunction function, CUoccupancyB2DSize shared_of,
                  std::size_t shared) {
    CUdevice device = -1;
    int sms = 0;
    int blocks = 0;
    CUresult result = GCX_REAL_ALONE(cuCtxGetDevice)(&device);
    if (result == CUDA_SUCCESS)
        result = find_told_count(device, Asker::kOther, &sms);
    if (result != CUDA_SUCCESS || sms == 0)
        return result;
    result = GCX_REAL_ALONE(cuOccupancyMaxActiveBlocksPerMultiprocessor)(
        &blocks, function, *block, shared_of != nullptr ? shared_of(*block) : shared);
    if (result == CUDA_SUCCESS)
        *grid = blocks * sms;
    return result;
}

} // namespace

int current_count(CUdevice device) {
    CUcontext current = nullptr;
    CUdevice its_device = -1;
    CUdevResource sms{};
    if (GCX_REAL_ALONE(cuCtxGetCurrent)(&current) != CUDA_SUCCESS || current == nullptr ||
        GCX_REAL_ALONE(cuCtxGetDevice)(&its_device) != CUDA_SUCCESS || its_device != device ||
        GCX_REAL_ALONE(cuCtxGetDevResource)(current, &sms, cu::kResourceSm) != CUDA_SUCCESS)
        return 0;
    return static_cast<int>(cu::get_fields<cu::SmFields>(sms).sm_count);
}

GCX_SHIM_API(cuDeviceGetAttribute, int* out, CUdevice_attribute attribute, CUdevice device) {
    CUresult result = GCX_REAL(cuDeviceGetAttribute)(out, attribute, device);
    if (result != CUDA_SUCCESS || attribute != CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
        return result;
    int sms = 0;
    result = find_told_count(device, asker_at(__builtin_return_address(0)), &sms);
    if (result == CUDA_SUCCESS && sms != 0)
        *out = sms;
    return result;
}

GCX_SHIM_API(cuOccupancyMaxPotentialBlockSize, int* grid, int* block, CUfunction function,
             CUoccupancyB2DSize shared_of, std::size_t shared, int limit) {
    const CUresult result =
        GCX_REAL(cuOccupancyMaxPotentialBlockSize)(grid, block, function, shared_of, shared, limit);
    return result == CUDA_SUCCESS ? fit_grid(grid, block, function, shared_of, shared) : result;
}

GCX_SHIM_API(cuOccupancyMaxPotentialBlockSizeWithFlags, int* grid, int* block, CUfunction function,
             CUoccupancyB2DSize shared_of, std::size_t shared, int limit, unsigned flags) {
    const CUresult result = GCX_REAL(cuOccupancyMaxPotentialBlockSizeWithFlags)(
        grid, block, function, shared_of, shared, limit, flags);
    return result == CUDA_SUCCESS ? fit_grid(grid, block, function, shared_of, shared) : result;
}

} // namespace gcx::shim

// Hooks for green contexts of the program itself. They divide the partition's SMs, as they would
// divide the device's without gcx.
#include "interpose/partition.hpp"
#include "interpose/real_driver.hpp"

#include <algorithm>
#include <map>
#include <mutex>

namespace gcx::interpose {
namespace {

// The green contexts that the program created, and their devices. Never destroyed, since threads
// can call the driver while the process ends.
constinit std::mutex greens_mutex;
std::map<CUgreenCtx, CUdevice>& program_greens() {
    static auto& greens = *new std::map<CUgreenCtx, CUdevice>;
    return greens;
}

// Finds the SMs of the partition. The program can split them like those of a device, since the
// driver splits a green context's resource.
CUresult get_resource(Partition& partition, CUdevResource* resource) {
    const CUresult result = create_green_context(partition);
    const CUcontext green = partition.green.load();
    return result == CUDA_SUCCESS && green != nullptr
               ? GCX_DRIVER(cuCtxGetDevResource)(green, resource, cu::kResourceSm)
               : result;
}

template <bool kNullIsPerThread, class GetContext>
CUresult get_context_of_stream(CUstream stream, CUcontext* out, GetContext& real_get) {
    CUresult result = replace_per_thread<kNullIsPerThread>(&stream);
    if (result == CUDA_SUCCESS)
        result = real_get(stream, out);
    if (result == CUDA_SUCCESS)
        *out = to_program(*out);
    return result;
}

// Returns whether a stream belongs to a partition's green context, which the program sees as the
// primary context.
bool is_in_partition(CUstream stream) {
    CUcontext context = nullptr;
    return GCX_DRIVER(cuStreamGetCtx)(stream, &context) == CUDA_SUCCESS &&
           to_program(context) != context;
}

template <bool kNullIsPerThread, class GetContexts>
CUresult get_contexts_of_stream(CUstream stream, CUcontext* out, CUgreenCtx* green,
                                GetContexts& real_get) {
    CUresult result = replace_per_thread<kNullIsPerThread>(&stream);
    if (result == CUDA_SUCCESS)
        result = real_get(stream, out, green);
    if (result == CUDA_SUCCESS && green != nullptr && is_in_partition(stream))
        *green = nullptr;
    return result;
}

} // namespace

bool program_has_green_contexts() {
    const std::lock_guard lock(greens_mutex);
    return !program_greens().empty();
}

bool program_has_green_contexts(CUdevice device) {
    const std::lock_guard lock(greens_mutex);
    return std::any_of(program_greens().begin(), program_greens().end(),
                       [&](const auto& green) { return green.second == device; });
}

void forget_program_green_contexts(CUdevice device) {
    const std::lock_guard lock(greens_mutex);
    std::erase_if(program_greens(), [&](const auto& green) { return green.second == device; });
}

GCX_HOOK(cuDeviceGetDevResource, CUdevice device, CUdevResource* resource, CUdevResourceType type) {
    CUresult result = GCX_REAL(cuDeviceGetDevResource)(device, resource, type);
    Partition* partition = nullptr;
    if (result == CUDA_SUCCESS && type == cu::kResourceSm)
        result = find_partition(device, &partition);
    return result == CUDA_SUCCESS && partition != nullptr ? get_resource(*partition, resource)
                                                          : result;
}

GCX_HOOK(cuCtxGetDevResource, CUcontext context, CUdevResource* resource, CUdevResourceType type) {
    if (const CUresult entered = enter_partition(); entered != CUDA_SUCCESS)
        return entered;
    return GCX_REAL(cuCtxGetDevResource)(to_driver(context), resource, type);
}

GCX_HOOK(cuGreenCtxCreate, CUgreenCtx* out, CUdevResourceDesc descriptor, CUdevice device,
         unsigned flags) {
    Partition* partition = nullptr;
    CUresult result = descriptor == nullptr ? find_partition(device, &partition) : CUDA_SUCCESS;
    if (result == CUDA_SUCCESS && partition != nullptr) {
        // A null descriptor means the whole device, which is the partition here.
        CUdevResource all{};
        result = get_resource(*partition, &all);
        if (result == CUDA_SUCCESS)
            result = GCX_DRIVER(cuDevResourceGenerateDesc)(&descriptor, &all, 1);
    }
    if (result == CUDA_SUCCESS)
        result = GCX_REAL(cuGreenCtxCreate)(out, descriptor, device, flags);
    if (result == CUDA_SUCCESS) {
        const std::lock_guard lock(greens_mutex);
        program_greens()[*out] = device;
    }
    return result;
}

GCX_HOOK(cuGreenCtxDestroy, CUgreenCtx context) {
    const CUresult result = GCX_REAL(cuGreenCtxDestroy)(context);
    if (result == CUDA_SUCCESS) {
        const std::lock_guard lock(greens_mutex);
        program_greens().erase(context);
    }
    return result;
}

GCX_HOOK(cuCtxFromGreenCtx, CUcontext* out, CUgreenCtx green) {
    const CUresult result = GCX_REAL(cuCtxFromGreenCtx)(out, green);
    if (result == CUDA_SUCCESS)
        forget_former_context(*out);
    return result;
}

GCX_HOOK(cuStreamGetCtx, CUstream stream, CUcontext* out) {
    return get_context_of_stream<false>(stream, out, GCX_REAL(cuStreamGetCtx));
}

GCX_HOOK(cuStreamGetCtx_ptsz, CUstream stream, CUcontext* out) {
    return get_context_of_stream<true>(stream, out, GCX_REAL(cuStreamGetCtx_ptsz));
}

GCX_HOOK(cuStreamGetCtx_v2, CUstream stream, CUcontext* out, CUgreenCtx* green) {
    return get_contexts_of_stream<false>(stream, out, green, GCX_REAL(cuStreamGetCtx_v2));
}

GCX_HOOK(cuStreamGetCtx_v2_ptsz, CUstream stream, CUcontext* out, CUgreenCtx* green) {
    return get_contexts_of_stream<true>(stream, out, green, GCX_REAL(cuStreamGetCtx_v2_ptsz));
}

GCX_HOOK(cuStreamGetGreenCtx, CUstream stream, CUgreenCtx* green) {
    CUresult result = replace_per_thread<false>(&stream);
    if (result == CUDA_SUCCESS)
        result = GCX_REAL(cuStreamGetGreenCtx)(stream, green);
    if (result == CUDA_SUCCESS && is_in_partition(stream))
        *green = nullptr;
    return result;
}

} // namespace gcx::interpose

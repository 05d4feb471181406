#include "interpose/green.hpp"

#include "interpose/partition.hpp"
#include "interpose/real_driver.hpp"
#include "interpose/thread_streams.hpp"

#include <algorithm>
#include <map>
#include <mutex>

namespace gcx::shim {
namespace {

// The green contexts that the program made, and their devices. Never destroyed: threads may call
// the driver while the process ends.
constinit std::mutex greens_mutex;
std::map<CUgreenCtx, CUdevice>& program_greens() {
    static auto& greens = *new std::map<CUgreenCtx, CUdevice>;
    return greens;
}

// The partition's SMs, which a program can split as it would a device's: the driver splits what a
// green context has.
CUresult get_resource(Partition& partition, CUdevResource* resource) {
    const CUresult result = make(partition);
    const CUcontext green = partition.green.load();
    return result == CUDA_SUCCESS && green != nullptr
               ? GCX_REAL_ALONE(cuCtxGetDevResource)(green, resource, cu::kResourceSm)
               : result;
}

template <bool kNullIsOwn, class GetContext>
CUresult get_context_of_stream(CUstream stream, CUcontext* out, GetContext& real_get) {
    CUresult result = replace_own<kNullIsOwn>(&stream);
    if (result == CUDA_SUCCESS)
        result = real_get(stream, out);
    if (result == CUDA_SUCCESS)
        *out = outer(*out);
    return result;
}

// Whether a stream belongs to a partition, and so, for the program, to the primary context.
bool is_of_partition(CUstream stream) {
    CUcontext context = nullptr;
    return GCX_REAL_ALONE(cuStreamGetCtx)(stream, &context) == CUDA_SUCCESS &&
           outer(context) != context;
}

template <bool kNullIsOwn, class GetContexts>
CUresult get_contexts_of_stream(CUstream stream, CUcontext* out, CUgreenCtx* green,
                                GetContexts& real_get) {
    CUresult result = replace_own<kNullIsOwn>(&stream);
    if (result == CUDA_SUCCESS)
        result = real_get(stream, out, green);
    if (result == CUDA_SUCCESS && green != nullptr && is_of_partition(stream))
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

void forget_green_contexts(CUdevice device) {
    const std::lock_guard lock(greens_mutex);
    std::erase_if(program_greens(), [&](const auto& green) { return green.second == device; });
}

GCX_SHIM_API(cuDeviceGetDevResource, CUdevice device, CUdevResource* resource,
             CUdevResourceType type) {
    CUresult result = GCX_REAL(cuDeviceGetDevResource)(device, resource, type);
    Partition* partition = nullptr;
    if (result == CUDA_SUCCESS && type == cu::kResourceSm)
        result = find_partition(device, &partition);
    return result == CUDA_SUCCESS && partition != nullptr ? get_resource(*partition, resource)
                                                          : result;
}

GCX_SHIM_API(cuCtxGetDevResource, CUcontext context, CUdevResource* resource,
             CUdevResourceType type) {
    if (const CUresult entered = enter(); entered != CUDA_SUCCESS)
        return entered;
    return GCX_REAL(cuCtxGetDevResource)(inner(context), resource, type);
}

GCX_SHIM_API(cuGreenCtxCreate, CUgreenCtx* out, CUdevResourceDesc descriptor, CUdevice device,
             unsigned flags) {
    Partition* partition = nullptr;
    CUresult result = descriptor == nullptr ? find_partition(device, &partition) : CUDA_SUCCESS;
    if (result == CUDA_SUCCESS && partition != nullptr) {
        // The driver takes none for the whole device, which is the partition here.
        CUdevResource all{};
        result = get_resource(*partition, &all);
        if (result == CUDA_SUCCESS)
            result = GCX_REAL_ALONE(cuDevResourceGenerateDesc)(&descriptor, &all, 1);
    }
    if (result == CUDA_SUCCESS)
        result = GCX_REAL(cuGreenCtxCreate)(out, descriptor, device, flags);
    if (result == CUDA_SUCCESS) {
        const std::lock_guard lock(greens_mutex);
        program_greens()[*out] = device;
    }
    return result;
}

GCX_SHIM_API(cuGreenCtxDestroy, CUgreenCtx context) {
    const CUresult result = GCX_REAL(cuGreenCtxDestroy)(context);
    if (result == CUDA_SUCCESS) {
        const std::lock_guard lock(greens_mutex);
        program_greens().erase(context);
    }
    return result;
}

GCX_SHIM_API(cuCtxFromGreenCtx, CUcontext* out, CUgreenCtx green) {
    const CUresult result = GCX_REAL(cuCtxFromGreenCtx)(out, green);
    if (result == CUDA_SUCCESS)
        forget_former(*out);
    return result;
}

GCX_SHIM_API(cuStreamGetCtx, CUstream stream, CUcontext* out) {
    return get_context_of_stream<false>(stream, out, GCX_REAL(cuStreamGetCtx));
}

GCX_SHIM_API(cuStreamGetCtx_ptsz, CUstream stream, CUcontext* out) {
    return get_context_of_stream<true>(stream, out, GCX_REAL(cuStreamGetCtx_ptsz));
}

GCX_SHIM_API(cuStreamGetCtx_v2, CUstream stream, CUcontext* out, CUgreenCtx* green) {
    return get_contexts_of_stream<false>(stream, out, green, GCX_REAL(cuStreamGetCtx_v2));
}

GCX_SHIM_API(cuStreamGetCtx_v2_ptsz, CUstream stream, CUcontext* out, CUgreenCtx* green) {
    return get_contexts_of_stream<true>(stream, out, green, GCX_REAL(cuStreamGetCtx_v2_ptsz));
}

GCX_SHIM_API(cuStreamGetGreenCtx, CUstream stream, CUgreenCtx* green) {
    CUresult result = replace_own<false>(&stream);
    if (result == CUDA_SUCCESS)
        result = GCX_REAL(cuStreamGetGreenCtx)(stream, green);
    if (result == CUDA_SUCCESS && is_of_partition(stream))
        *green = nullptr;
    return result;
}

} // namespace gcx::shim

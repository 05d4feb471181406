// What is current in a thread: a partition's green context wherever a program sees the primary one.
#include "interpose/green.hpp"
#include "interpose/partition.hpp"
#include "interpose/real_driver.hpp"

namespace gcx::shim {
namespace {

// Makes a context that the program names current by the driver's set or push.
template <class Take>
CUresult take(CUcontext context, Take& real_take) {
    Partition* partition = nullptr;
    CUresult result = find_by_primary(context, &partition);
    if (result == CUDA_SUCCESS && partition != nullptr)
        result = make(*partition);
    return result == CUDA_SUCCESS ? real_take(inner(context)) : result;
}

template <class Pop>
CUresult pop(CUcontext* out, Pop& real_pop) {
    CUcontext popped = nullptr;
    const CUresult result = real_pop(&popped);
    if (result == CUDA_SUCCESS && out != nullptr)
        *out = outer(popped);
    return result;
}

// Contexts of a program's own have all SMs.
CUresult allow_own(CUdevice device) {
    Partition* partition = nullptr;
    const CUresult result = find_partition(device, &partition);
    if (result != CUDA_SUCCESS || partition == nullptr)
        return result;
    if (plan()->own_contexts) {
        say("device %d: the program makes a context of its own, by cuCtxCreate or the like, which "
            "has all SMs of the device, not the partition's %u",
            device, partition->asked.sm_count);
        return CUDA_SUCCESS;
    }
    say("device %d: cuCtxCreate is refused with CUDA_ERROR_NOT_SUPPORTED: a context of the "
        "program's own would have all SMs of the device. Let it use the primary context "
        "(cuDevicePrimaryCtxRetain, cudaSetDevice), or allow it with gcx exec --contexts device",
        device);
    return CUDA_ERROR_NOT_SUPPORTED;
}

template <class Create, class... Arguments>
CUresult create(CUdevice device, Create& real_create, CUcontext* out, Arguments... arguments) {
    CUresult result = allow_own(device);
    if (result == CUDA_SUCCESS)
        result = real_create(out, arguments..., device);
    if (result == CUDA_SUCCESS && out != nullptr)
        forget_former(*out);
    return result;
}

} // namespace

GCX_SHIM_API(cuCtxSetCurrent, CUcontext context) {
    return take(context, GCX_REAL(cuCtxSetCurrent));
}

GCX_SHIM_API(cuCtxPushCurrent, CUcontext context) {
    return take(context, GCX_REAL(cuCtxPushCurrent));
}

GCX_SHIM_API(cuCtxPushCurrent_v2, CUcontext context) {
    return take(context, GCX_REAL(cuCtxPushCurrent_v2));
}

GCX_SHIM_API(cuCtxPopCurrent, CUcontext* out) {
    return pop(out, GCX_REAL(cuCtxPopCurrent));
}

GCX_SHIM_API(cuCtxPopCurrent_v2, CUcontext* out) {
    return pop(out, GCX_REAL(cuCtxPopCurrent_v2));
}

GCX_SHIM_API(cuCtxGetCurrent, CUcontext* out) {
    const CUresult result = GCX_REAL(cuCtxGetCurrent)(out);
    if (result == CUDA_SUCCESS)
        *out = outer(*out);
    return result;
}

// Without a context it is the current one's, for which the program sees the primary context's.
GCX_SHIM_API(cuCtxGetId, CUcontext context, unsigned long long* id) {
    CUcontext current = nullptr;
    if (context == nullptr && GCX_REAL_ALONE(cuCtxGetCurrent)(&current) == CUDA_SUCCESS &&
        outer(current) != current)
        context = outer(current);
    return GCX_REAL(cuCtxGetId)(context, id);
}

// In the primary context's place this waits for the partition; outside it would for the program's
// own green contexts as well.
GCX_SHIM_API(cuCtxSynchronize) {
    if (const CUresult entered = enter(); entered != CUDA_SUCCESS)
        return entered;
    CUcontext current = nullptr;
    const CUresult result = GCX_REAL(cuCtxSynchronize)();
    if (result != CUDA_SUCCESS || !program_has_green_contexts() ||
        GCX_REAL_ALONE(cuCtxGetCurrent)(&current) != CUDA_SUCCESS || outer(current) == current)
        return result;
    const CUresult pushed = GCX_REAL_ALONE(cuCtxPushCurrent_v2)(outer(current));
    if (pushed != CUDA_SUCCESS)
        return pushed;
    const CUresult all = GCX_REAL(cuCtxSynchronize)();
    GCX_REAL_ALONE(cuCtxPopCurrent_v2)(&current);
    return all;
}

GCX_SHIM_API(cuCtxSynchronize_v2, CUcontext context) {
    if (context == nullptr)
        return shim_cuCtxSynchronize();
    const CUresult result = GCX_REAL(cuCtxSynchronize_v2)(inner(context));
    return result != CUDA_SUCCESS || inner(context) == context
               ? result
               : GCX_REAL(cuCtxSynchronize_v2)(context);
}

GCX_SHIM_API(cuCtxCreate, CUcontext* out, unsigned flags, CUdevice device) {
    return create(device, GCX_REAL(cuCtxCreate), out, flags);
}

GCX_SHIM_API(cuCtxCreate_v2, CUcontext* out, unsigned flags, CUdevice device) {
    return create(device, GCX_REAL(cuCtxCreate_v2), out, flags);
}

GCX_SHIM_API(cuCtxCreate_v3, CUcontext* out, CUexecAffinityParam* affinity, int count,
             unsigned flags, CUdevice device) {
    return create(device, GCX_REAL(cuCtxCreate_v3), out, affinity, count, flags);
}

GCX_SHIM_API(cuCtxCreate_v4, CUcontext* out, void* parameters, unsigned flags, CUdevice device) {
    return create(device, GCX_REAL(cuCtxCreate_v4), out, parameters, flags);
}

// Of cudaGL.h and cudaVDPAU.h.

GCX_SHIM_API(cuGLCtxCreate, CUcontext* out, unsigned flags, CUdevice device) {
    return create(device, GCX_REAL(cuGLCtxCreate), out, flags);
}

GCX_SHIM_API(cuGLCtxCreate_v2, CUcontext* out, unsigned flags, CUdevice device) {
    return create(device, GCX_REAL(cuGLCtxCreate_v2), out, flags);
}

GCX_SHIM_API(cuVDPAUCtxCreate, CUcontext* out, unsigned flags, CUdevice device,
             uint32_t vdpau_device, void* get_address) {
    const auto real_create = [&](CUcontext* made, unsigned its_flags, CUdevice its_device) {
        return GCX_REAL(cuVDPAUCtxCreate)(made, its_flags, its_device, vdpau_device, get_address);
    };
    return create(device, real_create, out, flags);
}

GCX_SHIM_API(cuVDPAUCtxCreate_v2, CUcontext* out, unsigned flags, CUdevice device,
             uint32_t vdpau_device, void* get_address) {
    const auto real_create = [&](CUcontext* made, unsigned its_flags, CUdevice its_device) {
        return GCX_REAL(cuVDPAUCtxCreate_v2)(made, its_flags, its_device, vdpau_device,
                                             get_address);
    };
    return create(device, real_create, out, flags);
}

} // namespace gcx::shim

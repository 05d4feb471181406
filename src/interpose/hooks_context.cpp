// Hooks for contexts. Primary contexts: the first retain creates the partition's green context, a
// reset destroys it. Current contexts: the green context is current where the program sees the
// primary one. Created contexts: refused by default, since they would use all SMs.
#include "interpose/partition.hpp"
#include "interpose/real_driver.hpp"

namespace gcx::interpose {
namespace {

// Returns whether the driver refused a reset because the partition has a green context, or had one
// that the driver did not release.
bool blocks_reset(const Partition& partition, CUdevice device, CUresult refused) {
    return refused == CUDA_ERROR_NOT_PERMITTED && !program_has_green_contexts(device) &&
           (partition.green.load() != nullptr || partition.former_count.load() != 0);
}

// Destroys the partition's green context before a reset. Requires the lock.
CUresult prepare_reset(Partition& partition) {
    // The context must not be current in this thread when it is destroyed.
    CUcontext current = nullptr;
    CUresult result = GCX_DRIVER(cuCtxGetCurrent)(&current);
    if (result == CUDA_SUCCESS && current != nullptr && current == partition.green.load())
        result = GCX_DRIVER(cuCtxSetCurrent)(partition.primary.load());
    if (result == CUDA_SUCCESS) {
        destroy_thread_streams(partition);
        result = destroy_green_context(partition);
    }
    if (result != CUDA_SUCCESS)
        return result;
    forget_green_context(partition);
    return static_cast<CUresult>(gcx_cache_trim(0, nullptr));
}

template <class Reset>
CUresult reset(CUdevice device, Reset& real_reset) {
    Partition* partition = nullptr;
    CUresult result = find_partition(device, &partition);
    if (result != CUDA_SUCCESS || partition == nullptr)
        return result == CUDA_SUCCESS ? real_reset(device) : result;
    if (result = check_driver_usable(); result != CUDA_SUCCESS)
        return result;
    const std::lock_guard lock(partition->mutex);
    result = real_reset(device);
    if (blocks_reset(*partition, device, result)) {
        result = prepare_reset(*partition);
        return result == CUDA_SUCCESS ? real_reset(device) : result;
    }
    // Drivers before 13.0 reset the device despite green contexts, and destroy those.
    if (result == CUDA_SUCCESS) {
        destroy_green_context(*partition);
        forget_green_context(*partition);
        forget_program_green_contexts(device);
    }
    return result;
}

// Refuses more releases than the program has retained, since gcx retains the primary context too.
template <class Release>
CUresult release(CUdevice device, Release& real_release) {
    Partition* partition = nullptr;
    CUresult result = find_partition(device, &partition);
    if (result != CUDA_SUCCESS)
        return result;
    if (partition == nullptr || partition->green.load() == nullptr)
        return real_release(device);
    uint32_t retained = partition->retains.load();
    do {
        if (retained == 0)
            return CUDA_ERROR_INVALID_CONTEXT;
    } while (!partition->retains.compare_exchange_weak(retained, retained - 1));
    result = real_release(device);
    if (result != CUDA_SUCCESS)
        partition->retains++;
    return result;
}

// Makes a context current by the driver's cuCtxSetCurrent or cuCtxPushCurrent.
template <class SetCurrent>
CUresult set_current(CUcontext context, SetCurrent& real_set) {
    Partition* partition = nullptr;
    CUresult result = find_partition_by_primary(context, &partition);
    if (result == CUDA_SUCCESS && partition != nullptr)
        result = create_green_context(*partition);
    return result == CUDA_SUCCESS ? real_set(to_driver(context)) : result;
}

template <class Pop>
CUresult pop_current(CUcontext* out, Pop& real_pop) {
    CUcontext popped = nullptr;
    const CUresult result = real_pop(&popped);
    if (result == CUDA_SUCCESS && out != nullptr)
        *out = to_program(popped);
    return result;
}

// Decides whether the program may create a context, which would use all SMs.
CUresult check_create_allowed(CUdevice device) {
    Partition* partition = nullptr;
    const CUresult result = find_partition(device, &partition);
    if (result != CUDA_SUCCESS || partition == nullptr)
        return result;
    if (plan()->own_contexts) {
        log_line(
            "device %d: the program creates a context by cuCtxCreate or a similar function; it "
            "has all SMs of the device, not the partition's %u",
            device, partition->planned.sm_count);
        return CUDA_SUCCESS;
    }
    log_line(
        "device %d: cuCtxCreate is refused with CUDA_ERROR_NOT_SUPPORTED: the new context would "
        "have all SMs of the device; use the primary context (cuDevicePrimaryCtxRetain, "
        "cudaSetDevice), or allow it with gcx exec --contexts device",
        device);
    return CUDA_ERROR_NOT_SUPPORTED;
}

template <class Create, class... Arguments>
CUresult create(CUdevice device, Create& real_create, CUcontext* out, Arguments... arguments) {
    CUresult result = check_create_allowed(device);
    if (result == CUDA_SUCCESS)
        result = real_create(out, arguments..., device);
    if (result == CUDA_SUCCESS && out != nullptr)
        forget_former_context(*out);
    return result;
}

} // namespace

GCX_HOOK(cuDevicePrimaryCtxRetain, CUcontext* out, CUdevice device) {
    if (out == nullptr)
        return GCX_REAL(cuDevicePrimaryCtxRetain)(out, device);
    CUcontext primary = nullptr;
    CUresult result = GCX_REAL(cuDevicePrimaryCtxRetain)(&primary, device);
    if (result != CUDA_SUCCESS)
        return result;
    Partition* partition = nullptr;
    result = find_partition(device, &partition);
    if (result == CUDA_SUCCESS && partition != nullptr)
        result = create_green_context(*partition);
    if (result != CUDA_SUCCESS) {
        GCX_DRIVER(cuDevicePrimaryCtxRelease_v2)(device);
        return result;
    }
    if (partition != nullptr)
        partition->retains++;
    *out = primary;
    return CUDA_SUCCESS;
}

GCX_HOOK(cuDevicePrimaryCtxRelease, CUdevice device) {
    return release(device, GCX_REAL(cuDevicePrimaryCtxRelease));
}

GCX_HOOK(cuDevicePrimaryCtxRelease_v2, CUdevice device) {
    return release(device, GCX_REAL(cuDevicePrimaryCtxRelease_v2));
}

GCX_HOOK(cuDevicePrimaryCtxReset, CUdevice device) {
    return reset(device, GCX_REAL(cuDevicePrimaryCtxReset));
}

GCX_HOOK(cuDevicePrimaryCtxReset_v2, CUdevice device) {
    return reset(device, GCX_REAL(cuDevicePrimaryCtxReset_v2));
}

GCX_HOOK(cuCtxSetCurrent, CUcontext context) {
    return set_current(context, GCX_REAL(cuCtxSetCurrent));
}

GCX_HOOK(cuCtxPushCurrent, CUcontext context) {
    return set_current(context, GCX_REAL(cuCtxPushCurrent));
}

GCX_HOOK(cuCtxPushCurrent_v2, CUcontext context) {
    return set_current(context, GCX_REAL(cuCtxPushCurrent_v2));
}

GCX_HOOK(cuCtxPopCurrent, CUcontext* out) {
    return pop_current(out, GCX_REAL(cuCtxPopCurrent));
}

GCX_HOOK(cuCtxPopCurrent_v2, CUcontext* out) {
    return pop_current(out, GCX_REAL(cuCtxPopCurrent_v2));
}

GCX_HOOK(cuCtxGetCurrent, CUcontext* out) {
    const CUresult result = GCX_REAL(cuCtxGetCurrent)(out);
    if (result == CUDA_SUCCESS)
        *out = to_program(*out);
    return result;
}

// A null context means the current one. The program gets the primary context's id for a green one.
GCX_HOOK(cuCtxGetId, CUcontext context, unsigned long long* id) {
    CUcontext current = nullptr;
    if (context == nullptr && GCX_DRIVER(cuCtxGetCurrent)(&current) == CUDA_SUCCESS &&
        to_program(current) != current)
        context = to_program(current);
    return GCX_REAL(cuCtxGetId)(context, id);
}

// Waits for the partition's green context. Without gcx the primary context would be current, and
// the call would wait for the program's green contexts too, so this waits for that one as well.
GCX_HOOK(cuCtxSynchronize) {
    if (const CUresult entered = enter_partition(); entered != CUDA_SUCCESS)
        return entered;
    CUcontext current = nullptr;
    const CUresult result = GCX_REAL(cuCtxSynchronize)();
    if (result != CUDA_SUCCESS || !program_has_green_contexts() ||
        GCX_DRIVER(cuCtxGetCurrent)(&current) != CUDA_SUCCESS || to_program(current) == current)
        return result;
    const CUresult pushed = GCX_DRIVER(cuCtxPushCurrent_v2)(to_program(current));
    if (pushed != CUDA_SUCCESS)
        return pushed;
    const CUresult all = GCX_REAL(cuCtxSynchronize)();
    GCX_DRIVER(cuCtxPopCurrent_v2)(&current);
    return all;
}

GCX_HOOK(cuCtxSynchronize_v2, CUcontext context) {
    if (context == nullptr)
        return hook_cuCtxSynchronize();
    const CUresult result = GCX_REAL(cuCtxSynchronize_v2)(to_driver(context));
    return result != CUDA_SUCCESS || to_driver(context) == context
               ? result
               : GCX_REAL(cuCtxSynchronize_v2)(context);
}

GCX_HOOK(cuCtxCreate, CUcontext* out, unsigned flags, CUdevice device) {
    return create(device, GCX_REAL(cuCtxCreate), out, flags);
}

GCX_HOOK(cuCtxCreate_v2, CUcontext* out, unsigned flags, CUdevice device) {
    return create(device, GCX_REAL(cuCtxCreate_v2), out, flags);
}

GCX_HOOK(cuCtxCreate_v3, CUcontext* out, CUexecAffinityParam* affinity, int count, unsigned flags,
         CUdevice device) {
    return create(device, GCX_REAL(cuCtxCreate_v3), out, affinity, count, flags);
}

GCX_HOOK(cuCtxCreate_v4, CUcontext* out, void* parameters, unsigned flags, CUdevice device) {
    return create(device, GCX_REAL(cuCtxCreate_v4), out, parameters, flags);
}

// From cudaGL.h and cudaVDPAU.h.

GCX_HOOK(cuGLCtxCreate, CUcontext* out, unsigned flags, CUdevice device) {
    return create(device, GCX_REAL(cuGLCtxCreate), out, flags);
}

GCX_HOOK(cuGLCtxCreate_v2, CUcontext* out, unsigned flags, CUdevice device) {
    return create(device, GCX_REAL(cuGLCtxCreate_v2), out, flags);
}

GCX_HOOK(cuVDPAUCtxCreate, CUcontext* out, unsigned flags, CUdevice device, uint32_t vdpau_device,
         void* get_address) {
    const auto real_create = [&](CUcontext* created, unsigned with_flags, CUdevice on_device) {
        return GCX_REAL(cuVDPAUCtxCreate)(created, with_flags, on_device, vdpau_device,
                                          get_address);
    };
    return create(device, real_create, out, flags);
}

GCX_HOOK(cuVDPAUCtxCreate_v2, CUcontext* out, unsigned flags, CUdevice device,
         uint32_t vdpau_device, void* get_address) {
    const auto real_create = [&](CUcontext* created, unsigned with_flags, CUdevice on_device) {
        return GCX_REAL(cuVDPAUCtxCreate_v2)(created, with_flags, on_device, vdpau_device,
                                             get_address);
    };
    return create(device, real_create, out, flags);
}

} // namespace gcx::interpose

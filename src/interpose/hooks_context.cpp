// Hooks of all functions that take or return a context.
//
// - Primary contexts: the first retain creates the partition's green context, a reset destroys it.
// - Current contexts: the green context is current where the program sees the primary one.
// - Contexts of cuCtxCreate are further green contexts over the partition's SMs
//   (created_contexts.hpp).
// - Green contexts of the program are parts of the partition.
// - Graph nodes that name the primary context get the green one.
#include "interpose/created_contexts.hpp"
#include "interpose/partition.hpp"
#include "interpose/real_driver.hpp"
#include "interpose/thread_streams.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <map>
#include <mutex>

namespace gcx::interpose {
namespace {

// Returns whether the driver refused a reset because the partition has a green context, or had one
// that the driver did not release.
bool blocks_reset(const Partition& partition, CUdevice device, CUresult refused) {
    return refused == CUDA_ERROR_NOT_PERMITTED && !program_has_green_contexts(device) &&
           (partition.green.load() != nullptr || partition.former_count.load() != 0 ||
            has_cached_contexts(partition));
}

// Destroys the partition's green context before a reset. Requires the lock and a closed gate.
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
    if (result == CUDA_SUCCESS)
        result = destroy_cached_contexts(partition);
    if (result != CUDA_SUCCESS)
        return result;
    forget_green_context(partition);
    return static_cast<CUresult>(gcx_cache_trim(0, nullptr));
}

struct Resetting {
    explicit Resetting(Partition& of) : partition(of) { partition.resetting.store(true); }
    ~Resetting() { partition.resetting.store(false); }
    Resetting(const Resetting&) = delete;
    Resetting& operator=(const Resetting&) = delete;
    Partition& partition;
};

template <class Reset>
CUresult reset(CUdevice device, Reset& real_reset) {
    Partition* partition = nullptr;
    CUresult result = find_partition(device, &partition);
    if (result != CUDA_SUCCESS || partition == nullptr)
        return result == CUDA_SUCCESS ? real_reset(device) : result;
    if (result = check_driver_usable(); result != CUDA_SUCCESS)
        return result;
    const ClosedGate closed(partition->gate);
    const std::lock_guard lock(partition->mutex);
    if (has_created_contexts(*partition)) {
        log_line(
            "device %d: a reset is refused with CUDA_ERROR_NOT_PERMITTED: it would destroy the "
            "contexts that the program created by cuCtxCreate; destroy them first",
            device);
        return CUDA_ERROR_NOT_PERMITTED;
    }
    const Resetting resetting(*partition);
    result = real_reset(device);
    if (blocks_reset(*partition, device, result)) {
        result = prepare_reset(*partition);
        return result == CUDA_SUCCESS ? real_reset(device) : result;
    }
    // Drivers before 13.0 reset the device despite green contexts, and destroy those.
    if (result == CUDA_SUCCESS) {
        destroy_green_context(*partition);
        forget_green_context(*partition);
        destroy_cached_contexts(*partition);
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

// Calls with the context that the driver knows: the green context instead of the primary one, after
// it was created. A null context can mean the current one, whose partition is entered.
template <class Call>
CUresult with_driver_context(CUcontext context, const Call& call) {
    Partition* partition = nullptr;
    CreatedContext* const created = find_created(context);
    if (created != nullptr)
        return is_alive(*created) ? call(context) : CUDA_ERROR_CONTEXT_IS_DESTROYED;
    CUresult result =
        context == nullptr ? enter_partition() : find_partition_by_primary(context, &partition);
    if (result == CUDA_SUCCESS && partition != nullptr)
        result = create_green_context(*partition);
    return result == CUDA_SUCCESS ? call(to_driver(context)) : result;
}

// Makes a context current by the driver's cuCtxSetCurrent or cuCtxPushCurrent.
template <class SetCurrent>
CUresult set_current(CUcontext context, SetCurrent& real_set) {
    const auto set = [&](CUcontext known) { return real_set(known); };
    return context == nullptr ? set(context) : with_driver_context(context, set);
}

template <class Pop>
CUresult pop_current(CUcontext* out, Pop& real_pop) {
    CUcontext popped = nullptr;
    const CUresult result = real_pop(&popped);
    if (result == CUDA_SUCCESS && out != nullptr)
        *out = to_program(popped);
    return result;
}

// The parameters of cuCtxCreate_v4, which older headers lack.
struct CreateParameters {
    CUexecAffinityParam* affinity;
    int affinity_count;
    void* cig;
};

bool are_empty(const void* parameters) {
    CreateParameters given{};
    if (parameters != nullptr)
        std::memcpy(&given, parameters, sizeof given);
    return given.affinity_count == 0 && given.cig == nullptr;
}

// Creates a context in a partition. plain is false for contexts that no green context can replace,
// such as one for OpenGL.
template <class Create>
CUresult create(const char* function, bool plain, CUdevice device, CUcontext* out, unsigned flags,
                const Create& real_create) {
    Partition* partition = nullptr;
    CUresult result = find_partition(device, &partition);
    if (result == CUDA_SUCCESS && partition != nullptr && !plan()->own_contexts) {
        if (plain)
            return create_context(*partition, out, flags);
        log_line("device %d: %s is refused with CUDA_ERROR_NOT_SUPPORTED: the partition can't have "
                 "such a context; gcx exec --contexts device allows it, with all SMs of the device",
                 device, function);
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    if (result == CUDA_SUCCESS && partition != nullptr)
        log_line(
            "device %d: the program creates a context by %s; it has all SMs of the device, not "
            "the partition's %u",
            device, function, partition->planned.sm_count);
    if (result == CUDA_SUCCESS)
        result = real_create();
    if (result == CUDA_SUCCESS && out != nullptr)
        forget_former_context(*out);
    return result;
}

// Destroys a context of cuCtxCreate, or lets the driver destroy another one.
template <class Destroy>
CUresult destroy(CUcontext context, Destroy& real_destroy) {
    CreatedContext* const created = find_created(context);
    return created != nullptr ? destroy_context(*created) : real_destroy(context);
}

// Finds the context of cuCtxCreate that is current, or null. Fails if it is destroyed.
CUresult find_current_created(CreatedContext** found) {
    CUcontext current = nullptr;
    const CUresult result = GCX_DRIVER(cuCtxGetCurrent)(&current);
    *found = result == CUDA_SUCCESS ? find_created(current) : nullptr;
    return *found != nullptr && !is_alive(**found) ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_SUCCESS;
}

// Returns the context of cuCtxCreate that is meant, or null: this one, or the current one for null.
CreatedContext* find_created_or_current(CUcontext context) {
    if (context == nullptr && GCX_DRIVER(cuCtxGetCurrent)(&context) != CUDA_SUCCESS)
        return nullptr;
    return find_created(context);
}

// A green context that the program created.
struct ProgramGreen {
    CUdevice device;
    CUcontext context;
};

// Never destroyed, since threads can call the driver while the process ends.
constinit std::mutex greens_mutex;
std::map<CUgreenCtx, ProgramGreen>& program_greens() {
    static auto& greens = *new std::map<CUgreenCtx, ProgramGreen>;
    return greens;
}

// Calls with the partition's green context, which no reset in another thread destroys during the
// call. Creates it if necessary.
template <class Call>
CUresult with_green_context(ProgramContext& context, const Call& call) {
    const InsideGate inside(context.gate);
    const CUresult result =
        as_created(context) == nullptr ? create_green_context(context.partition) : CUDA_SUCCESS;
    const CUcontext green = context.green.load();
    return result == CUDA_SUCCESS && green != nullptr ? call(green) : result;
}

// Finds the SMs of the partition. The program can split them like those of a device, since the
// driver splits a green context's resource.
CUresult get_resource(Partition& partition, CUdevResource* resource) {
    return with_green_context(partition, [&](CUcontext green) {
        return GCX_DRIVER(cuCtxGetDevResource)(green, resource, cu::kResourceSm);
    });
}

// Calls with the stream that the driver knows: the thread's instead of the per-thread default
// stream. The legacy default stream is that of the partition.
template <bool kNullIsPerThread, class Call>
CUresult with_driver_stream(CUstream stream, const Call& call) {
    ThreadStream own;
    const CUresult result =
        is_per_thread<kNullIsPerThread>(stream) ? own.find() : enter_partition();
    return result == CUDA_SUCCESS ? call(own.found() != nullptr ? own.found()->handle : stream)
                                  : result;
}

// Returns whether a stream belongs to a green context that the program sees as the primary context
// or as one of cuCtxCreate.
bool is_in_partition(CUstream stream) {
    CUcontext context = nullptr;
    return GCX_DRIVER(cuStreamGetCtx)(stream, &context) == CUDA_SUCCESS &&
           (to_program(context) != context || find_created(context) != nullptr);
}

template <bool kNullIsPerThread, class GetContext>
CUresult get_context_of_stream(CUstream stream, CUcontext* out, GetContext& real_get) {
    return with_driver_stream<kNullIsPerThread>(stream, [&](CUstream known) {
        const CUresult result = real_get(known, out);
        if (result == CUDA_SUCCESS)
            *out = to_program(*out);
        return result;
    });
}

template <bool kNullIsPerThread, class GetContexts>
CUresult get_contexts_of_stream(CUstream stream, CUcontext* out, CUgreenCtx* green,
                                GetContexts& real_get) {
    return with_driver_stream<kNullIsPerThread>(stream, [&](CUstream known) {
        const CUresult result = real_get(known, out, green);
        if (result == CUDA_SUCCESS && green != nullptr && is_in_partition(known))
            *green = nullptr;
        return result;
    });
}

// Returns a pointer to the context in a node's parameters, or null if the node has none.
CUcontext* context_in(CUgraphNodeParams* parameters) {
    if (parameters == nullptr)
        return nullptr;
    switch (parameters->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        return &parameters->kernel.ctx;
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return &parameters->memcpy.copyCtx;
    case CU_GRAPH_NODE_TYPE_MEMSET:
        return &parameters->memset.ctx;
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
        return &parameters->conditional.ctx;
    default:
        return nullptr;
    }
}

// Calls with the driver's context in the parameters, and then restores the program's.
template <class Call>
CUresult with_driver_context(CUgraphNodeParams* parameters, const Call& call) {
    CUcontext* const context = context_in(parameters);
    if (context == nullptr)
        return call();
    const CUcontext named = *context;
    return with_driver_context(named, [&](CUcontext known) {
        *context = known;
        const CUresult result = call();
        *context = named;
        return result;
    });
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

// Defines a hook of one parameter by one of the functions above.
#define HOOK_BY(function, name, type)                                                              \
    GCX_HOOK(name, type argument) {                                                                \
        return function(argument, GCX_REAL(name));                                                 \
    }
HOOK_BY(release, cuDevicePrimaryCtxRelease, CUdevice)
HOOK_BY(release, cuDevicePrimaryCtxRelease_v2, CUdevice)
HOOK_BY(reset, cuDevicePrimaryCtxReset, CUdevice)
HOOK_BY(reset, cuDevicePrimaryCtxReset_v2, CUdevice)
HOOK_BY(destroy, cuCtxDestroy, CUcontext)
HOOK_BY(destroy, cuCtxDestroy_v2, CUcontext)
HOOK_BY(set_current, cuCtxSetCurrent, CUcontext)
HOOK_BY(set_current, cuCtxPushCurrent, CUcontext)
HOOK_BY(set_current, cuCtxPushCurrent_v2, CUcontext)
HOOK_BY(pop_current, cuCtxPopCurrent, CUcontext*)
HOOK_BY(pop_current, cuCtxPopCurrent_v2, CUcontext*)

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
    const CreatedContext* const created = find_created_or_current(context);
    return created == nullptr ? GCX_REAL(cuCtxGetId)(context, id)
                              : with_driver_context(created->green.load(), [&](CUcontext known) {
                                    if (created->id.load() == 0 || id == nullptr)
                                        return GCX_REAL(cuCtxGetId)(known, id);
                                    *id = created->id.load();
                                    return CUDA_SUCCESS;
                                });
}

GCX_HOOK(cuCtxGetApiVersion, CUcontext context, unsigned* version) {
    return with_driver_context(
        context, [&](CUcontext known) { return GCX_REAL(cuCtxGetApiVersion)(known, version); });
}

// The driver always sets CU_CTX_MAP_HOST (measured).
GCX_HOOK(cuCtxGetFlags, unsigned* flags) {
    CreatedContext* created = nullptr;
    CUresult result = find_current_created(&created);
    if (result == CUDA_SUCCESS)
        result = GCX_REAL(cuCtxGetFlags)(flags);
    if (result == CUDA_SUCCESS && created != nullptr)
        *flags = created->flags.load() | CU_CTX_MAP_HOST;
    return result;
}

GCX_HOOK(cuCtxSetFlags, unsigned flags) {
    CreatedContext* created = nullptr;
    CUresult result = find_current_created(&created);
    if (result == CUDA_SUCCESS)
        result = GCX_REAL(cuCtxSetFlags)(flags);
    if (result == CUDA_SUCCESS && created != nullptr)
        created->flags.store(flags);
    return result;
}

// The last cuCtxDetach destroys a context like cuCtxDestroy.
GCX_HOOK(cuCtxAttach, CUcontext* out, unsigned flags) {
    CreatedContext* created = nullptr;
    CUresult result = find_current_created(&created);
    if (result == CUDA_SUCCESS && created == nullptr) {
        result = GCX_REAL(cuCtxAttach)(out, flags);
        if (result == CUDA_SUCCESS)
            *out = to_program(*out);
        return result;
    }
    if (result != CUDA_SUCCESS)
        return result;
    if (out == nullptr || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    created->users++;
    *out = created->green.load();
    return CUDA_SUCCESS;
}

GCX_HOOK(cuCtxDetach, CUcontext context) {
    CreatedContext* const created = find_created(context);
    if (created == nullptr)
        return GCX_REAL(cuCtxDetach)(to_driver(context));
    if (!is_alive(*created))
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    return --created->users == 0 ? destroy_context(*created) : CUDA_SUCCESS;
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
    if (CreatedContext* const created = find_created(context);
        created != nullptr && !is_alive(*created))
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    const CUresult result = GCX_REAL(cuCtxSynchronize_v2)(to_driver(context));
    return result != CUDA_SUCCESS || to_driver(context) == context
               ? result
               : GCX_REAL(cuCtxSynchronize_v2)(context);
}

// Defines a hook that creates a context: whether a green context can replace it, the parameters and
// the arguments in parentheses.
// NOLINTBEGIN(bugprone-macro-parentheses)
#define CREATE_HOOK(name, plain, parameters, arguments)                                            \
    GCX_HOOK(name, GCX_UNPACK parameters) {                                                        \
        return create(#name, plain, device, out, flags, [&] { return GCX_REAL(name) arguments; }); \
    }
// NOLINTEND(bugprone-macro-parentheses)
CREATE_HOOK(cuCtxCreate, true, (CUcontext * out, unsigned flags, CUdevice device),
            (out, flags, device))
CREATE_HOOK(cuCtxCreate_v2, true, (CUcontext * out, unsigned flags, CUdevice device),
            (out, flags, device))
CREATE_HOOK(cuCtxCreate_v3, affinity == nullptr || count == 0,
            (CUcontext * out, CUexecAffinityParam* affinity, int count, unsigned flags,
             CUdevice device),
            (out, affinity, count, flags, device))
CREATE_HOOK(cuCtxCreate_v4, are_empty(parameters),
            (CUcontext * out, void* parameters, unsigned flags, CUdevice device),
            (out, parameters, flags, device))
// From cudaGL.h and cudaVDPAU.h.
CREATE_HOOK(cuGLCtxCreate, false, (CUcontext * out, unsigned flags, CUdevice device),
            (out, flags, device))
CREATE_HOOK(cuGLCtxCreate_v2, false, (CUcontext * out, unsigned flags, CUdevice device),
            (out, flags, device))
CREATE_HOOK(cuVDPAUCtxCreate, false,
            (CUcontext * out, unsigned flags, CUdevice device, uint32_t vdpau, void* get_address),
            (out, flags, device, vdpau, get_address))
CREATE_HOOK(cuVDPAUCtxCreate_v2, false,
            (CUcontext * out, unsigned flags, CUdevice device, uint32_t vdpau, void* get_address),
            (out, flags, device, vdpau, get_address))

// Green contexts of the program itself divide the partition's SMs, as they would divide the
// device's without gcx.

bool program_has_green_contexts() {
    const std::lock_guard lock(greens_mutex);
    return !program_greens().empty();
}

bool program_has_green_contexts(CUdevice device) {
    const std::lock_guard lock(greens_mutex);
    return std::any_of(program_greens().begin(), program_greens().end(),
                       [&](const auto& green) { return green.second.device == device; });
}

bool is_program_green_context(CUcontext context) {
    const std::lock_guard lock(greens_mutex);
    return std::any_of(program_greens().begin(), program_greens().end(),
                       [&](const auto& green) { return green.second.context == context; });
}

void forget_program_green_contexts(CUdevice device) {
    const std::lock_guard lock(greens_mutex);
    std::erase_if(program_greens(),
                  [&](const auto& green) { return green.second.device == device; });
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
    // A null context means the current one.
    ProgramContext* meant = nullptr;
    Partition* partition = nullptr;
    CUresult result = enter_partition(context == nullptr ? &meant : nullptr);
    if (result == CUDA_SUCCESS && context != nullptr)
        result = find_partition_by_primary(context, &partition);
    if (partition != nullptr)
        meant = partition;
    if (result != CUDA_SUCCESS || meant == nullptr)
        return result == CUDA_SUCCESS ? GCX_REAL(cuCtxGetDevResource)(context, resource, type)
                                      : result;
    return with_green_context(*meant, [&](CUcontext green) {
        return GCX_REAL(cuCtxGetDevResource)(green, resource, type);
    });
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
    CUcontext context = nullptr;
    if (result == CUDA_SUCCESS && GCX_DRIVER(cuCtxFromGreenCtx)(&context, *out) == CUDA_SUCCESS) {
        const std::lock_guard lock(greens_mutex);
        program_greens()[*out] = {device, context};
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
    return with_driver_stream<false>(stream, [&](CUstream known) {
        const CUresult result = GCX_REAL(cuStreamGetGreenCtx)(known, green);
        if (result == CUDA_SUCCESS && is_in_partition(known))
            *green = nullptr;
        return result;
    });
}

// Graph nodes that name their context: the primary context is replaced by the partition's green
// context. Captured nodes need no hook, since they run where their stream does.

// Define hooks. The parameters and the arguments are in parentheses. NODE_HOOK changes the context
// in `parameters`. KERNEL_HOOK changes it in a copy, which is the argument `changed`.
// NOLINTBEGIN(bugprone-macro-parentheses)
#define NODE_HOOK(name, types, arguments)                                                          \
    GCX_HOOK(name, GCX_UNPACK types) {                                                             \
        return with_driver_context(parameters, [&] { return GCX_REAL(name) arguments; });          \
    }
#define KERNEL_HOOK(name, types, arguments)                                                        \
    GCX_HOOK(name, GCX_UNPACK types, const CUDA_KERNEL_NODE_PARAMS_v2* parameters) {               \
        const auto* changed = parameters;                                                          \
        if (parameters == nullptr)                                                                 \
            return GCX_REAL(name) arguments;                                                       \
        return with_driver_context(parameters->ctx, [&](CUcontext known) {                         \
            CUDA_KERNEL_NODE_PARAMS_v2 copy = *parameters;                                         \
            copy.ctx = known;                                                                      \
            changed = &copy;                                                                       \
            return GCX_REAL(name) arguments;                                                       \
        });                                                                                        \
    }
// NOLINTEND(bugprone-macro-parentheses)

NODE_HOOK(cuGraphAddNode,
          (CUgraphNode * out, CUgraph graph, const CUgraphNode* dependencies, std::size_t count,
           CUgraphNodeParams* parameters),
          (out, graph, dependencies, count, parameters))
NODE_HOOK(cuGraphAddNode_v2,
          (CUgraphNode * out, CUgraph graph, const CUgraphNode* dependencies,
           const CUgraphEdgeData* edges, std::size_t count, CUgraphNodeParams* parameters),
          (out, graph, dependencies, edges, count, parameters))
NODE_HOOK(cuGraphAddNode_v3,
          (CUgraphNode * out, CUgraph graph, const CUgraphNode* dependencies,
           const CUgraphEdgeData* edges, std::size_t count, CUgraphNodeParams* parameters),
          (out, graph, dependencies, edges, count, parameters))
NODE_HOOK(cuGraphNodeSetParams, (CUgraphNode node, CUgraphNodeParams* parameters),
          (node, parameters))
NODE_HOOK(cuGraphNodeSetParams_v2, (CUgraphNode node, CUgraphNodeParams* parameters),
          (node, parameters))
NODE_HOOK(cuGraphExecNodeSetParams,
          (CUgraphExec executable, CUgraphNode node, CUgraphNodeParams* parameters),
          (executable, node, parameters))

GCX_HOOK(cuGraphNodeGetParams, CUgraphNode node, CUgraphNodeParams* parameters) {
    const CUresult result = GCX_REAL(cuGraphNodeGetParams)(node, parameters);
    if (result == CUDA_SUCCESS)
        if (CUcontext* const context = context_in(parameters); context != nullptr)
            *context = to_program(*context);
    return result;
}

KERNEL_HOOK(cuGraphAddKernelNode_v2,
            (CUgraphNode * out, CUgraph graph, const CUgraphNode* dependencies, std::size_t count),
            (out, graph, dependencies, count, changed))
KERNEL_HOOK(cuGraphKernelNodeSetParams_v2, (CUgraphNode node), (node, changed))
KERNEL_HOOK(cuGraphExecKernelNodeSetParams_v2, (CUgraphExec executable, CUgraphNode node),
            (executable, node, changed))

GCX_HOOK(cuGraphKernelNodeGetParams_v2, CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v2* parameters) {
    const CUresult result = GCX_REAL(cuGraphKernelNodeGetParams_v2)(node, parameters);
    if (result == CUDA_SUCCESS)
        parameters->ctx = to_program(parameters->ctx);
    return result;
}

// Defines a hook whose last parameter is the context.
// NOLINTBEGIN(bugprone-macro-parentheses): the arguments are in parentheses
#define CONTEXT_HOOK(name, types, arguments)                                                       \
    GCX_HOOK(name, GCX_UNPACK types, CUcontext context) {                                          \
        return with_driver_context(context,                                                        \
                                   [&](CUcontext known) { return GCX_REAL(name) arguments; });     \
    }
// NOLINTEND(bugprone-macro-parentheses)
CONTEXT_HOOK(cuGraphAddMemcpyNode,
             (CUgraphNode * out, CUgraph graph, const CUgraphNode* dependencies, std::size_t count,
              const CUDA_MEMCPY3D* copy),
             (out, graph, dependencies, count, copy, known))
CONTEXT_HOOK(cuGraphAddMemsetNode,
             (CUgraphNode * out, CUgraph graph, const CUgraphNode* dependencies, std::size_t count,
              const CUDA_MEMSET_NODE_PARAMS* fill),
             (out, graph, dependencies, count, fill, known))
CONTEXT_HOOK(cuGraphExecMemcpyNodeSetParams,
             (CUgraphExec executable, CUgraphNode node, const CUDA_MEMCPY3D* copy),
             (executable, node, copy, known))
CONTEXT_HOOK(cuGraphExecMemsetNodeSetParams,
             (CUgraphExec executable, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS* fill),
             (executable, node, fill, known))

GCX_HOOK(cuGraphConditionalHandleCreate, CUgraphConditionalHandle* out, CUgraph graph,
         CUcontext context, unsigned value, unsigned flags) {
    return with_driver_context(context, [&](CUcontext known) {
        return GCX_REAL(cuGraphConditionalHandleCreate)(out, graph, known, value, flags);
    });
}

} // namespace gcx::interpose

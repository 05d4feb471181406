// Contexts, and the cache.

#include "api/captures.hpp"
#include "api/common.hpp"
#include "api/guard.hpp"
#include "api/pushed.hpp"
#include "core/scoped.hpp"

#include <algorithm>
#include <optional>
#include <vector>

using namespace gcx;

namespace {

CUcontext current_context(const Driver& driver) {
    CUcontext current = nullptr;
    GCX_CALL(driver, cuCtxGetCurrent, &current);
    return current;
}

// The key of a context over these resources.
ContextKey key_of_resources(Library& lib, const gcx_resource* resources, uint32_t count) {
    if (count == 0)
        fail(GCX_ERROR_INVALID_VALUE, "there are no resources; a context needs SMs");
    not_null(resources, "resources");
    std::vector<ContextKey> parts(count);
    for (uint32_t i = 0; i < count; i++) {
        const ResourceWords words = unseal(&resources[i]);
        if (words.type == GCX_RESOURCE_SM) {
            const SmResource sm = lib.sm_resource(&resources[i]);
            parts[i] = {sm.device, sm.family, sm.set, std::nullopt};
        } else {
            parts[i] = {&lib.device(words.device), nullptr, {}, words.workqueue};
        }
    }
    return key_of(parts);
}

ContextCache::Sharing sharing_of(const gcx_context_params* params) {
    if (params == nullptr)
        return ContextCache::Sharing::shared;
    check_size(params, "params");
    if ((params->flags & ~GCX_CONTEXT_PRIVATE) != 0)
        fail(GCX_ERROR_INVALID_VALUE,
             format("params->flags is %#x; there is only GCX_CONTEXT_PRIVATE (1)", params->flags));
    return params->flags != 0 ? ContextCache::Sharing::exclusive : ContextCache::Sharing::shared;
}

gcx_context add_context(Library& lib, ContextCache::Ref green) {
    auto object = std::make_unique<Context>();
    object->green = std::move(green);
    return handle_of<gcx_context>(lib.contexts.add(std::move(object)));
}

gcx_live_context describe_live(const ContextCache::Live& live) {
    gcx_live_context described{};
    described.id = live.id;
    described.device = live.sms.device->ordinal();
    described.sm_count = live.sms.family->sm_count(live.sms.set);
    described.handle_count = live.handles;
    described.stream_count = live.streams;
    described.flags = live.exclusive ? GCX_CONTEXT_PRIVATE : 0;
    described.resource = seal(live.sms);
    return described;
}

} // namespace

gcx_result gcx_context_create(const gcx_resource* resources, uint32_t resource_count,
                              const gcx_context_params* params, gcx_context* context) {
    GCX_BODY({
        not_null(context, "context");
        const ContextCache::Sharing sharing = sharing_of(params);
        Library& lib = library();
        const ContextKey key = key_of_resources(lib, resources, resource_count);
        *context = add_context(lib, lib.cache.get(key, sharing));
    });
}

gcx_result gcx_context_destroy(gcx_context context) {
    GCX_BODY({
        Library* const open = library_to_destroy_in();
        if (open == nullptr)
            return;
        Library& lib = *open;
        auto pin = lib.contexts.pin(context);
        if (pushed::contains(pin.handle()))
            fail(GCX_ERROR_CONTEXT_ALREADY_IN_USE,
                 "the context is current in this thread; take it off with gcx_context_pop first");
        const GreenContext& green = *pin->green;
        if (lib.cache.last_handle(green) && current_context(lib.driver) == green.native)
            fail(GCX_ERROR_CONTEXT_ALREADY_IN_USE,
                 "the context is current in this thread by CUDA's own functions; make another one "
                 "current first");
        lib.contexts.close(std::move(pin));
    });
}

gcx_result gcx_context_get_info(gcx_context context, gcx_context_info* info) {
    GCX_BODY({
        check_size(info, "info");
        Library& lib = library();
        const auto pin = pin_alive(lib.contexts, context);
        const GreenContext& green = *pin->green;
        info->device = green.key.device->ordinal();
        info->sm_count = green.sm_count();
        info->stream_count = lib.cache.stream_count(green);
        info->id = green.id;
    });
}

gcx_result gcx_context_get_resource(gcx_context context, gcx_resource_type type,
                                    gcx_resource* resource) {
    GCX_BODY({
        not_null(resource, "resource");
        Library& lib = library();
        const auto pin = pin_alive(lib.contexts, context);
        *resource = resource_of(lib, *pin->green, type);
    });
}

struct CUctx_st* gcx_context_native(gcx_context context) {
    CUcontext native = nullptr;
    guarded(__func__, [&] {
        const auto pin = pin_alive(library().contexts, context);
        native = pin->green->native;
    });
    return native;
}

struct CUgreenCtx_st* gcx_context_native_green(gcx_context context) {
    CUgreenCtx native = nullptr;
    guarded(__func__, [&] {
        const auto pin = pin_alive(library().contexts, context);
        native = pin->green->green;
    });
    return native;
}

gcx_result gcx_context_from_native(struct CUctx_st* native, gcx_context* context) {
    GCX_BODY({
        not_null(native, "native");
        not_null(context, "context");
        Library& lib = library();
        ContextCache::Ref green = lib.cache.find(native, ContextCache::Use::handle);
        if (!green)
            fail(GCX_ERROR_NOT_FOUND,
                 format("%p is no live context of gcx", static_cast<void*>(native)));
        *context = add_context(lib, std::move(green));
    });
}

gcx_result gcx_context_push(gcx_context context) {
    GCX_BODY({
        Library& lib = library();
        const auto pin = pin_alive(lib.contexts, context);
        GreenContext& green = *pin->green;
        pushed::Entry entry = {pin.handle(), lib.cache.share(green, ContextCache::Use::current)};
        pushed::reserve();
        if (const CUresult result = lib.driver.cuCtxPushCurrent(green.native);
            result != CUDA_SUCCESS) {
            pushed::release_room();
            lib.driver.check(result, "cuCtxPushCurrent");
        }
        pushed::put(std::move(entry));
    });
}

gcx_result gcx_context_pop(gcx_context* context) {
    GCX_BODY({
        const Library& lib = library();
        const pushed::Entry* top = pushed::top();
        if (top == nullptr)
            fail(GCX_ERROR_INVALID_CONTEXT,
                 pushed::ended() ? "this thread is ending, which took off all that it had pushed"
                                 : "this thread has pushed no context with gcx_context_push");
        if (current_context(lib.driver) != top->green->native)
            fail(GCX_ERROR_INVALID_CONTEXT,
                 "another context is current than the one that gcx_context_push put there: other "
                 "code pushed or set one and has to take it off first");
        CUcontext popped = nullptr;
        GCX_CALL(lib.driver, cuCtxPopCurrent, &popped);
        if (context != nullptr)
            *context = handle_of<gcx_context>(top->handle);
        pushed::drop_top();
    });
}

gcx_result gcx_context_get_current(gcx_context* context) {
    GCX_BODY({
        not_null(context, "context");
        const Library& lib = library();
        const pushed::Entry* top = pushed::top();
        const bool ours = top != nullptr && current_context(lib.driver) == top->green->native;
        *context = ours ? handle_of<gcx_context>(top->handle) : nullptr;
    });
}

gcx_result gcx_context_synchronize(gcx_context context) {
    GCX_BODY({
        Library& lib = library();
        const auto pin = pin_alive(lib.contexts, context);
        refuse_capturing(lib.driver, *pin);
        const ScopedCurrent current(lib.driver, pin->green->native);
        GCX_CALL(lib.driver, cuCtxSynchronize);
    });
}

gcx_result gcx_context_record(gcx_context context, gcx_event event) {
    GCX_BODY({
        Library& lib = library();
        const auto from = pin_alive(lib.contexts, context);
        const auto to = pin_alive(lib.events, event);
        to->check_recordable(from->green->key.device->ordinal());
        refuse_capturing(lib.driver, *from);
        GCX_CALL(lib.driver, cuGreenCtxRecordEvent, from->green->green, to->native());
        to->note_recorded(0);
    });
}

gcx_result gcx_context_wait(gcx_context context, gcx_event event) {
    GCX_BODY({
        Library& lib = library();
        const auto who = pin_alive(lib.contexts, context);
        const auto what = pin_alive(lib.events, event);
        refuse_capturing(lib.driver, *who);
        refuse_captured(lib, *what);
        GCX_CALL(lib.driver, cuGreenCtxWaitEvent, who->green->green, what->native());
    });
}

gcx_result gcx_context_list(int32_t device, gcx_live_context* contexts, uint32_t capacity,
                            uint32_t* count) {
    GCX_BODY({
        not_null(count, "count");
        if (capacity != 0)
            not_null(contexts, "contexts");
        Library& lib = library();
        const auto live = lib.cache.live(device == -1 ? nullptr : &lib.device(device));
        *count = static_cast<uint32_t>(live.size());
        if (live.size() > capacity)
            fail(GCX_ERROR_INVALID_VALUE,
                 format("there are %zu live contexts, and room for %u; *count is what is needed",
                        live.size(), capacity));
        std::transform(live.begin(), live.end(), contexts, describe_live);
    });
}

// Contexts, what is current in a thread, and the cache.

#include "api/captures.hpp"
#include "api/common.hpp"
#include "api/guard.hpp"

#include "core/scoped_current.hpp"

#include <pthread.h>

#include <optional>
#include <vector>

using namespace gcx;

namespace {

struct Pushed {
    uint64_t handle;
    ContextCache::Ref green;
};

// What this thread has pushed; null while nothing is. A key of pthreads tells when the thread ends:
// a thread_local with a destructor would keep the library from being unloaded while the thread
// lives.
thread_local std::vector<Pushed>* pushed = nullptr;

// CUDA's stack of contexts ends with its thread, and so does what gcx held for it.
void forget_pushed(void* stack) {
    pushed = nullptr;
    if (library_answers())
        delete static_cast<std::vector<Pushed>*>(stack);
}

class ThreadEnds {
  public:
    ThreadEnds() {
        if (pthread_key_create(&key_, forget_pushed) != 0)
            fail(GCX_ERROR_OUT_OF_MEMORY, "the process has no pthread_key_t left");
    }
    ~ThreadEnds() { pthread_key_delete(key_); }
    ThreadEnds(const ThreadEnds&) = delete;
    ThreadEnds& operator=(const ThreadEnds&) = delete;

    void watch(std::vector<Pushed>* stack) const {
        if (pthread_setspecific(key_, stack) != 0)
            fail(GCX_ERROR_OUT_OF_MEMORY, "no memory to watch the thread's end");
    }

  private:
    pthread_key_t key_ = 0;
};

const ThreadEnds& thread_ends() {
    static const ThreadEnds ends;
    return ends;
}

void drop_last_pushed() {
    pushed->pop_back();
    if (pushed->empty()) {
        thread_ends().watch(nullptr);
        delete pushed;
        pushed = nullptr;
    }
}

CUcontext current_context(const Driver& driver) {
    CUcontext current = nullptr;
    GCX_CALL(driver, cuCtxGetCurrent, &current);
    return current;
}

// The key of a context over these resources.
ContextKey key_of(Library& lib, const gcx_resource* resources, uint32_t count) {
    if (count == 0)
        fail(GCX_ERROR_INVALID_VALUE, "there are no resources; a context needs SMs");
    not_null(resources, "resources");
    ContextKey key;
    for (uint32_t i = 0; i < count; i++) {
        const ResourceWords words = unseal(&resources[i]);
        if (words.type != GCX_RESOURCE_SM) {
            if (key.workqueue)
                fail(GCX_ERROR_INVALID_RESOURCE_TYPE,
                     format("resource %u is a second workqueue; a context has one at most", i));
            key.workqueue = words.workqueue;
            Device& device = lib.device(words.device);
            if (key.device != nullptr && key.device != &device)
                fail(GCX_ERROR_INVALID_RESOURCE_CONFIGURATION,
                     format("resource %u is of %s, those before of %s", i, device.label().c_str(),
                            key.device->label().c_str()));
            key.device = &device;
            continue;
        }
        const SmResource sm = lib.sm_resource(&resources[i]);
        if (key.device != nullptr && key.device != sm.device)
            fail(GCX_ERROR_INVALID_RESOURCE_CONFIGURATION,
                 format("resource %u is of %s, those before of %s", i, sm.device->label().c_str(),
                        key.device->label().c_str()));
        if (key.family != nullptr && key.family != sm.family)
            fail(GCX_ERROR_INVALID_RESOURCE_CONFIGURATION,
                 format(
                     "resource %u is of another family than those before: which SMs they share is "
                     "not the driver's to say",
                     i));
        const uint32_t shared = sm.family->sm_count(key.set & sm.set);
        if (shared != 0)
            fail(GCX_ERROR_INVALID_RESOURCE_CONFIGURATION,
                 format("resource %u has %u SMs that those before have already; take them out with "
                        "gcx_resource_subtract",
                        i, shared));
        key.device = sm.device;
        key.family = sm.family;
        key.set = key.set | sm.set;
    }
    if (key.family == nullptr)
        fail(GCX_ERROR_INVALID_RESOURCE_TYPE, "there is no SM resource among the resources");
    if (key.set.empty())
        fail(GCX_ERROR_INVALID_RESOURCE_CONFIGURATION, "the resources hold no SMs");
    return key;
}

gcx_context add_context(Library& lib, ContextCache::Ref green) {
    auto object = std::make_unique<Context>();
    object->green = std::move(green);
    return handle_of<gcx_context>(lib.contexts.add(std::move(object)));
}

} // namespace

gcx_result gcx_context_create(const gcx_resource* resources, uint32_t resource_count,
                              const gcx_context_params* params, gcx_context* context) {
    GCX_BODY({
        not_null(context, "context");
        if (params != nullptr) {
            check_size(params, "params");
            if (params->flags != 0)
                fail(GCX_ERROR_INVALID_VALUE,
                     format("params->flags is %#x; there are none yet, use 0", params->flags));
        }
        Library& lib = library();
        *context = add_context(lib, lib.cache.get(key_of(lib, resources, resource_count)));
    });
}

gcx_result gcx_context_destroy(gcx_context context) {
    GCX_BODY({
        Library* const open = library_to_destroy_in();
        if (open == nullptr)
            return;
        Library& lib = *open;
        auto pin = lib.contexts.pin(context);
        if (pushed != nullptr) {
            for (const Pushed& entry : *pushed) {
                if (entry.handle == pin.handle())
                    fail(GCX_ERROR_CONTEXT_ALREADY_IN_USE,
                         "the context is current in this thread; take it off with gcx_context_pop "
                         "first");
            }
        }
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
        GreenContext& green = *pin->green;
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
        auto entry = Pushed{pin.handle(), lib.cache.share(green, ContextCache::Use::current)};
        auto fresh = pushed == nullptr ? std::make_unique<std::vector<Pushed>>() : nullptr;
        std::vector<Pushed>& stack = pushed != nullptr ? *pushed : *fresh;
        stack.reserve(stack.size() + 1);
        if (fresh != nullptr)
            thread_ends().watch(fresh.get());
        if (const CUresult result = lib.driver.cuCtxPushCurrent(green.native);
            result != CUDA_SUCCESS) {
            if (fresh != nullptr)
                thread_ends().watch(nullptr);
            lib.driver.check(result, "cuCtxPushCurrent");
        }
        stack.push_back(std::move(entry));
        if (fresh != nullptr)
            pushed = fresh.release();
    });
}

gcx_result gcx_context_pop(gcx_context* context) {
    GCX_BODY({
        const Library& lib = library();
        if (pushed == nullptr)
            fail(GCX_ERROR_INVALID_CONTEXT,
                 "this thread has pushed no context with gcx_context_push");
        const Pushed& top = pushed->back();
        if (current_context(lib.driver) != top.green->native)
            fail(GCX_ERROR_INVALID_CONTEXT,
                 "another context is current than the one that gcx_context_push put there: other "
                 "code pushed or set one and has to take it off first");
        CUcontext popped = nullptr;
        GCX_CALL(lib.driver, cuCtxPopCurrent, &popped);
        if (context != nullptr)
            *context = handle_of<gcx_context>(top.handle);
        drop_last_pushed();
    });
}

gcx_result gcx_context_get_current(gcx_context* context) {
    GCX_BODY({
        not_null(context, "context");
        const Library& lib = library();
        const bool ours =
            pushed != nullptr && current_context(lib.driver) == pushed->back().green->native;
        *context = ours ? handle_of<gcx_context>(pushed->back().handle) : nullptr;
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

gcx_result gcx_cache_set_limit(uint32_t kept_contexts) {
    GCX_BODY({ library().cache.set_limit(kept_contexts); });
}

gcx_result gcx_cache_get_stats(gcx_cache_stats* stats) {
    GCX_BODY({
        check_size(stats, "stats");
        library().cache.get_stats(*stats);
    });
}

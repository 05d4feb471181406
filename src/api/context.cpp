// Contexts, and the stack of those that each thread has pushed.

#include "api/library.hpp"
#include "api/result.hpp"
#include "base/log.hpp"

#include <pthread.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <vector>

using namespace gcx;

namespace {

// The contexts that the calling thread has pushed with gcx_context_push and not popped.
namespace pushed {

struct Pushed {
    uint64_t handle;
    ContextCache::Ref green;
    std::size_t depth; // of the thread's stack before
};
using Stack = std::vector<Pushed>;

// A pthread key reports the end of the thread. A thread_local with a destructor would keep the
// library from being unloaded while the thread lives.
constinit thread_local Stack* the_stack = nullptr; // null while nothing is pushed

// Runs at the end of a thread, with which CUDA's stack of contexts ends too.
void forget(void* stack) {
    the_stack = nullptr;
    thread_has_ended = true;
    if (library_answers())
        delete static_cast<Stack*>(stack);
    log::deliver();
}

class ThreadEnds {
  public:
    ThreadEnds() {
        if (pthread_key_create(&key_, forget) != 0)
            fail(GCX_ERROR_OUT_OF_MEMORY, "the process has no pthread_key_t left");
    }
    ~ThreadEnds() { pthread_key_delete(key_); }
    ThreadEnds(const ThreadEnds&) = delete;
    ThreadEnds& operator=(const ThreadEnds&) = delete;

    bool watch(Stack* stack) const { return pthread_setspecific(key_, stack) == 0; }

  private:
    pthread_key_t key_ = 0;
};

const ThreadEnds& thread_ends() {
    static const ThreadEnds ends;
    return ends;
}

// Makes room for one more context, so that put() can't fail.
void reserve() {
    if (the_stack == nullptr) {
        auto fresh = std::make_unique<Stack>();
        if (!thread_ends().watch(fresh.get()))
            fail(GCX_ERROR_OUT_OF_MEMORY, "no memory to watch the thread's end");
        the_stack = fresh.release();
    }
    if (the_stack->size() == the_stack->capacity())
        the_stack->reserve(the_stack->size() * 2 + 1);
}

void put(Pushed entry) noexcept {
    the_stack->push_back(std::move(entry));
}

// Frees the stack if it is empty.
void release_room() noexcept {
    if (the_stack == nullptr || !the_stack->empty())
        return;
    thread_ends().watch(nullptr);
    delete the_stack;
    the_stack = nullptr;
}

// Returns null if the stack is empty.
const Pushed* top() {
    return the_stack != nullptr && !the_stack->empty() ? &the_stack->back() : nullptr;
}

void drop_top() {
    the_stack->pop_back();
    release_room();
}

bool contains(uint64_t handle) {
    return the_stack != nullptr &&
           std::any_of(the_stack->begin(), the_stack->end(),
                       [&](const Pushed& entry) { return entry.handle == handle; });
}

} // namespace pushed

CUcontext current_context(const Driver& driver) {
    CUcontext current = nullptr;
    GCX_CALL(driver, cuCtxGetCurrent, &current);
    return current;
}

// Pushes the last contexts of a stack again.
void push_last(const Driver& driver, const std::vector<CUcontext>& stack, std::size_t count) {
    const auto first = stack.end() - static_cast<std::ptrdiff_t>(std::min(count, stack.size()));
    std::for_each(stack.rbegin(), std::make_reverse_iterator(first),
                  [&](CUcontext each) { driver.cuCtxPushCurrent(each); });
}

// Returns the contexts of the calling thread's stack, the current one first. The driver shows them
// only when they are popped. If memory runs out, they are as before.
std::vector<CUcontext> pop_all(const Driver& driver) {
    std::vector<CUcontext> stack;
    CUcontext context = nullptr;
    try {
        stack.reserve(8);
        while (driver.cuCtxPopCurrent(&context) == CUDA_SUCCESS) {
            stack.push_back(context); // there is room
            if (stack.size() == stack.capacity())
                stack.reserve(2 * stack.size());
        }
    } catch (...) {
        push_last(driver, stack, stack.size());
        throw;
    }
    return stack;
}

std::size_t stack_depth(const Driver& driver) {
    const std::vector<CUcontext> stack = pop_all(driver);
    push_last(driver, stack, stack.size());
    return stack.size();
}

// Returns the key of a context with these resources.
ContextKey key_of_resources(Library& lib, const gcx_resource* resources, uint32_t count) {
    if (count == 0)
        fail(GCX_ERROR_INVALID_VALUE, "there are no resources; a context needs SMs");
    not_null(resources, "resources");
    ContextKey key;
    for (uint32_t i = 0; i < count; i++) {
        const ResourceWords words = unseal(&resources[i]);
        if (words.type == GCX_RESOURCE_SM) {
            const SmResource sm = lib.sm_resource(words);
            add_part(key, {sm.device, sm.family, sm.set, std::nullopt}, i);
        } else {
            add_part(key, {&lib.device(words.device), nullptr, {}, words.workqueue}, i);
        }
    }
    check_has_sms(key);
    return key;
}

ContextCache::Sharing sharing_of(const gcx_context_params* params) {
    const uint32_t flags = params_or_defaults(params, GCX_CONTEXT_PARAMS_INIT).flags;
    if ((flags & ~GCX_CONTEXT_PRIVATE) != 0)
        fail(GCX_ERROR_INVALID_VALUE,
             format("params->flags is %#x; there is only GCX_CONTEXT_PRIVATE (1)", flags));
    return flags != 0 ? ContextCache::Sharing::exclusive : ContextCache::Sharing::shared;
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
    described.native_id = live.native_id;
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
        Library* const open = library_unless_closed();
        if (open == nullptr)
            return;
        Library& lib = *open;
        auto pin = lib.contexts.pin(context);
        if (pushed::contains(pin.handle()))
            fail(GCX_ERROR_CONTEXT_ALREADY_IN_USE,
                 "the context was made current in this thread by gcx_context_push; pop it with "
                 "gcx_context_pop first");
        const GreenContext& green = *pin->green;
        if (lib.cache.may_destroy(green)) {
            if (lib.driver.ended())
                return;
            if (current_context(lib.driver) == green.native)
                fail(GCX_ERROR_CONTEXT_ALREADY_IN_USE,
                     "the context was made current in this thread by CUDA's functions, and would "
                     "be destroyed; make another one current first");
        }
        lib.contexts.close(std::move(pin));
    });
}

gcx_result gcx_context_get_info(gcx_context context, gcx_context_info* info) {
    GCX_BODY({
        StructOutput out(info, "info");
        Library& lib = library();
        const auto pin = pin_alive(lib.contexts, context);
        const GreenContext& green = *pin->green;
        out->device = green.key.device->ordinal();
        out->sm_count = green.sm_count();
        out->stream_count = lib.cache.stream_count(green);
        out->id = green.id;
        out->native_id = green.native_id();
        out.write();
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
    run_api_function(__func__, [&] {
        const auto pin = pin_alive(library().contexts, context);
        native = pin->green->native;
    });
    return native;
}

struct CUgreenCtx_st* gcx_context_native_green(gcx_context context) {
    CUgreenCtx native = nullptr;
    run_api_function(__func__, [&] {
        const auto pin = pin_alive(library().contexts, context);
        native = pin->green->green;
    });
    return native;
}

gcx_result gcx_context_push(gcx_context context) {
    GCX_BODY({
        Library& lib = library();
        const auto pin = pin_alive(lib.contexts, context);
        GreenContext& green = *pin->green;
        pushed::Pushed entry = {pin.handle(), lib.cache.share(green, ContextCache::Use::current),
                                stack_depth(lib.driver)};
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
        const pushed::Pushed* top = pushed::top();
        if (top == nullptr)
            fail(GCX_ERROR_INVALID_CONTEXT,
                 thread_has_ended ? "this thread is ending, and its contexts were popped"
                                  : "this thread has pushed no context with gcx_context_push");
        // Other code may have set another context in its place, pushed some and left them, or
        // popped it.
        if (current_context(lib.driver) == top->green->native) {
            CUcontext popped = nullptr;
            GCX_CALL(lib.driver, cuCtxPopCurrent, &popped);
        } else {
            push_last(lib.driver, pop_all(lib.driver), top->depth);
        }
        if (context != nullptr)
            *context = handle_of<gcx_context>(top->handle);
        pushed::drop_top();
    });
}

gcx_result gcx_context_get_current(gcx_context* context) {
    GCX_BODY({
        not_null(context, "context");
        const Library& lib = library();
        const pushed::Pushed* top = pushed::top();
        const bool ours = top != nullptr && current_context(lib.driver) == top->green->native;
        *context = ours ? handle_of<gcx_context>(top->handle) : nullptr;
    });
}

gcx_result gcx_context_synchronize(gcx_context context) {
    GCX_BODY({
        Library& lib = library();
        const auto pin = pin_alive(lib.contexts, context);
        refuse_capturing(*pin);
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
        refuse_capturing(*from);
        GCX_CALL(lib.driver, cuGreenCtxRecordEvent, from->green->green, to->native());
        to->note_recorded(0);
    });
}

gcx_result gcx_context_wait(gcx_context context, gcx_event event) {
    GCX_BODY({
        Library& lib = library();
        const auto waiter = pin_alive(lib.contexts, context);
        const auto awaited = pin_alive(lib.events, event);
        refuse_capturing(*waiter);
        refuse_captured(lib, *awaited);
        GCX_CALL(lib.driver, cuGreenCtxWaitEvent, waiter->green->green, awaited->native());
    });
}

gcx_result gcx_context_list(int32_t device, gcx_live_context* contexts, uint32_t capacity,
                            uint32_t* count) {
    GCX_BODY({
        check_list(contexts, "contexts", capacity, count);
        Library& lib = library();
        const auto live = lib.cache.live(device == -1 ? nullptr : &lib.device(device));
        give_list(live, "live contexts", contexts, capacity, count, describe_live);
    });
}

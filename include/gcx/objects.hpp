// Part of gcx.hpp: contexts, streams and events, which own handles.
#pragma once

#include "error.hpp"
#include "generated/raw.hpp"
#include "lease.hpp"
#include "owner.hpp"
#include "resource.hpp"
#include "view.hpp"

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <vector>

struct CUkern_st; // as cuda.h has it

namespace gcx {

class event : public detail::owner<gcx_event, gcx_event_destroy> {
  public:
    event() noexcept = default;
    // gcx_event_create
    explicit event(device on, event_flags flags = event_flags::none) {
        check(gcx_event_create(on.ordinal(), static_cast<uint32_t>(flags), receive()));
    }
    // Takes ownership of a handle of gcx.h.
    static event adopt(gcx_event owned) noexcept {
        event adopted;
        *adopted.receive() = owned;
        return adopted;
    }
    // gcx_event_from_native: a CUevent or cudaEvent_t of other code.
    static event from_native(CUevent_st* native) { return adopt(raw::event_from_native(native)); }

    // gcx_event_native: a CUevent, and a cudaEvent_t.
    CUevent_st* native() const {
        return detail::native_or_throw(gcx_event_native(handle()),
                                       [this] { return gcx_event_query(handle()); });
    }
    // gcx_event_synchronize
    void synchronize() const { check(gcx_event_synchronize(handle())); }
    // gcx_event_query: returns whether its work has finished.
    bool query() const { return raw::event_query(handle()); }
    // gcx_event_get_elapsed
    using milliseconds = std::chrono::duration<float, std::milli>;
    milliseconds elapsed_since(const event& start) const {
        return milliseconds(raw::event_get_elapsed(start.handle(), handle()));
    }
};

class context : public detail::owner<gcx_context, gcx_context_destroy> {
  public:
    context() noexcept = default;
    // gcx_context_create: of one resource, or of several: context({sms, workqueue}).
    explicit context(std::initializer_list<resource> resources,
                     context_flags flags = context_flags::none)
        : context(view<resource>(resources.begin(), resources.size()), flags) {}
    explicit context(view<resource> resources, context_flags flags = context_flags::none) {
        gcx_context_params params = GCX_CONTEXT_PARAMS_INIT;
        params.flags = static_cast<uint32_t>(flags);
        check(gcx_context_create(reinterpret_cast<const gcx_resource*>(resources.data()),
                                 detail::size_for_c(resources.size()), &params, receive()));
    }
    // Takes ownership of a handle of gcx.h.
    static context adopt(gcx_context owned) noexcept {
        context adopted;
        *adopted.receive() = owned;
        return adopted;
    }

    // gcx_context_get_info, and some of its fields.
    gcx_context_info info() const { return raw::context_get_info(handle()); }
    uint32_t sm_count() const { return info().sm_count; }
    int32_t device() const { return info().device; }
    uint64_t id() const { return info().id; }

    // gcx_context_get_resource
    resource get_resource(gcx_resource_type type = type::sm) const {
        return resource(raw::context_get_resource(handle(), type));
    }

    // gcx_context_native, a CUcontext, and gcx_context_native_green, a CUgreenCtx.
    CUctx_st* native() const {
        return detail::native_or_throw(gcx_context_native(handle()), [this] { return usable(); });
    }
    CUgreenCtx_st* native_green() const {
        return detail::native_or_throw(gcx_context_native_green(handle()),
                                       [this] { return usable(); });
    }

    // gcx_context_push, _pop and _get_current, in the calling thread; see gcx::current_guard. The
    // handles returned are not owned; nullptr if there is none.
    void push() const { check(gcx_context_push(handle())); }
    static gcx_context pop() { return raw::context_pop(); }
    static gcx_context current() { return raw::context_get_current(); }

    // gcx_context_synchronize, _record and _wait: all streams of the context.
    void synchronize() const { check(gcx_context_synchronize(handle())); }
    void record(const event& into) const { check(gcx_context_record(handle(), into.handle())); }
    void wait(const event& event) const { check(gcx_context_wait(handle(), event.handle())); }

  private:
    gcx_result usable() const {
        gcx_context_info info = GCX_CONTEXT_INFO_INIT;
        return gcx_context_get_info(handle(), &info);
    }
};

// Makes a context current in this thread for its lifetime.
class current_guard {
  public:
    explicit current_guard(const context& of) { of.push(); }
    ~current_guard() { gcx_context_pop(nullptr); }
    current_guard(const current_guard&) = delete;
    current_guard& operator=(const current_guard&) = delete;
};

// gcx_kernel_fit_params. From C++20 on: {.block_threads = 256}.
struct kernel_fit_params {
    uint32_t block_threads;            // threads in a block, 1 to 1024
    uint32_t dynamic_shared_bytes = 0; // of a block
    uint32_t cluster_blocks = 0;       // 0: no clusters
};

class stream : public detail::owner<gcx_stream, gcx_stream_destroy> {
  public:
    stream() noexcept = default;
    // gcx_stream_create: a lower priority is more urgent.
    explicit stream(const context& of, int32_t priority = 0) {
        const gcx_stream_params params = with_priority(priority);
        check(gcx_stream_create(of.handle(), &params, receive()));
    }
    // gcx_lease_stream_create: a stream that follows the lease, see gcx/lease.hpp.
    explicit stream(const lease& of, int32_t priority = 0) {
        const gcx_stream_params params = with_priority(priority);
        check(gcx_lease_stream_create(of.handle(), &params, receive()));
    }
    // Takes ownership of a handle of gcx.h.
    static stream adopt(gcx_stream owned) noexcept {
        stream adopted;
        *adopted.receive() = owned;
        return adopted;
    }
    // gcx_stream_from_native: a CUstream or cudaStream_t of other code.
    static stream from_native(CUstream_st* native) {
        return adopt(raw::stream_from_native(native));
    }

    // gcx_stream_native: a CUstream, and a cudaStream_t. Call it again for each step of a stream
    // of a lease.
    CUstream_st* native() const {
        return detail::native_or_throw(gcx_stream_native(handle()), [this] {
            gcx_stream_info info = GCX_STREAM_INFO_INIT;
            return gcx_stream_get_info(handle(), &info);
        });
    }

    // gcx_stream_get_info, and some of its fields.
    gcx_stream_info info() const { return raw::stream_get_info(handle()); }
    uint32_t sm_count() const { return info().sm_count; }
    int32_t device() const { return info().device; }
    int32_t priority() const { return info().priority; }

    // gcx_stream_get_resource
    resource get_resource(gcx_resource_type type = type::sm) const {
        return resource(raw::stream_get_resource(handle(), type));
    }
    // gcx_stream_get_kernel_fit: of a CUfunction or a CUkernel.
    gcx_kernel_fit kernel_fit(CUfunc_st* function, const kernel_fit_params& launch) const {
        gcx_kernel_fit_params params = GCX_KERNEL_FIT_PARAMS_INIT;
        params.block_threads = launch.block_threads;
        params.dynamic_shared_bytes = launch.dynamic_shared_bytes;
        params.cluster_blocks = launch.cluster_blocks;
        return raw::stream_get_kernel_fit(handle(), function, &params);
    }
    gcx_kernel_fit kernel_fit(CUkern_st* kernel, const kernel_fit_params& launch) const {
        return kernel_fit(reinterpret_cast<CUfunc_st*>(kernel), launch);
    }

    // gcx_stream_synchronize
    void synchronize() const { check(gcx_stream_synchronize(handle())); }
    // gcx_stream_query: returns whether its work has finished.
    bool query() const { return raw::stream_query(handle()); }
    // gcx_stream_record and gcx_stream_wait
    void record(const event& into) const { check(gcx_stream_record(handle(), into.handle())); }
    void wait(const event& event) const { check(gcx_stream_wait(handle(), event.handle())); }

    // gcx_stream_probe_sms
    std::vector<uint32_t> sm_ids() const { return raw::stream_probe_sms(handle()); }

  private:
    static gcx_stream_params with_priority(int32_t priority) noexcept {
        gcx_stream_params params = GCX_STREAM_PARAMS_INIT;
        params.sync = GCX_STREAM_NON_BLOCKING;
        params.priority = priority;
        return params;
    }
};

// An element of an array of streams: launch({a, b}), verify({a, b}), or a vector of these.
struct stream_ref {
    stream_ref(const stream& of) noexcept : handle(of.handle()) {}
    gcx_stream handle;
};
static_assert(sizeof(stream_ref) == sizeof(gcx_stream), "an array of them is one of C's");

// gcx_verify
struct verification {
    gcx_verification found;
    std::vector<gcx_verified_stream> streams; // in the order given

    explicit operator bool() const noexcept { return found.ok != 0; }
    std::string_view problems() const noexcept { return found.problems; }
};
inline verification verify(view<stream_ref> streams) {
    verification made{GCX_VERIFICATION_INIT, std::vector<gcx_verified_stream>(streams.size())};
    check(gcx_verify(reinterpret_cast<const gcx_stream*>(streams.data()),
                     detail::size_for_c(streams.size()), made.streams.data(), &made.found));
    return made;
}

} // namespace gcx

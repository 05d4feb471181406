// Part of gcx.hpp: the context cache.
//
//     gcx::prepare_contexts(layouts);                  // before the work starts
//     gcx::set_cache_limit(100);                       // of each device
#pragma once

#include "cancel.hpp"
#include "error.hpp"
#include "generated/raw.hpp"
#include "resource.hpp"
#include "view.hpp"

#include <cstdint>
#include <exception>
#include <functional>
#include <utility>

namespace gcx {

// gcx_cache_set_limit and gcx_cache_get_stats.
inline void set_cache_limit(uint32_t max_contexts) {
    check(gcx_cache_set_limit(max_contexts));
}
inline gcx_cache_stats cache_stats() {
    return raw::cache_get_stats();
}

// gcx_cache_trim: never call it while a library can name a stream whose handle was destroyed.
inline gcx_cache_trimmed trim_cache(uint32_t max_contexts) {
    return raw::cache_trim(max_contexts);
}

// gcx_prepare_params. progress is called in the calling thread and may call gcx. prepare_contexts
// rethrows what it throws and skips the remaining contexts. If the caller passed a cancel, that is
// not signalled: the remaining contexts are created first, without progress.
struct prepare_params {
    prepare_flags flags = prepare_flags::none;
    const gcx::cancel* cancel = nullptr; // aborts the call; not owned
    std::function<void(uint32_t done, uint32_t count)> progress = {};
};

namespace detail {

// A call of gcx_cache_prepare whose progress function can throw.
class preparing {
  public:
    preparing(const prepare_params& params, const cancel* own) : params_(params), own_(own) {}

    void run(view<resource> resources) {
        const cancel* const given = own_ != nullptr ? own_ : params_.cancel;
        gcx_prepare_params raw = GCX_PREPARE_PARAMS_INIT;
        raw.flags = static_cast<uint32_t>(params_.flags);
        raw.cancel = given != nullptr ? given->handle() : nullptr;
        raw.progress = params_.progress ? report : nullptr;
        raw.user_data = this;
        const gcx_result result =
            gcx_cache_prepare(reinterpret_cast<const gcx_resource*>(resources.data()),
                              size_for_c(resources.size()), &raw);
        if (thrown_)
            std::rethrow_exception(thrown_);
        check(result);
    }

  private:
    static void report(uint32_t done, uint32_t count, void* user_data) noexcept {
        auto& call = *static_cast<preparing*>(user_data);
        if (call.thrown_)
            return;
        try {
            call.params_.progress(done, count);
        } catch (...) {
            call.thrown_ = std::current_exception();
            if (call.own_ != nullptr)
                gcx_cancel_signal(call.own_->handle());
        }
    }

    const prepare_params& params_;
    const cancel* own_;
    std::exception_ptr thrown_;
};

} // namespace detail

// gcx_cache_prepare
inline void prepare_contexts(view<resource> resources, const prepare_params& params = {}) {
    detail::cancel_of("gcx::prepare_contexts", params.cancel);
    if (params.cancel != nullptr || !params.progress)
        return detail::preparing(params, nullptr).run(resources);
    const cancel own;
    detail::preparing(params, &own).run(resources);
}

#ifdef __cpp_lib_jthread
// The same, aborted when a stop is requested, as of a std::jthread.
template <class Stop, class = detail::if_stop<Stop>>
void prepare_contexts(view<resource> resources, const Stop& stop,
                      const prepare_params& params = {}) {
    detail::until_stopped(
        "gcx::prepare_contexts", stop, params.cancel,
        [&](const cancel& requested) { detail::preparing(params, &requested).run(resources); });
}
#endif

} // namespace gcx

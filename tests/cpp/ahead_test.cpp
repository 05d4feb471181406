// Tests prepared contexts, also where progress throws, and a kernel's fit for a stream.
#include "tests.hpp"

#include "../api/graph_kernels.hpp"

#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

std::vector<gcx::resource> layouts() {
    std::vector<gcx::resource> found;
    for (const uint32_t sms : {8u, 16u, 24u, 32u, 40u, 48u})
        found.push_back(part(sms));
    return found;
}

gcx::prepare_params with_progress(std::function<void(uint32_t, uint32_t)> progress,
                                  const gcx::cancel* cancel = nullptr) {
    gcx::prepare_params params;
    params.progress = std::move(progress);
    params.cancel = cancel;
    return params;
}

uint64_t made() {
    return gcx::cache_stats().misses;
}

void open_with_empty_cache() {
    gcx::set_cache_limit(64);
    gcx::trim_cache(0);
}

void cancelled_prepare_stops() {
    open_with_empty_cache();
    const auto all = layouts();
    const uint64_t before = made();
    const gcx::cancel cancel;
    CHECK_THROWS(GCX_ERROR_CANCELLED, gcx::prepare_contexts(all, with_progress(
                                                                     [&](uint32_t done, uint32_t) {
                                                                         if (done == 2)
                                                                             cancel.signal();
                                                                     },
                                                                     &cancel)));
    CHECK(std::string(gcx::last_error_message()).find("2 of 6") != std::string::npos);
    CHECK(made() == before + 2 && gcx::cache_stats().cached == 2);
#ifdef __cpp_lib_jthread
    std::stop_source stop;
    CHECK_THROWS(
        GCX_ERROR_CANCELLED,
        gcx::prepare_contexts(all, stop.get_token(), with_progress([&](uint32_t done, uint32_t) {
                                  if (done == 3)
                                      std::jthread([&] { stop.request_stop(); });
                              })));
    CHECK_EQ(made(), before + 3);
    CHECK_THROWS(GCX_ERROR_CANCELLED, gcx::prepare_contexts(all, stop.get_token()));
    CHECK_THROWS(GCX_ERROR_INVALID_VALUE,
                 gcx::prepare_contexts(all, stop.get_token(), with_progress({}, &cancel)));
    CHECK_EQ(made(), before + 3);
    gcx::prepare_contexts(all, std::stop_token());
    CHECK_EQ(made(), before + 6);
#endif
}

// The exception of a progress callback reaches the caller, and does not pass through C.
void progress_exception_reaches_the_caller() {
    open_with_empty_cache();
    const auto all = layouts();
    const uint64_t before = made();
    const auto caught = [&](const gcx::cancel* cancel) {
        int calls = 0;
        try {
            gcx::prepare_contexts(all, with_progress(
                                           [&](uint32_t done, uint32_t) {
                                               calls++;
                                               if (done == 2)
                                                   throw std::runtime_error("stop here");
                                           },
                                           cancel));
        } catch (const std::runtime_error& error) {
            CHECK_EQ(std::string(error.what()), "stop here");
        }
        return calls;
    };
    CHECK_EQ(caught(nullptr), 2);
    CHECK_EQ(made(), before + 2);
    // The caller's cancel is not signalled by that, since other calls may use it.
    const gcx::cancel cancel;
    CHECK_EQ(caught(&cancel), 2);
    CHECK_EQ(made(), before + 6);
    gcx::prepare_contexts(all, with_progress({}, &cancel));

    // The exception is gcx's error of another call.
    gcx::trim_cache(0);
    CHECK_THROWS(GCX_ERROR_INVALID_DEVICE,
                 gcx::prepare_contexts(
                     all, with_progress([](uint32_t, uint32_t) { (void)gcx::device(7).info(); })));
    CHECK_EQ(made(), before + 7);
}

void kernel_fit_follows_the_stream() {
    const support::GraphKernels kernels;
    auto* const kernel = support::handle_cast<CUkernel>(kernels.library_probe);
    const gcx::lease lease(0, 24);
    gcx::stream stream(lease);
    gcx_kernel_fit fit = stream.kernel_fit(kernels.module_probe, {256});
    CHECK(fit.sm_count == 24 && fit.blocks_per_sm == 8 && fit.max_blocks == 24 * 8);
    CHECK(fit.max_clusters == 0 && fit.max_cluster_blocks == 8);
    // The call uses the lease's SMs at that time.
    lease.resize(64);
    fit = stream.kernel_fit(kernel, {256, 100 << 10});
    CHECK(fit.sm_count == 64 && fit.blocks_per_sm == 0 && fit.max_blocks == 0);
    fit = stream.kernel_fit(kernel, {256, 40 << 10, 4});
    CHECK(fit.blocks_per_sm >= 2 && fit.max_clusters > 0 && fit.max_blocks == 4 * fit.max_clusters);
    CHECK(fit.max_blocks <= 64 * fit.blocks_per_sm);

    CUfunc_st* const no_function = nullptr;
    CHECK_THROWS(GCX_ERROR_INVALID_VALUE, stream.kernel_fit(no_function, {256}));
    CHECK_THROWS(GCX_ERROR_INVALID_VALUE, stream.kernel_fit(kernels.module_probe, {0}));
    CHECK_THROWS(GCX_ERROR_INVALID_VALUE, stream.kernel_fit(kernels.module_probe, {1025}));
    CHECK_THROWS(GCX_ERROR_INVALID_HANDLE,
                 stream.kernel_fit(support::forged<CUfunction>(77), {256}));
    stream.close();
    CHECK_THROWS(GCX_ERROR_INVALID_HANDLE, stream.kernel_fit(kernels.module_probe, {256}));
}

} // namespace

void test_ahead() {
    on_each_driver([] {
        cancelled_prepare_stops();
        progress_exception_reaches_the_caller();
        kernel_fit_follows_the_stream();
    });
}

// Contexts made ahead of time, the limits of what is kept, and what of a kernel fits a stream.
#include "tests.hpp"

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

gcx::prepare_params telling(std::function<void(uint32_t, uint32_t)> progress,
                            const gcx::cancel* cancel = nullptr) {
    gcx::prepare_params params;
    params.progress = std::move(progress);
    params.cancel = cancel;
    return params;
}

uint64_t made() {
    return gcx::cache_stats().misses;
}

void begin_anew() {
    gcx::set_cache_limit(64);
    gcx::trim_cache(0);
}

void prepared_ones_are_kept() {
    begin_anew();
    const auto all = layouts();
    const gcx_cache_stats before = gcx::cache_stats();
    std::vector<uint32_t> told;
    gcx::prepare_contexts(all, telling([&](uint32_t done, uint32_t count) {
                              CHECK_EQ(count, 6u);
                              told.push_back(done);
                              // It may call gcx.
                              CHECK_EQ(gcx::cache_stats().kept, done);
                          }));
    CHECK(told == std::vector<uint32_t>({1, 2, 3, 4, 5, 6}));
    CHECK(made() == before.misses + 6 && gcx::cache_stats().prepared == before.prepared + 6);
    for (const gcx::resource& one : all)
        CHECK(gcx::context(one).info().sm_count >= 8);
    gcx::prepare_contexts(all[0]);
    gcx::prepare_contexts({all[1], all[2]});
    CHECK_EQ(made(), before.misses + 6);

    const gcx_cache_trimmed trimmed = gcx::trim_cache(2);
    CHECK_EQ(trimmed.contexts, 4u);
    CHECK(trimmed.contexts_left == 0 && trimmed.streams_left == 0);
    CHECK_EQ(gcx::cache_stats().kept, 2u);
    // Those that were used last.
    gcx::prepare_contexts({all[1], all[2]});
    CHECK_EQ(made(), before.misses + 6);
}

void for_leases() {
    begin_anew();
    gcx::prepare_params params;
    params.flags = gcx::prepare_flags::for_leases;
    gcx::prepare_contexts({part(24), part(40)}, params);
    const uint64_t before = made();
    const gcx::lease lease(0, 24);
    const gcx::stream stream(lease);
    stream.native();
    lease.resize(40);
    stream.native();
    CHECK_EQ(made(), before);
}

void the_rest_is_given_up() {
    begin_anew();
    const auto all = layouts();
    const uint64_t before = made();
    const gcx::cancel cancel;
    CHECK_THROWS(GCX_ERROR_NOT_PERMITTED,
                 gcx::prepare_contexts(all, telling(
                                                [&](uint32_t done, uint32_t) {
                                                    if (done == 2)
                                                        cancel.signal();
                                                },
                                                &cancel)));
    CHECK(std::string(gcx::last_error_message()).find("2 of 6") != std::string::npos);
    CHECK(made() == before + 2 && gcx::cache_stats().kept == 2);
#ifdef __cpp_lib_jthread
    std::stop_source stop;
    CHECK_THROWS(GCX_ERROR_NOT_PERMITTED,
                 gcx::prepare_contexts(all, stop.get_token(), telling([&](uint32_t done, uint32_t) {
                                           if (done == 3)
                                               std::jthread([&] { stop.request_stop(); });
                                       })));
    CHECK_EQ(made(), before + 3);
    CHECK_THROWS(GCX_ERROR_NOT_PERMITTED, gcx::prepare_contexts(all, stop.get_token()));
    CHECK_THROWS(GCX_ERROR_INVALID_VALUE,
                 gcx::prepare_contexts(all, stop.get_token(), telling({}, &cancel)));
    CHECK_EQ(made(), before + 3);
    gcx::prepare_contexts(all, std::stop_token());
    CHECK_EQ(made(), before + 6);
#endif
}

// What progress throws comes out, and nothing goes through C.
void progress_throws() {
    begin_anew();
    const auto all = layouts();
    const uint64_t before = made();
    const auto caught = [&](const gcx::cancel* cancel) {
        int told = 0;
        try {
            gcx::prepare_contexts(all, telling(
                                           [&](uint32_t done, uint32_t) {
                                               told++;
                                               if (done == 2)
                                                   throw std::runtime_error("of its own");
                                           },
                                           cancel));
        } catch (const std::runtime_error& error) {
            CHECK_EQ(std::string(error.what()), "of its own");
        }
        return told;
    };
    CHECK_EQ(caught(nullptr), 2);
    CHECK_EQ(made(), before + 2);
    // A cancel of ours is not signalled for that: it may be others' too.
    const gcx::cancel cancel;
    CHECK_EQ(caught(&cancel), 2);
    CHECK_EQ(made(), before + 6);
    gcx::prepare_contexts(all, telling({}, &cancel));

    // An error of gcx's, of another call.
    gcx::trim_cache(0);
    CHECK_THROWS(GCX_ERROR_INVALID_DEVICE,
                 gcx::prepare_contexts(
                     all, telling([](uint32_t, uint32_t) { (void)gcx::device(7).info(); })));
    CHECK_EQ(made(), before + 7);
}

void limits() {
    begin_anew();
    const auto all = layouts();
    gcx::set_cache_limit(5);
    const uint64_t before = made();
    CHECK_THROWS(GCX_ERROR_INVALID_VALUE, gcx::prepare_contexts(all));
    CHECK_EQ(made(), before);
    gcx::set_cache_limit(64);
    gcx::prepare_contexts(all);
    gcx::set_cache_limit(2);
    CHECK_EQ(gcx::cache_stats().kept, 2u);
    gcx::set_cache_limit(0);
    CHECK_EQ(gcx::cache_stats().kept, 0u);
}

void wrong_ones() {
    begin_anew();
    const uint64_t before = made();
    CHECK_THROWS(GCX_ERROR_INVALID_VALUE, gcx::prepare_contexts({}));
    CHECK_THROWS(GCX_ERROR_INVALID_VALUE, gcx::prepare_contexts(std::vector<gcx::resource>()));
    CHECK_THROWS(GCX_ERROR_INVALID_RESOURCE_TYPE, gcx::prepare_contexts(gcx::resource()));
    gcx::prepare_params params;
    params.flags = static_cast<gcx::prepare_flags>(0x80);
    CHECK_THROWS(GCX_ERROR_INVALID_VALUE, gcx::prepare_contexts(part(8), params));
    gcx::cancel cancel;
    cancel.close();
    CHECK_THROWS(GCX_ERROR_INVALID_HANDLE, gcx::prepare_contexts(part(8), telling({}, &cancel)));
    CHECK_EQ(made(), before);
}

// One thread makes ahead what others use, trim and limit.
void prepared_in_threads() {
    begin_anew();
    const auto all = layouts();
    std::atomic<bool> stop{false};
    std::atomic<int> wrong{0};
    std::thread user([&] {
        for (std::size_t i = 0; !stop; i++) {
            const gcx::context context(all[i % all.size()]);
            if (gcx::stream(context).sm_count() != 8 * (i % all.size() + 1))
                wrong++;
        }
    });
    std::thread trimmer([&] {
        while (!stop) {
            gcx::trim_cache(1);
            gcx::set_cache_limit(64);
        }
    });
    for (int round = 0; round < 30; round++) {
        uint32_t last = 0;
        gcx::prepare_contexts(
            all, telling([&](uint32_t done, uint32_t) { last = done > last ? done : 99; }));
        if (last != 6)
            wrong++;
    }
    stop = true;
    user.join();
    trimmer.join();
    CHECK_EQ(wrong.load(), 0);
}

struct Kernel {
    Kernel() {
        CHECK_EQ(NATIVE(cuDevicePrimaryCtxRetain)(&primary, 0), CUDA_SUCCESS);
        CHECK_EQ(NATIVE(cuCtxPushCurrent)(primary), CUDA_SUCCESS);
        const char* const code = ".version 6.3\n.target sm_70\n.address_size 64\n"
                                 ".visible .entry gcx_spin(.param .u64 nanoseconds)\n{ ret; }\n";
        CHECK_EQ(
            NATIVE(cuLibraryLoadData)(&library, code, nullptr, nullptr, 0, nullptr, nullptr, 0),
            CUDA_SUCCESS);
        CHECK_EQ(NATIVE(cuLibraryGetKernel)(&kernel, library, "gcx_spin"), CUDA_SUCCESS);
        CHECK_EQ(NATIVE(cuKernelGetFunction)(&function, kernel), CUDA_SUCCESS);
    }
    ~Kernel() {
        CUcontext popped = nullptr;
        CHECK_EQ(NATIVE(cuLibraryUnload)(library), CUDA_SUCCESS);
        CHECK_EQ(NATIVE(cuCtxPopCurrent)(&popped), CUDA_SUCCESS);
        CHECK_EQ(NATIVE(cuDevicePrimaryCtxRelease)(0), CUDA_SUCCESS);
    }
    Kernel(const Kernel&) = delete;
    Kernel& operator=(const Kernel&) = delete;

    CUcontext primary = nullptr;
    CUlibrary library = nullptr;
    CUkernel kernel = nullptr;
    CUfunction function = nullptr;
};

void what_fits() {
    const Kernel kernel;
    const gcx::lease lease(0, 24);
    gcx::stream stream(lease);
    gcx_kernel_fit fit = stream.kernel_fit(kernel.function, {256});
    CHECK(fit.sm_count == 24 && fit.blocks_per_sm == 8 && fit.max_blocks == 24 * 8);
    CHECK(fit.max_clusters == 0 && fit.max_cluster_blocks == 8);
    // Of the SMs that the lease has at that call.
    lease.resize(64);
    fit = stream.kernel_fit(kernel.kernel, {256, 100 << 10});
    CHECK(fit.sm_count == 64 && fit.blocks_per_sm == 0 && fit.max_blocks == 0);
    fit = stream.kernel_fit(kernel.kernel, {256, 40 << 10, 4});
    CHECK(fit.blocks_per_sm >= 2 && fit.max_clusters > 0 && fit.max_blocks == 4 * fit.max_clusters);
    CHECK(fit.max_blocks <= 64 * fit.blocks_per_sm);

    CUfunc_st* const no_function = nullptr;
    CHECK_THROWS(GCX_ERROR_INVALID_VALUE, stream.kernel_fit(no_function, {256}));
    CHECK_THROWS(GCX_ERROR_INVALID_VALUE, stream.kernel_fit(kernel.function, {0}));
    CHECK_THROWS(GCX_ERROR_INVALID_VALUE, stream.kernel_fit(kernel.function, {1025}));
    CHECK_THROWS(GCX_ERROR_INVALID_HANDLE,
                 stream.kernel_fit(support::forged<CUfunction>(77), {256}));
    stream.close();
    CHECK_THROWS(GCX_ERROR_INVALID_HANDLE, stream.kernel_fit(kernel.function, {256}));
}

} // namespace

void test_ahead() {
    on_each_driver([] {
        prepared_ones_are_kept();
        for_leases();
        the_rest_is_given_up();
        progress_throws();
        limits();
        wrong_ones();
        prepared_in_threads();
        what_fits();
    });
}

// Tests prepared contexts on a real GPU: the memory of each, what trimming releases, that memory
// stays flat over thousands of changes, and that a reported fit can be launched.

#include "fixture.hpp"
#include "tests.hpp"

#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <random>

using namespace fixture;

namespace {

constexpr unsigned kSizesSeed = 20261122;
constexpr double kMebibyte = 1 << 20;

gcx_cache_stats cache_stats() {
    gcx_cache_stats stats = GCX_CACHE_STATS_INIT;
    CHECK_OK(gcx_cache_get_stats(&stats));
    return stats;
}

// Returns the resident pages of the process.
long host_pages() {
    std::ifstream file("/proc/self/statm");
    long size = 0;
    long resident = 0;
    file >> size >> resident;
    return resident;
}

// Returns sets that no other part of the suite uses.
std::vector<gcx_resource> layouts() {
    const gcx_resource whole = whole_device();
    std::vector<gcx_resource> found;
    for (uint32_t first = 1; first <= 8; first++) {
        gcx_resource set = atom_of(whole, first);
        for (uint32_t atom = first + 2; atom < 15; atom += first + 1) {
            const gcx_resource next = atom_of(whole, atom);
            CHECK_OK(gcx_resource_union(&set, &next, &set));
        }
        found.push_back(set);
    }
    return found;
}

void on_progress(uint32_t done, uint32_t count, void* user_data) {
    auto& free = *static_cast<std::vector<uint64_t>*>(user_data);
    CHECK_EQ(free.size(), done);
    CHECK_EQ(count, 8U);
    free.push_back(free_memory());
}

void prepared_and_measured() {
    const std::vector<gcx_resource> sets = layouts();
    CHECK_OK(gcx_cache_trim(0, nullptr)); // so that none is evicted for these
    std::vector<uint64_t> free = {free_memory()};
    const gcx_cache_stats before = cache_stats();
    gcx_prepare_params params = GCX_PREPARE_PARAMS_INIT;
    params.progress = on_progress;
    params.user_data = &free;
    CHECK_OK(gcx_cache_prepare(sets.data(), 8, &params));
    const gcx_cache_stats after = cache_stats();
    CHECK_EQ(after.prepared, before.prepared + 8);
    for (std::size_t i = 0; i < sets.size(); i++) {
        gcx_context context = nullptr;
        gcx_context_info info = GCX_CONTEXT_INFO_INIT;
        CHECK_OK(gcx_context_create(&sets[i], 1, nullptr, &context));
        CHECK_OK(gcx_context_get_info(context, &info));
        const auto bytes = static_cast<int64_t>(free[i] - free[i + 1]);
        std::printf("   %3u SMs: bytes %.2f MiB\n", info.sm_count,
                    static_cast<double>(bytes) / kMebibyte);
        CHECK(bytes <= 64LL << 20);
        CHECK_OK(gcx_context_destroy(context));
    }
    CHECK_EQ(cache_stats().misses, before.misses + 8);
    std::printf("   8 contexts: %.2f MiB, %.2f ms in the driver, the longest ever %.2f\n",
                static_cast<double>(free.front() - free.back()) / kMebibyte,
                static_cast<double>(after.creation_ns - before.creation_ns) / 1e6,
                static_cast<double>(after.longest_creation_ns) / 1e6);
}

void trimmed() {
    for (const gcx_resource& set : layouts()) {
        std::vector<gcx_stream> streams(16);
        gcx_context context = nullptr;
        CHECK_OK(gcx_context_create(&set, 1, nullptr, &context));
        for (gcx_stream& stream : streams)
            CHECK_OK(gcx_stream_create(context, nullptr, &stream));
        for (gcx_stream stream : streams)
            CHECK_OK(gcx_stream_destroy(stream));
        CHECK_OK(gcx_context_destroy(context));
    }
    const gcx_cache_stats before = cache_stats();
    CHECK(before.cached >= 8 && before.cached_streams >= 128);
    gcx_cache_trimmed streams = GCX_CACHE_TRIMMED_INIT;
    CHECK_OK(gcx_cache_trim(before.cached, &streams));
    CHECK_EQ(streams.contexts, 0U);
    CHECK_EQ(streams.streams, before.cached_streams);
    CHECK_EQ(cache_stats().cached_streams, 0U);
    gcx_cache_trimmed contexts = GCX_CACHE_TRIMMED_INIT;
    CHECK_OK(gcx_cache_trim(0, &contexts));
    CHECK_EQ(contexts.contexts, before.cached);
    CHECK_EQ(contexts.contexts_left + contexts.streams_left + streams.streams_left, 0U);
    CHECK_EQ(cache_stats().cached, 0U);
    std::printf("   %u streams released %.2f MiB, %u contexts %.2f\n", streams.streams,
                static_cast<double>(streams.bytes) / kMebibyte, contexts.contexts,
                static_cast<double>(contexts.bytes) / kMebibyte);
}

gcx_kernel_fit fit_of(gcx_stream stream, CUfunction function, uint32_t threads, uint32_t shared,
                      uint32_t cluster) {
    gcx_kernel_fit_params params = GCX_KERNEL_FIT_PARAMS_INIT;
    params.block_threads = threads;
    params.dynamic_shared_bytes = shared;
    params.cluster_blocks = cluster;
    gcx_kernel_fit fit = GCX_KERNEL_FIT_INIT;
    CHECK_OK(gcx_stream_get_kernel_fit(stream, function, &params, &fit));
    return fit;
}

void what_fits(gcx_stream stream, uint32_t sms) {
    CUstream native = gcx_stream_native(stream);
    for (const uint32_t threads : {32U, 96U, 256U, 1024U}) {
        for (const uint32_t shared : {0U, 10'000U, 48'000U}) {
            for (CUfunction function : {raw::empty_function(), raw::empty_kernel()}) {
                const gcx_kernel_fit fit = fit_of(stream, function, threads, shared, 0);
                CHECK_EQ(fit.sm_count, sms);
                CHECK_EQ(static_cast<int>(fit.blocks_per_sm),
                         raw::blocks_per_sm(function, threads, shared));
                CHECK_EQ(fit.max_blocks, sms * fit.blocks_per_sm);
            }
            const uint32_t most =
                fit_of(stream, raw::empty_function(), threads, shared, 0).max_blocks;
            CHECK_EQ(raw::launch_cooperative(native, most, threads, shared), CUDA_SUCCESS);
            CHECK_EQ(raw::launch_cooperative(native, most + 1, threads, shared),
                     CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
        }
    }
    for (const unsigned cluster : {1U, 2U, 4U, 8U, 16U}) {
        const gcx_kernel_fit fit = fit_of(stream, raw::empty_function(), 1024, 0, cluster);
        CHECK_EQ(static_cast<int>(fit.max_clusters), raw::active_clusters(native, cluster));
        CHECK_EQ(static_cast<int>(fit.max_cluster_blocks), raw::max_cluster_size(native));
    }
    // No kernel has so many parameters.
    CHECK_EQ(fit_of(stream, raw::empty_function(), 1024, 0, 64).max_clusters, 0U);
}

void what_fits_everywhere() {
    const Split parts = split(whole_device(), {24, GCX_REST});
    const Partition small(parts.groups[0]);
    const Partition large(parts.groups[1]);
    const Partition fine(split(whole_device(), {10}, GCX_SPLIT_IGNORE_SM_COSCHEDULING).groups[0]);
    what_fits(small.stream, 24);
    what_fits(large.stream, 108);
    what_fits(fine.stream, 10);
    // One stream is of the application, and one follows a lease.
    CUstream plain = nullptr;
    {
        const raw::InPrimary current;
        CHECK_EQ(raw::cuStreamCreate(&plain, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    }
    gcx_stream stream = nullptr;
    CHECK_OK(gcx_stream_from_native(plain, &stream));
    what_fits(stream, 132);
    CHECK_OK(gcx_stream_destroy(stream));
    CHECK_EQ(raw::cuStreamDestroy(plain), CUDA_SUCCESS);
    gcx_lease lease = nullptr;
    CHECK_OK(gcx_lease_acquire(0, 32, nullptr, &lease));
    CHECK_OK(gcx_lease_stream_create(lease, nullptr, &stream));
    what_fits(stream, 32);
    const gcx_lease_size size = {lease, 64, 0};
    CHECK_OK(gcx_lease_resize(&size, 1, GCX_RESIZE_DEFAULT));
    what_fits(stream, 64);
    CHECK_OK(gcx_stream_destroy(stream));
    CHECK_OK(gcx_lease_release(lease));
}

// Two leases share the device in each possible way, again and again.
void changes_keep_memory_flat(uint32_t changes) {
    gcx_lease leases[2] = {};
    gcx_stream streams[2] = {};
    CHECK_OK(gcx_lease_acquire(0, 8, nullptr, &leases[0]));
    CHECK_OK(gcx_lease_acquire(0, GCX_REST, nullptr, &leases[1]));
    for (int i = 0; i < 2; i++)
        CHECK_OK(gcx_lease_stream_create(leases[i], nullptr, &streams[i]));
    const auto sizes = [&](uint32_t sms) {
        return std::vector<gcx_lease_size>{{leases[0], sms, 0}, {leases[1], GCX_REST, 0}};
    };
    const auto change = [&](uint32_t sms) {
        CHECK_OK(gcx_lease_resize(sizes(sms).data(), 2, GCX_RESIZE_DEFAULT));
        for (gcx_stream stream : streams)
            CHECK_EQ(raw::launch_spin(gcx_stream_native(stream), 2000), CUDA_SUCCESS);
    };
    for (uint32_t sms = 8; sms <= 120; sms += 8)
        CHECK_OK(gcx_lease_prepare(sizes(sms).data(), 2));
    std::mt19937 random(kSizesSeed);
    const auto some_change = [&] { change(8 * (1 + static_cast<uint32_t>(random() % 15))); };
    for (uint32_t sms = 8; sms <= 120; sms += 8)
        change(sms);
    for (uint32_t round = 0; round < changes / 10; round++)
        some_change();
    for (gcx_lease lease : leases)
        CHECK_OK(gcx_lease_synchronize(lease));
    const gcx_cache_stats before = cache_stats();
    const uint64_t free_before = free_memory();
    const long pages_before = host_pages();
    for (uint32_t round = 0; round < changes; round++)
        some_change();
    for (gcx_lease lease : leases)
        CHECK_OK(gcx_lease_synchronize(lease));
    const auto lost = static_cast<int64_t>(free_before - free_memory());
    const long pages = host_pages() - pages_before;
    const gcx_cache_stats after = cache_stats();
    std::printf("   %u changes: %" PRId64 " KiB of device memory, %ld pages of the host's, %" PRIu64
                " contexts made, %u streams cached (%u before)\n",
                changes, lost / 1024, pages, after.misses - before.misses, after.cached_streams,
                before.cached_streams);
    CHECK_EQ(after.misses, before.misses);
    CHECK(lost <= 0);
    CHECK(pages <= 256);
    for (gcx_stream stream : streams)
        CHECK_OK(gcx_stream_destroy(stream));
    for (gcx_lease lease : leases)
        CHECK_OK(gcx_lease_release(lease));
}

} // namespace

void test_prepared(bool quick) {
    section("prepared contexts and their memory");
    prepared_and_measured();
    section("what trimming releases");
    trimmed();
    section("what of a kernel fits");
    what_fits_everywhere();
    section("memory over 10,000 changes of leases");
    changes_keep_memory_flat(quick ? 200 : 10'000);
}

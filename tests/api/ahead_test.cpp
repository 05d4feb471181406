// Contexts made ahead of time, what they hold, the limits of what is kept, and trimming.

#include "support.hpp"
#include "work.hpp"

#include <atomic>
#include <cstddef>
#include <functional>
#include <thread>

using namespace support;

namespace {

constexpr uint64_t kMebibyte = 1 << 20;

// One for each size: the first atoms.
std::vector<gcx_resource> sets(const std::vector<uint32_t>& sizes, int32_t device = 0) {
    std::vector<gcx_resource> found;
    for (const uint32_t size : sizes)
        found.push_back(split(whole_device(device), {size}).groups[0]);
    return found;
}

const std::vector<uint32_t> kLayouts = {8, 16, 24, 32, 40, 48, 56, 64};

struct Progress {
    std::vector<uint32_t> done;
    std::function<void(uint32_t)> at;
};

void on_progress(uint32_t done, uint32_t count, void* user_data) {
    auto& progress = *static_cast<Progress*>(user_data);
    CHECK(done >= 1 && done <= count);
    progress.done.push_back(done);
    if (progress.at)
        progress.at(done);
}

gcx_result prepare(const std::vector<gcx_resource>& resources, Progress* progress = nullptr,
                   gcx_cancel cancel = nullptr, uint32_t flags = 0) {
    gcx_prepare_params params = GCX_PREPARE_PARAMS_INIT;
    params.flags = flags;
    params.cancel = cancel;
    params.progress = progress != nullptr ? on_progress : nullptr;
    params.user_data = progress;
    return gcx_cache_prepare(resources.data(), static_cast<uint32_t>(resources.size()), &params);
}

uint64_t made() {
    return sim::calls("cuGreenCtxCreate");
}

gcx_context make_context(const gcx_resource& resource) {
    gcx_context context = nullptr;
    CHECK_OK(gcx_context_create(&resource, 1, nullptr, &context));
    return context;
}

gcx_lease acquire(uint32_t sm_count) {
    gcx_lease lease = nullptr;
    CHECK_OK(gcx_lease_acquire(0, sm_count, nullptr, &lease));
    return lease;
}

gcx_cache_trimmed trim(uint32_t keep) {
    gcx_cache_trimmed trimmed = GCX_CACHE_TRIMMED_INIT;
    CHECK_OK(gcx_cache_trim(keep, &trimmed));
    return trimmed;
}

void prepared_ones_are_kept() {
    const auto layouts = sets(kLayouts);
    Progress progress;
    CHECK_OK(prepare(layouts, &progress));
    CHECK(progress.done == std::vector<uint32_t>({1, 2, 3, 4, 5, 6, 7, 8}));
    CHECK_EQ(made(), 8U);
    gcx_cache_stats stats = cache_stats();
    CHECK_EQ(stats.prepared, 8U);
    CHECK_EQ(stats.misses, 8U);
    CHECK_EQ(stats.hits, 0U);
    CHECK_EQ(stats.kept, 8U);
    CHECK_EQ(stats.in_use, 0U);
    CHECK(stats.making_ns >= stats.longest_making_ns && stats.longest_making_ns > 0);
    for (const gcx_resource& layout : layouts)
        CHECK_OK(gcx_context_destroy(make_context(layout)));
    CHECK_EQ(made(), 8U);
    CHECK_EQ(cache_stats().hits, 8U);
    // Again: they are there, in use or not.
    const gcx_context used = make_context(layouts[3]);
    CHECK_OK(prepare(layouts, &progress));
    CHECK_EQ(progress.done.size(), 16U);
    CHECK_EQ(made(), 8U);
    CHECK_EQ(cache_stats().prepared, 8U);
    CHECK_OK(gcx_context_destroy(used));
    CHECK_OK(gcx_cache_prepare(layouts.data(), 8, nullptr));
    CHECK_EQ(made(), 8U);
}

// From 13.1 on they have workqueues of their own.
void leases_find_theirs() {
    CHECK_OK(prepare(sets({24, 40}), nullptr, nullptr, GCX_PREPARE_FOR_LEASES));
    const uint64_t before = made();
    gcx_lease lease = acquire(24);
    CHECK_EQ(made(), before);
    gcx_lease_size size = {lease, 40, 0};
    CHECK_OK(gcx_lease_resize(&size, 1, 0));
    CHECK_EQ(made(), before);
    size.sm_count = 64;
    CHECK_OK(gcx_lease_prepare(&size, 1));
    CHECK_EQ(made(), before + 1);
    CHECK_EQ(cache_stats().prepared, 3U);
    CHECK_OK(gcx_lease_resize(&size, 1, 0));
    CHECK_EQ(made(), before + 1);
    CHECK_OK(gcx_lease_release(lease));
}

void given_up_in_between() {
    const auto layouts = sets(kLayouts);
    gcx_cancel cancel = nullptr;
    CHECK_OK(gcx_cancel_create(&cancel));
    Progress progress;
    progress.at = [&](uint32_t done) {
        if (done == 3)
            CHECK_OK(gcx_cancel_signal(cancel));
    };
    CHECK_REFUSED(prepare(layouts, &progress, cancel), GCX_ERROR_NOT_PERMITTED);
    CHECK(message_has("3 of 8"));
    CHECK_EQ(made(), 3U);
    CHECK_EQ(cache_stats().kept, 3U);
    // For good.
    CHECK_REFUSED(prepare(layouts, &progress, cancel), GCX_ERROR_NOT_PERMITTED);
    CHECK(message_has("0 of 8"));
    CHECK_OK(gcx_cancel_destroy(cancel));
    CHECK_REFUSED(prepare(layouts, &progress, cancel), GCX_ERROR_INVALID_HANDLE);
    CHECK_EQ(progress.done.size(), 3U);
    // After the last there is nothing to give up, and a handle may go while it is used.
    CHECK_OK(gcx_cancel_create(&cancel));
    progress.at = [&](uint32_t done) {
        if (done == 1)
            CHECK_OK(gcx_cancel_destroy(cancel));
    };
    CHECK_OK(prepare(layouts, &progress, cancel));
    CHECK_OK(gcx_cancel_create(&cancel));
    progress.at = [&](uint32_t done) {
        if (done == 8)
            CHECK_OK(gcx_cancel_signal(cancel));
    };
    CHECK_OK(prepare(layouts, &progress, cancel));
    CHECK_OK(gcx_cancel_destroy(cancel));
}

void given_up_by_another_thread() {
    gcx_cancel cancel = nullptr;
    CHECK_OK(gcx_cancel_create(&cancel));
    Progress progress;
    progress.at = [&](uint32_t done) {
        if (done == 5)
            std::thread([&] { CHECK_OK(gcx_cancel_signal(cancel)); }).join();
    };
    CHECK_REFUSED(prepare(sets(kLayouts), &progress, cancel), GCX_ERROR_NOT_PERMITTED);
    CHECK_EQ(cache_stats().kept, 5U);
    CHECK_OK(gcx_cancel_destroy(cancel));
}

// No lock is held: also other threads go on meanwhile.
void progress_may_call_gcx() {
    const auto layouts = sets(kLayouts);
    gcx_lease lease = acquire(120);
    Progress progress;
    progress.at = [&](uint32_t done) {
        const gcx_context context = make_context(layouts[done - 1]);
        CHECK_OK(gcx_context_destroy(context));
        CHECK_OK(prepare({layouts[7]}));
        std::thread([&] {
            const gcx_lease_size size = {lease, done % 2 == 0 ? 120U : 64U, 0};
            CHECK_OK(gcx_lease_resize(&size, 1, 0));
            const uint32_t kept = cache_stats().kept;
            CHECK(kept > done || done > 4); // also the last one
            if (done == 4)
                CHECK_EQ(trim(0).contexts, kept);
        }).join();
    };
    CHECK_OK(prepare(layouts, &progress));
    CHECK_EQ(progress.done.size(), 8U);
    CHECK_OK(gcx_lease_release(lease));
}

void the_limits_are_asked_first() {
    const auto layouts = sets(kLayouts);
    CHECK_OK(gcx_cache_set_limit(7));
    CHECK_REFUSED(prepare(layouts), GCX_ERROR_INVALID_VALUE);
    CHECK(message_has("8 sets") && message_has("limit of kept contexts is 7"));
    CHECK_EQ(made(), 0U);
    // One that is in use needs no room, and what is there twice only one.
    const gcx_context used = make_context(layouts[0]);
    CHECK_OK(prepare(layouts));
    CHECK_OK(gcx_cache_set_limit(2));
    CHECK_OK(prepare({layouts[1], layouts[2], layouts[1], layouts[0]}));
    CHECK_OK(gcx_context_destroy(used));
    CHECK_OK(gcx_cache_set_limit(0));
    CHECK_REFUSED(prepare({layouts[1]}), GCX_ERROR_INVALID_VALUE);
    CHECK_EQ(cache_stats().kept, 0U);
    // By memory.
    CHECK_OK(gcx_cache_set_limit(64));
    CHECK_OK(gcx_cache_set_memory_limit(20 * kMebibyte));
    const uint64_t before = made();
    CHECK_REFUSED(prepare(layouts), GCX_ERROR_INVALID_VALUE);
    CHECK(message_has("20.0 MiB") && message_has("device 0"));
    CHECK_EQ(made(), before);
    CHECK_OK(prepare({layouts[0], layouts[1]}));
    // A lease's layouts too.
    gcx_lease lease = acquire(8);
    const gcx_lease_size size = {lease, 48, 0};
    CHECK_OK(gcx_cache_set_memory_limit(kMebibyte));
    CHECK_REFUSED(gcx_lease_prepare(&size, 1), GCX_ERROR_INVALID_VALUE);
    CHECK_OK(gcx_lease_release(lease));
}

void what_can_t_be_prepared() {
    const auto layouts = sets({8});
    const gcx_resource whole = whole_device();
    gcx_resource none{};
    CHECK_OK(gcx_resource_subtract(&whole, &whole, &none));
    Progress progress;
    CHECK_REFUSED(gcx_cache_prepare(layouts.data(), 0, nullptr), GCX_ERROR_INVALID_VALUE);
    CHECK_REFUSED(gcx_cache_prepare(nullptr, 1, nullptr), GCX_ERROR_INVALID_VALUE);
    CHECK_REFUSED(prepare(layouts, &progress, nullptr, 2), GCX_ERROR_INVALID_VALUE);
    CHECK_REFUSED(prepare({layouts[0], none}, &progress), GCX_ERROR_INVALID_RESOURCE_CONFIGURATION);
    CHECK_REFUSED(prepare({layouts[0], gcx_resource{}}, &progress),
                  GCX_ERROR_INVALID_RESOURCE_TYPE);
    gcx_resource damaged = layouts[0];
    damaged.opaque[3] ^= 4;
    CHECK_REFUSED(prepare({layouts[0], damaged}, &progress),
                  GCX_ERROR_INVALID_RESOURCE_CONFIGURATION);
    gcx_resource queue{};
    if (gcx_device_get_resource(0, GCX_RESOURCE_WORKQUEUE_CONFIG, &queue) == GCX_SUCCESS)
        CHECK_REFUSED(prepare({layouts[0], queue}, &progress), GCX_ERROR_INVALID_RESOURCE_TYPE);
    for (const uint32_t size : {0U, 8U, static_cast<uint32_t>(sizeof(gcx_prepare_params)) + 8U}) {
        gcx_prepare_params params{};
        params.struct_size = size;
        CHECK_REFUSED(gcx_cache_prepare(layouts.data(), 1, &params), GCX_ERROR_INVALID_VALUE);
    }
    CHECK_REFUSED(prepare(layouts, &progress, forged<gcx_cancel>(77)), GCX_ERROR_INVALID_HANDLE);
    gcx_cache_trimmed trimmed{};
    CHECK_REFUSED(gcx_cache_trim(0, &trimmed), GCX_ERROR_INVALID_VALUE);
    CHECK_EQ(made(), 0U);
    CHECK(progress.done.empty());
}

// The simulated driver takes 4 MiB for each, and 1.5 MiB more unless it has them from one before.
void what_they_hold() {
    gcx_event primary = nullptr; // holds the primary context, which takes more
    CHECK_OK(gcx_event_create(0, 0, &primary));
    const uint64_t before = sim::counts().device_bytes_used;
    const auto layouts = sets(kLayouts);
    CHECK_OK(prepare(layouts));
    CHECK_EQ(cache_stats().bytes_kept, sim::counts().device_bytes_used - before);
    CHECK_EQ(cache_stats().bytes_kept, 44 * kMebibyte);
    const gcx_context context = make_context(layouts[2]);
    gcx_context_info info = GCX_CONTEXT_INFO_INIT;
    CHECK_OK(gcx_context_get_info(context, &info));
    CHECK_EQ(info.bytes, 11 * kMebibyte / 2);
    gcx_live_context live{};
    uint32_t count = 0;
    CHECK_OK(gcx_context_list(0, &live, 1, &count));
    CHECK_EQ(live.bytes, info.bytes);
    CHECK_EQ(cache_stats().bytes_in_use, info.bytes);
    CHECK_EQ(cache_stats().bytes_kept, 7 * info.bytes);
    // One that takes over what another left.
    CHECK_EQ(trim(0).contexts, 7U);
    const gcx_context next = make_context(layouts[0]);
    CHECK_OK(gcx_context_get_info(next, &info));
    CHECK_EQ(info.bytes, 4 * kMebibyte);
    for (const gcx_context one : {context, next})
        CHECK_OK(gcx_context_destroy(one));
    CHECK_OK(gcx_event_destroy(primary));
}

// Programs that were built with gcx 0.1.
void structs_of_before() {
    const gcx_context context = make_context(sets({24})[0]);
    gcx_context_info info;
    std::memset(&info, 0x77, sizeof info);
    info.struct_size = offsetof(gcx_context_info, bytes);
    CHECK_OK(gcx_context_get_info(context, &info));
    CHECK_EQ(info.sm_count, 24U);
    CHECK_EQ(info.struct_size, 24U);
    CHECK_EQ(info.bytes, 0x7777777777777777U);
    gcx_cache_stats stats;
    std::memset(&stats, 0x77, sizeof stats);
    stats.struct_size = offsetof(gcx_cache_stats, prepared);
    CHECK_OK(gcx_cache_get_stats(&stats));
    CHECK_EQ(stats.misses, 1U);
    CHECK_EQ(stats.struct_size, 48U);
    CHECK_EQ(stats.prepared, 0x7777777777777777U);
    CHECK_EQ(stats.kept_streams, 0x77777777U);
    CHECK_OK(gcx_context_destroy(context));
}

void the_longest_unused_go_first() {
    const auto layouts = sets(kLayouts);
    CHECK_OK(prepare(layouts));
    CHECK_OK(gcx_context_destroy(make_context(layouts[0])));
    CHECK_OK(prepare({layouts[1]})); // counts as used too
    CHECK_EQ(cache_stats().memory_limit, UINT64_MAX);
    CHECK_OK(gcx_cache_set_memory_limit(17 * kMebibyte));
    gcx_cache_stats stats = cache_stats();
    CHECK_EQ(stats.kept, 3U);
    CHECK_EQ(stats.evicted, 5U);
    CHECK_EQ(stats.memory_limit, 17 * kMebibyte);
    const uint64_t before = made();
    for (const std::size_t i : {7U, 0U, 1U})
        CHECK_OK(gcx_context_destroy(make_context(layouts[i])));
    CHECK_EQ(made(), before);
    // The limit holds for what is given up later.
    CHECK_OK(gcx_context_destroy(make_context(layouts[4])));
    CHECK(cache_stats().bytes_kept <= 17 * kMebibyte);
    CHECK_OK(gcx_cache_set_memory_limit(0));
    CHECK_EQ(cache_stats().kept, 0U);
    const gcx_context used = make_context(layouts[0]);
    CHECK_EQ(cache_stats().in_use, 1U);
    CHECK_OK(gcx_context_destroy(used));
    CHECK_EQ(cache_stats().kept, 0U);
}

// What one device keeps is not on another's account.
void a_memory_limit_is_of_each_device() {
    CHECK_OK(prepare(sets({8, 16, 24}, 0)));
    CHECK_OK(prepare(sets({8, 16, 24}, 1)));
    CHECK_OK(gcx_cache_set_memory_limit(12 * kMebibyte));
    CHECK_EQ(cache_stats().kept, 4U);
    CHECK_OK(prepare(sets({16, 24}, 0)));
    CHECK_OK(prepare(sets({16, 24}, 1)));
    CHECK_EQ(made(), 6U);
    CHECK_REFUSED(prepare(sets({8, 16, 24}, 1)), GCX_ERROR_INVALID_VALUE);
    CHECK(message_has("device 1"));
}

} // namespace

int main() {
    for (const char* driver : drivers()) {
        const std::string h100 = std::string("h100@") + driver;
        on_machine(h100, prepared_ones_are_kept);
        on_machine(h100, leases_find_theirs);
        on_machine(h100, given_up_in_between);
        on_machine(h100, given_up_by_another_thread);
        on_machine(h100, progress_may_call_gcx);
        on_machine(h100, the_limits_are_asked_first);
        on_machine(h100, what_can_t_be_prepared);
        on_machine(h100, what_they_hold);
        on_machine(h100, structs_of_before);
        on_machine(h100, the_longest_unused_go_first);
        on_machine("2x" + h100, a_memory_limit_is_of_each_device);
    }
    return support::summary("ahead");
}

// Tests what is cached: contexts that are prepared, the limit of cached contexts, trimming, and
// destroyed streams, which are cached with their context for the next caller. threads_test.cpp and
// lease_storm_test.cpp trim while other threads use the cache.

#include "leases.hpp"
#include "work.hpp"

#include <array>
#include <functional>
#include <thread>

using namespace support;

namespace {

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

void prepared_contexts_are_cached() {
    const auto layouts = sets(kLayouts);
    Progress progress;
    CHECK_OK(prepare(layouts, &progress));
    CHECK(progress.done == std::vector<uint32_t>({1, 2, 3, 4, 5, 6, 7, 8}));
    CHECK_EQ(made(), 8U);
    gcx_cache_stats stats = cache_stats();
    CHECK_EQ(stats.prepared, 8U);
    CHECK_EQ(stats.misses, 8U);
    CHECK_EQ(stats.hits, 0U);
    CHECK_EQ(stats.cached, 8U);
    CHECK_EQ(stats.in_use, 0U);
    CHECK(stats.creation_ns >= stats.longest_creation_ns && stats.longest_creation_ns > 0);
    for (const gcx_resource& layout : layouts)
        CHECK_OK(gcx_context_destroy(make_context(layout)));
    CHECK_EQ(made(), 8U);
    CHECK_EQ(cache_stats().hits, 8U);
    // Preparing them again creates nothing, whether they are in use or not.
    const gcx_context used = make_context(layouts[3]);
    CHECK_OK(prepare(layouts, &progress));
    CHECK_EQ(progress.done.size(), 16U);
    CHECK_EQ(made(), 8U);
    CHECK_EQ(cache_stats().prepared, 8U);
    CHECK_OK(gcx_context_destroy(used));
    CHECK_OK(gcx_cache_prepare(layouts.data(), 8, nullptr));
    CHECK_EQ(made(), 8U);
}

// From 13.1 on, contexts for leases have private workqueues.
void leases_use_prepared_contexts() {
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

void prepare_cancelled_by_progress_stops() {
    const auto layouts = sets(kLayouts);
    gcx_cancel cancel = make_cancel();
    Progress progress;
    progress.at = [&](uint32_t done) {
        if (done == 3)
            std::thread([&] { CHECK_OK(gcx_cancel_signal(cancel)); }).join();
    };
    CHECK_REFUSED(prepare(layouts, &progress, cancel), GCX_ERROR_CANCELLED);
    CHECK(message_has("3 of 8"));
    CHECK_EQ(made(), 3U);
    CHECK_EQ(cache_stats().cached, 3U);
    // The signal is permanent.
    CHECK_REFUSED(prepare(layouts, &progress, cancel), GCX_ERROR_CANCELLED);
    CHECK(message_has("0 of 8"));
    CHECK_OK(gcx_cancel_destroy(cancel));
    CHECK_REFUSED(prepare(layouts, &progress, cancel), GCX_ERROR_INVALID_HANDLE);
    CHECK_EQ(progress.done.size(), 3U);
    // Destroying a cancel after its call has ended, or while it is used, is no error.
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

// gcx holds no lock during the callback, so other threads can call it too.
void progress_may_call_gcx() {
    const auto layouts = sets(kLayouts);
    gcx_lease lease = acquire(120);
    Progress progress;
    progress.at = [&](uint32_t done) {
        const gcx_context context = make_context(layouts[done - 1]);
        CHECK_OK(gcx_context_destroy(context));
        CHECK_OK(prepare({layouts[7]}));
        std::thread([&] {
            CHECK_OK(resize({{lease, done % 2 == 0 ? 120U : 64U, 0}}));
            const uint32_t cached = cache_stats().cached;
            CHECK(cached > done || done > 4); // true after the last one as well
            if (done == 4)
                CHECK_EQ(trim(0).contexts, cached);
        }).join();
    };
    CHECK_OK(prepare(layouts, &progress));
    CHECK_EQ(progress.done.size(), 8U);
    CHECK_OK(gcx_lease_release(lease));
}

void prepare_beyond_the_limit_is_refused() {
    const auto layouts = sets(kLayouts);
    CHECK_OK(gcx_cache_set_limit(7));
    CHECK_REFUSED(prepare(layouts), GCX_ERROR_CACHE_LIMIT_EXCEEDED);
    CHECK(message_has("device 0 would have 8 prepared contexts, it has 0 now"));
    CHECK(message_has("limit of cached contexts is 7"));
    CHECK(message_has("gcx_cache_set_limit") && message_has("gcx_cache_trim"));
    CHECK_EQ(made(), 0U);
    // A context in use returns to the cache, so it counts too. A set that is passed twice counts
    // once.
    const gcx_context used = make_context(layouts[0]);
    CHECK_REFUSED(prepare(layouts), GCX_ERROR_CACHE_LIMIT_EXCEEDED);
    CHECK_EQ(made(), 1U);
    CHECK_OK(gcx_cache_set_limit(3));
    CHECK_OK(prepare({layouts[1], layouts[2], layouts[1], layouts[0]}));
    CHECK_OK(gcx_context_destroy(used));
    CHECK_EQ(cache_stats().cached, 3U);
    CHECK_OK(gcx_cache_set_limit(0));
    CHECK_REFUSED(prepare({layouts[1]}), GCX_ERROR_CACHE_LIMIT_EXCEEDED);
    CHECK_EQ(cache_stats().cached, 0U);
    // A lease's layouts count as well.
    gcx_lease lease = acquire(8);
    const gcx_lease_size size = {lease, 48, 0};
    const uint64_t before = made();
    CHECK_REFUSED(gcx_lease_prepare(&size, 1), GCX_ERROR_CACHE_LIMIT_EXCEEDED);
    CHECK_EQ(made(), before);
    CHECK_OK(gcx_lease_release(lease));
}

void invalid_resources_are_not_prepared() {
    const auto layouts = sets({8});
    const gcx_resource whole = whole_device();
    gcx_resource none = without(whole, whole);
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
    CHECK_REFUSED(prepare(layouts, &progress, forged<gcx_cancel>(77)), GCX_ERROR_INVALID_HANDLE);
    CHECK_EQ(made(), 0U);
    CHECK(progress.done.empty());
}

void limit_holds_for_each_device() {
    CHECK_OK(gcx_cache_set_limit(3));
    for (int32_t device = 0; device < 2; device++) {
        for (const gcx_resource& layout : sets({8, 16, 24, 32}, device))
            CHECK_OK(gcx_context_destroy(make_context(layout)));
    }
    CHECK_EQ(cache_stats().cached, 6U);
    CHECK_OK(gcx_cache_set_limit(0));
    CHECK_OK(gcx_cache_set_limit(3));
    const uint64_t before = made();
    CHECK_OK(prepare(sets({8, 16, 24}, 0)));
    CHECK_OK(prepare(sets({8, 16, 24}, 1)));
    CHECK_EQ(cache_stats().cached, 6U);
    CHECK_REFUSED(prepare(sets({32}, 1)), GCX_ERROR_CACHE_LIMIT_EXCEEDED);
    CHECK(message_has("device 1 would have 4 prepared contexts"));
    CHECK_OK(gcx_cache_set_limit(2));
    CHECK_EQ(cache_stats().cached, 4U);
    CHECK_OK(prepare(sets({16, 24}, 0)));
    CHECK_OK(prepare(sets({16, 24}, 1)));
    CHECK_EQ(made(), before + 6);
}

// With more layouts than the limit, 64 contexts are prepared and stay, and the next call reports
// it.
void prepare_in_a_loop_is_refused_at_the_limit() {
    const gcx_lease first = acquire(24, {.family = GCX_SM_FAMILY_FINE});
    const gcx_lease second = acquire(GCX_REST, {.family = GCX_SM_FAMILY_FINE});
    uint32_t refused_at = 0;
    for (uint32_t sms = 2; sms <= 130 && refused_at == 0; sms += 2) {
        const gcx_lease_size sizes[] = {{first, sms, 0}, {second, GCX_REST, 0}};
        const uint64_t before = made();
        const gcx_result result = gcx_lease_prepare(sizes, 2);
        if (result == GCX_SUCCESS)
            continue;
        refused_at = sms;
        CHECK_REFUSED(result, GCX_ERROR_CACHE_LIMIT_EXCEEDED);
        CHECK(message_has("device 0 would have 66 prepared contexts, it has 64 now"));
        CHECK_EQ(made(), before);
    }
    CHECK_EQ(refused_at, 66U);
    const uint64_t before = made();
    for (uint32_t sms = 2; sms < refused_at; sms += 2) {
        CHECK_OK(resize({{first, sms, 0}, {second, GCX_REST, 0}}));
    }
    CHECK_EQ(made(), before);
    CHECK_EQ(cache_stats().evicted, 0U);
    release_all({}, {first, second});
}

void prepared_contexts_outlast_others() {
    CHECK_OK(gcx_cache_set_limit(4));
    const auto prepared = sets({8, 16, 24});
    CHECK_OK(prepare(prepared));
    CHECK_OK(prepare(prepared)); // the same sets count once
    for (const uint32_t size : {32U, 40U, 48U, 56U, 64U})
        CHECK_OK(gcx_context_destroy(make_context(sets({size})[0])));
    CHECK_EQ(cache_stats().cached, 4U);
    CHECK_EQ(cache_stats().evicted, 4U);
    const uint64_t before = made();
    std::vector<gcx_context> used;
    for (const gcx_resource& layout : prepared)
        used.push_back(make_context(layout));
    CHECK_EQ(made(), before);
    // While the prepared contexts are used, others take their room, and make room again.
    for (const uint32_t size : {72U, 80U, 88U})
        CHECK_OK(gcx_context_destroy(make_context(sets({size})[0])));
    CHECK_EQ(cache_stats().cached, 4U);
    for (const gcx_context context : used)
        CHECK_OK(gcx_context_destroy(context));
    CHECK_EQ(cache_stats().cached, 4U);
    const uint64_t then = made();
    CHECK_OK(prepare(prepared));
    CHECK_EQ(made(), then);
}

void lower_limit_evicts_prepared_contexts_last() {
    const auto layouts = sets(kLayouts);
    CHECK_OK(prepare({layouts[0], layouts[1], layouts[2]}));
    for (const std::size_t i : {3U, 4U, 5U})
        CHECK_OK(gcx_context_destroy(make_context(layouts[i])));
    CHECK_OK(gcx_cache_set_limit(3));
    uint64_t before = made();
    CHECK_OK(prepare({layouts[0], layouts[1], layouts[2]}));
    CHECK_EQ(made(), before);
    // A limit below their number keeps the one used last; the others are no longer prepared.
    const gcx_context used = make_context(layouts[0]);
    CHECK_OK(gcx_cache_set_limit(1));
    CHECK_EQ(cache_stats().cached, 1U);
    CHECK_OK(gcx_cache_set_limit(3));
    CHECK_OK(gcx_context_destroy(used)); // stays prepared
    before = made();
    CHECK_OK(prepare({layouts[3], layouts[4]}));
    CHECK_EQ(made(), before + 2);
    CHECK_REFUSED(prepare({layouts[5]}), GCX_ERROR_CACHE_LIMIT_EXCEEDED);
    CHECK_OK(gcx_context_destroy(make_context(layouts[0])));
    CHECK_EQ(made(), before + 2);
}

void trim_makes_room_for_other_layouts() {
    const auto layouts = sets(kLayouts);
    CHECK_OK(gcx_cache_set_limit(4));
    CHECK_OK(prepare({layouts[0], layouts[1], layouts[2], layouts[3]}));
    CHECK_REFUSED(prepare({layouts[4]}), GCX_ERROR_CACHE_LIMIT_EXCEEDED);
    CHECK_EQ(trim(1).contexts, 3U);
    CHECK_OK(prepare({layouts[4], layouts[5], layouts[6]}));
    CHECK_REFUSED(prepare({layouts[7]}), GCX_ERROR_CACHE_LIMIT_EXCEEDED);
    const uint64_t before = made();
    CHECK_OK(prepare({layouts[3]}));
    CHECK_EQ(made(), before);
}

// If the limit is lowered while contexts are created, the new limit applies.
void limit_lowered_during_prepare_applies() {
    const auto layouts = sets(kLayouts);
    Progress progress;
    progress.at = [&](uint32_t done) {
        if (done == 5)
            CHECK_OK(gcx_cache_set_limit(2));
    };
    CHECK_REFUSED(prepare(layouts, &progress), GCX_ERROR_CACHE_LIMIT_EXCEEDED);
    CHECK_EQ(made(), 5U);
    CHECK_EQ(cache_stats().cached, 2U);
    // Contexts that the call would have created no longer count.
    CHECK_OK(prepare({layouts[3], layouts[4]}));
    CHECK_EQ(made(), 5U);
}

// Contexts that one call is about to create count for a concurrent call.
void concurrent_prepares_keep_to_the_limit() {
    CHECK_OK(gcx_cache_set_limit(8));
    const auto others = sets({48, 56, 64, 72});
    Progress progress;
    progress.at = [&](uint32_t done) {
        if (done != 1)
            return;
        std::thread([&] {
            CHECK_REFUSED(prepare(others), GCX_ERROR_CACHE_LIMIT_EXCEEDED);
            CHECK_OK(prepare({others[0], others[1], others[2]}));
        }).join();
    };
    CHECK_OK(prepare(sets({8, 16, 24, 32, 40}), &progress));
    CHECK_EQ(made(), 8U);
    CHECK_EQ(cache_stats().cached, 8U);
}

// A reset destroys prepared contexts. They no longer count against the limit, and later contexts
// are cached.
void reset_destroys_prepared_contexts() {
    const auto layouts = sets(kLayouts);
    CHECK_OK(gcx_cache_set_limit(3));
    CHECK_OK(prepare({layouts[0], layouts[1], layouts[2]}));
    CHECK_NATIVE(cuDevicePrimaryCtxReset, 0);
    CHECK_OK(gcx_context_destroy(make_context(layouts[3])));
    CHECK_EQ(cache_stats().cached, 1U);
    CHECK_EQ(cache_stats().lost, 3U);
    const uint64_t before = made();
    CHECK_OK(gcx_context_destroy(make_context(layouts[3])));
    CHECK_EQ(made(), before);
    CHECK_OK(prepare({layouts[4], layouts[5], layouts[6]}));
    CHECK_NATIVE(cuDevicePrimaryCtxReset, 0);
    CHECK_OK(prepare({layouts[5], layouts[6], layouts[7]}));
    CHECK_EQ(cache_stats().cached, 3U);
}

void create_and_destroy_streams(gcx_context context, unsigned count) {
    std::vector<gcx_stream> streams(count);
    for (gcx_stream& stream : streams)
        CHECK_OK(gcx_stream_create(context, nullptr, &stream));
    for (gcx_stream stream : streams)
        CHECK_OK(gcx_stream_destroy(stream));
}

void trim_releases_contexts_and_streams() {
    const auto layouts = sets({8, 16, 24, 32});
    CHECK_OK(prepare(layouts));
    for (const std::size_t i : {3U, 0U, 1U, 2U}) {
        const gcx_context context = make_context(layouts[i]);
        create_and_destroy_streams(context, 5);
        CHECK_OK(gcx_context_destroy(context));
    }
    const gcx_context used = make_context(layouts[1]);
    CHECK_EQ(cache_stats().cached_streams, 20U);
    const uint64_t before = sim::counts().device_bytes_used;
    const gcx_cache_trimmed trimmed = trim(1);
    CHECK_EQ(trimmed.contexts, 2U);
    CHECK_EQ(trimmed.streams, 20U);
    CHECK_EQ(trimmed.contexts_left, 0U);
    CHECK_EQ(trimmed.streams_left, 0U);
    CHECK_EQ(trimmed.bytes, before - sim::counts().device_bytes_used);
    CHECK_EQ(sim::counts().green_contexts, 2U);
    CHECK_EQ(sim::counts().streams, 0U);
    const gcx_cache_stats stats = cache_stats();
    CHECK_EQ(stats.cached, 1U);
    CHECK_EQ(stats.cached_streams, 0U);
    CHECK_EQ(stats.evicted, 2U);
    CHECK_EQ(stats.limit, 64U);
    // The context used last stays.
    const uint64_t before_use = made();
    CHECK_OK(gcx_context_destroy(make_context(layouts[2])));
    CHECK_EQ(made(), before_use);
    CHECK_OK(gcx_cache_trim(0, nullptr));
    CHECK_OK(gcx_cache_trim(0, nullptr)); // nothing to do
    CHECK_OK(gcx_context_destroy(used));
    CHECK_EQ(cache_stats().cached, 1U); // cached as before
    CHECK_EQ(trim(0).contexts, 1U);
    CHECK_EQ(sim::counts().green_contexts, 0U);
}

// Contexts that take part in a capture, or have work in flight, stay.
void busy_contexts_are_not_trimmed() {
    const Work work;
    const auto layouts = sets({8, 16});
    const gcx_context first = make_context(layouts[0]);
    gcx_stream capturing = make_stream(first);
    CUstream native = gcx_stream_native(capturing);
    begin_capture(native);
    const gcx_context second = make_context(layouts[1]);
    gcx_stream busy = make_stream(second);
    create_and_destroy_streams(second, 2);
    work.spin(gcx_stream_native(busy), 1'000'000);
    CHECK_OK(gcx_stream_destroy(busy));
    CHECK_OK(gcx_stream_destroy(capturing));
    CHECK_OK(gcx_context_destroy(first));
    const gcx_cache_trimmed trimmed = trim(0);
    CHECK_EQ(trimmed.contexts, 0U);
    CHECK_EQ(trimmed.contexts_left, 1U);
    CHECK_EQ(trimmed.streams_left, 2U);
    CHECK_EQ(trimmed.streams, 2U);
    end_capture(native);
    sim::advance(2'000'000);
    const gcx_cache_trimmed rest = trim(0);
    CHECK_EQ(rest.contexts, 1U);
    CHECK_EQ(rest.streams, 2U);
    CHECK_EQ(rest.contexts_left + rest.streams_left, 0U);
    CHECK_OK(gcx_context_destroy(second));
}

void trim_after_reset_retains_no_context() {
    const auto layouts = sets({8, 16});
    CHECK_OK(prepare(layouts));
    const gcx_context used = make_context(layouts[0]);
    create_and_destroy_streams(used, 2);
    CHECK_NATIVE(cuDevicePrimaryCtxReset, 0);
    const uint64_t destroyed = sim::calls("cuGreenCtxDestroy") + sim::calls("cuStreamDestroy_v2");
    const uint64_t retained = sim::calls("cuDevicePrimaryCtxRetain");
    CHECK_OK(gcx_cache_trim(0, nullptr));
    CHECK_EQ(sim::calls("cuGreenCtxDestroy") + sim::calls("cuStreamDestroy_v2"), destroyed);
    CHECK_EQ(sim::calls("cuDevicePrimaryCtxRetain"), retained); // no new one for that
    CHECK_EQ(cache_stats().lost, 2U);
    CHECK_EQ(cache_stats().evicted, 0U);
    CHECK_OK(prepare(layouts));
    CHECK_EQ(cache_stats().cached, 2U);
    CHECK_OK(gcx_context_destroy(used));
}

// If the driver refuses, the call reports what it released, and the rest can be trimmed later.
void refused_trim_can_be_repeated() {
    const auto layouts = sets({8, 16, 24, 32});
    CHECK_OK(prepare(layouts));
    sim::fail("cuGreenCtxDestroy", 3, CUDA_ERROR_UNKNOWN);
    gcx_cache_trimmed trimmed = GCX_CACHE_TRIMMED_INIT;
    CHECK_REFUSED(gcx_cache_trim(0, &trimmed), GCX_ERROR_UNKNOWN);
    CHECK(message_has("cuGreenCtxDestroy") && message_has("2 contexts"));
    CHECK_EQ(trimmed.contexts, 0U);
    CHECK_EQ(cache_stats().cached, 2U);
    CHECK_EQ(trim(0).contexts, 2U);
    CHECK_EQ(sim::counts().green_contexts, 0U);
}

// Has a context of 24 SMs.
struct Bench {
    gcx_context context = nullptr;

    Bench() {
        const gcx_resource resource = split(whole_device(), {24}).groups[0];
        CHECK_OK(gcx_context_create(&resource, 1, nullptr, &context));
    }
    ~Bench() { CHECK_OK(gcx_context_destroy(context)); }
    Bench(const Bench&) = delete;
    Bench& operator=(const Bench&) = delete;

    // Returns the native handle of a stream that is created and destroyed at once.
    CUstream next(int priority = 0) const {
        const gcx_stream stream = make_stream(context, priority);
        CUstream native = gcx_stream_native(stream);
        CHECK_OK(gcx_stream_destroy(stream));
        return native;
    }
};

void destroyed_stream_is_reused() {
    const Bench bench;
    CUstream first = bench.next();
    for (int round = 0; round < 50; round++)
        CHECK_EQ(bench.next(), first);
    CHECK_EQ(sim::counts().streams, 1U);
    CHECK_EQ(sim::calls("cuStreamDestroy_v2"), 0U);
    CHECK(bench.next(-3) != first); // another priority
    CHECK_EQ(bench.next(), first);
    gcx_context_info info = info_of(bench.context);
    CHECK_EQ(info.stream_count, 0U); // cached ones do not count

    // Of two streams, the one destroyed first is reused first: it has had the most time to finish.
    const gcx_stream one = make_stream(bench.context);
    const gcx_stream other = make_stream(bench.context);
    CUstream second = gcx_stream_native(other);
    CHECK_EQ(gcx_stream_native(one), first);
    CHECK(second != first);
    CHECK_OK(gcx_stream_destroy(other));
    CHECK_OK(gcx_stream_destroy(one));
    CHECK_EQ(bench.next(), second);
    CHECK_EQ(bench.next(), first);

    // The handle is stale all the same.
    CHECK_REFUSED(gcx_stream_synchronize(one), GCX_ERROR_INVALID_HANDLE);
}

void busy_stream_is_not_reused() {
    const Bench bench;
    const gcx_stream stream = make_stream(bench.context);
    CUstream busy = gcx_stream_native(stream);
    const Work work;
    work.spin(busy, 1'000'000);
    CHECK_OK(gcx_stream_destroy(stream));
    CHECK_EQ(NATIVE(cuStreamQuery)(busy), CUDA_ERROR_NOT_READY);
    CHECK(bench.next() != busy);
    sim::advance(1'000'000'000);
    CHECK_EQ(bench.next(), busy);
}

void changed_stream_is_not_cached() {
    const Bench bench;
    const std::array<std::pair<CUstreamAttrID, void (*)(CUstreamAttrValue&)>, 5> changes = {{
        {CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW,
         [](CUstreamAttrValue& value) {
             value.accessPolicyWindow.num_bytes = 4096;
             value.accessPolicyWindow.hitRatio = 1;
         }},
        {CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY,
         [](CUstreamAttrValue& value) { value.syncPolicy = CU_SYNC_POLICY_BLOCKING_SYNC; }},
        {CU_STREAM_ATTRIBUTE_PRIORITY, [](CUstreamAttrValue& value) { value.priority = -2; }},
        {CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP,
         [](CUstreamAttrValue& value) { value.memSyncDomainMap = {1, 0}; }},
        {CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN,
         [](CUstreamAttrValue& value) { value.memSyncDomain = CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE; }},
    }};
    for (const auto& [attribute, change] : changes) {
        const gcx_stream stream = make_stream(bench.context);
        CUstream native = gcx_stream_native(stream);
        CUstreamAttrValue before{};
        CHECK_NATIVE(cuStreamGetAttribute, native, attribute, &before);
        CUstreamAttrValue value = before;
        change(value);
        CHECK_NATIVE(cuStreamSetAttribute, native, attribute, &value);
        CHECK_OK(gcx_stream_destroy(stream));

        // The next caller gets another stream; if the owner undoes the change, the stream can be
        // reused.
        const gcx_stream again = make_stream(bench.context);
        CHECK(gcx_stream_native(again) != native);
        CHECK_EQ(sim::counts().streams, 1U); // the changed one is gone
        native = gcx_stream_native(again);
        CHECK_NATIVE(cuStreamSetAttribute, native, attribute, &value);
        CHECK_NATIVE(cuStreamSetAttribute, native, attribute, &before);
        CHECK_OK(gcx_stream_destroy(again));
        CHECK_EQ(sim::counts().streams, 1U);
        CHECK_EQ(bench.next(), native);
    }
}

// The former owner keeps using the stream.
void cached_stream_that_changes_is_not_reused() {
    const Bench bench;
    CUstream native = bench.next();
    CUstreamAttrValue value{};
    value.memSyncDomain = CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE;
    const auto attribute = CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN;
    CHECK_NATIVE(cuStreamSetAttribute, native, attribute, &value);
    const gcx_stream next = make_stream(bench.context);
    CHECK(gcx_stream_native(next) != native);
    CHECK_NATIVE(cuStreamGetAttribute, gcx_stream_native(next), attribute, &value);
    CHECK_EQ(value.memSyncDomain, CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT);
    CHECK_EQ(sim::counts().streams, 1U);
    CHECK_OK(gcx_stream_destroy(next));
    // A stream that can't be destroyed now stays, and is not reused.
    native = bench.next();
    value.memSyncDomain = CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE;
    CHECK_NATIVE(cuStreamSetAttribute, native, attribute, &value);
    sim::fail("cuStreamDestroy_v2", 1, CUDA_ERROR_UNKNOWN);
    CHECK(bench.next() != native);
    CHECK_EQ(sim::counts().streams, 2U);
}

// Streams are cached by their actual priority, not by the requested one.
void priority_beyond_the_range_is_clamped() {
    const Bench bench;
    CUstream urgent = bench.next(-5);
    for (const int priority : {-6, -100, -1'000'000, INT32_MIN})
        CHECK_EQ(bench.next(priority), urgent);
    CUstream plain = bench.next(0);
    for (const int priority : {1, 100, INT32_MAX})
        CHECK_EQ(bench.next(priority), plain);
    for (int i = 0; i < 2000; i++)
        bench.next(i % 2 == 0 ? i : -i / 2);
    CHECK_EQ(sim::counts().streams, 6U); // one for each priority
    CHECK_EQ(sim::calls("cuStreamDestroy_v2"), 0U);
}

// Of 32 streams that can't be reused, one is destroyed for each that comes.
void changed_streams_are_evicted_first() {
    const Bench bench;
    std::vector<gcx_stream> streams;
    for (int i = 0; i < 33; i++)
        streams.push_back(make_stream(bench.context));
    CUstreamAttrValue value{};
    value.memSyncDomain = CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE;
    for (std::size_t i = 0; i < 32; i++) {
        CHECK_NATIVE(cuStreamSetAttribute, gcx_stream_native(streams[i]),
                     CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN, &value);
        CHECK_OK(gcx_stream_destroy(streams[i]));
    }
    CHECK_EQ(sim::counts().streams, 33U);
    CUstream unchanged = gcx_stream_native(streams[32]);
    CHECK_OK(gcx_stream_destroy(streams[32]));
    CHECK_EQ(sim::counts().streams, 32U);
    CHECK_NATIVE(cuStreamQuery, unchanged);
    CHECK_EQ(bench.next(), unchanged);
}

void cached_streams_are_limited_to_32() {
    const Bench bench;
    std::vector<gcx_stream> streams;
    for (int i = 0; i < 100; i++)
        streams.push_back(make_stream(bench.context));
    for (const gcx_stream stream : streams)
        CHECK_OK(gcx_stream_destroy(stream));
    CHECK_EQ(sim::counts().streams, 32U);
}

void evicted_context_destroys_its_streams() {
    std::array<CUstream, 3> natives{};
    {
        const Bench bench;
        for (int i = 0; i < 3; i++)
            natives[static_cast<std::size_t>(i)] = bench.next(-i);
        CHECK_EQ(sim::counts().streams, 3U);
        CHECK_OK(gcx_cache_set_limit(0)); // the context is in use
        CHECK_EQ(sim::counts().streams, 3U);
    }
    CHECK_EQ(sim::counts().streams, 0U);
    CHECK_EQ(sim::counts().green_contexts, 0U);
    // A stream that can't be destroyed now keeps its context alive until it can.
    {
        const Bench bench;
        bench.next();
        sim::fail("cuStreamDestroy_v2", 1, CUDA_ERROR_UNKNOWN);
    }
    CHECK_EQ(sim::counts().green_contexts, 1U);
    CHECK_OK(gcx_cache_set_limit(0));
    CHECK_EQ(sim::counts().green_contexts, 0U);
    CHECK_EQ(sim::counts().streams, 0U);
}

void streams_of_threads_are_distinct() {
    const Bench bench;
    in_threads(8, [&](int) {
        for (int round = 0; round < 500; round++) {
            const gcx_stream mine = make_stream(bench.context, round % 2 == 0 ? 0 : -1);
            CHECK_OK(gcx_stream_synchronize(mine));
            CHECK_OK(gcx_stream_destroy(mine));
        }
    });
    CHECK(sim::counts().streams <= 16U); // never more than were in use at once
}

} // namespace

int main() {
    for (const char* driver : drivers()) {
        const std::string h100 = std::string("h100@") + driver;
        for (const auto test :
             {prepared_contexts_are_cached, leases_use_prepared_contexts,
              prepare_cancelled_by_progress_stops, progress_may_call_gcx,
              prepare_beyond_the_limit_is_refused, invalid_resources_are_not_prepared,
              prepared_contexts_outlast_others, lower_limit_evicts_prepared_contexts_last,
              trim_makes_room_for_other_layouts, limit_lowered_during_prepare_applies,
              concurrent_prepares_keep_to_the_limit, prepare_in_a_loop_is_refused_at_the_limit})
            on_machine(h100, test);
        on_machine("2x" + h100, limit_holds_for_each_device);
    }
    on_h100({trim_releases_contexts_and_streams, busy_contexts_are_not_trimmed,
             refused_trim_can_be_repeated, destroyed_stream_is_reused, busy_stream_is_not_reused,
             changed_stream_is_not_cached, cached_stream_that_changes_is_not_reused,
             priority_beyond_the_range_is_clamped, changed_streams_are_evicted_first,
             cached_streams_are_limited_to_32, evicted_context_destroys_its_streams,
             streams_of_threads_are_distinct});
    // Later drivers refuse the reset.
    on_machine("h100@12.4", reset_destroys_prepared_contexts);
    on_machine("h100@12.4", trim_after_reset_retains_no_context);
    return support::summary("cache");
}

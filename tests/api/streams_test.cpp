// Tests destroyed streams, which are cached with their context for the next caller.

#include "support.hpp"

#include <array>

using namespace support;

namespace {

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
    CUdeviceptr memory = 0;
    CHECK_NATIVE(cuCtxPushCurrent, gcx_context_native(bench.context));
    CHECK_NATIVE(cuMemAlloc, &memory, std::size_t{256} << 20);
    CHECK_NATIVE(cuMemsetD8Async, memory, 1, std::size_t{256} << 20, busy);
    CHECK_OK(gcx_stream_destroy(stream));
    CHECK_EQ(NATIVE(cuStreamQuery)(busy), CUDA_ERROR_NOT_READY);
    CHECK(bench.next() != busy);
    sim::advance(1'000'000'000);
    CHECK_EQ(bench.next(), busy);
    CHECK_NATIVE(cuMemFree, memory);
    CHECK_NATIVE(cuCtxPopCurrent, nullptr);
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
    on_h100({destroyed_stream_is_reused, busy_stream_is_not_reused, changed_stream_is_not_cached,
             cached_stream_that_changes_is_not_reused, priority_beyond_the_range_is_clamped,
             changed_streams_are_evicted_first, cached_streams_are_limited_to_32,
             evicted_context_destroys_its_streams, streams_of_threads_are_distinct});
    return support::summary("streams");
}

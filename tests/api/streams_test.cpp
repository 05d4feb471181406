// Tests destroyed streams, which are cached with their context for the next caller.

#include "support.hpp"

#include <array>
#include <thread>

using namespace support;

namespace {

gcx_stream make_stream(gcx_context context, int priority = 0) {
    gcx_stream_params params = GCX_STREAM_PARAMS_INIT;
    params.priority = priority;
    gcx_stream stream = nullptr;
    CHECK_OK(gcx_stream_create(context, &params, &stream));
    return stream;
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

void the_next_stream_is_the_one_given_up() {
    const Bench bench;
    CUstream first = bench.next();
    for (int round = 0; round < 50; round++)
        CHECK_EQ(bench.next(), first);
    CHECK_EQ(sim::counts().streams, 1U);
    CHECK_EQ(sim::calls("cuStreamDestroy_v2"), 0U);
    CHECK(bench.next(-3) != first); // another priority
    CHECK_EQ(bench.next(), first);
    gcx_context_info info = GCX_CONTEXT_INFO_INIT;
    CHECK_OK(gcx_context_get_info(bench.context, &info));
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

void a_stream_at_work_is_not_given_out() {
    const Bench bench;
    const gcx_stream stream = make_stream(bench.context);
    CUstream busy = gcx_stream_native(stream);
    CUdeviceptr memory = 0;
    CHECK_EQ(NATIVE(cuCtxPushCurrent)(gcx_context_native(bench.context)), CUDA_SUCCESS);
    CHECK_EQ(NATIVE(cuMemAlloc)(&memory, std::size_t{256} << 20), CUDA_SUCCESS);
    CHECK_EQ(NATIVE(cuMemsetD8Async)(memory, 1, std::size_t{256} << 20, busy), CUDA_SUCCESS);
    CHECK_OK(gcx_stream_destroy(stream));
    CHECK_EQ(NATIVE(cuStreamQuery)(busy), CUDA_ERROR_NOT_READY);
    CHECK(bench.next() != busy);
    sim_function<decltype(&gcx_sim_advance)>("gcx_sim_advance")(1'000'000'000);
    CHECK_EQ(bench.next(), busy);
    CHECK_EQ(NATIVE(cuMemFree)(memory), CUDA_SUCCESS);
    CHECK_EQ(NATIVE(cuCtxPopCurrent)(nullptr), CUDA_SUCCESS);
}

void a_changed_stream_is_not_kept() {
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
        CHECK_EQ(NATIVE(cuStreamGetAttribute)(native, attribute, &before), CUDA_SUCCESS);
        CUstreamAttrValue value = before;
        change(value);
        CHECK_EQ(NATIVE(cuStreamSetAttribute)(native, attribute, &value), CUDA_SUCCESS);
        CHECK_OK(gcx_stream_destroy(stream));

        // The next caller gets another stream; if the owner undoes the change, the stream can be
        // reused.
        const gcx_stream again = make_stream(bench.context);
        CHECK(gcx_stream_native(again) != native);
        CHECK_EQ(sim::counts().streams, 1U); // the changed one is gone
        native = gcx_stream_native(again);
        CHECK_EQ(NATIVE(cuStreamSetAttribute)(native, attribute, &value), CUDA_SUCCESS);
        CHECK_EQ(NATIVE(cuStreamSetAttribute)(native, attribute, &before), CUDA_SUCCESS);
        CHECK_OK(gcx_stream_destroy(again));
        CHECK_EQ(sim::counts().streams, 1U);
        CHECK_EQ(bench.next(), native);
    }
}

// The former owner keeps using the stream.
void a_stream_changed_after_it_was_given_up_is_nobody_s() {
    const Bench bench;
    CUstream native = bench.next();
    CUstreamAttrValue value{};
    value.memSyncDomain = CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE;
    const auto attribute = CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN;
    CHECK_EQ(NATIVE(cuStreamSetAttribute)(native, attribute, &value), CUDA_SUCCESS);
    const gcx_stream next = make_stream(bench.context);
    CHECK(gcx_stream_native(next) != native);
    CHECK_EQ(NATIVE(cuStreamGetAttribute)(gcx_stream_native(next), attribute, &value),
             CUDA_SUCCESS);
    CHECK_EQ(value.memSyncDomain, CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT);
    CHECK_EQ(sim::counts().streams, 1U);
    CHECK_OK(gcx_stream_destroy(next));
    // A stream that can't be destroyed now stays, and is not reused.
    native = bench.next();
    value.memSyncDomain = CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE;
    CHECK_EQ(NATIVE(cuStreamSetAttribute)(native, attribute, &value), CUDA_SUCCESS);
    sim::fail("cuStreamDestroy_v2", 1, CUDA_ERROR_UNKNOWN);
    CHECK(bench.next() != native);
    CHECK_EQ(sim::counts().streams, 2U);
}

// Streams are cached by their actual priority, not by the requested one.
void priorities_beyond_the_range_are_those_at_its_ends() {
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

// A capture forbids some calls to its thread, and in global mode to all threads. Calls of gcx on
// unrelated streams must not break it.
void captures_go_on_beside_gcx() {
    const Bench bench;
    bench.next();
    const gcx_resource elsewhere = split(whole_device(), {24, 32}).groups[1];
    for (const CUstreamCaptureMode mode :
         {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
          CU_STREAM_CAPTURE_MODE_RELAXED}) {
        const gcx_stream capturing = make_stream(bench.context);
        CUstream native = gcx_stream_native(capturing);
        CHECK_EQ(NATIVE(cuStreamBeginCapture)(native, mode), CUDA_SUCCESS);
        const auto come_and_go = [&] {
            for (int round = 0; round < 3; round++)
                CHECK(bench.next() != native);
            const Partition other(elsewhere);
            gcx_event event = nullptr;
            CHECK_OK(gcx_event_create(0, 0, &event));
            CHECK_OK(gcx_stream_record(other.stream, event));
            CHECK_OK(gcx_event_synchronize(event));
            CHECK_OK(gcx_event_query(event));
            CHECK_OK(gcx_event_destroy(event));
            CHECK_OK(gcx_stream_synchronize(other.stream));
            CHECK_OK(gcx_stream_query(other.stream));
            CHECK_OK(gcx_context_synchronize(other.context));
            CHECK_EQ(other.probe().size(), 32U);
            CHECK_OK(gcx_device_map_sms(0, GCX_SM_FAMILY_COSCHEDULED));
        };
        come_and_go();
        std::thread(come_and_go).join();
        CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
        CHECK_EQ(NATIVE(cuStreamIsCapturing)(native, &status), CUDA_SUCCESS);
        CHECK_EQ(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
        CUgraph graph = nullptr;
        CHECK_EQ(NATIVE(cuStreamEndCapture)(native, &graph), CUDA_SUCCESS);
        CHECK_EQ(NATIVE(cuGraphDestroy)(graph), CUDA_SUCCESS);
        CHECK_OK(gcx_stream_destroy(capturing));
        // The thread's own mode is unchanged.
        CUstreamCaptureMode own = CU_STREAM_CAPTURE_MODE_RELAXED;
        CHECK_EQ(NATIVE(cuThreadExchangeStreamCaptureMode)(&own), CUDA_SUCCESS);
        CHECK_EQ(own, CU_STREAM_CAPTURE_MODE_GLOBAL);
        CHECK_EQ(NATIVE(cuThreadExchangeStreamCaptureMode)(&own), CUDA_SUCCESS);
    }
}

// Of 32 streams that can't be reused, one is destroyed for each that comes.
void changed_streams_take_no_place_from_others() {
    const Bench bench;
    std::vector<gcx_stream> streams;
    for (int i = 0; i < 33; i++)
        streams.push_back(make_stream(bench.context));
    CUstreamAttrValue value{};
    value.memSyncDomain = CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE;
    for (std::size_t i = 0; i < 32; i++) {
        CHECK_EQ(NATIVE(cuStreamSetAttribute)(gcx_stream_native(streams[i]),
                                              CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN, &value),
                 CUDA_SUCCESS);
        CHECK_OK(gcx_stream_destroy(streams[i]));
    }
    CHECK_EQ(sim::counts().streams, 33U);
    CUstream unchanged = gcx_stream_native(streams[32]);
    CHECK_OK(gcx_stream_destroy(streams[32]));
    CHECK_EQ(sim::counts().streams, 32U);
    CHECK_EQ(NATIVE(cuStreamQuery)(unchanged), CUDA_SUCCESS);
    CHECK_EQ(bench.next(), unchanged);
}

void no_more_than_32_are_kept() {
    const Bench bench;
    std::vector<gcx_stream> streams;
    for (int i = 0; i < 100; i++)
        streams.push_back(make_stream(bench.context));
    for (const gcx_stream stream : streams)
        CHECK_OK(gcx_stream_destroy(stream));
    CHECK_EQ(sim::counts().streams, 32U);
}

void they_go_with_their_context() {
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

void threads_share_them() {
    const Bench bench;
    std::vector<std::thread> threads;
    for (int number = 0; number < 8; number++) {
        threads.emplace_back([&] {
            for (int round = 0; round < 500; round++) {
                const gcx_stream mine = make_stream(bench.context, round % 2 == 0 ? 0 : -1);
                CHECK_OK(gcx_stream_synchronize(mine));
                CHECK_OK(gcx_stream_destroy(mine));
            }
        });
    }
    for (std::thread& thread : threads)
        thread.join();
    CHECK(sim::counts().streams <= 16U); // never more than were in use at once
}

} // namespace

int main() {
    for (const char* driver : drivers()) {
        const std::string h100 = std::string("h100@") + driver;
        on_machine(h100, the_next_stream_is_the_one_given_up);
        on_machine(h100, a_stream_at_work_is_not_given_out);
        on_machine(h100, a_changed_stream_is_not_kept);
        on_machine(h100, a_stream_changed_after_it_was_given_up_is_nobody_s);
        on_machine(h100, priorities_beyond_the_range_are_those_at_its_ends);
        on_machine(h100, captures_go_on_beside_gcx);
        on_machine(h100, changed_streams_take_no_place_from_others);
        on_machine(h100, no_more_than_32_are_kept);
        on_machine(h100, they_go_with_their_context);
        on_machine(h100, threads_share_them);
    }
    return support::summary("streams");
}

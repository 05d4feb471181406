// Tests contexts, streams and events on a real GPU: the cache, work in flight, load, memory,
// resets.

#include "fixture.hpp"
#include "tests.hpp"

#include <array>
#include <cstdio>
#include <thread>

using namespace fixture;

namespace {

void cached_context_waits_for_no_kernel() {
    const Split parts = split(whole_device(), {24, GCX_REST});
    {
        const Partition made_before(parts.groups[0]);
    }
    const Partition busy(parts.groups[1]);
    CHECK_EQ(raw::launch_spin(busy.native(), 300 * raw::kMillisecond), CUDA_SUCCESS);
    {
        const Partition cached(parts.groups[0]);
        CHECK_EQ(cached.probe().size(), 24U);
    }
    // All of that happened while the other kernel ran.
    CHECK_EQ(gcx_stream_query(busy.stream), GCX_ERROR_NOT_READY);
    CHECK_OK(gcx_stream_synchronize(busy.stream));
    CHECK_EQ(gcx_stream_query(busy.stream), GCX_SUCCESS);
}

void destroy_lets_work_finish() {
    const Split parts = split(whole_device(), {8});
    gcx_context context = nullptr;
    gcx_stream stream = nullptr;
    gcx_event event = nullptr;
    CHECK_OK(gcx_context_create(parts.groups.data(), 1, nullptr, &context));
    CHECK_OK(gcx_stream_create(context, nullptr, &stream));
    CHECK_OK(gcx_event_create(0, 0, &event));
    CHECK_EQ(raw::launch_spin(gcx_stream_native(stream), 100 * raw::kMillisecond), CUDA_SUCCESS);
    CHECK_OK(gcx_stream_record(stream, event));
    CHECK_OK(gcx_context_destroy(context));
    // The stream outlives the context's handle.
    CHECK_EQ(raw::launch_spin(gcx_stream_native(stream), raw::kMillisecond), CUDA_SUCCESS);
    CHECK_OK(gcx_stream_destroy(stream));
    CHECK_EQ(gcx_event_query(event), GCX_ERROR_NOT_READY);
    CHECK_OK(gcx_event_synchronize(event));
    CHECK_OK(gcx_event_destroy(event));
    CHECK_EQ(gcx_stream_destroy(stream), GCX_ERROR_INVALID_HANDLE);
    CHECK_EQ(gcx_context_destroy(context), GCX_ERROR_INVALID_HANDLE);
}

void order_across_partitions() {
    const Split parts = split(whole_device(), {24, GCX_REST});
    const Partition first(parts.groups[0]);
    const Partition second(parts.groups[1]);
    gcx_event start = nullptr;
    gcx_event middle = nullptr;
    gcx_event end = nullptr;
    for (gcx_event* event : {&start, &middle, &end})
        CHECK_OK(gcx_event_create(0, GCX_EVENT_TIMING, event));
    CHECK_OK(gcx_stream_record(first.stream, start));
    CHECK_EQ(raw::launch_spin(first.native(), 50 * raw::kMillisecond), CUDA_SUCCESS);
    CHECK_OK(gcx_stream_record(first.stream, middle));
    CHECK_OK(gcx_stream_wait(second.stream, middle));
    CHECK_OK(gcx_stream_record(second.stream, end));
    CHECK_OK(gcx_stream_synchronize(second.stream));
    CHECK_EQ(gcx_stream_query(first.stream), GCX_SUCCESS);
    float milliseconds = 0;
    CHECK_OK(gcx_event_get_elapsed(start, end, &milliseconds));
    CHECK(milliseconds >= 50.0F);

    // The same holds between contexts.
    CHECK_EQ(raw::launch_spin(first.native(), 50 * raw::kMillisecond), CUDA_SUCCESS);
    CHECK_OK(gcx_context_record(first.context, middle));
    CHECK_OK(gcx_context_wait(second.context, middle));
    CHECK_OK(gcx_context_synchronize(second.context));
    CHECK_EQ(raw::launch_spin(second.native(), 1), CUDA_SUCCESS);
    CHECK_OK(gcx_context_synchronize(second.context));
    CHECK_EQ(gcx_stream_query(first.stream), GCX_SUCCESS);
    for (gcx_event event : {start, middle, end})
        CHECK_OK(gcx_event_destroy(event));
}

void external_and_blocking_events() {
    const Split parts = split(whole_device(), {8});
    const Partition partition(parts.groups[0]);
    CUevent native = nullptr;
    CHECK_EQ(raw::cuCtxSetCurrent(raw::primary()), CUDA_SUCCESS);
    CHECK_EQ(raw::cuEventCreate(&native, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
    gcx_event others = nullptr;
    CHECK_OK(gcx_event_from_native(native, &others));
    CHECK(gcx_event_native(others) == native);
    CHECK_EQ(raw::launch_spin(partition.native(), 50 * raw::kMillisecond), CUDA_SUCCESS);
    CHECK_OK(gcx_stream_record(partition.stream, others));
    CHECK_EQ(gcx_event_query(others), GCX_ERROR_NOT_READY);
    CHECK_OK(gcx_event_synchronize(others));
    CHECK_EQ(gcx_stream_query(partition.stream), GCX_SUCCESS);
    CHECK_OK(gcx_event_destroy(others));
    // The event belonged to other code, and still does.
    CHECK_EQ(raw::cuEventQuery(native), CUDA_SUCCESS);
    CHECK_EQ(raw::cuEventDestroy(native), CUDA_SUCCESS);

    gcx_event sleeping = nullptr;
    CHECK_OK(gcx_event_create(0, GCX_EVENT_BLOCKING_SYNC, &sleeping));
    CHECK_EQ(raw::launch_spin(partition.native(), 50 * raw::kMillisecond), CUDA_SUCCESS);
    CHECK_OK(gcx_stream_record(partition.stream, sleeping));
    CHECK_OK(gcx_event_synchronize(sleeping));
    CHECK_EQ(gcx_stream_query(partition.stream), GCX_SUCCESS);
    CHECK_OK(gcx_event_destroy(sleeping));
}

void private_contexts_are_listed() {
    const Split parts = split(whole_device(), {16, 16});
    gcx_context_params own = GCX_CONTEXT_PARAMS_INIT;
    own.flags = GCX_CONTEXT_PRIVATE;
    gcx_context shared[2] = {};
    gcx_context apart = nullptr;
    for (gcx_context& context : shared)
        CHECK_OK(gcx_context_create(parts.groups.data(), 1, nullptr, &context));
    CHECK_OK(gcx_context_create(parts.groups.data(), 1, &own, &apart));
    CHECK(gcx_context_native(shared[0]) == gcx_context_native(shared[1]));
    CHECK(gcx_context_native(shared[0]) != gcx_context_native(apart));

    // A capture in one context doesn't block waiting for the other.
    gcx_stream capturing = nullptr;
    CHECK_OK(gcx_stream_create(apart, nullptr, &capturing));
    CHECK_EQ(
        raw::cuStreamBeginCapture(gcx_stream_native(capturing), CU_STREAM_CAPTURE_MODE_RELAXED),
        CUDA_SUCCESS);
    gcx_event event = nullptr;
    CHECK_OK(gcx_event_create(0, 0, &event));
    CHECK_OK(gcx_context_synchronize(shared[0]));
    CHECK_OK(gcx_context_record(shared[0], event));
    // A call that would break the capture is refused before the driver is called.
    CHECK_EQ(gcx_context_record(apart, event), GCX_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CHECK_EQ(gcx_context_wait(apart, event), GCX_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CHECK_EQ(gcx_context_synchronize(apart), GCX_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CHECK_EQ(gcx_stream_synchronize(capturing), GCX_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CHECK_EQ(gcx_stream_query(capturing), GCX_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CHECK_EQ(raw::launch_spin(gcx_stream_native(capturing), 1000), CUDA_SUCCESS);
    CUgraph graph = nullptr;
    CHECK_EQ(raw::cuStreamEndCapture(gcx_stream_native(capturing), &graph), CUDA_SUCCESS);
    CHECK_EQ(raw::cuGraphDestroy(graph), CUDA_SUCCESS);
    CHECK_OK(gcx_event_destroy(event));

    std::array<gcx_live_context, 256> live{};
    uint32_t count = 0;
    CHECK_OK(gcx_context_list(0, live.data(), static_cast<uint32_t>(live.size()), &count));
    CHECK_EQ(count, 2U);
    uint32_t handles = 0;
    uint32_t streams = 0;
    for (uint32_t i = 0; i < count; i++) {
        CHECK_EQ(live[i].sm_count, 16U);
        CHECK_EQ(std::memcmp(&live[i].resource, parts.groups.data(), sizeof(gcx_resource)), 0);
        handles += live[i].handle_count;
        streams += live[i].stream_count;
    }
    CHECK_EQ(handles, 3U);
    CHECK_EQ(streams, 1U);

    CHECK_OK(gcx_stream_destroy(capturing));
    CHECK_OK(gcx_context_destroy(apart));
    for (const gcx_context context : shared)
        CHECK_OK(gcx_context_destroy(context));
}

void current_context() {
    const Split parts = split(whole_device(), {24});
    const Partition partition(parts.groups[0]);
    CUcontext before = nullptr;
    CHECK_EQ(raw::cuCtxGetCurrent(&before), CUDA_SUCCESS);
    CHECK_OK(gcx_context_push(partition.context));
    CHECK_EQ(gcx_context_destroy(partition.context), GCX_ERROR_CONTEXT_ALREADY_IN_USE);
    // A stream that CUDA itself creates now stays in the partition.
    CUstream plain = nullptr;
    CHECK_EQ(raw::cuStreamCreate(&plain, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    gcx_stream stream = nullptr;
    gcx_stream_info info = GCX_STREAM_INFO_INIT;
    CHECK_OK(gcx_stream_from_native(plain, &stream));
    CHECK_OK(gcx_stream_get_info(stream, &info));
    CHECK_EQ(info.sm_count, 24U);
    CHECK(info.context_id != 0);
    gcx_resource resource{};
    CHECK_OK(gcx_stream_get_resource(stream, GCX_RESOURCE_SM, &resource));
    CHECK(std::memcmp(&resource, parts.groups.data(), sizeof resource) == 0);
    CHECK_EQ(probed(stream).size(), 24U);
    CHECK_OK(gcx_stream_destroy(stream));
    CHECK_EQ(raw::cuStreamDestroy(plain), CUDA_SUCCESS);
    gcx_context popped = nullptr;
    CHECK_OK(gcx_context_pop(&popped));
    CHECK(popped == partition.context);
    CUcontext after = nullptr;
    CHECK_EQ(raw::cuCtxGetCurrent(&after), CUDA_SUCCESS);
    CHECK(before == after);
    CHECK_EQ(gcx_context_pop(nullptr), GCX_ERROR_INVALID_CONTEXT);
}

void memory_stays_flat(int rounds) {
    const gcx_resource device = whole_device();
    uint64_t before = 0;
    for (int round = 0; round < rounds; round++) {
        const Split parts = split(device, {108, 24});
        {
            const Partition a(parts.groups[0]);
            const Partition b(parts.groups[1]);
        }
        if (round == 0)
            before = free_memory();
    }
    const uint64_t after = free_memory();
    std::printf("  free after round 1: %llu, after round %d: %llu bytes\n",
                static_cast<unsigned long long>(before), rounds,
                static_cast<unsigned long long>(after));
    CHECK_EQ(before, after);
}

void many_threads() {
    const Split parts = split(whole_device(), {32, GCX_REST});
    const Partition shared(parts.groups[0]);
    std::vector<std::thread> threads;
    for (int t = 0; t < 16; t++) {
        threads.emplace_back([&] {
            for (int round = 0; round < 50; round++) {
                const Partition own(parts.groups[static_cast<std::size_t>(round % 2)]);
                CHECK_EQ(raw::launch_spin(own.native(), 1000), CUDA_SUCCESS);
                CHECK_OK(gcx_stream_synchronize(own.stream));
                gcx_stream stream = nullptr;
                CHECK_OK(gcx_stream_create(shared.context, nullptr, &stream));
                CHECK_OK(gcx_context_push(shared.context));
                CHECK_OK(gcx_context_pop(nullptr));
                CHECK_OK(gcx_stream_destroy(stream));
            }
        });
    }
    for (std::thread& thread : threads)
        thread.join();
}

// Tests resets: the driver refuses one while green contexts are alive.
void resets() {
    const Split parts = split(whole_device(), {8});
    {
        const Partition partition(parts.groups[0]);
        std::printf("  reset with a context alive: %s\n",
                    raw::name_of(raw::cuDevicePrimaryCtxReset(0)));
        CHECK_EQ(partition.probe().size(), 8U);
    }
    std::printf("  reset with cached contexts: %s\n",
                raw::name_of(raw::cuDevicePrimaryCtxReset(0)));
    CHECK_OK(gcx_cache_set_limit(0));
    gcx_event event = nullptr;
    CHECK_OK(gcx_event_create(0, 0, &event));
    const CUresult reset = raw::cuDevicePrimaryCtxReset(0);
    std::printf("  reset with none, and an event alive: %s\n", raw::name_of(reset));
    CHECK_EQ(reset, CUDA_SUCCESS);
    CHECK_EQ(gcx_event_query(event), GCX_ERROR_CONTEXT_IS_DESTROYED);
    CHECK_OK(gcx_event_destroy(event));
    // Of what was retained before the reset, this program's own is all that is left.
    CHECK_EQ(raw::cuDevicePrimaryCtxRelease(0), CUDA_SUCCESS);
    CHECK_EQ(raw::cuDevicePrimaryCtxRelease(0), CUDA_ERROR_INVALID_CONTEXT);
    CUcontext primary = nullptr;
    CHECK_EQ(raw::cuDevicePrimaryCtxRetain(&primary, 0), CUDA_SUCCESS);
    CHECK_OK(gcx_cache_set_limit(64));
    const Partition recreated(parts.groups[0]);
    CHECK_EQ(recreated.probe().size(), 8U);
}

} // namespace

void test_contexts(bool quick) {
    if (!quick) { // compute-sanitizer runs no kernel next to the host
        section("cached contexts wait for no kernel");
        cached_context_waits_for_no_kernel();
        section("work finishes after a destroy");
        destroy_lets_work_finish();
    }
    section("order across partitions");
    order_across_partitions();
    section("external and blocking events");
    external_and_blocking_events();
    section("private contexts, and live ones");
    private_contexts_are_listed();
    section("the current context");
    current_context();
    section("device memory stays flat");
    memory_stays_flat(quick ? 100 : 10000);
    section("16 threads");
    many_threads();
}

void test_resets() {
    section("the device is reset");
    resets();
}

// Tests what gcx reports of a partition in addition to its SMs: clusters, priorities, live
// contexts; external events; shared and private contexts.

#include "fixture.hpp"
#include "tests.hpp"

#include <array>
#include <cstdio>

using namespace fixture;

namespace {

uint32_t largest_cluster(const gcx_resource& resource) {
    uint32_t blocks = 0;
    CHECK_OK(gcx_resource_find_max_cluster_size(&resource, &blocks));
    return blocks;
}

// gcx queries with its own kernel, of one small block; raw:: queries with one that has blocks as
// large as an SM.
void clusters_are_what_the_driver_allows() {
    const gcx_resource device = whole_device();
    const Split coarse = split(device, {108, 24});
    const Split fine = split(device, {108, 24}, GCX_SPLIT_IGNORE_SM_COSCHEDULING);
    const Split wide = split(device, {24, 48}, GCX_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE);
    gcx_resource remainder{};
    CHECK_OK(gcx_resource_get_atom(&device, atom_count(device) - 1, &remainder));
    const gcx_resource all[] = {device,         coarse.groups[0], coarse.groups[1], remainder,
                                fine.groups[0], fine.groups[1],   wide.groups[0],   wide.groups[1]};
    for (const gcx_resource& resource : all) {
        const Partition partition(resource);
        const uint32_t blocks = largest_cluster(resource);
        CHECK_EQ(static_cast<int>(blocks), raw::max_cluster_size(partition.native()));
        std::printf("  %3u SMs: clusters of up to %u blocks\n", sm_count(resource), blocks);
    }
}

void the_range_of_priorities() {
    int32_t least = 1;
    int32_t greatest = 1;
    CHECK_OK(gcx_device_get_stream_priority_range(0, &least, &greatest));
    CHECK_EQ(least, 0);
    CHECK_EQ(greatest, -5);
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

void special_streams_are_refused() {
    for (const uintptr_t special : {0U, 1U, 2U}) {
        gcx_stream stream = nullptr;
        CHECK_EQ(gcx_stream_from_native(reinterpret_cast<CUstream>(special), &stream),
                 GCX_ERROR_INVALID_VALUE);
    }
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

} // namespace

void test_queries() {
    section("the largest clusters, as gcx reports them");
    clusters_are_what_the_driver_allows();
    section("the range of priorities");
    the_range_of_priorities();
    section("external and blocking events");
    external_and_blocking_events();
    section("special streams");
    special_streams_are_refused();
    section("private contexts, and live ones");
    private_contexts_are_listed();
}

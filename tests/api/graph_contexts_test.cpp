// Tests the contexts in which a graph was captured: those of gcx live as long as the graph; a
// destroyed external one is an error, and is never used.

#include "graph_kernels.hpp"

#include <memory>

using namespace support;
using From = GraphKernels::From;

namespace {

CUgraph capture_one(const GraphKernels& kernels, CUstream stream, uint32_t place = 0) {
    return capture(stream, [&] {
        kernels.probe(stream, From::library, place);
        kernels.clear(stream, 2);
    });
}

gcx_result write_elsewhere(const GraphKernels& kernels, gcx_graph graph, uint32_t place) {
    struct {
        CUdeviceptr counts;
        uint32_t max_sms;
        uint32_t nanoseconds;
    } arguments = {kernels.at(place), GraphKernels::kMaxSms, 1000};
    gcx_kernel_params params = GCX_KERNEL_PARAMS_INIT;
    params.grid[0] = 1024;
    params.block[0] = 64;
    params.grid[1] = params.grid[2] = params.block[1] = params.block[2] = 1;
    params.arguments = &arguments;
    params.argument_bytes = sizeof arguments;
    return gcx_graph_set_kernel(graph, 0, &params);
}

void captured_context_stays_while_its_graph_lives() {
    const GraphKernels kernels;
    gcx_stream plain = handle_for(kernels.plain);
    const gcx_resource resource = split(whole_device(), {24}).groups[0];
    auto partition = std::make_unique<Partition>(resource);
    const SmIds sms = partition->probe();
    gcx_graph graph = graph_of(capture_one(kernels, gcx_stream_native(partition->stream)));
    partition.reset();
    CHECK_EQ(trim(0).contexts, 0U);
    CHECK_EQ(cache_stats().in_use, 1U);
    CHECK_OK(gcx_graph_launch(graph, &plain, 1)); // as it was captured
    CHECK(kernels.take_sms(0) == sms);
    CHECK_EQ(trim(0).contexts, 0U);
    CHECK_OK(write_elsewhere(kernels, graph, 3));
    CHECK_OK(gcx_graph_launch(graph, &plain, 1));
    CHECK(kernels.take_sms(3) == sms);
    CHECK_OK(gcx_graph_destroy(graph));
    CHECK_EQ(trim(0).contexts, 1U);
    CHECK_OK(gcx_stream_destroy(plain));
}

void captured_context_is_not_evicted_for_others() {
    const GraphKernels kernels;
    gcx_stream plain = handle_for(kernels.plain);
    CHECK_OK(gcx_cache_set_limit(2));
    gcx_lease lease = nullptr;
    gcx_stream stream = nullptr;
    CHECK_OK(gcx_lease_acquire(0, 24, nullptr, &lease));
    CHECK_OK(gcx_lease_stream_create(lease, nullptr, &stream));
    gcx_graph graph = graph_of(capture_one(kernels, gcx_stream_native(stream)));
    CHECK_OK(gcx_graph_launch(graph, &plain, 1));
    const SmIds sms = kernels.take_sms(0);
    CHECK_EQ(sms.size(), 24U);
    CHECK_OK(gcx_stream_destroy(stream));
    CHECK_OK(gcx_lease_release(lease));
    for (uint32_t size = 8; size <= 120; size += 8)
        const Partition other(split(whole_device(), {size}).groups[0]);
    CHECK_OK(write_elsewhere(kernels, graph, 3));
    CHECK_OK(gcx_graph_launch(graph, &plain, 1));
    CHECK(kernels.take_sms(3) == sms);
    CHECK_OK(gcx_graph_destroy(graph));
    CHECK_OK(gcx_stream_destroy(plain));
}

// The graph keeps the contexts of both parts, and after an update only those of the new capture.
void update_keeps_the_contexts_of_the_new_capture() {
    const GraphKernels kernels;
    gcx_stream plain = handle_for(kernels.plain);
    const Split parts = split(whole_device(), {24, 32, 40});
    std::vector<std::unique_ptr<Partition>> partitions;
    std::vector<SmIds> sms;
    for (const gcx_resource& part : parts.groups) {
        partitions.push_back(std::make_unique<Partition>(part));
        sms.push_back(partitions.back()->probe());
    }
    const auto capture_in = [&](std::size_t a, std::size_t b) {
        CUstream first = gcx_stream_native(partitions[a]->stream);
        CUstream second = gcx_stream_native(partitions[b]->stream);
        CUevent event = nullptr;
        CHECK_NATIVE(cuCtxPushCurrent, kernels.primary);
        CHECK_NATIVE(cuEventCreate, &event, CU_EVENT_DISABLE_TIMING);
        CUgraph graph = capture(first, [&] {
            kernels.probe(first, From::library, 0);
            CHECK_NATIVE(cuEventRecord, event, first);
            CHECK_NATIVE(cuStreamWaitEvent, second, event, 0);
            kernels.probe(second, From::library, 1);
            CHECK_NATIVE(cuEventRecord, event, second);
            CHECK_NATIVE(cuStreamWaitEvent, first, event, 0);
        });
        CHECK_NATIVE(cuEventDestroy, event);
        CUcontext popped = nullptr;
        CHECK_NATIVE(cuCtxPopCurrent, &popped);
        return graph;
    };
    const auto check = [&](gcx_graph graph, std::size_t a, std::size_t b) {
        CHECK_OK(gcx_graph_launch(graph, &plain, 1));
        CHECK(kernels.take_sms(0) == sms[a]);
        CHECK(kernels.take_sms(1) == sms[b]);
    };
    gcx_graph graph = graph_of(capture_in(0, 1));
    check(graph, 0, 1);
    CUgraph other = capture_in(1, 2);
    partitions.clear();
    CHECK_EQ(trim(0).contexts, 1U); // the third
    check(graph, 0, 1);
    // The capture's own context is gone, so the driver may reuse its address.
    CHECK_REFUSED(gcx_graph_update(graph, other), GCX_ERROR_CONTEXT_IS_DESTROYED);
    CHECK_NATIVE(cuGraphDestroy, other);
    check(graph, 0, 1);
    for (const gcx_resource& part : parts.groups)
        partitions.push_back(std::make_unique<Partition>(part));
    other = capture_in(1, 2);
    CHECK_OK(gcx_graph_update(graph, other));
    CHECK_NATIVE(cuGraphDestroy, other);
    partitions.clear();
    CHECK_EQ(trim(0).contexts, 1U); // the first
    check(graph, 1, 2);
    CHECK_OK(gcx_graph_destroy(graph));
    CHECK_EQ(trim(0).contexts, 2U);
    CHECK_OK(gcx_stream_destroy(plain));
}

void create_after_the_context_is_gone_is_refused() {
    const GraphKernels kernels;
    auto partition = std::make_unique<Partition>(split(whole_device(), {24}).groups[0]);
    CUgraph captured = capture_one(kernels, gcx_stream_native(partition->stream));
    partition.reset();
    CHECK_EQ(trim(0).contexts, 1U);
    gcx_graph graph = nullptr;
    CHECK_REFUSED(gcx_graph_create(captured, nullptr, &graph), GCX_ERROR_CONTEXT_IS_DESTROYED);
    CHECK(message_has("node 0, a kernel node"));
    CHECK_NATIVE(cuGraphDestroy, captured);
}

void destroyed_external_context_is_an_error() {
    const GraphKernels kernels;
    gcx_stream plain = handle_for(kernels.plain);
    auto external = std::make_unique<External>(24);
    gcx_graph graph = graph_of(capture_one(kernels, external->stream));
    CHECK_OK(gcx_graph_launch(graph, &plain, 1));
    CHECK_EQ(kernels.count_sms(0), 24U);
    external.reset();
    const Partition partition(split(whole_device(), {40}).groups[0]);
    CHECK_REFUSED(gcx_graph_launch(graph, &plain, 1), GCX_ERROR_CONTEXT_IS_DESTROYED);
    CHECK(message_has("has been destroyed"));
    // The graph runs in other contexts; the executable that cannot run does not block changes.
    CHECK_OK(gcx_graph_launch(graph, &partition.stream, 1));
    CHECK_EQ(kernels.count_sms(0), 40U);
    CHECK_OK(write_elsewhere(kernels, graph, 3));
    CHECK_EQ(info_of(graph).executables, 1U);
    CHECK_OK(gcx_graph_launch(graph, &partition.stream, 1));
    CHECK_EQ(kernels.count_sms(3), 40U);
    CHECK_REFUSED(gcx_graph_launch(graph, &plain, 1), GCX_ERROR_CONTEXT_IS_DESTROYED);
    CHECK_OK(gcx_graph_destroy(graph));
    CHECK_OK(gcx_stream_destroy(plain));
}

void reset_under_a_captured_context_is_an_error() {
    // The reset destroyed what this created.
    static const GraphKernels& kernels = *new GraphKernels;
    gcx_stream plain = handle_for(kernels.plain);
    auto partition = std::make_unique<Partition>(split(whole_device(), {24}).groups[0]);
    gcx_graph graph = graph_of(capture_one(kernels, gcx_stream_native(partition->stream)));
    partition.reset();
    CHECK_OK(gcx_graph_launch(graph, &plain, 1));
    CHECK_NATIVE(cuDevicePrimaryCtxReset, 0);
    CHECK_REFUSED(gcx_graph_launch(graph, &plain, 1), GCX_ERROR_CONTEXT_IS_DESTROYED);
    CHECK_REFUSED(write_elsewhere(kernels, graph, 3), GCX_ERROR_CONTEXT_IS_DESTROYED);
    const Partition fresh(split(whole_device(), {24}).groups[0]);
    CHECK_REFUSED(gcx_graph_launch(graph, &fresh.stream, 1), GCX_ERROR_CONTEXT_IS_DESTROYED);
    CHECK_OK(gcx_graph_destroy(graph));
    CHECK_OK(gcx_stream_destroy(plain));
    CHECK_EQ(cache_stats().in_use, 1U);
}

} // namespace

int main() {
    for (const auto body :
         {captured_context_stays_while_its_graph_lives, captured_context_is_not_evicted_for_others,
          update_keeps_the_contexts_of_the_new_capture, create_after_the_context_is_gone_is_refused,
          destroyed_external_context_is_an_error}) {
        for (const char* driver : drivers())
            leaves_nothing(std::string("h100@") + driver, body);
    }
    // Later drivers refuse the reset.
    on_machine("h100@12.4", reset_under_a_captured_context_is_an_error);
    return support::summary("graph-contexts");
}

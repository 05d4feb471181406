// Tests graphs that were captured once, on any partition.

#include "graph_work.hpp"
#include "tests.hpp"

#include <cstdio>
#include <optional>
#include <random>
#include <string>
#include <thread>

using namespace fixture;
using namespace graph_work;

namespace {

// Has a graph of gcx.
class Moved {
  public:
    explicit Moved(CUgraph captured, uint32_t max_executables = 0) {
        gcx_graph_params params = GCX_GRAPH_PARAMS_INIT;
        params.max_executables = max_executables;
        CHECK_OK(gcx_graph_create(captured, &params, &handle));
    }
    ~Moved() { CHECK_OK(gcx_graph_destroy(handle)); }
    Moved(const Moved&) = delete;
    Moved& operator=(const Moved&) = delete;

    gcx_graph_info info() const {
        gcx_graph_info info = GCX_GRAPH_INFO_INIT;
        CHECK_OK(gcx_graph_get_info(handle, &info));
        return info;
    }

    gcx_graph handle = nullptr;
};

SmIds all_sms() {
    SmIds ids(sm_count(whole_device()));
    for (uint32_t sm = 0; sm < ids.size(); sm++)
        ids[sm] = sm;
    return ids;
}

// Launches once, and checks all results.
void run_on(Template& work, const Moved& moved, gcx_stream stream, uint32_t left = 338,
            uint32_t copied = 48) {
    const SmIds sms = probed(stream);
    work.forget();
    CHECK_OK(gcx_graph_launch(moved.handle, &stream, 1));
    CHECK_OK(gcx_stream_synchronize(stream));
    work.check_run(sms, left, copied);
}

void run_original(Template& work, CUgraphExec exec) {
    work.forget();
    CHECK_EQ(raw::cuGraphLaunch(exec, work.plain), CUDA_SUCCESS);
    CHECK_EQ(raw::cuStreamSynchronize(work.plain), CUDA_SUCCESS);
    work.check_run(all_sms());
}

void on_partitions_and_leases(Template& work) {
    CUgraphExec original = instantiate(work.graph);
    run_original(work, original);
    {
        const Moved moved(work.graph);
        const Split parts = split(whole_device(), {24, 108});
        const Partition small(parts.groups[0]);
        const Partition large(parts.groups[1]);
        for (int round = 0; round < 3; round++)
            for (const Partition* part : {&small, &large})
                run_on(work, moved, part->stream);
        CHECK_EQ(moved.info().executables, 2U);
        CHECK_EQ(moved.info().instantiated, 2U);
        CHECK_EQ(moved.info().launches, 6U);
    }

    const Moved moved(work.graph);
    gcx_lease lease = nullptr;
    gcx_stream stream = nullptr;
    CHECK_OK(gcx_lease_acquire(0, 24, nullptr, &lease));
    CHECK_OK(gcx_lease_stream_create(lease, nullptr, &stream));
    for (const uint32_t count : {24U, 64U, 32U, 108U, 24U}) {
        const gcx_lease_size size{lease, count, 0};
        CHECK_OK(gcx_lease_resize(&size, 1, GCX_RESIZE_DEFAULT));
        CHECK_EQ(probed(stream).size(), count);
        run_on(work, moved, stream);
    }
    CHECK_OK(gcx_stream_destroy(stream));
    CHECK_OK(gcx_lease_release(lease));
    run_original(work, original);
    CHECK_EQ(raw::cuGraphExecDestroy(original), CUDA_SUCCESS);
}

void nodes_are_described(Template& work) {
    const Moved moved(work.graph);
    const std::vector<gcx_graph_node> nodes = nodes_of(moved.handle);
    CHECK_EQ(moved.info().kernel_count, static_cast<uint32_t>(Template::Count));
    CHECK_EQ(moved.info().part_count, 1U);
    const auto count = [&](gcx_graph_node_kind kind) {
        return std::count_if(nodes.begin(), nodes.end(),
                             [&](const gcx_graph_node& node) { return node.kind == kind; });
    };
    CHECK_EQ(count(GCX_GRAPH_NODE_MEMSET), 2);
    CHECK_EQ(count(GCX_GRAPH_NODE_MEMCPY), 1);
    CHECK_EQ(count(GCX_GRAPH_NODE_HOST), 1);
    CHECK_EQ(count(GCX_GRAPH_NODE_GRAPH), 1);
    const gcx_graph_node clusters = node_of(moved.handle, "clusters", 16);
    CHECK_EQ(clusters.cluster[0], 4U);
    CHECK_EQ(clusters.cooperative, 0U);
    const gcx_graph_node together = node_of(moved.handle, "together", 16);
    CHECK_EQ(together.cooperative, 1U);
    CHECK_EQ(together.block[0], 64U);
    CHECK(together.blocks_per_sm >= 16);
    const gcx_graph_node fill = node_of(moved.handle, "fill", 132 * 8);
    CHECK_EQ(fill.blocks_per_sm, 2U);
    const gcx_graph_node child = node_of(moved.handle, "scale", Template::kScaleGrids[4]);
    CHECK(child.parent < nodes.size() && nodes[child.parent].kind == GCX_GRAPH_NODE_GRAPH);
    CHECK(!nodes.empty() && nodes[0].parent == GCX_NO_NODE);
}

void set_scale(Template& work, const Moved& moved, Template::Noting node, std::size_t grid,
               uint32_t factor) {
    ScaleArguments arguments = work.arguments(node);
    arguments.factor = factor;
    gcx_kernel_params params = GCX_KERNEL_PARAMS_INIT;
    params.grid[0] = Template::kScaleGrids[grid];
    params.grid[1] = params.grid[2] = 1;
    params.block[0] = 256;
    params.block[1] = params.block[2] = 1;
    params.arguments = &arguments;
    params.argument_bytes = sizeof arguments;
    CHECK_OK(gcx_graph_set_kernel(moved.handle, number_of(moved.handle, "scale", params.grid[0]),
                                  &params));
}

// The driver checks sizes before there is an executable, of a library's kernel and a module's.
void impossible_sizes(const Moved& moved) {
    for (const std::size_t grid : {0U, 3U}) {
        gcx_kernel_params params = GCX_KERNEL_PARAMS_INIT;
        params.grid[0] = params.grid[2] = 1;
        params.grid[1] = 70'000;
        std::fill_n(params.block, 3, 1U);
        const uint32_t node = number_of(moved.handle, "scale", Template::kScaleGrids[grid]);
        CHECK_EQ(gcx_graph_set_kernel(moved.handle, node, &params), GCX_ERROR_INVALID_VALUE);
    }
}

// The arguments apply to existing executables and to later ones: left is 1, a * 1 + 1, b * that +
// 1, c * that + 3, d * that + 2.
void changed_parameters(Template& work) {
    const Split parts = split(whole_device(), {24, 64, 44});
    const Partition one(parts.groups[0]);
    const Partition two(parts.groups[1]);
    const Partition later(parts.groups[2]);
    const Moved moved(work.graph);
    impossible_sizes(moved);
    run_on(work, moved, one.stream);
    run_on(work, moved, two.stream);
    const auto everywhere = [&](uint32_t left, uint32_t copied) {
        for (const Partition* part : {&one, &two, &later})
            run_on(work, moved, part->stream, left, copied);
    };
    set_scale(work, moved, Template::First, 0, 10); // of a library: 11, 23, 118, 828
    everywhere(828, 118);
    set_scale(work, moved, Template::Joined, 3, 6); // of a module: 11, 23, 141, 989
    everywhere(989, 141);
    CHECK_EQ(moved.info().instantiated, 3U);       // changed in place
    set_scale(work, moved, Template::Child, 4, 8); // in the child: 141, 1130
    everywhere(1130, 141);

    CUgraph again = work.capture(work.plain, work.second, 4);
    CHECK_OK(gcx_graph_update(moved.handle, again));
    CHECK_EQ(raw::cuGraphDestroy(again), CUDA_SUCCESS);
    everywhere(345, 49); // 4, 9, 49, 345
    CUgraph other = nullptr;
    CHECK_EQ(raw::cuStreamBeginCapture(work.plain, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
             CUDA_SUCCESS);
    CHECK_EQ(raw::launch_spin(work.plain, 1000), CUDA_SUCCESS);
    CHECK_EQ(raw::cuStreamEndCapture(work.plain, &other), CUDA_SUCCESS);
    CHECK_EQ(gcx_graph_update(moved.handle, other), GCX_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    CHECK_EQ(raw::cuGraphDestroy(other), CUDA_SUCCESS);
    everywhere(345, 49);
}

// Blocks that wait for each other would otherwise wait forever.
void too_large_to_wait(const Kernels& kernels, Template& work) {
    constexpr unsigned kAll = 2 * 132; // of 1024 threads
    CUdeviceptr memory = 0;
    CHECK_EQ(raw::cuMemAlloc(&memory, (kMaxSms + 1) * 4), CUDA_SUCCESS);
    CHECK_EQ(raw::cuMemsetD32(memory, 0, kMaxSms + 1), CUDA_SUCCESS);
    CUgraph graph = nullptr;
    CHECK_EQ(raw::cuStreamBeginCapture(work.plain, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
             CUDA_SUCCESS);
    CHECK_EQ(launch_together(kernels.together, work.plain, kAll, 1024, memory, memory + 4),
             CUDA_SUCCESS);
    CHECK_EQ(raw::cuStreamEndCapture(work.plain, &graph), CUDA_SUCCESS);
    {
        const Moved moved(graph);
        const Split parts = split(whole_device(), {24, 108});
        const Partition small(parts.groups[0]);
        for (const gcx_resource& part : parts.groups) {
            CHECK_EQ(gcx_graph_prepare(moved.handle, &part, 1, 0),
                     GCX_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
            const std::string message = gcx_last_error_message();
            if (!CHECK(message.find("together") != std::string::npos &&
                       message.find("264") != std::string::npos))
                std::printf("   it says: %s\n", message.c_str());
        }
        CHECK_EQ(gcx_graph_launch(moved.handle, &small.stream, 1),
                 GCX_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
        CHECK_EQ(moved.info().executables, 0U);
        // The grid fits the whole device, and the largest that fits a partition runs there.
        const gcx_resource whole = whole_device();
        const Partition all(whole);
        CHECK_OK(gcx_graph_launch(moved.handle, &all.stream, 1));
        CHECK_OK(gcx_stream_synchronize(all.stream));
        gcx_kernel_params params = GCX_KERNEL_PARAMS_INIT;
        params.grid[0] = 48;
        params.grid[1] = params.grid[2] = params.block[1] = params.block[2] = 1;
        params.block[0] = 1024;
        CHECK_OK(
            gcx_graph_set_kernel(moved.handle, number_of(moved.handle, "together", kAll), &params));
        CHECK_EQ(raw::cuMemsetD32(memory, 0, 1), CUDA_SUCCESS);
        CHECK_OK(gcx_graph_launch(moved.handle, &small.stream, 1));
        CHECK_OK(gcx_stream_synchronize(small.stream));
    }
    CHECK_EQ(raw::cuGraphDestroy(graph), CUDA_SUCCESS);
    CHECK_EQ(raw::cuMemFree(memory), CUDA_SUCCESS);
}

void check_parts(const Template& work, const SmIds& first, const SmIds& second) {
    CHECK_EQ(work.left(), 338U);
    CHECK_EQ(work.right(), 17U);
    const auto within = [](const SmIds& part, const SmIds& whole) {
        return !part.empty() && std::includes(whole.begin(), whole.end(), part.begin(), part.end());
    };
    const std::vector<SmIds> all = work.all_seen();
    for (std::size_t node = 0; node < all.size(); node++)
        CHECK(within(all[node], node == Template::Right ? second : first));
    CHECK(all[Template::Fill] == first);
}

void forked_over_two(Template& work) {
    const Split captured_on = split(whole_device(), {24, 108});
    const Partition a(captured_on.groups[0]);
    const Partition b(captured_on.groups[1]);
    CUgraph forked = work.capture(a.native(), b.native());
    const Split parts = split(whole_device(), {64, 32});
    const Partition one(parts.groups[0]);
    const Partition two(parts.groups[1]);
    const Partition* const orders[][2] = {{&one, &two}, {&two, &one}, {&a, &b}};
    // The graph has the parts of its capture, or those that are set for a capture on one stream.
    for (const bool set : {false, true}) {
        const Moved moved(set ? work.graph : forked);
        if (set) {
            const uint32_t right = number_of(moved.handle, "scale", Template::kScaleGrids[2]);
            CHECK_OK(gcx_graph_set_part(moved.handle, &right, 1, 1));
        }
        CHECK_EQ(moved.info().part_count, 2U);
        for (const auto& order : orders) {
            const gcx_stream streams[] = {order[0]->stream, order[1]->stream};
            const SmIds first = order[0]->probe();
            const SmIds second = order[1]->probe();
            work.forget();
            CHECK_OK(gcx_graph_launch(moved.handle, streams, 2));
            CHECK_OK(gcx_stream_synchronize(streams[1])); // later work runs behind it
            CHECK_OK(gcx_stream_synchronize(streams[0]));
            check_parts(work, first, second);
        }
        run_on(work, moved, one.stream); // all on one
    }
    CHECK_EQ(raw::cuGraphDestroy(forked), CUDA_SUCCESS);
}

// Uses more random sets of SMs than executables are cached.
void memory_stays(Template& work, int launches) {
    std::vector<std::optional<Partition>> parts(8);
    uint32_t count = 16;
    for (auto& part : parts) {
        part.emplace(split(whole_device(), {count}).groups[0]);
        count += 16;
    }
    const Moved moved(work.graph, 4);
    const auto launch = [&](std::size_t at) {
        CHECK_OK(gcx_graph_launch(moved.handle, &parts[at]->stream, 1));
    };
    for (int round = 0; round < 3; round++)
        for (std::size_t i = 0; i < parts.size(); i++)
            launch(i);
    CHECK_EQ(raw::cuCtxSynchronize(), CUDA_SUCCESS);
    for (const auto& part : parts)
        CHECK_OK(gcx_stream_synchronize(part->stream));
    const uint64_t before = free_memory();
    std::mt19937 random(20260711);
    for (int i = 0; i < launches; i++) {
        launch(random() % parts.size());
        if (i % 50 == 49)
            for (const auto& part : parts)
                CHECK_OK(gcx_stream_synchronize(part->stream));
    }
    for (std::size_t i = 0; i < parts.size(); i++)
        launch(i);
    for (const auto& part : parts)
        CHECK_OK(gcx_stream_synchronize(part->stream));
    const uint64_t after = free_memory();
    const gcx_graph_info info = moved.info();
    std::printf("   %d launches: %llu executables made, %llu evicted, device memory %+lld bytes\n",
                launches, static_cast<unsigned long long>(info.instantiated),
                static_cast<unsigned long long>(info.evicted),
                static_cast<long long>(before) - static_cast<long long>(after));
    CHECK_EQ(info.executables, 4U);
    CHECK(info.evicted >= 20);
    CHECK(before <= after + (8ULL << 20)); // a hundred executables would take 50 MiB and more
    run_on(work, moved, parts[0]->stream);
}

void destroyed_in_flight(const Kernels& kernels, Template& work) {
    const Split parts = split(whole_device(), {24});
    CUdeviceptr seen = 0;
    CHECK_EQ(raw::cuMemAlloc(&seen, kMaxSms * 4), CUDA_SUCCESS);
    CHECK_EQ(raw::cuMemsetD32(seen, 0, kMaxSms), CUDA_SUCCESS);
    CUgraph slow = nullptr;
    CHECK_EQ(raw::cuStreamBeginCapture(work.plain, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
             CUDA_SUCCESS);
    for (int i = 0; i < 4; i++)
        CHECK_EQ(launch_fill(i % 2 == 0 ? kernels.fill : kernels.module_fill, work.plain, 48, seen,
                             10 * raw::kMillisecond),
                 CUDA_SUCCESS);
    CHECK_EQ(raw::cuStreamEndCapture(work.plain, &slow), CUDA_SUCCESS);
    auto part = std::make_unique<Partition>(parts.groups[0]);
    const SmIds sms = part->probe();
    gcx_graph graph = nullptr;
    CHECK_OK(gcx_graph_create(slow, nullptr, &graph));
    CHECK_EQ(raw::cuGraphDestroy(slow), CUDA_SUCCESS);
    CHECK_OK(gcx_graph_launch(graph, &part->stream, 1));
    CHECK_OK(gcx_graph_destroy(graph));
    CHECK_EQ(gcx_stream_query(part->stream), GCX_ERROR_NOT_READY);
    CHECK_EQ(gcx_graph_launch(graph, &part->stream, 1), GCX_ERROR_INVALID_HANDLE);
    CHECK_OK(gcx_stream_synchronize(part->stream));
    part.reset();
    std::vector<uint32_t> counts(kMaxSms);
    CHECK_EQ(raw::cuMemcpyDtoH(counts.data(), seen, counts.size() * 4), CUDA_SUCCESS);
    uint32_t blocks = 0;
    for (uint32_t sm = 0; sm < kMaxSms; sm++) {
        blocks += counts[sm];
        CHECK_EQ(counts[sm] != 0, std::binary_search(sms.begin(), sms.end(), sm));
    }
    CHECK_EQ(blocks, 4U * 48);
    CHECK_EQ(raw::cuMemFree(seen), CUDA_SUCCESS);
}

// Uses a graph in a thread in which no context is current.
void without_a_current_context(Template& work) {
    CUgraph captured = work.capture(work.plain, work.second);
    const Split parts = split(whole_device(), {24});
    const Partition part(parts.groups[0]);
    std::thread thread([&] {
        CUcontext current = nullptr;
        CHECK_EQ(raw::cuCtxGetCurrent(&current), CUDA_SUCCESS);
        CHECK(current == nullptr);
        gcx_graph graph = nullptr;
        CHECK_OK(gcx_graph_create(captured, nullptr, &graph));
        CHECK_OK(gcx_graph_prepare(graph, parts.groups.data(), 1, 0));
        CHECK_OK(gcx_graph_launch(graph, &part.stream, 1));
        CHECK_OK(gcx_graph_update(graph, captured));
        CHECK_OK(gcx_graph_launch(graph, &part.stream, 1));
        CHECK_OK(gcx_stream_synchronize(part.stream));
        CHECK_OK(gcx_graph_destroy(graph));
        CHECK_EQ(raw::cuCtxGetCurrent(&current), CUDA_SUCCESS);
        CHECK(current == nullptr);
    });
    thread.join();
    CHECK_EQ(raw::cuGraphDestroy(captured), CUDA_SUCCESS);
}

} // namespace

void test_graphs(bool quick) {
    const raw::InPrimary current;
    const Kernels kernels;
    Template work(kernels);
    section("graphs: descriptions of their nodes");
    nodes_are_described(work);
    section("graphs on partitions and leases");
    on_partitions_and_leases(work);
    section("graphs: changed parameters");
    changed_parameters(work);
    section("graphs where no context is current");
    without_a_current_context(work);
    section("graphs in parts");
    forked_over_two(work);
    section("graphs: device memory");
    memory_stays(work, quick ? 40 : 1000);
    if (!quick) { // compute-sanitizer runs no kernel next to the host, and reports refusals
        section("graphs too large to wait");
        too_large_to_wait(kernels, work);
        section("graphs destroyed in flight");
        destroyed_in_flight(kernels, work);
    }
}

// Tests graphs that are captured once and launched on any SMs: what moves, what is reported, what
// is refused.

#include "driver_wrapper.hpp"
#include "graph_kernels.hpp"
#include "leases.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <memory>

using namespace support;
using From = GraphKernels::From;

namespace {

// Captures a kernel of a library, a memset, and a kernel of a module.
CUgraph capture_mixed(const GraphKernels& kernels, CUstream stream) {
    return capture(stream, [&] {
        kernels.probe(stream, From::library, 0);
        kernels.clear(stream, 2);
        kernels.probe(stream, From::module, 1);
    });
}

gcx_graph make(CUgraph captured, const gcx_graph_params* params = nullptr) {
    gcx_graph graph = nullptr;
    CHECK_OK(gcx_graph_create(captured, params, &graph));
    return graph;
}

// Has two partitions of a device, of 24 and 108 SMs.
struct Two {
    Split parts = split(whole_device(), {24, 108});
    Partition small{parts.groups[0]};
    Partition large{parts.groups[1]};
};

void graph_runs_where_it_is_launched() {
    const GraphKernels kernels;
    const Two two;
    gcx_graph graph = graph_of(capture_mixed(kernels, kernels.plain));
    for (int round = 0; round < 3; round++) {
        for (const Partition* part : {&two.small, &two.large}) {
            CHECK_OK(gcx_graph_launch(graph, &part->stream, 1));
            CHECK_OK(gcx_stream_synchronize(part->stream));
            const SmIds sms = part->probe();
            CHECK(kernels.take_sms(0) == sms);
            CHECK(kernels.take_sms(1) == sms);
        }
    }
    const gcx_graph_info info = info_of(graph);
    CHECK_EQ(info.instantiated, 2U);
    CHECK_EQ(info.launches, 6U);
    CHECK_EQ(info.executables, 2U);
    CHECK_EQ(info.node_count, 3U);
    CHECK_EQ(info.kernel_count, 2U);
    CHECK_EQ(info.part_count, 1U);
    CHECK_EQ(info.max_executables, 16U); // the default of the header
    CHECK_OK(gcx_graph_destroy(graph));
}

// Returns the kernels that ran during the body.
template <class Body>
std::vector<gcx_sim_run> runs_of(Body&& body) {
    sim::note_runs(1000);
    body();
    const std::vector<gcx_sim_run> runs = sim::runs();
    sim::note_runs(0);
    return runs;
}

// Captures each kind of node that can move, in a row.
void node_of_every_kind_moves() {
    const GraphKernels kernels;
    const Two two;
    std::atomic<int> called{0};
    CUevent event = nullptr;
    {
        const Current current(kernels.primary);
        CHECK_NATIVE(cuEventCreate, &event, CU_EVENT_DEFAULT);
    }
    CUgraph child = capture(kernels.plain, [&] {
        kernels.probe(kernels.plain, From::module, 3);
        kernels.clear(kernels.plain, 4);
    });
    CUgraph captured = capture(kernels.plain, [&] {
        kernels.probe(kernels.plain, From::library, 0);
        kernels.copy(kernels.plain, 0, 2);
        kernels.clear(kernels.plain, 1);
        CHECK_EQ(NATIVE(cuLaunchHostFunc)(
                     kernels.plain, [](void* count) { ++*static_cast<std::atomic<int>*>(count); },
                     &called),
                 CUDA_SUCCESS);
        CHECK_NATIVE(cuEventRecordWithFlags, event, kernels.plain, CU_EVENT_RECORD_EXTERNAL);
        kernels.probe(kernels.plain, From::module, 1);
    });
    // The last node of the copy runs behind it.
    std::size_t count = 0;
    CHECK_NATIVE(cuGraphGetNodes, captured, nullptr, &count);
    std::vector<CUgraphNode> natives(count);
    CHECK_NATIVE(cuGraphGetNodes, captured, natives.data(), &count);
    CUgraphNode added = nullptr;
    CHECK_NATIVE(cuGraphAddChildGraphNode, &added, captured, &natives.back(), 1, child);
    CHECK_NATIVE(cuGraphAddEmptyNode, &added, captured, &added, 1);
    gcx_graph graph = graph_of(captured);
    CHECK_NATIVE(cuGraphDestroy, child);

    const auto nodes = nodes_of(graph);
    const std::vector<int> kinds = {GCX_GRAPH_NODE_KERNEL,       GCX_GRAPH_NODE_MEMCPY,
                                    GCX_GRAPH_NODE_MEMSET,       GCX_GRAPH_NODE_HOST,
                                    GCX_GRAPH_NODE_EVENT_RECORD, GCX_GRAPH_NODE_KERNEL,
                                    GCX_GRAPH_NODE_GRAPH,        GCX_GRAPH_NODE_KERNEL,
                                    GCX_GRAPH_NODE_MEMSET,       GCX_GRAPH_NODE_EMPTY};
    if (CHECK_EQ(nodes.size(), kinds.size())) {
        for (std::size_t i = 0; i < kinds.size(); i++)
            CHECK_EQ(static_cast<int>(nodes[i].kind), kinds[i]);
        CHECK_EQ(nodes[7].parent, 6U);
        CHECK_EQ(nodes[9].parent, GCX_NO_NODE);
        CHECK_EQ(std::string(nodes[0].name), std::string("gcx_probe"));
        CHECK_EQ(nodes[0].grid[0], 1024U);
        CHECK_EQ(nodes[0].block[0], 64U);
        CHECK(nodes[0].blocks_per_sm > 0);
    }
    for (const Partition* part : {&two.small, &two.large, &two.small}) {
        const SmIds sms = part->probe();
        const auto runs = runs_of([&] {
            CHECK_OK(gcx_graph_launch(graph, &part->stream, 1));
            CHECK_OK(gcx_stream_synchronize(part->stream));
        });
        if (!CHECK_EQ(runs.size(), 7U))
            continue;
        for (std::size_t i = 0; i < runs.size(); i++) {
            if (runs[i].kind != GCX_SIM_RUN_HOST)
                CHECK(sm_ids(runs[i].sms) == sms);
            CHECK(i == 0 || runs[i].begin_ns >= runs[i - 1].end_ns); // they stay in a row
        }
        for (const uint32_t place : {0U, 1U, 3U})
            CHECK(kernels.take_sms(place) == sms);
    }
    CHECK_EQ(called.load(), 3);
    CHECK_OK(gcx_graph_destroy(graph));
    CHECK_NATIVE(cuEventDestroy, event);
}

void graph_follows_a_lease() {
    const GraphKernels kernels;
    gcx_graph graph = graph_of(capture_mixed(kernels, kernels.plain));
    const gcx_lease lease = acquire(32);
    const gcx_stream stream = stream_of(lease);
    // Prepares both layouts.
    for (const uint32_t count : {64U, 32U}) {
        CHECK_OK(resize({{lease, count, 0}}));
        gcx_resource sms = resource_of(lease);
        CHECK_OK(gcx_graph_prepare(graph, &sms, 1, GCX_PREPARE_FOR_LEASES));
    }
    CHECK_EQ(info_of(graph).instantiated, 2U);
    for (const uint32_t count : {32U, 64U, 32U}) {
        CHECK_OK(resize({{lease, count, 0}}));
        CHECK_OK(gcx_graph_launch(graph, &stream, 1));
        CHECK_OK(gcx_lease_synchronize(lease));
        CHECK_EQ(kernels.count_sms(0), count);
        CHECK_EQ(kernels.count_sms(1), count);
    }
    CHECK_EQ(info_of(graph).instantiated, 2U);
    CHECK_OK(gcx_stream_destroy(stream));
    CHECK_REFUSED(gcx_graph_launch(graph, &stream, 1), GCX_ERROR_INVALID_HANDLE);
    CHECK_OK(gcx_lease_release(lease));
    CHECK_OK(gcx_graph_destroy(graph));
}

void parts_run_on_their_own_sms() {
    const GraphKernels kernels;
    const Two two;
    const SmIds small = two.small.probe();
    const SmIds large = two.large.probe();
    CUstream native[] = {gcx_stream_native(two.small.stream), gcx_stream_native(two.large.stream)};
    for (const From from : {From::library, From::module}) {
        gcx_graph graph = graph_of(capture_fork(kernels, native[0], native[1], from));
        CHECK_EQ(info_of(graph).part_count, 2U);
        const gcx_stream straight[] = {two.small.stream, two.large.stream};
        const gcx_stream crossed[] = {two.large.stream, two.small.stream};
        CHECK_OK(gcx_graph_launch(graph, straight, 2));
        CHECK(kernels.take_sms(0) == small);
        CHECK(kernels.take_sms(1) == large);
        CHECK_OK(gcx_graph_launch(graph, crossed, 2));
        CHECK(kernels.take_sms(0) == large);
        CHECK(kernels.take_sms(1) == small);
        // All parts run in one place, whichever way that is requested.
        const gcx_stream same[] = {two.small.stream, two.small.stream};
        CHECK_OK(gcx_graph_launch(graph, same, 2));
        CHECK(kernels.take_sms(0) == small);
        CHECK(kernels.take_sms(1) == small);
        CHECK_EQ(info_of(graph).instantiated, 3U);
        CHECK_OK(gcx_graph_launch(graph, &two.small.stream, 1));
        CHECK(kernels.take_sms(0) == small);
        CHECK(kernels.take_sms(1) == small);
        CHECK_EQ(info_of(graph).instantiated, 3U);
        const gcx_stream three[] = {two.small.stream, two.large.stream, two.small.stream};
        CHECK_REFUSED(gcx_graph_launch(graph, three, 3), GCX_ERROR_INVALID_VALUE);
        CHECK_OK(gcx_graph_prepare(graph, two.parts.groups.data(), 2, 0));
        CHECK_EQ(info_of(graph).instantiated, 3U);
        CHECK_OK(gcx_graph_destroy(graph));
    }
}

// A launch runs after earlier work of both streams, and before later work.
void parts_keep_the_order_of_all_streams() {
    const GraphKernels kernels;
    const Two two;
    CUstream native[] = {gcx_stream_native(two.small.stream), gcx_stream_native(two.large.stream)};
    gcx_graph graph = graph_of(capture_fork(kernels, native[0], native[1]));
    const gcx_stream streams[] = {two.small.stream, two.large.stream};
    CHECK_OK(gcx_graph_prepare(graph, two.parts.groups.data(), 2, 0));
    const auto runs = runs_of([&] {
        kernels.spin(native[1], 5'000'000);
        CHECK_OK(gcx_graph_launch(graph, streams, 2));
        kernels.spin(native[1], 1'000);
        kernels.spin(native[0], 1'000);
    });
    if (CHECK_EQ(runs.size(), 7U)) {
        uint64_t end = 0;
        for (std::size_t i = 1; i < 5; i++) {
            CHECK(runs[i].launch != 0);
            CHECK(runs[i].begin_ns >= runs[0].end_ns);
            end = std::max(end, runs[i].end_ns);
        }
        CHECK(runs[5].begin_ns >= end);
        CHECK(runs[6].begin_ns >= end);
    }
    // Further launches over streams that have work reuse the events that order them.
    const uint64_t events = sim::counts().events;
    for (int round = 0; round < 10; round++) {
        kernels.spin(native[1], 1'000'000);
        CHECK_OK(gcx_graph_launch(graph, streams, 2));
        CHECK_EQ(sim::counts().events, events);
    }
    for (const gcx_stream stream : {two.small.stream, two.large.stream})
        CHECK_OK(gcx_stream_synchronize(stream));
    CHECK_OK(gcx_graph_destroy(graph));
}

// Captures a copy and a kernel in the second of two streams: the kernel or the copy comes last.
CUgraph capture_copies(const GraphKernels& kernels, const CUstream (&streams)[2], bool kernel_last,
                       uint32_t from = 2) {
    CUevent fork = nullptr;
    CUevent join = nullptr;
    const Current current(kernels.primary);
    CHECK_NATIVE(cuEventCreate, &fork, CU_EVENT_DISABLE_TIMING);
    CHECK_NATIVE(cuEventCreate, &join, CU_EVENT_DISABLE_TIMING);
    CUgraph captured = capture(streams[0], [&] {
        kernels.probe(streams[0], From::library, 0);
        CHECK_NATIVE(cuEventRecord, fork, streams[0]);
        CHECK_NATIVE(cuStreamWaitEvent, streams[1], fork, 0);
        if (!kernel_last)
            kernels.probe(streams[1], From::library, 1);
        kernels.copy(streams[1], from, 3);
        if (kernel_last)
            kernels.probe(streams[1], From::library, 1);
        CHECK_NATIVE(cuEventRecord, join, streams[1]);
        CHECK_NATIVE(cuStreamWaitEvent, streams[0], join, 0);
    });
    CHECK_NATIVE(cuEventDestroy, fork);
    CHECK_NATIVE(cuEventDestroy, join);
    return captured;
}

std::vector<uint32_t> parts_of(gcx_graph graph) {
    std::vector<uint32_t> parts;
    for (const gcx_graph_node& node : nodes_of(graph))
        parts.push_back(node.part);
    return parts;
}

// CUDA reports no context of a copy. An update keeps what gcx or set_part() assigned.
void copies_join_the_part_of_the_kernel_before_them() {
    const GraphKernels kernels;
    const Two two;
    const CUstream streams[] = {gcx_stream_native(two.small.stream),
                                gcx_stream_native(two.large.stream)};
    CUgraph kernel_last = capture_copies(kernels, streams, true);
    gcx_graph graph = make(kernel_last);
    CHECK(parts_of(graph) == std::vector<uint32_t>({0, 0, 1}));
    CHECK_OK(gcx_graph_destroy(graph));
    CHECK_NATIVE(cuGraphDestroy, kernel_last);

    CUgraph copy_last = capture_copies(kernels, streams, false);
    graph = make(copy_last);
    CHECK(parts_of(graph) == std::vector<uint32_t>({0, 1, 1}));
    const uint32_t copy = 2;
    CHECK_OK(gcx_graph_set_part(graph, &copy, 1, 0));
    CUgraph other_copy = capture_copies(kernels, streams, false, 4);
    for (CUgraph captured : {copy_last, other_copy}) {
        CHECK_OK(gcx_graph_update(graph, captured));
        CHECK(parts_of(graph) == std::vector<uint32_t>({0, 1, 0}));
        CHECK_NATIVE(cuGraphDestroy, captured);
    }
    CHECK_OK(gcx_graph_destroy(graph));
}

CUgraphNode last_node(CUgraph graph) {
    std::size_t count = 0;
    CHECK_NATIVE(cuGraphGetNodes, graph, nullptr, &count);
    std::vector<CUgraphNode> nodes(count);
    CHECK_NATIVE(cuGraphGetNodes, graph, nodes.data(), &count);
    return nodes.at(count - 1);
}

// Adds a memset behind a node, or behind none.
CUgraphNode add_memset(const GraphKernels& kernels, CUgraph graph, CUgraphNode after = nullptr) {
    CUDA_MEMSET_NODE_PARAMS params{};
    params.dst = kernels.at(4);
    params.elementSize = 4;
    params.width = params.height = 1;
    CUgraphNode added = nullptr;
    CHECK_NATIVE(cuGraphAddMemsetNode, &added, graph, &after, after != nullptr ? 1 : 0, &params,
                 kernels.primary);
    return added;
}

// The nearest kernel of a copy may be in a child graph before or behind it, or around its own.
void copies_join_the_part_of_kernels_of_other_levels() {
    const GraphKernels kernels;
    const Two two;
    CUstream small = gcx_stream_native(two.small.stream);
    CUstream large = gcx_stream_native(two.large.stream);
    CUgraph kernel = capture(large, [&] { kernels.probe(large, From::library, 1); });
    CUgraph memset_first = capture(large, [&] {
        kernels.clear(large, 4);
        kernels.probe(large, From::library, 1);
    });
    CUgraph memset_alone = capture(large, [&] { kernels.clear(large, 4); });
    // The first node is a kernel of part 0. add() adds others to it.
    const auto check = [&](const std::vector<uint32_t>& expected, const auto& add) {
        CUgraph captured = capture(small, [&] { kernels.probe(small, From::library, 0); });
        add(captured, last_node(captured));
        gcx_graph graph = graph_of(captured);
        CHECK(parts_of(graph) == expected);
        CHECK_OK(gcx_graph_destroy(graph));
    };
    const auto add_child = [&](CUgraph graph, CUgraph child, CUgraphNode after = nullptr) {
        CUgraphNode added = nullptr;
        CHECK_NATIVE(cuGraphAddChildGraphNode, &added, graph, &after, after != nullptr ? 1 : 0,
                     child);
        return added;
    };
    // A memset behind a child graph's kernel.
    check({0, 1, 1, 1}, [&](CUgraph graph, CUgraphNode) {
        add_memset(kernels, graph, add_child(graph, kernel));
    });
    // One before it, with no other kernel.
    check({0, 1, 1, 1}, [&](CUgraph graph, CUgraphNode) {
        add_child(graph, kernel, add_memset(kernels, graph));
    });
    // The first node of a child graph behind the first kernel.
    check({0, 0, 0, 1},
          [&](CUgraph graph, CUgraphNode first) { add_child(graph, memset_first, first); });
    // The only node of a child graph behind another one.
    check({0, 1, 1, 1, 1}, [&](CUgraph graph, CUgraphNode) {
        add_child(graph, memset_alone, add_child(graph, kernel));
    });
    // The kernel behind it counts, even if other nodes in between are behind another kernel.
    check({0, 1, 0, 0, 1}, [&](CUgraph graph, CUgraphNode first) {
        CUgraphNode from[] = {add_memset(kernels, graph), first};
        CUgraphNode both = nullptr;
        CHECK_NATIVE(cuGraphAddEmptyNode, &both, graph, from, 2);
        add_child(graph, kernel, both);
    });
    for (CUgraph child : {kernel, memset_first, memset_alone})
        CHECK_NATIVE(cuGraphDestroy, child);
}

void set_part_without_nodes_adds_no_part(gcx_graph graph) {
    const uint32_t parts = info_of(graph).part_count;
    CHECK_REFUSED(gcx_graph_set_part(graph, nullptr, 0, parts), GCX_ERROR_INVALID_VALUE);
    CHECK(std::string(gcx_last_error_message()).find("at least one node") != std::string::npos);
    CHECK_REFUSED(gcx_graph_set_part(graph, nullptr, 0, parts + 1), GCX_ERROR_INVALID_VALUE);
    CHECK_EQ(info_of(graph).part_count, parts);
    const uint32_t executables = info_of(graph).executables;
    CHECK_OK(gcx_graph_set_part(graph, nullptr, 0, parts - 1)); // nothing changes
    CHECK_EQ(info_of(graph).part_count, parts);
    CHECK_EQ(info_of(graph).executables, executables);
}

void set_part_assigns_nodes() {
    const GraphKernels kernels;
    const Two two;
    gcx_graph graph = graph_of(capture_mixed(kernels, kernels.plain));
    const gcx_stream streams[] = {two.small.stream, two.large.stream};
    CHECK_REFUSED(gcx_graph_launch(graph, streams, 2), GCX_ERROR_INVALID_VALUE);
    const uint32_t last = 2;
    const uint32_t none = 3;
    CHECK_REFUSED(gcx_graph_set_part(graph, &last, 1, 2), GCX_ERROR_INVALID_VALUE);
    CHECK_REFUSED(gcx_graph_set_part(graph, &none, 1, 1), GCX_ERROR_INVALID_VALUE);
    CHECK_REFUSED(gcx_graph_set_part(graph, nullptr, 1, 1), GCX_ERROR_INVALID_VALUE);
    set_part_without_nodes_adds_no_part(graph);
    CHECK_OK(gcx_graph_set_part(graph, &last, 1, 1));
    CHECK_EQ(nodes_of(graph)[2].part, 1U);
    CHECK_OK(gcx_graph_launch(graph, streams, 2));
    CHECK(kernels.take_sms(0) == two.small.probe());
    CHECK(kernels.take_sms(1) == two.large.probe());
    CHECK_EQ(info_of(graph).executables, 1U);
    set_part_without_nodes_adds_no_part(graph);
    CHECK_EQ(info_of(graph).executables, 1U);
    CHECK_OK(gcx_graph_set_part(graph, &last, 1, 0));
    CHECK_EQ(info_of(graph).executables, 0U);
    CHECK_OK(gcx_graph_launch(graph, streams, 2));
    CHECK(kernels.take_sms(1) == two.small.probe());
    // The partition of the capture does not decide the parts.
    gcx_stream plain = handle_for(kernels.plain);
    CHECK_OK(gcx_graph_set_part(graph, &last, 1, 1));
    CHECK_OK(gcx_graph_launch(graph, &plain, 1));
    CHECK_EQ(kernels.count_sms(0), 132U);
    CHECK_EQ(kernels.count_sms(1), 132U);
    CHECK_OK(gcx_stream_destroy(plain));
    CHECK_OK(gcx_graph_destroy(graph));
}

struct ProbeArguments {
    CUdeviceptr counts;
    uint32_t max_sms;
    uint32_t nanoseconds;
};

// set_kernel() changes a kernel's arguments in all executables, in place.
void set_kernel_changes_all_executables() {
    const GraphKernels kernels;
    const Two two;
    gcx_graph graph = graph_of(capture_mixed(kernels, kernels.plain));
    for (const gcx_resource& part : two.parts.groups)
        CHECK_OK(gcx_graph_prepare(graph, &part, 1, 0));
    const ProbeArguments elsewhere = {kernels.at(6), GraphKernels::kMaxSms, 2'000};
    gcx_kernel_params params = GCX_KERNEL_PARAMS_INIT;
    params.grid[0] = 512;
    params.grid[1] = params.grid[2] = params.block[1] = params.block[2] = 1;
    params.block[0] = 128;
    params.arguments = &elsewhere;
    params.argument_bytes = sizeof elsewhere;
    for (const uint32_t node : {0U, 2U}) {
        const uint64_t made = info_of(graph).instantiated;
        CHECK_OK(gcx_graph_set_kernel(graph, node, &params));
        CHECK_EQ(info_of(graph).instantiated, made);
        CHECK_EQ(nodes_of(graph)[node].grid[0], 512U);
        for (const Partition* part : {&two.small, &two.large}) {
            CHECK_OK(gcx_graph_launch(graph, &part->stream, 1));
            CHECK(kernels.take_sms(6) == part->probe());
            CHECK_EQ(kernels.count_sms(node / 2), 0U);
            kernels.take_sms(1);
        }
    }
    // Executables created later have the change, too.
    const Split third = split(whole_device(), {64});
    const Partition other(third.groups[0]);
    CHECK_OK(gcx_graph_launch(graph, &other.stream, 1));
    CHECK(kernels.take_sms(6) == other.probe());

    CHECK_REFUSED(gcx_graph_set_kernel(graph, 1, &params), GCX_ERROR_INVALID_VALUE);
    CHECK_REFUSED(gcx_graph_set_kernel(graph, 3, &params), GCX_ERROR_INVALID_VALUE);
    params.argument_bytes = sizeof elsewhere - 1;
    CHECK_REFUSED(gcx_graph_set_kernel(graph, 0, &params), GCX_ERROR_INVALID_VALUE);
    params.arguments = nullptr; // keeps the arguments it has
    params.grid[0] = 0;
    CHECK_REFUSED(gcx_graph_set_kernel(graph, 0, &params), GCX_ERROR_INVALID_VALUE);
    params.grid[0] = 256;
    params.block[0] = 4096; // more than the driver accepts
    const uint64_t launches = info_of(graph).launches;
    CHECK(gcx_graph_set_kernel(graph, 0, &params) != GCX_SUCCESS);
    CHECK_EQ(nodes_of(graph)[0].block[0], 128U);
    CHECK_OK(gcx_graph_launch(graph, &two.small.stream, 1));
    CHECK(kernels.take_sms(6) == two.small.probe());
    CHECK_EQ(info_of(graph).launches, launches + 1);
    CHECK_OK(gcx_graph_destroy(graph));
}

// Without an executable, too, parameters that no launch can have are refused and change nothing.
void set_kernel_before_launches_is_checked() {
    const GraphKernels kernels;
    const Two two;
    gcx_graph graph = graph_of(capture_mixed(kernels, kernels.plain));
    struct Case {
        uint32_t grid[3];
        uint32_t block[3];
        uint32_t shared_bytes;
    };
    const Case cases[] = {
        {{1, 1, 1}, {4096, 1, 1}, 0},
        {{1, 1, 1}, {1, 1, 65}, 0},
        {{1, 1, 1}, {UINT32_MAX, UINT32_MAX, 1}, 0}, // a product of 1
        {{1, 70'000, 1}, {1, 1, 1}, 0},
        {{UINT32_MAX, 1, 1}, {1, 1, 1}, 0},
        {{1, 1, 1}, {1, 1, 1}, 300'000},
    };
    for (const uint32_t node : {0U, 2U}) {
        for (const Case& one : cases) {
            gcx_kernel_params params = GCX_KERNEL_PARAMS_INIT;
            std::copy_n(one.grid, 3, params.grid);
            std::copy_n(one.block, 3, params.block);
            params.shared_bytes = one.shared_bytes;
            CHECK_REFUSED(gcx_graph_set_kernel(graph, node, &params), GCX_ERROR_INVALID_VALUE);
            CHECK(message_has(one.block[0] > 1024 ? "at most 1024 threads"
                                                  : "a kernel node of gcx_probe"));
            CHECK_EQ(nodes_of(graph)[node].grid[0], 1024U);
        }
    }
    CHECK_OK(gcx_graph_launch(graph, &two.small.stream, 1));
    for (const uint32_t place : {0U, 1U})
        CHECK(kernels.take_sms(place) == two.small.probe());
    CHECK_OK(gcx_graph_destroy(graph));
}

// Of a kernel without parameters, no argument is read.
void set_kernel_without_parameters_reads_no_arguments() {
    const GraphKernels kernels;
    const Two two;
    const Current current(kernels.primary);
    CUmodule module_ = nullptr;
    CUfunction function = nullptr;
    CHECK_NATIVE(cuModuleLoadData, &module_,
                 ".version 6.3\n.target sm_70\n.address_size 64\n.visible .entry nothing()\n"
                 "{ ret; }\n");
    CHECK_NATIVE(cuModuleGetFunction, &function, module_, "nothing");
    gcx_graph graph = graph_of(capture(kernels.plain, [&] {
        CHECK_NATIVE(cuLaunchKernel, function, 1, 1, 1, 1, 1, 1, 0, kernels.plain, nullptr,
                     nullptr);
    }));
    gcx_kernel_params params = GCX_KERNEL_PARAMS_INIT;
    std::fill_n(params.grid, 3, 1U);
    std::fill_n(params.block, 3, 1U);
    params.arguments = &params;
    for (const uint64_t bytes : {uint64_t{0}, UINT64_MAX}) {
        params.argument_bytes = bytes;
        CHECK_OK(gcx_graph_set_kernel(graph, 0, &params));
        CHECK_OK(gcx_graph_launch(graph, &two.small.stream, 1));
    }
    CHECK_OK(gcx_graph_destroy(graph));
    CHECK_NATIVE(cuModuleUnload, module_);
}

void update_takes_over_another_capture() {
    const GraphKernels kernels;
    const Two two;
    const auto captured_for = [&](uint32_t place, uint32_t cleared, From from = From::library) {
        return capture(kernels.plain, [&] {
            kernels.clear(kernels.plain, cleared);
            kernels.probe(kernels.plain, from, place);
        });
    };
    CUgraph first = captured_for(0, 1);
    CUgraph moved = captured_for(2, 1);   // a kernel's argument
    CUgraph cleared = captured_for(2, 3); // the memset's
    CUgraph other = capture(kernels.plain, [&] { kernels.probe(kernels.plain, From::library, 0); });
    CUgraph turned = capture(kernels.plain, [&] {
        kernels.probe(kernels.plain, From::library, 0);
        kernels.clear(kernels.plain, 1);
    });
    gcx_graph graph = make(first);
    for (const gcx_resource& part : two.parts.groups)
        CHECK_OK(gcx_graph_prepare(graph, &part, 1, 0));
    const auto check = [&](uint32_t place, uint64_t made) {
        CHECK_EQ(info_of(graph).instantiated, made);
        for (const Partition* part : {&two.small, &two.large}) {
            CHECK_OK(gcx_graph_launch(graph, &part->stream, 1));
            CHECK(kernels.take_sms(place) == part->probe());
        }
        CHECK_EQ(info_of(graph).instantiated, made);
    };
    CHECK_OK(gcx_graph_update(graph, first));
    check(0, 2);
    CHECK_OK(gcx_graph_update(graph, moved));
    check(2, 2);
    CHECK_OK(gcx_graph_update(graph, cleared));
    check(2, 4);
    CHECK_REFUSED(gcx_graph_update(graph, other), GCX_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    CHECK_REFUSED(gcx_graph_update(graph, turned), GCX_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    check(2, 4);
    for (CUgraph captured : {first, moved, cleared, other, turned})
        CHECK_NATIVE(cuGraphDestroy, captured);
    CHECK_OK(gcx_graph_destroy(graph));
}

// The same nodes in another order, in a row or as a fork, are a different graph.
void update_with_another_order_is_refused() {
    const GraphKernels kernels;
    const External second;
    CUgraph in_a_row = capture_fork(kernels, kernels.plain, kernels.plain);
    CUgraph forked = capture_fork(kernels, kernels.plain, second.stream);
    gcx_graph graph = make(in_a_row);
    CHECK_OK(gcx_graph_update(graph, in_a_row));
    CHECK_REFUSED(gcx_graph_update(graph, forked), GCX_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    CHECK(message_has("the order of its nodes differs"));
    for (CUgraph captured : {in_a_row, forked})
        CHECK_NATIVE(cuGraphDestroy, captured);
    CHECK_OK(gcx_graph_destroy(graph));
}

// A node reports the cluster of its launch; a cluster of one block is none.
void nodes_report_clusters() {
    const GraphKernels kernels;
    const std::vector<uint32_t> none = {0, 0, 0};
    for (const std::vector<uint32_t>& size :
         {std::vector<uint32_t>{2, 1, 1}, {1, 2, 1}, {1, 1, 2}, {1, 1, 1}}) {
        gcx_graph graph = graph_of(capture(kernels.plain, [&] {
            CUdeviceptr counts = kernels.at(0);
            uint32_t max_sms = GraphKernels::kMaxSms;
            uint32_t nanoseconds = 1'000;
            void* arguments[] = {&counts, &max_sms, &nanoseconds};
            CUlaunchAttribute attribute{};
            attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
            attribute.value.clusterDim.x = size[0];
            attribute.value.clusterDim.y = size[1];
            attribute.value.clusterDim.z = size[2];
            CUlaunchConfig config{};
            config.gridDimX = config.gridDimY = config.gridDimZ = 4;
            config.blockDimX = config.blockDimY = config.blockDimZ = 4;
            config.hStream = kernels.plain;
            config.attrs = &attribute;
            config.numAttrs = 1;
            CHECK_NATIVE(cuLaunchKernelEx, &config, kernels.library_probe, arguments, nullptr);
            kernels.probe(kernels.plain, From::library, 0);
        }));
        const auto nodes = nodes_of(graph);
        const bool clustered = size[0] * size[1] * size[2] > 1;
        CHECK(std::equal(none.begin(), none.end(), nodes.at(1).cluster));
        CHECK(std::equal(none.begin(), none.end(), nodes.at(0).cluster) == !clustered);
        if (clustered)
            CHECK(std::equal(size.begin(), size.end(), nodes.at(0).cluster));
        CHECK_OK(gcx_graph_destroy(graph));
    }
}

// The executable used last stays, even if the graph was updated in between.
void updates_refused_by_the_driver_rebuild() {
    const GraphKernels kernels;
    const Split parts = split(whole_device(), {24, 32, 40});
    const auto captured_for = [&](uint32_t cleared) {
        return capture(kernels.plain, [&] {
            kernels.clear(kernels.plain, cleared);
            kernels.probe(kernels.plain, From::library, 0);
        });
    };
    CUgraph first = captured_for(1);
    CUgraph second = captured_for(2);
    gcx_graph_params params = GCX_GRAPH_PARAMS_INIT;
    params.max_executables = 2;
    gcx_graph graph = make(first, &params);
    const Partition a(parts.groups[0]);
    const Partition b(parts.groups[1]);
    const Partition c(parts.groups[2]);
    for (const Partition* part : {&a, &b, &a})
        CHECK_OK(gcx_graph_launch(graph, &part->stream, 1));
    CHECK_OK(gcx_graph_update(graph, second));
    CHECK_EQ(info_of(graph).instantiated, 4U);
    CHECK_OK(gcx_graph_launch(graph, &c.stream, 1)); // evicts b
    CHECK_OK(gcx_graph_launch(graph, &a.stream, 1));
    CHECK_EQ(info_of(graph).instantiated, 5U);
    CHECK_OK(gcx_graph_update(graph, first));
    CHECK_OK(gcx_graph_launch(graph, &b.stream, 1)); // evicts c
    CHECK_OK(gcx_graph_launch(graph, &a.stream, 1));
    CHECK_EQ(info_of(graph).instantiated, 8U);
    CHECK_EQ(info_of(graph).evicted, 2U);
    for (CUgraph captured : {first, second})
        CHECK_NATIVE(cuGraphDestroy, captured);
    CHECK_OK(gcx_graph_destroy(graph));
}

// A failure is retried: the executable is destroyed at the second attempt, and no message is
// logged.
void failed_destruction_of_an_executable_is_repeated() {
    static std::atomic<int> errors{0};
    const GraphKernels kernels;
    const Two two;
    gcx_graph_params params = GCX_GRAPH_PARAMS_INIT;
    params.max_executables = 1;
    gcx_graph graph = graph_of(capture_mixed(kernels, kernels.plain), &params);
    CHECK_OK(gcx_graph_launch(graph, &two.small.stream, 1));
    const uint64_t graphs = sim::counts().graphs;
    errors = 0;
    CHECK_OK(gcx_log_set_callback(
        GCX_LOG_ERROR, [](gcx_log_level, const char*, void*) { errors++; }, nullptr));
    sim::fail("cuGraphExecDestroy", 1, CUDA_ERROR_UNKNOWN);
    CHECK_OK(gcx_graph_launch(graph, &two.large.stream, 1));
    CHECK_OK(gcx_log_set_callback(GCX_LOG_NONE, nullptr, nullptr));
    CHECK_EQ(info_of(graph).evicted, 1U);
    CHECK_EQ(sim::counts().graphs, graphs);
    CHECK_EQ(errors.load(), 0);
    CHECK_OK(gcx_graph_destroy(graph));
}

void least_recently_used_executable_is_evicted() {
    const GraphKernels kernels;
    const Split parts = split(whole_device(), {24, 32, 40});
    gcx_graph_params params = GCX_GRAPH_PARAMS_INIT;
    params.max_executables = 2;
    gcx_graph graph = graph_of(capture_mixed(kernels, kernels.plain), &params);
    const Partition a(parts.groups[0]);
    const Partition b(parts.groups[1]);
    const Partition c(parts.groups[2]);
    for (const Partition* part : {&a, &b, &a, &c, &a}) // evicts b
        CHECK_OK(gcx_graph_launch(graph, &part->stream, 1));
    CHECK_EQ(info_of(graph).instantiated, 3U);
    CHECK_EQ(info_of(graph).evicted, 1U);
    CHECK_EQ(info_of(graph).executables, 2U);
    CHECK_OK(gcx_graph_launch(graph, &b.stream, 1));
    CHECK_EQ(info_of(graph).instantiated, 4U);
    CHECK_OK(gcx_graph_destroy(graph));
}

void immovable_nodes_are_refused() {
    const GraphKernels kernels;
    CUgraph captured = capture(kernels.plain, [&] {
        CUdeviceptr memory = 0;
        kernels.probe(kernels.plain, From::library, 0);
        CHECK_NATIVE(cuMemAllocAsync, &memory, 1024, kernels.plain);
        CHECK_NATIVE(cuMemFreeAsync, memory, kernels.plain);
    });
    gcx_graph graph = nullptr;
    CHECK_REFUSED(gcx_graph_create(captured, nullptr, &graph), GCX_ERROR_NOT_SUPPORTED);
    CHECK(message_has("memory allocation"));
    CHECK_NATIVE(cuGraphDestroy, captured);

    // Its number counts the nodes of child graphs before it, as gcx_graph_get_nodes does.
    CUgraph child = capture(kernels.plain, [&] {
        kernels.probe(kernels.plain, From::library, 0);
        kernels.clear(kernels.plain, 1);
    });
    CUgraphNode added = nullptr;
    CUgraphNodeParams allocation{};
    allocation.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC;
    allocation.alloc.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    allocation.alloc.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    allocation.alloc.bytesize = 1024;
    CHECK_NATIVE(cuGraphCreate, &captured, 0);
    CHECK_NATIVE(cuGraphAddChildGraphNode, &added, captured, nullptr, 0, child);
    {
        const Current current(kernels.primary);
        CHECK_NATIVE(cuGraphAddNode_v2, &added, captured, &added, nullptr, 1, &allocation);
    }
    CHECK_REFUSED(gcx_graph_create(captured, nullptr, &graph), GCX_ERROR_NOT_SUPPORTED);
    CHECK(message_has("node 3 is a memory allocation"));
    for (CUgraph one : {captured, child})
        CHECK_NATIVE(cuGraphDestroy, one);

    // A cooperative grid fits the large part, and not the small one.
    captured = capture(kernels.plain, [&] {
        kernels.probe(kernels.plain, From::module, 0, 1'000, true, 24 * 32 + 1);
    });
    graph = graph_of(captured);
    const Two two;
    const gcx_graph_node node = nodes_of(graph)[0];
    CHECK_EQ(node.cooperative, 1U);
    const uint32_t largest = node.blocks_per_sm * 24;
    CHECK(largest < node.grid[0] && node.grid[0] <= node.blocks_per_sm * 108);
    CHECK_REFUSED(gcx_graph_launch(graph, &two.small.stream, 1),
                  GCX_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
    CHECK(message_has("gcx_probe") && message_has(std::to_string(largest)));
    CHECK_REFUSED(gcx_graph_prepare(graph, two.parts.groups.data(), 1, 0),
                  GCX_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
    CHECK_OK(gcx_graph_launch(graph, &two.large.stream, 1));
    CHECK_EQ(kernels.count_sms(0), 108U);
    // A change may not make it too large for an existing executable.
    gcx_kernel_params params = GCX_KERNEL_PARAMS_INIT;
    std::fill_n(params.grid, 3, 1U);
    std::fill_n(params.block, 3, 1U);
    params.grid[0] = node.blocks_per_sm * 108 + 1;
    params.block[0] = 64;
    CHECK_REFUSED(gcx_graph_set_kernel(graph, 0, &params), GCX_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
    CHECK_OK(gcx_graph_launch(graph, &two.large.stream, 1));
    CHECK_OK(gcx_graph_destroy(graph));
}

// A resource of another device is refused before a context of the others is created.
void prepare_of_two_devices_creates_no_context() {
    const GraphKernels kernels;
    gcx_graph graph = graph_of(capture_mixed(kernels, kernels.plain));
    const uint32_t last = 2;
    CHECK_OK(gcx_graph_set_part(graph, &last, 1, 1));
    const gcx_resource resources[] = {whole_device(0), whole_device(1)};
    CHECK_REFUSED(gcx_graph_prepare(graph, resources, 2, 0), GCX_ERROR_INVALID_DEVICE);
    CHECK_EQ(cache_stats().misses, 0U);
    CHECK_OK(gcx_graph_destroy(graph));
}

void external_streams_run_as_captured() {
    const GraphKernels kernels;
    const Two two;
    gcx_graph graph = graph_of(capture_mixed(kernels, gcx_stream_native(two.small.stream)));
    gcx_stream plain = handle_for(kernels.plain);
    CHECK_OK(gcx_graph_launch(graph, &two.large.stream, 1));
    CHECK_EQ(kernels.count_sms(0), 108U);
    kernels.take_sms(1);
    CHECK_OK(gcx_graph_launch(graph, &plain, 1)); // as it was captured
    CHECK(kernels.take_sms(0) == two.small.probe());
    CHECK(kernels.take_sms(1) == two.small.probe());
    // A stream of gcx that is passed by its native handle is recognised.
    gcx_stream native = handle_for(gcx_stream_native(two.large.stream));
    CHECK_OK(gcx_graph_launch(graph, &native, 1));
    CHECK_EQ(kernels.count_sms(0), 108U);
    CHECK_EQ(info_of(graph).instantiated, 2U);
    for (gcx_stream stream : {plain, native})
        CHECK_OK(gcx_stream_destroy(stream));
    CHECK_OK(gcx_graph_destroy(graph));
}

void invalid_arguments_are_refused() {
    const GraphKernels kernels;
    const Two two;
    CUgraph captured = capture_mixed(kernels, kernels.plain);
    gcx_graph graph = nullptr;
    CHECK_REFUSED(gcx_graph_create(nullptr, nullptr, &graph), GCX_ERROR_INVALID_VALUE);
    CHECK_REFUSED(gcx_graph_create(captured, nullptr, nullptr), GCX_ERROR_INVALID_VALUE);
    gcx_graph_params params = GCX_GRAPH_PARAMS_INIT;
    params.flags = 2;
    CHECK_REFUSED(gcx_graph_create(captured, &params, &graph), GCX_ERROR_INVALID_VALUE);
    params.struct_size = 1;
    CHECK_REFUSED(gcx_graph_create(captured, &params, &graph), GCX_ERROR_INVALID_VALUE);
    params = GCX_GRAPH_PARAMS_INIT;
    params.flags = GCX_GRAPH_NODE_PRIORITIES;
    graph = make(captured, &params);
    CHECK_EQ(info_of(graph).flags, GCX_GRAPH_NODE_PRIORITIES);
    CHECK_NATIVE(cuGraphDestroy, captured);
    const gcx_stream none = nullptr;
    CHECK_REFUSED(gcx_graph_launch(graph, &none, 1), GCX_ERROR_INVALID_HANDLE);
    CHECK_REFUSED(gcx_graph_launch(nullptr, &two.small.stream, 1), GCX_ERROR_INVALID_HANDLE);
    CHECK_REFUSED(gcx_graph_launch(handle_cast<gcx_graph>(two.small.stream), &two.small.stream, 1),
                  GCX_ERROR_INVALID_HANDLE);
    CHECK_REFUSED(gcx_graph_launch(graph, nullptr, 1), GCX_ERROR_INVALID_VALUE);
    CHECK_REFUSED(gcx_graph_launch(graph, &two.small.stream, 0), GCX_ERROR_INVALID_VALUE);
    const std::vector<gcx_stream> too_many(GCX_MAX_GRAPH_PARTS + 1, two.small.stream);
    CHECK_REFUSED(gcx_graph_launch(graph, too_many.data(), 17), GCX_ERROR_INVALID_VALUE);
    CHECK_REFUSED(gcx_graph_launch(graph, too_many.data(), UINT32_MAX), GCX_ERROR_INVALID_VALUE);
    CHECK_REFUSED(gcx_graph_launch(graph, too_many.data(), 2), GCX_ERROR_INVALID_VALUE);
    CHECK_REFUSED(gcx_graph_launch(nullptr, nullptr, 1), GCX_ERROR_INVALID_VALUE);
    CHECK_REFUSED(gcx_graph_prepare(graph, nullptr, 1, 0), GCX_ERROR_INVALID_VALUE);
    CHECK_REFUSED(gcx_graph_prepare(graph, two.parts.groups.data(), 2, 0), GCX_ERROR_INVALID_VALUE);
    CHECK_REFUSED(gcx_graph_prepare(graph, two.parts.groups.data(), 1, 2), GCX_ERROR_INVALID_VALUE);
    CHECK_REFUSED(gcx_graph_prepare(graph, &two.parts.remainder, 1, 0),
                  GCX_ERROR_INVALID_RESOURCE_CONFIGURATION);
    const gcx_resource forged{};
    CHECK_REFUSED(gcx_graph_prepare(graph, &forged, 1, 0), GCX_ERROR_INVALID_RESOURCE_TYPE);
    CHECK_REFUSED(gcx_graph_set_kernel(graph, 0, nullptr), GCX_ERROR_INVALID_VALUE);
    CHECK_REFUSED(gcx_graph_update(graph, nullptr), GCX_ERROR_INVALID_VALUE);
    CHECK_REFUSED(gcx_graph_get_info(graph, nullptr), GCX_ERROR_INVALID_VALUE);
    uint32_t count = 0;
    gcx_graph_node one{};
    CHECK_REFUSED(gcx_graph_get_nodes(graph, &one, 1, &count), GCX_ERROR_INSUFFICIENT_CAPACITY);
    CHECK_EQ(count, 3U);
    CHECK_REFUSED(gcx_graph_get_nodes(graph, nullptr, 1, &count), GCX_ERROR_INVALID_VALUE);
    CHECK_REFUSED(gcx_graph_get_nodes(graph, &one, 1, nullptr), GCX_ERROR_INVALID_VALUE);
    // The next stream captures.
    CUstream native = gcx_stream_native(two.small.stream);
    begin_capture(native);
    CHECK_REFUSED(gcx_graph_launch(graph, &two.small.stream, 1),
                  GCX_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    // The capture stays intact, also when an executable is created during it.
    CHECK_OK(gcx_graph_launch(graph, &two.large.stream, 1));
    kernels.probe(native, From::library, 0);
    CHECK_NATIVE(cuStreamEndCapture, native, &captured);
    CHECK_OK(gcx_graph_update(graph, captured) == GCX_ERROR_GRAPH_EXEC_UPDATE_FAILURE
                 ? GCX_SUCCESS
                 : GCX_ERROR_UNKNOWN);
    CHECK_NATIVE(cuGraphDestroy, captured);
    CHECK_OK(gcx_graph_destroy(graph));
    CHECK_REFUSED(gcx_graph_destroy(graph), GCX_ERROR_INVALID_HANDLE);
    CHECK_REFUSED(gcx_graph_launch(graph, &two.small.stream, 1), GCX_ERROR_INVALID_HANDLE);
}

// A launch makes the driver's launch call and two queries; to move a node, gcx sets it and reads it
// back.
void launches_make_few_driver_calls() {
    const GraphKernels kernels;
    const Two two;
    constexpr uint64_t kNodes = 300;
    for (const From from : {From::library, From::module}) {
        gcx_graph graph = graph_of(capture(kernels.plain, [&] {
            for (uint64_t i = 0; i < kNodes; i++)
                kernels.probe(kernels.plain, from, 0);
        }));
        uint64_t before = sim::calls();
        CHECK_OK(gcx_graph_prepare(graph, two.parts.groups.data(), 1, 0));
        CHECK(sim::calls() - before <= 2 * kNodes + 30);
        CHECK_OK(gcx_graph_launch(graph, &two.small.stream, 1));
        before = sim::calls();
        CHECK_OK(gcx_graph_launch(graph, &two.small.stream, 1));
        CHECK_EQ(sim::calls() - before, 3U);
        CHECK_OK(gcx_graph_destroy(graph));
    }
}

// gcx copies an attribute of a node only if it was set. For the domain map, zero is a set value
// that differs from the default.
void attributes_are_copied() {
    const GraphKernels kernels;
    const Two two;
    for (const From from : {From::library, From::module}) {
        CUgraph captured = capture(kernels.plain, [&] {
            for (int i = 0; i < 3; i++)
                kernels.probe(kernels.plain, from, 0);
        });
        CUgraphNode nodes[3];
        std::size_t count = 3;
        CHECK_NATIVE(cuGraphGetNodes, captured, nodes, &count);
        CUlaunchAttributeValue value{};
        CHECK_NATIVE(cuGraphKernelNodeSetAttribute, nodes[1],
                     CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, &value);
        value.memSyncDomain = CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE;
        CHECK_NATIVE(cuGraphKernelNodeSetAttribute, nodes[1], CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN,
                     &value);
        gcx_graph graph = graph_of(captured);
        const uint64_t got = sim::calls("cuGraphKernelNodeGetAttribute");
        CHECK_OK(gcx_graph_prepare(graph, two.parts.groups.data(), 1, 0));
        CHECK_EQ(sim::calls("cuGraphKernelNodeGetAttribute") - got, 2U);
        CHECK_OK(gcx_graph_launch(graph, &two.small.stream, 1));
        CHECK_OK(gcx_stream_synchronize(two.small.stream));
        CHECK_EQ(kernels.count_sms(0), 24U);
        CHECK_OK(gcx_graph_destroy(graph));
    }
}

// The contexts of a capture live as long as the graph; a destroyed external one is an error, and is
// never used.

void captured_context_stays_while_its_graph_lives() {
    const GraphKernels kernels;
    gcx_stream plain = handle_for(kernels.plain);
    const gcx_resource resource = split(whole_device(), {24}).groups[0];
    auto partition = std::make_unique<Partition>(resource);
    const SmIds sms = partition->probe();
    gcx_graph graph = graph_of(capture_mixed(kernels, gcx_stream_native(partition->stream)));
    partition.reset();
    CHECK_EQ(trim(0).contexts, 0U);
    CHECK_EQ(cache_stats().in_use, 1U);
    CHECK_OK(gcx_graph_launch(graph, &plain, 1)); // as it was captured
    CHECK(kernels.take_sms(0) == sms);
    CHECK_EQ(trim(0).contexts, 0U);
    CHECK_OK(kernels.redirect(graph, 0, 3));
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
    const gcx_lease lease = acquire(24);
    const gcx_stream stream = stream_of(lease);
    gcx_graph graph = graph_of(capture_mixed(kernels, gcx_stream_native(stream)));
    CHECK_OK(gcx_graph_launch(graph, &plain, 1));
    const SmIds sms = kernels.take_sms(0);
    CHECK_EQ(sms.size(), 24U);
    release_all({stream}, {lease});
    for (uint32_t size = 8; size <= 120; size += 8)
        const Partition other(split(whole_device(), {size}).groups[0]);
    CHECK_OK(kernels.redirect(graph, 0, 3));
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
        return capture_fork(kernels, gcx_stream_native(partitions[a]->stream),
                            gcx_stream_native(partitions[b]->stream));
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
    CUgraph captured = capture_mixed(kernels, gcx_stream_native(partition->stream));
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
    gcx_graph graph = graph_of(capture_mixed(kernels, external->stream));
    gcx_graph unused = graph_of(capture_mixed(kernels, external->stream));
    CHECK_OK(gcx_graph_launch(graph, &plain, 1));
    CHECK_EQ(kernels.count_sms(0), 24U);
    gcx_stream stream = handle_for(external->stream);
    external.reset();
    CHECK_REFUSED(gcx_graph_launch(graph, &stream, 1), GCX_ERROR_CONTEXT_IS_DESTROYED);
    CHECK(message_has("launch the graph in another stream"));
    CHECK_OK(gcx_stream_destroy(stream));
    const Partition partition(split(whole_device(), {40}).groups[0]);
    CHECK_REFUSED(gcx_graph_launch(graph, &plain, 1), GCX_ERROR_CONTEXT_IS_DESTROYED);
    CHECK(message_has("has been destroyed"));
    // The graph runs in other contexts; the executable that cannot run does not block changes.
    CHECK_OK(gcx_graph_launch(graph, &partition.stream, 1));
    CHECK_EQ(kernels.count_sms(0), 40U);
    CHECK_OK(kernels.redirect(graph, 0, 3));
    CHECK_EQ(info_of(graph).executables, 1U);
    CHECK_OK(gcx_graph_launch(graph, &partition.stream, 1));
    CHECK_EQ(kernels.count_sms(3), 40U);
    CHECK_REFUSED(gcx_graph_launch(graph, &plain, 1), GCX_ERROR_CONTEXT_IS_DESTROYED);
    CHECK_OK(kernels.redirect(unused, 0, 4)); // has no executable yet
    CHECK_OK(gcx_graph_launch(unused, &partition.stream, 1));
    CHECK_EQ(kernels.count_sms(4), 40U);
    for (gcx_graph one : {graph, unused})
        CHECK_OK(gcx_graph_destroy(one));
    CHECK_OK(gcx_stream_destroy(plain));
}

// Other code destroys a context and creates one that has its address.

driver_wrapper::ReplaceFunction* replace_context = nullptr;

CUcontext context_of(const External& external) {
    CUcontext context = nullptr;
    CHECK_NATIVE(cuStreamGetCtx, external.stream, &context);
    return context;
}

void update_in_a_context_at_the_same_address_runs_there() {
    const GraphKernels kernels;
    const External external(24);
    gcx_stream plain = handle_for(kernels.plain);
    CUgraph captured = capture_mixed(kernels, external.stream);
    gcx_graph graph = make(captured);
    CHECK_OK(gcx_graph_launch(graph, &plain, 1));
    replace_context(context_of(external));
    CHECK_REFUSED(gcx_graph_launch(graph, &plain, 1), GCX_ERROR_CONTEXT_IS_DESTROYED);
    CHECK_OK(gcx_graph_update(graph, captured));
    CHECK_OK(gcx_graph_launch(graph, &plain, 1));
    CHECK_EQ(kernels.count_sms(1), 24U);
    CHECK_NATIVE(cuGraphDestroy, captured);
    CHECK_OK(gcx_graph_destroy(graph));
    CHECK_OK(gcx_stream_destroy(plain));
}

// The nodes are set again, and the captured context matters no more.
void launch_in_a_context_at_the_same_address_moves_there() {
    const GraphKernels kernels;
    const External external(24);
    gcx_stream stream = handle_for(external.stream);
    gcx_graph in_plain = graph_of(capture_mixed(kernels, kernels.plain));
    gcx_graph in_external = graph_of(capture_mixed(kernels, external.stream));
    CHECK_OK(gcx_graph_launch(in_plain, &stream, 1));
    replace_context(context_of(external));
    for (gcx_graph graph : {in_plain, in_external}) {
        const uint64_t set = sim::calls("cuGraphKernelNodeSetParams");
        CHECK_OK(gcx_graph_launch(graph, &stream, 1));
        CHECK_EQ(sim::calls("cuGraphKernelNodeSetParams") - set, 2U);
        CHECK_EQ(kernels.count_sms(1), 24U);
        CHECK_OK(gcx_graph_destroy(graph));
    }
    CHECK_OK(gcx_stream_destroy(stream));
}

// The graph is captured in the primary context, or in one of gcx.
void graph_after_a_reset_is_refused(bool in_partition) {
    constexpr gcx_result kDead = GCX_ERROR_CONTEXT_IS_DESTROYED;
    // The reset destroys what this creates.
    // The reset destroys what this creates.
    static const GraphKernels& kernels = *new GraphKernels;
    gcx_stream plain = handle_for(kernels.plain);
    auto partition = std::make_unique<Partition>(split(whole_device(), {24}).groups[0]);
    gcx_graph graph = graph_of(capture_mixed(
        kernels, in_partition ? gcx_stream_native(partition->stream) : kernels.plain));
    partition.reset();
    CHECK_OK(gcx_graph_launch(graph, &plain, 1));
    CHECK_NATIVE(cuDevicePrimaryCtxReset, 0);
    uint32_t count = 0;
    gcx_graph_info info = GCX_GRAPH_INFO_INIT;
    const uint32_t node = 0;
    const gcx_resource whole = whole_device();
    for (int round = 0; round < 2; round++)
        CHECK_REFUSED(gcx_graph_launch(graph, &plain, 1), kDead);
    CHECK_REFUSED(gcx_graph_get_info(graph, &info), kDead);
    CHECK_REFUSED(gcx_graph_get_nodes(graph, nullptr, 0, &count), kDead);
    CHECK_REFUSED(gcx_graph_set_part(graph, &node, 1, 0), kDead);
    CHECK_REFUSED(kernels.redirect(graph, 0, 3), kDead);
    CHECK_REFUSED(gcx_graph_prepare(graph, &whole, 1, 0), kDead);
    const Partition fresh(split(whole_device(), {24}).groups[0]);
    CHECK_REFUSED(gcx_graph_launch(graph, &fresh.stream, 1), kDead);
    CHECK_OK(gcx_graph_destroy(graph));
    CHECK_OK(gcx_stream_destroy(plain));
    CHECK_EQ(cache_stats().in_use, 1U);
}

} // namespace

int main(int, char** argv) {
    for (const char* driver : drivers()) {
        const std::string h100 = std::string("h100@") + driver;
        for (const auto test :
             {graph_runs_where_it_is_launched, node_of_every_kind_moves, graph_follows_a_lease,
              parts_run_on_their_own_sms, parts_keep_the_order_of_all_streams,
              copies_join_the_part_of_the_kernel_before_them, set_part_assigns_nodes,
              set_kernel_changes_all_executables, update_takes_over_another_capture,
              update_with_another_order_is_refused, nodes_report_clusters,
              least_recently_used_executable_is_evicted, updates_refused_by_the_driver_rebuild,
              failed_destruction_of_an_executable_is_repeated, immovable_nodes_are_refused,
              external_streams_run_as_captured, invalid_arguments_are_refused,
              launches_make_few_driver_calls, attributes_are_copied})
            leaves_nothing(h100, test);
        for (const auto test :
             {copies_join_the_part_of_kernels_of_other_levels,
              set_kernel_before_launches_is_checked,
              set_kernel_without_parameters_reads_no_arguments,
              captured_context_stays_while_its_graph_lives,
              captured_context_is_not_evicted_for_others,
              update_keeps_the_contexts_of_the_new_capture,
              create_after_the_context_is_gone_is_refused, destroyed_external_context_is_an_error})
            leaves_nothing(h100, test);
    }
    leaves_nothing("2xh100@13.0", prepare_of_two_devices_creates_no_context);
    for (const auto test : {update_in_a_context_at_the_same_address_runs_there,
                            launch_in_a_context_at_the_same_address_moves_there}) {
        in_child("a replaced context", [&] {
            CHECK_OK(gcx_driver_open(argv[1]));
            replace_context = reinterpret_cast<driver_wrapper::ReplaceFunction*>(
                dlsym(dlopen(argv[1], RTLD_NOW), "replace_context"));
            test();
        });
    }
    // Later drivers refuse the reset.
    for (const bool in_partition : {false, true})
        on_machine("h100@12.8", [&] { graph_after_a_reset_is_refused(in_partition); });
    return support::summary("graphs");
}

// Tests graphs: captured once, launched on any partition.
#include "tests.hpp"

#include "../api/graph_kernels.hpp"

#include <optional>
#include <string>
#include <vector>

namespace {

using support::GraphKernels;
using From = GraphKernels::From;

// GraphKernels::probe passes these arguments.
struct ProbeArguments {
    CUdeviceptr counts;
    uint32_t max_sms;
    uint32_t nanoseconds;
};

// Has a captured graph.
struct Captured {
    template <class Submit>
    Captured(CUstream stream, const Submit& submit) : graph(support::capture(stream, submit)) {}
    explicit Captured(CUgraph captured) : graph(captured) {}
    ~Captured() { CHECK_NATIVE(cuGraphDestroy, graph); }
    Captured(const Captured&) = delete;
    Captured& operator=(const Captured&) = delete;
    CUgraph graph;
};

// Captures a kernel of a library that notes its SMs in place 0, a memset, and one of a module in
// place 1.
auto three_nodes(const GraphKernels& kernels) {
    return [&kernels] {
        kernels.probe(kernels.plain, From::library, 0);
        kernels.clear(kernels.plain, 2);
        kernels.probe(kernels.plain, From::module, 1);
    };
}

void graph_runs_on_the_partition_of_its_stream() {
    const GraphKernels kernels;
    std::optional<Captured> captured(std::in_place, kernels.plain, three_nodes(kernels));
    const gcx::graph graph(captured->graph);
    captured.reset();
    const auto [parts, left] = gcx::device(0).sms().split({24, 108});
    const gcx::stream small{gcx::context(parts[0])};
    const gcx::stream large{gcx::context(parts[1])};
    graph.prepare(parts[0]);
    for (int round = 0; round < 2; round++) {
        for (const gcx::stream* stream : {&small, &large}) {
            graph.launch(*stream);
            stream->synchronize();
            CHECK(kernels.take_sms(0) == stream->sm_ids() &&
                  kernels.take_sms(1) == stream->sm_ids());
        }
    }
    const gcx_graph_info info = graph.info();
    CHECK(info.instantiated == 2 && info.launches == 4 && info.executables == 2 &&
          info.evicted == 0);
    CHECK(info.node_count == 3 && info.kernel_count == 2 && info.max_executables == 16);
    CHECK(graph.device() == 0 && graph.part_count() == 1);

    const std::vector<gcx_graph_node> nodes = graph.nodes();
    CHECK(nodes.size() == 3 && nodes[0].kind == gcx::node_kind::kernel);
    CHECK(nodes[1].kind == gcx::node_kind::memset && nodes[1].blocks_per_sm == 0);
    CHECK(std::string(nodes[2].name) == "gcx_probe" && nodes[2].blocks_per_sm > 0);
    CHECK(nodes[0].grid[0] == 1024 && nodes[0].block[0] == 64 && nodes[0].parent == gcx::no_node);
}

// A graph that forks over two contexts has two parts, each of which can be moved.
void graph_parts_run_on_their_partitions() {
    const GraphKernels kernels;
    const auto [groups, left] = gcx::device(0).sms().split({16, 24, 40});
    const gcx::stream a{gcx::context(groups[0])};
    const gcx::stream b{gcx::context(groups[1])};
    const gcx::stream c{gcx::context(groups[2])};
    const Captured captured(support::capture_fork(kernels, a.native(), b.native()));
    const gcx::graph graph(captured.graph);
    CHECK_EQ(graph.part_count(), 2u);
    graph.prepare({groups[2], groups[0]});
    graph.launch({c, a});
    c.synchronize();
    a.synchronize();
    CHECK(kernels.take_sms(0) == c.sm_ids() && kernels.take_sms(1) == a.sm_ids());
    CHECK_EQ(graph.info().instantiated, 1u);
    const std::vector<gcx::stream_ref> streams = {b, c};
    graph.launch(streams);
    b.synchronize();
    c.synchronize();
    CHECK(kernels.take_sms(0) == b.sm_ids() && kernels.take_sms(1) == c.sm_ids());
    graph.launch(b);
    b.synchronize();
    CHECK(kernels.take_sms(0) == b.sm_ids() && kernels.take_sms(1) == b.sm_ids());

    CHECK_THROWS(GCX_ERROR_INVALID_VALUE, graph.launch(gcx::view<gcx::stream_ref>()));
    const uint32_t most = gcx::max_graph_parts;
    CHECK_THROWS(GCX_ERROR_INVALID_VALUE, graph.set_part(0, most));
    graph.set_part({}, 0); // nothing changes
    CHECK_EQ(graph.part_count(), 2u);
    // The parts change places.
    graph.set_part({1}, 1);
    graph.set_part(2, 0);
    graph.launch({a, b});
    a.synchronize();
    b.synchronize();
    CHECK(kernels.take_sms(0) == b.sm_ids() && kernels.take_sms(1) == a.sm_ids());
}

void changed_kernel_parameters_apply_to_later_launches() {
    const GraphKernels kernels;
    const Captured captured(kernels.plain, three_nodes(kernels));
    const gcx::graph graph(captured.graph);
    const gcx::stream stream{gcx::context(part(24))};
    graph.launch(stream);
    stream.synchronize();
    (void)kernels.take_sms(0);
    (void)kernels.take_sms(1);

    const auto where = gcx::kernel_params::of(graph.nodes()[0]);
    graph.set_kernel(0, where, ProbeArguments{kernels.at(3), GraphKernels::kMaxSms, 1000});
    graph.launch(stream);
    stream.synchronize();
    CHECK(kernels.take_sms(0).empty() && kernels.take_sms(3) == stream.sm_ids());
    CHECK(kernels.take_sms(1) == stream.sm_ids());
    // The arguments stay, and the grid changes.
    graph.set_kernel(0, {{5}, {32}});
    graph.launch(stream);
    stream.synchronize();
    CHECK(kernels.take_sms(3).size() <= 5 && kernels.take_sms(0).empty());
    const gcx_graph_node node = graph.nodes()[0];
    CHECK(node.grid[0] == 5 && node.grid[1] == 1 && node.block[0] == 32 && node.block[2] == 1);

    const uint32_t few = 7;
    CHECK_THROWS(GCX_ERROR_INVALID_VALUE, graph.set_kernel(0, where, &few, sizeof few));
    CHECK_THROWS(GCX_ERROR_INVALID_VALUE, graph.set_kernel(gcx::no_node, where));
    (void)kernels.take_sms(1);

    // Updates all arguments from a second capture of the same code.
    graph.update(captured.graph);
    graph.launch(stream);
    stream.synchronize();
    CHECK(kernels.take_sms(0) == stream.sm_ids() && kernels.take_sms(3).empty());
    CHECK_THROWS(GCX_ERROR_INVALID_VALUE, graph.update(nullptr));
}

} // namespace

void test_graphs() {
    on_each_driver([] {
        gcx::set_cache_limit(0);
        const auto before = support::sim::counts();
        graph_runs_on_the_partition_of_its_stream();
        graph_parts_run_on_their_partitions();
        changed_kernel_parameters_apply_to_later_launches();
        CHECK(gcx::live_contexts().empty());
        CHECK_EQ(support::left_behind(before, support::sim::counts()), "");
    });
}

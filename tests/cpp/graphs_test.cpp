// Tests graphs: captured once, launched on any partition; and their misuse.
#include "tests.hpp"

#include "../api/graph_kernels.hpp"

#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

using support::GraphKernels;
using From = GraphKernels::From;

static_assert(!std::is_copy_constructible_v<gcx::graph>);
static_assert(std::is_nothrow_move_constructible_v<gcx::graph>);
static_assert(sizeof(gcx::graph) == sizeof(gcx_graph));

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

// Returns the SMs that a launch noted in a place.
std::vector<uint32_t> noted(const GraphKernels& kernels, uint32_t place) {
    return kernels.take_sms(place);
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
            CHECK(noted(kernels, 0) == stream->sm_ids() && noted(kernels, 1) == stream->sm_ids());
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
    const gcx::event fork(0);
    const gcx::event join(0);
    const Captured captured(a.native(), [&] {
        kernels.probe(a.native(), From::library, 0);
        CHECK_NATIVE(cuEventRecord, fork.native(), a.native());
        CHECK_NATIVE(cuStreamWaitEvent, b.native(), fork.native(), 0);
        kernels.probe(b.native(), From::library, 1);
        CHECK_NATIVE(cuEventRecord, join.native(), b.native());
        CHECK_NATIVE(cuStreamWaitEvent, a.native(), join.native(), 0);
    });
    const gcx::graph graph(captured.graph);
    CHECK_EQ(graph.part_count(), 2u);
    graph.prepare({groups[2], groups[0]});
    graph.launch({c, a});
    c.synchronize();
    a.synchronize();
    CHECK(noted(kernels, 0) == c.sm_ids() && noted(kernels, 1) == a.sm_ids());
    CHECK_EQ(graph.info().instantiated, 1u);
    const std::vector<gcx::stream_ref> streams = {b, c};
    graph.launch(streams);
    b.synchronize();
    c.synchronize();
    CHECK(noted(kernels, 0) == b.sm_ids() && noted(kernels, 1) == c.sm_ids());
    graph.launch(b);
    b.synchronize();
    CHECK(noted(kernels, 0) == b.sm_ids() && noted(kernels, 1) == b.sm_ids());

    CHECK_THROWS(GCX_ERROR_INVALID_VALUE, graph.launch(gcx::view<gcx::stream_ref>()));
    const uint32_t most = gcx::max_graph_parts;
    CHECK_THROWS(GCX_ERROR_INVALID_VALUE, graph.set_part(0, most));
    graph.set_part({}, 0); // nothing changes
    CHECK_EQ(graph.part_count(), 2u);
    // The parts change places.
    graph.set_part({0}, 1);
    graph.set_part(1, 0);
    graph.launch({a, b});
    a.synchronize();
    b.synchronize();
    CHECK(noted(kernels, 0) == b.sm_ids() && noted(kernels, 1) == a.sm_ids());
}

void changed_kernel_parameters_apply_to_later_launches() {
    const GraphKernels kernels;
    const Captured captured(kernels.plain, three_nodes(kernels));
    const gcx::graph graph(captured.graph);
    const gcx::stream stream{gcx::context(part(24))};
    graph.launch(stream);
    stream.synchronize();
    (void)noted(kernels, 0);
    (void)noted(kernels, 1);

    const auto where = gcx::kernel_params::of(graph.nodes()[0]);
    graph.set_kernel(0, where, ProbeArguments{kernels.at(3), GraphKernels::kMaxSms, 1000});
    graph.launch(stream);
    stream.synchronize();
    CHECK(noted(kernels, 0).empty() && noted(kernels, 3) == stream.sm_ids());
    CHECK(noted(kernels, 1) == stream.sm_ids());
    // The arguments stay, and the grid changes.
    graph.set_kernel(0, {{5}, {32}});
    graph.launch(stream);
    stream.synchronize();
    CHECK(noted(kernels, 3).size() <= 5 && noted(kernels, 0).empty());
    const gcx_graph_node node = graph.nodes()[0];
    CHECK(node.grid[0] == 5 && node.grid[1] == 1 && node.block[0] == 32 && node.block[2] == 1);

    const uint32_t few = 7;
    CHECK_THROWS(GCX_ERROR_INVALID_VALUE, graph.set_kernel(0, where, &few, sizeof few));
    CHECK_THROWS(GCX_ERROR_INVALID_VALUE, graph.set_kernel(gcx::no_node, where));
    (void)noted(kernels, 1);

    // Updates all arguments from a second capture of the same code.
    graph.update(captured.graph);
    graph.launch(stream);
    stream.synchronize();
    CHECK(noted(kernels, 0) == stream.sm_ids() && noted(kernels, 3).empty());
    CHECK_THROWS(GCX_ERROR_INVALID_VALUE, graph.update(nullptr));
}

void graph_handle_has_one_owner() {
    const GraphKernels kernels;
    const gcx::stream stream{gcx::context(part(24))};
    const Captured captured(kernels.plain, three_nodes(kernels));
    const gcx_result invalid = GCX_ERROR_INVALID_HANDLE;
    gcx::graph none;
    CHECK_THROWS(invalid, none.launch(stream));
    CHECK_THROWS(invalid, none.launch(gcx::stream_ref(stream)));
    CHECK_THROWS(invalid, none.prepare(part(24)));
    CHECK_THROWS(invalid, none.set_part(0, 0));
    CHECK_THROWS(invalid, none.set_kernel(0, {{1}, {1}}));
    CHECK_THROWS(invalid, none.update(captured.graph));
    CHECK_THROWS(invalid, none.info());
    CHECK_THROWS(invalid, none.nodes());
    gcx::graph graph(captured.graph);
    CHECK_THROWS(invalid, graph.launch(gcx::stream()));
    CHECK_THROWS(invalid, graph.launch(gcx::stream_ref(gcx::stream())));
    const gcx_graph handle = graph.handle();
    none = std::move(graph);
    CHECK(none.handle() == handle && !graph); // NOLINT(bugprone-use-after-move)
    gcx::graph adopted = gcx::graph::adopt(none.release());
    adopted.launch(stream);
    // The graph is destroyed while its work is running, which finishes.
    for (int i = 0; i < 2; i++)
        adopted.close();
    stream.synchronize();
    CHECK(noted(kernels, 0).size() == 24 && noted(kernels, 1).size() == 24);
    CHECK_THROWS(invalid, adopted.launch(stream));

    // C destroys the handle of the C++ object.
    gcx::graph other(captured.graph);
    CHECK_OK(gcx_graph_destroy(other.handle()));
    CHECK_THROWS(invalid, other.info());
    CHECK_THROWS(invalid, other.close());
    (void)other.release();
}

// The graph is destroyed at the end of the process, after the driver's end.
void graph_destroyed_after_the_driver_succeeds() {
    static const GraphKernels* const kernels = new GraphKernels;
    const Captured captured(kernels->plain, three_nodes(*kernels));
    static const gcx::graph graph(captured.graph);
    static const gcx::stream stream{gcx::context(part(24))};
    graph.launch(stream);
    // The graph is never destroyed.
    CHECK(gcx::graph(captured.graph).release() != nullptr);
}

} // namespace

void test_graphs() {
    on_each_driver([] {
        gcx::set_cache_limit(0);
        const auto before = support::sim::counts();
        graph_runs_on_the_partition_of_its_stream();
        graph_parts_run_on_their_partitions();
        changed_kernel_parameters_apply_to_later_launches();
        graph_handle_has_one_owner();
        CHECK(gcx::live_contexts().empty());
        CHECK_EQ(support::left_behind(before, support::sim::counts()), "");
        graph_destroyed_after_the_driver_succeeds();
    });
}

// Graphs: captured once, launched on any SMs. What moves, what is told, what is refused.

#include "graph_kernels.hpp"

#include <algorithm>
#include <memory>
#include <thread>

using namespace support;
using From = GraphKernels::From;

namespace {

// A graph of two kernels, one of a library and one of a module, and a memset between them.
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

// Two partitions of a device, 24 and 108 SMs.
struct Two {
    Split parts = split(whole_device(), {24, 108});
    Partition small{parts.groups[0]};
    Partition large{parts.groups[1]};
};

void runs_where_it_is_launched() {
    const GraphKernels kernels;
    const Two two;
    CUgraph captured = capture_mixed(kernels, kernels.plain);
    gcx_graph graph = make(captured);
    CHECK_EQ(NATIVE(cuGraphDestroy)(captured), CUDA_SUCCESS);
    for (int round = 0; round < 3; round++) {
        for (const Partition* part : {&two.small, &two.large}) {
            CHECK_OK(gcx_graph_launch(graph, part->stream));
            CHECK_OK(gcx_stream_synchronize(part->stream));
            const SmIds sms = part->probe();
            CHECK(kernels.take_sms(0) == sms);
            CHECK(kernels.take_sms(1) == sms);
        }
    }
    const gcx_graph_info info = info_of(graph);
    CHECK_EQ(info.made, 2U);
    CHECK_EQ(info.launches, 6U);
    CHECK_EQ(info.executables, 2U);
    CHECK_EQ(info.node_count, 3U);
    CHECK_EQ(info.kernel_count, 2U);
    CHECK_EQ(info.part_count, 1U);
    CHECK_OK(gcx_graph_destroy(graph));
}

void on_every_driver(void (*body)()) {
    for (const char* driver : {"12.4", "12.8", "13.0", "13.1", "13.5"})
        on_machine(std::string("h100@") + driver, [&] {
            const gcx_sim_counts before = sim::counts();
            body();
            CHECK_OK(gcx_cache_set_limit(0));
            CHECK_EQ(cache_stats().in_use, 0U);
            CHECK_EQ(left_behind(before, sim::counts()), std::string());
        });
}

} // namespace

int main() {
    on_every_driver(runs_where_it_is_launched);
    return support::summary("graphs");
}

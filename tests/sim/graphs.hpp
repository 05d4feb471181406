// What the tests of simulated graphs share: a bench, and what was seen to run.
#pragma once

#include "replay_bench.hpp"
#include "rules.hpp"

namespace sim_test {

std::vector<Rule> graph_move_rules();
std::vector<Rule> graph_node_rules();
std::vector<Rule> graph_run_rules();

// What ran while the body did, kernels and all else.
std::vector<gcx_sim_run> runs_of(const std::function<void()>& body);

// A bench with a graph, and a few calls that every test makes.
struct GraphBench {
    GraphBench() : bench(primary) { CHECK_OK(cuGraphCreate(&graph, 0)); }
    GraphBench(const GraphBench&) = delete;
    GraphBench& operator=(const GraphBench&) = delete;
    ~GraphBench() { CHECK_OK(cuGraphDestroy(graph)); }

    // One of the module's kernels, without a context: it is of the current one.
    CUDA_KERNEL_NODE_PARAMS_v2 spin(unsigned blocks = 1);
    CUgraphNode add(const CUDA_KERNEL_NODE_PARAMS_v2& parameters,
                    const std::vector<CUgraphNode>& after = {}, CUgraph into = nullptr);
    CUgraphExec instantiate(CUgraph what = nullptr);
    // What runs when the graph is launched in the stream, once.
    std::vector<gcx_sim_run> launched(CUstream stream, CUgraph what = nullptr);

    Primary primary;
    Bench bench;
    CUgraph graph = nullptr;
    uint64_t nanoseconds = 1000;
    void* spin_arguments[1] = {&nanoseconds};
};

// Makes a context current while it lives.
struct Current {
    explicit Current(CUcontext context) { CHECK_OK(cuCtxPushCurrent_v2(context)); }
    Current(const Current&) = delete;
    Current& operator=(const Current&) = delete;
    ~Current() { CHECK_OK(cuCtxPopCurrent_v2(nullptr)); }
};

CUgraphNodeType type_of(CUgraphNode node);
std::vector<CUgraphNode> nodes_of(CUgraph graph);

} // namespace sim_test

// Graphs on the simulated driver: what moving them to other SMs needs, and what launches do.
#include "graphs.hpp"

namespace sim_test {

std::vector<gcx_sim_run> runs_of(const std::function<void()>& body) {
    gcx_sim_note_runs(4096);
    body();
    std::vector<gcx_sim_run> runs(gcx_sim_get_runs(nullptr, 0));
    CHECK_EQ(gcx_sim_get_runs(runs.data(), runs.size()), runs.size());
    gcx_sim_note_runs(0);
    return runs;
}

CUDA_KERNEL_NODE_PARAMS_v2 GraphBench::spin(unsigned blocks) {
    CUDA_KERNEL_NODE_PARAMS_v2 parameters{};
    parameters.func = primary.spinner;
    parameters.gridDimX = blocks;
    parameters.gridDimY = parameters.gridDimZ = 1;
    parameters.blockDimX = 1024;
    parameters.blockDimY = parameters.blockDimZ = 1;
    parameters.kernelParams = spin_arguments;
    return parameters;
}

CUgraphNode GraphBench::add(const CUDA_KERNEL_NODE_PARAMS_v2& parameters,
                            const std::vector<CUgraphNode>& after, CUgraph into) {
    CUgraphNode node = nullptr;
    CHECK_OK(cuGraphAddKernelNode_v2(&node, into == nullptr ? graph : into, after.data(),
                                     after.size(), &parameters));
    return node;
}

CUgraphExec GraphBench::instantiate(CUgraph what) {
    CUgraphExec exec = nullptr;
    CHECK_OK(cuGraphInstantiateWithFlags(&exec, what == nullptr ? graph : what, 0));
    return exec;
}

std::vector<gcx_sim_run> GraphBench::launched(CUstream stream, CUgraph what) {
    CUgraphExec exec = instantiate(what);
    std::vector<gcx_sim_run> runs = runs_of([&] { CHECK_OK(cuGraphLaunch(exec, stream)); });
    CHECK_OK(cuStreamSynchronize(stream));
    CHECK_OK(cuGraphExecDestroy(exec));
    return runs;
}

CUgraphNodeType type_of(CUgraphNode node) {
    CUgraphNodeType type{};
    CHECK_OK(cuGraphNodeGetType(node, &type));
    return type;
}

std::vector<CUgraphNode> nodes_of(CUgraph graph) {
    std::size_t count = 0;
    CHECK_OK(cuGraphGetNodes(graph, nullptr, &count));
    std::vector<CUgraphNode> nodes(count);
    CHECK_OK(cuGraphGetNodes(graph, nodes.data(), &count));
    return nodes;
}

} // namespace sim_test

using namespace sim_test;

int main() {
    int rules = 0;
    for (const char* driver : {"h200@12.4", "h200@13.0", "h200@13.5"}) {
        for (const auto& list : {graph_move_rules(), graph_node_rules(), graph_run_rules()}) {
            for (const Rule& rule : list) {
                CHECK_EQ(gcx_sim_configure(driver), 0);
                CHECK_OK(cuInit(0));
                const int before = check::failed.load();
                rule.test();
                gcx_sim_counts counts;
                gcx_sim_get_counts(&counts);
                CHECK_EQ(counts.graphs, 0U);
                CHECK_EQ(counts.allocations, 0U);
                if (check::failed.load() != before)
                    std::fprintf(stderr, "  of %s on %s\n", rule.text, driver);
                rules++;
            }
        }
    }
    std::printf("%d rules\n", rules);
    return check::summary("graphs");
}

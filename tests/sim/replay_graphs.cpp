// facts/h200-driver580-sets-and-graphs.txt: what it states of graphs.
#include "replay_bench.hpp"

using namespace sim_test;

namespace {

bool captured_on(Bench& bench) {
    bool holds = true;
    CUgraph graph = bench.capture(bench.primary.probe, bench.plain);
    holds = holds && bench.sms_of_graph(graph) == 132;
    CHECK_OK(cuGraphDestroy(graph));
    graph = bench.capture(bench.primary.probe, bench.parts[0].stream);
    CUgraphExec exec = nullptr;
    CHECK_OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    for (CUstream stream : {bench.plain, bench.parts[0].stream, bench.parts[1].stream})
        holds = holds && bench.sms_of_exec(exec, stream) == 24;
    CHECK_OK(cuGraphExecDestroy(exec));
    CHECK_OK(cuGraphDestroy(graph));
    return holds;
}

bool moved(Bench& bench, bool keep_function) {
    CUgraph graph = bench.capture(bench.kernel_function, bench.plain);
    const bool holds = keep_function
                           ? bench.sms_when_moved(graph, bench.parts[0], true) == 132
                           : bench.sms_when_moved(graph, bench.parts[0], false) == 24 &&
                                 bench.sms_when_moved(graph, bench.parts[1], false) == 108;
    CHECK_OK(cuGraphDestroy(graph));
    return holds;
}

// A node of a module's kernel, taken to a partition in the two ways that work.
bool rebuilt(Bench& bench) {
    CUgraph graph = bench.capture(bench.primary.probe, bench.plain);
    CUDA_KERNEL_NODE_PARAMS_v2 parameters;
    CHECK_OK(cuGraphKernelNodeGetParams_v2(Bench::first_node(graph), &parameters));
    bool holds = parameters.kern == nullptr;

    CUgraph relaunched = nullptr;
    CUgraph ended = nullptr;
    CHECK_OK(cuGraphCreate(&relaunched, 0));
    CHECK_OK(cuStreamBeginCaptureToGraph(bench.parts[0].stream, relaunched, nullptr, nullptr, 0,
                                         CU_STREAM_CAPTURE_MODE_GLOBAL));
    CHECK_OK(cuLaunchKernel(parameters.func, parameters.gridDimX, 1, 1, parameters.blockDimX, 1, 1,
                            parameters.sharedMemBytes, bench.parts[0].stream,
                            parameters.kernelParams, nullptr));
    CHECK_OK(cuStreamEndCapture(bench.parts[0].stream, &ended));
    holds = holds && ended == relaunched && bench.sms_of_graph(relaunched) == 24;
    CHECK_OK(cuGraphDestroy(relaunched));

    CUgraph added = nullptr;
    CUgraphNode node = nullptr;
    CHECK_OK(cuGraphCreate(&added, 0));
    CHECK_OK(cuCtxPushCurrent_v2(bench.parts[0].context));
    CHECK_OK(cuGraphAddKernelNode_v2(&node, added, nullptr, 0, &parameters));
    CHECK_OK(cuCtxPopCurrent_v2(nullptr));
    holds = holds && bench.sms_of_graph(added) == 24;
    CHECK_OK(cuGraphDestroy(added));
    CHECK_OK(cuGraphDestroy(graph));
    return holds;
}

bool attributes_not_copied(Bench& bench) {
    CUgraph one = bench.capture(bench.primary.probe, bench.parts[0].stream);
    CUgraph two = bench.capture(bench.primary.probe, bench.parts[1].stream);
    const bool holds =
        cuGraphKernelNodeCopyAttributes(Bench::first_node(two), Bench::first_node(one)) ==
        CUDA_ERROR_INVALID_VALUE;
    CHECK_OK(cuGraphKernelNodeCopyAttributes(Bench::first_node(one), Bench::first_node(one)));
    CHECK_OK(cuGraphDestroy(one));
    CHECK_OK(cuGraphDestroy(two));
    return holds;
}

bool executable_stays(Bench& bench) {
    CUgraph one = bench.capture(bench.kernel_function, bench.parts[0].stream);
    CUgraph two = bench.capture(bench.kernel_function, bench.parts[1].stream);
    CUgraphExec exec = nullptr;
    CHECK_OK(cuGraphInstantiateWithFlags(&exec, one, 0));
    CUDA_KERNEL_NODE_PARAMS_v2 parameters;
    CHECK_OK(cuGraphKernelNodeGetParams_v2(Bench::first_node(one), &parameters));
    parameters.func = nullptr;
    CHECK_OK(cuGraphExecKernelNodeSetParams_v2(exec, Bench::first_node(one), &parameters));
    parameters.ctx = bench.parts[1].context;
    const CUresult set =
        cuGraphExecKernelNodeSetParams_v2(exec, Bench::first_node(one), &parameters);
    CUgraphExecUpdateResultInfo info{};
    const CUresult updated = cuGraphExecUpdate_v2(exec, two, &info);
    CHECK_OK(cuGraphExecUpdate_v2(exec, one, nullptr));
    const bool holds = set == CUDA_ERROR_INVALID_VALUE &&
                       updated == CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE &&
                       static_cast<int>(info.result) == 7;
    CHECK_OK(cuGraphExecDestroy(exec));
    CHECK_OK(cuGraphDestroy(one));
    CHECK_OK(cuGraphDestroy(two));
    return holds;
}

double used_bytes() {
    gcx_sim_counts counts;
    gcx_sim_get_counts(&counts);
    return static_cast<double>(counts.device_bytes_used);
}

bool graph_costs(Bench& bench) {
    CUgraph small = bench.capture(bench.primary.probe, bench.plain);
    CUDA_KERNEL_NODE_PARAMS_v2 parameters;
    const CUgraphNode node = Bench::first_node(small);
    CHECK_OK(cuGraphKernelNodeGetParams_v2(node, &parameters));
    const double set =
        taken_us([&] { CHECK_OK(cuGraphKernelNodeSetParams_v2(node, &parameters)); });
    CUgraph large = nullptr;
    CUgraph clone = nullptr;
    CUgraphExec exec = nullptr;
    CHECK_OK(cuGraphCreate(&large, 0));
    for (int i = 0; i < 1000; i++) {
        CUgraphNode added = nullptr;
        CHECK_OK(cuGraphAddKernelNode_v2(&added, large, nullptr, 0, &parameters));
    }
    const double cloned = taken_us([&] { CHECK_OK(cuGraphClone(&clone, large)); });
    const double made = taken_us([&] { CHECK_OK(cuGraphInstantiateWithFlags(&exec, large, 0)); });
    CHECK_OK(cuGraphExecDestroy(exec));
    CHECK_OK(cuGraphDestroy(clone));
    CHECK_OK(cuGraphDestroy(large));
    CUgraph three = nullptr;
    CHECK_OK(cuGraphCreate(&three, 0));
    for (int i = 0; i < 3; i++) {
        CUgraphNode added = nullptr;
        CHECK_OK(cuGraphAddKernelNode_v2(&added, three, nullptr, 0, &parameters));
    }
    const double before = used_bytes();
    CHECK_OK(cuGraphInstantiateWithFlags(&exec, three, 0));
    const double mib = (used_bytes() - before) / 1048576;
    CHECK_OK(cuGraphExecDestroy(exec));
    CHECK_OK(cuGraphDestroy(three));
    CHECK_OK(cuGraphDestroy(small));
    return is_about(0.13, set) && is_about(1100, cloned) && is_about(3300, made) &&
           is_about(0.12, mib);
}

bool outlives_context(Bench& bench) {
    Partition part({split(query(), 1, 0, 24).groups[0]});
    CUgraph graph = bench.capture(bench.primary.probe, part.stream);
    CUgraphExec exec = nullptr;
    CHECK_OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    part.destroy_stream();
    CHECK_OK(part.destroy_context());
    const bool holds = cuGraphLaunch(exec, bench.plain) == CUDA_SUCCESS &&
                       cuStreamSynchronize(bench.plain) == CUDA_SUCCESS;
    CHECK_OK(cuGraphExecDestroy(exec));
    CHECK_OK(cuGraphDestroy(graph));
    return holds;
}

// The times are those of real kernels; what can be told is what the nodes are.
bool node_kinds(Bench& bench) {
    CUgraph graph = nullptr;
    CHECK_OK(cuStreamBeginCapture_v2(bench.plain, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CHECK_OK(cuMemsetD32Async(bench.primary.counts, 0, 4, bench.plain));
    CHECK_OK(bench.launch(bench.primary.probe, bench.plain));
    CHECK_OK(cuStreamEndCapture(bench.plain, &graph));
    CUgraphNode nodes[2];
    std::size_t count = 2;
    CHECK_OK(cuGraphGetNodes(graph, nodes, &count));
    CUgraphNodeType type{};
    CHECK_OK(cuGraphNodeGetType(nodes[0], &type));
    CUDA_KERNEL_NODE_PARAMS_v2 parameters;
    CHECK_OK(cuGraphKernelNodeGetParams_v2(nodes[1], &parameters));
    CHECK_OK(cuGraphDestroy(graph));
    return count == 2 && type == CU_GRAPH_NODE_TYPE_MEMSET && parameters.kern == nullptr;
}

} // namespace

std::vector<Kind>
sim_test::graph_kinds(const std::function<Kind(const char*, bool (*)(Bench&))>& holds) {
    return {
        literal("CUDA graphs"),
        holds("captured on a plain stream: 132 SMs;", captured_on),
        holds("kernel node whose params.kern is not NULL",
              [](Bench& on) { return moved(on, false); }),
        holds("the same with func left set: ctx is ignored, 132 SMs.",
              [](Bench& on) { return moved(on, true); }),
        holds("kernel node whose params.kern is NULL", rebuilt),
        holds("cuGraphKernelNodeCopyAttributes(new, old) between nodes of different contexts",
              attributes_not_copied),
        holds("cuGraphExecKernelNodeSetParams to another context: CUDA_ERROR_INVALID_VALUE.",
              executable_stays),
        holds("costs: set params 0.13 us a node;", graph_costs),
        holds("an executable whose green context has been destroyed still launches",
              outlives_context),
        holds("torch 2.11 CUDAGraph(keep_graph=True), retargeted to 24 / 108 SMs", node_kinds),
    };
}

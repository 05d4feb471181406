// Moving kernels to other SMs: parameters, attributes and edges.
#include "graphs.hpp"

#include <cstring>

namespace sim_test {
namespace {

constexpr CUgraphEdgeData kProgrammatic = {
    CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC, 0, CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC, {}};

CUresult set(CUgraphNode node, int attribute, const CUlaunchAttributeValue& value) {
    return cuGraphKernelNodeSetAttribute(node, static_cast<CUlaunchAttributeID>(attribute), &value);
}

CUresult get(CUgraphNode node, int attribute, CUlaunchAttributeValue& value) {
    return cuGraphKernelNodeGetAttribute(node, static_cast<CUlaunchAttributeID>(attribute), &value);
}

CUlaunchAttributeValue value_of(CUgraphNode node, int attribute) {
    CUlaunchAttributeValue value{};
    std::memset(&value, 0x55, sizeof value);
    CHECK_OK(get(node, attribute, value));
    return value;
}

CUlaunchAttributeValue clusters(unsigned x) {
    CUlaunchAttributeValue value{};
    value.clusterDim = {x, 1, 1};
    return value;
}

CUlaunchAttributeValue cooperative() {
    CUlaunchAttributeValue value{};
    value.cooperative = 1;
    return value;
}

// Recorded: the node's own context counts, whatever stream launches the graph.
void runs_in_its_context() {
    GraphBench on;
    CUgraph captured = on.bench.capture(on.bench.kernel_function, on.bench.plain);
    CUDA_KERNEL_NODE_PARAMS_v2 parameters;
    const CUgraphNode node = Bench::first_node(captured);
    for (const auto& [part, sms] : {std::pair{0, 24U}, {1, 108U}}) {
        CHECK_OK(cuGraphKernelNodeGetParams_v2(node, &parameters));
        CHECK(parameters.kern == on.bench.kernel);
        parameters.func = nullptr;
        parameters.ctx = on.bench.parts[static_cast<std::size_t>(part)].context;
        CHECK_OK(cuGraphKernelNodeSetParams_v2(node, &parameters));
        for (CUstream stream : {on.bench.plain, on.bench.parts[0].stream}) {
            const auto runs = on.launched(stream, captured);
            CHECK_EQ(runs.size(), 1U);
            CHECK_EQ(runs[0].sm_count, sms);
            CHECK_EQ(runs[0].stream, std::bit_cast<uint64_t>(stream));
            CHECK_EQ(std::string(runs[0].kernel), "gcx_probe");
            CHECK(runs[0].launch != 0 && runs[0].end_ns > runs[0].begin_ns);
        }
    }
    CHECK_OK(cuGraphKernelNodeGetParams_v2(node, &parameters));
    CHECK(parameters.ctx == on.bench.parts[1].context && parameters.func != nullptr);
    CHECK_OK(cuGraphDestroy(captured));
}

// Recorded: with func set ctx is ignored, and the node is where the current context is. The header:
// without a context the current one counts.
void function_and_context() {
    GraphBench on;
    CUgraph captured = on.bench.capture(on.bench.kernel_function, on.bench.plain);
    const CUgraphNode node = Bench::first_node(captured);
    CUDA_KERNEL_NODE_PARAMS_v2 parameters;
    CHECK_OK(cuGraphKernelNodeGetParams_v2(node, &parameters));
    parameters.ctx = on.bench.parts[0].context;
    {
        const Current current(on.bench.parts[1].context);
        CHECK_OK(cuGraphKernelNodeSetParams_v2(node, &parameters));
        CHECK_EQ(on.launched(on.bench.plain, captured)[0].sm_count, 108U);
    }
    CHECK_OK(cuGraphKernelNodeSetParams_v2(node, &parameters));
    CHECK_EQ(on.launched(on.bench.plain, captured)[0].sm_count, 132U);
    {
        const Current current(on.bench.parts[1].context);
        parameters.func = nullptr;
        parameters.ctx = nullptr;
        CHECK_OK(cuGraphKernelNodeSetParams_v2(node, &parameters));
        CHECK_EQ(on.launched(on.bench.plain, captured)[0].sm_count, 108U);
    }
    parameters.kern = nullptr;
    CHECK_EQ(cuGraphKernelNodeSetParams_v2(node, &parameters), CUDA_ERROR_INVALID_VALUE);
    CHECK_OK(cuGraphDestroy(captured));
}

// Recorded: a module's kernel is taken elsewhere by a node that is added or set there.
void module_kernels() {
    GraphBench on;
    const CUgraphNode before = on.add(on.spin());
    CUgraphNode moved = nullptr;
    {
        const Current current(on.bench.parts[0].context);
        moved = on.add(on.spin(), {before});
    }
    on.add(on.spin(), {moved});
    CUDA_KERNEL_NODE_PARAMS_v2 parameters;
    CHECK_OK(cuGraphKernelNodeGetParams_v2(moved, &parameters));
    CHECK(parameters.kern == nullptr && parameters.func == on.primary.spinner);
    const char* name = nullptr;
    CHECK_OK(cuFuncGetName(&name, parameters.func));
    CHECK_EQ(std::string(name), "gcx_spin");
    CHECK_OK(cuKernelGetName(&name, on.bench.kernel));
    CHECK_EQ(std::string(name), "gcx_probe");
    const auto runs = on.launched(on.bench.parts[1].stream);
    CHECK_EQ(runs.size(), 3U);
    for (std::size_t i = 0; i < runs.size(); i++) {
        CHECK_EQ(runs[i].sm_count, i == 1 ? 24U : 132U);
        CHECK(i == 0 || runs[i].begin_ns == runs[i - 1].end_ns);
    }
    {
        const Current current(on.bench.parts[1].context);
        CHECK_OK(cuGraphKernelNodeSetParams_v2(moved, &parameters));
    }
    CHECK_EQ(on.launched(on.bench.parts[1].stream)[1].sm_count, 108U);
}

void attributes_one_by_one() {
    GraphBench on;
    const CUgraphNode one = on.add(on.spin(8));
    CUgraphNode other = nullptr;
    {
        const Current current(on.bench.parts[1].context);
        other = on.add(on.spin(8));
    }
    CUlaunchAttributeValue priority{};
    priority.priority = -3;
    CUlaunchAttributeValue domain{};
    domain.memSyncDomain = CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE;
    CUlaunchAttributeValue window{};
    window.accessPolicyWindow.num_bytes = 4096;
    window.accessPolicyWindow.hitRatio = 0.5F;
    CUlaunchAttributeValue policy{};
    policy.clusterSchedulingPolicyPreference = CU_CLUSTER_SCHEDULING_POLICY_SPREAD;
    const std::pair<int, CUlaunchAttributeValue> all[] = {
        {CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, clusters(4)},
        {CU_LAUNCH_ATTRIBUTE_COOPERATIVE, cooperative()},
        {CU_LAUNCH_ATTRIBUTE_PRIORITY, priority},
        {CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, domain},
        {CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, window},
        {CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE, policy},
    };
    for (const auto& [attribute, value] : all) {
        CHECK_OK(set(one, attribute, value));
        CHECK_OK(set(other, attribute, value_of(one, attribute)));
        const CUlaunchAttributeValue there = value_of(other, attribute);
        CHECK(std::memcmp(&there, &value, sizeof value) == 0);
    }
    CHECK_EQ(cuGraphKernelNodeCopyAttributes(other, one), CUDA_ERROR_INVALID_VALUE); // recorded
    const CUgraphNode beside = on.add(on.spin(8));
    CHECK_OK(cuGraphKernelNodeCopyAttributes(beside, one));
    CHECK_EQ(value_of(beside, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION).clusterDim.x, 4U);

    // Launches alone have these.
    CUlaunchAttributeValue none{};
    for (const int attribute :
         {static_cast<int>(CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY),
          static_cast<int>(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION),
          static_cast<int>(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT), 12, 31}) {
        CHECK_EQ(get(one, attribute, none), CUDA_ERROR_INVALID_VALUE);
        CHECK_EQ(set(one, attribute, none), CUDA_ERROR_INVALID_VALUE);
    }
    // The preferred cluster is 12.8's.
    int version = 0;
    CHECK_OK(cuDriverGetVersion(&version));
    CHECK_EQ(get(one, 11, none), version >= 12080 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

// What a query gave out of the arguments stays valid while the node is changed.
void arguments_stay() {
    GraphBench on;
    const CUgraphNode node = on.add(on.spin(4));
    CUDA_KERNEL_NODE_PARAMS_v2 parameters;
    CHECK_OK(cuGraphKernelNodeGetParams_v2(node, &parameters));
    const auto* const seen = static_cast<const uint64_t*>(parameters.kernelParams[0]);
    CHECK_OK(set(node, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, clusters(2)));
    CHECK_EQ(*seen, 1000U);
    on.nanoseconds = 5000;
    CUDA_KERNEL_NODE_PARAMS_v2 longer = on.spin(4);
    CHECK_OK(cuGraphKernelNodeSetParams_v2(node, &longer));
    CHECK_EQ(*seen, 5000U);
}

// A launch's attributes, and those of its stream.
void captured_attributes() {
    GraphBench on;
    CUstream urgent = nullptr;
    CHECK_OK(cuStreamCreateWithPriority(&urgent, CU_STREAM_NON_BLOCKING, -4));
    CUgraph captured = nullptr;
    CHECK_OK(cuStreamBeginCapture_v2(urgent, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CHECK_OK(cuLaunchCooperativeKernel(on.primary.spinner, 8, 1, 1, 32, 1, 1, 0, urgent,
                                       on.spin_arguments));
    CUlaunchAttribute attributes[2] = {};
    attributes[0].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attributes[0].value = clusters(2);
    attributes[1].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    attributes[1].value.programmaticStreamSerializationAllowed = 1;
    CUlaunchConfig config{};
    config.gridDimX = 8;
    config.gridDimY = config.gridDimZ = config.blockDimX = config.blockDimY = config.blockDimZ = 1;
    config.hStream = urgent;
    config.attrs = attributes;
    config.numAttrs = 2;
    CHECK_OK(cuLaunchKernelEx(&config, on.primary.spinner, on.spin_arguments, nullptr));
    CHECK_OK(cuStreamEndCapture(urgent, &captured));
    const auto nodes = nodes_of(captured);
    CHECK_EQ(nodes.size(), 2U);
    CHECK_EQ(value_of(nodes[0], CU_LAUNCH_ATTRIBUTE_COOPERATIVE).cooperative, 1);
    CHECK_EQ(value_of(nodes[0], CU_LAUNCH_ATTRIBUTE_PRIORITY).priority, -4);
    CHECK_EQ(value_of(nodes[1], CU_LAUNCH_ATTRIBUTE_COOPERATIVE).cooperative, 0);
    CHECK_EQ(value_of(nodes[1], CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION).clusterDim.x, 2U);

    // That the second may begin before the first has ended is an edge's.
    CUgraphNode from[2];
    CUgraphNode to[2];
    CUgraphEdgeData data[2];
    std::size_t count = 2;
    CHECK_EQ(cuGraphGetEdges(captured, from, to, &count),
             static_cast<CUresult>(CUDA_ERROR_LOSSY_QUERY));
    CHECK_OK(cuGraphGetEdges_v2(captured, from, to, data, &count));
    CHECK_EQ(count, 1U);
    CHECK(from[0] == nodes[0] && to[0] == nodes[1]);
    CHECK(std::memcmp(data, &kProgrammatic, sizeof kProgrammatic) == 0);

    CUgraph clone = nullptr;
    CHECK_OK(cuGraphClone(&clone, captured));
    count = 2;
    CHECK_OK(cuGraphGetEdges_v2(clone, from, to, data, &count));
    CHECK(count == 1 && std::memcmp(data, &kProgrammatic, sizeof kProgrammatic) == 0);
    CHECK_OK(cuGraphDestroy(clone));
    CHECK_OK(cuGraphDestroy(captured));
    CHECK_OK(cuStreamDestroy_v2(urgent));
}

void edges_with_data() {
    GraphBench on;
    const CUgraphNode first = on.add(on.spin());
    CUgraphNodeParams kernel{};
    kernel.type = CU_GRAPH_NODE_TYPE_KERNEL;
    kernel.kernel.func = on.primary.spinner;
    kernel.kernel.gridDimX = kernel.kernel.gridDimY = kernel.kernel.gridDimZ = 1;
    kernel.kernel.blockDimX = kernel.kernel.blockDimY = kernel.kernel.blockDimZ = 1;
    kernel.kernel.kernelParams = on.spin_arguments;
    const auto add_behind = [&](CUgraphNodeParams node, CUgraphEdgeData edge) {
        CUgraphNode added = nullptr;
        return cuGraphAddNode_v2(&added, on.graph, &first, &edge, 1, &node);
    };
    CHECK_OK(add_behind(kernel, kProgrammatic));
    // Programmatic edges connect kernels only, by the ports that exist.
    CUgraphNodeParams empty{};
    empty.type = CU_GRAPH_NODE_TYPE_EMPTY;
    CHECK_EQ(add_behind(empty, kProgrammatic), CUDA_ERROR_INVALID_VALUE);
    CUgraphEdgeData wrong = kProgrammatic;
    wrong.to_port = 1;
    CHECK_EQ(add_behind(kernel, wrong), CUDA_ERROR_INVALID_VALUE);
    wrong = kProgrammatic;
    wrong.from_port = 0;
    CHECK_EQ(add_behind(kernel, wrong), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(nodes_of(on.graph).size(), 2U);
}

// Assumed: a node that fits no context's SMs is refused when the graph is instantiated.
void too_large_for_the_partition() {
    GraphBench on;
    const CUgraphNode node = on.add(on.spin(264)); // two blocks of 1024 threads on each of 132 SMs
    CHECK_OK(set(node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, cooperative()));
    CUgraphExec exec = on.instantiate();
    CHECK_OK(cuGraphExecDestroy(exec));
    CUgraph small = nullptr;
    CHECK_OK(cuGraphCreate(&small, 0));
    CUgraphNode fits = nullptr;
    {
        const Current current(on.bench.parts[0].context);
        fits = on.add(on.spin(48), {}, small);
    }
    CHECK_OK(set(fits, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, cooperative()));
    exec = on.instantiate(small);
    const Current current(on.bench.parts[0].context);
    CUDA_KERNEL_NODE_PARAMS_v2 larger = on.spin(49);
    CHECK_EQ(cuGraphExecKernelNodeSetParams_v2(exec, fits, &larger),
             CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
    CHECK_OK(cuGraphKernelNodeSetParams_v2(fits, &larger));
    CUgraphExec none = nullptr;
    CHECK_EQ(cuGraphInstantiateWithFlags(&none, small, 0), CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
    CUgraphExecUpdateResultInfo info{};
    CHECK_EQ(cuGraphExecUpdate_v2(exec, small, &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    CHECK_OK(cuGraphLaunch(exec, on.bench.plain));
    CHECK_OK(cuGraphExecDestroy(exec));

    // 24 SMs have fragments of 6 and 8 SMs of a GPC, whichever: no cluster of 16 blocks.
    larger = on.spin(48);
    CHECK_OK(cuGraphKernelNodeSetParams_v2(fits, &larger));
    CHECK_OK(set(fits, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, clusters(16)));
    CHECK_EQ(cuGraphInstantiateWithFlags(&none, small, 0),
             static_cast<CUresult>(CUDA_ERROR_INVALID_CLUSTER_SIZE));
    CHECK_OK(cuGraphDestroy(small));
}

} // namespace

std::vector<Rule> graph_move_rules() {
    return {
        {"a kernel runs in its node's context", runs_in_its_context},
        {"which of func and ctx counts", function_and_context},
        {"kernels of modules are added anew", module_kernels},
        {"attributes, one by one", attributes_one_by_one},
        {"arguments that were given out stay", arguments_stay},
        {"attributes of captured launches", captured_attributes},
        {"edges with data", edges_with_data},
        {"what is too large for a partition", too_large_for_the_partition},
    };
}

} // namespace sim_test

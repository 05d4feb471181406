// Graphs: moving them to other SMs, nodes of all kinds, executables and launches.
#include "replay.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

using namespace sim_test;

namespace {

// Returns what ran during the body: kernels, copies, fills and host functions.
std::vector<gcx_sim_run> runs_of(const std::function<void()>& body) {
    gcx_sim_note_runs(4096);
    body();
    std::vector<gcx_sim_run> runs(gcx_sim_get_runs(nullptr, 0));
    CHECK_EQ(gcx_sim_get_runs(runs.data(), runs.size()), runs.size());
    gcx_sim_note_runs(0);
    return runs;
}

// A bench with a graph, and a few calls that every test makes.
struct GraphBench {
    GraphBench() : bench(primary) { CHECK_OK(cuGraphCreate(&graph, 0)); }
    GraphBench(const GraphBench&) = delete;
    GraphBench& operator=(const GraphBench&) = delete;
    ~GraphBench() { CHECK_OK(cuGraphDestroy(graph)); }

    // Returns parameters of the module's gcx_spin, for the current context.
    CUDA_KERNEL_NODE_PARAMS_v2 spin(unsigned blocks = 1);
    CUgraphNode add(const CUDA_KERNEL_NODE_PARAMS_v2& parameters,
                    const std::vector<CUgraphNode>& after = {}, CUgraph into = nullptr);
    CUgraphExec instantiate(CUgraph what = nullptr);
    // Launches the graph once in the stream and returns what ran.
    std::vector<gcx_sim_run> launched(CUstream stream, CUgraph what = nullptr);

    Primary primary;
    Bench bench;
    CUgraph graph = nullptr;
    uint64_t nanoseconds = 1000;
    void* spin_arguments[1] = {&nanoseconds};
};

// Makes a context current within a scope.
struct Current {
    explicit Current(CUcontext context) { CHECK_OK(cuCtxPushCurrent_v2(context)); }
    Current(const Current&) = delete;
    Current& operator=(const Current&) = delete;
    ~Current() { CHECK_OK(cuCtxPopCurrent_v2(nullptr)); }
};

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

// Recorded: if func is set, ctx is ignored and the node moves to the current context. The header:
// without a context, the current one is used.
void context_is_ignored_if_function_is_set() {
    GraphBench on;
    CUgraph captured = on.bench.capture(on.bench.kernel_function, on.bench.plain);
    const CUgraphNode node = Bench::first_node(captured);
    CUDA_KERNEL_NODE_PARAMS_v2 parameters;
    CHECK_OK(cuGraphKernelNodeGetParams_v2(node, &parameters));
    CHECK(parameters.kern == on.bench.kernel);
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
    CHECK_OK(cuGraphKernelNodeGetParams_v2(node, &parameters));
    CHECK(parameters.ctx == on.bench.parts[1].context && parameters.func != nullptr);
    parameters.func = nullptr;
    parameters.kern = nullptr;
    CHECK_EQ(cuGraphKernelNodeSetParams_v2(node, &parameters), CUDA_ERROR_INVALID_VALUE);
    CHECK_OK(cuGraphDestroy(captured));
}

// Recorded: a node of a module's kernel runs in the context that is current when it is added or
// set.
void module_kernel_added_in_context_runs_there() {
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

void attributes_can_be_set_and_read() {
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
    const CUgraphNode neighbor = on.add(on.spin(8));
    CHECK_OK(cuGraphKernelNodeCopyAttributes(neighbor, one));
    CHECK_EQ(value_of(neighbor, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION).clusterDim.x, 4U);

    // Only launches have these attributes.
    CUlaunchAttributeValue none{};
    for (const int attribute :
         {static_cast<int>(CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY),
          static_cast<int>(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION),
          static_cast<int>(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT), 12, 31}) {
        CHECK_EQ(get(one, attribute, none), CUDA_ERROR_INVALID_VALUE);
        CHECK_EQ(set(one, attribute, none), CUDA_ERROR_INVALID_VALUE);
    }
    // The preferred cluster came with 12.8.
    const int version = driver_version();
    CHECK_EQ(get(one, 11, none), version >= 12080 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

// Arguments that a query returned stay valid while the node is changed.
void returned_arguments_stay_valid() {
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

// The attributes of a launch and of its stream.
void captured_launch_keeps_its_attributes() {
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

    // An edge records that the second may begin before the first has completed.
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

void edge_data_is_checked() {
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

// Assumed: the instantiation refuses a node that does not fit the SMs of its context.
void node_too_large_for_partition_is_refused() {
    GraphBench on;
    const CUgraphNode node = on.add(on.spin(264)); // two blocks of 1024 threads on each of 132 SMs
    CHECK_OK(set(node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, cooperative()));
    CUgraphExec exec = on.instantiate();
    CHECK_OK(cuGraphExecDestroy(exec));
    CUgraph small = new_graph();
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

    // 24 SMs have at most 8 SMs of a GPC: no cluster of 16 blocks fits.
    larger = on.spin(48);
    CHECK_OK(cuGraphKernelNodeSetParams_v2(fits, &larger));
    CHECK_OK(set(fits, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, clusters(16)));
    CHECK_EQ(cuGraphInstantiateWithFlags(&none, small, 0),
             static_cast<CUresult>(CUDA_ERROR_INVALID_CLUSTER_SIZE));
    CHECK_OK(cuGraphDestroy(small));
}

void count_up(void* number) {
    ++*static_cast<int*>(number);
}

CUgraphNodeParams call_of(int& number) {
    CUgraphNodeParams parameters{};
    parameters.type = CU_GRAPH_NODE_TYPE_HOST;
    parameters.host.fn = count_up;
    parameters.host.userData = &number;
    return parameters;
}

CUgraphNode add(CUgraph graph, CUgraphNodeParams& parameters,
                const std::vector<CUgraphNode>& after = {}) {
    CUgraphNode node = nullptr;
    CHECK_OK(cuGraphAddNode_v2(&node, graph, after.data(), nullptr, after.size(), &parameters));
    return node;
}

// The header: a graph that allocates can't be cloned or made a child, and has one executable at a
// time.
void graph_with_memory_nodes_cannot_be_cloned() {
    GraphBench on;
    CUgraphNodeParams allocation{};
    allocation.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC;
    allocation.alloc.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    allocation.alloc.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    allocation.alloc.bytesize = 4096;
    const CUgraphNode allocated = add(on.graph, allocation);
    CHECK(allocation.alloc.dptr != 0);
    CUgraphNodeParams release{};
    release.type = CU_GRAPH_NODE_TYPE_MEM_FREE;
    release.free.dptr = allocation.alloc.dptr;
    const CUgraphNode freed = add(on.graph, release, {allocated});
    CHECK_EQ(type_of(allocated), CU_GRAPH_NODE_TYPE_MEM_ALLOC);
    CHECK_EQ(type_of(freed), CU_GRAPH_NODE_TYPE_MEM_FREE);

    CUgraph clone = nullptr;
    CUgraphNode child = nullptr;
    CHECK_EQ(cuGraphClone(&clone, on.graph), CUDA_ERROR_NOT_SUPPORTED);
    CUgraph parent = new_graph();
    CHECK_EQ(cuGraphAddChildGraphNode(&child, parent, nullptr, 0, on.graph),
             CUDA_ERROR_INVALID_VALUE);
    CHECK_OK(cuGraphDestroy(parent));
    CUgraphExec exec = on.instantiate();
    CUgraphExec second = nullptr;
    CHECK_EQ(cuGraphInstantiateWithFlags(&second, on.graph, 0), CUDA_ERROR_INVALID_VALUE);
    CHECK_OK(cuGraphLaunch(exec, on.bench.plain));
    CHECK_OK(cuGraphExecDestroy(exec));
    exec = on.instantiate();
    CHECK_OK(cuGraphExecDestroy(exec));
}

// The header: in a capture, stream-ordered allocations and host functions become nodes.
void captured_allocations_and_calls_become_nodes() {
    GraphBench on;
    CUgraph captured = nullptr;
    CUdeviceptr memory = 0;
    CHECK_OK(cuStreamBeginCapture_v2(on.bench.plain, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CHECK_OK(cuMemAllocAsync(&memory, 4096, on.bench.plain));
    CHECK_OK(cuMemsetD32Async(memory, 7, 4, on.bench.plain));
    CHECK_OK(cuMemFreeAsync(memory, on.bench.plain));
    CHECK_OK(cuLaunchHostFunc(on.bench.plain, count_up, &memory));
    CHECK_OK(cuStreamEndCapture(on.bench.plain, &captured));
    const auto nodes = nodes_of(captured);
    CHECK_EQ(nodes.size(), 4U);
    CUDA_HOST_NODE_PARAMS call{};
    CHECK_OK(cuGraphHostNodeGetParams(nodes[3], &call));
    CHECK(call.fn == count_up && call.userData == &memory);
    CHECK_EQ(type_of(nodes[0]), CU_GRAPH_NODE_TYPE_MEM_ALLOC);
    CHECK_EQ(type_of(nodes[1]), CU_GRAPH_NODE_TYPE_MEMSET);
    CHECK_EQ(type_of(nodes[2]), CU_GRAPH_NODE_TYPE_MEM_FREE);
    CHECK_OK(cuGraphDestroy(captured));
}

struct Condition {
    CUgraphConditionalHandle handle = 0;
    CUgraphNodeParams parameters{};
};

Condition condition(const GraphBench& on, unsigned value, CUgraphConditionalNodeType type,
                    unsigned size) {
    Condition made;
    CHECK_OK(cuGraphConditionalHandleCreate(&made.handle, on.graph, on.primary.context, value,
                                            CU_GRAPH_COND_ASSIGN_DEFAULT));
    made.parameters.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
    made.parameters.conditional.handle = made.handle;
    made.parameters.conditional.type = type;
    made.parameters.conditional.size = size;
    made.parameters.conditional.ctx = on.primary.context;
    return made;
}

void conditional_node_runs_chosen_body() {
    GraphBench on;
    Condition when = condition(on, 1, CU_GRAPH_COND_TYPE_IF, 1);
    CUgraphNode node = nullptr;
    CHECK_OK(cuGraphAddNode_v2(&node, on.graph, nullptr, nullptr, 0, &when.parameters));
    CHECK_EQ(type_of(node), CU_GRAPH_NODE_TYPE_CONDITIONAL);
    // A handle can be used by one node.
    CUgraphNode another = nullptr;
    CHECK_EQ(cuGraphAddNode_v2(&another, on.graph, nullptr, nullptr, 0, &when.parameters),
             CUDA_ERROR_INVALID_VALUE);
    CUgraph body = when.parameters.conditional.phGraph_out[0];
    on.add(on.spin(), {}, body);
    CHECK_EQ(cuGraphDestroy(body), CUDA_ERROR_INVALID_VALUE); // the node owns it
    auto runs = on.launched(on.bench.plain);
    CHECK_EQ(runs.size(), 1U);
    CHECK_EQ(runs[0].sm_count, 132U);
    CUgraph clone = nullptr;
    CHECK_EQ(cuGraphClone(&clone, on.graph), CUDA_ERROR_NOT_SUPPORTED);

    // If the value is 0, the second body of an IF runs, if there is one.
    Condition unless = condition(on, 0, CU_GRAPH_COND_TYPE_IF, 2);
    CHECK_OK(cuGraphAddNode_v2(&node, on.graph, nullptr, nullptr, 0, &unless.parameters));
    on.add(on.spin(), {}, unless.parameters.conditional.phGraph_out[0]);
    on.add(on.spin(), {}, unless.parameters.conditional.phGraph_out[1]);
    CHECK_EQ(on.launched(on.bench.plain).size(), 2U);
    unless.parameters.conditional.size = 3;
    CHECK_EQ(cuGraphAddNode_v2(&node, on.graph, nullptr, nullptr, 0, &unless.parameters),
             CUDA_ERROR_INVALID_VALUE);
}

// The header: the kernels of a body are in the node's context, and a body calls no host function.
void conditional_body_with_wrong_node_is_refused() {
    for (const bool calls_host : {false, true}) {
        GraphBench on;
        Condition when = condition(on, 1, CU_GRAPH_COND_TYPE_IF, 1);
        add(on.graph, when.parameters);
        CUgraph body = when.parameters.conditional.phGraph_out[0];
        int calls = 0;
        CUgraphNodeParams call = call_of(calls);
        const Current current(on.bench.parts[0].context);
        if (calls_host)
            add(body, call);
        else
            on.add(on.spin(), {}, body);
        CUgraphExec exec = nullptr;
        CHECK_EQ(cuGraphInstantiateWithFlags(&exec, on.graph, 0), CUDA_ERROR_INVALID_VALUE);
    }
}

// Nodes by the functions that take any kind.
void nodes_of_any_kind_can_be_added_and_set() {
    GraphBench on;
    CUdeviceptr memory = 0;
    uint32_t host[4] = {};
    CHECK_OK(cuMemAlloc_v2(&memory, 16));
    CUgraphNodeParams fill{};
    fill.type = CU_GRAPH_NODE_TYPE_MEMSET;
    fill.memset = {memory, 0, 5, 4, 4, 1, on.bench.parts[0].context};
    CUgraphNode filled = nullptr;
    CHECK_OK(cuGraphAddNode_v2(&filled, on.graph, nullptr, nullptr, 0, &fill));
    CUgraphNodeParams copy{};
    copy.type = CU_GRAPH_NODE_TYPE_MEMCPY;
    copy.memcpy.copyCtx = on.bench.parts[1].context;
    copy.memcpy.copyParams.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.memcpy.copyParams.srcDevice = memory;
    copy.memcpy.copyParams.dstMemoryType = CU_MEMORYTYPE_HOST;
    copy.memcpy.copyParams.dstHost = host;
    copy.memcpy.copyParams.WidthInBytes = 16;
    copy.memcpy.copyParams.Height = copy.memcpy.copyParams.Depth = 1;
    CUgraphNode copied = nullptr;
    CHECK_OK(cuGraphAddNode_v2(&copied, on.graph, &filled, nullptr, 1, &copy));
    auto runs = on.launched(on.bench.plain);
    CHECK_EQ(runs.size(), 2U);
    CHECK(runs[0].kind == GCX_SIM_RUN_FILL && runs[0].sm_count == 24);
    CHECK(runs[1].kind == GCX_SIM_RUN_COPY && runs[1].sm_count == 108);
    CHECK(host[0] == 5 && host[3] == 5);

    // The context of a node can change. Recorded: in an executable it does not.
    CUgraphExec exec = on.instantiate();
    fill.memset.ctx = on.primary.context;
    fill.memset.value = 6;
    CHECK_OK(cuGraphExecNodeSetParams(exec, filled, &fill));
    CHECK_OK(cuGraphNodeSetParams(filled, &fill));
    CHECK_EQ(on.launched(on.bench.plain)[0].sm_count, 132U);
    CHECK_EQ(host[0], 6U);
    CHECK_EQ(cuGraphNodeSetParams(copied, &fill), CUDA_ERROR_INVALID_VALUE);
    CUDA_MEMSET_NODE_PARAMS old_way{memory, 0, 9, 4, 4, 1};
    for (CUcontext context : {on.primary.context, on.bench.parts[0].context}) {
        old_way.value++;
        CHECK_OK(cuGraphExecMemsetNodeSetParams(exec, filled, &old_way, context));
        runs = runs_of([&] { CHECK_OK(cuGraphLaunch(exec, on.bench.plain)); });
        CHECK_OK(cuStreamSynchronize(on.bench.plain));
        CHECK(runs[0].sm_count == 24 && host[0] == old_way.value);
    }
    CHECK_OK(cuGraphExecDestroy(exec));
    CHECK_OK(cuMemFree_v2(memory));

    // The query for nodes of any kind came with 13.2.
    const int version = driver_version();
    void* address = nullptr;
    cuGetProcAddress_v2("cuGraphNodeGetParams", &address, version, 0, nullptr);
    CHECK_EQ(address != nullptr, version >= 13020);
    if (address != nullptr) {
        CUgraphNodeParams seen{};
        const auto get_params =
            std::bit_cast<CUresult (*)(CUgraphNode, CUgraphNodeParams*)>(address);
        CHECK_OK(get_params(copied, &seen));
        CHECK(seen.type == CU_GRAPH_NODE_TYPE_MEMCPY && seen.memcpy.copyParams.srcDevice == memory);
        CHECK(seen.memcpy.copyCtx == on.bench.parts[1].context);
    }
}

// A change of an executable affects its later launches and not the graph.
void executable_changes_affect_later_launches() {
    GraphBench on;
    int first = 0;
    int second = 0;
    CUgraphNodeParams call = call_of(first);
    const CUgraphNode host = add(on.graph, call);
    const CUgraphNode kernel = on.add(on.spin(), {host});
    CUgraphNodeParams record{};
    record.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD;
    CHECK_OK(cuEventCreate(&record.eventRecord.event, 0));
    CHECK_EQ(type_of(add(on.graph, record, {kernel})), CU_GRAPH_NODE_TYPE_EVENT_RECORD);

    CUgraphExec exec = on.instantiate();
    call = call_of(second);
    CHECK_OK(cuGraphExecNodeSetParams(exec, host, &call));
    CHECK_EQ(cuGraphExecNodeSetParams(exec, kernel, &call), CUDA_ERROR_INVALID_VALUE);
    const auto runs = runs_of([&] { CHECK_OK(cuGraphLaunch(exec, on.bench.plain)); });
    CHECK_EQ(runs.size(), 2U);
    CHECK(runs[0].kind == GCX_SIM_RUN_HOST && runs[0].sm_count == 0);
    CHECK_EQ(cuEventQuery(record.eventRecord.event), CUDA_ERROR_NOT_READY);
    CHECK_OK(cuEventSynchronize(record.eventRecord.event));
    CHECK(first == 0 && second == 1);
    CHECK(clock_ns() >= runs[1].end_ns);
    CHECK_OK(cuGraphExecDestroy(exec));
    CHECK_OK(cuEventDestroy_v2(record.eventRecord.event));
}

CUgraphExecUpdateResult updated(CUgraphExec exec, CUgraph graph) {
    CUgraphExecUpdateResultInfo info{};
    const CUresult result = cuGraphExecUpdate_v2(exec, graph, &info);
    CHECK_EQ(result, info.result == CU_GRAPH_EXEC_UPDATE_SUCCESS
                         ? CUDA_SUCCESS
                         : CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    return info.result;
}

void update_includes_child_graphs() {
    GraphBench on;
    const CUgraphNode one = on.add(on.spin());
    const CUgraphNode two = on.add(on.spin(), {one});
    CUgraph child = new_graph();
    on.add(on.spin(), {}, child);
    CUgraphNode inner = nullptr;
    CHECK_OK(cuGraphAddChildGraphNode(&inner, on.graph, &two, 1, child));
    CUgraphExec exec = on.instantiate();

    // The update includes the child's parameters.
    CUgraph inside = nullptr;
    CHECK_OK(cuGraphChildGraphNodeGetGraph(inner, &inside));
    on.nanoseconds = 7000;
    const CUDA_KERNEL_NODE_PARAMS_v2 longer = on.spin();
    const CUgraphNode deep = Bench::first_node(inside);
    CHECK_OK(cuGraphKernelNodeSetParams_v2(deep, &longer));
    CHECK_EQ(updated(exec, on.graph), CU_GRAPH_EXEC_UPDATE_SUCCESS);
    auto runs = runs_of([&] { CHECK_OK(cuGraphLaunch(exec, on.bench.plain)); });
    CHECK_EQ(runs.size(), 3U);
    CHECK_EQ(runs[2].end_ns - runs[2].begin_ns, 7000U);
    on.nanoseconds = 9000;
    const CUDA_KERNEL_NODE_PARAMS_v2 longest = on.spin();
    CHECK_OK(cuGraphExecKernelNodeSetParams_v2(exec, deep, &longest));
    runs = runs_of([&] { CHECK_OK(cuGraphLaunch(exec, on.bench.plain)); });
    CHECK_EQ(runs[2].end_ns - runs[2].begin_ns, 9000U);

    CHECK_OK(cuGraphDestroy(child));
    CHECK_OK(cuGraphExecDestroy(exec));
}

void update_with_differences_is_refused() {
    GraphBench on;
    on.add(on.spin(), {on.add(on.spin())});
    CUgraphExec exec = on.instantiate();
    const auto result_of = [&](const std::function<void(CUgraph)>& fill) {
        CUgraph other = new_graph();
        fill(other);
        const CUgraphExecUpdateResult result = updated(exec, other);
        CHECK_OK(cuGraphDestroy(other));
        return result;
    };
    const auto kernel = [&](CUgraph graph, const std::vector<CUgraphNode>& after = {}) {
        return on.add(on.spin(), after, graph);
    };
    CHECK_EQ(result_of([&](CUgraph other) { kernel(other, {kernel(other)}); }),
             CU_GRAPH_EXEC_UPDATE_SUCCESS);
    CHECK_EQ(result_of([&](CUgraph other) { kernel(other); }),
             CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
    CHECK_EQ(result_of([&](CUgraph other) {
                 kernel(other);
                 kernel(other);
             }),
             CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
    CHECK_EQ(result_of([&](CUgraph other) {
                 const CUgraphNode first = kernel(other);
                 CUgraphNode empty = nullptr;
                 CHECK_OK(cuGraphAddEmptyNode(&empty, other, &first, 1));
             }),
             CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED);
    CHECK_EQ(result_of([&](CUgraph other) {
                 const CUgraphNode first = kernel(other);
                 kernel(other, {first});
                 CHECK_OK(set(first, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, cooperative()));
             }),
             CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED);
    CHECK_OK(cuGraphExecDestroy(exec));
}

// The header: a graph with a device-updatable node has one executable, and the attribute can't be
// reset.
void updatable_kernel_has_one_executable() {
    GraphBench on;
    const CUgraphNode node = on.add(on.spin());
    CUlaunchAttributeValue value{};
    value.pad[0] = 1;
    constexpr auto kUpdatable = static_cast<CUlaunchAttributeID>(13);
    CHECK_OK(cuGraphKernelNodeSetAttribute(node, kUpdatable, &value));
    value.pad[0] = 0;
    CHECK_EQ(cuGraphKernelNodeSetAttribute(node, kUpdatable, &value), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuGraphKernelNodeCopyAttributes(node, node), CUDA_ERROR_INVALID_VALUE);
    CUgraphExec exec = on.instantiate();
    CUgraphExec second = nullptr;
    CHECK_EQ(cuGraphInstantiateWithFlags(&second, on.graph, 0), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(updated(exec, on.graph), CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED);
    CHECK_OK(cuGraphExecDestroy(exec));
}

bool overlap(const gcx_sim_run& one, const gcx_sim_run& other) {
    return std::equal(std::begin(one.sms), std::end(one.sms), std::begin(other.sms),
                      [](uint64_t a, uint64_t b) { return (a & b) == 0; }) == false;
}

// The header: a launch waits for earlier work of the stream and for earlier launches of the
// executable in any stream.
void launch_waits_for_earlier_launch() {
    GraphBench on;
    on.add(on.spin());
    CUgraphExec exec = on.instantiate();
    CUgraphExec other = on.instantiate();
    on.nanoseconds = 50'000;
    const auto runs = runs_of([&] {
        CHECK_OK(on.primary.spin(on.bench.plain, 20'000));
        CHECK_OK(cuGraphLaunch(exec, on.bench.plain));
        CHECK_OK(cuGraphLaunch(exec, on.bench.parts[0].stream));
        CHECK_OK(cuGraphLaunch(other, on.bench.parts[1].stream));
    });
    CHECK_EQ(runs.size(), 4U);
    CHECK_EQ(runs[0].launch, 0U);
    CHECK_EQ(runs[1].begin_ns, runs[0].end_ns);
    CHECK_EQ(runs[2].begin_ns, runs[1].end_ns);
    CHECK(runs[1].launch != runs[2].launch);
    CHECK(runs[3].begin_ns < runs[1].begin_ns); // another executable waits for neither
    // The stream is busy until the launch completes.
    CHECK_EQ(cuStreamQuery(on.bench.parts[0].stream), CUDA_ERROR_NOT_READY);
    CHECK_OK(cuStreamSynchronize(on.bench.parts[0].stream));
    CHECK(clock_ns() >= runs[2].end_ns);
    CHECK_OK(cuGraphExecDestroy(exec));
    CHECK_OK(cuGraphExecDestroy(other));
}

// The header: destroying an executable in flight does not terminate it.
void executable_destroyed_in_flight_completes() {
    GraphBench on;
    CUgraph captured = on.bench.capture(on.primary.spinner, on.bench.parts[0].stream);
    const gcx_sim_counts before = counts_now();
    CUgraphExec exec = on.instantiate(captured);
    gcx_sim_counts counts = counts_now();
    CHECK_EQ(counts.graphs, before.graphs + 1);
    CHECK(counts.device_bytes_used > before.device_bytes_used);
    CHECK_OK(cuGraphDestroy(captured));
    uint64_t end = 0;
    const auto runs = runs_of([&] { CHECK_OK(cuGraphLaunch(exec, on.bench.plain)); });
    CHECK_EQ(runs.size(), 1U);
    end = runs[0].end_ns;
    CHECK_OK(cuGraphExecDestroy(exec));
    CHECK_EQ(cuGraphExecDestroy(exec), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuGraphLaunch(exec, on.bench.plain), CUDA_ERROR_INVALID_VALUE);
    counts = counts_now();
    CHECK_EQ(counts.graphs, before.graphs - 1);
    CHECK_EQ(counts.device_bytes_used, before.device_bytes_used);
    CHECK_EQ(cuStreamQuery(on.bench.plain), CUDA_ERROR_NOT_READY);
    CHECK_OK(cuStreamSynchronize(on.bench.plain));
    CHECK(clock_ns() >= end);
}

// Events fork and join branches on streams of two contexts.
void branches_run_in_their_partitions() {
    GraphBench on;
    CUevent fork = new_event();
    CUevent join = new_event();
    CUstream here = on.bench.parts[0].stream;
    CUstream there = on.bench.parts[1].stream;
    CUgraph captured = nullptr;
    CHECK_OK(cuStreamBeginCapture_v2(here, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CHECK_OK(on.primary.spin(here, 1000));
    CHECK_OK(cuEventRecord(fork, here));
    CHECK_OK(cuStreamWaitEvent(there, fork, 0));
    CHECK_OK(on.primary.spin(there, 30'000));
    CHECK_OK(on.primary.spin(here, 20'000));
    CHECK_OK(cuEventRecord(join, there));
    CHECK_OK(cuStreamWaitEvent(here, join, 0));
    CHECK_OK(on.primary.spin(here, 1000));
    CHECK_OK(cuStreamEndCapture(here, &captured));
    const auto runs = on.launched(on.bench.plain, captured);
    CHECK_EQ(runs.size(), 4U);
    for (std::size_t i = 0; i < runs.size(); i++)
        CHECK_EQ(runs[i].sm_count, i == 1 ? 108U : 24U);
    CHECK(!overlap(runs[1], runs[2]) && overlap(runs[0], runs[2]));
    CHECK_EQ(runs[1].begin_ns, runs[0].end_ns);
    CHECK_EQ(runs[2].begin_ns, runs[0].end_ns); // concurrently
    CHECK_EQ(runs[3].begin_ns, std::max(runs[1].end_ns, runs[2].end_ns));
    CHECK_OK(cuGraphDestroy(captured));
    CHECK_OK(cuEventDestroy_v2(fork));
    CHECK_OK(cuEventDestroy_v2(join));
}

// Measured on 13.0: a launch in a capturing stream is refused and invalidates the capture.
void launch_in_capture_is_refused() {
    GraphBench on;
    {
        const Current current(on.bench.parts[0].context);
        on.add(on.spin());
    }
    CUgraphExec exec = on.instantiate();
    CUgraph outer = nullptr;
    CHECK_OK(cuStreamBeginCapture_v2(on.bench.plain, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    CHECK_EQ(cuGraphLaunch(exec, on.bench.plain), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CHECK_EQ(cuStreamEndCapture(on.bench.plain, &outer), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    CHECK(outer == nullptr);
    CHECK_OK(cuGraphLaunch(exec, on.bench.plain));
    CHECK_OK(cuGraphExecDestroy(exec));
}

// Assumed: nodes of a primary context do not run after its reset.
void launch_after_reset_is_refused() {
    CUcontext context = nullptr;
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    CUgraphNode node = nullptr;
    CUgraphExec exec = nullptr;
    uint64_t nanoseconds = 10;
    void* arguments[] = {&nanoseconds};
    CHECK_OK(cuDevicePrimaryCtxRetain(&context, 0));
    CHECK_OK(cuCtxSetCurrent(context));
    CHECK_OK(cuModuleLoadData(&module, kPtx));
    CHECK_OK(cuModuleGetFunction(&function, module, "gcx_spin"));
    CUgraph graph = new_graph();
    CUDA_KERNEL_NODE_PARAMS_v2 parameters{};
    parameters.func = function;
    parameters.gridDimX = parameters.gridDimY = parameters.gridDimZ = 1;
    parameters.blockDimX = parameters.blockDimY = parameters.blockDimZ = 1;
    parameters.kernelParams = arguments;
    CHECK_OK(cuGraphAddKernelNode_v2(&node, graph, nullptr, 0, &parameters));
    CHECK_OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    CHECK_OK(cuDevicePrimaryCtxReset_v2(0));
    CHECK_OK(cuDevicePrimaryCtxRetain(&context, 0));
    CHECK_OK(cuCtxSetCurrent(context));
    CUstream stream = new_stream();
    CHECK_EQ(cuGraphLaunch(exec, stream), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    CHECK_OK(cuGraphExecDestroy(exec));
    CHECK_EQ(cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    CHECK_OK(cuGraphDestroy(graph));
    CHECK_OK(cuStreamDestroy_v2(stream));
    CHECK_OK(cuDevicePrimaryCtxRelease_v2(0));
    CHECK_OK(cuDevicePrimaryCtxRelease_v2(0));
}

// No more runs are recorded than requested.
void recorded_runs_are_limited() {
    GraphBench on;
    gcx_sim_note_runs(2);
    for (int i = 0; i < 3; i++)
        CHECK_OK(on.primary.spin(on.bench.plain, 10));
    gcx_sim_run one[1];
    CHECK_EQ(gcx_sim_get_runs(one, 1), 2U);
    CHECK_EQ(std::string(one[0].kernel), "gcx_spin");
    gcx_sim_note_runs(0);
    CHECK_OK(on.primary.spin(on.bench.plain, 10));
    CHECK_EQ(gcx_sim_get_runs(nullptr, 0), 0U);
}

#define TEST(name) {#name, name}
const NamedTest kTests[] = {
    TEST(context_is_ignored_if_function_is_set),
    TEST(module_kernel_added_in_context_runs_there),
    TEST(attributes_can_be_set_and_read),
    TEST(returned_arguments_stay_valid),
    TEST(captured_launch_keeps_its_attributes),
    TEST(edge_data_is_checked),
    TEST(node_too_large_for_partition_is_refused),
    TEST(graph_with_memory_nodes_cannot_be_cloned),
    TEST(captured_allocations_and_calls_become_nodes),
    TEST(conditional_node_runs_chosen_body),
    TEST(conditional_body_with_wrong_node_is_refused),
    TEST(nodes_of_any_kind_can_be_added_and_set),
    TEST(executable_changes_affect_later_launches),
    TEST(update_includes_child_graphs),
    TEST(update_with_differences_is_refused),
    TEST(updatable_kernel_has_one_executable),
    TEST(launch_waits_for_earlier_launch),
    TEST(executable_destroyed_in_flight_completes),
    TEST(branches_run_in_their_partitions),
    TEST(launch_in_capture_is_refused),
    TEST(launch_after_reset_is_refused),
    TEST(recorded_runs_are_limited),
};
#undef TEST

} // namespace

int main() {
    for (const char* driver : {"h200@12.4", "h200@13.0", "h200@13.5"}) {
        for (const NamedTest& test : kTests) {
            simulate(driver);
            run(test, driver);
            const gcx_sim_counts counts = counts_now();
            CHECK_EQ(counts.graphs, 0U);
            CHECK_EQ(counts.allocations, 0U);
        }
    }
    return check::summary("graphs");
}

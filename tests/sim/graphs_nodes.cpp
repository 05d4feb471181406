// Nodes of all kinds, and what can be changed of an executable.
#include "graphs.hpp"

#include <bit>

namespace sim_test {
namespace {

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
void memory_nodes() {
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
    CUgraph parent = nullptr;
    CUgraphNode child = nullptr;
    CHECK_EQ(cuGraphClone(&clone, on.graph), CUDA_ERROR_NOT_SUPPORTED);
    CHECK_OK(cuGraphCreate(&parent, 0));
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

// The header: allocations in the order of a stream are nodes in a capture, as calls of the host
// are.
void captured_work() {
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

void conditional_nodes() {
    GraphBench on;
    Condition when = condition(on, 1, CU_GRAPH_COND_TYPE_IF, 1);
    CUgraphNode node = nullptr;
    CHECK_OK(cuGraphAddNode_v2(&node, on.graph, nullptr, nullptr, 0, &when.parameters));
    CHECK_EQ(type_of(node), CU_GRAPH_NODE_TYPE_CONDITIONAL);
    // A handle serves one node.
    CUgraphNode another = nullptr;
    CHECK_EQ(cuGraphAddNode_v2(&another, on.graph, nullptr, nullptr, 0, &when.parameters),
             CUDA_ERROR_INVALID_VALUE);
    CUgraph body = when.parameters.conditional.phGraph_out[0];
    on.add(on.spin(), {}, body);
    CHECK_EQ(cuGraphDestroy(body), CUDA_ERROR_INVALID_VALUE); // it is the node's
    auto runs = on.launched(on.bench.plain);
    CHECK_EQ(runs.size(), 1U);
    CHECK_EQ(runs[0].sm_count, 132U);
    CUgraph clone = nullptr;
    CHECK_EQ(cuGraphClone(&clone, on.graph), CUDA_ERROR_NOT_SUPPORTED);

    // With 0 the second body of an IF runs, or none.
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
void conditional_bodies() {
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
void any_node() {
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

    // Their context can be another; recorded: in an executable they stay, whichever is given.
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

    // A query of any kind came with 13.2.
    int version = 0;
    void* address = nullptr;
    CHECK_OK(cuDriverGetVersion(&version));
    cuGetProcAddress_v2("cuGraphNodeGetParams", &address, version, 0, nullptr);
    CHECK_EQ(address != nullptr, version >= 13020);
    if (address != nullptr) {
        CUgraphNodeParams told{};
        const auto get_params =
            std::bit_cast<CUresult (*)(CUgraphNode, CUgraphNodeParams*)>(address);
        CHECK_OK(get_params(copied, &told));
        CHECK(told.type == CU_GRAPH_NODE_TYPE_MEMCPY && told.memcpy.copyParams.srcDevice == memory);
        CHECK(told.memcpy.copyCtx == on.bench.parts[1].context);
    }
}

// A change of an executable affects its later launches and not the graph.
void changes_of_executables() {
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
    CHECK(first == 0 && second == 1);
    CHECK_EQ(runs.size(), 2U);
    CHECK(runs[0].kind == GCX_SIM_RUN_HOST && runs[0].sm_count == 0);
    CHECK_EQ(cuEventQuery(record.eventRecord.event), CUDA_ERROR_NOT_READY);
    CHECK_OK(cuEventSynchronize(record.eventRecord.event));
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

void updates() {
    GraphBench on;
    const CUgraphNode one = on.add(on.spin());
    const CUgraphNode two = on.add(on.spin(), {one});
    CUgraph child = nullptr;
    CHECK_OK(cuGraphCreate(&child, 0));
    on.add(on.spin(), {}, child);
    CUgraphNode inner = nullptr;
    CHECK_OK(cuGraphAddChildGraphNode(&inner, on.graph, &two, 1, child));
    CUgraphExec exec = on.instantiate();

    // The child's parameters come too.
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

void differences_of_updates() {
    GraphBench on;
    on.add(on.spin(), {on.add(on.spin())});
    CUgraphExec exec = on.instantiate();
    const auto result_of = [&](const std::function<void(CUgraph)>& fill) {
        CUgraph other = nullptr;
        CHECK_OK(cuGraphCreate(&other, 0));
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
                 CUlaunchAttributeValue cooperative{};
                 cooperative.cooperative = 1;
                 CHECK_OK(cuGraphKernelNodeSetAttribute(first, CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
                                                        &cooperative));
             }),
             CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED);
    CHECK_OK(cuGraphExecDestroy(exec));
}

// The header: what the device may change has one executable, and no way back.
void updatable_kernels() {
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

} // namespace

std::vector<Rule> graph_node_rules() {
    return {
        {"nodes that allocate", memory_nodes},
        {"captured allocations and calls", captured_work},
        {"conditional nodes", conditional_nodes},
        {"bodies of conditional nodes", conditional_bodies},
        {"nodes of any kind", any_node},
        {"changes of executables", changes_of_executables},
        {"updates of executables", updates},
        {"differences that refuse an update", differences_of_updates},
        {"kernels that the device may change", updatable_kernels},
    };
}

} // namespace sim_test

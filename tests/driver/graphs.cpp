// Graphs: contexts of nodes, conditional bodies, device launch, allocation nodes, programmatic
// dependent launch, grids that do not fit.
#include "targets.hpp"

namespace conformance {
namespace {

CUgraphExec instantiate(CUgraph graph) {
    CUgraphExec executable = nullptr;
    MUST(cuGraphInstantiateWithFlags, &executable, graph, 0);
    return executable;
}

// Captures what the body does in a stream of the current context.
CUgraph capture(const std::function<void(CUstream)>& body) {
    const CUstream stream = non_blocking_stream();
    CUgraph graph = nullptr;
    MUST(cuStreamBeginCapture_v2, stream, CU_STREAM_CAPTURE_MODE_RELAXED);
    body(stream);
    MUST(cuStreamEndCapture, stream, &graph);
    return graph;
}

CUdeviceptr counts() {
    return device_words(kMaxSms * sizeof(uint32_t));
}

// Whose SMs: of the context that the graph was made in, or of the one that it was launched in?
std::string whose(const std::set<unsigned>& seen) {
    make_current(gpu.green);
    if (seen == sms_of(nullptr))
        return "the SMs of the node's context";
    make_current(gpu.other);
    if (seen == sms_of(nullptr))
        return "the SMs of the stream's context";
    make_current(gpu.primary);
    return seen == sms_of(nullptr) ? "the SMs of the primary context" : "other SMs";
}

void launch_in_other(CUgraphExec executable) {
    make_current(gpu.other);
    const CUstream stream = non_blocking_stream();
    MUST(cuGraphLaunch, executable, stream);
}

std::string captured_kernel() {
    const CUdeviceptr seen = counts();
    const CUgraph graph = capture([&](CUstream stream) { must(probe(stream, seen), "gcx_probe"); });
    launch_in_other(instantiate(graph));
    return whose(sms_in(seen));
}

// -- Claim 16: nodes of the primary context in a stream of a green one

std::string memset_of_primary() {
    const CUdeviceptr from = device_words();
    const CUdeviceptr to = device_words();
    CUDA_MEMSET_NODE_PARAMS fill{};
    fill.dst = from;
    fill.value = 5;
    fill.elementSize = 4;
    fill.width = fill.height = 1;
    CUgraph graph = nullptr;
    CUgraphNode node = nullptr;
    MUST(cuGraphCreate, &graph, 0);
    MUST(cuGraphAddMemsetNode, &node, graph, nullptr, 0, &fill, gpu.primary);
    const CUgraphExec executable = instantiate(graph);
    make_current(gpu.green);
    const CUstream stream = non_blocking_stream();
    must(spin(stream), "gcx_spin");
    MUST(cuGraphLaunch, executable, stream);
    must(load(stream, to, from), "the launch");
    MUST(cuCtxSynchronize);
    uint32_t value = 0;
    MUST(cuMemcpyDtoH_v2, &value, to, 4);
    return value == 5 ? "ordered" : "independent";
}

std::string kernel_of_primary() {
    const CUdeviceptr from = device_words();
    const CUdeviceptr to = device_words();
    make_current(gpu.primary);
    const CUgraphExec executable = store_graph(from, 5);
    make_current(gpu.green);
    const CUstream stream = non_blocking_stream();
    MUST(cuGraphLaunch, executable, stream);
    must(load(stream, to, from), "the launch");
    return read_word(to) == 5 ? "ordered" : "independent";
}

// -- Claim 17: programmatic dependent launch

constexpr char kDependentKernel[] = R"(
.version 7.8
.target sm_90
.address_size 64

.visible .entry gcx_dependent(.param .u64 to, .param .u64 from)
{
    .reg .b32  %r<2>;
    .reg .b64  %rd<3>;
    ld.param.u64 %rd1, [to];
    ld.param.u64 %rd2, [from];
    griddepcontrol.wait;
    ld.volatile.global.u32 %r1, [%rd2];
    st.volatile.global.u32 [%rd1], %r1;
    ret;
}
)";

CUresult launch_dependent(CUfunction function, CUstream stream, CUdeviceptr to, CUdeviceptr from) {
    CUlaunchAttribute attribute{};
    attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    attribute.value.programmaticStreamSerializationAllowed = 1;
    CUlaunchConfig config{};
    config.gridDimX = config.gridDimY = config.gridDimZ = 1;
    config.blockDimX = config.blockDimY = config.blockDimZ = 1;
    config.hStream = stream;
    config.attrs = &attribute;
    config.numAttrs = 1;
    void* arguments[] = {&to, &from};
    return CU(cuLaunchKernelEx)(&config, function, arguments, nullptr);
}

std::string dependent_launch(bool captured) {
    int major = 0;
    MUST(cuDeviceGetAttribute, &major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, gpu.device);
    if (major < 9)
        return "needs compute capability 9.0";
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    MUST(cuModuleLoadData, &module, kDependentKernel);
    MUST(cuModuleGetFunction, &function, module, "gcx_dependent");
    const CUdeviceptr from = device_words();
    const CUdeviceptr to = device_words();
    const auto both = [&](CUstream stream) {
        must(store(stream, from, 6), "the slow launch");
        must(launch_dependent(function, stream, to, from), "the dependent launch");
    };
    if (captured) {
        const CUgraphExec executable = instantiate(capture(both));
        MUST(cuGraphLaunch, executable, non_blocking_stream());
    } else {
        both(non_blocking_stream());
    }
    return read_word(to) == 6 ? "ordered" : "independent";
}

// -- Claim 21: conditional nodes

std::string conditional_body() {
    CUgraph graph = nullptr;
    CUgraphConditionalHandle handle = 0;
    CUgraphNode node = nullptr;
    CUgraphNodeParams parameters{};
    MUST(cuGraphCreate, &graph, 0);
    MUST(cuGraphConditionalHandleCreate, &handle, graph, gpu.green, 1,
         CU_GRAPH_COND_ASSIGN_DEFAULT);
    parameters.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
    parameters.conditional.handle = handle;
    parameters.conditional.type = CU_GRAPH_COND_TYPE_IF;
    parameters.conditional.size = 1;
    parameters.conditional.ctx = gpu.green;
    MUST(cuGraphAddNode_v2, &node, graph, nullptr, nullptr, 0, &parameters);
    const CUdeviceptr seen = counts();
    const CUstream stream = non_blocking_stream();
    MUST(cuStreamBeginCaptureToGraph, stream, parameters.conditional.phGraph_out[0], nullptr,
         nullptr, 0, CU_STREAM_CAPTURE_MODE_RELAXED);
    must(probe(stream, seen), "gcx_probe");
    CUgraph body = nullptr;
    MUST(cuStreamEndCapture, stream, &body);
    launch_in_other(instantiate(graph));
    return whose(sms_in(seen));
}

// -- Claim 22: graphs for device launch

CUgraph probe_graph(CUdeviceptr seen) {
    auto max_sms = static_cast<uint32_t>(kMaxSms);
    uint32_t nanoseconds = 300'000;
    void* arguments[] = {&seen, &max_sms, &nanoseconds};
    CUDA_KERNEL_NODE_PARAMS_v2 node{};
    node.func = kernels.probe;
    node.gridDimX = 4 * reported_sms();
    node.gridDimY = node.gridDimZ = 1;
    node.blockDimX = 1024;
    node.blockDimY = node.blockDimZ = 1;
    node.kernelParams = arguments;
    CUgraph graph = nullptr;
    CUgraphNode added = nullptr;
    MUST(cuGraphCreate, &graph, 0);
    MUST(cuGraphAddKernelNode_v2, &added, graph, nullptr, 0, &node);
    return graph;
}

std::string for_device_launch() {
    const CUdeviceptr seen = counts();
    const CUgraph graph = probe_graph(seen);
    CUgraphExec executable = nullptr;
    const CUresult made = CU(cuGraphInstantiateWithFlags)(
        &executable, graph, CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH);
    if (made != CUDA_SUCCESS)
        return "instantiate " + name_of(made);
    make_current(gpu.other);
    const CUstream stream = non_blocking_stream();
    const CUresult uploaded = CU(cuGraphUpload)(executable, stream);
    const CUresult launched = CU(cuGraphLaunch)(executable, stream);
    return "upload " + name_of(uploaded) + ", launch from the host " + name_of(launched) + ", " +
           whose(sms_in(seen));
}

// -- Claim 35: grids that do not fit

std::string cooperative_grid_that_does_not_fit() {
    const CUstream stream = non_blocking_stream();
    uint64_t nanoseconds = 1;
    void* arguments[] = {&nanoseconds};
    CUgraph graph = nullptr;
    CUgraphExec executable = nullptr;
    MUST(cuStreamBeginCapture_v2, stream, CU_STREAM_CAPTURE_MODE_RELAXED);
    std::string answer = "launch into the capture " +
                         name_of(CU(cuLaunchCooperativeKernel)(kernels.spin, 6'000, 1, 1, 1024, 1,
                                                               1, 0, stream, arguments));
    answer += ", end " + name_of(CU(cuStreamEndCapture)(stream, &graph));
    const CUresult made = CU(cuGraphInstantiateWithFlags)(&executable, graph, 0);
    answer += ", instantiate " + name_of(made);
    if (made == CUDA_SUCCESS)
        answer += ", launch " + name_of(CU(cuGraphLaunch)(executable, stream));
    return answer;
}

// -- Allocation nodes, updates, destroyed contexts

std::string allocation_nodes() {
    const CUdeviceptr to = device_words();
    const CUgraph graph = capture([&](CUstream stream) {
        CUdeviceptr memory = 0;
        MUST(cuMemAllocAsync, &memory, 1 << 20, stream);
        must(store(stream, memory, 8, 1), "gcx_store");
        must(load(stream, to, memory), "gcx_load");
        MUST(cuMemFreeAsync, memory, stream);
    });
    CUgraphExec executable = nullptr;
    const CUresult made = CU(cuGraphInstantiateWithFlags)(&executable, graph, 0);
    if (made != CUDA_SUCCESS)
        return "instantiate " + name_of(made);
    const CUresult launched = CU(cuGraphLaunch)(executable, non_blocking_stream());
    return "launch " + name_of(launched) + ", value " + std::to_string(read_word(to));
}

std::string node_of_destroyed_context() {
    const CUgraph graph = capture([&](CUstream stream) { must(spin(stream, 1), "gcx_spin"); });
    std::size_t count = 1;
    CUgraphNode node = nullptr;
    MUST(cuGraphGetNodes, graph, &node, &count);
    make_current(gpu.primary);
    MUST(cuGreenCtxDestroy, gpu.green_handle);
    CUDA_KERNEL_NODE_PARAMS_v2 parameters{};
    CUgraphExec executable = nullptr;
    std::string answer =
        "parameters " + name_of(CU(cuGraphKernelNodeGetParams_v2)(node, &parameters));
    unsigned long long id = 0;
    answer += ", id of its context " + name_of(CU(cuCtxGetId)(parameters.ctx, &id));
    const CUresult made = CU(cuGraphInstantiateWithFlags)(&executable, graph, 0);
    answer += ", instantiate " + name_of(made);
    if (made != CUDA_SUCCESS)
        return answer;
    answer += ", launch " + name_of(CU(cuGraphLaunch)(executable, non_blocking_stream()));
    return answer + ", synchronize " + name_of(CU(cuCtxSynchronize)());
}

} // namespace

void add_graphs(Checks& checks) {
    checks.add_green("graph_captured_in_green_launched_in_another", captured_kernel);
    checks.add_green("claim_16_memset_node_of_primary_in_green_stream", memset_of_primary);
    checks.add_green("claim_16_kernel_node_of_primary_in_green_stream", kernel_of_primary);
    checks.add_both("claim_17_programmatic_dependent_launch",
                    [] { return dependent_launch(false); });
    checks.add_both("claim_17_programmatic_dependent_launch_in_a_graph",
                    [] { return dependent_launch(true); });
    checks.add_green("claim_21_body_of_a_condition", conditional_body);
    checks.add_green("claim_22_graph_for_device_launch", for_device_launch);
    checks.add_green("claim_25_node_of_a_destroyed_context", node_of_destroyed_context);
    checks.add_both("claim_35_cooperative_grid_that_does_not_fit",
                    cooperative_grid_that_does_not_fit);
    checks.add_both("graph_with_allocation_nodes", allocation_nodes);
}

} // namespace conformance

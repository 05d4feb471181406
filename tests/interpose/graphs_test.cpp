// Graphs of programs inside a partition: captured, and built of nodes that name a context.
#include "inside.hpp"

namespace {

using inside::Inside;

void launch_graph(CUgraph graph, const inside::Sms& sms, std::size_t nodes) {
    CUgraphExec executable = nullptr;
    CUstream stream = nullptr;
    CU_OK(cuGraphInstantiateWithFlags, &executable, graph, 0);
    CU_OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    inside::check_runs(sms, nodes, [&] {
        CU_OK(cuGraphLaunch, executable, stream);
        CU_OK(cuStreamSynchronize, stream);
    });
    CU_OK(cuStreamDestroy, stream);
    CU_OK(cuGraphExecDestroy, executable);
}

void graph_captured_runs_in_partition(const Inside& inside) {
    inside::use_primary();
    CUstream stream = nullptr;
    CUgraph graph = nullptr;
    CUfunction function = inside::kernel();
    CUdeviceptr memory = 0;
    CU_OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    CU_OK(cuMemAlloc, &memory, 4096);
    CU_OK(cuStreamBeginCapture, stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
    CHECK_EQ(inside::launch(function, stream), CUDA_SUCCESS);
    CU_OK(cuMemsetD32Async, memory, 1, 1024, stream);
    CU_OK(cuStreamEndCapture, stream, &graph);
    launch_graph(graph, inside.sms[0], 2);
    CU_OK(cuGraphDestroy, graph);
}

CUDA_KERNEL_NODE_PARAMS kernel_node(CUcontext context) {
    CUDA_KERNEL_NODE_PARAMS node{};
    CUlibrary library = nullptr;
    CU_OK(cuLibraryLoadData, &library, inside::kPtx, nullptr, nullptr, 0, nullptr, nullptr, 0);
    CU_OK(cuLibraryGetKernel, &node.kern, library, "work");
    node.gridDimX = node.gridDimY = node.gridDimZ = 1;
    node.blockDimX = 32;
    node.blockDimY = node.blockDimZ = 1;
    node.ctx = context;
    return node;
}

CUDA_MEMSET_NODE_PARAMS fill_node(CUdeviceptr memory) {
    CUDA_MEMSET_NODE_PARAMS node{};
    node.dst = memory;
    node.elementSize = 4;
    node.width = 16;
    node.height = 1;
    return node;
}

void graph_of_nodes_runs_in_partition(const Inside& inside) {
    const CUcontext primary = inside::use_primary();
    CUgraph graph = nullptr;
    CUgraphNode nodes[5] = {};
    CUdeviceptr memory = 0;
    CU_OK(cuGraphCreate, &graph, 0);
    CU_OK(cuMemAlloc, &memory, 4096);
    const CUDA_KERNEL_NODE_PARAMS kernel = kernel_node(primary);
    CU_OK(cuGraphAddKernelNode, &nodes[0], graph, nullptr, 0, &kernel);
    const CUDA_KERNEL_NODE_PARAMS current = kernel_node(nullptr);
    CU_OK(cuGraphAddKernelNode, &nodes[1], graph, nullptr, 0, &current);
    CHECK(kernel.ctx == primary);
    const CUDA_MEMSET_NODE_PARAMS fill = fill_node(memory);
    CU_OK(cuGraphAddMemsetNode, &nodes[2], graph, nullptr, 0, &fill, primary);
    CUDA_KERNEL_NODE_PARAMS read{};
    CU_OK(cuGraphKernelNodeGetParams, nodes[0], &read);
    CHECK(read.ctx == nullptr || read.ctx == primary);
    CU_OK(cuGraphKernelNodeSetParams, nodes[1], &kernel);
    // cudart adds nodes this way from 12.3 on.
    CUgraphNodeParams any{};
    any.type = CU_GRAPH_NODE_TYPE_KERNEL;
    any.kernel.kern = kernel.kern;
    any.kernel.gridDimX = any.kernel.gridDimY = any.kernel.gridDimZ = 1;
    any.kernel.blockDimX = any.kernel.blockDimY = any.kernel.blockDimZ = 1;
    any.kernel.ctx = primary;
    CU_OK(cuGraphAddNode, &nodes[3], graph, nullptr, nullptr, 0, &any);
    CHECK(any.kernel.ctx == primary);
    CUgraphNodeParams filled{};
    filled.type = CU_GRAPH_NODE_TYPE_MEMSET;
    filled.memset.dst = memory;
    filled.memset.elementSize = 4;
    filled.memset.width = 16;
    filled.memset.height = 1;
    filled.memset.ctx = primary;
    CU_OK(cuGraphAddNode, &nodes[4], graph, nullptr, nullptr, 0, &filled);
    CHECK(filled.memset.ctx == primary);
    launch_graph(graph, inside.sms[0], 5);
    CU_OK(cuGraphDestroy, graph);
    CHECK_EQ(CU(cuGraphAddKernelNode)(&nodes[0], nullptr, nullptr, 0, nullptr),
             NATIVE(cuGraphAddKernelNode)(&nodes[0], nullptr, nullptr, 0, nullptr));
}

void graph_with_changed_nodes_runs_in_partition(const Inside& inside) {
    const CUcontext primary = inside::use_primary();
    CUgraph graph = nullptr;
    CUgraphNode kernel = nullptr;
    CUgraphNode fill = nullptr;
    CUgraphExec executable = nullptr;
    CUdeviceptr memory = 0;
    CU_OK(cuGraphCreate, &graph, 0);
    CU_OK(cuMemAlloc, &memory, 4096);
    const CUDA_KERNEL_NODE_PARAMS parameters = kernel_node(nullptr);
    const CUDA_MEMSET_NODE_PARAMS filling = fill_node(memory);
    CU_OK(cuGraphAddKernelNode, &kernel, graph, nullptr, 0, &parameters);
    CU_OK(cuGraphAddMemsetNode, &fill, graph, nullptr, 0, &filling, primary);
    CU_OK(cuGraphInstantiateWithFlags, &executable, graph, 0);
    CUDA_KERNEL_NODE_PARAMS named = parameters;
    named.ctx = primary;
    CU_OK(cuGraphExecKernelNodeSetParams, executable, kernel, &named);
    CU_OK(cuGraphExecMemsetNodeSetParams, executable, fill, &filling, primary);
    inside::check_runs(inside.sms[0], 2, [&] { CU_OK(cuGraphLaunch, executable, nullptr); });
}

} // namespace

int main() {
    for (const std::string& driver : inside::kDrivers) {
        const inside::Setup setup = {.spec = "h100@" + driver};
        inside::run(setup, graph_captured_runs_in_partition);
        inside::run(setup, graph_of_nodes_runs_in_partition);
        inside::run(setup, graph_with_changed_nodes_runs_in_partition);
    }
    return check::summary("graphs inside");
}

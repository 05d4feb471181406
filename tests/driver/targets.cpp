#include "targets.hpp"

namespace conformance {
namespace {

CUgraphExec graph_of(CUfunction function, void** arguments) {
    CUDA_KERNEL_NODE_PARAMS_v2 node{};
    node.func = function;
    node.gridDimX = node.gridDimY = node.gridDimZ = 1;
    node.blockDimX = node.blockDimY = node.blockDimZ = 1;
    node.kernelParams = arguments;
    CUgraph graph = nullptr;
    CUgraphNode added = nullptr;
    CUgraphExec executable = nullptr;
    MUST(cuGraphCreate, &graph, 0);
    MUST(cuGraphAddKernelNode_v2, &added, graph, nullptr, 0, &node);
    MUST(cuGraphInstantiateWithFlags, &executable, graph, 0);
    return executable;
}

} // namespace

const char* name_of(StreamKind kind) {
    switch (kind) {
    case StreamKind::kNull:
        return "null";
    case StreamKind::kLegacy:
        return "legacy";
    case StreamKind::kPtszLegacy:
        return "ptsz_legacy";
    case StreamKind::kBlocking:
        return "blocking";
    case StreamKind::kPriority:
        return "priority";
    case StreamKind::kNonBlocking:
        return "non_blocking";
    case StreamKind::kPerThread:
        return "per_thread";
    case StreamKind::kPtsz:
        return "ptsz";
    }
    return "";
}

CUstream make_stream(StreamKind kind) {
    CUstream stream = nullptr;
    int lowest = 0;
    int highest = 0;
    switch (kind) {
    case StreamKind::kNull:
    case StreamKind::kPtsz:
        break;
    case StreamKind::kLegacy:
    case StreamKind::kPtszLegacy:
        return CU_STREAM_LEGACY;
    case StreamKind::kPerThread:
        return CU_STREAM_PER_THREAD;
    case StreamKind::kBlocking:
        MUST(cuStreamCreate, &stream, CU_STREAM_DEFAULT);
        break;
    case StreamKind::kNonBlocking:
        MUST(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
        break;
    case StreamKind::kPriority:
        MUST(cuCtxGetStreamPriorityRange, &lowest, &highest);
        MUST(cuStreamCreateWithPriority, &stream, CU_STREAM_DEFAULT, highest);
        break;
    }
    return stream;
}

Target make_target(StreamKind kind) {
    return {make_stream(kind), kind == StreamKind::kPtsz || kind == StreamKind::kPtszLegacy};
}

CUstream blocking_stream() {
    return make_stream(StreamKind::kBlocking);
}

CUstream non_blocking_stream() {
    return make_stream(StreamKind::kNonBlocking);
}

CUresult store(const Target& target, CUdeviceptr to, uint32_t value) {
    uint64_t after = kSlow;
    void* arguments[] = {&to, &value, &after};
    return CU_AT(target, cuLaunchKernel)(kernels.store, 1, 1, 1, 1, 1, 1, 0, target.stream,
                                         arguments, nullptr);
}

CUresult load(const Target& target, CUdeviceptr to, CUdeviceptr from) {
    void* arguments[] = {&to, &from};
    return CU_AT(target, cuLaunchKernel)(kernels.load, 1, 1, 1, 1, 1, 1, 0, target.stream,
                                         arguments, nullptr);
}

CUgraphExec load_graph(CUdeviceptr to, CUdeviceptr from) {
    void* arguments[] = {&to, &from};
    return graph_of(kernels.load, arguments);
}

CUgraphExec store_graph(CUdeviceptr to, uint32_t value) {
    uint64_t after = kSlow;
    void* arguments[] = {&to, &value, &after};
    return graph_of(kernels.store, arguments);
}

} // namespace conformance

#include "graph_kernels.hpp"

namespace support {
namespace {

constexpr char kGraphPtx[] = R"(
.version 6.3
.target sm_70
.address_size 64
.visible .entry gcx_probe(.param .u64 counts, .param .u32 max_sms, .param .u32 spin_ns)
{ ret; }
.visible .entry gcx_spin(.param .u64 nanoseconds)
{ ret; }
)";

} // namespace

GraphKernels::GraphKernels() {
    CHECK_NATIVE(cuDevicePrimaryCtxRetain, &primary, 0);
    const Current current(primary);
    CHECK_NATIVE(cuModuleLoadData, &module_, kGraphPtx);
    CHECK_NATIVE(cuModuleGetFunction, &module_probe, module_, "gcx_probe");
    CHECK_NATIVE(cuModuleGetFunction, &spinner_, module_, "gcx_spin");
    CHECK_NATIVE(cuLibraryLoadData, &library_, kGraphPtx, nullptr, nullptr, 0, nullptr, nullptr, 0);
    CUkernel kernel = nullptr;
    CHECK_NATIVE(cuLibraryGetKernel, &kernel, library_, "gcx_probe");
    CHECK_NATIVE(cuKernelGetFunction, &library_probe, kernel);
    CHECK_NATIVE(cuMemAlloc, &counts_, std::size_t{kPlaces} * kMaxSms * 4);
    CHECK_NATIVE(cuMemsetD32, counts_, 0, std::size_t{kPlaces} * kMaxSms);
    CHECK_NATIVE(cuStreamCreate, &plain, CU_STREAM_NON_BLOCKING);
}

GraphKernels::~GraphKernels() {
    {
        const Current current(primary);
        CHECK_NATIVE(cuStreamDestroy, plain);
        CHECK_NATIVE(cuMemFree, counts_);
        CHECK_NATIVE(cuLibraryUnload, library_);
        CHECK_NATIVE(cuModuleUnload, module_);
    }
    CHECK_NATIVE(cuDevicePrimaryCtxRelease, 0);
}

void GraphKernels::probe(CUstream stream, From from, uint32_t place, uint32_t nanoseconds,
                         bool cooperative, unsigned blocks) const {
    CUdeviceptr counts = at(place);
    uint32_t max_sms = kMaxSms;
    void* arguments[] = {&counts, &max_sms, &nanoseconds};
    CUfunction function = from == From::library ? library_probe : module_probe;
    if (cooperative)
        CHECK_NATIVE(cuLaunchCooperativeKernel, function, blocks, 1, 1, 64, 1, 1, 0, stream,
                     arguments);
    else
        CHECK_NATIVE(cuLaunchKernel, function, blocks, 1, 1, 64, 1, 1, 0, stream, arguments,
                     nullptr);
}

void GraphKernels::spin(CUstream stream, uint64_t nanoseconds) const {
    void* arguments[] = {&nanoseconds};
    CHECK_NATIVE(cuLaunchKernel, spinner_, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr);
}

void GraphKernels::clear(CUstream stream, uint32_t place) const {
    CHECK_NATIVE(cuMemsetD32Async, at(place), 0, kMaxSms, stream);
}

void GraphKernels::copy(CUstream stream, uint32_t from, uint32_t to) const {
    CHECK_NATIVE(cuMemcpyDtoDAsync, at(to), at(from), kMaxSms * 4, stream);
}

SmIds GraphKernels::take_sms(uint32_t place) const {
    std::vector<uint32_t> counts(kMaxSms);
    const Current current(primary);
    CHECK_NATIVE(cuCtxSynchronize);
    CHECK_NATIVE(cuMemcpyDtoH, counts.data(), at(place), counts.size() * 4);
    CHECK_NATIVE(cuMemsetD32, at(place), 0, kMaxSms);
    SmIds found;
    for (uint32_t sm = 0; sm < kMaxSms; sm++) {
        if (counts[sm] != 0)
            found.push_back(sm);
    }
    return found;
}

gcx_result GraphKernels::redirect(gcx_graph graph, uint32_t node, uint32_t place,
                                  uint32_t blocks) const {
    struct {
        CUdeviceptr counts;
        uint32_t max_sms = kMaxSms;
        uint32_t nanoseconds = 1'000;
    } const arguments{at(place)};
    gcx_kernel_params params = GCX_KERNEL_PARAMS_INIT;
    params.grid[0] = blocks;
    params.block[0] = 64;
    params.grid[1] = params.grid[2] = params.block[1] = params.block[2] = 1;
    params.arguments = &arguments;
    params.argument_bytes = sizeof arguments;
    return gcx_graph_set_kernel(graph, node, &params);
}

CUgraph capture_fork(const GraphKernels& kernels, CUstream one, CUstream two,
                     GraphKernels::From from) {
    CUevent fork = nullptr;
    CUevent join = nullptr;
    const Current current(kernels.primary);
    CHECK_NATIVE(cuEventCreate, &fork, CU_EVENT_DISABLE_TIMING);
    CHECK_NATIVE(cuEventCreate, &join, CU_EVENT_DISABLE_TIMING);
    CUgraph captured = capture(one, [&] {
        kernels.clear(one, 4);
        CHECK_NATIVE(cuEventRecord, fork, one);
        CHECK_NATIVE(cuStreamWaitEvent, two, fork, 0);
        kernels.probe(one, from, 0);
        kernels.probe(two, from, 1);
        kernels.clear(two, 5);
        CHECK_NATIVE(cuEventRecord, join, two);
        CHECK_NATIVE(cuStreamWaitEvent, one, join, 0);
    });
    CHECK_NATIVE(cuEventDestroy, fork);
    CHECK_NATIVE(cuEventDestroy, join);
    return captured;
}

gcx_graph graph_of(CUgraph captured, const gcx_graph_params* params) {
    gcx_graph graph = nullptr;
    CHECK_OK(gcx_graph_create(captured, params, &graph));
    CHECK_NATIVE(cuGraphDestroy, captured);
    return graph;
}

std::vector<gcx_graph_node> nodes_of(gcx_graph graph) {
    uint32_t count = 0;
    gcx_graph_get_nodes(graph, nullptr, 0, &count);
    std::vector<gcx_graph_node> nodes(count);
    CHECK_OK(gcx_graph_get_nodes(graph, nodes.data(), count, &count));
    return nodes;
}

gcx_graph_info info_of(gcx_graph graph) {
    gcx_graph_info info = GCX_GRAPH_INFO_INIT;
    CHECK_OK(gcx_graph_get_info(graph, &info));
    return info;
}

} // namespace support

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
    CHECK_EQ(NATIVE(cuDevicePrimaryCtxRetain)(&primary, 0), CUDA_SUCCESS);
    CHECK_EQ(NATIVE(cuCtxPushCurrent)(primary), CUDA_SUCCESS);
    CHECK_EQ(NATIVE(cuModuleLoadData)(&module_, kGraphPtx), CUDA_SUCCESS);
    CHECK_EQ(NATIVE(cuModuleGetFunction)(&module_probe, module_, "gcx_probe"), CUDA_SUCCESS);
    CHECK_EQ(NATIVE(cuModuleGetFunction)(&spinner_, module_, "gcx_spin"), CUDA_SUCCESS);
    CHECK_EQ(
        NATIVE(cuLibraryLoadData)(&library_, kGraphPtx, nullptr, nullptr, 0, nullptr, nullptr, 0),
        CUDA_SUCCESS);
    CUkernel kernel = nullptr;
    CHECK_EQ(NATIVE(cuLibraryGetKernel)(&kernel, library_, "gcx_probe"), CUDA_SUCCESS);
    CHECK_EQ(NATIVE(cuKernelGetFunction)(&library_probe, kernel), CUDA_SUCCESS);
    CHECK_EQ(NATIVE(cuMemAlloc)(&counts_, std::size_t{kPlaces} * kMaxSms * 4), CUDA_SUCCESS);
    CHECK_EQ(NATIVE(cuMemsetD32)(counts_, 0, std::size_t{kPlaces} * kMaxSms), CUDA_SUCCESS);
    CHECK_EQ(NATIVE(cuStreamCreate)(&plain, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    CUcontext popped = nullptr;
    CHECK_EQ(NATIVE(cuCtxPopCurrent)(&popped), CUDA_SUCCESS);
}

GraphKernels::~GraphKernels() {
    CHECK_EQ(NATIVE(cuCtxPushCurrent)(primary), CUDA_SUCCESS);
    CHECK_EQ(NATIVE(cuStreamDestroy)(plain), CUDA_SUCCESS);
    CHECK_EQ(NATIVE(cuMemFree)(counts_), CUDA_SUCCESS);
    CHECK_EQ(NATIVE(cuLibraryUnload)(library_), CUDA_SUCCESS);
    CHECK_EQ(NATIVE(cuModuleUnload)(module_), CUDA_SUCCESS);
    CUcontext popped = nullptr;
    CHECK_EQ(NATIVE(cuCtxPopCurrent)(&popped), CUDA_SUCCESS);
    CHECK_EQ(NATIVE(cuDevicePrimaryCtxRelease)(0), CUDA_SUCCESS);
}

void GraphKernels::probe(CUstream stream, From from, uint32_t place, uint32_t nanoseconds,
                         bool cooperative, unsigned blocks) const {
    CUdeviceptr counts = at(place);
    uint32_t max_sms = kMaxSms;
    void* arguments[] = {&counts, &max_sms, &nanoseconds};
    CUfunction function = from == From::library ? library_probe : module_probe;
    if (cooperative)
        CHECK_EQ(NATIVE(cuLaunchCooperativeKernel)(function, blocks, 1, 1, 64, 1, 1, 0, stream,
                                                   arguments),
                 CUDA_SUCCESS);
    else
        CHECK_EQ(
            NATIVE(cuLaunchKernel)(function, blocks, 1, 1, 64, 1, 1, 0, stream, arguments, nullptr),
            CUDA_SUCCESS);
}

void GraphKernels::spin(CUstream stream, uint64_t nanoseconds) const {
    void* arguments[] = {&nanoseconds};
    CHECK_EQ(NATIVE(cuLaunchKernel)(spinner_, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr),
             CUDA_SUCCESS);
}

void GraphKernels::clear(CUstream stream, uint32_t place) const {
    CHECK_EQ(NATIVE(cuMemsetD32Async)(at(place), 0, kMaxSms, stream), CUDA_SUCCESS);
}

void GraphKernels::copy(CUstream stream, uint32_t from, uint32_t to) const {
    CHECK_EQ(NATIVE(cuMemcpyDtoDAsync)(at(to), at(from), kMaxSms * 4, stream), CUDA_SUCCESS);
}

SmIds GraphKernels::take_sms(uint32_t place) const {
    std::vector<uint32_t> counts(kMaxSms);
    CHECK_EQ(NATIVE(cuCtxPushCurrent)(primary), CUDA_SUCCESS);
    CHECK_EQ(NATIVE(cuCtxSynchronize)(), CUDA_SUCCESS);
    CHECK_EQ(NATIVE(cuMemcpyDtoH)(counts.data(), at(place), counts.size() * 4), CUDA_SUCCESS);
    CHECK_EQ(NATIVE(cuMemsetD32)(at(place), 0, kMaxSms), CUDA_SUCCESS);
    CUcontext popped = nullptr;
    CHECK_EQ(NATIVE(cuCtxPopCurrent)(&popped), CUDA_SUCCESS);
    SmIds found;
    for (uint32_t sm = 0; sm < kMaxSms; sm++) {
        if (counts[sm] != 0)
            found.push_back(sm);
    }
    return found;
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

#include "graph_work.hpp"

#include <functional>
#include <numeric>

namespace graph_work {
namespace {

#define OK(call) CHECK_EQ(call, CUDA_SUCCESS)

// Each kernel begins with the note: the block's first thread adds one to seen[%smid].
constexpr char kKernels[] = R"(
.version 7.8
.target sm_90
.address_size 64

.visible .entry scale(.param .u64 numbers, .param .u64 seen, .param .u32 count,
                      .param .u32 factor, .param .u32 more)
{
    .reg .pred %p<3>;
    .reg .b32  %r<16>;
    .reg .b64  %rd<8>;
    ld.param.u64 %rd1, [seen];
    mov.u32      %r1, %tid.x;
    setp.ne.u32  %p1, %r1, 0;
    @%p1 bra     NOTED;
    mov.u32      %r2, %smid;
    mul.wide.u32 %rd2, %r2, 4;
    add.u64      %rd3, %rd1, %rd2;
    red.global.add.u32 [%rd3], 1;
NOTED:
    ld.param.u64 %rd4, [numbers];
    ld.param.u32 %r3, [count];
    ld.param.u32 %r4, [factor];
    ld.param.u32 %r5, [more];
    mov.u32      %r6, %ctaid.x;
    mov.u32      %r7, %ntid.x;
    mov.u32      %r8, %nctaid.x;
    mad.lo.u32   %r9, %r6, %r7, %r1;
    mul.lo.u32   %r10, %r7, %r8;
NEXT:
    setp.ge.u32  %p2, %r9, %r3;
    @%p2 bra     DONE;
    mul.wide.u32 %rd5, %r9, 4;
    add.u64      %rd6, %rd4, %rd5;
    ld.global.u32 %r11, [%rd6];
    mad.lo.u32   %r12, %r11, %r4, %r5;
    st.global.u32 [%rd6], %r12;
    add.u32      %r9, %r9, %r10;
    bra          NEXT;
DONE:
    ret;
}

.visible .entry fill(.param .u64 seen, .param .u64 duration)
{
    .reg .pred %p<3>;
    .reg .b32  %r<4>;
    .reg .b64  %rd<9>;
    ld.param.u64 %rd1, [seen];
    ld.param.u64 %rd2, [duration];
    mov.u32      %r1, %tid.x;
    setp.ne.u32  %p1, %r1, 0;
    @%p1 bra     NOTED;
    mov.u32      %r2, %smid;
    mul.wide.u32 %rd3, %r2, 4;
    add.u64      %rd4, %rd1, %rd3;
    red.global.add.u32 [%rd4], 1;
NOTED:
    mov.u64      %rd5, %globaltimer;
MORE:
    mov.u64      %rd6, %globaltimer;
    sub.s64      %rd7, %rd6, %rd5;
    setp.lt.u64  %p2, %rd7, %rd2;
    @%p2 bra     MORE;
    ret;
}

.visible .entry clusters(.param .u64 seen, .param .u64 size)
{
    .reg .pred %p<2>;
    .reg .b32  %r<4>;
    .reg .b64  %rd<6>;
    ld.param.u64 %rd1, [seen];
    ld.param.u64 %rd2, [size];
    mov.u32      %r1, %tid.x;
    setp.ne.u32  %p1, %r1, 0;
    @%p1 bra     NOTED;
    mov.u32      %r2, %smid;
    mul.wide.u32 %rd3, %r2, 4;
    add.u64      %rd4, %rd1, %rd3;
    red.global.add.u32 [%rd4], 1;
    mov.u32      %r3, %cluster_nctaid.x;
    st.global.u32 [%rd2], %r3;
NOTED:
    ret;
}

.visible .entry together(.param .u64 counter, .param .u64 seen)
{
    .reg .pred %p<3>;
    .reg .b32  %r<10>;
    .reg .b64  %rd<6>;
    ld.param.u64 %rd1, [counter];
    ld.param.u64 %rd2, [seen];
    mov.u32      %r1, %tid.x;
    setp.ne.u32  %p1, %r1, 0;
    @%p1 bra     DONE;
    mov.u32      %r2, %smid;
    mul.wide.u32 %rd3, %r2, 4;
    add.u64      %rd4, %rd2, %rd3;
    red.global.add.u32 [%rd4], 1;
    mov.u32      %r3, %nctaid.x;
    atom.global.add.u32 %r4, [%rd1], 1;
    div.u32      %r5, %r4, %r3;
    add.u32      %r6, %r5, 1;
    mul.lo.u32   %r7, %r6, %r3;
WAIT:
    ld.volatile.global.u32 %r8, [%rd1];
    setp.lt.u32  %p2, %r8, %r7;
    @%p2 bra     WAIT;
DONE:
    ret;
}
)";

CUfunction of_library(CUlibrary library, const char* name) {
    CUkernel kernel = nullptr;
    CUfunction function = nullptr;
    OK(raw::cuLibraryGetKernel(&kernel, library, name));
    OK(raw::cuKernelGetFunction(&function, kernel));
    return function;
}

CUfunction of_module(CUmodule module, const char* name) {
    CUfunction function = nullptr;
    OK(raw::cuModuleGetFunction(&function, module, name));
    return function;
}

CUdeviceptr allocate(std::size_t numbers) {
    CUdeviceptr memory = 0;
    OK(raw::cuMemAlloc(&memory, numbers * 4));
    OK(raw::cuMemsetD32(memory, 0, numbers));
    return memory;
}

void count_call(void* counter) {
    static_cast<std::atomic<int>*>(counter)->fetch_add(1);
}

CUresult launch_clusters(CUfunction clusters, CUstream stream, CUdeviceptr seen, CUdeviceptr size) {
    CUlaunchAttribute attribute{};
    attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attribute.value.clusterDim.x = 4;
    attribute.value.clusterDim.y = attribute.value.clusterDim.z = 1;
    CUlaunchConfig config{};
    config.gridDimX = 16;
    config.gridDimY = config.gridDimZ = 1;
    config.blockDimX = 128;
    config.blockDimY = config.blockDimZ = 1;
    config.hStream = stream;
    config.attrs = &attribute;
    config.numAttrs = 1;
    void* arguments[] = {&seen, &size};
    return raw::cuLaunchKernelEx(&config, clusters, arguments, nullptr);
}

} // namespace

Kernels::Kernels() {
    OK(raw::cuLibraryLoadData(&library, kKernels, nullptr, nullptr, 0, nullptr, nullptr, 0));
    OK(raw::cuModuleLoadData(&module, kKernels));
    scale = of_library(library, "scale");
    fill = of_library(library, "fill");
    together = of_library(library, "together");
    clusters = of_library(library, "clusters");
    module_scale = of_module(module, "scale");
    module_fill = of_module(module, "fill");
}

Kernels::~Kernels() {
    OK(raw::cuModuleUnload(module));
    OK(raw::cuLibraryUnload(library));
}

CUresult launch_fill(CUfunction fill, CUstream stream, unsigned blocks, CUdeviceptr seen,
                     uint64_t nanoseconds) {
    void* arguments[] = {&seen, &nanoseconds};
    return raw::cuLaunchKernel(fill, blocks, 1, 1, 1024, 1, 1, 0, stream, arguments, nullptr);
}

CUresult launch_scale(CUfunction scale, CUstream stream, unsigned blocks,
                      const ScaleArguments& values) {
    ScaleArguments a = values;
    void* arguments[] = {&a.numbers, &a.seen, &a.count, &a.factor, &a.more};
    return raw::cuLaunchKernel(scale, blocks, 1, 1, 256, 1, 1, 0, stream, arguments, nullptr);
}

CUresult launch_together(CUfunction together, CUstream stream, unsigned blocks, unsigned threads,
                         CUdeviceptr counter, CUdeviceptr seen) {
    void* arguments[] = {&counter, &seen};
    return raw::cuLaunchCooperativeKernel(together, blocks, 1, 1, threads, 1, 1, 0, stream,
                                          arguments);
}

CUgraphExec instantiate(CUgraph graph) {
    CUgraphExec exec = nullptr;
    OK(raw::cuGraphInstantiate(&exec, graph, 0));
    return exec;
}

Template::Template(const Kernels& kernels) : kernels_(kernels) {
    left_numbers_ = allocate(kNumbers);
    right_numbers_ = allocate(kNumbers);
    copy_ = allocate(kNumbers);
    seen_ = allocate(Count * kMaxSms);
    counter_ = allocate(1);
    cluster_size_ = allocate(1);
    OK(raw::cuStreamCreate(&plain, CU_STREAM_NON_BLOCKING));
    OK(raw::cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
    OK(raw::cuEventCreate(&fork_, CU_EVENT_DISABLE_TIMING));
    OK(raw::cuEventCreate(&join_, CU_EVENT_DISABLE_TIMING));
    graph = capture(plain, second);
}

Template::~Template() {
    OK(raw::cuCtxSynchronize());
    OK(raw::cuGraphDestroy(graph));
    OK(raw::cuEventDestroy(fork_));
    OK(raw::cuEventDestroy(join_));
    OK(raw::cuStreamDestroy(plain));
    OK(raw::cuStreamDestroy(second));
    for (const CUdeviceptr memory :
         {left_numbers_, right_numbers_, copy_, seen_, counter_, cluster_size_})
        OK(raw::cuMemFree(memory));
}

ScaleArguments Template::arguments(Noting node) const {
    const CUdeviceptr seen = seen_at(node);
    switch (node) {
    case First:
        return {left_numbers_, seen, kNumbers, 3, 1};
    case Left:
        return {left_numbers_, seen, kNumbers, 2, 1};
    case Right:
        return {right_numbers_, seen, kNumbers, 3, 2};
    case Joined:
        return {left_numbers_, seen, kNumbers, 5, 3};
    default:
        return {left_numbers_, seen, kNumbers, 7, 2};
    }
}

namespace {

// Adds a graph as the capture's next node. Launching an executable there would break the capture.
void add_child(CUstream capturing, CUgraph child) {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    cuuint64_t id = 0;
    CUgraph graph = nullptr;
    const CUgraphNode* before = nullptr;
    std::size_t count = 0;
    OK(raw::cuStreamGetCaptureInfo(capturing, &status, &id, &graph, &before, &count));
    CUgraphNode node = nullptr;
    OK(raw::cuGraphAddChildGraphNode(&node, graph, before, count, child));
    OK(raw::cuStreamUpdateCaptureDependencies(capturing, &node, nullptr, 1,
                                              CU_STREAM_SET_CAPTURE_DEPENDENCIES));
}

} // namespace

// left: 1, 4, 9, then 48, which is copied, then 338. right: 5, then 17.
CUgraph Template::capture(CUstream origin, CUstream branch, uint32_t joined_more) {
    ScaleArguments joined = arguments(Joined);
    joined.more = joined_more;
    CUgraph captured = nullptr;
    OK(raw::cuStreamBeginCapture(origin, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    OK(launch_scale(kernels_.module_scale, origin, kScaleGrids[4], arguments(Child)));
    OK(raw::cuStreamEndCapture(origin, &captured));
    const CUgraph child = captured;
    OK(raw::cuStreamBeginCapture(origin, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    OK(raw::cuMemsetD32Async(left_numbers_, 1, kNumbers, origin));
    OK(launch_scale(kernels_.scale, origin, kScaleGrids[0], arguments(First)));
    OK(raw::cuEventRecord(fork_, origin));
    OK(raw::cuStreamWaitEvent(branch, fork_, 0));
    OK(raw::cuMemsetD32Async(right_numbers_, 5, kNumbers, branch));
    OK(launch_scale(kernels_.module_scale, branch, kScaleGrids[2], arguments(Right)));
    OK(raw::cuEventRecord(join_, branch));
    OK(launch_scale(kernels_.scale, origin, kScaleGrids[1], arguments(Left)));
    OK(raw::cuStreamWaitEvent(origin, join_, 0));
    OK(launch_scale(kernels_.module_scale, origin, kScaleGrids[3], joined));
    OK(raw::cuMemcpyDtoDAsync(copy_, left_numbers_, kNumbers * 4, origin));
    OK(raw::cuLaunchHostFunc(origin, count_call, &host_calls_));
    add_child(origin, child);
    OK(launch_clusters(kernels_.clusters, origin, seen_at(Cluster), cluster_size_));
    OK(launch_together(kernels_.together, origin, 16, 64, counter_, seen_at(Together)));
    OK(launch_fill(kernels_.fill, origin, 132 * 8, seen_at(Fill), 20'000));
    OK(raw::cuStreamEndCapture(origin, &captured));
    OK(raw::cuGraphDestroy(child));
    return captured;
}

void Template::forget() {
    OK(raw::cuCtxSynchronize());
    for (const CUdeviceptr numbers : {left_numbers_, right_numbers_, copy_})
        OK(raw::cuMemsetD32(numbers, 0, kNumbers));
    OK(raw::cuMemsetD32(seen_, 0, std::size_t{Count} * kMaxSms));
    OK(raw::cuMemsetD32(cluster_size_, 0, 1));
    OK(raw::cuCtxSynchronize());
    host_calls_ = 0;
}

SmIds Template::seen(Noting node) const {
    std::vector<uint32_t> counts(kMaxSms);
    OK(raw::cuMemcpyDtoH(counts.data(), seen_at(node), counts.size() * 4));
    SmIds ids;
    for (uint32_t sm = 0; sm < kMaxSms; sm++)
        if (counts[sm] != 0)
            ids.push_back(sm);
    return ids;
}

std::vector<SmIds> Template::all_seen() const {
    std::vector<SmIds> all;
    for (std::size_t node = 0; node < Count; node++)
        all.push_back(seen(static_cast<Noting>(node)));
    return all;
}

// Returns the number that all elements equal, or 0xffffffff if they differ.
uint32_t Template::number(CUdeviceptr numbers, uint32_t count) const {
    std::vector<uint32_t> host(count);
    OK(raw::cuMemcpyDtoH(host.data(), numbers, host.size() * 4));
    return std::all_of(host.begin(), host.end(), [&](uint32_t n) { return n == host[0]; })
               ? host[0]
               : 0xffffffffU;
}

void Template::check_run(const SmIds& sms, uint32_t left_number, uint32_t copied_number) const {
    CHECK_EQ(left(), left_number);
    CHECK_EQ(copied(), copied_number);
    CHECK_EQ(right(), 17U);
    CHECK_EQ(cluster_size(), 4U);
    CHECK_EQ(host_calls(), 1);
    const std::vector<SmIds> all = all_seen();
    for (std::size_t node = 0; node < Count; node++) {
        CHECK(!all[node].empty());
        if (!CHECK(std::includes(sms.begin(), sms.end(), all[node].begin(), all[node].end())))
            std::printf("   kernel %zu ran on %s, the partition is %s\n", node,
                        fixture::ranges(all[node]).c_str(), fixture::ranges(sms).c_str());
    }
    if (!CHECK(all[Fill] == sms))
        std::printf("   filled %s of %s\n", fixture::ranges(all[Fill]).c_str(),
                    fixture::ranges(sms).c_str());
}

std::vector<gcx_graph_node> nodes_of(gcx_graph graph) {
    gcx_graph_info info = GCX_GRAPH_INFO_INIT;
    CHECK_OK(gcx_graph_get_info(graph, &info));
    std::vector<gcx_graph_node> nodes(info.node_count);
    uint32_t count = 0;
    CHECK_OK(gcx_graph_get_nodes(graph, nodes.data(), info.node_count, &count));
    CHECK_EQ(count, info.node_count);
    return nodes;
}

uint32_t number_of(gcx_graph graph, const std::string& name, uint32_t grid) {
    const std::vector<gcx_graph_node> nodes = nodes_of(graph);
    const auto found = std::find_if(nodes.begin(), nodes.end(), [&](const gcx_graph_node& node) {
        return node.kind == GCX_GRAPH_NODE_KERNEL && name == node.name && node.grid[0] == grid;
    });
    CHECK(found != nodes.end());
    return static_cast<uint32_t>(found - nodes.begin());
}

gcx_graph_node node_of(gcx_graph graph, const std::string& name, uint32_t grid) {
    const std::vector<gcx_graph_node> nodes = nodes_of(graph);
    const uint32_t number = number_of(graph, name, grid);
    return number < nodes.size() ? nodes[number] : gcx_graph_node{};
}

} // namespace graph_work

#include "support.hpp"

#include <dlfcn.h>

#include <bit>
#include <utility>

namespace sim_test {

const char* const kPtx = R"(
.version 8.0
.target sm_80
.address_size 64
.global .align 4 .b32 a_global[3];
.visible .entry gcx_probe(
    .param .u64 gcx_probe_param_0, // counts
    .param .u32 gcx_probe_param_1,
    .param .u32 gcx_probe_param_2
)
{ ret; }
.visible .entry gcx_spin(.param .u64 gcx_spin_param_0)
{ ret; }
.visible .entry gcx_store(.param .u64 to, .param .u32 value, .param .u64 after_ns)
{ ret; }
.visible .entry gcx_load(.param .u64 to, .param .u64 from)
{ ret; }
.visible .entry gcx_add(.param .u64 to, .param .u32 value)
{ ret; }
.visible .entry nothing_known(.param .u32 nothing_known_param_0)
{ ret; }
)";

namespace {

template <class Function>
Function symbol(const char* name) {
    return std::bit_cast<Function>(dlsym(RTLD_DEFAULT, name));
}

} // namespace

const LaterFunctions& later() {
    static const LaterFunctions functions{
        symbol<cu::GreenCtxStreamCreateFn>("cuGreenCtxStreamCreate"),
        symbol<cu::GreenCtxGetIdFn>("cuGreenCtxGetId"),
        symbol<cu::DevSmResourceSplitFn>("cuDevSmResourceSplit"),
        symbol<cu::StreamGetDevResourceFn>("cuStreamGetDevResource"),
    };
    return functions;
}

void run(const NamedTest& test, const char* machine) {
    const int before = check::failed.load();
    test.body();
    if (check::failed.load() != before)
        std::fprintf(stderr, "  in %s on %s\n", test.name, machine);
}

std::string name_of(CUresult result) {
    const char* name = nullptr;
    return cuGetErrorName(result, &name) == CUDA_SUCCESS
               ? name
               : "unknown " + std::to_string(static_cast<int>(result));
}

std::string join(const std::vector<unsigned>& sms) {
    std::string text;
    for (const unsigned sm : sms)
        text += (text.empty() ? "" : " ") + std::to_string(sm);
    return text;
}

std::string ranges(const std::vector<unsigned>& sms) {
    std::string text;
    for (std::size_t i = 0; i < sms.size();) {
        std::size_t end = i;
        while (end + 1 < sms.size() && sms[end + 1] == sms[end] + 1)
            end++;
        text += (text.empty() ? "" : " ") + std::to_string(sms[i]);
        if (end > i)
            text += "-" + std::to_string(sms[end]);
        i = end + 1;
    }
    return text;
}

gcx_sim_counts counts_now() {
    gcx_sim_counts counts;
    gcx_sim_get_counts(&counts);
    return counts;
}

int driver_version() {
    int version = 0;
    CHECK_OK(cuDriverGetVersion(&version));
    return version;
}

CUstream new_stream() {
    CUstream stream = nullptr;
    CHECK_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    return stream;
}

CUevent new_event() {
    CUevent event = nullptr;
    CHECK_OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    return event;
}

CUgraph new_graph() {
    CUgraph graph = nullptr;
    CHECK_OK(cuGraphCreate(&graph, 0));
    return graph;
}

void simulate(const std::string& spec) {
    CHECK_EQ(gcx_sim_configure(spec.c_str()), 0);
    CHECK_OK(cuInit(0));
}

uint64_t clock_ns() {
    return counts_now().clock_ns;
}

CUdeviceptr to_device(const void* pointer) {
    return std::bit_cast<CUdeviceptr>(pointer);
}

CUdevResource query(CUdevice device) {
    CUdevResource resource;
    CHECK_OK(cuDeviceGetDevResource(device, &resource, cu::kResourceSm));
    return resource;
}

cu::SmFields fields(const CUdevResource& resource) {
    return cu::get_fields<cu::SmFields>(resource);
}

unsigned sm_count(const CUdevResource& resource) {
    return fields(resource).sm_count;
}

int type_of(const CUdevResource& resource) {
    return static_cast<int>(resource.type);
}

Split split(const CUdevResource& input, unsigned groups, unsigned flags, unsigned min_count) {
    Split made;
    made.count = groups;
    made.groups.resize(groups);
    made.result = cuDevSmResourceSplitByCount(made.groups.data(), &made.count, &input,
                                              &made.remainder, flags, min_count);
    if (made.result == CUDA_SUCCESS)
        made.groups.resize(made.count);
    return made;
}

CUdevResourceDesc describe(std::vector<CUdevResource> resources, CUresult* result) {
    CUdevResourceDesc descriptor = nullptr;
    const CUresult code = cuDevResourceGenerateDesc(&descriptor, resources.data(),
                                                    static_cast<unsigned>(resources.size()));
    if (result != nullptr)
        *result = code;
    else
        CHECK_EQ(name_of(code), "CUDA_SUCCESS");
    return descriptor;
}

CUresult described(std::vector<CUdevResource> resources) {
    CUresult result = CUDA_SUCCESS;
    describe(std::move(resources), &result);
    return result;
}

Partition::Partition(std::vector<CUdevResource> resources) {
    CUdevResourceDesc descriptor = describe(std::move(resources), &result);
    if (result == CUDA_SUCCESS)
        result = cuGreenCtxCreate(&green, descriptor, 0, cu::kGreenCtxDefaultStream);
    if (result != CUDA_SUCCESS)
        return;
    CHECK_OK(cuCtxFromGreenCtx(&context, green));
    // This also works on drivers without cuGreenCtxStreamCreate.
    CHECK_OK(cuCtxPushCurrent_v2(context));
    CHECK_OK(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0));
    CHECK_OK(cuCtxPopCurrent_v2(nullptr));
}

Partition::Partition(Partition&& other) noexcept
    : result(other.result), green(std::exchange(other.green, nullptr)), context(other.context),
      stream(std::exchange(other.stream, nullptr)) {
}

void Partition::destroy_stream() {
    if (stream != nullptr)
        CHECK_OK(cuStreamDestroy_v2(std::exchange(stream, nullptr)));
}

CUresult Partition::destroy_context() {
    return cuGreenCtxDestroy(std::exchange(green, nullptr));
}

Partition::~Partition() {
    destroy_stream();
    if (green != nullptr)
        CHECK_OK(destroy_context());
}

Primary::Primary(CUdevice ordinal) : device(ordinal) {
    CHECK_OK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK_OK(cuCtxPushCurrent_v2(context));
    CHECK_OK(cuModuleLoadData(&module, kPtx));
    CHECK_OK(cuModuleGetFunction(&probe, module, "gcx_probe"));
    CHECK_OK(cuModuleGetFunction(&spinner, module, "gcx_spin"));
    CHECK_OK(cuModuleGetFunction(&unknown, module, "nothing_known"));
    CHECK_OK(cuModuleGetFunction(&storer, module, "gcx_store"));
    CHECK_OK(cuModuleGetFunction(&loader, module, "gcx_load"));
    CHECK_OK(cuModuleGetFunction(&adder, module, "gcx_add"));
    CHECK_OK(cuMemAlloc_v2(&counts, kMaxSms * 4));
}

Primary::~Primary() {
    CHECK_OK(cuMemFree_v2(counts));
    CHECK_OK(cuModuleUnload(module));
    CHECK_OK(cuCtxPopCurrent_v2(nullptr));
    CHECK_OK(cuDevicePrimaryCtxRelease_v2(device));
}

std::vector<unsigned> Primary::sms(CUstream stream) {
    std::vector<uint32_t> host(kMaxSms);
    uint32_t max_sms = kMaxSms;
    uint32_t spin_ns = 1000;
    void* arguments[] = {&counts, &max_sms, &spin_ns};
    CHECK_OK(cuMemsetD32Async(counts, 0, kMaxSms, stream));
    CHECK_OK(cuLaunchKernel(probe, 2048, 1, 1, 64, 1, 1, 0, stream, arguments, nullptr));
    CHECK_OK(cuMemcpyDtoHAsync_v2(host.data(), counts, kMaxSms * 4, stream));
    CHECK_OK(cuStreamSynchronize(stream));
    std::vector<unsigned> seen;
    for (unsigned sm = 0; sm < kMaxSms; sm++)
        if (host[sm] != 0)
            seen.push_back(sm);
    return seen;
}

CUresult Primary::spin(CUstream stream, uint64_t nanoseconds) {
    void* arguments[] = {&nanoseconds};
    return cuLaunchKernel(spinner, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr);
}

CUresult Primary::store(CUstream stream, CUdeviceptr to, uint32_t value, uint64_t after_ns) {
    void* arguments[] = {&to, &value, &after_ns};
    return cuLaunchKernel(storer, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr);
}

CUresult Primary::load(CUstream stream, CUdeviceptr to, CUdeviceptr from) {
    void* arguments[] = {&to, &from};
    return cuLaunchKernel(loader, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr);
}

CUresult Primary::add(CUstream stream, CUdeviceptr to, uint32_t value) {
    void* arguments[] = {&to, &value};
    return cuLaunchKernel(adder, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr);
}

namespace {

CUlaunchConfig cluster_config(CUlaunchAttribute& attribute, CUstream stream, unsigned cluster,
                              unsigned threads) {
    attribute = {};
    attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attribute.value.clusterDim.x = cluster;
    attribute.value.clusterDim.y = 1;
    attribute.value.clusterDim.z = 1;
    CUlaunchConfig config{};
    config.gridDimX = cluster * 4;
    config.gridDimY = config.gridDimZ = 1;
    config.blockDimX = threads;
    config.blockDimY = config.blockDimZ = 1;
    config.hStream = stream;
    config.attrs = &attribute;
    config.numAttrs = 1;
    return config;
}

} // namespace

CUresult Primary::launch_cluster(CUstream stream, unsigned cluster) {
    CUlaunchAttribute attribute;
    const CUlaunchConfig config = cluster_config(attribute, stream, cluster, 64);
    uint32_t value = 0;
    void* arguments[] = {&value};
    return cuLaunchKernelEx(&config, unknown, arguments, nullptr);
}

int Primary::max_cluster(CUstream stream, bool non_portable, unsigned threads) {
    CHECK_OK(cuFuncSetAttribute(unknown, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED,
                                non_portable ? 1 : 0));
    CUlaunchAttribute attribute;
    CUlaunchConfig config = cluster_config(attribute, stream, 1, threads);
    config.numAttrs = 0;
    int size = -1;
    CHECK_OK(cuOccupancyMaxPotentialClusterSize(&size, unknown, &config));
    return size;
}

int Primary::active_clusters(CUstream stream, unsigned cluster, unsigned threads) {
    CHECK_OK(cuFuncSetAttribute(unknown, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
    CUlaunchAttribute attribute;
    const CUlaunchConfig config = cluster_config(attribute, stream, cluster, threads);
    int clusters = -1;
    CHECK_OK(cuOccupancyMaxActiveClusters(&clusters, unknown, &config));
    return clusters;
}

} // namespace sim_test

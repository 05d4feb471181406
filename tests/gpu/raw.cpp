#include "raw.hpp"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

namespace raw {

#define RAW_DEFINE(name, symbol) decltype(&::symbol) name = nullptr;
RAW_FUNCTIONS(RAW_DEFINE)
#undef RAW_DEFINE

namespace {

constexpr char kKernels[] = R"(
.version 7.8
.target sm_90
.address_size 64

.visible .entry spin(.param .u64 duration)
{
    .reg .pred %p<2>;
    .reg .b64  %rd<5>;
    ld.param.u64 %rd1, [duration];
    mov.u64      %rd2, %globaltimer;
MORE:
    mov.u64      %rd3, %globaltimer;
    sub.s64      %rd4, %rd3, %rd2;
    setp.lt.u64  %p1, %rd4, %rd1;
    @%p1 bra     MORE;
    ret;
}

.visible .entry nothing()
{
    ret;
}
)";

CUcontext the_primary = nullptr;
CUfunction spin = nullptr;
CUfunction nothing = nullptr;

void must(CUresult result, const char* what) {
    if (result == CUDA_SUCCESS)
        return;
    std::fprintf(stderr, "%s: %s\n", what, name_of(result));
    std::exit(1);
}

CUlaunchConfig cluster_config(CUstream stream, unsigned size, CUlaunchAttribute& attribute) {
    attribute = {};
    attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attribute.value.clusterDim.x = size;
    attribute.value.clusterDim.y = 1;
    attribute.value.clusterDim.z = 1;
    CUlaunchConfig config{};
    config.gridDimX = size;
    config.gridDimY = config.gridDimZ = 1;
    config.blockDimX = 1024;
    config.blockDimY = config.blockDimZ = 1;
    config.hStream = stream;
    config.attrs = &attribute;
    config.numAttrs = 1;
    return config;
}

} // namespace

void load() {
    void* const library = dlopen("libcuda.so.1", RTLD_NOW);
    if (library == nullptr) {
        std::fprintf(stderr, "these tests need a GPU: %s\n", dlerror());
        std::exit(1);
    }
#define RAW_LOAD(name, symbol) name = reinterpret_cast<decltype(name)>(dlsym(library, #symbol));
    RAW_FUNCTIONS(RAW_LOAD)
#undef RAW_LOAD
    must(cuInit(0), "cuInit");
    must(cuDevicePrimaryCtxRetain(&the_primary, 0), "cuDevicePrimaryCtxRetain");
    CUlibrary kernels = nullptr;
    must(cuLibraryLoadData(&kernels, kKernels, nullptr, nullptr, 0, nullptr, nullptr, 0),
         "cuLibraryLoadData");
    const auto function = [&](const char* name) {
        CUkernel kernel = nullptr;
        must(cuLibraryGetKernel(&kernel, kernels, name), name);
        CUcontext old = nullptr;
        must(cuCtxPushCurrent(the_primary), "cuCtxPushCurrent");
        CUfunction result = nullptr;
        must(cuKernelGetFunction(&result, kernel), name);
        must(cuFuncSetAttribute(result, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1),
             name);
        must(cuCtxPopCurrent(&old), "cuCtxPopCurrent");
        return result;
    };
    spin = function("spin");
    nothing = function("nothing");
}

CUcontext primary() {
    return the_primary;
}

const char* name_of(CUresult result) {
    const char* name = nullptr;
    cuGetErrorName(result, &name);
    return name != nullptr ? name : "an unknown result";
}

CUresult launch_spin(CUstream stream, uint64_t nanoseconds) {
    void* arguments[] = {&nanoseconds};
    return cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr);
}

int max_cluster_size(CUstream stream) {
    CUlaunchAttribute attribute;
    CUlaunchConfig config = cluster_config(stream, 1, attribute);
    config.numAttrs = 0;
    int size = 0;
    must(cuOccupancyMaxPotentialClusterSize(&size, nothing, &config),
         "cuOccupancyMaxPotentialClusterSize");
    return size;
}

int active_clusters(CUstream stream, unsigned size) {
    CUlaunchAttribute attribute;
    const CUlaunchConfig config = cluster_config(stream, size, attribute);
    int count = 0;
    if (cuOccupancyMaxActiveClusters(&count, nothing, &config) != CUDA_SUCCESS)
        return 0;
    return count;
}

CUresult launch_cluster(CUstream stream, unsigned size) {
    CUlaunchAttribute attribute;
    const CUlaunchConfig config = cluster_config(stream, size, attribute);
    const CUresult launched = cuLaunchKernelEx(&config, nothing, nullptr, nullptr);
    return launched != CUDA_SUCCESS ? launched : cuStreamSynchronize(stream);
}

} // namespace raw

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

.visible .entry note(.param .u64 notes, .param .u64 count, .param .u32 tag,
                     .param .u64 duration, .param .u64 data)
{
    .reg .pred %p<2>;
    .reg .b32  %r<5>;
    .reg .b64  %rd<14>;
    mov.u64        %rd1, %globaltimer;
    mov.u32        %r1, %smid;
    mov.u32        %r2, %ctaid.x;
    ld.param.u64   %rd2, [data];
    mul.wide.u32   %rd3, %r2, 8;
    add.s64        %rd3, %rd2, %rd3;
    ld.global.u64  %rd4, [%rd3];
    ld.param.u64   %rd5, [duration];
MORE:
    mov.u64        %rd6, %globaltimer;
    sub.s64        %rd7, %rd6, %rd1;
    setp.lt.u64    %p1, %rd7, %rd5;
    @%p1 bra       MORE;
    mad.lo.s64     %rd4, %rd4, 3, 1;
    st.global.u64  [%rd3], %rd4;
    ld.param.u64   %rd8, [count];
    atom.global.add.u32 %r3, [%rd8], 1;
    ld.param.u64   %rd9, [notes];
    mul.wide.u32   %rd10, %r3, 24;
    add.s64        %rd9, %rd9, %rd10;
    ld.param.u32   %r4, [tag];
    st.global.u32  [%rd9+16], %r1;
    st.global.u32  [%rd9+20], %r4;
    st.global.u64  [%rd9], %rd1;
    mov.u64        %rd11, %globaltimer;
    st.global.u64  [%rd9+8], %rd11;
    ret;
}

.visible .entry read(.param .u64 words, .param .u32 count)
{
    .reg .pred %p<2>;
    .reg .b32  %r<9>;
    .reg .b64  %rd<4>;
    ld.param.u64   %rd1, [words];
    ld.param.u32   %r1, [count];
    mov.u32        %r2, %ctaid.x;
    mov.u32        %r3, %ntid.x;
    mov.u32        %r4, %tid.x;
    mad.lo.u32     %r5, %r2, %r3, %r4;
    mov.u32        %r6, %nctaid.x;
    mul.lo.u32     %r6, %r6, %r3;
    mov.u32        %r7, 0;
MORE:
    setp.ge.u32    %p1, %r5, %r1;
    @%p1 bra       DONE;
    mul.wide.u32   %rd2, %r5, 4;
    add.s64        %rd3, %rd1, %rd2;
    ld.global.u32  %r8, [%rd3];
    xor.b32        %r7, %r7, %r8;
    add.u32        %r5, %r5, %r6;
    bra            MORE;
DONE:
    setp.ne.u32    %p1, %r7, 1540483477;
    @%p1 bra       END;
    st.global.u32  [%rd1], %r7;
END:
    ret;
}

.visible .entry nothing()
{
    ret;
}
)";

CUcontext the_primary = nullptr;
CUfunction spin = nullptr;
CUfunction note = nullptr;
CUfunction nothing = nullptr;
CUkernel nothing_kernel = nullptr;
// Launched as they are, kernels use the device of their stream.
CUkernel spin_kernel = nullptr;
CUkernel read_kernel = nullptr;

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
        const InPrimary current;
        CUfunction result = nullptr;
        must(cuKernelGetFunction(&result, kernel), name);
        must(cuFuncSetAttribute(result, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1),
             name);
        return result;
    };
    spin = function("spin");
    note = function("note");
    nothing = function("nothing");
    must(cuLibraryGetKernel(&nothing_kernel, kernels, "nothing"), "nothing");
    must(cuLibraryGetKernel(&spin_kernel, kernels, "spin"), "spin");
    must(cuLibraryGetKernel(&read_kernel, kernels, "read"), "read");
}

CUcontext primary() {
    return the_primary;
}

InPrimary::InPrimary() {
    must(cuCtxPushCurrent(the_primary), "cuCtxPushCurrent");
}

InPrimary::~InPrimary() {
    CUcontext old = nullptr;
    must(cuCtxPopCurrent(&old), "cuCtxPopCurrent");
}

const char* name_of(CUresult result) {
    const char* name = nullptr;
    cuGetErrorName(result, &name);
    return name != nullptr ? name : "an unknown result";
}

CUresult launch_spin(CUstream stream, uint64_t nanoseconds, unsigned blocks, unsigned threads) {
    void* arguments[] = {&nanoseconds};
    return cuLaunchKernel(spin, blocks, 1, 1, threads, 1, 1, 0, stream, arguments, nullptr);
}

CUresult launch_spin_anywhere(CUstream stream, uint64_t nanoseconds) {
    void* arguments[] = {&nanoseconds};
    return cuLaunchKernel(reinterpret_cast<CUfunction>(spin_kernel), 1, 1, 1, 1, 1, 1, 0, stream,
                          arguments, nullptr);
}

CUresult launch_read(CUstream stream, CUdeviceptr words, uint32_t count, unsigned blocks) {
    constexpr unsigned kThreads = 1024;
    void* arguments[] = {&words, &count};
    return cuLaunchKernel(reinterpret_cast<CUfunction>(read_kernel), blocks, 1, 1, kThreads, 1, 1,
                          0, stream, arguments, nullptr);
}

Notes::Notes(uint32_t capacity) : capacity_(capacity) {
    const InPrimary current;
    must(cuMemAlloc(&notes_, capacity * sizeof(Note)), "cuMemAlloc");
    must(cuMemAlloc(&count_, sizeof(uint32_t)), "cuMemAlloc");
    must(cuMemsetD8(count_, 0, sizeof(uint32_t)), "cuMemsetD8");
}

Notes::~Notes() {
    const InPrimary current;
    must(cuMemFree(notes_), "cuMemFree");
    must(cuMemFree(count_), "cuMemFree");
}

CUresult Notes::launch(CUstream stream, uint32_t blocks, uint32_t tag, uint64_t nanoseconds,
                       CUdeviceptr data) {
    expected_ += blocks;
    if (expected_ > capacity_) {
        std::fprintf(stderr, "no room for %u notes\n", expected_);
        std::exit(1);
    }
    void* arguments[] = {&notes_, &count_, &tag, &nanoseconds, &data};
    return cuLaunchKernel(note, blocks, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr);
}

std::vector<Note> Notes::read() const {
    const InPrimary current;
    uint32_t count = 0;
    std::vector<Note> notes(expected_);
    must(cuMemcpyDtoH(&count, count_, sizeof count), "cuMemcpyDtoH");
    must(cuMemcpyDtoH(notes.data(), notes_, notes.size() * sizeof(Note)), "cuMemcpyDtoH");
    if (count != expected_) {
        std::fprintf(stderr, "%u blocks left a note, and %u were launched\n", count, expected_);
        std::exit(1);
    }
    return notes;
}

CUfunction empty_function() {
    return nothing;
}

CUfunction empty_kernel() {
    return reinterpret_cast<CUfunction>(nothing_kernel);
}

int blocks_per_sm(CUfunction function, uint32_t threads, uint32_t shared_bytes) {
    const InPrimary current;
    int blocks = 0;
    must(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, static_cast<int>(threads),
                                                     shared_bytes),
         "cuOccupancyMaxActiveBlocksPerMultiprocessor");
    return blocks;
}

CUresult launch_cooperative(CUstream stream, uint32_t blocks, uint32_t threads,
                            uint32_t shared_bytes) {
    CUlaunchAttribute attribute{};
    attribute.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    attribute.value.cooperative = 1;
    CUlaunchConfig config{};
    config.gridDimX = blocks;
    config.gridDimY = config.gridDimZ = 1;
    config.blockDimX = threads;
    config.blockDimY = config.blockDimZ = 1;
    config.sharedMemBytes = shared_bytes;
    config.hStream = stream;
    config.attrs = &attribute;
    config.numAttrs = 1;
    const CUresult launched = cuLaunchKernelEx(&config, nothing, nullptr, nullptr);
    return launched != CUDA_SUCCESS ? launched : cuStreamSynchronize(stream);
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

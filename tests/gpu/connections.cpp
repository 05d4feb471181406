// Measures when CUDA reads CUDA_DEVICE_MAX_CONNECTIONS. A process for each moment at which a
// program could set it to 32 lets 16 streams wait: with the default of 8 connections a launch waits
// too, with 32 it doesn't. Also prints what calls answer before cuInit, by which gcx detects
// whether CUDA has started. Run gcx-gpu-connections without the variable in the environment; it
// does not use gcx.
#include "driver/cuda_api.h"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

namespace {

constexpr const char* kVariable = "CUDA_DEVICE_MAX_CONNECTIONS";
constexpr unsigned kStreams = 16;
constexpr uint64_t kLongNs = 20'000'000;
constexpr double kWaitsUs = 5'000;

constexpr char kSpin[] = R"(
.version 6.3
.target sm_70
.address_size 64
.visible .entry gcx_spin(.param .u64 nanoseconds)
{
    .reg .pred %p<2>;
    .reg .b64  %rd<5>;
    ld.param.u64 %rd1, [nanoseconds];
    mov.u64      %rd2, %globaltimer;
MORE:
    mov.u64      %rd3, %globaltimer;
    sub.s64      %rd4, %rd3, %rd2;
    setp.lt.u64  %p1, %rd4, %rd1;
    @%p1 bra     MORE;
    ret;
}
)";

void* g_library = nullptr;

template <class Function>
Function function(const char* name) {
    void* const found = g_library != nullptr ? dlsym(g_library, name) : nullptr;
    if (found == nullptr) {
        std::fprintf(stderr, "libcuda.so.1 has no %s\n", name);
        _exit(2);
    }
    return reinterpret_cast<Function>(found);
}
#define TEXT(x) #x
#define NAME(x) TEXT(x)
#define CU(name) function<decltype(&::name)>(NAME(name))

void need(CUresult result, const char* call) {
    if (result == CUDA_SUCCESS)
        return;
    std::fprintf(stderr, "%s answered %d\n", call, static_cast<int>(result));
    _exit(2);
}
#define NEED(name, ...) need(CU(name)(__VA_ARGS__), #name)

void set() {
    if (setenv(kVariable, "32", 1) != 0)
        _exit(2);
}

// Returns the latency of a small kernel, launch to end, while the streams wait. On the simulated
// driver, time is simulated.
double latency(const std::function<void(CUstream, uint64_t)>& spin) {
    std::vector<CUstream> streams(kStreams + 1);
    for (CUstream& stream : streams) {
        NEED(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
        spin(stream, 1'000);
        NEED(cuStreamSynchronize, stream);
    }
    for (unsigned i = 0; i < kStreams; i++) {
        spin(streams[i], kLongNs);
        spin(streams[i], 1'000);
    }
    CUevent begin = nullptr;
    CUevent end = nullptr;
    NEED(cuEventCreate, &begin, 0);
    NEED(cuEventCreate, &end, 0);
    const auto start = std::chrono::steady_clock::now();
    NEED(cuEventRecord, begin, streams.back());
    spin(streams.back(), 10'000);
    NEED(cuEventRecord, end, streams.back());
    NEED(cuStreamSynchronize, streams.back());
    const std::chrono::duration<double, std::micro> passed =
        std::chrono::steady_clock::now() - start;
    float device_ms = 0;
    NEED(cuEventElapsedTime, &device_ms, begin, end);
    NEED(cuCtxSynchronize, );
    return passed.count() > device_ms * 1000.0 ? passed.count() : device_ms * 1000.0;
}

struct Moment {
    const char* name;
    int step; // before which of the steps below; -1: never
};
constexpr Moment kMoments[] = {
    {"never", -1},       {"before dlopen", 0},     {"after dlopen, before cuInit", 1},
    {"after cuInit", 2}, {"after the context", 3}, {"after a first kernel", 4},
};

void run(const Moment& moment) {
    const auto step = [&](int now) {
        if (moment.step == now)
            set();
    };
    step(0);
    g_library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    CUcontext context = nullptr;
    int devices = 0;
    const int current = CU(cuCtxGetCurrent)(&context);
    const int count = CU(cuDeviceGetCount)(&devices);
    step(1);
    NEED(cuInit, 0);
    step(2);
    CUdevice device = 0;
    NEED(cuDeviceGet, &device, 0);
    NEED(cuDevicePrimaryCtxRetain, &context, device);
    NEED(cuCtxSetCurrent, context);
    step(3);
    CUmodule module = nullptr;
    CUfunction kernel = nullptr;
    NEED(cuModuleLoadData, &module, kSpin);
    NEED(cuModuleGetFunction, &kernel, module, "gcx_spin");
    const auto spin = [&](CUstream stream, uint64_t nanoseconds) {
        void* arguments[] = {&nanoseconds};
        NEED(cuLaunchKernel, kernel, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr);
    };
    spin(nullptr, 1'000);
    NEED(cuCtxSynchronize, );
    step(4);
    const double took = latency(spin);
    std::printf("%-30s %10.1f us: %s   before cuInit: cuCtxGetCurrent %d, cuDeviceGetCount %d\n",
                moment.name, took, took > kWaitsUs ? "default, 8" : "32        ", current, count);
    std::fflush(stdout);
}

} // namespace

int main() {
    if (std::getenv(kVariable) != nullptr) {
        std::fprintf(stderr, "unset %s first\n", kVariable);
        return 2;
    }
    std::printf("%s=32 set     latency of a small kernel next to %u waiting streams\n", kVariable,
                kStreams);
    std::fflush(stdout);
    int failed = 0;
    for (const Moment& moment : kMoments) {
        const pid_t child = fork();
        if (child == 0) {
            run(moment);
            _exit(0);
        }
        int status = -1;
        if (waitpid(child, &status, 0) != child || status != 0)
            failed = 1;
    }
    return failed;
}

// Measures what dynamic parallelism does to partitions on compute capability 9.x: which SMs they
// run on before and after a module with it is loaded, what gcx recognises, how large a cooperative
// launch may be, and what another process sees under MPS. dynamic_parallelism.sh builds and runs
// it.
//     dynamic_parallelism single
//     dynamic_parallelism loads FOLDER      under MPS, together with
//     dynamic_parallelism watches FOLDER    does not load the module
// Prints plain lines. Every wait has a timeout. Compiled as C++ without nvcc, it runs on the
// simulated driver, where kernels other than gcx's probe do nothing.

#include <gcx.h>

#include <cuda.h>

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#ifdef __CUDACC__
#include <cuda_runtime.h>

__global__ void child(int* out) {
    *out = 1;
}

__global__ void parent(int* out) {
#ifndef __clang__ // used to check the host's side alone
    child<<<1, 1, 0, cudaStreamFireAndForget>>>(out);
#endif
}
#endif

namespace {

using Clock = std::chrono::steady_clock;
using Ids = std::vector<uint32_t>;

constexpr unsigned kThreads = 1024;
constexpr unsigned kSharedBytes = 120 * 1024; // more than half of an SM's, so one block for each SM
constexpr uint32_t kSmNumbers = GCX_MAX_SMS;
constexpr uint64_t kBarrierNs = 200'000'000;
constexpr std::chrono::seconds kPatience(25);

// They come from a separate module: loading it loads no dynamic parallelism.
constexpr const char* kPtx = R"(
.version 6.3
.target sm_70
.address_size 64

// Each block counts its SM, arrives, and waits until all have arrived or the time is over.
.visible .entry meet(
    .param .u64 counters, // arrived, met
    .param .u64 sms,
    .param .u32 expected,
    .param .u64 nanoseconds
)
{
    .reg .pred  %p<4>;
    .reg .b32   %r<5>;
    .reg .b64   %rd<10>;

    ld.param.u64    %rd1, [counters];
    ld.param.u64    %rd2, [sms];
    ld.param.u32    %r1, [expected];
    ld.param.u64    %rd3, [nanoseconds];
    cvta.to.global.u64 %rd1, %rd1;
    cvta.to.global.u64 %rd2, %rd2;
    mov.u32         %r2, %tid.x;
    setp.ne.u32     %p1, %r2, 0;
    @%p1 bra        END;
    mov.u32         %r3, %smid;
    mul.wide.u32    %rd4, %r3, 4;
    add.s64         %rd5, %rd2, %rd4;
    red.global.add.u32 [%rd5], 1;
    mov.u64         %rd6, %globaltimer;
    red.global.add.u32 [%rd1], 1;
WAIT:
    ld.volatile.global.u32 %r4, [%rd1];
    setp.ge.u32     %p2, %r4, %r1;
    @%p2 bra        MET;
    mov.u64         %rd7, %globaltimer;
    sub.s64         %rd8, %rd7, %rd6;
    setp.lt.u64     %p3, %rd8, %rd3;
    @%p3 bra        WAIT;
    bra             END;
MET:
    red.global.add.u32 [%rd1+4], 1;
END:
    ret;
}

.visible .entry busy(
    .param .u64 nanoseconds
)
{
    .reg .pred  %p<2>;
    .reg .b64   %rd<5>;

    ld.param.u64    %rd1, [nanoseconds];
    mov.u64         %rd2, %globaltimer;
MORE:
    mov.u64         %rd3, %globaltimer;
    sub.s64         %rd4, %rd3, %rd2;
    setp.lt.u64     %p1, %rd4, %rd1;
    @%p1 bra        MORE;
    ret;
}
)";

[[noreturn]] void fail(const std::string& why) {
    std::printf("FAILED: %s\n", why.c_str());
    std::fflush(stdout);
    std::_Exit(1);
}

// Returns a function of libcuda, so that no stub of it is needed to link.
void* symbol(const char* name) {
    static void* const library = dlopen("libcuda.so.1", RTLD_NOW);
    void* const found = library == nullptr ? nullptr : dlsym(library, name);
    if (found == nullptr)
        fail(std::string("libcuda.so.1 has no ") + name);
    return found;
}
#define TEXT(x) #x
#define NAME(x) TEXT(x) // of the newest variant, which the header makes of the old name by a macro
#define DRIVER(function) reinterpret_cast<decltype(&::function)>(symbol(NAME(function)))

void must(CUresult result, const char* what) {
    if (result != CUDA_SUCCESS)
        fail(std::string(what) + " answered " + std::to_string(result));
}
#define CALL(function, ...) must(DRIVER(function)(__VA_ARGS__), #function)

void must_gcx(gcx_result result, const char* what) {
    if (result != GCX_SUCCESS)
        fail(std::string(what) + ": " + gcx_last_error_message());
}
#define GCX(call) must_gcx((call), #call)

std::string ranges(const Ids& ids) {
    std::string text;
    for (std::size_t i = 0; i < ids.size();) {
        std::size_t last = i;
        while (last + 1 < ids.size() && ids[last + 1] == ids[last] + 1)
            last++;
        text += (text.empty() ? "" : " ") + std::to_string(ids[i]);
        if (last > i)
            text += "-" + std::to_string(ids[last]);
        i = last + 1;
    }
    return text.empty() ? "none" : text;
}

Ids without(const Ids& a, const Ids& b) {
    Ids rest;
    std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(rest));
    return rest;
}

void log_line(gcx_log_level, const char* message, void*) {
    std::printf("  gcx warns: %s\n", message);
}

struct Kernels {
    CUcontext primary = nullptr;
    CUmodule module = nullptr;
    CUfunction meet = nullptr;
    CUfunction busy = nullptr;
    CUdeviceptr counters = 0;
    CUdeviceptr sms = 0;

    Kernels() {
        CALL(cuInit, 0);
        CALL(cuDevicePrimaryCtxRetain, &primary, 0);
        CALL(cuCtxPushCurrent, primary); // stays current
        CALL(cuModuleLoadData, &module, kPtx);
        CALL(cuModuleGetFunction, &meet, module, "meet");
        CALL(cuModuleGetFunction, &busy, module, "busy");
        for (CUfunction function : {meet, busy})
            CALL(cuFuncSetAttribute, function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                 static_cast<int>(kSharedBytes));
        CALL(cuMemAlloc, &counters, 8);
        CALL(cuMemAlloc, &sms, kSmNumbers * 4);
    }
};

struct Part {
    gcx_resource resource{};
    gcx_context context = nullptr;
    gcx_stream stream = nullptr;
    uint32_t promised = 0;

    Part() = default;
    explicit Part(const gcx_resource& its) : resource(its) {
        gcx_resource_info info = GCX_RESOURCE_INFO_INIT;
        GCX(gcx_resource_get_info(&resource, &info));
        promised = info.sm_count;
        GCX(gcx_context_create(&resource, 1, nullptr, &context));
        GCX(gcx_stream_create(context, nullptr, &stream));
    }
    CUstream native() const { return gcx_stream_native(stream); }
    Ids probe() const {
        Ids ids(GCX_MAX_SMS);
        uint32_t count = 0;
        GCX(gcx_stream_probe_sms(stream, ids.data(), GCX_MAX_SMS, &count));
        ids.resize(count);
        return ids;
    }
};

std::vector<gcx_resource> split(const Ids& counts, uint32_t flags = 0) {
    gcx_resource whole{};
    GCX(gcx_device_get_resource(0, GCX_RESOURCE_SM, &whole));
    std::vector<gcx_sm_request> requests(counts.size());
    for (std::size_t i = 0; i < counts.size(); i++)
        requests[i].sm_count = counts[i];
    std::vector<gcx_resource> groups(counts.size());
    GCX(gcx_sm_split(&whole, requests.data(), static_cast<uint32_t>(requests.size()), flags,
                     groups.data(), nullptr, nullptr, nullptr));
    return groups;
}

void row(const char* when, const char* what, const Part& part, const Ids& own = {}) {
    const Ids seen = part.probe();
    std::printf("%-8s %-34s promised %3u, seen %3zu", when, what, part.promised, seen.size());
    if (!own.empty())
        std::printf(", more than its own: %s", ranges(without(seen, own)).c_str());
    std::printf("\n");
}

void shared_row(const char* when) {
    Ids ids(GCX_MAX_SMS);
    uint32_t count = 0;
    const gcx_result result = gcx_device_find_shared_sms(0, ids.data(), GCX_MAX_SMS, &count);
    ids.resize(count);
    if (result == GCX_SUCCESS)
        std::printf("%-8s gcx_device_find_shared_sms: %s\n", when, ranges(ids).c_str());
    else
        std::printf("%-8s gcx_device_find_shared_sms: refused: %s\n", when,
                    gcx_last_error_message());
}

// Loads the module: the kernel that launches another runs once, in the primary context.
void load_dynamic_parallelism() {
#ifdef __CUDACC__
    int* out = nullptr;
    int value = 0;
    if (cudaMalloc(&out, sizeof *out) != cudaSuccess ||
        cudaMemset(out, 0, sizeof *out) != cudaSuccess)
        fail("no memory");
    parent<<<1, 1>>>(out);
    const cudaError_t launched = cudaGetLastError();
    const cudaError_t done = cudaDeviceSynchronize();
    cudaMemcpy(&value, out, sizeof value, cudaMemcpyDeviceToHost);
    std::printf("a parent ran: launch %d, end %d, its child wrote %d\n", launched, done, value);
    // Under MPS the module is loaded and its kernel refused.
    if (launched == cudaErrorCdpNotSupported) {
        std::printf("the driver answered that dynamic parallelism is not supported here\n");
        std::fflush(stdout);
        return;
    }
    if (launched != cudaSuccess || done != cudaSuccess || value != 1)
        fail("the kernel that launches another did not run");
#else
    CUmodule module = nullptr;
    CALL(cuModuleLoadData, &module,
         ".version 8.0\n.target sm_90\n.extern .func cudaLaunchDeviceV2;\n");
#endif
    std::fflush(stdout);
}

// Launches growing cooperative grids, and prints which are accepted and whether all blocks meet.
void cooperative_rows(const Kernels& kernels, const char* when, const Part& part,
                      unsigned shared_bytes) {
    int per_sm = 0;
    CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor, &per_sm, kernels.meet,
         static_cast<int>(kThreads), shared_bytes);
    const uint32_t expected = static_cast<uint32_t>(per_sm) * part.promised;
    std::printf("%-8s cooperative on %u SMs: occupancy %d a SM, times SMs %u\n", when,
                part.promised, per_sm, expected);
    uint32_t largest = 0;
    const auto first = expected - std::min(expected - 1, 2U);
    for (uint32_t blocks = first; blocks <= expected + 3U * static_cast<uint32_t>(per_sm);
         blocks++) {
        std::vector<uint32_t> seen(kSmNumbers);
        uint32_t counters[2] = {};
        CALL(cuMemsetD32, kernels.counters, 0, 2);
        CALL(cuMemsetD32, kernels.sms, 0, kSmNumbers);
        must(DRIVER(cuCtxSynchronize)(), "cuCtxSynchronize"); // the stream doesn't wait for them
        CUdeviceptr first_argument = kernels.counters;
        CUdeviceptr second_argument = kernels.sms;
        uint64_t nanoseconds = kBarrierNs;
        void* arguments[] = {&first_argument, &second_argument, &blocks, &nanoseconds};
        const CUresult result = DRIVER(cuLaunchCooperativeKernel)(
            kernels.meet, blocks, 1, 1, kThreads, 1, 1, shared_bytes, part.native(), arguments);
        const CUresult done =
            result == CUDA_SUCCESS ? DRIVER(cuStreamSynchronize)(part.native()) : result;
        if (result == CUDA_SUCCESS)
            largest = blocks;
        CALL(cuMemcpyDtoH, counters, kernels.counters, sizeof counters);
        CALL(cuMemcpyDtoH, seen.data(), kernels.sms, kSmNumbers * 4);
        Ids sms;
        for (uint32_t sm = 0; sm < kSmNumbers; sm++)
            if (seen[sm] != 0)
                sms.push_back(sm);
        std::printf("%-8s   %3u blocks: launch %d, end %d, arrived %u, met %u, on %zu SMs: %s\n",
                    when, blocks, result, done, counters[0], counters[1], sms.size(),
                    ranges(sms).c_str());
        if (result != CUDA_SUCCESS && blocks > expected)
            break; // larger ones are refused too
    }
    gcx_kernel_fit_params params = GCX_KERNEL_FIT_PARAMS_INIT;
    params.block_threads = kThreads;
    params.dynamic_shared_bytes = shared_bytes;
    gcx_kernel_fit fit = GCX_KERNEL_FIT_INIT;
    GCX(gcx_stream_get_kernel_fit(part.stream, kernels.meet, &params, &fit));
    std::printf("%-8s   largest accepted %u; gcx_stream_get_kernel_fit max_blocks %u\n", when,
                largest, fit.max_blocks);
    std::fflush(stdout);
}

void map_rows() {
    for (const auto& [family, name] : {std::pair(GCX_SM_FAMILY_COSCHEDULED, "coscheduled"),
                                       std::pair(GCX_SM_FAMILY_FINE, "fine")}) {
        const gcx_result result = gcx_device_map_sms(0, family);
        std::printf("after    gcx_device_map_sms, %s: %s\n", name,
                    result == GCX_SUCCESS ? "ok" : gcx_last_error_message());
    }
}

Ids ids_of(const gcx_resource& resource) {
    Ids ids(GCX_MAX_SMS);
    uint32_t count = 0;
    if (gcx_resource_get_sm_ids(&resource, ids.data(), GCX_MAX_SMS, &count) != GCX_SUCCESS)
        return {};
    ids.resize(count);
    return ids;
}

void exclude_rows(const char* name, const Ids& counts, uint32_t flags) {
    gcx_resource whole{};
    GCX(gcx_device_get_resource(0, GCX_RESOURCE_SM, &whole));
    std::vector<gcx_sm_request> requests(counts.size());
    for (std::size_t i = 0; i < counts.size(); i++)
        requests[i].sm_count = counts[i];
    std::vector<gcx_resource> groups(counts.size());
    if (gcx_sm_split(&whole, requests.data(), static_cast<uint32_t>(requests.size()),
                     flags | GCX_SPLIT_EXCLUDE_SHARED, groups.data(), nullptr, nullptr,
                     nullptr) != GCX_SUCCESS) {
        std::printf("after    split without shared SMs, %s: %s\n", name, gcx_last_error_message());
        return;
    }
    for (std::size_t i = 0; i < groups.size(); i++) {
        const Part part(groups[i]);
        const Ids own = ids_of(groups[i]);
        std::printf("after    split without shared SMs, %s, group %zu: own SMs %s\n", name, i,
                    ranges(own).c_str());
        row("after", "  it", part, own);
    }
}

void single() {
    GCX(gcx_log_set_callback(GCX_LOG_WARNING, log_line, nullptr));
    const Kernels kernels;
    const std::vector<gcx_resource> groups = split({24, 24, 12, GCX_REST});
    const Part a(groups[0]);
    const Part remainder(groups[2]);
    const Part fine(split({10}, GCX_SPLIT_IGNORE_SM_COSCHEDULING)[0]);
    row("before", "24", a);
    row("before", "fine 10", fine);
    row("before", "12, the remainder atom", remainder);
    const Ids a_own = a.probe();
    const Ids fine_own = fine.probe();
    const Ids remainder_own = remainder.probe();
    shared_row("before");
    cooperative_rows(kernels, "before", a, kSharedBytes);
    cooperative_rows(kernels, "before", a, 0);

    load_dynamic_parallelism();
    row("after", "24, made before", a, a_own);
    row("after", "fine 10, made before", fine, fine_own);
    row("after", "12, the remainder atom, made before", remainder, remainder_own);
    row("after", "24, made after", Part(groups[1]));
    row("after", "32, made after", Part(split({32})[0]));
    shared_row("after");
    cooperative_rows(kernels, "after", a, kSharedBytes);
    cooperative_rows(kernels, "after", a, 0);
    cooperative_rows(kernels, "after", remainder, kSharedBytes);
    map_rows();
    exclude_rows("24 and the rest", {24, GCX_REST}, 0);
    exclude_rows("fine 10", {10}, GCX_SPLIT_IGNORE_SM_COSCHEDULING);
}

// Synchronises two processes by files.
class Steps {
  public:
    explicit Steps(std::string folder) : folder_(std::move(folder)) {}
    void reach(const std::string& step) const {
        std::fflush(stdout);
        std::ofstream(folder_ + "/" + step) << "reached\n";
    }
    bool reached(const std::string& step) const {
        return access((folder_ + "/" + step).c_str(), F_OK) == 0;
    }
    void wait_for(const std::string& step) const {
        for (const auto end = Clock::now() + kPatience; !reached(step);) {
            if (Clock::now() > end)
                fail("the other process did not reach " + step);
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
    }

  private:
    std::string folder_;
};

CUresult launch_busy(const Kernels& kernels, const Part& part, uint32_t blocks, uint64_t ns) {
    void* arguments[] = {&ns};
    return DRIVER(cuLaunchKernel)(kernels.busy, blocks, 1, 1, kThreads, 1, 1, kSharedBytes,
                                  part.native(), arguments, nullptr);
}

// Fills the partition with blocks of 5 ms, one for each SM, until the other process has reached a
// step. Two launches are in flight at any time, so that no other work fits between them.
void fill_until(const Kernels& kernels, const Part& part, const Steps& steps,
                const std::string& begun, const std::string& step) {
    constexpr uint32_t kBlocks = 26 * 20; // 100 ms
    gcx_event ends[2] = {};
    for (gcx_event& end : ends) {
        GCX(gcx_event_create(0, 0, &end));
        must(launch_busy(kernels, part, kBlocks, 5'000'000), "cuLaunchKernel");
        GCX(gcx_stream_record(part.stream, end));
    }
    steps.reach(begun);
    const auto limit = Clock::now() + kPatience;
    for (unsigned i = 0; !steps.reached(step) && Clock::now() < limit; i++) {
        GCX(gcx_event_synchronize(ends[i % 2]));
        must(launch_busy(kernels, part, kBlocks, 5'000'000), "cuLaunchKernel");
        GCX(gcx_stream_record(part.stream, ends[i % 2]));
    }
    GCX(gcx_stream_synchronize(part.stream));
}

// Times a kernel of one block of 1 ms for each promised SM: where blocks of other processes occupy
// an SM, the last block waits, and the kernel takes 2 ms and more.
void time_row(const char* when, const char* what, const Kernels& kernels, const Part& part) {
    std::vector<double> times;
    const auto end = Clock::now() + std::chrono::seconds(3);
    for (int i = 0; i < 100 && Clock::now() < end; i++) {
        const auto begin = Clock::now();
        must(launch_busy(kernels, part, part.promised, 1'000'000), "cuLaunchKernel");
        GCX(gcx_stream_synchronize(part.stream));
        times.push_back(std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
    }
    std::sort(times.begin(), times.end());
    std::printf("%-34s %-24s 1 ms on %2u SMs takes ms: least %.2f median %.2f most %.2f of %zu\n",
                when, what, part.promised, times.front(), times[times.size() / 2], times.back(),
                times.size());
    std::fflush(stdout);
}

void mps_row(const char* name) {
    gcx_device_info info = GCX_DEVICE_INFO_INIT;
    GCX(gcx_device_get_info(0, &info));
    std::printf("%s: MPS is %s\n", name, info.mps == GCX_MPS_ON ? "on" : "NOT on");
}

void loads(const Steps& steps) {
    GCX(gcx_log_set_callback(GCX_LOG_WARNING, log_line, nullptr));
    const Kernels kernels;
    mps_row("P");
    const Part part(split({24, 24, 12, GCX_REST})[0]);
    row("P before", "24", part);
    steps.reach("p-before");
    steps.wait_for("q-before");
    fill_until(kernels, part, steps, "p-fills-before", "q-timed-before");
    load_dynamic_parallelism();
    row("P after", "24", part);
    row("P after", "32, made after", Part(split({32})[0]));
    shared_row("P after");
    steps.reach("p-after");
    steps.wait_for("q-after");
    fill_until(kernels, part, steps, "p-fills-after", "q-timed-after");
    row("P after", "24", part);
}

void watches(const Steps& steps) {
    GCX(gcx_log_set_callback(GCX_LOG_WARNING, log_line, nullptr));
    const Kernels kernels;
    mps_row("Q");
    const std::vector<gcx_resource> groups = split({24, 24, 12, GCX_REST});
    const Part own(groups[1]);
    const Part remainder(groups[2]);
    steps.wait_for("p-before");
    row("Q before", "24", own);
    row("Q before", "12, the remainder atom", remainder);
    time_row("Q, P idle, no module", "24", kernels, own);
    time_row("Q, P idle, no module", "12, the remainder atom", kernels, remainder);
    steps.reach("q-before");
    steps.wait_for("p-fills-before");
    time_row("Q, P fills its 24, no module", "24", kernels, own);
    time_row("Q, P fills its 24, no module", "12, the remainder atom", kernels, remainder);
    steps.reach("q-timed-before");
    steps.wait_for("p-after");
    row("Q after", "24", own);
    row("Q after", "12, the remainder atom", remainder);
    row("Q after", "32, made after", Part(split({32})[0]));
    shared_row("Q after");
    steps.reach("q-after");
    steps.wait_for("p-fills-after");
    time_row("Q, P fills its 24, with the module", "24", kernels, own);
    time_row("Q, P fills its 24, with the module", "12, the remainder atom", kernels, remainder);
    row("Q next to P", "24", own);
    row("Q next to P", "12, the remainder atom", remainder);
    steps.reach("q-timed-after");
}

} // namespace

int main(int argc, char** argv) {
    const std::string mode = argc > 1 ? argv[1] : "";
    if (mode == "single" && argc == 2)
        single();
    else if (mode == "loads" && argc == 3)
        loads(Steps(argv[2]));
    else if (mode == "watches" && argc == 3)
        watches(Steps(argv[2]));
    else
        fail("usage: dynamic_parallelism single | loads FOLDER | watches FOLDER");
    std::fflush(stdout);
    // Contexts and streams end with the process.
    std::_Exit(0);
}

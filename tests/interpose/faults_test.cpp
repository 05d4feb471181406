// Makes each driver call of programs inside a partition fail in turn. The program gets an error or
// none. A second try succeeds, and nothing runs outside of the partition.
#include "inside.hpp"

#include <sys/mman.h>

#include <cstdlib>
#include <functional>

namespace {

using inside::Inside;

// Each case is a process, which is slow with sanitizers.
const uint64_t kStep = check::slow ? 7 : 1;

// Calls again if the first call fails.
void persist(const char* what, const std::function<CUresult()>& call) {
    const CUresult first = call();
    if (first == CUDA_SUCCESS)
        return;
    const CUresult second = call();
    if (!CHECK(second == CUDA_SUCCESS))
        std::fprintf(stderr, "%s: %d, then %d\n", what, first, second);
}
#define PERSIST(...) persist(#__VA_ARGS__, [&] { return __VA_ARGS__; })

void work(CUstream own = CU_STREAM_PER_THREAD) {
    CUstream stream = nullptr;
    CUdeviceptr memory = 0;
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    PERSIST(CU(cuModuleLoadData)(&module, inside::kPtx));
    PERSIST(CU(cuModuleGetFunction)(&function, module, "work"));
    PERSIST(CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
    PERSIST(CU(cuMemAlloc)(&memory, 4096));
    PERSIST(CU(cuMemsetD32)(memory, 1, 1024));
    PERSIST(inside::launch(function, stream));
    PERSIST(inside::launch(function, nullptr));
    PERSIST(inside::launch(function, own));
    PERSIST(CU(cuStreamSynchronize)(own));
    PERSIST(CU(cuCtxSynchronize)());
    PERSIST(CU(cuStreamDestroy)(stream));
    PERSIST(CU(cuMemFree)(memory));
    PERSIST(CU(cuModuleUnload)(module));
}

void retains_first() {
    CUcontext primary = nullptr;
    int sms = 0;
    PERSIST(CU(cuDeviceGetAttribute)(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
    CHECK_EQ(sms, 24);
    PERSIST(CU(cuDevicePrimaryCtxRetain)(&primary, 0));
    PERSIST(CU(cuCtxSetCurrent)(primary));
    work();
    PERSIST(CU(cuDevicePrimaryCtxRelease)(0));
}

// The order of cudart in its first thread.
void sets_first() {
    CUcontext primary = nullptr;
    PERSIST(NATIVE(cuDevicePrimaryCtxRetain)(&primary, 0));
    PERSIST(NATIVE(cuCtxSetCurrent)(primary));
    work();
}

void resets() {
    retains_first();
    PERSIST(CU(cuDevicePrimaryCtxReset)(0));
    retains_first();
}

void nests() {
    CUdevResource all{};
    CUgreenCtx green = nullptr;
    CUcontext context = nullptr;
    PERSIST(CU(cuDeviceGetDevResource)(0, &all, CU_DEV_RESOURCE_TYPE_SM));
    CHECK_EQ(all.sm.smCount, 24U);
    PERSIST(CU(cuGreenCtxCreate)(&green, nullptr, 0, CU_GREEN_CTX_DEFAULT_STREAM));
    PERSIST(CU(cuCtxFromGreenCtx)(&context, green));
    PERSIST(CU(cuCtxPushCurrent)(context));
    work(nullptr); // the driver refuses the per-thread default stream
    PERSIST(CU(cuGreenCtxDestroy)(green));
}

// Returns whether all lines are from the shim.
bool is_from_shim(const std::string& lines) {
    for (std::size_t at = 0; at < lines.size(); at = lines.find('\n', at) + 1)
        if (lines.compare(at, 10, "gcx exec: ") != 0)
            return false;
    return true;
}

// Fails another call in each case, until the program makes fewer calls.
void call_failing_keeps_program_in_partition(const std::string& spec,
                                             const std::function<void()>& program) {
    // Far more calls than a program makes.
    constexpr uint64_t kMaxCalls = 400;
    static bool* const ended = static_cast<bool*>(
        mmap(nullptr, sizeof(bool), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    *ended = false;
    uint64_t nth = 1;
    for (; !*ended && nth < kMaxCalls; nth += kStep)
        inside::run({.spec = spec}, [&](const Inside& inside) {
            CU_OK(cuInit, 0);
            const uint64_t before = support::sim::calls();
            support::sim::fail(nullptr, nth, CUDA_ERROR_UNKNOWN);
            std::string said;
            inside::check_runs(inside.sms[0], 3, [&] {
                said = inside::lines_of(program);
                *ended = support::sim::calls() - before < nth;
                support::sim::fail(nullptr, 0, CUDA_SUCCESS);
            });
            if (!CHECK(is_from_shim(said)))
                std::fprintf(stderr, "call %llu: %s", static_cast<unsigned long long>(nth),
                             said.c_str());
        });
    CHECK(*ended && nth > 20);
}

// The device differs from the plan, or the plan is damaged.
void plan_wrong_is_refused(const std::function<void(gcx::interpose::Plan&)>& damage,
                           const char* why) {
    inside::run_damaged({}, damage, [&](const Inside&) {
        CU_OK(cuInit, 0);
        CUcontext primary = nullptr;
        CUstream stream = nullptr;
        CUresult result = CUDA_SUCCESS;
        const std::string said = inside::lines_of([&] {
            if (*why == '!')
                setenv("GCX_EXEC_PLAN", "gcx-exec-9 or so", 1);
            result = CU(cuDevicePrimaryCtxRetain)(&primary, 0);
        });
        CHECK(result != CUDA_SUCCESS && primary == nullptr);
        CHECK(said.find(why + (*why == '!' ? 1 : 0)) != std::string::npos);
        CHECK(is_from_shim(said));
        // Calls that bypass the hooks, as cudart makes them, do not help.
        CHECK_EQ(NATIVE(cuDevicePrimaryCtxRetain)(&primary, 0), CUDA_SUCCESS);
        CHECK_EQ(NATIVE(cuCtxSetCurrent)(primary), CUDA_SUCCESS);
        inside::lines_of([&] {
            CHECK(CU(cuCtxSetCurrent)(primary) != CUDA_SUCCESS);
            CHECK(CU(cuStreamCreate)(&stream, 0) != CUDA_SUCCESS);
        });
        CHECK_EQ(support::sim::counts().streams, 0U);
        CHECK_EQ(support::sim::counts().green_contexts, 0U);
    });
}

} // namespace

int main() {
    using gcx::interpose::Plan;
    plan_wrong_is_refused([](Plan& plan) { plan.devices[0].family_atoms = 17; },
                          "its atoms are 16, and were 17");
    plan_wrong_is_refused([](Plan& plan) { plan.devices[0].sm_count = 25; },
                          "its SMs are 24, and were 25");
    plan_wrong_is_refused([](Plan&) {}, "!GCX_EXEC_PLAN doesn't begin with");
    for (const char* const spec : {"h100@12.4", "h100@13.0", "h100@13.5"})
        for (void (*const program)() : {retains_first, sets_first, resets, nests})
            call_failing_keeps_program_in_partition(spec, program);
    return check::summary("failing calls inside");
}

// Every driver call of programs inside a partition made to fail in turn: they get an error, or it
// makes no difference; asked once more they go on, and nothing of them ever runs outside.
#include "inside.hpp"

#include <sys/mman.h>

#include <cstdlib>
#include <functional>

namespace {

using inside::Inside;

// Each is a process, which a sanitizer makes slow.
const uint64_t kStep = check::slow ? 7 : 1;

// What a program does that tries twice.
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
    const char* const ptx = ".version 6.3\n.target sm_70\n.address_size 64\n"
                            ".visible .entry work()\n{ ret; }\n";
    PERSIST(CU(cuModuleLoadData)(&module, ptx));
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

// As cudart's first thread does.
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
    work(nullptr); // the driver refuses the thread's own there
    PERSIST(CU(cuGreenCtxDestroy)(green));
}

// Whole lines, each from the library.
bool is_of_gcx(const std::string& said) {
    for (std::size_t at = 0; at < said.size(); at = said.find('\n', at) + 1)
        if (said.compare(at, 10, "gcx exec: ") != 0)
            return false;
    return true;
}

// Fails one call in each case, until the program makes no more calls than were failed.
void every_call(const std::string& spec, const std::function<void()>& program) {
    // Far more than any of these makes.
    constexpr uint64_t kMost = 400;
    static bool* const ended = static_cast<bool*>(
        mmap(nullptr, sizeof(bool), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    *ended = false;
    uint64_t nth = 1;
    for (; !*ended && nth < kMost; nth += kStep)
        inside::run({.spec = spec}, [&](const Inside& inside) {
            CU_OK(cuInit, 0);
            const uint64_t before = support::sim::calls();
            support::sim::fail(nullptr, nth, CUDA_ERROR_UNKNOWN);
            inside::note_runs();
            const std::string said = inside::lines_of(program);
            *ended = support::sim::calls() - before < nth;
            support::sim::fail(nullptr, 0, CUDA_SUCCESS);
            inside::check_runs(inside.sms[0], 3);
            if (!CHECK(is_of_gcx(said)))
                std::fprintf(stderr, "call %llu: %s", static_cast<unsigned long long>(nth),
                             said.c_str());
        });
    CHECK(*ended && nth > 20);
}

// The device isn't the one that was divided, or the plan can't be read.
void refused(const std::function<void(gcx::interpose::Plan&)>& damage, const char* why) {
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
        CHECK(is_of_gcx(said));
        // By the ways around it that cudart has, there is no going on either.
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
    refused([](Plan& plan) { plan.devices[0].family_atoms = 17; }, "its atoms are 16, and were 17");
    refused([](Plan& plan) { plan.devices[0].sm_count = 25; }, "its SMs are 24, and were 25");
    refused([](Plan&) {}, "!GCX_EXEC_PLAN doesn't begin with");
    for (const char* const spec : {"h100@12.4", "h100@13.0", "h100@13.5"})
        for (void (*const program)() : {retains_first, sets_first, resets, nests})
            every_call(spec, program);
    return check::summary("failing calls inside");
}

// Contexts that a program inside a partition creates by cuCtxCreate.
#include "inside.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <set>
#include <thread>

namespace {

using inside::Inside;

constexpr std::size_t kMax = 8;

CUresult try_create(CUcontext* out, unsigned flags = 0) {
    return inside::function<CUresult (*)(CUcontext*, unsigned, CUdevice)>("cuCtxCreate_v2")(
        out, flags, 0);
}

CUcontext create(unsigned flags = 0) {
    CUcontext context = nullptr;
    CHECK_EQ(try_create(&context, flags), CUDA_SUCCESS);
    return context;
}

CUcontext current() {
    CUcontext context = nullptr;
    CU_OK(cuCtxGetCurrent, &context);
    return context;
}

unsigned long long id_of(CUcontext context) {
    unsigned long long id = 0;
    CU_OK(cuCtxGetId, context, &id);
    return id;
}

void launch_in_all_streams() {
    const CUfunction function = inside::kernel();
    CUstream blocking = nullptr;
    CUstream urgent = nullptr;
    CUdeviceptr memory = 0;
    CU_OK(cuStreamCreate, &blocking, CU_STREAM_DEFAULT);
    CU_OK(cuStreamCreateWithPriority, &urgent, CU_STREAM_NON_BLOCKING, -5);
    for (const CUstream stream :
         {static_cast<CUstream>(nullptr), CU_STREAM_LEGACY, CU_STREAM_PER_THREAD, blocking, urgent})
        CHECK_EQ(inside::launch(function, stream), CUDA_SUCCESS);
    CU_OK(cuMemAlloc, &memory, 4096);
    CU_OK(cuMemsetD32, memory, 1, 1024);
    CU_OK(cuCtxSynchronize);
}

void context_created_runs_in_partition(const Inside& inside) {
    CU_OK(cuInit, 0);
    // Before and after the program uses the primary context.
    const CUcontext first = create();
    CHECK_EQ(current(), first);
    inside::check_runs(inside.sms[0], 6, launch_in_all_streams);
    const CUcontext primary = inside::use_primary();
    const CUcontext second = create();
    CHECK(first != second && first != primary && second != primary);
    CHECK_EQ(current(), second);
    inside::check_runs(inside.sms[0], 6, launch_in_all_streams);
    CHECK_EQ((std::set{id_of(first), id_of(second), id_of(primary), id_of(nullptr)}.size()), 3U);
    CHECK_EQ(id_of(nullptr), id_of(second));
    CHECK_EQ(support::sim::counts().contexts, 0U);
    CUstream stream = nullptr;
    CUcontext of_stream = nullptr;
    CUgreenCtx green = reinterpret_cast<CUgreenCtx>(&stream);
    CU_OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    CU_OK(cuStreamGetGreenCtx, stream, &green);
    CHECK(green == nullptr);
    CHECK_EQ(
        inside::function<CUresult (*)(CUstream, CUcontext*)>("cuStreamGetCtx")(stream, &of_stream),
        CUDA_SUCCESS);
    CHECK_EQ(of_stream, second);
    CUcontext popped = nullptr;
    CU_OK(cuCtxPopCurrent, &popped);
    CHECK_EQ(popped, second);
    CHECK_EQ(current(), primary);
    std::thread([&] {
        CU_OK(cuCtxSetCurrent, first);
        CHECK_EQ(current(), first);
        inside::check_runs(inside.sms[0], 6, launch_in_all_streams);
    }).join();
}

void context_properties_are_as_outside(const Inside&) {
    CU_OK(cuInit, 0);
    unsigned value = 0;
    const CUcontext plain = create();
    CU_OK(cuCtxGetFlags, &value);
    CHECK_EQ(value, unsigned{CU_CTX_MAP_HOST});
    CU_OK(cuCtxGetApiVersion, plain, &value);
    CHECK_EQ(value, 3020U);
    create(CU_CTX_SCHED_BLOCKING_SYNC);
    CU_OK(cuCtxGetFlags, &value);
    CHECK_EQ(value, unsigned{CU_CTX_SCHED_BLOCKING_SYNC | CU_CTX_MAP_HOST});
    CUcontext none = nullptr;
    CHECK_EQ(try_create(nullptr), CUDA_ERROR_INVALID_VALUE);
    for (const unsigned wrong : {3U, 5U, 0x100U, ~0U})
        CHECK_EQ(try_create(&none, wrong), CUDA_ERROR_INVALID_VALUE);
    CHECK(none == nullptr);
}

// A program's handles of each kind that belong to its current context.
struct Objects {
    CUstream stream = nullptr;
    CUstream blocking = nullptr;
    CUevent event = nullptr;
    CUmodule module = nullptr;
    CUdeviceptr memory = 0;
    CUdeviceptr managed = 0;
    CUdeviceptr rows = 0;
    void* pinned = nullptr;
    void* mapped = nullptr;
    CUarray array = nullptr;
};

// Host memory that contexts register.
alignas(4096) std::array<char, 4096> g_host;

Objects make_objects() {
    Objects made;
    std::size_t pitch = 0;
    const CUDA_ARRAY_DESCRIPTOR shape{16, 1, CU_AD_FORMAT_FLOAT, 1};
    CU_OK(cuStreamCreate, &made.stream, CU_STREAM_NON_BLOCKING);
    CU_OK(cuStreamCreate, &made.blocking, CU_STREAM_DEFAULT);
    CU_OK(cuEventCreate, &made.event, CU_EVENT_DEFAULT);
    CU_OK(cuModuleLoadData, &made.module, inside::kPtx);
    CU_OK(cuMemAlloc, &made.memory, 1 << 20);
    CU_OK(cuMemAllocManaged, &made.managed, 4096, CU_MEM_ATTACH_GLOBAL);
    CU_OK(cuMemAllocPitch, &made.rows, &pitch, 100, 100, 4);
    CU_OK(cuMemAllocHost, &made.pinned, 4096);
    CU_OK(cuMemHostAlloc, &made.mapped, 4096, CU_MEMHOSTALLOC_DEVICEMAP);
    CU_OK(cuMemHostRegister, g_host.data(), g_host.size(), 0);
    CU_OK(cuArrayCreate, &made.array, &shape);
    return made;
}

void free_objects(const Objects& made) {
    CU_OK(cuStreamDestroy, made.stream);
    CU_OK(cuStreamDestroy, made.blocking);
    CU_OK(cuEventDestroy, made.event);
    CU_OK(cuModuleUnload, made.module);
    for (const CUdeviceptr memory : {made.memory, made.managed, made.rows})
        CU_OK(cuMemFree, memory);
    CU_OK(cuMemFreeHost, made.pinned);
    CU_OK(cuMemFreeHost, made.mapped);
    CU_OK(cuMemHostUnregister, g_host.data());
    CU_OK(cuArrayDestroy, made.array);
}

void destroy_frees_what_was_created_in_it(const Inside&) {
    inside::use_primary();
    const CUcontext kept = create();
    const Objects of_kept = make_objects();
    CU_OK(cuMemHostUnregister, g_host.data());
    // Its green context and one event of the order are used again.
    const CUcontext first = create();
    launch_in_all_streams();
    CU_OK(cuCtxDestroy, first);
    const gcx_sim_counts before = support::sim::counts();
    const CUcontext context = create();
    make_objects();
    CHECK_EQ(inside::launch(inside::kernel(), CU_STREAM_PER_THREAD), CUDA_SUCCESS);
    CHECK(support::left_behind(before, support::sim::counts()) != "");
    CU_OK(cuCtxDestroy, context);
    CHECK_EQ(current(), kept);
    CHECK_EQ(support::left_behind(before, support::sim::counts()), "");
    // What another context frees is not freed again, and what belongs to another context stays.
    const CUcontext next = create();
    const Objects made = make_objects();
    CU_OK(cuCtxSetCurrent, kept);
    free_objects(made);
    CHECK_EQ(CU(cuMemFree)(made.memory), CUDA_ERROR_INVALID_VALUE);
    CU_OK(cuMemHostRegister, g_host.data(), g_host.size(), 0);
    const Objects others = of_kept;
    CU_OK(cuCtxDestroy, next);
    free_objects(others);
    CHECK_EQ(current(), kept);
}

void destroy_waits_for_work(const Inside&) {
    CU_OK(cuInit, 0);
    const CUcontext context = create();
    CUstream stream = nullptr;
    CU_OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    const uint64_t began = support::sim::counts().clock_ns;
    inside::spin(inside::spinner(), stream);
    CU_OK(cuCtxDestroy, context);
    CHECK(support::sim::counts().clock_ns - began >= 50'000'000U);
}

void destroyed_context_is_refused(const Inside&) {
    inside::use_primary();
    const CUcontext context = create();
    std::atomic<int> step{0};
    const auto wait_for = [&](int wanted) {
        while (step.load() < wanted)
            std::this_thread::yield();
    };
    std::thread other([&] {
        CU_OK(cuCtxSetCurrent, context);
        const CUfunction function = inside::kernel();
        step = 1;
        wait_for(2);
        CUdeviceptr memory = 0;
        CUstream stream = nullptr;
        CHECK_EQ(inside::launch(function, nullptr), CUDA_ERROR_CONTEXT_IS_DESTROYED);
        CHECK_EQ(inside::launch(function, CU_STREAM_PER_THREAD), CUDA_ERROR_CONTEXT_IS_DESTROYED);
        CHECK_EQ(CU(cuMemAlloc)(&memory, 64), CUDA_ERROR_CONTEXT_IS_DESTROYED);
        CHECK_EQ(CU(cuStreamCreate)(&stream, 0), CUDA_ERROR_CONTEXT_IS_DESTROYED);
        CHECK_EQ(CU(cuCtxSynchronize)(), CUDA_ERROR_CONTEXT_IS_DESTROYED);
        unsigned flags = 0;
        CHECK_EQ(CU(cuCtxGetFlags)(&flags), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    });
    wait_for(1);
    CU_OK(cuCtxDestroy, context);
    step = 2;
    other.join();
    unsigned version = 0;
    unsigned long long id = 0;
    CHECK_EQ(CU(cuCtxDestroy)(context), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    CHECK_EQ(CU(cuCtxPushCurrent)(context), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    CHECK_EQ(CU(cuCtxGetId)(context, &id), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    CHECK_EQ(CU(cuCtxGetApiVersion)(context, &version), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    CHECK_EQ(CU(cuCtxDestroy)(nullptr), NATIVE(cuCtxDestroy)(nullptr));
}

void ten_thousand_in_turn_lose_little(const Inside&) {
    inside::use_primary();
    const uint64_t lost = support::sim::counts().device_bytes_lost;
    const int rounds = check::slow ? 500 : 10000;
    std::set<unsigned long long> ids;
    for (int i = 0; i < rounds; i++) {
        const CUcontext context = create();
        ids.insert(id_of(context));
        if (i % 100 == 0)
            launch_in_all_streams();
        CU_OK(cuCtxDestroy, context);
    }
    CHECK_EQ(ids.size(), static_cast<std::size_t>(rounds));
    CHECK(support::sim::counts().device_bytes_lost - lost <= uint64_t{8} << 20);
    CHECK_EQ(support::sim::counts().green_contexts, 2U);
}

void eight_at_once_are_the_most(const Inside&) {
    CU_OK(cuInit, 0);
    std::vector<CUcontext> contexts;
    for (std::size_t i = 0; i < kMax; i++)
        contexts.push_back(create());
    CUcontext none = nullptr;
    CUresult result = CUDA_SUCCESS;
    const std::string said = inside::lines_of([&] { result = try_create(&none); });
    CHECK_EQ(result, CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(said.find("cuCtxCreate fails with CUDA_ERROR_OUT_OF_MEMORY: the program has 8") !=
          std::string::npos);
    CHECK(none == nullptr);
    CHECK_EQ(current(), contexts.back());
    CU_OK(cuCtxDestroy, contexts[3]);
    contexts[3] = create();
    for (const CUcontext context : contexts)
        CU_OK(cuCtxDestroy, context);
}

void reset_is_refused_while_there_are_any(const Inside& inside) {
    const CUcontext primary = inside::use_primary();
    const CUcontext context = create();
    CU_OK(cuCtxSetCurrent, primary);
    CUresult result = CUDA_SUCCESS;
    const std::string said = inside::lines_of([&] { result = CU(cuDevicePrimaryCtxReset)(0); });
    CHECK_EQ(result, CUDA_ERROR_NOT_PERMITTED);
    CHECK(said.find("destroy them first") != std::string::npos);
    CU_OK(cuCtxDestroy, context);
    CU_OK(cuDevicePrimaryCtxReset, 0);
    CHECK_EQ(CU(cuCtxPushCurrent)(context) == CUDA_SUCCESS, false);
    inside::use_primary();
    inside::check_runs(inside.sms[0], 6, launch_in_all_streams);
    create();
    inside::check_runs(inside.sms[0], 6, launch_in_all_streams);
}

void attached_context_ends_with_the_last_detach(const Inside&) {
    CU_OK(cuInit, 0);
    const auto attach = inside::function<CUresult (*)(CUcontext*, unsigned)>("cuCtxAttach");
    const auto detach = inside::function<CUresult (*)(CUcontext)>("cuCtxDetach");
    const CUcontext context = create();
    CUcontext attached = nullptr;
    CHECK_EQ(attach(&attached, 1), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(attach(&attached, 0), CUDA_SUCCESS);
    CHECK_EQ(attached, context);
    CHECK_EQ(detach(context), CUDA_SUCCESS);
    CHECK_EQ(current(), context);
    CU_OK(cuCtxSynchronize);
    CHECK_EQ(detach(context), CUDA_SUCCESS);
    CHECK(current() == nullptr);
    CHECK_EQ(detach(context), CUDA_ERROR_CONTEXT_IS_DESTROYED);
}

// Kinds of contexts that no green context can replace.
void other_kinds_are_refused(const Inside&) {
    CU_OK(cuInit, 0);
    CUcontext none = nullptr;
    CUresult result = CUDA_SUCCESS;
    CUexecAffinityParam affinity{};
    struct {
        void* affinity;
        int affinity_count;
        void* cig;
    } parameters{nullptr, 0, &none};
    const auto third = inside::function<CUresult (*)(CUcontext*, void*, int, unsigned, CUdevice)>(
        "cuCtxCreate_v3");
    const auto fourth =
        inside::function<CUresult (*)(CUcontext*, void*, unsigned, CUdevice)>("cuCtxCreate_v4");
    const auto refused = [&](const char* name, const auto& call) {
        const std::string said = inside::lines_of([&] { result = call(); });
        CHECK_EQ(result, CUDA_ERROR_NOT_SUPPORTED);
        CHECK_EQ(said.find(std::string("gcx exec: device 0: ") + name + " is refused"), 0U);
        CHECK(none == nullptr);
    };
    refused("cuCtxCreate_v3", [&] { return third(&none, &affinity, 1, 0, 0); });
    refused("cuCtxCreate_v4", [&] { return fourth(&none, &parameters, 0, 0); });
    for (const char* const name :
         {"cuGLCtxCreate", "cuGLCtxCreate_v2", "cuVDPAUCtxCreate", "cuVDPAUCtxCreate_v2"})
        refused(name, [&] {
            return inside::function<CUresult (*)(CUcontext*, unsigned, CUdevice, uint32_t, void*)>(
                name)(&none, 0, 0, 0, nullptr);
        });
    CHECK_EQ(support::sim::counts().green_contexts, 0U);
    // Without affinity and CIG they are like the others.
    parameters.cig = nullptr;
    for (const bool newest : {false, true}) {
        CUcontext context = nullptr;
        CHECK_EQ(newest ? fourth(&context, &parameters, 0, 0) : third(&context, nullptr, 0, 0, 0),
                 CUDA_SUCCESS);
        CU_OK(cuCtxDestroy, context);
    }
}

// With --contexts device.
void context_of_the_device_has_all_sms(const Inside& inside) {
    CU_OK(cuInit, 0);
    CUcontext own = nullptr;
    const std::string said = inside::lines_of([&] { own = create(); });
    CHECK(said.find("has all SMs of the device, not the partition's 24") != std::string::npos);
    CHECK_EQ(std::count(said.begin(), said.end(), '\n'), 1);
    CHECK_EQ(current(), own);
    CHECK_EQ(support::sim::counts().contexts, 1U);
    CUstream stream = nullptr;
    CU_OK(cuStreamCreate, &stream, CU_STREAM_DEFAULT);
    CHECK_EQ(current(), own); // it stays current
    inside::use_primary();
    inside::check_runs(inside.sms[0], 6, launch_in_all_streams);
}

// A failure of any call of the driver changes nothing, and creation works afterwards.
void failure_of_each_call_loses_nothing(const Inside&) {
    inside::use_primary();
    CU_OK(cuCtxDestroy, create());
    for (const bool fresh : {false, true}) {
        const gcx_sim_counts before = support::sim::counts();
        bool failed = true;
        for (uint64_t nth = 1; failed && nth < 200; nth++) {
            // The first context takes the green context that is there, the next one needs a new one.
            const CUcontext kept = fresh ? create() : nullptr;
            const CUcontext at_first = current();
            CUcontext context = nullptr;
            support::sim::fail(nullptr, nth, CUDA_ERROR_OUT_OF_MEMORY);
            failed = try_create(&context) != CUDA_SUCCESS;
            support::sim::fail(nullptr, 0, CUDA_SUCCESS);
            CHECK_EQ(context == nullptr, failed);
            CHECK_EQ(current(), failed ? at_first : context);
            if (!failed)
                CU_OK(cuCtxDestroy, context);
            if (fresh)
                CU_OK(cuCtxDestroy, kept);
        }
        CHECK(!failed);
        if (!fresh)
            CHECK_EQ(support::left_behind(before, support::sim::counts()), "");
    }
    CHECK(support::sim::counts().green_contexts <= 3U);
}

// Threads that create, use and destroy contexts, next to one that uses the primary context.
void threads_have_contexts_of_their_own(const Inside& inside) {
    inside::use_primary();
    CU_OK(cuCtxDestroy, create());
    std::vector<std::thread> threads;
    const int rounds = check::slow ? 10 : 50;
    inside::check_runs(inside.sms[0], 6, [&] {
        for (std::size_t i = 0; i < kMax; i++)
            threads.emplace_back([&] {
                for (int round = 0; round < rounds; round++) {
                    const CUcontext context = create();
                    launch_in_all_streams();
                    CHECK_EQ(current(), context);
                    CU_OK(cuCtxDestroy, context);
                    CHECK(current() == nullptr);
                }
            });
        for (int round = 0; round < rounds; round++)
            launch_in_all_streams();
        for (std::thread& thread : threads)
            thread.join();
    });
    CHECK(support::sim::counts().green_contexts <= kMax + 1);
}

} // namespace

int main() {
    inside::run_on_every_driver(context_created_runs_in_partition);
    inside::run_on_every_driver(destroy_frees_what_was_created_in_it);
    inside::run_on_every_driver(destroyed_context_is_refused);
    inside::run_on_every_driver(reset_is_refused_while_there_are_any);
    inside::run({}, context_properties_are_as_outside);
    inside::run({}, destroy_waits_for_work);
    inside::run({}, ten_thousand_in_turn_lose_little);
    inside::run({}, eight_at_once_are_the_most);
    inside::run({}, attached_context_ends_with_the_last_detach);
    inside::run({}, other_kinds_are_refused);
    inside::run({.own_contexts = true}, context_of_the_device_has_all_sms);
    inside::run({}, failure_of_each_call_loses_nothing);
    inside::run({}, threads_have_contexts_of_their_own);
    return check::summary("created contexts inside");
}

// The per-thread default stream of programs inside a partition, by all of its names. Its work runs
// on the partition's SMs, in the order that CUDA defines. The stream that replaces it is created by
// the thread's first use and destroyed with the thread, by a reset, or with the process.
#include "inside.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <thread>
#include <vector>

namespace {

using inside::Inside;

// Calls a function with CU_STREAM_PER_THREAD, its _ptsz variant with the same, and that with NULL.
template <class Function, class Call>
void each_way(const std::string& name, const Call& call) {
    const auto plain = inside::function<Function>(name.c_str());
    const auto built_for = inside::function<Function>((name + "_ptsz").c_str());
    const std::array<CUresult, 3> results = {call(plain, CU_STREAM_PER_THREAD),
                                             call(built_for, CU_STREAM_PER_THREAD),
                                             call(built_for, CUstream{})};
    for (std::size_t i = 0; i < results.size(); i++)
        if (!CHECK_EQ(results[i], CUDA_SUCCESS))
            std::fprintf(stderr, "%s, way %zu\n", name.c_str(), i);
}

// f is the function and s the stream.
#define EACH_WAY(name, ...)                                                                        \
    each_way<decltype(&::name)>(SUPPORT_NAME(name), [&](auto f, CUstream s) { return __VA_ARGS__; })
// The same for a function that some headers declare with other types, by its symbol.
#define EACH_WAY_AS(symbol, type, ...)                                                             \
    each_way<type>(#symbol, [&](auto f, CUstream s) { return __VA_ARGS__; })

CUDA_MEMCPY2D copy_of_square(CUdeviceptr to, CUdeviceptr from) {
    CUDA_MEMCPY2D square{};
    square.srcMemoryType = square.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    square.srcDevice = from;
    square.dstDevice = to;
    square.srcPitch = square.dstPitch = square.WidthInBytes = 16;
    square.Height = 4;
    return square;
}

void use_memory() {
    CUdeviceptr memory = 0;
    CUdeviceptr other = 0;
    CUdeviceptr made = 0;
    CUmemoryPool pool = nullptr;
    std::array<uint32_t, 16> words{};
    CU_OK(cuMemAlloc, &memory, 64);
    CU_OK(cuMemAlloc, &other, 64);
    CU_OK(cuDeviceGetDefaultMemPool, &pool, 0);
    EACH_WAY(cuMemcpyHtoDAsync, f(memory, words.data(), 64, s));
    EACH_WAY(cuMemcpyDtoHAsync, f(words.data(), memory, 64, s));
    EACH_WAY(cuMemcpyDtoDAsync, f(other, memory, 64, s));
    EACH_WAY(cuMemcpyAsync, f(other, memory, 64, s));
    EACH_WAY(cuMemcpyPeerAsync, f(other, nullptr, memory, nullptr, 64, s));
    const CUDA_MEMCPY2D square = copy_of_square(other, memory);
    EACH_WAY(cuMemcpy2DAsync, f(&square, s));
    EACH_WAY(cuMemsetD8Async, f(memory, 1, 64, s));
    EACH_WAY(cuMemsetD16Async, f(memory, 1, 32, s));
    EACH_WAY(cuMemsetD32Async, f(memory, 1, 16, s));
    EACH_WAY(cuMemsetD2D8Async, f(memory, 16, 1, 16, 4, s));
    EACH_WAY(cuMemsetD2D16Async, f(memory, 16, 1, 8, 4, s));
    EACH_WAY(cuMemsetD2D32Async, f(memory, 16, 1, 4, 4, s));
    EACH_WAY(cuMemAllocAsync, f(&made, 64, s));
    EACH_WAY(cuMemFreeAsync, (CU(cuMemAllocAsync)(&made, 64, CU_STREAM_PER_THREAD), f(made, s)));
    EACH_WAY(cuMemAllocFromPoolAsync, f(&made, 64, pool, s));
    EACH_WAY(cuStreamAttachMemAsync, f(s, memory, 0, CU_MEM_ATTACH_SINGLE));
    CU_OK(cuMemFree, memory);
    CU_OK(cuMemFree, other);
}

void launch_kernels(CUfunction function) {
    int called = 0;
    const auto count = [](void* counter) { ++*static_cast<int*>(counter); };
    const auto count_too = [](CUstream, CUresult, void* counter) { ++*static_cast<int*>(counter); };
    EACH_WAY(cuLaunchKernel, f(function, 7, 1, 1, 32, 1, 1, 0, s, nullptr, nullptr));
    EACH_WAY(cuLaunchCooperativeKernel, f(function, 7, 1, 1, 32, 1, 1, 0, s, nullptr));
    EACH_WAY(cuLaunchHostFunc, f(s, count, &called));
    EACH_WAY(cuStreamAddCallback, f(s, count_too, &called, 0));
    CU_OK(cuStreamSynchronize, CU_STREAM_PER_THREAD); // they run in the stream's order
    CHECK_EQ(called, 6);
    CUlaunchConfig config{};
    config.gridDimX = config.gridDimY = config.gridDimZ = 2;
    config.blockDimX = config.blockDimY = config.blockDimZ = 1;
    const auto with = [&](CUstream stream) {
        config.hStream = stream;
        return &config;
    };
    EACH_WAY(cuLaunchKernelEx, f(with(s), function, nullptr, nullptr));
    CHECK(config.hStream == nullptr); // unchanged since the last call
    int clusters = 0;
    CHECK_EQ(CU(cuOccupancyMaxActiveClusters)(&clusters, function, with(CU_STREAM_PER_THREAD)),
             NATIVE(cuOccupancyMaxActiveClusters)(&clusters, function, with(nullptr)));
}

void ask_stream() {
    CUevent event = nullptr;
    CUstream other = nullptr;
    CUstreamAttrValue value{};
    int priority = -1;
    unsigned flags = 99;
    unsigned long long id = 0;
    CU_OK(cuEventCreate, &event, CU_EVENT_DISABLE_TIMING);
    CU_OK(cuStreamCreate, &other, CU_STREAM_NON_BLOCKING);
    EACH_WAY(cuEventRecord, f(event, s));
    EACH_WAY(cuEventRecordWithFlags, f(event, s, 0));
    EACH_WAY(cuStreamWaitEvent, f(s, event, 0));
    EACH_WAY(cuStreamSynchronize, f(s));
    EACH_WAY(cuStreamQuery, f(s));
    EACH_WAY(cuStreamGetPriority, f(s, &priority));
    EACH_WAY(cuStreamGetFlags, f(s, &flags));
    CHECK(priority == 0 && flags == CU_STREAM_DEFAULT);
    EACH_WAY(cuStreamGetId, f(s, &id));
    EACH_WAY(cuStreamGetAttribute, f(s, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
    EACH_WAY(cuStreamSetAttribute, f(s, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
    EACH_WAY(cuStreamCopyAttributes, f(s, other));
    EACH_WAY(cuStreamCopyAttributes, f(other, s));
    int version = 0;
    CU_OK(cuDriverGetVersion, &version);
    CUdevice device = -1;
    using GetDevice = CUresult (*)(CUstream, CUdevice*);
    if (version >= 12080)
        EACH_WAY_AS(cuStreamGetDevice, GetDevice, f(s, &device));
    CUdevResource sms{};
    using GetResource = CUresult (*)(CUstream, CUdevResource*, CUdevResourceType);
    if (version >= 13010) {
        EACH_WAY_AS(cuStreamGetDevResource, GetResource, f(s, &sms, CU_DEV_RESOURCE_TYPE_SM));
        CHECK_EQ(sms.sm.smCount, 24U);
    }
    CU_OK(cuStreamDestroy, other);
    CU_OK(cuEventDestroy, event);
}

CUgraph capture_launches(CUfunction function) {
    CUgraph graph = nullptr;
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    EACH_WAY(cuStreamIsCapturing, f(s, &status));
    CHECK_EQ(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    EACH_WAY(cuLaunchKernel, f(function, 7, 1, 1, 32, 1, 1, 0, s, nullptr, nullptr));
    CU_OK(cuStreamEndCapture, CU_STREAM_PER_THREAD, &graph);
    return graph;
}

// A captured graph runs in the partition when it is launched into the stream.
void capture(CUfunction function) {
    std::vector<CUgraph> graphs;
    CUgraphExec executable = nullptr;
    EACH_WAY(cuStreamBeginCapture, [&] {
        const CUresult begun = f(s, CU_STREAM_CAPTURE_MODE_GLOBAL);
        graphs.push_back(capture_launches(function));
        return begun;
    }());
    CHECK_EQ(graphs.size(), 3U);
    CUDA_GRAPH_INSTANTIATE_PARAMS parameters{};
    parameters.flags = CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD;
    const auto with = [&](CUstream stream) {
        parameters.hUploadStream = stream;
        parameters.result_out = CUDA_GRAPH_INSTANTIATE_ERROR;
        return &parameters;
    };
    for (const CUgraph graph : graphs)
        EACH_WAY(cuGraphInstantiateWithParams, f(&executable, graph, with(s)));
    CHECK(parameters.hUploadStream == nullptr);
    CHECK_EQ(parameters.result_out, CUDA_GRAPH_INSTANTIATE_SUCCESS);
    EACH_WAY(cuGraphUpload, f(executable, s));
    EACH_WAY(cuGraphLaunch, f(executable, s));
}

// Copies and fills without a stream argument, in their _ptds variants.
void copy_without_naming() {
    CUdeviceptr memory = 0;
    CUdeviceptr other = 0;
    std::array<uint32_t, 16> from{};
    std::array<uint32_t, 16> to{};
    from.fill(0x01020304);
    CU_OK(cuMemAlloc, &memory, 64);
    CU_OK(cuMemAlloc, &other, 64);
#define PTDS(name) inside::function<decltype(&::name)>(SUPPORT_NAME(name) "_ptds")
    const auto check_copied = [&](CUresult result) {
        CHECK_EQ(result, CUDA_SUCCESS);
        CHECK_EQ(PTDS(cuMemcpyDtoH)(to.data(), other, 64), CUDA_SUCCESS);
        CHECK(to == from);
        CHECK_EQ(PTDS(cuMemsetD32)(other, 0, 16), CUDA_SUCCESS);
    };
    CHECK_EQ(PTDS(cuMemcpyHtoD)(memory, from.data(), 64), CUDA_SUCCESS);
    check_copied(PTDS(cuMemcpyDtoD)(other, memory, 64));
    check_copied(PTDS(cuMemcpy)(other, memory, 64));
    check_copied(PTDS(cuMemcpyPeer)(other, nullptr, memory, nullptr, 64));
    const CUDA_MEMCPY2D square = copy_of_square(other, memory);
    check_copied(PTDS(cuMemcpy2D)(&square));
    check_copied(PTDS(cuMemcpy2DUnaligned)(&square));
    from.fill(0x05050505);
    check_copied(PTDS(cuMemsetD8)(other, 5, 64));
    check_copied(PTDS(cuMemsetD16)(other, 0x0505, 32));
    check_copied(PTDS(cuMemsetD32)(other, 0x05050505, 16));
    check_copied(PTDS(cuMemsetD2D8)(other, 16, 5, 16, 4));
    check_copied(PTDS(cuMemsetD2D16)(other, 16, 0x0505, 8, 4));
    check_copied(PTDS(cuMemsetD2D32)(other, 16, 0x05050505, 4, 4));
    // The call waits if the host can read the memory.
    CUdeviceptr managed = 0;
    CU_OK(cuMemAllocManaged, &managed, 64, CU_MEM_ATTACH_GLOBAL);
    const uint64_t waits = support::sim::calls("cuStreamSynchronize");
    CHECK_EQ(PTDS(cuMemsetD8)(memory, 5, 64), CUDA_SUCCESS);
    CHECK_EQ(support::sim::calls("cuStreamSynchronize"), waits);
    CHECK_EQ(PTDS(cuMemsetD8)(managed, 5, 64), CUDA_SUCCESS);
    CHECK_EQ(support::sim::calls("cuStreamSynchronize"), waits + 1);
    CU_OK(cuMemFree, managed);
    CU_OK(cuMemFree, memory);
    CU_OK(cuMemFree, other);
}

void thread_stream_runs_in_partition(const Inside& inside) {
    inside::use_primary();
    const auto use = [&] {
        inside::use_primary();
        inside::check_runs(inside.sms[0], 20, [&] {
            const CUfunction function = inside::kernel();
            use_memory();
            launch_kernels(function);
            ask_stream();
            capture(function);
            copy_without_naming();
        });
    };
    use();
    std::thread(use).join();
}

// The stream and the legacy default stream wait for each other. Other threads do not wait.
void thread_stream_keeps_order(const Inside&) {
    inside::use_primary();
    const CUfunction function = inside::spinner();
    inside::spin(function, CU_STREAM_PER_THREAD);
    CHECK_EQ(CU(cuStreamQuery)(CU_STREAM_PER_THREAD), CUDA_ERROR_NOT_READY);
    std::thread([] {
        inside::use_primary();
        CU_OK(cuStreamQuery, CU_STREAM_PER_THREAD);
    }).join();
    CU_OK(cuStreamSynchronize, nullptr);
    CU_OK(cuStreamQuery, CU_STREAM_PER_THREAD);
    inside::spin(function, nullptr);
    inside::spin(function, CU_STREAM_PER_THREAD);
    // An event in the stream completes after both kernels.
    CUevent event = nullptr;
    CUstream other = nullptr;
    CU_OK(cuEventCreate, &event, CU_EVENT_DISABLE_TIMING);
    CU_OK(cuStreamCreate, &other, CU_STREAM_NON_BLOCKING);
    CU_OK(cuEventRecord, event, CU_STREAM_PER_THREAD);
    CU_OK(cuStreamWaitEvent, other, event, 0);
    const uint64_t before = support::sim::counts().clock_ns;
    CU_OK(cuStreamSynchronize, other);
    CHECK(support::sim::counts().clock_ns - before > 90'000'000);
    // A synchronous _ptds copy waits for the work before it.
    CUdeviceptr memory = 0;
    uint32_t word = 0;
    CU_OK(cuMemAlloc, &memory, 64);
    inside::spin(function, CU_STREAM_PER_THREAD);
    CHECK_EQ(PTDS(cuMemcpyDtoH)(&word, memory, 4), CUDA_SUCCESS);
    CU_OK(cuStreamQuery, CU_STREAM_PER_THREAD);
}

// A thread has one stream per partition. In green contexts of the program the driver refuses it.
void thread_stream_is_per_partition(const Inside& inside) {
    CU_OK(cuInit, 0);
    std::array<CUcontext, 2> primaries{};
    for (CUdevice device = 0; device < 2; device++)
        CU_OK(cuDevicePrimaryCtxRetain, &primaries[static_cast<std::size_t>(device)], device);
    const auto created = support::sim::counts().streams;
    for (int round = 0; round < 3; round++)
        for (std::size_t i = 0; i < 2; i++) {
            CU_OK(cuCtxSetCurrent, primaries[i]);
            inside::check_runs(inside.sms[i], 1, [&] {
                CHECK_EQ(inside::launch(inside::kernel(), CU_STREAM_PER_THREAD), CUDA_SUCCESS);
            });
        }
    CHECK_EQ(support::sim::counts().streams, created + 2);
    CUgreenCtx own = nullptr;
    CUcontext context = nullptr;
    CU_OK(cuGreenCtxCreate, &own, nullptr, 0, CU_GREEN_CTX_DEFAULT_STREAM);
    CU_OK(cuCtxFromGreenCtx, &context, own);
    CU_OK(cuCtxSetCurrent, context);
    CHECK_EQ(inside::launch(inside::kernel(), CU_STREAM_PER_THREAD), CUDA_ERROR_INVALID_HANDLE);
    CU_OK(cuCtxSetCurrent, nullptr);
    CHECK_EQ(CU(cuStreamSynchronize)(CU_STREAM_PER_THREAD),
             NATIVE(cuStreamSynchronize)(CU_STREAM_PER_THREAD));
    CHECK_EQ(CU(cuStreamDestroy)(CU_STREAM_PER_THREAD),
             NATIVE(cuStreamDestroy)(CU_STREAM_PER_THREAD));
}

void use_stream(CUfunction function) {
    CHECK_EQ(inside::launch(function, CU_STREAM_PER_THREAD), CUDA_SUCCESS);
}

unsigned long long stream_id() {
    unsigned long long id = 0;
    CU_OK(cuStreamGetId, CU_STREAM_PER_THREAD, &id);
    return id;
}

// Threads that end leave no stream. A thread that does not use its stream has none.
void thread_stream_ends_with_thread(const Inside& inside) {
    const CUcontext primary = inside::use_primary();
    const CUfunction function = inside::kernel();
    CHECK_EQ(support::sim::counts().streams, 0U);
    use_stream(function);
    CHECK_EQ(support::sim::counts().streams, 1U);
    const unsigned long long mine = stream_id();
    inside::check_runs(inside.sms[0], 360, [&] {
        for (int round = 0; round < 40; round++) {
            std::array<std::thread, 4> all;
            for (std::thread& thread : all)
                thread = std::thread([&, uses = &thread != all.data()] {
                    CU_OK(cuCtxSetCurrent, primary);
                    for (int again = 0; again < 3 && uses; again++)
                        use_stream(function);
                    CHECK(!uses || stream_id() != mine);
                });
            for (std::thread& thread : all)
                thread.join();
            CHECK_EQ(support::sim::counts().streams, 1U);
        }
    });
    CHECK_EQ(stream_id(), mine);
}

// Destructors of the program's thread_local objects can use the stream.
struct Last {
    CUfunction function = nullptr;
    unsigned long long id = 0;
    ~Last() {
        if (function == nullptr)
            return;
        use_stream(function);
        CHECK_EQ(stream_id(), id); // the stream that the thread has used
    }
};
thread_local Last t_last;

void thread_stream_is_usable_in_destructors(const Inside& inside) {
    const CUcontext primary = inside::use_primary();
    static const CUfunction function = inside::kernel();
    use_stream(function);
    inside::check_runs(inside.sms[0], 6, [&] {
        for (int round = 0; round < 3; round++)
            std::thread([&] {
                CU_OK(cuCtxSetCurrent, primary);
                t_last.function = function;
                use_stream(function);
                t_last.id = stream_id();
            }).join();
    });
    CHECK_EQ(support::sim::counts().streams, 1U);
}

// A reset destroys the streams of all threads. Their next use creates new ones.
void thread_stream_ends_with_reset(const Inside& inside) {
    CU_OK(cuInit, 0);
    std::atomic<int> step{0};
    const auto wait_for = [&](int wanted) {
        while (step.load() != wanted)
            std::this_thread::yield();
    };
    inside::use_primary();
    use_stream(inside::kernel());
    std::thread other([&] {
        inside::use_primary();
        use_stream(inside::kernel());
        step = 1;
        wait_for(2);
        // The former context was current in this thread, which enters the new one.
        inside::check_runs(inside.sms[0], 1, [&] { use_stream(inside::kernel()); });
        step = 3;
        wait_for(4); // the thread ends after another reset
    });
    wait_for(1);
    CHECK_EQ(support::sim::counts().streams, 2U);
    CU_OK(cuDevicePrimaryCtxReset, 0);
    CHECK_EQ(support::sim::counts().streams, 0U);
    inside::use_primary();
    inside::check_runs(inside.sms[0], 1, [&] { use_stream(inside::kernel()); });
    step = 2;
    wait_for(3);
    CHECK_EQ(support::sim::counts().streams, 2U);
    CU_OK(cuDevicePrimaryCtxReset, 0);
    step = 4;
    other.join();
    CHECK_EQ(support::sim::counts().streams, 0U);
    CHECK_EQ(support::sim::counts().green_contexts, 0U);
}

// Runs the body in a new thread, which then forks, and returns how the child ends if that thread, its
// only one, ends. The thread returns, since pthread_exit would unwind frames of C++ by the unwinder of
// the C library, which crashes in a program that Zig linked with its own. The exit handler skips
// everything that a process does at its end.
int status_of_ended_thread_after_fork(const std::function<void()>& body) {
    int status = -1;
    std::thread([&] {
        body();
        std::fflush(nullptr);
        const pid_t child = fork();
        if (child == 0) {
            alarm(20);
            std::atexit([] { std::_Exit(7); });
            return;
        }
        waitpid(child, &status, 0);
    }).join();
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// The child of a fork cannot use CUDA, as outside, and it and its threads end normally.
void thread_stream_after_fork_is_refused(const Inside&) {
    inside::use_primary();
    const CUfunction function = inside::kernel();
    use_stream(function);
    const auto refused = [&] {
        return inside::launch(function, CU_STREAM_PER_THREAD) == CUDA_ERROR_NOT_INITIALIZED &&
               CU(cuStreamSynchronize)(CU_STREAM_PER_THREAD) == CUDA_ERROR_NOT_INITIALIZED;
    };
    CHECK_EQ(inside::status_of_child([&] { return refused() ? 7 : 8; }), 7);
    CHECK_EQ(inside::status_of_child([&] {
                 bool in_thread = false;
                 std::thread([&] { in_thread = refused(); }).join();
                 return in_thread ? 7 : 8;
             }),
             7);
    // The key's destructor runs for the list that the child inherits.
    const auto use_thread_stream = [&] {
        inside::use_primary();
        use_stream(function);
    };
    CHECK_EQ(status_of_ended_thread_after_fork(use_thread_stream), 7);
    // Another thread forks while a third creates and destroys streams.
    std::atomic<bool> done{false};
    std::thread busy([&] {
        while (!done.load())
            std::thread(use_thread_stream).join();
    });
    for (int round = 0; round < 20; round++)
        CHECK_EQ(status_of_ended_thread_after_fork(use_thread_stream), 7);
    done = true;
    busy.join();
    use_stream(function);
    CHECK_EQ(support::sim::counts().streams, 1U);
}

// The process ends while threads use their streams. The parent notices a child that hangs or
// crashes.
void process_with_thread_streams_exits(const Inside&) {
    CU_OK(cuInit, 0);
    static const CUcontext primary = inside::retain();
    static const CUfunction function = [] {
        CU_OK(cuCtxSetCurrent, primary);
        return inside::kernel();
    }();
    static std::atomic<int> running{0};
    static const auto launch = CU(cuLaunchKernel);
    use_stream(function);
    const auto run_for_ever = [] {
        CU(cuCtxSetCurrent)(primary);
        running++;
        for (;;)
            std::thread([] {
                CU(cuCtxSetCurrent)(primary);
                launch(function, 1, 1, 1, 1, 1, 1, 0, CU_STREAM_PER_THREAD, nullptr, nullptr);
            }).join();
    };
    for (int i = 0; i < 3; i++)
        std::thread(run_for_ever).detach();
    while (running.load() != 3)
        std::this_thread::yield();
}

} // namespace

int main() {
    for (const std::string& driver : inside::kDrivers) {
        inside::run({.spec = "h100@" + driver}, thread_stream_runs_in_partition);
        inside::run({.spec = "h100@" + driver}, thread_stream_keeps_order);
    }
    inside::run({.spec = "2xh100@13.0", .sms = {24, 16}}, thread_stream_is_per_partition);
    for (const char* const driver : {"12.4", "13.0", "13.5"}) {
        const inside::Setup setup = {.spec = std::string("h100@") + driver};
        inside::run(setup, thread_stream_ends_with_thread);
        inside::run(setup, thread_stream_is_usable_in_destructors);
        inside::run(setup, thread_stream_ends_with_reset);
    }
    inside::run({}, thread_stream_after_fork_is_refused);
    for (int round = 0; round < 10; round++)
        inside::run({}, process_with_thread_streams_exits);
    return check::summary("threads' own streams inside");
}

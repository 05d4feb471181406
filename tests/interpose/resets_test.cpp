// Threads of a program inside a partition next to one that resets the device again and again. Each
// of their calls succeeds within the partition or fails. After the resets all of them succeed.
#include "inside.hpp"

#include <array>
#include <atomic>
#include <cstdio>
#include <functional>
#include <thread>
#include <vector>

namespace {

using inside::Inside;

// What a thread does again and again. Returns whether all of its calls succeeded.
using Round = std::function<bool()>;

// Runs the rounds in a thread each, next to resets. A reset begins during the threads' rounds, of
// which each thread has a few per reset, since a green context costs memory of the device for ever.
// Afterwards each round succeeds in a new thread. A reset may be refused with the given result.
void reset_beside(const std::vector<Round>& rounds, CUresult refused = CUDA_SUCCESS) {
    constexpr std::size_t kRoundsPerReset = 3;
    std::atomic<bool> done{false};
    std::atomic<std::size_t> resets{0};
    std::atomic<std::size_t> ended{0};
    std::vector<std::thread> threads;
    for (const Round& round : rounds)
        threads.emplace_back([&] {
            for (std::size_t mine = 0; !done.load();) {
                if (mine >= kRoundsPerReset * (resets.load() + 1)) {
                    std::this_thread::yield();
                    continue;
                }
                round();
                mine++;
                ended++;
            }
        });
    for (const std::size_t wanted = check::slow ? 30 : 150; resets.load() < wanted; resets++) {
        while (ended.load() < rounds.size() * (kRoundsPerReset * resets.load() + 1))
            std::this_thread::yield();
        const CUresult result = CU(cuDevicePrimaryCtxReset)(0);
        CHECK(result == CUDA_SUCCESS || result == refused);
    }
    done = true;
    for (std::thread& thread : threads)
        thread.join();
    for (std::size_t i = 0; i < rounds.size(); i++)
        std::thread([&] {
            if (!CHECK(rounds[i]()))
                std::fprintf(stderr, "round %zu\n", i);
        }).join();
}

bool enter() {
    CUcontext primary = nullptr;
    return CU(cuDevicePrimaryCtxRetain)(&primary, 0) == CUDA_SUCCESS &&
           CU(cuCtxSetCurrent)(primary) == CUDA_SUCCESS;
}

// Like inside::kernel(), which requires success.
bool load(CUfunction* function) {
    CUmodule module = nullptr;
    return enter() && CU(cuModuleLoadData)(&module, inside::kPtx) == CUDA_SUCCESS &&
           CU(cuModuleGetFunction)(function, module, "work") == CUDA_SUCCESS;
}

// Launches until an error, which a reset causes, but not for ever.
bool launch_often(CUstream stream, CUfunction function) {
    for (int i = 0; i < 10; i++)
        if (inside::launch(function, stream) != CUDA_SUCCESS)
            return false;
    return true;
}

bool launch_in_thread_stream() {
    CUfunction function = nullptr;
    return load(&function) && launch_often(CU_STREAM_PER_THREAD, function) &&
           CU(cuStreamSynchronize)(CU_STREAM_PER_THREAD) == CUDA_SUCCESS;
}

bool launch_in_legacy_stream() {
    CUfunction function = nullptr;
    return load(&function) && launch_often(nullptr, function);
}

// After an error the stream is not destroyed: a reset did that.
bool launch_in_blocking_stream() {
    CUfunction function = nullptr;
    CUstream stream = nullptr;
    return load(&function) && CU(cuStreamCreate)(&stream, CU_STREAM_DEFAULT) == CUDA_SUCCESS &&
           launch_often(stream, function) && launch_often(nullptr, function) &&
           CU(cuStreamDestroy)(stream) == CUDA_SUCCESS;
}

bool launch_in_ending_thread() {
    bool launched = false;
    std::thread([&] { launched = launch_in_thread_stream(); }).join();
    return launched;
}

// A reset destroys nothing that belongs to a thread's stream while a call uses it.
void launches_run_in_partition(const Inside& inside) {
    CU_OK(cuInit, 0);
    inside::check_runs(inside.sms[0], 3, [] {
        reset_beside({launch_in_thread_stream, launch_in_legacy_stream, launch_in_blocking_stream,
                      launch_in_ending_thread, launch_in_ending_thread});
    });
}

// Only one kind of launch, so that most resets happen during one.
void thread_streams_run_in_partition(const Inside& inside) {
    CU_OK(cuInit, 0);
    inside::check_runs(inside.sms[0], 3, [] {
        reset_beside({launch_in_thread_stream, launch_in_thread_stream, launch_in_ending_thread});
    });
}

// Asks for the resource often, since few of the calls meet a reset at the right moment.
template <class Ask>
bool ask_often(const Ask& ask) {
    bool all = true;
    for (int i = 0; i < 100; i++) {
        CUdevResource sms{};
        const CUresult result = ask(&sms);
        if (result == CUDA_SUCCESS)
            CHECK_EQ(sms.sm.smCount, 24U);
        all = all && result == CUDA_SUCCESS;
    }
    return all;
}

bool ask_device() {
    return enter() && ask_often([](CUdevResource* sms) {
               return CU(cuDeviceGetDevResource)(0, sms, CU_DEV_RESOURCE_TYPE_SM);
           });
}

bool ask_context() {
    CUcontext primary = nullptr;
    return enter() && CU(cuDevicePrimaryCtxRetain)(&primary, 0) == CUDA_SUCCESS &&
           ask_often([&](CUdevResource* sms) {
               return CU(cuCtxGetDevResource)(primary, sms, CU_DEV_RESOURCE_TYPE_SM);
           });
}

bool retain_only() {
    return enter();
}

void resources_are_the_partition(const Inside&) {
    CU_OK(cuInit, 0);
    reset_beside({ask_device, ask_context, ask_context, retain_only});
}

// Creates a green context of all SMs that the device has for the program, and launches in it.
bool use_green_context() {
    CUdevResource sms{};
    CUdevResourceDesc description = nullptr;
    CUgreenCtx green = nullptr;
    CUcontext context = nullptr;
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    if (!enter() || CU(cuDeviceGetDevResource)(0, &sms, CU_DEV_RESOURCE_TYPE_SM) != CUDA_SUCCESS ||
        CU(cuDevResourceGenerateDesc)(&description, &sms, 1) != CUDA_SUCCESS ||
        CU(cuGreenCtxCreate)(&green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM) != CUDA_SUCCESS)
        return false;
    const bool launched = CU(cuCtxFromGreenCtx)(&context, green) == CUDA_SUCCESS &&
                          CU(cuCtxSetCurrent)(context) == CUDA_SUCCESS &&
                          CU(cuModuleLoadData)(&module, inside::kPtx) == CUDA_SUCCESS &&
                          CU(cuModuleGetFunction)(&function, module, "work") == CUDA_SUCCESS &&
                          inside::launch(function, nullptr) == CUDA_SUCCESS;
    CU(cuCtxSetCurrent)(nullptr);
    return CU(cuGreenCtxDestroy)(green) == CUDA_SUCCESS && launched;
}

// Drivers since 13.0 refuse a reset while the program has a green context.
void green_contexts_run_in_partition(const Inside& inside) {
    CU_OK(cuInit, 0);
    inside::check_runs(inside.sms[0], 1, [] {
        reset_beside({use_green_context, use_green_context, ask_context, launch_in_legacy_stream},
                     CUDA_ERROR_NOT_PERMITTED);
    });
}

} // namespace

int main() {
    for (const char* const driver : {"12.4", "13.0", "13.5"}) {
        const inside::Setup setup = {.spec = std::string("h100@") + driver};
        inside::run(setup, launches_run_in_partition);
        inside::run(setup, thread_streams_run_in_partition);
        inside::run(setup, resources_are_the_partition);
        inside::run(setup, green_contexts_run_in_partition);
    }
    return check::summary("resets inside");
}

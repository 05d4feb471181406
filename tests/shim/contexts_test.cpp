// What is current in threads of programs inside a partition, and where their kernels run.
#include "inside.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <thread>

namespace {

using inside::Inside;
using inside::kernel;
using inside::launch;
using inside::Wish;

CUcontext retain(CUdevice device = 0) {
    CUcontext primary = nullptr;
    CU_OK(cuDevicePrimaryCtxRetain, &primary, device);
    return primary;
}

// A kernel in each kind of stream that the thread can have.
void run_everywhere() {
    CUfunction function = kernel();
    CUstream plain = nullptr;
    CUstream urgent = nullptr;
    CUdeviceptr memory = 0;
    CU_OK(cuStreamCreate, &plain, CU_STREAM_DEFAULT);
    CU_OK(cuStreamCreateWithPriority, &urgent, CU_STREAM_NON_BLOCKING, -5);
    for (const CUstream stream :
         {static_cast<CUstream>(nullptr), CU_STREAM_LEGACY, CU_STREAM_PER_THREAD, plain, urgent})
        CHECK_EQ(launch(function, stream), CUDA_SUCCESS);
    const auto per_thread = inside::function<decltype(&::cuLaunchKernel)>("cuLaunchKernel_ptsz");
    CHECK_EQ(per_thread(function, 7, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr), CUDA_SUCCESS);
    CU_OK(cuMemAlloc, &memory, 4096);
    CU_OK(cuMemsetD32, memory, 1, 1024);
    CU_OK(cuMemFree, memory);
    CU_OK(cuCtxSynchronize);
    CU_OK(cuStreamDestroy, plain);
    CU_OK(cuStreamDestroy, urgent);
}

void check_current(CUcontext expected) {
    CUcontext current = nullptr;
    CU_OK(cuCtxGetCurrent, &current);
    CHECK_EQ(current, expected);
}

// As cudart, torch and JAX do.
void retain_then_set(const Inside& inside) {
    CU_OK(cuInit, 0);
    const CUcontext primary = retain();
    check_current(nullptr);
    inside::note_runs();
    CU_OK(cuCtxSetCurrent, primary);
    check_current(primary);
    run_everywhere();
    inside::check_runs(inside.sms[0], 7);
    // Threads of its own, and what they push.
    std::thread([&] {
        CU_OK(cuCtxPushCurrent, primary);
        check_current(primary);
        inside::note_runs();
        run_everywhere();
        inside::check_runs(inside.sms[0], 7);
        CUcontext popped = nullptr;
        CU_OK(cuCtxPopCurrent, &popped);
        CHECK_EQ(popped, primary);
        check_current(nullptr);
    }).join();
}

// As cudart does in its first thread, by tables of its own: it knows the primary context, and has
// it current, before it retains it where others see it.
void set_before_retain(const Inside& inside) {
    CU_OK(cuInit, 0);
    CUcontext primary = nullptr;
    CHECK_EQ(NATIVE(cuDevicePrimaryCtxRetain)(&primary, 0), CUDA_SUCCESS);
    CHECK_EQ(NATIVE(cuCtxSetCurrent)(primary), CUDA_SUCCESS);
    inside::note_runs();
    run_everywhere();
    inside::check_runs(inside.sms[0], 7);
    check_current(primary);
    CHECK_EQ(retain(), primary);
    std::thread([&] {
        CHECK_EQ(NATIVE(cuCtxSetCurrent)(primary), CUDA_SUCCESS);
        inside::note_runs();
        run_everywhere();
        inside::check_runs(inside.sms[0], 7);
    }).join();
    // By the function that everybody sees, of a context that nobody has retained there.
    std::thread([&] {
        CU_OK(cuCtxSetCurrent, primary);
        inside::note_runs();
        CHECK_EQ(launch(kernel(), nullptr), CUDA_SUCCESS);
        inside::check_runs(inside.sms[0]);
    }).join();
}

void on_every_driver(const std::function<void(const Inside&)>& body) {
    for (const std::string& driver : inside::kDrivers)
        inside::run({.spec = "h100@" + driver}, body);
}

} // namespace

int main() {
    on_every_driver(retain_then_set);
    on_every_driver(set_before_retain);
    return check::summary("contexts inside");
}

// Current contexts of programs inside a partition, and the SMs that their kernels run on.
#include "inside.hpp"

#include <algorithm>
#include <functional>
#include <thread>

namespace {

using inside::Inside;
using inside::kernel;
using inside::launch;
using inside::Setup;

// Launches a kernel in each kind of stream.
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

// The order of cudart, PyTorch and JAX.
void context_retained_and_set_runs_in_partition(const Inside& inside) {
    CU_OK(cuInit, 0);
    const CUcontext primary = inside::retain();
    check_current(nullptr);
    inside::check_runs(inside.sms[0], 7, [&] {
        CU_OK(cuCtxSetCurrent, primary);
        check_current(primary);
        run_everywhere();
    });
    // Another thread pushes the context.
    std::thread([&] {
        CU_OK(cuCtxPushCurrent, primary);
        check_current(primary);
        inside::check_runs(inside.sms[0], 7, run_everywhere);
        CUcontext popped = nullptr;
        CU_OK(cuCtxPopCurrent, &popped);
        CHECK_EQ(popped, primary);
        check_current(nullptr);
    }).join();
}

// The order of cudart in its first thread: by private tables it makes the primary context current
// before it retains it by a hook.
void context_set_before_retain_runs_in_partition(const Inside& inside) {
    CU_OK(cuInit, 0);
    CUcontext primary = nullptr;
    CHECK_EQ(NATIVE(cuDevicePrimaryCtxRetain)(&primary, 0), CUDA_SUCCESS);
    CHECK_EQ(NATIVE(cuCtxSetCurrent)(primary), CUDA_SUCCESS);
    inside::check_runs(inside.sms[0], 7, run_everywhere);
    check_current(primary);
    CHECK_EQ(inside::retain(), primary);
    std::thread([&] {
        CHECK_EQ(NATIVE(cuCtxSetCurrent)(primary), CUDA_SUCCESS);
        inside::check_runs(inside.sms[0], 7, run_everywhere);
    }).join();
    // A hook gets a context that no hook has retained.
    std::thread([&] {
        CU_OK(cuCtxSetCurrent, primary);
        inside::check_runs(inside.sms[0], 1,
                           [&] { CHECK_EQ(launch(kernel(), nullptr), CUDA_SUCCESS); });
    }).join();
}

// The stack of contexts is as without gcx.
void context_stack_is_as_outside(const Inside& inside) {
    CU_OK(cuInit, 0);
    const CUcontext primary = inside::retain();
    CUcontext popped = nullptr;
    CU_OK(cuCtxPushCurrent, primary);
    CU_OK(cuCtxPushCurrent, primary);
    CU_OK(cuCtxSetCurrent, nullptr);
    check_current(primary); // the first one
    CU_OK(cuCtxSetCurrent, primary);
    inside::check_runs(inside.sms[0], 1,
                       [&] { CHECK_EQ(launch(kernel(), nullptr), CUDA_SUCCESS); });
    CU_OK(cuCtxPopCurrent, nullptr);
    check_current(nullptr);
    CHECK_EQ(CU(cuCtxPopCurrent)(&popped), CUDA_ERROR_INVALID_CONTEXT);
    CHECK_EQ(CU(cuCtxPushCurrent)(nullptr), NATIVE(cuCtxPushCurrent)(nullptr));
    const auto forged = reinterpret_cast<CUcontext>(uintptr_t{0x1234560});
    CHECK_EQ(CU(cuCtxPushCurrent)(forged), CUDA_ERROR_INVALID_CONTEXT);
    CHECK_EQ(CU(cuCtxSetCurrent)(forged), CUDA_ERROR_INVALID_CONTEXT);
}

// All functions that return a context return the primary one, as without gcx.
void context_handle_is_the_primary_one(const Inside&) {
    CU_OK(cuInit, 0);
    const CUcontext primary = inside::retain();
    CHECK_EQ(inside::retain(), primary);
    CU_OK(cuCtxSetCurrent, primary);
    CUstream stream = nullptr;
    CUcontext context = nullptr;
    CU_OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    const auto first = inside::function<CUresult (*)(CUstream, CUcontext*)>("cuStreamGetCtx");
    for (const CUstream any : {stream, static_cast<CUstream>(nullptr), CU_STREAM_PER_THREAD}) {
        context = nullptr;
        CHECK_EQ(first(any, &context), CUDA_SUCCESS);
        CHECK_EQ(context, primary);
    }
    CUgreenCtx green = reinterpret_cast<CUgreenCtx>(&context);
    CU_OK(cuStreamGetGreenCtx, stream, &green);
    CHECK(green == nullptr);
    int version = 0;
    CU_OK(cuDriverGetVersion, &version);
    if (version >= 12050) {
        const auto second =
            inside::function<CUresult (*)(CUstream, CUcontext*, CUgreenCtx*)>("cuStreamGetCtx_v2");
        green = reinterpret_cast<CUgreenCtx>(&context);
        CHECK_EQ(second(stream, &context, &green), CUDA_SUCCESS);
        CHECK(context == primary && green == nullptr);
    }
    unsigned long long its_id = 0;
    unsigned long long current_id = 0;
    CU_OK(cuCtxGetId, primary, &its_id);
    CU_OK(cuCtxGetId, nullptr, &current_id);
    CHECK_EQ(its_id, current_id);
    CUdeviceptr memory = 0;
    CU_OK(cuMemAlloc, &memory, 64);
    CU_OK(cuPointerGetAttribute, &context, CU_POINTER_ATTRIBUTE_CONTEXT, memory);
    CHECK_EQ(context, primary);
    CUdevice device = -1;
    CU_OK(cuCtxGetDevice, &device);
    CHECK_EQ(device, 0);
}

void devices_run_in_their_partitions(const Inside& inside) {
    CU_OK(cuInit, 0);
    for (CUdevice device = 0; device < 3; device++) {
        const CUcontext primary = inside::retain(device);
        CU_OK(cuCtxSetCurrent, primary);
        check_current(primary);
        const bool planned = device != 1;
        const inside::Sms all = {~uint64_t{0}, ~uint64_t{0}, 0xf, 0, 0, 0};
        inside::check_runs(planned ? inside.sms[static_cast<std::size_t>(device)] : all, 7,
                           run_everywhere);
        int count = 0;
        CU_OK(cuDeviceGetAttribute, &count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
        CHECK_EQ(count, !planned ? 132 : device == 0 ? 24 : 16);
    }
}

} // namespace

int main() {
    inside::run_on_every_driver(context_retained_and_set_runs_in_partition);
    inside::run_on_every_driver(context_set_before_retain_runs_in_partition);
    inside::run_on_every_driver(context_stack_is_as_outside);
    inside::run_on_every_driver(context_handle_is_the_primary_one);
    inside::run({.spec = "2xh100,a100@13.0", .sms = {24, 0, 16}}, devices_run_in_their_partitions);
    inside::run({.sms = {10}, .split_flags = GCX_SPLIT_IGNORE_SM_COSCHEDULING},
                context_retained_and_set_runs_in_partition);
    inside::run({.sms = {48}, .split_flags = GCX_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE},
                context_retained_and_set_runs_in_partition);
    inside::run({.sms = {132}}, context_retained_and_set_runs_in_partition);
    return check::summary("contexts inside");
}

// Programs inside a partition that reset, release, fork, run in many threads, and exit.
#include "inside.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace {

using inside::Inside;

void launch_somewhere() {
    CUstream stream = nullptr;
    CU_OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    const CUfunction function = inside::kernel();
    CHECK_EQ(inside::launch(function, stream), CUDA_SUCCESS);
    CHECK_EQ(inside::launch(function, nullptr), CUDA_SUCCESS);
    CU_OK(cuCtxSynchronize);
    CU_OK(cuStreamDestroy, stream);
}

int is_active() {
    unsigned flags = 0;
    int active = -1;
    CU_OK(cuDevicePrimaryCtxGetState, 0, &flags, &active);
    return active;
}

// Like cudaDeviceReset, while the context is current in another thread.
void device_reset_enters_new_partition(const Inside& inside) {
    CU_OK(cuInit, 0);
    for (int round = 0; round < 3; round++) {
        const CUcontext primary = inside::retain();
        CU_OK(cuCtxSetCurrent, primary);
        inside::check_runs(inside.sms[0], 2, launch_somewhere);
        std::thread([&] {
            CU_OK(cuCtxSetCurrent, primary);
            CU_OK(cuDevicePrimaryCtxReset, 0);
            CHECK_EQ(is_active(), 0);
            CHECK_EQ(support::sim::counts().green_contexts, 0U);
            const CUcontext again = inside::retain();
            CU_OK(cuCtxSetCurrent, again);
            inside::check_runs(inside.sms[0], 2, launch_somewhere);
        }).join();
        // The former context was current in this thread, which enters the new one.
        inside::check_runs(inside.sms[0], 2, launch_somewhere);
        CUcontext current = nullptr;
        CU_OK(cuCtxGetCurrent, &current);
        CHECK_EQ(current, inside::retain());
        CU_OK(cuDevicePrimaryCtxReset, 0);
    }
}

// While the program has a green context, the driver refuses a reset. The partition is unchanged.
void device_reset_refused_keeps_partition(const Inside& inside) {
    inside::use_primary();
    CUgreenCtx own = nullptr;
    CU_OK(cuGreenCtxCreate, &own, nullptr, 0, CU_GREEN_CTX_DEFAULT_STREAM);
    CUstream stream = nullptr;
    CU_OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    CHECK_EQ(CU(cuDevicePrimaryCtxReset)(0), CUDA_ERROR_NOT_PERMITTED);
    inside::check_runs(inside.sms[0], 1,
                       [&] { CHECK_EQ(inside::launch(inside::kernel(), stream), CUDA_SUCCESS); });
    CU_OK(cuGreenCtxDestroy, own);
    CU_OK(cuDevicePrimaryCtxReset, 0);
}

void primary_context_released_stays_usable(const Inside& inside) {
    CU_OK(cuInit, 0);
    CHECK_EQ(CU(cuDevicePrimaryCtxRelease)(0), CUDA_ERROR_INVALID_CONTEXT);
    inside::retain();
    const CUcontext primary = inside::retain();
    CU_OK(cuDevicePrimaryCtxRelease, 0);
    CU_OK(cuDevicePrimaryCtxRelease, 0);
    // The program cannot release the reference of gcx.
    CHECK_EQ(CU(cuDevicePrimaryCtxRelease)(0), CUDA_ERROR_INVALID_CONTEXT);
    CHECK_EQ(inside::retain(), primary);
    CU_OK(cuCtxSetCurrent, primary);
    inside::check_runs(inside.sms[0], 2, launch_somewhere);
}

// Waiting for the primary context includes the program's green contexts.
void context_synchronized_includes_green_contexts(const Inside&) {
    inside::use_primary();
    CUgreenCtx own = nullptr;
    CUcontext context = nullptr;
    CU_OK(cuGreenCtxCreate, &own, nullptr, 0, CU_GREEN_CTX_DEFAULT_STREAM);
    CU_OK(cuCtxFromGreenCtx, &context, own);
    const CUfunction spinner = inside::spinner();
    CUstream stream = nullptr;
    CU_OK(cuCtxPushCurrent, context);
    CU_OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    CU_OK(cuCtxPopCurrent, &context);
    inside::spin(spinner, stream);
    CHECK_EQ(CU(cuStreamQuery)(stream), CUDA_ERROR_NOT_READY);
    CU_OK(cuCtxSynchronize);
    CU_OK(cuStreamQuery, stream);
}

// All threads get the same context.
void threads_share_the_context(const Inside& inside) {
    CU_OK(cuInit, 0);
    inside::check_runs(inside.sms[0], 8 * 20 * 2, [&] {
        std::atomic<CUcontext> first{nullptr};
        std::vector<std::thread> all;
        for (int i = 0; i < 8; i++)
            all.emplace_back([&] {
                const CUcontext primary = inside::retain();
                CUcontext none = nullptr;
                CHECK(first.compare_exchange_strong(none, primary) || none == primary);
                for (int round = 0; round < 20; round++) {
                    CU_OK(cuCtxPushCurrent, primary);
                    launch_somewhere();
                    CUcontext popped = nullptr;
                    CU_OK(cuCtxPopCurrent, &popped);
                    CHECK_EQ(popped, primary);
                }
                CU_OK(cuDevicePrimaryCtxRelease, 0);
            });
        for (std::thread& thread : all)
            thread.join();
    });
    CHECK_EQ(support::sim::counts().green_contexts, 1U);
}

// The child of a fork can use CUDA if the parent has not started it.
void fork_is_as_outside(const Inside& inside) {
    CHECK_EQ(inside::status_of_child([&] {
                 inside::check_runs(inside.sms[0], 2, [&] {
                     CU_OK(cuInit, 0);
                     inside::use_primary();
                     launch_somewhere();
                 });
                 return check::failed != 0 ? 1 : 0;
             }),
             0);
    inside::use_primary();
    CHECK_EQ(inside::status_of_child([&] {
                 CUcontext out = nullptr;
                 CUstream stream = nullptr;
                 int count = 0;
                 CUdeviceptr memory = 0;
                 const bool as_outside =
                     CU(cuDevicePrimaryCtxRetain)(&out, 0) == CUDA_ERROR_NOT_INITIALIZED &&
                     CU(cuCtxGetCurrent)(&out) == CUDA_ERROR_NOT_INITIALIZED &&
                     CU(cuStreamCreate)(&stream, 0) == CUDA_ERROR_NOT_INITIALIZED &&
                     CU(cuMemAlloc)(&memory, 64) == CUDA_ERROR_NOT_INITIALIZED &&
                     CU(cuDeviceGetAttribute)(&count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
                                              0) == CUDA_ERROR_NOT_INITIALIZED &&
                     CU(cuDevicePrimaryCtxReset)(0) == CUDA_ERROR_NOT_INITIALIZED;
                 return as_outside ? 0 : 1;
             }),
             0);
    launch_somewhere();
}

// The child gets an error and does not wait for a lock that another thread of the parent held.
void fork_during_reset_does_not_block(const Inside&) {
    CU_OK(cuInit, 0);
    const auto retain_primary = CU(cuDevicePrimaryCtxRetain);
    const auto reset_primary = CU(cuDevicePrimaryCtxReset);
    std::atomic<bool> done{false};
    std::thread other([&] {
        for (CUcontext primary = nullptr; !done.load();) {
            CHECK_EQ(retain_primary(&primary, 0), CUDA_SUCCESS);
            CHECK_EQ(reset_primary(0), CUDA_SUCCESS);
        }
    });
    for (int round = 0; round < 40; round++)
        CHECK_EQ(inside::status_of_child(
                     [&] { return reset_primary(0) == CUDA_ERROR_NOT_INITIALIZED ? 0 : 1; }),
                 0);
    done.store(true);
    other.join();
}

uint32_t live_reservations(const char* folder) {
    uint32_t count = 0;
    const gcx_result result = gcx_reservation_list(folder, nullptr, 0, &count);
    CHECK(result == GCX_SUCCESS || result == GCX_ERROR_INSUFFICIENT_CAPACITY);
    return count;
}

// The program keeps the reservation after its owner has released it and the descriptor is closed.
void reservation_is_kept_until_exit(const Inside& inside) {
    char folder[] = "/tmp/gcx-shim-reservations-XXXXXX";
    CHECK(mkdtemp(folder) != nullptr);
    CHECK_OK(gcx_driver_open("sim:h100@13.0"));
    gcx_reservation_params params = GCX_RESERVATION_PARAMS_INIT;
    gcx_reservation reservation = nullptr;
    params.folder = folder;
    CHECK_OK(gcx_reservation_acquire(0, 24, &params, &reservation));
    char token[GCX_MAX_RESERVATION_TOKEN] = "";
    CHECK_OK(gcx_reservation_get_token(reservation, token, sizeof token));
    gcx::interpose::Plan plan = inside.plan;
    plan.devices[0].token = token;
    setenv("GCX_EXEC_PLAN", write_plan(plan).c_str(), 1);
    inside::use_primary();
    CHECK_OK(gcx_reservation_release(reservation));
    CHECK_EQ(live_reservations(folder), 1U);
    launch_somewhere();
    CHECK_EQ(inside::status_of_child([&] { return live_reservations(folder) == 1 ? 0 : 1; }), 0);
    CHECK_EQ(std::system((std::string("rm -r ") + folder).c_str()), 0);
}

// Without its reservation the program must not run, since the SMs can be reserved by others.
void reservation_lost_refuses_program(const Inside&) {
    CU_OK(cuInit, 0);
    CUcontext primary = nullptr;
    CUresult result = CUDA_SUCCESS;
    const std::string line =
        inside::lines_of([&] { result = CU(cuDevicePrimaryCtxRetain)(&primary, 0); });
    CHECK(result != CUDA_SUCCESS && primary == nullptr);
    CHECK_EQ(line.substr(0, 44), "gcx exec: device 0: no partition of 24 SMs: ");
    CHECK_EQ(support::sim::counts().green_contexts, 0U);
    CHECK_EQ(support::sim::counts().primary_retains, 0U);
}

// The process ends without destroying anything.
void process_exits_with_live_objects(const Inside&) {
    inside::use_primary();
    CUstream stream = nullptr;
    CUdeviceptr memory = 0;
    CU_OK(cuStreamCreate, &stream, 0);
    CU_OK(cuMemAlloc, &memory, 4096);
    CHECK_EQ(inside::launch(inside::kernel(), stream), CUDA_SUCCESS);
}

} // namespace

int main() {
    for (const char* const driver : {"12.4", "13.0", "13.5"}) {
        const inside::Setup setup = {.spec = std::string("h100@") + driver};
        inside::run(setup, device_reset_enters_new_partition);
        inside::run(setup, primary_context_released_stays_usable);
        inside::run(setup, context_synchronized_includes_green_contexts);
        inside::run(setup, threads_share_the_context);
        inside::run(setup, process_exits_with_live_objects);
    }
    inside::run({}, device_reset_refused_keeps_partition);
    inside::run({}, fork_is_as_outside);
    inside::run({}, fork_during_reset_does_not_block);
    inside::run({}, reservation_is_kept_until_exit);
    inside::run_damaged(
        {}, [](gcx::interpose::Plan& plan) { plan.devices[0].token = "/nowhere/reservation-1"; },
        reservation_lost_refuses_program);
    return check::summary("lifetimes inside");
}

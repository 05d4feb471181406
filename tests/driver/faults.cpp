// Faults, resets and the end of a process.
#include "targets.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <thread>

namespace conformance {
namespace {

std::string synchronize_in(CUcontext context) {
    const CUresult current = CU(cuCtxSetCurrent)(context);
    return current != CUDA_SUCCESS ? "cuCtxSetCurrent " + name_of(current)
                                   : name_of(CU(cuCtxSynchronize)());
}

std::string reset() {
    return name_of(CU(cuDevicePrimaryCtxReset_v2)(gpu.device));
}

// Retains and uses the primary context again.
std::string use_again() {
    CUcontext context = nullptr;
    const CUresult retained = CU(cuDevicePrimaryCtxRetain)(&context, gpu.device);
    if (retained != CUDA_SUCCESS)
        return "retain " + name_of(retained);
    const CUresult current = CU(cuCtxSetCurrent)(context);
    CUdeviceptr memory = 0;
    const CUresult allocated = current != CUDA_SUCCESS ? current : CU(cuMemAlloc_v2)(&memory, 64);
    return "alloc " + name_of(allocated);
}

// -- Claim 27: a kernel's fault

std::string fault_in_green() {
    must(launch(kernels.trap, non_blocking_stream()), "gcx_trap");
    std::string answer = "green " + synchronize_in(gpu.green);
    answer += ", primary " + synchronize_in(gpu.primary);
    answer += ", another " + synchronize_in(gpu.other);
    answer += "; reset " + reset();
    answer += ", destroy " + name_of(CU(cuGreenCtxDestroy)(gpu.green_handle)) + " " +
              name_of(CU(cuGreenCtxDestroy)(gpu.other_handle));
    answer += ", reset " + reset();
    return answer + ", " + use_again();
}

std::string fault_in_primary() {
    must(launch(kernels.trap, non_blocking_stream()), "gcx_trap");
    std::string answer = "primary " + synchronize_in(gpu.primary);
    answer += ", in another thread ";
    in_thread(nullptr, [&] { answer += synchronize_in(gpu.primary); });
    answer += "; reset " + reset();
    return answer + ", " + use_again();
}

std::string fault_in_primary_with_green() {
    make_current(gpu.primary);
    must(launch(kernels.trap, non_blocking_stream()), "gcx_trap");
    std::string answer = "primary " + synchronize_in(gpu.primary);
    answer += ", green " + synchronize_in(gpu.green);
    answer += "; destroy " + name_of(CU(cuGreenCtxDestroy)(gpu.green_handle)) + " " +
              name_of(CU(cuGreenCtxDestroy)(gpu.other_handle));
    answer += ", reset " + reset();
    return answer + ", " + use_again();
}

// -- Claim 30: a reset during calls in other threads

// A thread that has the primary context current does its steps between those of the check. The
// launch is a check of its own, as a driver may crash on a function of a context that is gone.
std::string reset_beside_thread(bool launches) {
    std::string answer;
    std::mutex mutex;
    std::condition_variable changed;
    int step = 0;
    const auto reach = [&](int value) {
        const std::lock_guard lock(mutex);
        step = value;
        changed.notify_all();
    };
    const auto await = [&](int value) {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return step >= value; });
    };
    std::thread other([&] {
        CUdeviceptr memory = 0;
        CU(cuCtxSetCurrent)(gpu.primary);
        CU(cuMemAlloc_v2)(&memory, 64);
        reach(1);
        await(2);
        answer += ", then in the other thread: ";
        if (launches) {
            answer += "launch " + name_of(spin(nullptr, 1));
            return;
        }
        answer += "memset in NULL " + name_of(CU(cuMemsetD8Async)(memory, 0, 4, nullptr));
        answer += ", alloc " + name_of(CU(cuMemAlloc_v2)(&memory, 64));
        answer += ", synchronize " + name_of(CU(cuCtxSynchronize)());
    });
    await(1);
    answer = "reset " + reset();
    reach(2);
    other.join();
    return answer + "; in the first: " + use_again();
}

std::string reset_with_green_contexts() {
    std::string answer = "reset " + reset();
    answer += ", green " + synchronize_in(gpu.green);
    answer += ", destroy " + name_of(CU(cuGreenCtxDestroy)(gpu.green_handle)) + " " +
              name_of(CU(cuGreenCtxDestroy)(gpu.other_handle));
    answer += ", reset " + reset();
    return answer + ", " + use_again();
}

std::string reset_with_work() {
    const CUstream stream = non_blocking_stream();
    must(spin(stream), "gcx_spin");
    const std::string answer = "reset " + reset();
    return answer + ", " + use_again();
}

std::string last_release() {
    unsigned flags = 0;
    int active = 2;
    std::string answer = "release " + name_of(CU(cuDevicePrimaryCtxRelease_v2)(gpu.device));
    MUST(cuDevicePrimaryCtxGetState, gpu.device, &flags, &active);
    answer += ", active: " + std::string(yes_no(active != 0));
    CUdeviceptr memory = 0;
    answer += ", alloc " + name_of(CU(cuMemAlloc_v2)(&memory, 64));
    return answer + ", " + use_again();
}

// -- Claim 29: the end of a process

// Runs the body in a new process that ends by exit(), and returns how it ended.
std::string end_of_process(const char* role) {
    const pid_t pid = fork();
    if (pid == 0) {
        execl("/proc/self/exe", "driver-conformance", "--exit", role, nullptr);
        _exit(127);
    }
    for (int i = 0; i < 1'000; i++) {
        int status = 0;
        if (waitpid(pid, &status, WNOHANG) == pid)
            return WIFSIGNALED(status) ? "signal " + std::to_string(WTERMSIG(status))
                                       : "status " + std::to_string(WEXITSTATUS(status));
        usleep(10'000);
    }
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    return "does not end";
}

} // namespace

void exit_as(const std::string& role) {
    prepare(Needs::kPrimary);
    if (role == "busy") {
        must(spin(non_blocking_stream(), 100 * kMillisecond), "gcx_spin");
    } else if (role == "thread") {
        // A thread that used its stream waits when the process ends.
        // Never destroyed, as the thread still waits then.
        auto& mutex = *new std::mutex;
        auto& changed = *new std::condition_variable;
        auto& used = *new bool(false);
        std::thread([&] {
            CU(cuCtxSetCurrent)(gpu.primary);
            spin(CU_STREAM_PER_THREAD, 1);
            std::unique_lock lock(mutex);
            used = true;
            changed.notify_all();
            for (;;)
                changed.wait(lock);
        }).detach();
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return used; });
    } else if (role == "ended_thread") {
        in_thread(gpu.primary, [] { must(spin(CU_STREAM_PER_THREAD, 1), "gcx_spin"); });
    }
    std::exit(0);
}

void add_faults(Checks& checks) {
    checks.add_green("claim_27_fault_in_green", fault_in_green);
    checks.add_primary("claim_27_fault_in_primary", fault_in_primary);
    checks.add_green("claim_27_fault_in_primary_beside_green", fault_in_primary_with_green);
    for (const char* role : {"busy", "thread", "ended_thread"})
        checks.add(std::string("claim_29_exit_") + role, Needs::kNothing,
                   [role] { return end_of_process(role); });
    checks.add_primary("claim_30_reset_beside_thread", [] { return reset_beside_thread(false); });
    checks.add_primary("claim_30_reset_beside_thread_that_launches",
                       [] { return reset_beside_thread(true); });
    checks.add_green("claim_30_reset_with_green_contexts", reset_with_green_contexts);
    checks.add_primary("claim_30_reset_with_work", reset_with_work);
    checks.add_primary("claim_30_last_release", last_release);
}

} // namespace conformance

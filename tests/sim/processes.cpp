// Threads, fork, and the environment.
#include "../own_program.hpp"
#include "support.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <thread>

using namespace sim_test;

namespace {

// Runs the body in a child process and returns its exit status.
template <class Body>
int in_child(const Body& body) {
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child == 0)
        _exit(body());
    int status = 0;
    CHECK_EQ(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void one_thread(CUcontext primary, const CUdevResource& group, CUfunction spinner) {
    CHECK_OK(cuCtxSetCurrent(primary));
    for (int round = 0; round < 25; round++) {
        const Partition part({group});
        uint64_t nanoseconds = 1000;
        void* arguments[] = {&nanoseconds};
        for (int i = 0; i < 4; i++)
            CHECK_OK(cuLaunchKernel(spinner, 1, 1, 1, 1, 1, 1, 0, part.stream, arguments, nullptr));
        CHECK_OK(cuStreamSynchronize(part.stream));
        CUdeviceptr memory = 0;
        CHECK_OK(cuMemAllocAsync(&memory, 4096, part.stream));
        CHECK_OK(cuMemsetD8Async(memory, 1, 4096, part.stream));
        CHECK_OK(cuMemFreeAsync(memory, part.stream));
    }
    CHECK_OK(cuCtxSetCurrent(nullptr));
}

void threads_create_and_destroy_partitions() {
    simulate("h100@13.0");
    {
        const Primary primary;
        const Split made = split(query(), 15, 0, 8);
        std::vector<std::thread> all;
        all.reserve(16);
        for (std::size_t i = 0; i < 16; i++)
            all.emplace_back(one_thread, primary.context, made.groups[i % made.groups.size()],
                             primary.spinner);
        for (std::thread& thread : all)
            thread.join();
    }
    gcx_sim_counts now = counts_now();
    CHECK_EQ(now.green_contexts + now.streams + now.allocations + now.primary_retains, uint64_t{0});
    CHECK_EQ(now.device_bytes_lost, uint64_t{400} * (4U << 20));
}

void fork_after_init_is_refused() {
    // The child of a process that has not initialised the driver may do so.
    CHECK_EQ(gcx_sim_configure("h100@13.0"), 0);
    CHECK_EQ(in_child([] { return static_cast<int>(cuInit(0)); }), 0);
    CHECK_OK(cuInit(0));
    CHECK_EQ(in_child([] {
                 int count = 0;
                 const bool refused = cuInit(0) == CUDA_ERROR_NOT_INITIALIZED &&
                                      cuDeviceGetCount(&count) == CUDA_ERROR_NOT_INITIALIZED;
                 return refused ? 0 : 1;
             }),
             0);
    int count = 0;
    CHECK_OK(cuDeviceGetCount(&count));
}

// Runs this program again with an environment variable and returns its exit status.
int run_self(const char* self, const char* mode, const char* variable, const char* value) {
    return in_child([&] {
        setenv(variable, value, 1);
        become_own_program(self, {mode});
        return 127;
    });
}

int as_child(const std::string& mode) {
    if (mode == "wrong")
        return cuInit(0) == CUDA_ERROR_INVALID_VALUE ? 0 : 1;
    if (mode == "a100") {
        CHECK_OK(cuInit(0));
        return sm_count(query()) == 108 ? 0 : 1;
    }
    if (mode == "fail") {
        CHECK_OK(cuInit(0));
        int count = 0;
        const bool first = cuDeviceGetCount(&count) == CUDA_SUCCESS;
        const bool second = cuDeviceGetCount(&count) == CUDA_ERROR_OUT_OF_MEMORY;
        return first && second ? 0 : 1;
    }
    return 2;
}

} // namespace

int main(int argc, char** argv) {
    if (argc == 2)
        return as_child(argv[1]);
    fork_after_init_is_refused();
    threads_create_and_destroy_partitions();
    CHECK_EQ(run_self(argv[0], "a100", "GCX_SIM", "a100@13.1"), 0);
    CHECK_EQ(run_self(argv[0], "wrong", "GCX_SIM", "no_such_gpu"), 0);
    CHECK_EQ(run_self(argv[0], "fail", "GCX_SIM_FAIL", "cuDeviceGetCount:2:2"), 0);
    return check::summary("processes");
}

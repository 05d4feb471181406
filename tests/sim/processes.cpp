// Threads, fork, and the environment.
#include "support.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
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

// The environment selects the machine that the first call creates.
void environment_selects_machine() {
    const auto sms_of = [](const char* specification) {
        return in_child([specification] {
            setenv("GCX_SIM", specification, 1);
            const int result = cuInit(0);
            return result == CUDA_SUCCESS ? static_cast<int>(sm_count(query())) : result;
        });
    };
    CHECK_EQ(sms_of("a100@13.1"), 108);
    CHECK_EQ(sms_of("no_such_gpu"), int{CUDA_ERROR_INVALID_VALUE});
}

} // namespace

int main() {
    environment_selects_machine(); // first, before a machine exists
    fork_after_init_is_refused();
    threads_create_and_destroy_partitions();
    return check::summary("processes");
}

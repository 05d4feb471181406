// How long a small kernel in one partition takes while streams of another wait, by the number of
// hardware queues: gcx-gpu-queues. Each number has a process, since CUDA reads it when it starts.
// On drivers with workqueues, each number has a second row for partitions with their own. Fails if
// the kernel waits while there are fewer waiting streams than queues, or doesn't wait otherwise.
#include "critical.hpp"

#include <gcx.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

namespace {

constexpr const char* kVariable = "CUDA_DEVICE_MAX_CONNECTIONS";
constexpr unsigned kWaiting[] = {0, 1, 4, 7, 8, 16, 32, 64};
constexpr unsigned kRounds = 5;
constexpr unsigned kQueued = 8; // kernels in each waiting stream
constexpr uint64_t kQueuedNs = 300'000;
constexpr double kWaits = 10; // times the latency without waiting streams

void need(CUresult result) {
    if (result != CUDA_SUCCESS)
        throw gcx::error(static_cast<gcx_result>(result), raw::name_of(result));
}

gcx::context make_context(const gcx::resource& sms, bool workqueues) {
    if (!workqueues)
        return gcx::context(sms);
    const gcx::resource shared = gcx::device(0).get_resource(gcx::type::workqueue_config);
    return gcx::context({sms, shared.configured(gcx::scope::green_ctx_balanced,
                                                shared.info().workqueue_concurrency_limit)});
}

// Microseconds from launch to end of the small kernel; the median.
double latency(const gcx::stream& small, const std::vector<gcx::stream>& busy, unsigned waiting,
               uint32_t sms) {
    std::vector<double> times;
    for (unsigned round = 0; round < kRounds; round++) {
        for (unsigned i = 0; i < waiting * kQueued; i++)
            need(raw::launch_spin(busy[i / kQueued].native(), kQueuedNs, 2 * sms, 1024));
        const auto start = std::chrono::steady_clock::now();
        need(raw::launch_spin(small.native(), critical::kNanoseconds, critical::kBlocks, 32));
        small.synchronize();
        const std::chrono::duration<double, std::micro> passed =
            std::chrono::steady_clock::now() - start;
        times.push_back(passed.count());
        for (const gcx::stream& stream : busy)
            stream.synchronize();
    }
    std::sort(times.begin(), times.end());
    return times[kRounds / 2];
}

// Prints a row and returns whether the kernel waited where it must, and only there.
bool measure(unsigned connections, bool workqueues) {
    const auto parts = gcx::device(0).sms().split({24, gcx::rest}).groups;
    const gcx::context small_context = make_context(parts[0], workqueues);
    const gcx::context busy_context = make_context(parts[1], workqueues);
    const gcx::stream small(small_context);
    std::vector<gcx::stream> busy;
    for (unsigned i = 0; i < kWaiting[std::size(kWaiting) - 1]; i++)
        busy.emplace_back(busy_context);
    const uint32_t sms = parts[1].sm_count();
    latency(small, busy, 1, sms); // the first kernel of a context takes longer
    std::printf("%-24s",
                (std::to_string(connections) + (workqueues ? ", own workqueues" : "")).c_str());
    // The simulated driver's kernels take no time of this clock.
    const bool simulated = gcx::driver_info().simulated != 0;
    bool expected = true;
    double alone = 0;
    for (const unsigned waiting : kWaiting) {
        const double us = latency(small, busy, waiting, sms);
        if (waiting == 0)
            alone = us;
        const bool must_wait = !workqueues && waiting >= connections;
        expected = expected && (simulated || (us > kWaits * alone) == must_wait);
        std::printf(" %9.1f", us);
    }
    std::printf("%s\n", expected ? "" : "  unexpected");
    std::fflush(stdout);
    return expected;
}

int run(unsigned connections) {
    try {
        setenv(kVariable, std::to_string(connections).c_str(), 1);
        raw::load();
        bool expected = measure(connections, false);
        if (gcx::driver_info().capabilities[gcx::capability::workqueues] != 0)
            expected = measure(connections, true) && expected;
        return expected ? 0 : 1;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "gcx-gpu-queues: %s\n", error.what());
        return 2;
    }
}

} // namespace

int main() {
    std::printf(
        "Microseconds from launch to end of a 10 us kernel on 24 SMs, next to K streams with "
        "%u kernels of 0.3 ms each that fill the other SMs; medians\n%-24s",
        kQueued, "connections        K =");
    for (const unsigned waiting : kWaiting)
        std::printf(" %9u", waiting);
    std::printf("\n");
    std::fflush(stdout);
    int failed = 0;
    for (const unsigned connections : {1U, 8U, 32U}) {
        const pid_t child = fork();
        if (child == 0)
            _exit(run(connections));
        int status = -1;
        if (waitpid(child, &status, 0) != child || status != 0)
            failed = 1;
    }
    return failed;
}

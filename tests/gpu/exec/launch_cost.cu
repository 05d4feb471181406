// Measures what the hooks of `gcx exec` cost. Prints one line of JSON:
// - launches in streams that do not block, and in the default stream, by the function that programs
//   find in libcuda and by the driver's own, in paired rounds, in one thread and in eight;
// - then, with blocking streams: a launch in one, and a launch in the default stream next to 1, 8
//   and 64 of them with work since the last one.
#include <cuda.h>
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

constexpr int kRounds = 9;
constexpr int kLaunches = 10000;

#define CHECK(call)                                                                                \
    do {                                                                                           \
        if (const cudaError_t error = (call); error != cudaSuccess) {                              \
            std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(error));                    \
            std::exit(1);                                                                          \
        }                                                                                          \
    } while (0)

using LaunchKernel = decltype(&cuLaunchKernel);
using Clock = std::chrono::steady_clock;

__global__ void nothing() {}

cudaFunction_t function;

void launch(LaunchKernel by, cudaStream_t stream) {
    if (by(function, 1, 1, 1, 32, 1, 1, 0, stream, nullptr, nullptr) != CUDA_SUCCESS) {
        std::fprintf(stderr, "a launch failed\n");
        std::exit(1);
    }
}

double microseconds(Clock::time_point since) {
    return std::chrono::duration<double, std::micro>(Clock::now() - since).count();
}

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

// Returns the driver's own function, whichever library is interposed: it is looked up in the
// library that defines a function which is never replaced.
void* of_driver(const char* name) {
    Dl_info driver;
    link_map* loaded = nullptr;
    void* const libcuda = dlopen("libcuda.so.1", RTLD_NOW);
    if (dladdr(dlsym(libcuda, "cuDriverGetVersion"), &driver) == 0 ||
        dlinfo(libcuda, RTLD_DI_LINKMAP, &loaded) != 0)
        return nullptr;
    while (loaded->l_prev != nullptr)
        loaded = loaded->l_prev;
    // glibc's handles are these.
    for (; loaded != nullptr; loaded = loaded->l_next)
        if (std::strcmp(loaded->l_name, driver.dli_fname) == 0)
            return dlsym(loaded, name);
    return nullptr;
}

// Returns the microseconds of a launch in a thread, while each of the threads launches in its
// stream.
double launch_cost(LaunchKernel by, const std::vector<cudaStream_t>& streams) {
    std::atomic<int> ready{0};
    std::vector<double> costs(streams.size());
    std::vector<std::thread> threads;
    const auto run = [&](std::size_t i) {
        CHECK(cudaStreamSynchronize(streams[i]));
        launch(by, streams[i]);
        ready++;
        while (ready.load() < static_cast<int>(streams.size())) {
        }
        const auto begin = Clock::now();
        for (int n = 0; n < kLaunches; n++)
            launch(by, streams[i]);
        CHECK(cudaStreamSynchronize(streams[i]));
        costs[i] = microseconds(begin) / kLaunches;
    };
    for (std::size_t i = 1; i < streams.size(); i++)
        threads.emplace_back(run, i);
    run(0);
    for (std::thread& thread : threads)
        thread.join();
    return *std::max_element(costs.begin(), costs.end());
}

// Prints the medians of both functions and of the ratios of rounds.
void compare(const char* name, LaunchKernel found, LaunchKernel own,
             const std::vector<cudaStream_t>& streams) {
    std::vector<double> through, direct, ratios;
    launch_cost(found, streams);
    for (int round = 0; round < kRounds; round++) {
        const bool found_first = round % 2 == 0;
        const double first = launch_cost(found_first ? found : own, streams);
        const double second = launch_cost(found_first ? own : found, streams);
        through.push_back(found_first ? first : second);
        direct.push_back(found_first ? second : first);
        ratios.push_back(through.back() / direct.back());
    }
    std::printf("\"%s, %zu threads\": {\"found_us\": %.4f, \"driver_us\": %.4f, \"ratio\": %.4f}, ",
                name, streams.size(), median(through), median(direct), median(ratios));
}

std::vector<cudaStream_t> streams_with(int count, unsigned flags) {
    std::vector<cudaStream_t> streams(count);
    for (cudaStream_t& stream : streams)
        CHECK(cudaStreamCreateWithFlags(&stream, flags));
    return streams;
}

// Returns the microseconds of a launch in the default stream after one in each of the others.
double cost_next_to(LaunchKernel found, const std::vector<cudaStream_t>& others) {
    std::vector<double> costs;
    for (int round = 0; round < 200; round++) {
        for (const cudaStream_t stream : others)
            launch(found, stream);
        const auto begin = Clock::now();
        launch(found, nullptr);
        costs.push_back(microseconds(begin));
        CHECK(cudaDeviceSynchronize());
    }
    return median(costs);
}

int main() {
    CHECK(cudaFree(nullptr));
    CHECK(cudaGetFuncBySymbol(&function, reinterpret_cast<const void*>(nothing)));
    const auto found = reinterpret_cast<LaunchKernel>(
        dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuLaunchKernel"));
    const auto own = reinterpret_cast<LaunchKernel>(of_driver("cuLaunchKernel"));
    if (found == nullptr || own == nullptr) {
        std::fprintf(stderr, "no cuLaunchKernel\n");
        return 1;
    }
    std::printf("{\"changed\": %s, ", found == own ? "false" : "true");
    for (const int threads : {1, 8}) {
        compare("non-blocking", found, own, streams_with(threads, cudaStreamNonBlocking));
        compare("default", found, own, std::vector<cudaStream_t>(threads, nullptr));
    }
    for (const int threads : {1, 8}) {
        compare("blocking", found, own, streams_with(threads, cudaStreamDefault));
        compare("non-blocking next to blocking", found, own,
                streams_with(threads, cudaStreamNonBlocking));
    }
    std::printf("\"default next to\": {");
    std::vector<cudaStream_t> others;
    for (const std::size_t count : {0, 1, 8, 64}) {
        while (others.size() < count)
            others.push_back(streams_with(1, cudaStreamDefault)[0]);
        std::printf("%s\"%zu\": %.3f", count == 0 ? "" : ", ", count, cost_next_to(found, others));
    }
    std::printf("}}\n");
    return 0;
}

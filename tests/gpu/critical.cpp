#include "critical.hpp"

#include <algorithm>
#include <chrono>
#include <random>

namespace critical {
namespace {

using Clock = std::chrono::steady_clock;

} // namespace

double Times::at(std::size_t percent) const {
    if (us.empty())
        return 0;
    std::vector<double> sorted = us;
    std::sort(sorted.begin(), sorted.end());
    return sorted[std::max<std::size_t>((sorted.size() * percent + 99) / 100, 1) - 1];
}

Times measure(CUstream stream, const std::function<CUresult()>& launch,
              const std::function<bool(std::size_t)>& go_on) {
    std::minstd_rand random(1);
    Times times;
    while (go_on(times.us.size())) {
        // Sleeping would add the time of waking up to the launch.
        const auto until = Clock::now() + std::chrono::microseconds(random() % 100);
        while (Clock::now() < until) {
        }
        const auto before = Clock::now();
        times.error = launch();
        if (times.error == CUDA_SUCCESS)
            times.error = raw::cuStreamSynchronize(stream);
        if (times.error != CUDA_SUCCESS)
            break;
        times.us.push_back(
            std::chrono::duration<double, std::micro>(Clock::now() - before).count());
    }
    return times;
}

} // namespace critical

extern "C" void gcx_critical_load() {
    raw::load();
}

extern "C" int gcx_critical_measure(void* stream, double* us, int min, int max,
                                    const volatile int* stop) {
    const auto native = static_cast<CUstream>(stream);
    const critical::Times times = critical::measure(
        native,
        [&] { return raw::launch_spin(native, critical::kNanoseconds, critical::kBlocks, 32); },
        [&](std::size_t done) {
            const auto count = static_cast<int>(done);
            return count < max && (count < min || *stop == 0);
        });
    std::copy(times.us.begin(), times.us.end(), us);
    return times.error == CUDA_SUCCESS ? static_cast<int>(times.us.size())
                                       : -static_cast<int>(times.error);
}

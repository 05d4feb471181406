// Launches a small kernel now and then, as latency-critical work does, and measures launch to end
// under load.
#pragma once

#include "raw.hpp"

#include <cstddef>
#include <functional>
#include <vector>

namespace critical {

inline constexpr uint64_t kNanoseconds = 10'000; // the kernel's length
inline constexpr unsigned kBlocks = 24;

// Times in microseconds, up to the driver's first error.
struct Times {
    std::vector<double> us;
    CUresult error = CUDA_SUCCESS;

    double p50() const { return at(50); }
    double p90() const { return at(90); }
    double p99() const { return at(99); }
    double max() const { return at(100); }

  private:
    double at(std::size_t percent) const; // 0 of none
};

// Launches in the stream and waits for the end, at random moments up to a tenth of a millisecond
// apart, until go_on returns false.
Times measure(CUstream stream, const std::function<CUresult()>& launch,
              const std::function<bool(std::size_t done)>& go_on);

} // namespace critical

// Measures for Python, because its threads would wait for the interpreter lock. Launches the
// kernel of kBlocks in a CUstream until *stop and at least min times, and at most max times.
// Returns the number of launches, or the negative CUresult.
extern "C" int gcx_critical_measure(void* stream, double* us, int min, int max,
                                    const volatile int* stop);
// Loads the driver; call it first. Ends the process if there is no driver.
extern "C" void gcx_critical_load();

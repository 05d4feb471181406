// A small kernel now and then, as something that must answer fast launches it: how long from launch
// to end, while others do what they do.
#pragma once

#include "raw.hpp"

#include <cstddef>
#include <functional>
#include <vector>

namespace critical {

inline constexpr uint64_t kNanoseconds = 10'000; // that it lasts
inline constexpr unsigned kBlocks = 24;

// Microseconds; the first error of the driver's, after which there are no more of them.
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
// apart, until go_on says no, which is asked before each.
Times measure(CUstream stream, const std::function<CUresult()>& launch,
              const std::function<bool(std::size_t done)>& go_on);

} // namespace critical

// For Python, whose own threads would wait for one another's interpreter lock: this runs without
// it. The kernel of kBlocks in a CUstream of the process, until *stop and at least, and at most so
// many times. Returns how many, or the negative CUresult.
extern "C" int gcx_critical_measure(void* stream, double* us, int least, int most,
                                    const volatile int* stop);
// Before it. Ends the process if there is no driver.
extern "C" void gcx_critical_load();

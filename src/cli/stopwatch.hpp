// Times steps.
#pragma once

#include <chrono>

namespace gcx::cli {

class Stopwatch {
  public:
    // Microseconds since the start, or since the last call.
    double lap() {
        const auto now = std::chrono::steady_clock::now();
        const std::chrono::duration<double, std::micro> passed = now - start_;
        start_ = now;
        return passed.count();
    }

  private:
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

} // namespace gcx::cli

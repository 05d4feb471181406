// What green contexts hold of a device's memory, as measured: what is free before one is made and
// after.
#pragma once

#include "driver/driver.hpp"

#include <cstddef>
#include <mutex>
#include <optional>
#include <vector>

namespace gcx {

// Device memory that is free, by the driver; nothing if it doesn't say. Breaks no capture.
std::optional<uint64_t> free_memory(const Driver& driver, CUcontext context);

class MemoryGauge {
  public:
    using Measured = std::optional<uint64_t>;

    // Makes a context, and says by how much it made the free memory smaller. One at a time, so that
    // one thread's is not in another's figure; the driver makes each wait for the device anyway.
    template <class Make>
    Measured around(const Driver& driver, CUcontext primary, Make&& make) {
        const std::lock_guard alone(making_);
        const auto before = free_memory(driver, primary);
        make();
        return note(before, free_memory(driver, primary));
    }

    // What to tell of one: what others allocated or freed meanwhile is in a figure, and would make
    // a limit destroy contexts that hold little. So those far from the others' aren't believed.
    uint64_t told(const Measured& measured) const;
    // What the next one is likely to hold.
    uint64_t expected() const;

  private:
    static constexpr std::size_t kMost = 64;
    static constexpr std::size_t kFew = 3; // with fewer there is no telling which is far off
    static constexpr uint64_t kFarOff = 4;

    Measured note(const Measured& before, const Measured& after);

    std::mutex making_;
    mutable std::mutex mutex_;       // of what follows
    std::vector<uint64_t> measured_; // the last ones
    std::size_t next_ = 0;
    uint64_t median_ = 0;
};

} // namespace gcx

// What green contexts hold of a device's memory, as measured: what is free before one is made and
// after.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

namespace gcx {

class MemoryGauge {
  public:
    using Bytes = std::optional<uint64_t>; // nothing: the driver doesn't say

    // Makes a context, and says by how much it made the free memory smaller. One at a time, so that
    // one thread's is not in another's figure; the driver makes each wait for the device anyway.
    template <class Free, class Make>
    Bytes around(Free&& free, Make&& make) {
        const std::lock_guard alone(making_);
        const Bytes before = free();
        make();
        return note(before, free());
    }

    // What to tell of one: what others allocated or freed meanwhile is in a figure, and would make
    // a limit destroy contexts that hold little. So those far from the others' aren't believed.
    uint64_t told(const Bytes& measured) const;
    // What the next one is likely to hold.
    uint64_t expected() const;

  private:
    static constexpr std::size_t kMost = 64;
    static constexpr std::size_t kFew = 3; // with fewer there is no telling which is far off
    static constexpr uint64_t kFarOff = 4;

    Bytes note(const Bytes& before, const Bytes& after);

    std::mutex making_;
    mutable std::mutex mutex_;       // of what follows
    std::vector<uint64_t> measured_; // the last ones
    std::size_t next_ = 0;
    uint64_t median_ = 0;
};

} // namespace gcx

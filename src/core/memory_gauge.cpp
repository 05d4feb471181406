#include "core/memory_gauge.hpp"

#include <algorithm>

namespace gcx {

MemoryGauge::Bytes MemoryGauge::note(const Bytes& before, const Bytes& after) {
    if (!before || !after)
        return std::nullopt;
    const uint64_t bytes = *before > *after ? *before - *after : 0;
    const std::lock_guard lock(mutex_);
    if (measured_.size() < kMost)
        measured_.push_back(bytes);
    else
        measured_[next_++ % kMost] = bytes;
    std::vector<uint64_t> sorted = measured_;
    const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
    std::nth_element(sorted.begin(), middle, sorted.end());
    median_ = *middle;
    return bytes;
}

uint64_t MemoryGauge::told(const Bytes& measured) const {
    const std::lock_guard lock(mutex_);
    if (!measured)
        return median_;
    const bool far_off = *measured == 0 || *measured / kFarOff > median_;
    return far_off && measured_.size() >= kFew && median_ != 0 ? median_ : *measured;
}

uint64_t MemoryGauge::expected() const {
    // Of an H100, until there is one to go by.
    constexpr uint64_t kUsual = 5ULL << 20;
    const std::lock_guard lock(mutex_);
    return median_ != 0 ? median_ : kUsual;
}

} // namespace gcx

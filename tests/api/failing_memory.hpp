// Makes allocations of libgcx fail. A sanitizer has its own malloc, so nothing fails there.
#pragma once

#include "../check.hpp"

#include <cstdint>

namespace support::memory {

inline constexpr bool can_fail = !check::sanitized;

// Makes the nth allocation from now on (1: the next) of libgcx in this thread fail, or that one and
// all after it. 0 ends it.
void fail(uint64_t nth, bool all_after);

// Returns how many allocations libgcx has made in this thread since the first call.
uint64_t allocations();

} // namespace support::memory

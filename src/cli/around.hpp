// The gcx exec that this process runs in, as far as it can be seen from here.
#pragma once

#include "cli/json.hpp"

#include <gcx.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gcx::cli {

// The partition that a gcx exec gives to this process in the place of a device.
struct AroundPartition {
    uint32_t planned_sm_count = 0;
    uint32_t visible_sm_count = 0; // what this process can divide
    std::vector<uint32_t> seen; // SMs that a kernel saw in all of it, ascending; empty: not in it

    // The environment names a partition, and this process has more SMs.
    bool left() const { return visible_sm_count > planned_sm_count; }
};

// Of a device of the open driver. Nothing: no gcx exec around this process divides it. Runs a
// kernel in all of the SMs that this process has.
std::optional<AroundPartition> partition_around(int32_t device);

// What doesn't hold: the process is not in its partition, or its kernels ran on another number of
// SMs. Empty: all reservations.
std::string around_problem(const AroundPartition& around, int32_t device);

// "inside gcx exec: this process has 32 SMs of the device: 0-7 16-23 32-39 48-55"; a line.
// numbers: SM numbers are the device's.
std::string around_text(const AroundPartition& around, bool numbers);
Json around_json(const std::optional<AroundPartition>& around);

} // namespace gcx::cli

// Uses of a device that a profile describes, shared by the fuzzer of profiles and the test of
// layouts.
#pragma once

#include <cstdint>
#include <string>

namespace fuzz {

struct DeviceUses {
    bool kernels; // map SMs and run kernels
    bool regular; // the profile is well-formed: no message is the driver's
};

// Opens a new driver whose only device has the profile. Returns false if it is refused.
bool open_profile(const std::string& text);

// Splits the device in each family. Each call works or fails with a message, a split yields the
// counts of its plan and disjoint groups, and kernels run on the SMs of their group. Returns the
// number of SMs, or 0 if they cannot be split.
uint32_t use_device(const DeviceUses& uses);

} // namespace fuzz

// gcx info --record: a device as a profile that the simulated driver replays.
#pragma once

#include <gcx.hpp>

#include <cstdint>
#include <string>

namespace gcx::cli {

// Returns the profile, in the format of docs/simulated-driver.md. Creates contexts to find out
// which SMs each atom holds.
std::string record_profile(const gcx_driver_info& driver, int32_t device);

// Returns the driver that replays a recording: "sim:./gpu.profile". The slash tells it from a GPU's
// name; an @ at the end tells a file name like gpu@13.0 from a GPU with a version.
std::string replay_driver(const std::string& path);

} // namespace gcx::cli

// gcx info --record: a device as a profile that the simulated driver replays.
#pragma once

#include <gcx.h>

#include <cstdint>
#include <string>

namespace gcx::cli {

// The profile's text. Reads which SMs each atom holds, which makes contexts for a moment. The
// format is that of docs/simulated-driver.md.
std::string record_profile(const gcx_driver_info& driver, int32_t device);

// The driver that replays a recording, "sim:./gpu.profile". With a slash it is no GPU's name, and
// behind another @ no version.
std::string replay_driver(const std::string& path);

} // namespace gcx::cli

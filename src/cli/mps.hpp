// Whether a device is shared by way of MPS, and what of it a person must know.
#pragma once

#include "cli/json.hpp"

#include <cstdint>
#include <string>

namespace gcx::cli {

// Of `gcx info`, for a device.
Json device_mps_json(int32_t device);
std::string device_mps_text(int32_t device);

// Whether the SM numbers that kernels read are virtual: they are under MPS.
bool virtual_sm_numbers(int32_t device);

} // namespace gcx::cli

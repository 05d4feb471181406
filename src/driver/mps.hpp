// Whether the processes of a device share it by way of MPS, and what MPS limits.
#pragma once

#include "driver/driver.hpp"

namespace gcx {

struct Mps {
    gcx_mps_state state = GCX_MPS_UNKNOWN;
    float thread_percentage = 0; // of the environment; 0: none, or it can't be read
};

// By the driver's attribute, which a driver of 12.4 has by its header's text: whether contexts made
// on the device are shared via MPS. Nobody has measured it yet.
Mps mps_of(const Driver& driver, CUdevice device);

} // namespace gcx

// CUDA_VISIBLE_DEVICES, which hides devices and orders them.
#pragma once

#include "sim/machine.hpp"

#include <vector>

namespace gcx::sim {

// The same GPU at the same place of the same machine has the same one in each run.
CUuuid device_uuid(const Device& device);

// The indices of the machine's devices that text, the variable's value, leaves visible, in its
// order; null: all.
std::vector<unsigned> visible_indices(const Machine& machine, const char* text);

} // namespace gcx::sim

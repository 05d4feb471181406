// Specifications of machines: [N x]GPU[,GPU...][@DRIVER], or PATH[@DRIVER] of a recording.
#pragma once

#include "sim/machine.hpp"

#include <string>

namespace gcx::sim {

// Fills a new machine from spec. If spec is null, uses GCX_SIM or h100@13.0. Machine::spec has an
// absolute path, so that it is valid in any folder. On failure returns false and a reason.
bool read_spec(const char* spec, Machine& machine, std::string& error);

} // namespace gcx::sim

// Reads what is to be simulated: [N x]GPU[,GPU...][@DRIVER], or PATH[@DRIVER] of a recording.
#pragma once

#include "sim/machine.hpp"

#include <string>

namespace gcx::sim {

// spec null: the environment's GCX_SIM, or else h100@13.0. Fills the new machine, whose own spec
// names the same from any folder.
bool read_spec(const char* spec, Machine& machine, std::string& error);

} // namespace gcx::sim

// Reads what is to be simulated: [N x]GPU[,GPU...][@DRIVER], or a recording's path.
#pragma once

#include "sim/machine.hpp"

#include <string>

namespace gcx::sim {

// spec null: the environment's GCX_SIM, or else h100@13.0. Fills the new machine.
bool read_spec(const char* spec, Machine& machine, std::string& error);

} // namespace gcx::sim

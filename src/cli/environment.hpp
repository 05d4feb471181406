// What in the environment limits the SMs that a process gets.
#pragma once

#include "cli/json.hpp"

#include <string>

namespace gcx::cli {

Json environment_json();

// Those that are set, a line each; or that none is.
std::string environment_text();

} // namespace gcx::cli

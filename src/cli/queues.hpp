// The hardware queues that the streams of a process share, and with them its partitions.
#pragma once

#include "cli/json.hpp"

#include <string>

namespace gcx::cli {

// As the environment of this process sets them.
Json queues_json();
std::string queues_text();

} // namespace gcx::cli

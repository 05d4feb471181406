// Partitions' SM counts for all the libraries of a process that uses gcx itself: a facade before
// libcuda with the library that answers them.
#pragma once

#include <string>

namespace gcx::exec {

// Puts it there; what it does is done once. choice is the driver as gcx_driver_open takes it.
// Throws Error: libcuda is loaded already, or something isn't there.
void report_partition_counts(const std::string& choice);

bool reports_partition_counts();

} // namespace gcx::exec

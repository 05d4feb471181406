// Reports the SM counts of partitions to all libraries of a process that uses gcx itself: loads a
// stub library in front of libcuda, with libgcx-counts.so as the shim.
#pragma once

#include <string>

namespace gcx::interpose {

// Starts reporting. Does nothing if it was started before. choice is the driver as for
// gcx_driver_open. Throws Error if libcuda is loaded already or a library is missing.
void report_partition_counts(const std::string& choice);

} // namespace gcx::interpose

// Reports the SM counts of partitions to all libraries of a process that uses gcx itself: loads a
// stub library in front of libcuda, with libgcx-counts.so as the shim.
#pragma once

#include <string>

namespace gcx::interpose {

// Starts reporting. Does nothing if it was started before. choice is the driver as for
// gcx_driver_open. Throws Error if libcuda is loaded already or a library is missing.
void report_partition_counts(const std::string& choice);

// Returns the path of the library that is loaded under this name, or else of the one that dlopen
// would find by its search path and its cache. Returns "" if there is none. Loads nothing: once
// libcuda is loaded, the loader never searches for another library of that name. The name contains
// no slash.
std::string find_library(const std::string& name);

// Returns the path of a library that dlopen returned.
std::string path_of(void* library);

} // namespace gcx::interpose

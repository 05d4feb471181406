// Finds the file that dlopen would load for a name, without loading it. Loading libcuda to find its
// path is not possible, since the loader would then never search for another library of that name.
#pragma once

#include <string>

namespace gcx::interpose {

// Returns the path of the library that is loaded under this name, or else of the one that the
// loader would find by its search path and its cache. Returns "" if there is none. The name
// contains no slash.
std::string find_library(const std::string& name);

// Returns the path of a library that dlopen returned.
std::string path_of(void* library);

} // namespace gcx::interpose

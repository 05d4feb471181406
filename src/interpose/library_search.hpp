// Which file dlopen would load for a name, found without loading it: what libcuda is can't be tried
// out, since a second library of the same name would never be searched for.
#pragma once

#include <string>

namespace gcx::exec {

// Returns the path of the library that the loader has under this name, or would load for it by its
// search path and its cache. Empty: there is none. name has no slash.
std::string find_library(const std::string& name);

// The path of a library that dlopen gave.
std::string path_of(void* library);

} // namespace gcx::exec

// Libraries that are installed next to this one, such as the simulated driver.
#pragma once

#include <string>

namespace gcx {

struct CompanionLibrary {
    const char* what; // for messages: "the simulated driver"
    const char* file;
    const char* build_dir; // where a build puts it, relative to this library
    const char* hint;      // appended to the message if it is not found
};
// Throws if the library is not installed.
std::string companion_path(const CompanionLibrary& companion);

// Returns the path of the simulated driver: the one that GCX_SIM_LIBRARY names, or the companion.
std::string find_simulator();

} // namespace gcx

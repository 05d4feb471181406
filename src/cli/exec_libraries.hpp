// Where the libraries of `gcx exec` are, and the driver that does the work: absolute paths.
#pragma once

#include <gcx.h>

#include <string>

namespace gcx::cli {

struct ExecLibraries {
    std::string auditor;
    std::string shim;
};

// As installed, or as built, beside libgcx. Throws Failure if one isn't there.
ExecLibraries find_exec_libraries();

// The library that the open driver is, as the loader found it.
std::string open_driver_path(const gcx_driver_info& driver);

// SPEC of "sim:SPEC", as the simulated driver that is open understood it; empty of another driver.
std::string open_simulation(const gcx_driver_info& driver);

} // namespace gcx::cli

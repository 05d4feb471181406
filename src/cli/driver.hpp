// The driver that the command line or the environment chooses, and how the output names it.
#pragma once

#include "cli/args.hpp"
#include "cli/output.hpp"

#include <gcx.hpp>

#include <string>

namespace gcx::cli {

// Opens the driver that --driver or the environment names, or the named one.
gcx_driver_info open_driver(const Arguments& arguments);
gcx_driver_info open_driver_named(const std::string& name);

// Returns dlopen's handle of the open driver, for functions that gcx does not have.
void* driver_library(const gcx_driver_info& driver);
void* find_symbol(void* library, const char* name);

// Stores the address of a function of the open driver. Throws Failure if the driver lacks it.
template <class Function>
void find_driver_function(const gcx_driver_info& driver, const char* name, Function& function) {
    function = reinterpret_cast<Function>(find_symbol(driver_library(driver), name));
}

// Throws Failure with the call's name if it did not return CUDA_SUCCESS.
void check_driver(int result, const char* call);

// Whether the open driver, or the one to be opened, is the simulated one, as far as is known.
bool is_simulated();

// The members with which every report begins: simulated and driver.
Json report_start(const gcx_driver_info& driver);

// The same in the text: a line that says SIMULATED, or nothing.
std::string banner(const gcx_driver_info& driver);

// What times on the simulated driver mean.
extern const char* const simulated_times;

// Returns the device's name, without the mark "SIMULATED" if the banner says it already.
std::string plain_name(const gcx_device_info& device);

} // namespace gcx::cli

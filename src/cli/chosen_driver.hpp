// The driver that the command line or the environment chooses, and how the output speaks of it.
#pragma once

#include "cli/args.hpp"
#include "cli/json.hpp"

#include <gcx.h>

#include <string>

namespace gcx::cli {

// Notes what will be opened, for those that open it in other processes.
void choose_driver(const Arguments& arguments);
// Opens the driver that --driver or the environment names.
gcx_driver_info open_driver(const Arguments& arguments);
// Opens this one.
gcx_driver_info open_driver_named(const std::string& name);

// What dlopen finds the open driver by. gcx_driver_info.library holds no path of 256 characters.
std::string library_path(const gcx_driver_info& driver);

// Whether what is or would be opened is the simulated driver, as far as it is known.
bool is_simulated();

// An object with what every report begins with: simulated and driver.
Json report_start(const gcx_driver_info& driver);

// The same for people: a line that says SIMULATED, or nothing.
std::string banner(const gcx_driver_info& driver);

// What to think of times, where they are no GPU's: a line, or nothing.
std::string times_note(const gcx_driver_info& driver);

// "NVIDIA H100 80GB HBM3": without the mark that the simulated driver's names begin with, where
// the banner says it already.
std::string plain_name(const gcx_device_info& device);

} // namespace gcx::cli

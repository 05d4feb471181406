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

// Returns the address of a function of the open driver. Throws Failure if the driver lacks it.
void* driver_symbol(const gcx_driver_info& driver, const char* name);

// Throws Failure with the call's name if the result is not CUDA_SUCCESS.
void check_driver(int result, std::string_view call);

// A function of the open driver, which throws Failure if it fails. Prototypes stand where they are
// used: the command is built without cuda.h.
template <class... Parameters>
class DriverCall {
  public:
    DriverCall(const gcx_driver_info& driver, const char* name)
        : name_(name), call_(reinterpret_cast<Call>(driver_symbol(driver, name))) {}

    void operator()(Parameters... arguments) const { check_driver(call_(arguments...), name_); }

  private:
    using Call = int (*)(Parameters...);
    const char* name_;
    Call call_;
};

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

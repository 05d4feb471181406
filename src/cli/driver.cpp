#include "cli/driver.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>

namespace gcx::cli {
namespace {

std::string choice; // of --driver or the environment
bool simulated = false;

} // namespace

gcx_driver_info open_driver(const Arguments& arguments) {
    const auto given = arguments.get("--driver");
    if (given && given->empty())
        throw UsageError("--driver is empty; give a driver, e.g. --driver sim:h100@13.0 or "
                         "--driver libcuda.so.1");
    const char* const environment = std::getenv("GCX_DRIVER");
    return open_driver_named(given ? *given : environment != nullptr ? environment : "");
}

gcx_driver_info open_driver_named(const std::string& name) {
    choice = name;
    simulated = choice.starts_with("sim:");
    gcx::open_driver(choice.c_str());
    const gcx_driver_info info = driver_info();
    simulated = info.simulated != 0;
    return info;
}

void* driver_library(const gcx_driver_info& driver) {
    // The info holds only the first 255 bytes of the path.
    std::string path = driver.library;
    if (path.size() + 1 == sizeof driver.library)
        path = choice.starts_with("sim:") ? gcx_simulator_path() : choice;
    // Not closed: the functions are used until the process ends.
    void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    if (library == nullptr)
        throw Failure(GCX_ERROR_SHARED_OBJECT_INIT_FAILED,
                      format("can't find the open driver %s again", path.c_str()));
    return library;
}

void* driver_symbol(const gcx_driver_info& driver, const char* name) {
    void* const found = dlsym(driver_library(driver), name);
    if (found == nullptr)
        throw Failure(GCX_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND,
                      format("the driver has no function %s", name));
    return found;
}

void check_driver(int result, std::string_view call) {
    if (result == 0)
        return;
    if (call.ends_with("_v2"))
        call.remove_suffix(3);
    const auto code = static_cast<gcx_result>(result);
    throw Failure(code, format("the driver's own %s failed with %d: %s", std::string(call).c_str(),
                               result, result_string(code)));
}

bool is_simulated() {
    return simulated;
}

Json report_start(const gcx_driver_info& driver) {
    return Json::object()
        .set("simulated", driver.simulated != 0)
        .set("driver", Json::object()
                           .set("version", version_text(driver.version))
                           .set("simulated", driver.simulated != 0)
                           .set("library", driver.library)
                           .set("header_version", version_text(driver.header_version)));
}

std::string banner(const gcx_driver_info& driver) {
    if (driver.simulated == 0)
        return "";
    return format("SIMULATED: the driver is gcx's simulation of CUDA %s, no GPU is involved\n",
                  version_text(driver.version).c_str());
}

const char* const simulated_times =
    "times are those of this machine's CPU running the SIMULATED driver; they say nothing about a "
    "GPU";

std::string plain_name(const gcx_device_info& device) {
    return simulated ? without_mark(device.name) : device.name;
}

} // namespace gcx::cli

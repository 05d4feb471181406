#include "cli/chosen_driver.hpp"

#include "cli/checked.hpp"
#include "cli/text.hpp"

#include <cstdlib>
#include <cstring>
#include <string_view>

namespace gcx::cli {
namespace {

constexpr std::string_view kMark = "SIMULATED ";

std::string choice; // of --driver or the environment
// What was asked for, until opening it tells.
bool simulated = false;

} // namespace

void choose_driver(const Arguments& arguments) {
    const auto given = arguments.get("--driver");
    if (given && given->empty())
        throw UsageError("--driver is empty; give a driver, e.g. --driver sim:h100@13.0 or "
                         "--driver libcuda.so.1");
    const char* const environment = std::getenv("GCX_DRIVER");
    choice = given ? *given : environment != nullptr ? environment : "";
    simulated = choice.starts_with("sim:");
}

gcx_driver_info open_driver(const Arguments& arguments) {
    choose_driver(arguments);
    return open_driver_named(choice);
}

gcx_driver_info open_driver_named(const std::string& name) {
    choice = name;
    check(gcx_driver_open(choice.c_str()));
    gcx_driver_info info = GCX_DRIVER_INFO_INIT;
    check(gcx_driver_get_info(&info));
    simulated = info.simulated != 0;
    return info;
}

std::string library_path(const gcx_driver_info& driver) {
    if (std::strlen(driver.library) + 1 < sizeof driver.library)
        return driver.library;
    return choice.starts_with("sim:") ? gcx_simulator_path() : choice;
}

bool is_simulated() {
    return simulated;
}

Json report_start(const gcx_driver_info& driver) {
    Json json = Json::object();
    json.set("simulated", driver.simulated != 0);
    json.set("driver", Json::object()
                           .set("version", version_text(driver.version))
                           .set("simulated", driver.simulated != 0)
                           .set("library", driver.library)
                           .set("header_version", version_text(driver.header_version)));
    return json;
}

std::string banner(const gcx_driver_info& driver) {
    if (driver.simulated == 0)
        return "";
    return format("SIMULATED: the driver is gcx's simulation of CUDA %s, no GPU is involved\n",
                  version_text(driver.version).c_str());
}

std::string times_note(const gcx_driver_info& driver) {
    if (driver.simulated == 0)
        return "";
    return "times are those of this machine's CPU running the SIMULATED driver; they say nothing "
           "about a GPU\n";
}

std::string plain_name(const gcx_device_info& device) {
    std::string_view name = device.name;
    while (simulated && name.starts_with(kMark))
        name.remove_prefix(kMark.size());
    return std::string(name);
}

} // namespace gcx::cli

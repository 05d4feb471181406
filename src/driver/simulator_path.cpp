// Finds the simulated driver, which is installed beside this library.

#include "driver/driver.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>

namespace gcx {
namespace {

constexpr char kFileName[] = "libgcx-sim.so";

// The folder of the library or program that holds this code.
std::string own_folder() {
    Dl_info info;
    if (dladdr(reinterpret_cast<const void*>(&simulator_path), &info) == 0 ||
        info.dli_fname == nullptr)
        return ".";
    const std::string path = info.dli_fname;
    const std::size_t slash = path.rfind('/');
    return slash == std::string::npos ? "." : path.substr(0, slash);
}

} // namespace

std::string simulator_path() {
    if (const char* chosen = std::getenv("GCX_SIM_LIBRARY"); chosen != nullptr && *chosen != '\0') {
        if (access(chosen, R_OK) != 0)
            fail(GCX_ERROR_FILE_NOT_FOUND,
                 format("GCX_SIM_LIBRARY=%s: there is no such file", chosen));
        return chosen;
    }
    const std::string folder = own_folder();
    // As installed, then as built.
    const std::string places[] = {folder + "/gcx/" + kFileName, folder + "/sim/" + kFileName};
    for (const std::string& place : places) {
        if (access(place.c_str(), R_OK) == 0)
            return place;
    }
    fail(GCX_ERROR_FILE_NOT_FOUND,
         format("the simulated driver is not installed: looked for %s and %s; GCX_SIM_LIBRARY can "
                "name it",
                places[0].c_str(), places[1].c_str()));
}

} // namespace gcx

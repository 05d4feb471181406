#include "driver/companion_library.hpp"

#include "base/error.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <cstdlib>

namespace gcx {
namespace {

// The path of the library or program that contains this code; empty if unknown. An array, which is
// never destroyed.
constinit char own_path[2 * PATH_MAX] = "";

// Runs when the library is loaded: the loader keeps a relative path, which leads elsewhere after
// the working directory has changed.
[[gnu::constructor]] void note_own_path() {
    Dl_info info;
    if (dladdr(reinterpret_cast<const void*>(&find_simulator), &info) == 0 ||
        info.dli_fname == nullptr)
        return;
    char folder[PATH_MAX] = "";
    const bool relative = *info.dli_fname != '/' && getcwd(folder, sizeof folder) != nullptr;
    std::snprintf(own_path, sizeof own_path, "%s%s%s", folder, relative ? "/" : "", info.dli_fname);
}

// A program that Cargo built this library into has no installed gcx next to it.
#ifdef GCX_BUILT_BY_CARGO
constexpr char kSimulatorHint[] =
    "; enable the feature `simulator` of the crate gcx, which builds it, or set GCX_SIM_LIBRARY to "
    "the path of an installed one";
#else
constexpr char kSimulatorHint[] =
    "; in Python, `pip install gcx[sim]` installs it; in Java, the jar of gcx with the classifier "
    "`sim` contains it; GCX_SIM_LIBRARY can name its path";
#endif

std::string own_folder() {
    const std::string path = own_path;
    const std::size_t slash = path.rfind('/');
    return slash == std::string::npos ? "." : path.substr(0, slash);
}

} // namespace

std::string companion_path(const CompanionLibrary& companion) {
    const std::string folder = own_folder();
    // As installed, then as built.
    const std::string places[] = {folder + "/gcx/" + companion.file,
                                  folder + "/" + companion.build_dir + "/" + companion.file};
    for (const std::string& place : places) {
        if (access(place.c_str(), R_OK) == 0)
            return place;
    }
    fail(GCX_ERROR_FILE_NOT_FOUND,
         format("%s is not installed: looked for %s and %s%s", companion.what, places[0].c_str(),
                places[1].c_str(), companion.hint));
}

std::string find_simulator() {
    if (const char* chosen = std::getenv("GCX_SIM_LIBRARY"); chosen != nullptr && *chosen != '\0') {
        if (access(chosen, R_OK) != 0)
            fail(GCX_ERROR_FILE_NOT_FOUND,
                 format("GCX_SIM_LIBRARY=%s: there is no such file", chosen));
        return chosen;
    }
#ifdef GCX_BUILT_SIMULATOR
    if (access(GCX_BUILT_SIMULATOR, R_OK) == 0)
        return GCX_BUILT_SIMULATOR;
#endif
    return companion_path({"the simulated driver", "libgcx-sim.so", "sim", kSimulatorHint});
}

} // namespace gcx

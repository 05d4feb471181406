#include "cli/exec_libraries.hpp"

#include "cli/checked.hpp"
#include "cli/chosen_driver.hpp"
#include "cli/text.hpp"

#include <gcx_sim.h>

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

namespace gcx::cli {
namespace {

struct Closer {
    void operator()(void* library) const { dlclose(library); }
};
using Library = std::unique_ptr<void, Closer>;

struct Freer {
    void operator()(char* text) const { std::free(text); }
};

std::string absolute(const char* path) {
    const std::unique_ptr<char, Freer> real(realpath(path, nullptr));
    if (real == nullptr)
        throw Failure(GCX_ERROR_FILE_NOT_FOUND, format("%s: %s", path, std::strerror(errno)));
    return real.get();
}

std::string folder_of_libgcx() {
    Dl_info info{};
    if (dladdr(reinterpret_cast<const void*>(&gcx_driver_open), &info) == 0)
        throw Failure(GCX_ERROR_FILE_NOT_FOUND, "can't tell where libgcx is");
    const std::string path = absolute(info.dli_fname);
    return path.substr(0, path.rfind('/'));
}

// In gcx/ as installed; in a folder of its own as built.
std::string find_beside(const std::string& folder, const std::string& built,
                        const std::string& name) {
    const std::string places[] = {folder + "/gcx/" + name, folder + "/" + built + "/" + name};
    for (const std::string& place : places) {
        if (access(place.c_str(), R_OK) == 0)
            return absolute(place.c_str());
    }
    throw Failure(GCX_ERROR_FILE_NOT_FOUND, format("gcx exec isn't installed: looked for %s and %s",
                                                   places[0].c_str(), places[1].c_str()));
}

Library opened(const gcx_driver_info& driver) {
    Library library(dlopen(library_path(driver).c_str(), RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD));
    if (library == nullptr)
        throw Failure(GCX_ERROR_SHARED_OBJECT_INIT_FAILED,
                      format("can't tell where %s was found", driver.library));
    return library;
}

} // namespace

ExecLibraries find_exec_libraries() {
    const std::string folder = folder_of_libgcx();
    ExecLibraries libraries{find_beside(folder, "interpose", "libgcx-audit.so"),
                            find_beside(folder, "interpose", "libgcx-shim.so")};
    // The loader takes several auditors apart at the colons.
    if (libraries.auditor.find(':') != std::string::npos)
        throw Failure(GCX_ERROR_INVALID_VALUE,
                      format("gcx exec can't work from a folder with a colon in its name: %s",
                             libraries.auditor.c_str()));
    return libraries;
}

std::string open_driver_path(const gcx_driver_info& driver) {
    const Library library = opened(driver);
    const link_map* map = nullptr;
    if (dlinfo(library.get(), RTLD_DI_LINKMAP, &map) != 0)
        throw Failure(GCX_ERROR_SHARED_OBJECT_INIT_FAILED,
                      format("can't tell where %s was found", driver.library));
    return absolute(map->l_name);
}

std::string open_simulation(const gcx_driver_info& driver) {
    const Library library = opened(driver);
    const auto spec =
        reinterpret_cast<decltype(&gcx_sim_spec)>(dlsym(library.get(), "gcx_sim_spec"));
    return spec != nullptr ? spec() : "";
}

} // namespace gcx::cli

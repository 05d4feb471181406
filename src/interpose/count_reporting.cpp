#include "interpose/count_reporting.hpp"

#include "driver/driver.hpp"
#include "interpose/exec_plan.hpp"
#include "interpose/library_search.hpp"
#include "interpose/stub_library.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <mutex>

namespace gcx::interpose {
namespace {

// gcx_count_partitions of a shim: starts reporting counts, given the name of the real libcuda.
// Returns the name that gcx then loads the driver by, or null if gcx uses the stub library too, as
// inside gcx exec.
using CountFn = const char* (*)(const char* real_path);
constexpr char kCountFunction[] = "gcx_count_partitions";

constinit std::mutex start_mutex;
constinit std::atomic<bool> reporting{false};

const char* dl_reason() {
    const char* reason = dlerror();
    return reason != nullptr ? reason : "no reason given";
}

std::string absolute(const std::string& path) {
    char whole[PATH_MAX];
    return realpath(path.c_str(), whole) != nullptr ? whole : "";
}

std::string find_driver(const std::string& choice) {
    const std::string name = library_of(choice);
    const bool searched = name.find('/') == std::string::npos;
    const std::string path = absolute(searched ? find_library(name) : name);
    if (path.empty()) {
        fail(
            GCX_ERROR_SHARED_OBJECT_INIT_FAILED,
            format("no CUDA driver: %s not found%s; install NVIDIA's driver, set GCX_DRIVER to the "
                   "path of libcuda, or set GCX_DRIVER=sim:h100@13.0 to use the simulated driver",
                   name.c_str(),
                   searched ? " in the folders of LD_LIBRARY_PATH, the loader's cache or the "
                              "system's folders"
                            : ""));
    }
    return path;
}

// Returns the library that is loaded as libcuda.so.1. Inside gcx exec it loads the stub library.
// Returns null if nothing is loaded.
void* loaded_libcuda() {
    const bool inside_exec = std::getenv(kPlanVariable) != nullptr;
    return dlopen(kDefaultLibrary, RTLD_LAZY | RTLD_LOCAL | (inside_exec ? 0 : RTLD_NOLOAD));
}

// Uses the shim that is loaded already, by another copy of gcx or by gcx exec.
void use_loaded(void* loaded) {
    const auto count = reinterpret_cast<CountFn>(dlsym(loaded, kCountFunction));
    if (count == nullptr)
        fail(GCX_ERROR_TOO_LATE,
             format("libcuda.so.1 is loaded in this process already, as %s; call this before "
                    "anything loads it, in Python before torch, cupy or jax is imported, or start "
                    "the process with gcx exec",
                    path_of(loaded).c_str()));
    if (const char* const real = count(nullptr); real != nullptr)
        set_default_library(real);
}

void load_stub_library(const std::string& choice) {
    const std::string counts =
        companion_path({"the library that reports SM counts", "libgcx-counts.so", "interpose", ""});
    const std::string real = find_driver(choice);
    void* const library = dlopen(counts.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    const auto count =
        library != nullptr ? reinterpret_cast<CountFn>(dlsym(library, kCountFunction)) : nullptr;
    if (count == nullptr)
        fail(GCX_ERROR_SHARED_OBJECT_INIT_FAILED,
             format("can't load %s: %s", counts.c_str(), dl_reason()));
    const std::string name = kRealPrefix + real;
    count(name.c_str());
    const int descriptor = make_stub_library(counts.c_str(), real.c_str());
    if (descriptor < 0)
        fail(GCX_ERROR_OPERATING_SYSTEM,
             format("can't create the stub library for libcuda: %s", std::strerror(errno)));
    void* const stub =
        dlopen(stub_library_path(descriptor).text, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    close(descriptor);
    if (stub == nullptr)
        fail(GCX_ERROR_SHARED_OBJECT_INIT_FAILED,
             format("can't load the stub library for libcuda: %s", dl_reason()));
    set_default_library(name);
}

} // namespace

void report_partition_counts(const std::string& choice) {
    const std::lock_guard lock(start_mutex);
    if (reporting.load())
        return;
    if (void* const loaded = loaded_libcuda(); loaded != nullptr)
        use_loaded(loaded);
    else if (Driver::started())
        fail(GCX_ERROR_TOO_LATE,
             "gcx has opened the driver in this process already; call this before anything that "
             "opens it, or start the process with gcx exec");
    else
        load_stub_library(choice);
    reporting.store(true);
}

} // namespace gcx::interpose

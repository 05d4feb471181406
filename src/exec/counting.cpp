#include "exec/counting.hpp"

#include "driver/companion_library.hpp"
#include "driver/driver.hpp"
#include "exec/facade.hpp"
#include "exec/library_search.hpp"
#include "exec/words.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <mutex>

namespace gcx::exec {
namespace {

// The function by which a library that stands before libcuda is told to answer counts, and where
// the real one is. It says what the real one goes by for gcx: null if gcx is to use the facade too,
// as inside gcx exec.
using CountFn = const char* (*)(const char* real_path);
constexpr char kCountFunction[] = "gcx_count_partitions";

constinit std::mutex starting;
constinit std::atomic<bool> reporting{false};

const char* dl_reason() {
    const char* reason = dlerror();
    return reason != nullptr ? reason : "no reason given";
}

std::string absolute(const std::string& path) {
    char whole[PATH_MAX];
    return realpath(path.c_str(), whole) != nullptr ? whole : "";
}

std::string real_library(const std::string& choice) {
    const std::string name = library_of(choice);
    const bool searched = name.find('/') == std::string::npos;
    const std::string path = absolute(searched ? find_library(name) : name);
    if (path.empty()) {
        fail(GCX_ERROR_SHARED_OBJECT_INIT_FAILED,
             format("no CUDA driver: there is no %s%s. Install NVIDIA's driver, set GCX_DRIVER to "
                    "the path of libcuda, or set GCX_DRIVER=sim:h100@13.0 to run on the simulated "
                    "one",
                    name.c_str(),
                    searched ? " in the folders of LD_LIBRARY_PATH, the loader's cache or the "
                               "system's folders"
                             : ""));
    }
    return path;
}

// A library that is loaded under libcuda's name, or that gcx exec will give for it; or null.
void* loaded_libcuda() {
    const bool inside_exec = std::getenv(kPlanVariable) != nullptr;
    return dlopen(kDefaultLibrary, RTLD_LAZY | RTLD_LOCAL | (inside_exec ? 0 : RTLD_NOLOAD));
}

// Where something that knows of counts stands before libcuda already: another copy of gcx put it
// there, or gcx exec.
void use_loaded(void* loaded) {
    const auto count = reinterpret_cast<CountFn>(dlsym(loaded, kCountFunction));
    if (count == nullptr)
        fail(GCX_ERROR_NOT_PERMITTED,
             format("libcuda.so.1 is loaded in this process already, as %s, and nothing can be put "
                    "before it any more: ask before anything loads it, from Python before torch, "
                    "cupy or jax is imported; or start the process with gcx exec",
                    path_of(loaded).c_str()));
    if (const char* const real = count(nullptr); real != nullptr)
        set_default_library(real);
}

void put_facade(const std::string& choice) {
    const std::string counts =
        companion_path({"what answers partitions' SM counts", "libgcx-counts.so", "shim", ""});
    const std::string real = real_library(choice);
    void* const library = dlopen(counts.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    const auto count =
        library != nullptr ? reinterpret_cast<CountFn>(dlsym(library, kCountFunction)) : nullptr;
    if (count == nullptr)
        fail(GCX_ERROR_SHARED_OBJECT_INIT_FAILED,
             format("%s can't be used: %s", counts.c_str(), dl_reason()));
    const std::string name = kRealPrefix + real;
    count(name.c_str());
    const int descriptor = make_facade(counts.c_str(), real.c_str());
    if (descriptor < 0)
        fail(GCX_ERROR_OPERATING_SYSTEM,
             format("no file for what stands before libcuda: %s", std::strerror(errno)));
    void* const facade =
        dlopen(facade_path(descriptor).text, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    close(descriptor);
    if (facade == nullptr)
        fail(GCX_ERROR_SHARED_OBJECT_INIT_FAILED,
             format("what stands before libcuda can't be loaded: %s", dl_reason()));
    set_default_library(name);
}

} // namespace

void report_partition_counts(const std::string& choice) {
    const std::lock_guard lock(starting);
    if (reporting.load())
        return;
    if (void* const loaded = loaded_libcuda(); loaded != nullptr)
        use_loaded(loaded);
    else if (Driver::started())
        fail(GCX_ERROR_NOT_PERMITTED,
             "gcx has started CUDA in this process already, which goes on without what would "
             "answer the counts: ask before the first call of gcx that opens the driver, or start "
             "the process with gcx exec");
    else
        put_facade(choice);
    reporting.store(true);
}

bool reports_partition_counts() {
    return reporting.load();
}

} // namespace gcx::exec

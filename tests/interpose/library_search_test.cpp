// The library that is found without loading it is the one that dlopen loads.
#include "interpose/count_reporting.hpp"

#include "check.hpp"

#include <dlfcn.h>

#include <string>

using gcx::interpose::find_library;

namespace {

void library_installed_is_found_as_loaded() {
    for (const char* const name : {"libcuda.so.1", "libBrokenLocale.so.1", "libanl.so.1",
                                   "libresolv.so.2", "libc.so.6", "libz.so.1"}) {
        const std::string found = find_library(name);
        void* const library = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
        const std::string loaded = library != nullptr ? gcx::interpose::path_of(library) : "";
        CHECK_EQ(found, loaded);
        if (library != nullptr)
            CHECK_EQ(find_library(name), loaded);
    }
    CHECK(find_library("libcuda.so.1").find("/sim/libcuda/") != std::string::npos);
}

void library_missing_is_not_found() {
    CHECK_EQ(find_library("libnobody-has-this.so"), "");
    CHECK_EQ(find_library(""), "");
}

} // namespace

int main() {
    library_missing_is_not_found();
    library_installed_is_found_as_loaded();
    return check::summary("search for libraries");
}

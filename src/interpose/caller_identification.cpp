#include "interpose/caller_identification.hpp"

#include <dlfcn.h>
#include <link.h>

#include <cstddef>
#include <string_view>

namespace gcx::shim {
namespace {

// 13.10, measured with 13.10.0.20; 13.1.0.3 is wrong, and those between are not known.
constexpr std::size_t kRightSince = 131000;

bool is_cublas(std::string_view file) {
    file.remove_prefix(file.rfind('/') + 1); // none: from the first
    return file.starts_with("libcublas");
}

// The path of the library that has the address; empty: the program itself, or none. dladdr would
// look for a symbol as well, through all of a library's, under the loader's lock, and some
// libraries ask at each launch.
const char* file_of(const void* address) {
#ifdef DLFO_STRUCT_HAS_EH_DBASE // built with glibc 2.35 or newer, and maybe run with an older one
    static const auto find =
        reinterpret_cast<decltype(&_dl_find_object)>(dlsym(RTLD_DEFAULT, "_dl_find_object"));
    dl_find_object object{};
    if (find != nullptr)
        return find(const_cast<void*>(address), &object) == 0 ? object.dlfo_link_map->l_name : "";
#endif
    Dl_info symbol{};
    return dladdr(address, &symbol) != 0 && symbol.dli_fname != nullptr ? symbol.dli_fname : "";
}

// As cublasLt.h writes it, major * 10000 + minor * 100 + patch; 0: it doesn't say.
std::size_t version_of(const char* file) {
    void* const library = dlopen(file, RTLD_NOLOAD | RTLD_LAZY);
    if (library == nullptr)
        return 0;
    // libcublas finds it in the libcublasLt that it needs.
    const auto get = reinterpret_cast<std::size_t (*)()>(dlsym(library, "cublasLtGetVersion"));
    const std::size_t version = get != nullptr ? get() : 0;
    dlclose(library);
    return version;
}

} // namespace

Asker asker_at(const void* return_address) {
    const char* const file = file_of(return_address);
    return is_cublas(file) && version_of(file) < kRightSince ? Asker::kOldCublas : Asker::kOther;
}

} // namespace gcx::shim

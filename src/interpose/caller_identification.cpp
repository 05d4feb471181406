#include "interpose/caller_identification.hpp"

#include <dlfcn.h>
#include <link.h>

#include <cstddef>
#include <string_view>

namespace gcx::interpose {
namespace {

// cuBLAS 13.10. Measured: 13.10.0.20 is right, 13.1.0.3 is wrong. Versions between are unknown.
constexpr std::size_t kFirstRightCublas = 131000;

bool is_cublas(std::string_view file) {
    file.remove_prefix(file.rfind('/') + 1); // npos + 1 is 0
    return file.starts_with("libcublas");
}

// Returns the path of the library at the address, or "" for the program itself. Some libraries ask
// for the SM count at each launch, so dladdr is avoided: it also searches all symbols of the
// library, under the loader's lock.
const char* file_of(const void* address) {
#ifdef DLFO_STRUCT_HAS_EH_DBASE // built with glibc 2.35 or newer, but can run with an older one
    static const auto find =
        reinterpret_cast<decltype(&_dl_find_object)>(dlsym(RTLD_DEFAULT, "_dl_find_object"));
    dl_find_object object{};
    if (find != nullptr)
        return find(const_cast<void*>(address), &object) == 0 ? object.dlfo_link_map->l_name : "";
#endif
    Dl_info symbol{};
    return dladdr(address, &symbol) != 0 && symbol.dli_fname != nullptr ? symbol.dli_fname : "";
}

// Returns major * 10000 + minor * 100 + patch, as in cublasLt.h, or 0 if the version is unknown.
std::size_t cublas_version(const char* file) {
    void* const library = dlopen(file, RTLD_NOLOAD | RTLD_LAZY);
    if (library == nullptr)
        return 0;
    // In libcublas, dlsym finds the function of its dependency libcublasLt.
    const auto get = reinterpret_cast<std::size_t (*)()>(dlsym(library, "cublasLtGetVersion"));
    const std::size_t version = get != nullptr ? get() : 0;
    dlclose(library);
    return version;
}

} // namespace

Caller caller_at(const void* return_address) {
    const char* const file = file_of(return_address);
    return is_cublas(file) && cublas_version(file) < kFirstRightCublas ? Caller::kOldCublas
                                                                       : Caller::kOther;
}

} // namespace gcx::interpose

#include "shim/askers.hpp"

#include <dlfcn.h>

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
    Dl_info found{};
    if (dladdr(return_address, &found) == 0 || found.dli_fname == nullptr ||
        !is_cublas(found.dli_fname) || version_of(found.dli_fname) >= kRightSince)
        return Asker::kOther;
    return Asker::kOldCublas;
}

} // namespace gcx::shim

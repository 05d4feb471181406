#include "interpose/real_driver.hpp"

#include <dlfcn.h>

namespace gcx::shim {
namespace {

constinit std::atomic<void*> library{nullptr};

} // namespace

void* real_library() {
    void* found = library.load(std::memory_order_acquire);
    if (found != nullptr || real_path() == nullptr)
        return found;
    // Two threads may get here: both find the same library.
    found = dlopen(real_path(), RTLD_NOW | RTLD_LOCAL);
    library.store(found, std::memory_order_release);
    return found;
}

void* real_symbol(const char* symbol) {
    void* const found = real_library();
    return found != nullptr ? dlsym(found, symbol) : nullptr;
}

CUresult result_without_real() {
    return real_library() != nullptr ? CUDA_ERROR_NOT_SUPPORTED
                                     : CUDA_ERROR_SHARED_OBJECT_INIT_FAILED;
}

CUresult ask_usable() {
    int count = 0;
    return GCX_REAL_ALONE(cuDeviceGetCount)(&count);
}

} // namespace gcx::shim

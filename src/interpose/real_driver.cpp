#include "interpose/real_driver.hpp"

#include <dlfcn.h>

namespace gcx::interpose {
namespace {

constinit std::atomic<void*> handle_of_driver{nullptr};

} // namespace

void* driver_library() {
    void* found = handle_of_driver.load(std::memory_order_acquire);
    if (found != nullptr || driver_path() == nullptr)
        return found;
    // If two threads get here, both find the same library.
    found = dlopen(driver_path(), RTLD_NOW | RTLD_LOCAL);
    handle_of_driver.store(found, std::memory_order_release);
    return found;
}

void* driver_symbol(const char* symbol) {
    void* const found = driver_library();
    return found != nullptr ? dlsym(found, symbol) : nullptr;
}

CUresult missing_function_result() {
    return driver_library() != nullptr ? CUDA_ERROR_NOT_SUPPORTED
                                       : CUDA_ERROR_SHARED_OBJECT_INIT_FAILED;
}

CUresult check_driver_usable() {
    int count = 0;
    return GCX_DRIVER(cuDeviceGetCount)(&count);
}

} // namespace gcx::interpose

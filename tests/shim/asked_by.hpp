// What a library is told of the SMs, which asks by itself.
#pragma once

#include "../api/support.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <string>

// The libraries are those of asker.c: OTHER, CUBLAS_OLD, CUBLAS_NEW, CUBLAS_UNKNOWN.
inline int count_asked_by(const std::string& who, decltype(&::cuDeviceGetAttribute) attribute) {
    void* const library = dlopen(std::getenv(("GCX_TEST_ASKER_" + who).c_str()), RTLD_NOW);
    CHECK(library != nullptr);
    using Ask = int (*)(decltype(&::cuDeviceGetAttribute), int*, CUdevice_attribute);
    const auto ask = reinterpret_cast<Ask>(dlsym(library, "ask"));
    int count = -1;
    CHECK_EQ(ask(attribute, &count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT), 0);
    return count;
}

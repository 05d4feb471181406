// The SM count that a library sees as the caller of cuDeviceGetAttribute.
#pragma once

#include "../api/support.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <string>

// The libraries are those of caller.c: OTHER, CUBLAS_OLD, CUBLAS_NEW, CUBLAS_UNKNOWN.
inline int count_seen_by(const std::string& caller, decltype(&::cuDeviceGetAttribute) attribute) {
    void* const library = dlopen(std::getenv(("GCX_TEST_CALLER_" + caller).c_str()), RTLD_NOW);
    CHECK(library != nullptr);
    using GetAttribute = int (*)(decltype(&::cuDeviceGetAttribute), int*, CUdevice_attribute);
    const auto get = reinterpret_cast<GetAttribute>(dlsym(library, "get_attribute"));
    int count = -1;
    CHECK_EQ(get(attribute, &count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT), 0);
    return count;
}

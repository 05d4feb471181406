// Random numbers of the kernel. std::random_device opens /dev/urandom with some C++ libraries, which
// fails if the process has too many open files or sees no /dev.
#pragma once

#include "base/error.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

namespace gcx {

inline uint64_t random_bits() {
    uint64_t bits = 0;
    if (getentropy(&bits, sizeof bits) != 0)
        fail(GCX_ERROR_OPERATING_SYSTEM,
             format("the kernel gives no random numbers: %s", std::strerror(errno)));
    return bits;
}

} // namespace gcx

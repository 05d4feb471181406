// Lists that the library gives out, and what it says of files that it leaves out.
#pragma once

#include "cli/checked.hpp"

#include <gcx.h>

#include <cstdint>
#include <string>
#include <vector>

namespace gcx::cli {

// All that give(array, capacity, count) gives.
template <class T, class Give>
std::vector<T> list_all(Give give) {
    std::vector<T> found;
    uint32_t count = 64;
    gcx_result result = GCX_ERROR_INVALID_VALUE;
    // More may have come since it was said how many there are.
    while (result == GCX_ERROR_INVALID_VALUE && count > found.size()) {
        found.resize(count + count / 4);
        result = give(found.data(), static_cast<uint32_t>(found.size()), &count);
    }
    check(result);
    found.resize(count);
    return found;
}

// While it lives, what the library warns of goes there, each warning once.
class Warnings {
  public:
    explicit Warnings(std::vector<std::string>& to);
    ~Warnings();
    Warnings(const Warnings&) = delete;
    Warnings& operator=(const Warnings&) = delete;
};

// "coscheduled"
std::string family_text(gcx_sm_family kind);

// As nvidia-smi writes it: "GPU-1b2c3d4e-...".
std::string uuid_text(const uint8_t (&uuid)[16]);

// The numbers of the bits that are set.
std::vector<uint32_t> bits_of(const uint64_t (&atoms)[8]);

// A name that a process gave: made harmless for the terminal, cut off where it is too long for a
// column, and as wide as that.
std::string name_column(const char* text);

} // namespace gcx::cli

// Interprets an input as a profile that the simulated driver reads from a file. The profile is
// refused with the number of a line, or every family can be split and partitions have the promised
// SMs.

#include "device.hpp"
#include "harness.hpp"

#include <cstdint>
#include <cstring>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
    if (fuzz::open_profile({reinterpret_cast<const char*>(data), size}))
        fuzz::use_device({.kernels = true, .regular = false});
    else
        fuzz::must(std::strstr(gcx_last_error_message(), ": line ") != nullptr ||
                       std::strstr(gcx_last_error_message(), "12.4 or newer") != nullptr,
                   "a profile is refused without its line");
    fuzz::close_library();
    return 0;
}

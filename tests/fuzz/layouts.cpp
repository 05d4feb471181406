// Devices of every SM count and compute capability, with GPCs of several sizes, used as
// fuzz::use_device() says. Kernels take most of the time, so that only every eighth runs them.

#include "device.hpp"
#include "harness.hpp"

#include "check.hpp"

#include <gcx.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

namespace {

constexpr uint32_t kMaxSms = 192;
constexpr std::array kCapabilities = {"7.0", "7.2",  "7.5",  "8.0",  "8.6",  "8.7",  "8.9",
                                      "9.0", "10.0", "10.1", "10.3", "11.0", "12.0", "12.1"};
constexpr std::array kDrivers = {"12.4", "13.0", "13.5"};
constexpr std::array<uint32_t, 3> kGpcSizes = {18, 6, kMaxSms};

struct Machine {
    uint32_t sm_count;
    const char* capability;
    const char* driver;
    uint32_t gpc_size;
};

std::string profile(const Machine& machine) {
    std::string text = "gcx-profile 1\nname Layout\ncompute_capability ";
    text += machine.capability;
    text += std::string("\ndriver ") + machine.driver;
    text += "\nsm_count " + std::to_string(machine.sm_count) + "\nmemory_bytes 8589934592\n";
    text += "gpc_sizes";
    for (uint32_t left = machine.sm_count; left > 0;) {
        const uint32_t size = std::min(left, machine.gpc_size);
        text += " " + std::to_string(size);
        left -= size;
    }
    return text;
}

} // namespace

int main() {
    std::size_t turn = 0;
    const uint32_t step = check::slow_alone ? 23 : check::slow ? 11 : 1;
    for (uint32_t sms = 2; sms <= kMaxSms; sms += step) {
        for (const char* const capability : kCapabilities) {
            if (sms % 2 != 0) {
                CHECK(!fuzz::open_profile(profile({sms, capability, "13.0", kMaxSms})));
                CHECK(std::strstr(gcx_last_error_message(), "line 5: ") != nullptr);
                CHECK(std::strstr(gcx_last_error_message(), "even number") != nullptr);
                fuzz::close_library();
                continue;
            }
            for (const char* const driver : kDrivers) {
                const uint32_t gpc_size = kGpcSizes[turn % kGpcSizes.size()];
                CHECK(fuzz::open_profile(profile({sms, capability, driver, gpc_size})));
                CHECK_EQ(fuzz::use_device({.kernels = turn++ % 8 == 0, .regular = true}), sms);
                fuzz::close_library();
            }
        }
    }
    return check::summary("layouts");
}

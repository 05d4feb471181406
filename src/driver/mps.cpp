#include "driver/mps.hpp"

#include <charconv>
#include <cstdlib>
#include <cstring>

namespace gcx {
namespace {

float percentage_of_environment() {
    const char* const text = std::getenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
    if (text == nullptr)
        return 0;
    float value = 0;
    const char* const end = text + std::strlen(text);
    const auto [rest, error] = std::from_chars(text, end, value);
    return error == std::errc() && rest == end && value > 0 && value <= 100 ? value : 0;
}

} // namespace

Mps mps_of(const Driver& driver, CUdevice device) {
    int enabled = 0;
    const CUresult result =
        driver.cuDeviceGetAttribute(&enabled, CU_DEVICE_ATTRIBUTE_MPS_ENABLED, device);
    // One that doesn't know the attribute.
    if (result == CUDA_ERROR_INVALID_VALUE)
        return {GCX_MPS_UNKNOWN, percentage_of_environment()};
    driver.check(result, "cuDeviceGetAttribute");
    return {enabled != 0 ? GCX_MPS_ON : GCX_MPS_OFF, percentage_of_environment()};
}

} // namespace gcx

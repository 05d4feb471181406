// Driver, capabilities and devices.

#include "api/guard.hpp"
#include "driver/companion_library.hpp"

#include <climits>
#include <cstdio>

using namespace gcx;

gcx_result gcx_driver_open(const char* driver) {
    GCX_BODY({ open_library(driver); });
}

gcx_result gcx_driver_get_info(gcx_driver_info* info) {
    GCX_BODY({
        check_size(info, "info");
        const Driver& driver = library().driver;
        info->version = driver.version();
        info->header_version = CUDA_VERSION;
        info->simulated = driver.simulated() ? 1 : 0;
        std::snprintf(info->library, sizeof info->library, "%s", driver.library().c_str());
    });
}

gcx_result gcx_capability_get_info(gcx_capability capability, gcx_capability_info* info) {
    GCX_BODY({
        check_size(info, "info");
        if (capability < 0 || capability >= GCX_CAPABILITY_COUNT)
            fail(GCX_ERROR_INVALID_VALUE, format("there is no capability %d; they go from 0 to %d",
                                                 capability, GCX_CAPABILITY_COUNT - 1));
        const Driver& driver = library().driver;
        const CapabilityRow& row = capability_row(capability);
        info->available = driver.has(capability) ? 1 : 0;
        info->required_version = row.required_version;
        info->name = row.name;
    });
}

const char* gcx_simulator_path(void) {
    static thread_local char path[PATH_MAX]; // no file has a longer one
    const gcx_result result = guarded(
        __func__, [&] { std::snprintf(path, sizeof path, "%s", simulator_path().c_str()); });
    return result == GCX_SUCCESS ? path : nullptr;
}

gcx_result gcx_device_get_count(int32_t* count) {
    GCX_BODY({ *not_null(count, "count") = library().device_count(); });
}

gcx_result gcx_device_get_info(int32_t device, gcx_device_info* info) {
    GCX_BODY({
        check_size(info, "info");
        library().device(device).get_info(*info);
    });
}

gcx_result gcx_device_get_stream_priority_range(int32_t device, int32_t* least, int32_t* greatest) {
    GCX_BODY({
        not_null(least, "least");
        not_null(greatest, "greatest");
        const Device::Priorities range = library().device(device).stream_priorities();
        *least = range.least;
        *greatest = range.greatest;
    });
}

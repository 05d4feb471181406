#include "cli/checked.hpp"

#include "cli/library_message.hpp"

namespace gcx::cli {

void check(gcx_result result) {
    if (result != GCX_SUCCESS)
        throw Failure(result, library_message());
}

gcx_device_info device_info(int32_t device) {
    gcx_device_info info = GCX_DEVICE_INFO_INIT;
    check(gcx_device_get_info(device, &info));
    return info;
}

gcx_resource_info resource_info(const gcx_resource& resource) {
    gcx_resource_info info = GCX_RESOURCE_INFO_INIT;
    check(gcx_resource_get_info(&resource, &info));
    return info;
}

} // namespace gcx::cli

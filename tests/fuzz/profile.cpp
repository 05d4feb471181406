// Interprets an input as a profile that the simulated driver reads from a file. The profile is
// refused with the number of a line, or every family can be split and partitions have the promised
// SMs.

#include "harness.hpp"

#include <gcx.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

using fuzz::must;
using fuzz::sm_count_of;

namespace {

constexpr std::array<uint32_t, 3> kFlags = {
    GCX_SPLIT_DEFAULT,
    GCX_SPLIT_IGNORE_SM_COSCHEDULING,
    GCX_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE,
};

void use(const gcx_resource& resource) {
    gcx_context context = nullptr;
    gcx_stream stream = nullptr;
    if (CALL(gcx_context_create(&resource, 1, nullptr, &context)) != GCX_SUCCESS)
        return;
    if (CALL(gcx_stream_create(context, nullptr, &stream)) == GCX_SUCCESS) {
        std::array<uint32_t, GCX_MAX_SMS> ids{};
        uint32_t count = 0;
        if (CALL(gcx_stream_probe_sms(stream, ids.data(), GCX_MAX_SMS, &count)) == GCX_SUCCESS)
            must(count >= sm_count_of(resource), "fewer SMs than promised");
        must(gcx_stream_destroy(stream) == GCX_SUCCESS, "a stream can't be destroyed");
    }
    must(gcx_context_destroy(context) == GCX_SUCCESS, "a context can't be destroyed");
}

void split(const gcx_resource& device, const std::vector<gcx_sm_request>& requests,
           uint32_t flags) {
    std::vector<gcx_resource> groups(requests.size());
    gcx_resource remainder{};
    if (CALL(gcx_sm_split(&device, requests.data(), static_cast<uint32_t>(requests.size()), flags,
                          groups.data(), &remainder, nullptr, nullptr)) != GCX_SUCCESS)
        return;
    uint32_t total = sm_count_of(remainder);
    for (const gcx_resource& group : groups)
        total += sm_count_of(group);
    must(total == sm_count_of(device), "a split lost or found SMs");
    use(groups[0]);
}

gcx_sm_request request(uint32_t count, uint32_t coscheduled = 0, uint32_t flags = 0) {
    gcx_sm_request made{};
    made.sm_count = count;
    made.coscheduled_sm_count = coscheduled;
    made.flags = flags;
    return made;
}

void use_device() {
    gcx_device_info info = GCX_DEVICE_INFO_INIT;
    CALL(gcx_device_get_info(0, &info));
    gcx_resource device{};
    if (CALL(gcx_device_get_resource(0, GCX_RESOURCE_SM, &device)) != GCX_SUCCESS)
        return;
    for (const uint32_t flags : kFlags) {
        split(device, {request(1)}, flags);
        split(device, {request(info.sm_count / 2), request(GCX_REST)}, flags);
        split(device, {request(info.sm_count)}, flags);
    }
    split(device, {request(info.sm_count / 2, 2), request(GCX_REST, 0, GCX_SM_REQUEST_BACKFILL)},
          0);
    for (const gcx_sm_family family :
         {GCX_SM_FAMILY_COSCHEDULED, GCX_SM_FAMILY_FINE, GCX_SM_FAMILY_MAX_CLUSTER})
        CALL(gcx_device_map_sms(0, family));
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
    static const int file = memfd_create("profile", 0);
    must(file >= 0 && ftruncate(file, 0) == 0 &&
             pwrite(file, data, size, 0) == static_cast<ssize_t>(size),
         "the profile can't be written");
    const std::string path = "/proc/self/fd/" + std::to_string(file);
    fuzz::begin_input("sim:" + path);
    if (CALL(gcx_driver_open(nullptr)) == GCX_SUCCESS)
        use_device();
    else
        must(std::strstr(gcx_last_error_message(), ": line ") != nullptr ||
                 std::strstr(gcx_last_error_message(), "12.4 or newer") != nullptr,
             "a profile is refused without its line");
    fuzz::close_library();
    return 0;
}

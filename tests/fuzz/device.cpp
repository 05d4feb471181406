#include "device.hpp"
#include "harness.hpp"

#include <gcx.h>

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace fuzz {
namespace {

struct Family {
    gcx_sm_family family;
    uint32_t flags;
};
constexpr Family kFamilies[] = {
    {GCX_SM_FAMILY_COSCHEDULED, GCX_SPLIT_DEFAULT},
    {GCX_SM_FAMILY_FINE, GCX_SPLIT_IGNORE_SM_COSCHEDULING},
    {GCX_SM_FAMILY_MAX_CLUSTER, GCX_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE},
};

std::string profile; // for messages

void check(bool holds, const char* what) {
    must(holds, what, profile.c_str());
}

// Returns whether a call succeeded.
bool works(gcx_result result, const DeviceUses& uses, const char* what) {
    const char* const message = gcx_last_error_message();
    check(result == GCX_SUCCESS || (*message != '\0' && result != GCX_ERROR_UNKNOWN), what);
    check(result == GCX_SUCCESS || !uses.regular ||
              std::strstr(message, " returned CUDA_ERROR") == nullptr,
          what);
    return result == GCX_SUCCESS;
}

// Checks that a kernel runs on the SMs of its group.
void run_kernel(const gcx_resource& group, const DeviceUses& uses) {
    gcx_context context = nullptr;
    gcx_stream stream = nullptr;
    std::vector<uint32_t> ids(GCX_MAX_SMS);
    uint32_t count = 0;
    if (works(gcx_context_create(&group, 1, nullptr, &context), uses, "gcx_context_create") &&
        works(gcx_stream_create(context, nullptr, &stream), uses, "gcx_stream_create") &&
        works(gcx_stream_probe_sms(stream, ids.data(), GCX_MAX_SMS, &count), uses, "a probe")) {
        check(count >= sm_count_of(group), "fewer SMs than promised");
        check(count == sm_count_of(group) || !uses.regular, "the kernel saw other SMs");
    }
    check(gcx_stream_destroy(stream) == GCX_SUCCESS, "gcx_stream_destroy");
    check(gcx_context_destroy(context) == GCX_SUCCESS, "gcx_context_destroy");
}

std::vector<uint32_t> sm_ids(const gcx_resource& resource) {
    std::vector<uint32_t> ids(GCX_MAX_SMS);
    uint32_t count = 0;
    check(gcx_resource_get_sm_ids(&resource, ids.data(), GCX_MAX_SMS, &count) == GCX_SUCCESS,
          "gcx_resource_get_sm_ids");
    ids.resize(count);
    return ids;
}

void split(const gcx_resource& device, const std::vector<uint32_t>& counts, uint32_t flags,
           bool mapped, const DeviceUses& uses) {
    std::vector<gcx_sm_request> requests(counts.size());
    for (std::size_t i = 0; i < counts.size(); i++)
        requests[i].sm_count = counts[i];
    const auto size = static_cast<uint32_t>(counts.size());
    std::vector<uint32_t> planned(counts.size());
    uint32_t rest = 0;
    const gcx_result plan = gcx_sm_split(&device, requests.data(), size, flags, nullptr, nullptr,
                                         planned.data(), &rest);
    std::vector<gcx_resource> parts(counts.size() + 1);
    const gcx_result made = gcx_sm_split(&device, requests.data(), size, flags, parts.data(),
                                         &parts.back(), nullptr, nullptr);
    check(plan == made, "the plan and the split have different results");
    if (!works(made, uses, "gcx_sm_split"))
        return;
    planned.push_back(rest);
    uint32_t total = 0;
    std::vector<uint32_t> seen;
    for (std::size_t i = 0; i < parts.size(); i++) {
        check(sm_count_of(parts[i]) == planned[i], "the plan and the split have different counts");
        check(i == counts.size() || counts[i] == GCX_REST || planned[i] >= counts[i],
              "a group has too few SMs");
        total += planned[i];
        if (!mapped)
            continue;
        const std::vector<uint32_t> ids = sm_ids(parts[i]);
        check(ids.size() == planned[i], "a group has a different number of SM ids");
        seen.insert(seen.end(), ids.begin(), ids.end());
    }
    check(total == sm_count_of(device), "a split lost or found SMs");
    std::sort(seen.begin(), seen.end());
    check(std::adjacent_find(seen.begin(), seen.end()) == seen.end(), "an SM is in two groups");
    if (uses.kernels)
        run_kernel(parts[0], uses);
}

void split_structured(const gcx_resource& device, const DeviceUses& uses) {
    gcx_sm_request requests[2] = {};
    requests[0].sm_count = sm_count_of(device) / 4 * 2;
    requests[0].coscheduled_sm_count = 2;
    requests[1].sm_count = GCX_REST;
    requests[1].flags = GCX_SM_REQUEST_BACKFILL;
    gcx_resource parts[3] = {};
    if (CALL(gcx_sm_split(&device, requests, 2, 0, parts, &parts[2], nullptr, nullptr)) !=
        GCX_SUCCESS)
        return;
    uint32_t total = 0;
    for (const gcx_resource& part : parts)
        total += sm_count_of(part);
    check(total == sm_count_of(device), "a structured split lost or found SMs");
    if (uses.kernels)
        run_kernel(parts[0], uses);
}

} // namespace

bool open_profile(const std::string& text) {
    static const int file = memfd_create("profile", 0);
    profile = text;
    replace_contents(file, text.data(), text.size());
    begin_input("sim:/proc/self/fd/" + std::to_string(file));
    return CALL(gcx_driver_open(nullptr)) == GCX_SUCCESS;
}

uint32_t use_device(const DeviceUses& uses) {
    gcx_device_info info = GCX_DEVICE_INFO_INIT;
    CALL(gcx_device_get_info(0, &info));
    gcx_resource device{};
    if (!works(gcx_device_get_resource(0, GCX_RESOURCE_SM, &device), uses, "a device's SMs"))
        return 0;
    const uint32_t sms = sm_count_of(device);
    check(info.sm_count == sms, "gcx_device_get_info");
    for (const auto& [family, flags] : kFamilies) {
        const bool mapped =
            uses.kernels && works(gcx_device_map_sms(0, family), uses, "gcx_device_map_sms");
        for (const std::vector<uint32_t>& counts :
             std::vector<std::vector<uint32_t>>{{GCX_REST},
                                                {1},
                                                {sms},
                                                {sms / 2, GCX_REST},
                                                {8, GCX_REST},
                                                {24, 8},
                                                {2, 2, 2},
                                                {sms / 3, sms / 3, GCX_REST}})
            split(device, counts, flags, mapped, uses);
        gcx_sm_request request{};
        request.sm_count = sms + 1;
        gcx_resource group{};
        check(CALL(gcx_sm_split(&device, &request, 1, flags, &group, nullptr, nullptr, nullptr)) !=
                  GCX_SUCCESS,
              "a split of more SMs than the device has");
    }
    split_structured(device, uses);
    return sms;
}

} // namespace fuzz

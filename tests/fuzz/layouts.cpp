// Devices of every SM count and compute capability, with GPCs of several sizes: the calls of gcx
// info, plan, split and verify work or fail with a message.

#include "harness.hpp"

#include "check.hpp"

#include <gcx.h>

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

namespace {

constexpr uint32_t kMaxSms = 192;
constexpr std::array kCapabilities = {"7.0", "7.2",  "7.5",  "8.0",  "8.6",  "8.7",  "8.9",
                                      "9.0", "10.0", "10.1", "10.3", "11.0", "12.0", "12.1"};
constexpr std::array kDrivers = {"12.4", "13.0", "13.5"};
constexpr std::array<uint32_t, 3> kGpcSizes = {18, 6, kMaxSms};
constexpr std::array<uint32_t, 3> kFamilies = {
    GCX_SPLIT_DEFAULT,
    GCX_SPLIT_IGNORE_SM_COSCHEDULING,
    GCX_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE,
};

struct Machine {
    uint32_t sm_count;
    const char* capability;
    const char* driver;
    uint32_t gpc_size;
};

// The current machine, for messages.
std::string current;

bool holds(bool condition, const char* what) {
    return check::count(condition, __FILE__, __LINE__,
                        condition ? std::string() : current + ": " + what);
}

// Returns whether a call succeeded; a failure needs a message of gcx, not of the driver.
bool answers(gcx_result result, const char* what) {
    const char* const message = gcx_last_error_message();
    holds(result == GCX_SUCCESS || (*message != '\0' && result != GCX_ERROR_UNKNOWN &&
                                    std::strstr(message, " answered CUDA_ERROR") == nullptr),
          what);
    return result == GCX_SUCCESS;
}

std::string profile(const Machine& machine) {
    std::string text = "gcx-profile 1\nname Layout\ncompute_capability ";
    text += machine.capability;
    text += "\nsm_count " + std::to_string(machine.sm_count) + "\nmemory_bytes 8589934592\n";
    text += "gpc_sizes";
    for (uint32_t left = machine.sm_count; left > 0;) {
        const uint32_t size = std::min(left, machine.gpc_size);
        text += " " + std::to_string(size);
        left -= size;
    }
    return text;
}

bool open_machine(const Machine& machine) {
    static const int file = memfd_create("profile", 0);
    const std::string text = profile(machine);
    CHECK(ftruncate(file, 0) == 0);
    CHECK_EQ(pwrite(file, text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
    current = text.substr(text.find("compute")) + " on " + machine.driver;
    std::replace(current.begin(), current.end(), '\n', ' ');
    fuzz::begin_input("sim:/proc/self/fd/" + std::to_string(file) + "@" + machine.driver);
    return gcx_driver_open(nullptr) == GCX_SUCCESS;
}

uint32_t sm_count(const gcx_resource& resource) {
    gcx_resource_info info = GCX_RESOURCE_INFO_INIT;
    holds(gcx_resource_get_info(&resource, &info) == GCX_SUCCESS, "gcx_resource_get_info");
    return info.sm_count;
}

std::vector<uint32_t> sm_ids(const gcx_resource& resource) {
    std::vector<uint32_t> ids(GCX_MAX_SMS);
    uint32_t count = 0;
    holds(gcx_resource_get_sm_ids(&resource, ids.data(), GCX_MAX_SMS, &count) == GCX_SUCCESS,
          "gcx_resource_get_sm_ids");
    ids.resize(count);
    return ids;
}

// Checks that a split yields the counts of its plan and that its groups are disjoint.
void split(const gcx_resource& device, const std::vector<uint32_t>& counts, uint32_t flags,
           bool mapped) {
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
    holds(plan == made, "the plan and the split have different results");
    if (!answers(made, "gcx_sm_split"))
        return;
    planned.push_back(rest);
    uint32_t total = 0;
    std::vector<uint32_t> seen;
    for (std::size_t i = 0; i < parts.size(); i++) {
        holds(sm_count(parts[i]) == planned[i], "the plan and the split have different counts");
        holds(i == counts.size() || counts[i] == GCX_REST || planned[i] >= counts[i],
              "a group has too few SMs");
        total += planned[i];
        if (!mapped)
            continue;
        const std::vector<uint32_t> ids = sm_ids(parts[i]);
        holds(ids.size() == planned[i], "a group has a different number of SM ids");
        seen.insert(seen.end(), ids.begin(), ids.end());
    }
    holds(total == sm_count(device), "a split lost or found SMs");
    std::sort(seen.begin(), seen.end());
    holds(std::adjacent_find(seen.begin(), seen.end()) == seen.end(), "an SM is in two groups");
}

void use_family(const gcx_resource& device, gcx_sm_family family, uint32_t flags, bool map) {
    const uint32_t sms = sm_count(device);
    const bool mapped = map && answers(gcx_device_map_sms(0, family), "gcx_device_map_sms");
    for (const std::vector<uint32_t>& counts :
         std::vector<std::vector<uint32_t>>{{GCX_REST},
                                            {1},
                                            {sms},
                                            {sms / 2, GCX_REST},
                                            {8, GCX_REST},
                                            {24, 8},
                                            {2, 2, 2},
                                            {sms / 3, sms / 3, GCX_REST}})
        split(device, counts, flags, mapped);
    gcx_sm_request request{};
    request.sm_count = sms + 1;
    gcx_resource group{};
    holds(gcx_sm_split(&device, &request, 1, flags, &group, nullptr, nullptr, nullptr) !=
              GCX_SUCCESS,
          "a split of more SMs than the device has");
}

// Checks that a kernel runs on the SMs of its group.
void use_partition(const gcx_resource& device) {
    gcx_sm_request request{};
    request.sm_count = sm_count(device) / 2;
    gcx_resource group{};
    if (!answers(gcx_sm_split(&device, &request, 1, 0, &group, nullptr, nullptr, nullptr),
                 "gcx_sm_split"))
        return;
    gcx_context context = nullptr;
    gcx_stream stream = nullptr;
    std::vector<uint32_t> ids(GCX_MAX_SMS);
    uint32_t count = 0;
    if (answers(gcx_context_create(&group, 1, nullptr, &context), "gcx_context_create") &&
        answers(gcx_stream_create(context, nullptr, &stream), "gcx_stream_create") &&
        answers(gcx_stream_probe_sms(stream, ids.data(), GCX_MAX_SMS, &count), "a probe"))
        holds(count == sm_count(group), "the kernel saw other SMs");
    holds(gcx_stream_destroy(stream) == GCX_SUCCESS, "gcx_stream_destroy");
    holds(gcx_context_destroy(context) == GCX_SUCCESS, "gcx_context_destroy");
}

void structured(const gcx_resource& device) {
    gcx_sm_request requests[2] = {};
    requests[0].sm_count = sm_count(device) / 4 * 2;
    requests[0].coscheduled_sm_count = 2;
    requests[1].sm_count = GCX_REST;
    requests[1].flags = GCX_SM_REQUEST_BACKFILL;
    gcx_resource groups[2];
    gcx_resource remainder{};
    gcx_sm_split(&device, requests, 2, 0, groups, &remainder, nullptr, nullptr);
    holds(true, "answered");
}

// Mapping takes most of the time, so that only every eighth machine is mapped.
void use(const Machine& machine, bool map) {
    if (!holds(open_machine(machine), "gcx_driver_open"))
        return;
    gcx_device_info info = GCX_DEVICE_INFO_INIT;
    holds(gcx_device_get_info(0, &info) == GCX_SUCCESS && info.sm_count == machine.sm_count,
          "gcx_device_get_info");
    gcx_resource device{};
    if (answers(gcx_device_get_resource(0, GCX_RESOURCE_SM, &device), "gcx_device_get_resource")) {
        constexpr gcx_sm_family kKinds[] = {GCX_SM_FAMILY_COSCHEDULED, GCX_SM_FAMILY_FINE,
                                            GCX_SM_FAMILY_MAX_CLUSTER};
        for (std::size_t i = 0; i < kFamilies.size(); i++)
            use_family(device, kKinds[i], kFamilies[i], map);
        structured(device);
        if (map)
            use_partition(device);
    }
    fuzz::close_library();
}

} // namespace

int main() {
    std::size_t turn = 0;
    const uint32_t step = check::slow_alone ? 23 : check::slow ? 11 : 1;
    for (uint32_t sms = 2; sms <= kMaxSms; sms += step) {
        for (const char* const capability : kCapabilities) {
            if (sms % 2 != 0) {
                current = std::to_string(sms) + " SMs";
                holds(!open_machine({sms, capability, "13.0", kMaxSms}) &&
                          std::strstr(gcx_last_error_message(), "line 4: ") != nullptr &&
                          std::strstr(gcx_last_error_message(), "even number") != nullptr,
                      "an odd count is refused with its line");
                fuzz::close_library();
                continue;
            }
            for (const char* const driver : kDrivers) {
                use({sms, capability, driver, kGpcSizes[turn % kGpcSizes.size()]}, turn % 8 == 0);
                turn++;
            }
        }
    }
    return check::summary("layouts");
}

// What --sms, --device, --family and --exact ask for, and its split.
#pragma once

#include "cli/args.hpp"
#include "cli/json.hpp"

#include <gcx.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gcx::cli {

struct FamilyName {
    std::string_view name;
    uint32_t split_flags;
    gcx_sm_family family;
    std::string_view promise;
    std::string_view promise_without_clusters; // below compute capability 9.0
};
extern const std::array<FamilyName, 3> family_names;

// The options that plan, split and verify share.
inline constexpr Option kSmsOption = {
    "--sms", "COUNTS", "the SMs of each partition, e.g. 108,24; rest takes what the others leave"};
inline constexpr Option kDeviceOption = {"--device", "N", "the device's ordinal; 0 if not given"};
inline constexpr Option kFamilyOption = {
    "--family", "NAME",
    "coscheduled (large clusters work), fine (the smallest steps) or max-cluster (for the largest "
    "clusters); coscheduled if not given"};
inline constexpr Option kExactOption = {"--exact", "",
                                        "refuse a count that would have to be rounded up"};

struct Layout {
    int32_t device = 0;
    const FamilyName* family = nullptr;
    bool exact = false;
    std::vector<gcx_sm_request> requests;

    uint32_t split_flags() const;
};

// Of --family; the first of family_names if it isn't given. Throws UsageError.
const FamilyName* read_family(const Arguments& arguments);

// Throws UsageError. Opens no driver.
Layout read_layout(const Arguments& arguments);

// The device's SMs.
gcx_resource device_sms(int32_t device);

struct Split {
    std::vector<gcx_resource> groups;
    std::vector<uint32_t> sm_counts;
    gcx_resource remainder{};
    uint32_t remainder_sm_count = 0;
};
Split split(const gcx_resource& whole, const Layout& layout);

// device and family, as members of a report.
void set_layout(Json& json, const Layout& layout);

// "device 0: NVIDIA H100 80GB HBM3, 132 SMs, coscheduled".
// Names the SMs that can be divided, which inside gcx exec are not all that are reported.
std::string layout_line(const Layout& layout);

} // namespace gcx::cli

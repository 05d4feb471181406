// A simulated GPU: its layout of SMs and its numbers, read from a text file in the format that
// docs/reference/simulated-driver.md describes.
#pragma once

#include "sim/partition/sm_set.hpp"

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace gcx::sim {

constexpr unsigned kPair = 2; // the SMs of a TPC

// Returns whether the whole text is a number that fits.
template <class Number>
bool to_number(std::string_view text, Number& number) {
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
    return code == std::errc() && end == text.data() + text.size();
}

// The atoms of one way of splitting, in the order of the driver. All groups have the same size; a
// device with fewer SMs than that has no group.
struct Family {
    std::vector<SmList> groups;
    SmList remainder;
};

enum FamilyKind : unsigned { kCoscheduled, kFine, kMaxCluster, kFamilyCount };

struct Profile {
    std::string key; // "h100" or the path of the file
    std::string name;
    std::string description;
    int major = 0;
    int minor = 0;
    unsigned sm_count = 0;
    unsigned min_partition_size = 0;
    unsigned coscheduled_alignment = 0;
    std::vector<SmList> gpcs; // SMs that can hold one cluster; in the order of numbering
    Family families[kFamilyCount];
    std::vector<SmSet> locality_domains;
    unsigned locality_domain_sm_count = 0;
    SmSet dynamic_parallelism_sms; // shared by all partitions; compute capability 9.x only
    uint64_t memory_bytes = 0;
    int driver_version = 0;                              // of the recording; 0: unknown
    std::map<std::string, long long, std::less<>> given; // device attributes that the file gives

    // Returns a device attribute by its name in the format, or the format's default.
    long long number(std::string_view field) const;
    bool has_clusters() const { return major >= 9; }
    bool shares_sms() const { return major == 9; }
    SmSet all() const;
};

// A device attribute of the format.
struct NumberField {
    std::string_view name;
    long long default_value;
    long long minimum;
    long long maximum;
};
const NumberField* find_number_field(std::string_view name);

// Reads a profile. On failure returns false and a reason with the number of the line.
bool parse_profile(std::string_view text, const std::string& key, Profile& profile,
                   std::string& error);

// The built-in profiles.
struct EmbeddedProfile {
    const char* key;
    const char* text;
};
extern const EmbeddedProfile kEmbeddedProfiles[];
extern const std::size_t kEmbeddedProfileCount;

} // namespace gcx::sim

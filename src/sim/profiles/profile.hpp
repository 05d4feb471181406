// What is simulated of a GPU: its layout of SMs and its numbers, read from a text file.
// docs/simulated-driver.md describes the format.
#pragma once

#include "sim/partition/sm_set.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace gcx::sim {

// The atoms of one way of splitting, in the order in which the driver hands them out.
struct Family {
    std::vector<SmList> groups;
    SmList remainder;
};

enum FamilyKind : unsigned { kCoscheduled, kFine, kMaxCluster, kFamilyCount };

struct Profile {
    std::string key; // "h100"
    std::string name;
    std::string description;
    int major = 0;
    int minor = 0;
    unsigned sm_count = 0;
    unsigned min_partition_size = 0;
    unsigned coscheduled_alignment = 0;
    std::vector<SmList> gpcs; // SMs that can hold one cluster together; in the order of dealing
    Family families[kFamilyCount];
    std::vector<SmSet> locality_domains;
    unsigned locality_domain_sm_count = 0;
    uint64_t memory_bytes = 0;
    int driver_version = 0; // of the recording; 0: none
    std::map<std::string, long long, std::less<>>
        numbers; // device attributes, by the format's names

    long long number(std::string_view field, long long otherwise) const;
    SmSet all() const;
};

// Reads a profile. On failure returns false and says why, with the line's number.
bool parse_profile(std::string_view text, const std::string& key, Profile& profile,
                   std::string& error);

// The profiles that the library carries.
struct EmbeddedProfile {
    const char* key;
    const char* text;
};
extern const EmbeddedProfile kEmbeddedProfiles[];
extern const std::size_t kEmbeddedProfileCount;

} // namespace gcx::sim

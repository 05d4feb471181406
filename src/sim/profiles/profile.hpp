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

constexpr unsigned kPair = 2; // the SMs of a TPC

// The atoms of one way of splitting, in the order in which the driver hands them out. All groups
// have the same size; a device with fewer SMs than that has none.
struct Family {
    std::vector<SmList> groups;
    SmList remainder;
};

enum FamilyKind : unsigned { kCoscheduled, kFine, kMaxCluster, kFamilyCount };

struct Profile {
    std::string key; // "h100", or the file's path
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
    SmSet dynamic_parallelism_sms; // all partitions share them; of compute capability 9.x alone
    uint64_t memory_bytes = 0;
    int driver_version = 0;                              // of the recording; 0: none
    std::map<std::string, long long, std::less<>> given; // device attributes that the file gives

    // A device attribute by the format's name: what the file gives, or else the format's default.
    long long number(std::string_view field) const;
    bool has_clusters() const { return major >= 9; }
    bool shares_sms() const { return major == 9; }
    SmSet all() const;
};

// The device attributes of the format.
struct NumberField {
    std::string_view name;
    long long otherwise;
    long long least;
    long long most;
};
const NumberField* find_number_field(std::string_view name);

// Reads a profile. On failure returns false and says why, with the line's number.
bool parse_profile(std::string_view text, const std::string& key, Profile& profile,
                   std::string& error);

// Whether the SMs of the groups and the remainder are those of the profile, each once.
bool is_partition(const Profile& profile, const std::vector<SmList>& groups,
                  const SmList& remainder);

// Numbers the SMs as the recorded GPUs do: TPC by TPC, each to the next GPC that has room.
std::vector<SmList> deal_gpcs(const std::vector<unsigned>& sizes);

// What a profile leaves out of its layout, from what it gives.
void derive_layout(Profile& profile);

// The profiles that the library carries.
struct EmbeddedProfile {
    const char* key;
    const char* text;
};
extern const EmbeddedProfile kEmbeddedProfiles[];
extern const std::size_t kEmbeddedProfileCount;

} // namespace gcx::sim

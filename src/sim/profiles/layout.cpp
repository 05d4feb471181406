// The part of a profile's layout that the file leaves out.
#include "sim/profiles/profile.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace gcx::sim {
namespace {

void append_pairs(const SmList& sms, std::vector<SmList>& pieces) {
    for (std::size_t i = 0; i < sms.size(); i += kPair) {
        const auto begin = sms.begin() + static_cast<long>(i);
        pieces.emplace_back(
            begin, begin + static_cast<long>(std::min<std::size_t>(kPair, sms.size() - i)));
    }
}

// A recording knows no GPCs: what is known to be coscheduled are its groups, and pairs. Of a
// device with fewer SMs than a group there is only the fine family.
std::vector<SmList> known_gpcs(const Profile& profile) {
    const Family& coscheduled = profile.families[kCoscheduled];
    const Family& known = coscheduled.groups.empty() ? profile.families[kFine] : coscheduled;
    std::vector<SmList> gpcs = known.groups;
    append_pairs(known.remainder, gpcs);
    return gpcs;
}

// The pieces of two GPCs make a group as well.
void join_pieces(Family& family, unsigned size) {
    while (family.remainder.size() >= size) {
        const auto begin = family.remainder.begin();
        family.groups.emplace_back(begin, begin + size);
        family.remainder.erase(begin, begin + size);
    }
}

// Takes pieces of one size from each GPC in turn; what is too small is the remainder.
Family cut(const Profile& profile, unsigned size) {
    Family family;
    bool more = true;
    for (std::size_t at = 0; more; at += size) {
        more = false;
        for (const SmList& gpc : profile.gpcs) {
            if (at >= gpc.size())
                continue;
            more = true;
            const auto begin = gpc.begin() + static_cast<long>(at);
            if (at + size <= gpc.size())
                family.groups.emplace_back(begin, begin + size);
            else
                family.remainder.insert(family.remainder.end(), begin, gpc.end());
        }
    }
    // Where no clusters are at stake, or where no GPC has room for a group (assumed: a driver gives
    // what it can).
    if (profile.coscheduled_alignment == kPair || family.groups.empty())
        join_pieces(family, size);
    std::sort(family.remainder.begin(), family.remainder.end());
    return family;
}

} // namespace

bool is_partition(const Profile& profile, const std::vector<SmList>& groups,
                  const SmList& remainder) {
    std::size_t total = remainder.size();
    SmSet set = to_set(remainder);
    for (const SmList& group : groups) {
        total += group.size();
        set |= to_set(group);
    }
    return total == profile.sm_count && set == profile.all();
}

std::vector<SmList> deal_gpcs(const std::vector<unsigned>& sizes) {
    std::vector<SmList> gpcs(sizes.size());
    const unsigned total = std::accumulate(sizes.begin(), sizes.end(), 0U);
    for (unsigned sm = 0; sm < total;) {
        for (std::size_t gpc = 0; gpc < sizes.size(); gpc++) {
            if (gpcs[gpc].size() == sizes[gpc])
                continue;
            gpcs[gpc].push_back(sm++);
            gpcs[gpc].push_back(sm++);
        }
    }
    return gpcs;
}

void derive_layout(Profile& profile) {
    if (profile.gpcs.empty())
        profile.gpcs = known_gpcs(profile);
    if (profile.families[kCoscheduled].groups.empty())
        profile.families[kCoscheduled] = cut(profile, profile.min_partition_size);
    if (profile.families[kFine].groups.empty())
        profile.families[kFine] = cut(profile, kPair);
    if (profile.families[kMaxCluster].groups.empty())
        profile.families[kMaxCluster] = profile.families[kCoscheduled];
    if (profile.locality_domains.empty())
        profile.locality_domains.push_back(profile.all());
    if (profile.locality_domain_sm_count == 0)
        profile.locality_domain_sm_count = static_cast<unsigned>(
            std::min_element(profile.locality_domains.begin(), profile.locality_domains.end(),
                             [](const SmSet& a, const SmSet& b) { return a.count() < b.count(); })
                ->count());
}

} // namespace gcx::sim

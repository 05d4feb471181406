// cuDevSmResourceSplit: groups of different sizes and structures. No driver that has it was
// measured: this follows the header text of CUDA 13.5. Comments say "assumed" where that leaves a
// choice.
#include "sim/entry/entry.hpp"
#include "sim/partition/resource.hpp"

#include <algorithm>

namespace gcx::sim {
namespace {

using cu::SmGroupParams;

constexpr unsigned kMaxGroups = kMaxSms / kPair;

bool locality_flag(const SmGroupParams& group) {
    return (group.flags & cu::kGroupLocalityDomain) != 0;
}

// Refuses malformed parameters.
void check_form(const Machine& machine, const Profile& profile, const SmGroupParams& group) {
    require(std::ranges::all_of(group.reserved, [](uint32_t word) { return word == 0; }));
    const unsigned known =
        cu::kGroupBackfill | (machine.has(kHasLocalityDomains)
                                  ? cu::kGroupLocalityDomain | cu::kGroupLocalitySupplemental
                                  : 0U);
    require((group.flags & ~known) == 0);
    if (locality_flag(group))
        require(group.locality_domain_id == cu::kLocalityDomainAny ||
                group.locality_domain_id < profile.locality_domains.size());
    else // the modifier and the id need the flag
        require((group.flags & cu::kGroupLocalitySupplemental) == 0 &&
                group.locality_domain_id == 0);
    const unsigned maximum = profile.has_clusters() ? 32 : kPair;
    for (const unsigned size : {group.coscheduled_sm_count, group.preferred_coscheduled_sm_count})
        require(size <= maximum && size % kPair == 0);
}

unsigned coscheduled(const Profile& profile, const SmGroupParams& group) {
    return group.coscheduled_sm_count != 0 ? group.coscheduled_sm_count
                                           : profile.coscheduled_alignment;
}

void check_sizes(const Profile& profile, const SmGroupParams& group, std::size_t input) {
    const unsigned each = coscheduled(profile, group);
    const unsigned preferred = group.preferred_coscheduled_sm_count;
    // Assumed: a merged group consists of whole coscheduled groups.
    require(preferred == 0 || (preferred >= each && preferred % each == 0));
    if (group.sm_count == 0)
        return;
    const bool backfill = (group.flags & cu::kGroupBackfill) != 0;
    check_configuration(group.sm_count <= input && group.sm_count % kPair == 0 &&
                        group.sm_count >= each && (backfill || group.sm_count % each == 0));
}

// Returns the SMs that every device guarantees for a domain; the others are supplemental. Assumed:
// the supplemental ones have the highest numbers.
SmSet domain_sms(const Profile& profile, const SmSet& domain, bool supplemental) {
    if (supplemental)
        return domain;
    SmSet sms;
    unsigned left = profile.locality_domain_sm_count;
    for (const unsigned sm : to_list(domain)) {
        if (left == 0)
            break;
        sms.set(sm);
        left--;
    }
    return sms;
}

SmSet allowed_sms(const Profile& profile, const SmGroupParams& group) {
    if (!locality_flag(group))
        return profile.all();
    const bool supplemental = (group.flags & cu::kGroupLocalitySupplemental) != 0;
    if (group.locality_domain_id != cu::kLocalityDomainAny)
        return domain_sms(profile, profile.locality_domains[group.locality_domain_id],
                          supplemental);
    SmSet sms;
    for (const SmSet& domain : profile.locality_domains)
        sms |= domain_sms(profile, domain, supplemental);
    return sms;
}

class Picker {
  public:
    Picker(const Profile& profile, const SmSet& input) : profile_(profile), free_(input) {}

    const SmSet& free() const { return free_; }

    SmSet pick(const SmGroupParams& group) {
        const unsigned each = coscheduled(profile_, group);
        const unsigned preferred = std::max(group.preferred_coscheduled_sm_count, each);
        const SmSet allowed = allowed_sms(profile_, group);
        requested_ = group.sm_count != 0 ? group.sm_count : static_cast<unsigned>(kMaxSms);
        SmSet out;
        if (preferred > each)
            take_chunks(allowed, preferred, out);
        take_chunks(allowed, each, out);
        const bool structured = out.any();
        if ((group.flags & cu::kGroupBackfill) != 0) {
            check_configuration(!locality_flag(group) || (free_ & allowed).any() || structured);
            // "must always have enough coscheduled SMs to cover that requirement"
            if (structured)
                backfill(group, allowed, out);
        }
        check_configuration(group.sm_count == 0 || (structured && out.count() == group.sm_count));
        return out;
    }

  private:
    // Takes a chunk of each GPC in turn. Equal splits thereby yield the sets of a split by count.
    void take_chunks(const SmSet& allowed, unsigned size, SmSet& out) {
        bool more = true;
        while (more) {
            more = false;
            for (const SmList& gpc : profile_.gpcs) {
                if (out.count() + size > requested_)
                    return;
                SmList here;
                for (const unsigned sm : gpc)
                    if (free_[sm] && allowed[sm] && here.size() < size)
                        here.push_back(sm);
                if (here.size() < size)
                    continue;
                take(to_set(here), out);
                more = true;
            }
        }
    }

    void backfill(const SmGroupParams& group, const SmSet& allowed, SmSet& out) {
        fill(allowed, out);
        // A discovery requests no count that would need other domains.
        if (!locality_flag(group) || group.sm_count == 0)
            return;
        SmSet attributed;
        for (const SmSet& domain : profile_.locality_domains)
            attributed |= domain;
        fill(profile_.all() & ~attributed, out);
        fill(profile_.all(), out);
    }

    void fill(const SmSet& from, SmSet& out) {
        for (const SmList& group : profile_.families[kFine].groups)
            for (const unsigned sm : group)
                if (free_[sm] && from[sm] && out.count() < requested_)
                    take(to_set({sm}), out);
    }

    void take(const SmSet& sms, SmSet& out) {
        out |= sms;
        free_ &= ~sms;
    }

    const Profile& profile_;
    SmSet free_;
    std::size_t requested_ = 0;
};

SmResource make_part(ResourceOrigin origin, const SmResource& input, uint64_t split,
                     const SmSet& sms, unsigned alignment) {
    SmResource resource;
    resource.origin = origin;
    resource.structured = true;
    resource.device = input.device;
    resource.split = split;
    resource.sms = sms;
    resource.reported = static_cast<unsigned>(sms.count());
    resource.alignment = alignment;
    resource.min_partition_size = alignment; // assumed for groups
    return resource;
}

SmResource make_group(const SmResource& input, const Profile& profile, const SmGroupParams& group,
                      uint64_t split, const SmSet& sms) {
    SmResource resource =
        make_part(ResourceOrigin::Group, input, split, sms, coscheduled(profile, group));
    resource.flags = group.flags;
    resource.locality_domain = group.locality_domain_id;
    return resource;
}

// "always unstructured": assumed to guarantee pairs
SmResource make_remainder(const SmResource& input, uint64_t split, const SmSet& sms) {
    return make_part(ResourceOrigin::Remainder, input, split, sms, kPair);
}

// The header names queries as the source, and also says that a remainder can be split again.
bool can_be_split(const SmResource& input) {
    return input.origin == ResourceOrigin::Device || input.origin == ResourceOrigin::Context ||
           (input.origin == ResourceOrigin::Remainder && input.structured);
}

void split(Machine& machine, CUdevResource* result, unsigned count, const CUdevResource& in,
           CUdevResource* remainder, SmGroupParams* groups) {
    const SmResource input = read_resource(machine, in);
    check_configuration(can_be_split(input));
    const Profile& profile = machine.devices[input.device]->profile;
    for (unsigned i = 0; i < count; i++) {
        check_form(machine, profile, groups[i]);
        check_sizes(profile, groups[i], input.sms.count());
    }
    Picker picker(profile, input.sms);
    std::vector<SmSet> sets(count);
    for (unsigned i = 0; i < count; i++) {
        sets[i] = picker.pick(groups[i]);
        check_configuration(result == nullptr ||
                            sets[i].count() >= coscheduled(profile, groups[i]));
    }
    const uint64_t id = machine.next_split++;
    for (unsigned i = 0; i < count; i++) {
        groups[i].sm_count = static_cast<uint32_t>(sets[i].count());
        if (result != nullptr)
            write_resource(machine, make_group(input, profile, groups[i], id, sets[i]), result[i]);
    }
    if (remainder != nullptr)
        write_resource(machine, make_remainder(input, id, picker.free()), *remainder);
}

} // namespace

GCX_SIM_API(cuDevSmResourceSplit, CUdevResource* result, unsigned count, const CUdevResource* input,
            CUdevResource* remainder, unsigned flags, SmGroupParams* groups) {
    GCX_SIM_BODY({
        require(input != nullptr && groups != nullptr && count != 0 && count <= kMaxGroups &&
                flags == 0);
        split(machine, result, count, *input, remainder, groups);
    });
}

} // namespace gcx::sim

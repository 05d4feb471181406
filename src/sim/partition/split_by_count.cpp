// cuDevSmResourceSplitByCount: equal groups, by the rules that the recorded sweep shows.
#include "sim/entry/entry.hpp"
#include "sim/partition/resource.hpp"

#include <algorithm>

namespace gcx::sim {
namespace {

// probe: split(1,24) 1.876 us, split(16,8), which gives 15 groups, 7.960 us
constexpr uint64_t kCostPerFurtherGroup = 434;

struct GroupPlan {
    unsigned count = 0;      // SMs of each group
    unsigned max_groups = 0; // that fit in the input
    SmList order;            // the groups take SMs in this order
};

struct Rule {
    unsigned minimum;
    unsigned granularity;
};

Rule rule_for(const Profile& profile, FamilyKind family) {
    if (family == kFine)
        return {2, 2};
    return {profile.min_partition_size, profile.coscheduled_alignment};
}

void append(SmList& order, const SmList& sms) {
    order.insert(order.end(), sms.begin(), sms.end());
}

SmList intersection(const SmList& sms, const SmSet& set) {
    SmList common;
    std::ranges::copy_if(sms, std::back_inserter(common), [&](unsigned sm) { return set[sm]; });
    return common;
}

// Returns the whole atoms inside the input, and its other SMs as the remainder. If the input has no
// whole atom, its SMs form new ones, in order (assumed: the logs show no such split).
Family family_within(const Profile& profile, FamilyKind kind, const SmSet& input) {
    const Family& whole = profile.families[kind];
    if (input == profile.all())
        return whole;
    const Rule rule = rule_for(profile, kind);
    Family part;
    for (const SmList& group : whole.groups) {
        SmList common = intersection(group, input);
        if (common.size() == group.size())
            part.groups.push_back(std::move(common));
        else
            append(part.remainder, common);
    }
    append(part.remainder, intersection(whole.remainder, input));
    std::ranges::sort(part.remainder);
    if (part.groups.empty()) {
        while (part.remainder.size() >= rule.minimum) {
            const auto end = part.remainder.begin() + static_cast<long>(rule.minimum);
            part.groups.emplace_back(part.remainder.begin(), end);
            part.remainder.erase(part.remainder.begin(), end);
        }
    }
    return part;
}

// Orders the SMs so that the atoms go to the groups in turn. Recorded for a green context of 64 SMs
// and groups of 16, whose first has the atoms 0 and 4. With one group, the order is that of the
// atoms, as for the whole device.
SmList dealt_order(const Family& family, unsigned count, unsigned groups) {
    SmList order;
    const std::size_t atom = family.groups.empty() ? 1 : family.groups[0].size();
    const std::size_t each = std::max<std::size_t>(count / atom, 1);
    std::vector<bool> taken(family.groups.size());
    for (unsigned group = 0; group < groups; group++) {
        for (std::size_t i = 0; i < each; i++) {
            const std::size_t index = group + i * groups;
            if (index >= taken.size())
                continue;
            append(order, family.groups[index]);
            taken[index] = true;
        }
    }
    for (std::size_t index = 0; index < taken.size(); index++)
        if (!taken[index])
            append(order, family.groups[index]);
    append(order, family.remainder);
    return order;
}

// Returns the first group with flag 2: whole GPCs, the largest that fit first, then the missing SMs
// from the smallest GPC that has them. This yields every recorded set.
SmList max_cluster_set(const Profile& profile, const SmSet& input, unsigned count) {
    std::vector<SmList> gpcs;
    for (const SmList& gpc : profile.gpcs)
        if (SmList common = intersection(gpc, input); !common.empty())
            gpcs.push_back(std::move(common));
    SmList chosen;
    while (chosen.size() < count && !gpcs.empty()) {
        const std::size_t missing = count - chosen.size();
        auto best = gpcs.end();
        for (auto gpc = gpcs.begin(); gpc != gpcs.end(); ++gpc)
            if (gpc->size() <= missing && (best == gpcs.end() || gpc->size() > best->size()))
                best = gpc;
        const bool exact = best != gpcs.end() && best->size() == missing;
        const bool large = best != gpcs.end() && best->size() > profile.coscheduled_alignment;
        if (!exact && !large) {
            for (auto gpc = gpcs.begin(); gpc != gpcs.end(); ++gpc)
                if (gpc->size() >= missing &&
                    (best == gpcs.end() || best->size() < missing || gpc->size() < best->size()))
                    best = gpc;
        }
        const std::size_t take = std::min(missing, best->size());
        chosen.insert(chosen.end(), best->begin(), best->begin() + static_cast<long>(take));
        gpcs.erase(best);
    }
    return chosen;
}

void put_max_cluster_first(const Profile& profile, const SmSet& input, GroupPlan& plan) {
    SmList first = max_cluster_set(profile, input, plan.count);
    const SmSet used = to_set(first);
    append(first, intersection(plan.order, ~used));
    plan.order = std::move(first);
}

GroupPlan make_plan(const Profile& profile, FamilyKind kind, const SmSet& input,
                    unsigned min_count) {
    const auto total = static_cast<unsigned>(input.count());
    const Rule rule = rule_for(profile, kind);
    check_configuration(min_count <= total && total >= rule.minimum);
    GroupPlan plan;
    const unsigned requested = std::max(min_count, rule.minimum);
    plan.count =
        std::min((requested + rule.granularity - 1) / rule.granularity * rule.granularity, total);
    // Recorded: flag 2 yields as many groups as flag 0.
    const Family family = family_within(profile, kind == kMaxCluster ? kCoscheduled : kind, input);
    // SMs outside atoms can complete a group, but each group has at least one atom.
    plan.max_groups =
        std::min(total / plan.count, std::max(1U, static_cast<unsigned>(family.groups.size())));
    const bool in_turn = kind != kFine && input != profile.all();
    plan.order = dealt_order(family, plan.count, in_turn ? plan.max_groups : 1);
    if (kind == kMaxCluster && profile.has_clusters())
        put_max_cluster_first(profile, input, plan);
    // A recording can have larger groups with flag 2 than the rule yields.
    const Family& recorded = profile.families[kMaxCluster];
    if (kind == kMaxCluster && input == profile.all() && plan.count > rule.minimum &&
        !recorded.groups.empty() && recorded.groups[0].size() == plan.count)
        plan.order = dealt_order(recorded, plan.count, 1);
    return plan;
}

SmResource make_part(const Machine& machine, const SmResource& input, FamilyKind kind,
                     uint64_t split, bool is_group, const SmList& sms) {
    SmResource part;
    part.origin = is_group ? ResourceOrigin::Group : ResourceOrigin::Remainder;
    part.family = kind;
    part.device = input.device;
    part.split = split;
    part.sms = to_set(sms);
    part.reported = static_cast<unsigned>(sms.size());
    if (machine.has(kHasStructuredSplit)) {
        // Recorded on 13.0: both are 0. From 13.1 on, descriptors depend on the alignment, by the
        // header's text; a remainder guarantees only pairs.
        const Rule rule = rule_for(machine.devices[input.device]->profile, kind);
        part.alignment = is_group ? rule.granularity : 2;
        part.min_partition_size = is_group ? rule.minimum : 2;
    }
    return part;
}

FamilyKind read_flags(const Profile& profile, unsigned flags) {
    // Recorded: both flags at once are refused, unknown ones are not.
    switch (flags & (cu::kSplitIgnoreCoscheduling | cu::kSplitMaxClusterSize)) {
    case 0:
        return kCoscheduled;
    case cu::kSplitIgnoreCoscheduling:
        return kFine;
    case cu::kSplitMaxClusterSize:
        require(profile.has_clusters()); // the header: compute capability 9.0 and newer
        return kMaxCluster;
    default:
        refuse(CUDA_ERROR_INVALID_VALUE);
    }
}

// Writes the first groups of a plan and the remainder.
void give_parts(Machine& machine, const SmResource& source, FamilyKind kind, const GroupPlan& plan,
                unsigned made, CUdevResource* groups, CUdevResource* remainder) {
    machine.clock_ns += (std::max(made, 1U) - 1) * kCostPerFurtherGroup;
    const uint64_t split = machine.next_split++;
    auto next = plan.order.begin();
    for (unsigned i = 0; i < made; i++) {
        const SmList sms(next, next + plan.count);
        next += plan.count;
        if (groups != nullptr)
            write_resource(machine, make_part(machine, source, kind, split, true, sms), groups[i]);
    }
    const SmList rest(next, plan.order.end());
    if (remainder != nullptr)
        write_resource(machine, make_part(machine, source, kind, split, false, rest), *remainder);
}

} // namespace

GCX_SIM_API(cuDevSmResourceSplitByCount, CUdevResource* result, unsigned* groups,
            const CUdevResource* input, CUdevResource* remainder, unsigned flags,
            unsigned min_count) {
    GCX_SIM_BODY({
        require(groups != nullptr && input != nullptr && (result == nullptr || *groups != 0));
        const SmResource source = read_resource(machine, *input);
        const Profile& profile = machine.devices[source.device]->profile;
        const FamilyKind kind = read_flags(profile, flags);
        check_configuration(source.origin == ResourceOrigin::Device ||
                            source.origin == ResourceOrigin::Context);
        const GroupPlan plan = make_plan(profile, kind, source.sms, min_count);
        // Recorded: the SMs of a client that MPS limits make no group.
        const unsigned most = machine.mps_limit ? 0 : plan.max_groups;
        const unsigned made = result == nullptr ? most : std::min(*groups, most);
        *groups = made;
        if (result != nullptr || remainder != nullptr)
            give_parts(machine, source, kind, plan, made, result, remainder);
    });
}

} // namespace gcx::sim

#include "core/split.hpp"

#include "base/error.hpp"
#include "core/lease_manager.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

namespace gcx {

namespace {

// The share of one group.
struct Share {
    uint32_t units = 0;
    bool remainder = false;
};

class SplitPlanner {
  public:
    SplitPlanner(const AtomShape& shape, const AtomSet& input, std::span<const uint32_t> counts,
                 bool exact, const char* where)
        : shape_(shape), input_(input), counts_(counts), exact_(exact), where_(where),
          has_remainder_(shape.remainder_size != 0 && input.contains(shape.unit_count)),
          units_(static_cast<uint32_t>(input.count()) - (has_remainder_ ? 1 : 0)) {}

    std::optional<SplitPlan> run() const {
        if (more_groups_than_atoms())
            return std::nullopt;
        std::optional<std::vector<Share>> shares = counted_shares();
        if (!shares || (exact_ && first_rounded(*shares)))
            return std::nullopt;
        share_the_rest(*shares);
        return assign_atoms(*shares);
    }

    // Explains why run() returns nothing. lead begins a sentence about the counts: "requested ", or
    // an empty string if the caller has named them.
    std::string problem(const char* lead) const {
        if (more_groups_than_atoms())
            return lead + too_many_groups();
        if (const auto shares = counted_shares())
            return rounding_problem(*shares);
        const std::vector<Share> with = shares_with(best_remainder_group());
        if (std::min(units_of(with), units_of(shares_with(std::nullopt))) > units_)
            return lead + size_problem();
        return rest_problem(with);
    }

  private:
    uint64_t sms(const Share& share) const {
        return uint64_t{share.units} * shape_.unit_size +
               (share.remainder ? shape_.remainder_size : 0);
    }
    // Returns the smallest share with at least count SMs, with or without the remainder atom.
    Share share_for(uint32_t count, bool remainder) const {
        if (count == kRest)
            return {};
        const uint32_t rest = remainder ? count - std::min(count, shape_.remainder_size) : count;
        return {rest / shape_.unit_size + (rest % shape_.unit_size != 0 ? 1 : 0), remainder};
    }
    bool is_exact(uint32_t count, bool remainder) const {
        return sms(share_for(count, remainder)) == count;
    }

    // What a group gains by the remainder atom: unit atoms that it leaves to others, and the change
    // in the number of counts that are met exactly. The more unit atoms, the fewer SMs exceed the
    // counts, so the greatest gain is the best by the rules at gcx_sm_split.
    struct Gain {
        uint32_t units;
        int exact;
        auto operator<=>(const Gain&) const = default;
    };
    Gain gain_of(uint32_t count) const {
        return {share_for(count, false).units - share_for(count, true).units,
                int{is_exact(count, true)} - int{is_exact(count, false)}};
    }

    // Returns the group that gains most from the remainder atom, the first of several.
    std::optional<std::size_t> best_remainder_group() const {
        std::optional<std::size_t> best;
        for (std::size_t i = 0; has_remainder_ && i < counts_.size(); i++) {
            if (counts_[i] != kRest && (!best || gain_of(counts_[i]) > gain_of(counts_[*best])))
                best = i;
        }
        return best;
    }

    std::vector<Share> shares_with(std::optional<std::size_t> remainder_group) const {
        std::vector<Share> shares;
        shares.reserve(counts_.size());
        for (std::size_t i = 0; i < counts_.size(); i++)
            shares.push_back(share_for(counts_[i], remainder_group == i));
        return shares;
    }

    uint64_t units_of(const std::vector<Share>& shares) const {
        uint64_t units = 0;
        for (const Share& share : shares)
            units += share.units;
        return units;
    }

    std::size_t rest_groups() const {
        return static_cast<std::size_t>(std::count(counts_.begin(), counts_.end(), kRest));
    }

    // Returns the number of atoms that groups of kRest can share.
    uint64_t atoms_left(const std::vector<Share>& shares) const {
        const bool remainder_given =
            std::any_of(shares.begin(), shares.end(), [](const Share& s) { return s.remainder; });
        return units_ - units_of(shares) + (has_remainder_ && !remainder_given ? 1 : 0);
    }

    bool fits(const std::vector<Share>& shares) const {
        return units_of(shares) <= units_ && atoms_left(shares) >= rest_groups();
    }

    // What the rules at gcx_sm_split compare; smaller is better.
    struct Cost {
        uint64_t given = 0;
        std::size_t rounded = 0;
        auto operator<=>(const Cost&) const = default;
    };
    Cost cost_of(const std::vector<Share>& shares) const {
        Cost cost;
        for (std::size_t i = 0; i < shares.size(); i++) {
            if (counts_[i] == kRest)
                continue;
            cost.given += sms(shares[i]);
            cost.rounded += sms(shares[i]) == counts_[i] ? 0 : 1;
        }
        return cost;
    }

    // No group saves more unit atoms with the remainder atom than the best one. So if that does not
    // fit, none does. If both plans cost the same, the remainder atom stays with the rest. Returns
    // nothing if the counts do not fit.
    std::optional<std::vector<Share>> counted_shares() const {
        std::vector<Share> without = shares_with(std::nullopt);
        std::vector<Share> with = shares_with(best_remainder_group());
        if (fits(without) && !(fits(with) && cost_of(with) < cost_of(without)))
            return without;
        if (fits(with))
            return with;
        return std::nullopt;
    }

    // Each group has at least one atom.
    bool more_groups_than_atoms() const {
        return counts_.size() > input_.count() && counts_.size() > 1;
    }

    std::string too_many_groups() const {
        return format("%zu groups; %s has %s, and each group needs at least one", counts_.size(),
                      where_, describe_atoms().c_str());
    }

    // "15 atoms of 8 SMs and one of 12"
    std::string describe_atoms() const {
        if (units_ == 0)
            return has_remainder_ ? format("one atom of %u SMs", shape_.remainder_size)
                                  : "no atoms";
        return format("%u %s of %u SMs", units_, units_ == 1 ? "atom" : "atoms", shape_.unit_size) +
               (has_remainder_ ? format(" and one of %u", shape_.remainder_size) : "");
    }

    // "8 + 16 + 24", of the groups with a count
    template <class CountOf>
    std::string list(CountOf count_of) const {
        constexpr int kMax = 16; // more would be cut off at the end of the message
        std::string text;
        int listed = 0;
        for (std::size_t i = 0; i < counts_.size() && listed <= kMax; i++) {
            if (counts_[i] == kRest)
                continue;
            text += listed == 0 ? "" : " + ";
            text += listed == kMax ? "..." : format("%llu", count_of(i));
            listed++;
        }
        return text;
    }

    std::string list_sms(const std::vector<Share>& shares) const {
        return list([&](std::size_t i) { return static_cast<unsigned long long>(sms(shares[i])); });
    }

    // Returns the first group whose count was rounded.
    std::optional<std::size_t> first_rounded(const std::vector<Share>& shares) const {
        for (std::size_t i = 0; i < counts_.size(); i++) {
            if (counts_[i] != kRest && sms(shares[i]) != counts_[i])
                return i;
        }
        return std::nullopt;
    }

    std::string rounding_problem(const std::vector<Share>& shares) const {
        const std::size_t i = first_rounded(shares).value_or(0);
        return format("group %zu: %u SMs can't be given exactly%s on %s, which has %s; %s can", i,
                      counts_[i], counts_.size() == 1 ? "" : " next to the other groups", where_,
                      describe_atoms().c_str(), list_sms(shares).c_str());
    }

    std::string size_problem() const {
        const std::vector<Share> shares = shares_with(std::nullopt);
        const std::string requested =
            list([&](std::size_t i) { return static_cast<unsigned long long>(counts_[i]); });
        std::string rounded = list_sms(shares);
        const uint64_t total = units_of(shares) * shape_.unit_size;
        if (counts_.size() - rest_groups() > 1)
            rounded += format(" = %llu", static_cast<unsigned long long>(total));
        const uint32_t available = shape_.sm_count(input_);
        return format("%s SMs, in whole atoms of %u that is %s; %s has %u", requested.c_str(),
                      shape_.unit_size, rounded.c_str(), where_, available) +
               (total <= available ? ", in " + describe_atoms() : "") + nearest_sizes();
    }

    // "; 68 + 64 can be given". Returns nothing if the counts exceed what there is.
    std::string nearest_sizes() const {
        uint64_t requested = 0;
        for (const uint32_t count : counts_)
            requested += count == kRest ? 0 : count;
        if (requested > shape_.sm_count(input_))
            return "";
        // The group that exceeds its count most is rounded down first.
        std::vector<Share> shares = shares_with(best_remainder_group());
        while (!fits(shares)) {
            Share* largest = nullptr;
            int64_t most = 0;
            for (std::size_t i = 0; i < shares.size(); i++) {
                const int64_t excess = static_cast<int64_t>(sms(shares[i])) - counts_[i];
                if (counts_[i] != kRest && shares[i].units > (shares[i].remainder ? 0 : 1) &&
                    (largest == nullptr || excess > most)) {
                    largest = &shares[i];
                    most = excess;
                }
            }
            if (largest == nullptr)
                return "";
            largest->units--;
        }
        return "; " + list_sms(shares) + " can be given";
    }

    std::string rest_problem(const std::vector<Share>& shares) const {
        const std::size_t groups = rest_groups();
        const uint64_t atoms = atoms_left(shares);
        const auto first = std::find(counts_.begin(), counts_.end(), kRest) - counts_.begin();
        if (atoms == 0)
            return format("group %td requests what the others leave of %s, but no SMs are left",
                          first, where_);
        return format("%zu groups request what the others leave of %s, but that is %llu %s, and "
                      "each group needs at least one",
                      groups, where_, static_cast<unsigned long long>(atoms),
                      atoms == 1 ? "atom" : "atoms");
    }

    // Divides the rest among the groups of kRest: each atom goes to the group with the fewest SMs,
    // the first of several. The last group gets the remainder atom.
    void share_the_rest(std::vector<Share>& shares) const {
        std::vector<std::size_t> sharers;
        uint32_t units = units_;
        bool remainder = has_remainder_;
        for (std::size_t i = 0; i < shares.size(); i++) {
            if (counts_[i] == kRest)
                sharers.push_back(i);
            units -= shares[i].units;
            remainder = remainder && !shares[i].remainder;
        }
        if (sharers.empty())
            return;
        shares[sharers.back()].remainder = remainder;
        const auto has_less = [&](std::size_t a, std::size_t b) {
            return sms(shares[a]) < sms(shares[b]);
        };
        for (; units != 0; units--)
            shares[*std::min_element(sharers.begin(), sharers.end(), has_less)].units++;
    }

    // Groups take atoms from the front in order, so that a larger group contains a smaller one of
    // another split. The group with the remainder atom takes from the back, because a set that runs
    // up to the last atom is what a direct split leaves: see Family::native_resources.
    SplitPlan assign_atoms(const std::vector<Share>& shares) const {
        std::vector<std::size_t> atoms;
        atoms.reserve(input_.count());
        input_.for_each([&](std::size_t atom) {
            if (!shape_.is_remainder(atom))
                atoms.push_back(atom);
        });
        SplitPlan plan;
        plan.groups.resize(shares.size());
        std::size_t front = 0;
        std::size_t back = atoms.size();
        for (std::size_t i = 0; i < shares.size(); i++) {
            for (uint32_t n = 0; n < shares[i].units; n++)
                plan.groups[i].add(shares[i].remainder ? atoms[--back] : atoms[front++]);
            if (shares[i].remainder)
                plan.groups[i].add(shape_.unit_count);
        }
        plan.remainder = input_;
        for (const AtomSet& group : plan.groups)
            plan.remainder = plan.remainder - group;
        return plan;
    }

    const AtomShape& shape_;
    const AtomSet& input_;
    std::span<const uint32_t> counts_;
    bool exact_;
    const char* where_;
    bool has_remainder_;
    uint32_t units_;
};

} // namespace

SplitPlan plan_split(const AtomShape& shape, const AtomSet& input, std::span<const uint32_t> counts,
                     bool exact, const char* where) {
    const SplitPlanner planner(shape, input, counts, exact, where);
    auto plan = planner.run();
    if (!plan)
        fail(GCX_ERROR_INVALID_RESOURCE_CONFIGURATION, planner.problem("requested "));
    return std::move(*plan);
}

std::optional<SplitPlan> find_split_plan(const AtomShape& shape, const AtomSet& input,
                                         std::span<const uint32_t> counts) {
    return SplitPlanner(shape, input, counts, false, "").run();
}

std::string split_problem(const AtomShape& shape, const AtomSet& input,
                          std::span<const uint32_t> counts, const char* where) {
    const SplitPlanner planner(shape, input, counts, false, where);
    return planner.run() ? "" : planner.problem("");
}

namespace {

constexpr uint32_t kFamilyFlags =
    GCX_SPLIT_IGNORE_SM_COSCHEDULING | GCX_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE;
constexpr uint32_t kKnownFlags =
    kFamilyFlags | GCX_SPLIT_EXACT | GCX_SPLIT_EXCLUDE_LEASED | GCX_SPLIT_EXCLUDE_SHARED;
constexpr uint32_t kLocalityFlags =
    GCX_SM_REQUEST_LOCALITY_DOMAIN_ID | GCX_SM_REQUEST_LOCALITY_DOMAIN_SUPPLEMENTAL_SMS;
constexpr uint32_t kKnownRequestFlags = GCX_SM_REQUEST_BACKFILL | kLocalityFlags;

bool is_structured(const gcx_sm_request& request) {
    return request.coscheduled_sm_count != 0 || request.preferred_coscheduled_sm_count != 0 ||
           request.flags != 0 || request.locality_domain_id != 0;
}

bool is_in_domain(const gcx_sm_request& request) {
    return (request.flags & kLocalityFlags) != 0 || request.locality_domain_id != 0;
}

void check_requests(std::span<const gcx_sm_request> requests, uint32_t flags) {
    if (requests.empty())
        fail(GCX_ERROR_INVALID_VALUE, "there are no requests; a split needs at least one");
    if ((flags & ~kKnownFlags) != 0)
        fail(GCX_ERROR_INVALID_VALUE,
             format("flags %#x: none but GCX_SPLIT_ flags are known", flags));
    if ((flags & kFamilyFlags) == kFamilyFlags)
        fail(GCX_ERROR_INVALID_VALUE, "GCX_SPLIT_IGNORE_SM_COSCHEDULING and "
                                      "GCX_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE exclude each "
                                      "other");
    for (std::size_t i = 0; i < requests.size(); i++) {
        const gcx_sm_request& request = requests[i];
        if (std::any_of(std::begin(request.reserved), std::end(request.reserved),
                        [](uint32_t word) { return word != 0; }))
            fail(GCX_ERROR_INVALID_VALUE,
                 format("request %zu: reserved is not 0; set the whole request to zero first", i));
        if ((request.flags & ~kKnownRequestFlags) != 0)
            fail(GCX_ERROR_INVALID_VALUE,
                 format("request %zu: flags %#x: none but GCX_SM_REQUEST_ flags are known", i,
                        request.flags));
        if (request.sm_count == 0)
            fail(GCX_ERROR_INVALID_VALUE,
                 format(
                     "request %zu: sm_count is 0; GCX_REST requests all SMs that the other groups "
                     "leave",
                     i));
    }
}

gcx_sm_family family_for(const SmResource& input, uint32_t flags) {
    if ((flags & GCX_SPLIT_IGNORE_SM_COSCHEDULING) != 0)
        return GCX_SM_FAMILY_FINE;
    if ((flags & GCX_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE) != 0)
        return GCX_SM_FAMILY_MAX_CLUSTER;
    return input.family->kind();
}

SplitResult make_result(const SmResource& input, const std::shared_ptr<Family>& family,
                        const std::vector<AtomSet>& groups, const AtomSet& remainder) {
    SplitResult result;
    result.groups.reserve(groups.size());
    for (const AtomSet& group : groups)
        result.groups.push_back({input.device, family, group});
    result.remainder = {input.device, family, remainder};
    return result;
}

// Returns the atoms with SMs that all partitions of the process share.
AtomSet shared_atoms(Device& device, const Family& family) {
    AtomSet atoms;
    if (!device.may_share_sms())
        return atoms;
    const std::vector<uint32_t> shared = device.shared_sms();
    if (shared.empty())
        fail(
            GCX_ERROR_SHARED_SMS_UNKNOWN,
            format("GCX_SPLIT_EXCLUDE_SHARED: the SMs that all partitions of this process share on "
                   "%s aren't known; load the module with dynamic parallelism and launch a kernel "
                   "of it, then call gcx_device_find_shared_sms(%d)",
                   device.label().c_str(), device.ordinal()));
    const SmMap* const map = family.sm_map();
    if (map == nullptr)
        fail(GCX_ERROR_SMS_NOT_MAPPED,
             format("GCX_SPLIT_EXCLUDE_SHARED: it isn't known yet which SMs the atoms hold; call "
                    "gcx_device_map_sms(%d, %d), the %s family",
                    device.ordinal(), family.kind(), family_name(family.kind())));
    for (std::size_t atom = 0; atom < map->size(); atom++) {
        const std::vector<uint32_t>& sms = (*map)[atom];
        if (std::find_first_of(sms.begin(), sms.end(), shared.begin(), shared.end()) != sms.end())
            atoms.add(atom);
    }
    return atoms;
}

SplitResult split_structured(const SmResource& input, std::span<const gcx_sm_request> requests,
                             uint32_t flags, bool dry_run) {
    Device& device = *input.device;
    const Driver& driver = device.driver();
    // The newest requirement is reported first, so that one driver update is enough.
    if (std::any_of(requests.begin(), requests.end(), is_in_domain))
        driver.require(GCX_CAPABILITY_LOCALITY_DOMAINS, "a locality domain in a request");
    driver.require(GCX_CAPABILITY_STRUCTURED_SPLIT,
                   "a split with coscheduled counts, flags or locality domains in its requests");
    if ((flags & kFamilyFlags) != 0)
        fail(GCX_ERROR_INVALID_VALUE,
             "flags of a family and requests with coscheduled counts, flags or locality domains "
             "exclude each other");
    if (!(input.set == input.family->all()))
        fail(GCX_ERROR_INVALID_RESOURCE_CONFIGURATION,
             format("a structured split starts from a whole device; this resource has %u of the %u "
                    "SMs of %s",
                    input.family->sm_count(input.set), device.sm_count(), device.label().c_str()));
    if (requests.size() > device.sm_count())
        fail(GCX_ERROR_INVALID_RESOURCE_CONFIGURATION,
             format("requested %zu groups; %s has %u SMs", requests.size(), device.label().c_str(),
                    device.sm_count()));
    std::vector<cu::SmGroupParams> groups;
    for (const gcx_sm_request& request : requests) {
        if ((request.flags & GCX_SM_REQUEST_LOCALITY_DOMAIN_ID) != 0 &&
            request.locality_domain_id != GCX_LOCALITY_DOMAIN_ID_ANY &&
            request.locality_domain_id >= device.locality_domain_count())
            fail(GCX_ERROR_INVALID_VALUE,
                 format("request %zu: locality domain %u; %s has %u, counted from 0", groups.size(),
                        request.locality_domain_id, device.label().c_str(),
                        device.locality_domain_count()));
        cu::SmGroupParams group{};
        static_assert(sizeof group == sizeof request);
        std::memcpy(&group, &request, sizeof group);
        if (group.sm_count == kRest)
            group.sm_count = 0; // how the driver spells it
        groups.push_back(group);
    }
    const std::shared_ptr<Family> family =
        dry_run ? device.try_structured(groups) : device.intern_structured(groups);
    std::vector<AtomSet> sets(requests.size());
    for (std::size_t i = 0; i < sets.size(); i++)
        sets[i].add(i);
    return make_result(input, family, sets, family->all() - AtomSet::first(sets.size()));
}

} // namespace

SplitResult split(LeaseManager& leases, const SmResource& input,
                  std::span<const gcx_sm_request> requests, uint32_t flags, bool dry_run) {
    check_requests(requests, flags);
    const bool structured = std::any_of(requests.begin(), requests.end(), is_structured);
    const uint32_t by_count = flags & (GCX_SPLIT_EXCLUDE_LEASED | GCX_SPLIT_EXCLUDE_SHARED);
    if (structured && by_count != 0)
        fail(GCX_ERROR_INVALID_VALUE,
             format("%s applies only to splits by sm_count; the driver chooses the SMs of a "
                    "structured split",
                    (by_count & GCX_SPLIT_EXCLUDE_LEASED) != 0 ? "GCX_SPLIT_EXCLUDE_LEASED"
                                                               : "GCX_SPLIT_EXCLUDE_SHARED"));
    if (structured)
        return split_structured(input, requests, flags, dry_run);

    Device& device = *input.device;
    const gcx_sm_family kind = family_for(input, flags);
    SmResource from = input;
    const bool whole = input.set == input.family->all();
    if (kind != input.family->kind()) {
        if (!whole)
            fail(GCX_ERROR_INVALID_RESOURCE_CONFIGURATION,
                 format("a resource of the %s family can't be split as %s: their atoms are "
                        "different SMs; split the whole device instead",
                        family_name(input.family->kind()), family_name(kind)));
        from.family = device.family(kind);
        from.set = from.family->all();
    }
    if (kind == GCX_SM_FAMILY_STRUCTURED)
        fail(
            GCX_ERROR_INVALID_RESOURCE_CONFIGURATION,
            "a group of a structured split can't be split further; split the whole device with all "
            "groups at once");
    std::vector<uint32_t> counts;
    counts.reserve(requests.size());
    for (const gcx_sm_request& request : requests)
        counts.push_back(request.sm_count);
    std::string where = whole ? device.label() : "this resource of " + device.label();
    if ((flags & GCX_SPLIT_EXCLUDE_LEASED) != 0) {
        from.set = from.set - leases.leased_atoms(device, from.family);
        where = "what no lease has of " + where;
    }
    if ((flags & GCX_SPLIT_EXCLUDE_SHARED) != 0) {
        from.set = from.set - shared_atoms(device, *from.family);
        where += " without the atom of the shared SMs";
    }
    const SplitPlan plan = plan_split(from.family->shape(), from.set, counts,
                                      (flags & GCX_SPLIT_EXACT) != 0, where.c_str());
    return make_result(from, from.family, plan.groups, plan.remainder);
}

} // namespace gcx

#include "core/planner.hpp"

#include "base/error.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace gcx {
namespace {

// What one group takes: a number of unit atoms, and perhaps the odd one.
struct Share {
    uint32_t units = 0;
    bool odd = false;
};

class Planner {
  public:
    Planner(const AtomShape& shape, const AtomSet& input, std::span<const uint32_t> counts,
            bool exact, const char* where)
        : shape_(shape), input_(input), counts_(counts), exact_(exact), where_(where),
          has_odd_(shape.odd_size != 0 && input.contains(shape.unit_count)),
          units_(static_cast<uint32_t>(input.count()) - (has_odd_ ? 1 : 0)) {}

    std::optional<Plan> run() const {
        if (more_groups_than_atoms())
            return std::nullopt;
        std::optional<std::vector<Share>> shares = counted_shares();
        if (!shares || (exact_ && first_rounded(*shares)))
            return std::nullopt;
        share_the_rest(*shares);
        return place(*shares);
    }

    // Says why run() returns nothing.
    std::string problem() const {
        if (more_groups_than_atoms())
            return too_many_groups();
        if (const auto shares = counted_shares())
            return rounding_problem(*shares);
        const std::vector<Share> with = shares_with(best_holder());
        if (std::min(units_of(with), units_of(shares_with(std::nullopt))) > units_)
            return size_problem();
        return rest_problem(with);
    }

  private:
    uint64_t sms(const Share& share) const {
        return uint64_t{share.units} * shape_.unit_size + (share.odd ? shape_.odd_size : 0);
    }
    // The least that has the count, with the odd atom or without.
    Share share_for(uint32_t count, bool odd) const {
        if (count == kRest)
            return {};
        const uint32_t rest = odd ? count - std::min(count, shape_.odd_size) : count;
        return {rest / shape_.unit_size + (rest % shape_.unit_size != 0 ? 1 : 0), odd};
    }
    bool is_exact(uint32_t count, bool odd) const { return sms(share_for(count, odd)) == count; }

    // What a group with the odd atom leaves to others, in units, and what that does to the number
    // of counts met exactly. The SMs beyond what was asked shrink with the first, so the
    // greatest is the best by the rule at gcx_sm_split.
    struct Gain {
        uint32_t units;
        int exact;
        auto operator<=>(const Gain&) const = default;
    };
    Gain gain_of(uint32_t count) const {
        return {share_for(count, false).units - share_for(count, true).units,
                int{is_exact(count, true)} - int{is_exact(count, false)}};
    }

    // The group that gains most from the odd atom, the first of several.
    std::optional<std::size_t> best_holder() const {
        std::optional<std::size_t> best;
        for (std::size_t i = 0; has_odd_ && i < counts_.size(); i++) {
            if (counts_[i] != kRest && (!best || gain_of(counts_[i]) > gain_of(counts_[*best])))
                best = i;
        }
        return best;
    }

    std::vector<Share> shares_with(std::optional<std::size_t> odd_holder) const {
        std::vector<Share> shares;
        shares.reserve(counts_.size());
        for (std::size_t i = 0; i < counts_.size(); i++)
            shares.push_back(share_for(counts_[i], odd_holder == i));
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

    // Atoms for those who ask for the rest.
    uint64_t atoms_left(const std::vector<Share>& shares) const {
        const bool odd_given =
            std::any_of(shares.begin(), shares.end(), [](const Share& s) { return s.odd; });
        return units_ - units_of(shares) + (has_odd_ && !odd_given ? 1 : 0);
    }

    bool fits(const std::vector<Share>& shares) const {
        return units_of(shares) <= units_ && atoms_left(shares) >= rest_groups();
    }

    // What the rule at gcx_sm_split compares, smaller first. (All shares have what was asked.)
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

    // By the rule. No group saves more units by the odd atom than the best holder, so that where
    // that doesn't fit none does. Where both cost the same the odd atom stays with the rest.
    // Returns nothing if the counts do not fit.
    std::optional<std::vector<Share>> counted_shares() const {
        std::vector<Share> without = shares_with(std::nullopt);
        std::vector<Share> with = shares_with(best_holder());
        if (fits(without) && !(fits(with) && cost_of(with) < cost_of(without)))
            return without;
        if (fits(with))
            return with;
        return std::nullopt;
    }

    // Each group has an atom at least.
    bool more_groups_than_atoms() const {
        return counts_.size() > input_.count() && counts_.size() > 1;
    }

    std::string too_many_groups() const {
        return format("asked for %zu groups; %s has %s, and each group takes one at least",
                      counts_.size(), where_, describe_atoms().c_str());
    }

    // "15 atoms of 8 SMs and one of 12"
    std::string describe_atoms() const {
        if (units_ == 0)
            return has_odd_ ? format("one atom of %u SMs", shape_.odd_size) : "no atoms";
        return format("%u %s of %u SMs", units_, units_ == 1 ? "atom" : "atoms", shape_.unit_size) +
               (has_odd_ ? format(" and one of %u", shape_.odd_size) : "");
    }

    // "8 + 16 + 24", of the counted groups
    template <class CountOf>
    std::string list(CountOf count_of) const {
        constexpr int kMost = 16; // more would be cut off at the end of the message
        std::string text;
        int listed = 0;
        for (std::size_t i = 0; i < counts_.size() && listed <= kMost; i++) {
            if (counts_[i] == kRest)
                continue;
            text += listed == 0 ? "" : " + ";
            text += listed == kMost ? "..." : format("%llu", count_of(i));
            listed++;
        }
        return text;
    }

    std::string list_sms(const std::vector<Share>& shares) const {
        return list([&](std::size_t i) { return static_cast<unsigned long long>(sms(shares[i])); });
    }

    // The first group whose count was rounded.
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
                      counts_[i], counts_.size() == 1 ? "" : " beside the others", where_,
                      describe_atoms().c_str(), list_sms(shares).c_str());
    }

    std::string size_problem() const {
        const std::vector<Share> shares = shares_with(std::nullopt);
        const std::string asked =
            list([&](std::size_t i) { return static_cast<unsigned long long>(counts_[i]); });
        std::string rounded = list_sms(shares);
        const uint64_t total = units_of(shares) * shape_.unit_size;
        if (counts_.size() - rest_groups() > 1)
            rounded += format(" = %llu", static_cast<unsigned long long>(total));
        const uint32_t available = shape_.sm_count(input_);
        return format("asked for %s SMs, in whole atoms of %u that is %s; %s has %u", asked.c_str(),
                      shape_.unit_size, rounded.c_str(), where_, available) +
               (total <= available ? ", in " + describe_atoms() : "");
    }

    std::string rest_problem(const std::vector<Share>& shares) const {
        const std::size_t groups = rest_groups();
        const uint64_t atoms = atoms_left(shares);
        const auto first = std::find(counts_.begin(), counts_.end(), kRest) - counts_.begin();
        if (atoms == 0)
            return format("group %td asks for what the others leave of %s, but no SMs are left",
                          first, where_);
        return format("%zu groups ask for what the others leave of %s, but that is %llu %s, "
                      "and each group takes one at least",
                      groups, where_, static_cast<unsigned long long>(atoms),
                      atoms == 1 ? "atom" : "atoms");
    }

    // kRest: the rest, in shares as even as atoms allow, by the order of the requests: each atom
    // goes to the group with the fewest SMs, the first of several. The last has the odd atom.
    void share_the_rest(std::vector<Share>& shares) const {
        std::vector<std::size_t> sharers;
        uint32_t units = units_;
        bool odd = has_odd_;
        for (std::size_t i = 0; i < shares.size(); i++) {
            if (counts_[i] == kRest)
                sharers.push_back(i);
            units -= shares[i].units;
            odd = odd && !shares[i].odd;
        }
        if (sharers.empty())
            return;
        shares[sharers.back()].odd = odd;
        const auto has_less = [&](std::size_t a, std::size_t b) {
            return sms(shares[a]) < sms(shares[b]);
        };
        for (; units != 0; units--)
            shares[*std::min_element(sharers.begin(), sharers.end(), has_less)].units++;
    }

    // Groups take atoms from the front, in order, so that a larger group contains a smaller one of
    // another split. The one with the odd atom, which is last, takes from the back: a set that
    // runs up to the last atom is what a direct split leaves, see Family::realise.
    Plan place(const std::vector<Share>& shares) const {
        std::vector<std::size_t> atoms;
        atoms.reserve(input_.count());
        input_.for_each([&](std::size_t atom) {
            if (!shape_.is_odd(atom))
                atoms.push_back(atom);
        });
        Plan plan;
        plan.groups.resize(shares.size());
        std::size_t front = 0;
        std::size_t back = atoms.size();
        for (std::size_t i = 0; i < shares.size(); i++) {
            for (uint32_t n = 0; n < shares[i].units; n++)
                plan.groups[i].add(shares[i].odd ? atoms[--back] : atoms[front++]);
            if (shares[i].odd)
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
    bool has_odd_;
    uint32_t units_;
};

} // namespace

Plan make_plan(const AtomShape& shape, const AtomSet& input, std::span<const uint32_t> counts,
               bool exact, const char* where) {
    const Planner planner(shape, input, counts, exact, where);
    auto plan = planner.run();
    if (!plan)
        fail(GCX_ERROR_INVALID_RESOURCE_CONFIGURATION, planner.problem());
    return std::move(*plan);
}

std::optional<Plan> find_plan(const AtomShape& shape, const AtomSet& input,
                              std::span<const uint32_t> counts) {
    return Planner(shape, input, counts, false, "").run();
}

std::string plan_problem(const AtomShape& shape, const AtomSet& input,
                         std::span<const uint32_t> counts, const char* where) {
    const Planner planner(shape, input, counts, false, where);
    return planner.run() ? "" : planner.problem();
}

} // namespace gcx

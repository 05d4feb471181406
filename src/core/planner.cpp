#include "core/planner.hpp"

#include "base/error.hpp"

#include <algorithm>
#include <optional>

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

    Plan run() {
        std::vector<Share> shares = counted_shares();
        share_the_rest(shares);
        return place(shares);
    }

  private:
    uint32_t units_for(uint32_t count) const {
        return count / shape_.unit_size + (count % shape_.unit_size != 0 ? 1 : 0);
    }
    uint64_t sms(const Share& share) const {
        return uint64_t{share.units} * shape_.unit_size + (share.odd ? shape_.odd_size : 0);
    }

    // Whether the odd atom makes a count exact that the units alone would round.
    bool odd_is_exact(uint32_t count) const {
        if (!has_odd_ || count % shape_.unit_size == 0 || count < shape_.odd_size)
            return false;
        const uint32_t rest = count - shape_.odd_size;
        // By itself the odd atom lacks what the family promises, so it is given for its own
        // size only to those who asked for exactness.
        return rest % shape_.unit_size == 0 && (rest > 0 || exact_);
    }

    std::vector<Share> shares_with(std::optional<std::size_t> odd_holder) const {
        std::vector<Share> shares(counts_.size());
        for (std::size_t i = 0; i < counts_.size(); i++) {
            const bool odd = odd_holder == i;
            const uint32_t rest =
                odd ? counts_[i] - std::min(counts_[i], shape_.odd_size) : counts_[i];
            shares[i] = {units_for(rest), odd};
        }
        return shares;
    }

    bool fits(const std::vector<Share>& shares) const {
        uint64_t units = 0;
        for (const Share& share : shares)
            units += share.units;
        return units <= units_;
    }

    std::vector<Share> counted_shares() const {
        std::optional<std::size_t> holder;
        for (std::size_t i = 0; i < counts_.size() && !holder; i++) {
            if (odd_is_exact(counts_[i]))
                holder = i;
        }
        std::vector<Share> shares = shares_with(holder);
        if (exact_)
            refuse_rounding(shares);
        if (fits(shares))
            return shares;
        if (has_odd_) {
            // The units alone do not suffice. The odd atom may spare a group some of them.
            for (std::size_t i = 0; i < counts_.size(); i++) {
                if (counts_[i] == 0)
                    continue;
                const std::vector<Share> other = shares_with(i);
                if (fits(other) && (!exact_ || rounded_group(other) == counts_.size()))
                    return other;
            }
        }
        refuse_size(shares);
    }

    // The first group that would not have what it asked for; counts_.size() if there is none.
    std::size_t rounded_group(const std::vector<Share>& shares) const {
        std::size_t i = 0;
        while (i < counts_.size() && sms(shares[i]) == counts_[i])
            i++;
        return i;
    }

    void refuse_rounding(const std::vector<Share>& shares) const {
        const std::size_t i = rounded_group(shares);
        if (i == counts_.size())
            return;
        fail(GCX_ERROR_INVALID_RESOURCE_CONFIGURATION,
             format("group %zu: %u SMs can't be given exactly on %s, whose atoms have %u SMs; "
                    "%llu can",
                    i, counts_[i], where_, shape_.unit_size,
                    static_cast<unsigned long long>(sms(shares[i]))));
    }

    [[noreturn]] void refuse_size(const std::vector<Share>& shares) const {
        std::string asked;
        std::string rounded;
        uint64_t total = 0;
        for (std::size_t i = 0; i < counts_.size(); i++) {
            const char* plus = i == 0 ? "" : " + ";
            asked += format("%s%u", plus, counts_[i]);
            rounded += format("%s%llu", plus, static_cast<unsigned long long>(sms(shares[i])));
            total += sms(shares[i]);
        }
        if (counts_.size() > 1)
            rounded += format(" = %llu", static_cast<unsigned long long>(total));
        fail(GCX_ERROR_INVALID_RESOURCE_CONFIGURATION,
             format("asked for %s SMs, in whole atoms of %u that is %s; %s has %u", asked.c_str(),
                    shape_.unit_size, rounded.c_str(), where_, shape_.sm_count(input_)));
    }

    // Count 0: the rest, in shares as even as atoms allow. The last has the odd atom.
    void share_the_rest(std::vector<Share>& shares) const {
        auto groups = static_cast<uint32_t>(std::count(counts_.begin(), counts_.end(), 0U));
        uint32_t units = units_;
        bool odd = has_odd_;
        for (const Share& share : shares) {
            units -= share.units;
            odd = odd && !share.odd;
        }
        for (std::size_t i = 0; i < counts_.size(); i++) {
            if (counts_[i] != 0)
                continue;
            const uint32_t left = units * shape_.unit_size + (odd ? shape_.odd_size : 0);
            if (groups == 1) {
                shares[i] = {units, odd};
            } else {
                const uint32_t even = left / groups;
                const uint32_t nearest = (even + shape_.unit_size / 2) / shape_.unit_size;
                const uint32_t most = units - std::min(units, groups - (odd ? 2 : 1));
                shares[i] = {std::min(std::max(nearest, 1U), most), false};
            }
            if (sms(shares[i]) == 0)
                fail(GCX_ERROR_INVALID_RESOURCE_CONFIGURATION,
                     format("group %zu asks for what the others leave of %s, but no SMs are left",
                            i, where_));
            units -= shares[i].units;
            odd = odd && !shares[i].odd;
            groups--;
        }
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
    return Planner(shape, input, counts, exact, where).run();
}

} // namespace gcx

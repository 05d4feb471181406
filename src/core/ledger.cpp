#include "core/ledger.hpp"

#include "base/error.hpp"

#include <algorithm>
#include <utility>

namespace gcx {
namespace {

constexpr std::size_t kNone = AtomSet::kCapacity;

std::size_t first_of(const AtomSet& set) {
    std::size_t first = kNone;
    set.for_each([&](std::size_t atom) { first = std::min(first, atom); });
    return first;
}

std::size_t last_of(const AtomSet& set) {
    std::size_t last = kNone;
    set.for_each([&](std::size_t atom) { last = atom; });
    return last;
}

AtomSet only(std::size_t atom) {
    AtomSet set;
    set.add(atom);
    return set;
}

} // namespace

// One computation of a plan.
class Ledger::Change {
  public:
    Change(const Ledger& ledger, std::span<const Wish> wishes, const AtomSet& usable)
        : ledger_(ledger), shape_(ledger.shape_), wishes_(wishes), next_(wishes.size()),
          sharers_(shape_.atom_count(), 0) {
        units_ = AtomSet::first(shape_.unit_count);
        AtomSet others;
        for (const auto& [who, holding] : ledger.holdings_) {
            if (takes_part(who))
                continue;
            others = others | holding.own;
            shared_by_others_ = shared_by_others_ | holding.shared;
            holding.shared.for_each([&](std::size_t atom) { sharers_[atom]++; });
        }
        for (const Wish& wish : wishes)
            now_.push_back(ledger.of(wish.who));
        single_ = usable - others - shared_by_others_;
        for (std::size_t i = 0; i < wishes.size(); i++) {
            // What a shared lease has alone stays as it is.
            if (wishes[i].shared)
                single_ = single_ - now_[i].own;
        }
        shareable_ = usable - others;
    }

    std::optional<std::vector<Holding>> run() {
        if (!give_single() || !give_shared())
            return std::nullopt;
        return next_;
    }

  private:
    struct Part {
        std::size_t index; // of the wish
        uint32_t count;
        AtomSet planned; // what a split would give
    };

    bool takes_part(uint64_t who) const {
        return std::any_of(wishes_.begin(), wishes_.end(),
                           [&](const Wish& wish) { return wish.who == who; });
    }

    // Those who want atoms of their own: leases that are not shared, and the floor of new ones that
    // are.
    bool give_single() {
        std::vector<Part> parts;
        for (std::size_t i = 0; i < wishes_.size(); i++) {
            const Wish& wish = wishes_[i];
            if (!wish.shared)
                parts.push_back({i, wish.count, {}});
            else if (wish.own != 0 && now_[i].own.empty())
                parts.push_back({i, wish.own, {}});
            else
                next_[i].own = now_[i].own;
        }
        if (parts.empty())
            return true;
        if (!split(parts))
            return false;
        const bool all_new = std::all_of(parts.begin(), parts.end(), [&](const Part& part) {
            return now_[part.index].own.empty();
        });
        if (all_new) {
            for (const Part& part : parts)
                next_[part.index].own = part.planned;
        } else {
            move(parts);
        }
        return true;
    }

    // How many atoms each gets: as a split of all that they can have.
    bool split(std::vector<Part>& parts) {
        std::vector<uint32_t> counts;
        counts.reserve(parts.size());
        for (const Part& part : parts)
            counts.push_back(part.count);
        auto groups = ledger_.groups_of(single_, counts);
        const Wish& first = wishes_[parts[0].index];
        if (!groups && parts.size() == 1 && first.least != 0 && !first.shared)
            groups = ledger_.groups_of(single_, {0}); // what there is, if that will do
        if (!groups)
            return false;
        for (std::size_t i = 0; i < parts.size(); i++) {
            parts[i].planned = (*groups)[i];
            const Wish& wish = wishes_[parts[i].index];
            if (!wish.shared && shape_.sm_count(parts[i].planned) < wish.least)
                return false;
        }
        return true;
    }

    // The planned numbers of atoms, in such a way that who grows keeps all that it has, and who
    // shrinks has nothing new.
    void move(const std::vector<Part>& parts) {
        AtomSet untaken = single_ & units_;
        std::vector<std::size_t> surplus(wishes_.size(), 0);
        for (const Part& part : parts) {
            const AtomSet has = now_[part.index].own & units_;
            const std::size_t wants = (part.planned & units_).count();
            next_[part.index].own = has | (part.planned - units_);
            untaken = untaken - has;
            if (has.count() > wants)
                surplus[part.index] = has.count() - wants;
        }
        for (const Part& part : in_place(parts)) {
            Holding& grows = next_[part.index];
            const std::size_t wants = (part.planned & units_).count();
            while ((grows.own & units_).count() < wants)
                take_nearest(grows.own, untaken, parts, surplus);
        }
        for (const Part& part : parts) {
            AtomSet& own = next_[part.index].own;
            for (; surplus[part.index] != 0; surplus[part.index]--) {
                const AtomSet has = own & units_;
                own = own - only(own == has ? last_of(has) : first_of(has));
            }
        }
    }

    // By where they are; new ones last.
    std::vector<Part> in_place(std::vector<Part> parts) const {
        std::sort(parts.begin(), parts.end(), [&](const Part& a, const Part& b) {
            const auto place = [&](const Part& part) {
                return std::pair(first_of(now_[part.index].own), part.index);
            };
            return place(a) < place(b);
        });
        return parts;
    }

    // Gives one more atom to who grows, of those that nobody has or that somebody has too many of.
    void take_nearest(AtomSet& grows, AtomSet& untaken, const std::vector<Part>& parts,
                      std::vector<std::size_t>& surplus) {
        AtomSet offered = untaken;
        for (const Part& part : parts) {
            if (surplus[part.index] != 0)
                offered = offered | (next_[part.index].own & units_);
        }
        const std::size_t atom = nearest(grows, offered);
        untaken = untaken - only(atom);
        for (const Part& part : parts) {
            AtomSet& own = next_[part.index].own;
            if (&own != &grows && own.contains(atom)) {
                own = own - only(atom);
                surplus[part.index]--;
            }
        }
        grows.add(atom);
    }

    // The first after the first that it has, or else the last before; from the other end for one
    // with the odd atom.
    std::size_t nearest(const AtomSet& grows, const AtomSet& offered) const {
        const AtomSet has = grows & units_;
        const bool downward = grows != has;
        if (downward || has.empty())
            return downward ? last_of(offered) : first_of(offered);
        const AtomSet before = AtomSet::first(first_of(has));
        const AtomSet after = offered - before;
        return after.empty() ? last_of(offered & before) : first_of(after);
    }

    bool give_shared() {
        for (const Holding& holding : next_)
            shareable_ = shareable_ - holding.own;
        for (std::size_t i = 0; i < wishes_.size(); i++) {
            if (wishes_[i].shared && !share(i))
                return false;
        }
        return true;
    }

    // As many atoms as a split of what can be shared would give, those first that it has.
    bool share(std::size_t index) {
        const Wish& wish = wishes_[index];
        Holding& next = next_[index];
        const uint32_t own = shape_.sm_count(next.own);
        const auto planned = shares_for(wish, own);
        if (!planned)
            return false;
        AtomSet shared = (*planned - units_) | (now_[index].shared & shareable_ & units_);
        const std::size_t wants = (*planned & units_).count();
        while ((shared & units_).count() > wants)
            shared = shared - only(worst_to_share(shared & units_));
        while ((shared & units_).count() < wants)
            shared.add(best_to_share((shareable_ - shared) & units_));
        next.shared = shared;
        shared.for_each([&](std::size_t atom) { sharers_[atom]++; });
        return true;
    }

    // What a split would give beside those that are its alone; nothing if that won't do.
    std::optional<AtomSet> shares_for(const Wish& wish, uint32_t own) const {
        if (wish.count != 0 && wish.count <= own)
            return AtomSet();
        const uint32_t least = wish.least != 0 ? wish.least : std::max(wish.count, 1U);
        AtomSet planned;
        if (auto groups = ledger_.groups_of(shareable_, {wish.count == 0 ? 0 : wish.count - own}))
            planned = groups->front();
        else if (wish.count == 0 || wish.least != 0)
            planned = shareable_;
        if (own + shape_.sm_count(planned) < least)
            return std::nullopt;
        return planned;
    }

    // Those that most share, the first of them.
    std::size_t best_to_share(const AtomSet& of) const {
        std::size_t best = kNone;
        of.for_each([&](std::size_t atom) {
            if (best == kNone || sharers_[atom] > sharers_[best])
                best = atom;
        });
        return best;
    }

    std::size_t worst_to_share(const AtomSet& of) const {
        std::size_t worst = kNone;
        of.for_each([&](std::size_t atom) {
            if (worst == kNone || sharers_[atom] <= sharers_[worst])
                worst = atom;
        });
        return worst;
    }

    const Ledger& ledger_;
    const AtomShape& shape_;
    std::span<const Wish> wishes_;
    std::vector<Holding> now_;
    std::vector<Holding> next_;
    AtomSet units_; // all but the odd one
    AtomSet single_;
    AtomSet shareable_;
    AtomSet shared_by_others_;
    std::vector<uint32_t> sharers_; // by atom, without those who take part until they have theirs
};

std::optional<std::vector<AtomSet>> Ledger::groups_of(const AtomSet& input,
                                                      const std::vector<uint32_t>& counts) const {
    if (input.empty())
        return std::nullopt;
    const auto known = std::find_if(recent_.begin(), recent_.end(), [&](const Recent& recent) {
        return recent.input == input && recent.counts == counts;
    });
    if (known != recent_.end())
        return known->groups;
    std::optional<std::vector<AtomSet>> groups;
    try {
        groups = make_plan(shape_, input, counts, false, "").groups;
    } catch (const Error&) {
        groups.reset();
    }
    Recent& oldest = recent_[oldest_];
    oldest_ = (oldest_ + 1) % recent_.size();
    oldest = {input, counts, groups};
    return groups;
}

std::optional<std::vector<Holding>> Ledger::plan(std::span<const Wish> wishes,
                                                 const AtomSet& usable) const {
    auto found = plan_within(wishes, usable);
    // What the driver does not make with the odd atom may be had without it, or of the last ones.
    if (!found && shape_.odd_size != 0 && usable.contains(shape_.unit_count)) {
        found = plan_within(wishes, usable - only(shape_.unit_count));
        if (!found)
            found = plan_within(wishes, last_run(wishes, usable));
    }
    return found;
}

// The atoms up to the last without a gap that no other lease has.
AtomSet Ledger::last_run(std::span<const Wish> wishes, const AtomSet& usable) const {
    AtomSet open = usable & free();
    for (const Wish& wish : wishes)
        open = open | of(wish.who).all();
    std::size_t begin = shape_.atom_count();
    while (begin != 0 && open.contains(begin - 1))
        begin--;
    return shape_.all() - AtomSet::first(begin);
}

std::optional<std::vector<Holding>> Ledger::plan_within(std::span<const Wish> wishes,
                                                        const AtomSet& usable) const {
    auto found = Change(*this, wishes, usable).run();
    if (found && !std::all_of(found->begin(), found->end(),
                              [&](const Holding& next) { return legal_(next.all()); }))
        found.reset();
    return found;
}

void Ledger::set(uint64_t who, const Holding& holding) {
    if (holding.all().empty())
        holdings_.erase(who);
    else
        holdings_[who] = holding;
}

Holding Ledger::of(uint64_t who) const {
    const auto found = holdings_.find(who);
    return found == holdings_.end() ? Holding{} : found->second;
}

AtomSet Ledger::held() const {
    AtomSet held;
    for (const auto& [who, holding] : holdings_)
        held = held | holding.all();
    return held;
}

} // namespace gcx

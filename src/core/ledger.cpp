#include "core/ledger.hpp"

#include "base/error.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace gcx {
namespace {

constexpr std::size_t kNone = AtomSet::kCapacity;

std::size_t first_of(const AtomSet& set) {
    for (std::size_t w = 0; w < AtomSet::kWords; w++) {
        if (const uint64_t word = set.words()[w]; word != 0)
            return w * 64 + static_cast<std::size_t>(std::countr_zero(word));
    }
    return kNone;
}

std::size_t last_of(const AtomSet& set) {
    for (std::size_t w = AtomSet::kWords; w-- != 0;) {
        if (const uint64_t word = set.words()[w]; word != 0)
            return w * 64 + 63 - static_cast<std::size_t>(std::countl_zero(word));
    }
    return kNone;
}

constexpr uint32_t kTheRest[] = {kRest}; // as counts

// Where a holding is, or would be.
template <class All>
auto find(All& holdings, uint64_t who) {
    return std::lower_bound(holdings.begin(), holdings.end(), who,
                            [](const auto& entry, uint64_t id) { return entry.first < id; });
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
        : ledger_(ledger), shape_(ledger.shape_), wishes_(wishes), next_(wishes.size()) {
        units_ = AtomSet::first(shape_.unit_count);
        const bool sharing =
            std::any_of(wishes.begin(), wishes.end(), [](const Wish& wish) { return wish.shared; });
        if (sharing)
            sharers_.resize(shape_.atom_count());
        AtomSet others;
        for (const auto& [who, holding] : ledger.holdings_) {
            if (takes_part(who))
                continue;
            others = others | holding.own;
            shared_by_others_ = shared_by_others_ | holding.shared;
            if (sharing)
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

    std::optional<Holdings> run() {
        if (!give_single() || !give_shared())
            return std::nullopt;
        return std::move(next_);
    }

  private:
    struct Part {
        std::size_t index; // of the wish
        uint32_t count;
        AtomSet planned;         // what a split would give
        std::size_t surplus = 0; // atoms that it has and is to give
    };
    using Parts = Few<Part, 4>;

    bool takes_part(uint64_t who) const {
        return std::any_of(wishes_.begin(), wishes_.end(),
                           [&](const Wish& wish) { return wish.who == who; });
    }

    // Those who want atoms of their own: leases that are not shared, and the floor of new ones that
    // are.
    bool give_single() {
        Parts parts;
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
    bool split(Parts& parts) {
        Few<uint32_t, 4> counts;
        for (const Part& part : parts)
            counts.push_back(part.count);
        const auto* groups = ledger_.groups_of(single_, counts);
        const Wish& first = wishes_[parts[0].index];
        if (groups == nullptr && parts.size() == 1 && first.least != 0 && !first.shared)
            groups = ledger_.groups_of(single_, kTheRest); // what there is, if that will do
        if (groups == nullptr)
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
    void move(Parts& parts) {
        AtomSet untaken = single_ & units_;
        for (Part& part : parts) {
            const AtomSet has = now_[part.index].own & units_;
            const std::size_t wants = (part.planned & units_).count();
            next_[part.index].own = has | (part.planned - units_);
            untaken = untaken - has;
            if (has.count() > wants)
                part.surplus = has.count() - wants;
        }
        // By where they are; new ones last.
        std::sort(parts.begin(), parts.end(), [&](const Part& a, const Part& b) {
            const auto place = [&](const Part& part) {
                return std::pair(first_of(now_[part.index].own), part.index);
            };
            return place(a) < place(b);
        });
        for (const Part& part : parts) {
            AtomSet& grows = next_[part.index].own;
            const std::size_t wants = (part.planned & units_).count();
            for (std::size_t has = (grows & units_).count(); has < wants; has++)
                take_nearest(grows, untaken, parts);
        }
        for (Part& part : parts) {
            AtomSet& own = next_[part.index].own;
            for (; part.surplus != 0; part.surplus--) {
                const AtomSet has = own & units_;
                own = own - only(own == has ? last_of(has) : first_of(has));
            }
        }
    }

    // Gives one more atom to who grows, of those that nobody has or that somebody has too many of.
    void take_nearest(AtomSet& grows, AtomSet& untaken, Parts& parts) {
        AtomSet offered = untaken;
        for (const Part& part : parts) {
            if (part.surplus != 0)
                offered = offered | (next_[part.index].own & units_);
        }
        const std::size_t atom = nearest(grows, offered);
        untaken = untaken - only(atom);
        for (Part& part : parts) {
            AtomSet& own = next_[part.index].own;
            if (&own != &grows && own.contains(atom)) {
                own = own - only(atom);
                part.surplus--;
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
        if (wish.count <= own)
            return AtomSet();
        const uint32_t requested = wish.count == kRest ? 1 : wish.count;
        const uint32_t least = wish.least != 0 ? wish.least : requested;
        AtomSet planned;
        const uint32_t more = wish.count == kRest ? kRest : wish.count - own;
        if (const auto* groups = ledger_.groups_of(shareable_, {&more, 1}))
            planned = groups->front();
        else if (wish.count == kRest || wish.least != 0)
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
    Holdings now_;
    Holdings next_;
    AtomSet units_; // all but the odd one
    AtomSet single_;
    AtomSet shareable_;
    AtomSet shared_by_others_;
    // By atom, without those who take part until they have theirs; empty if none of them shares.
    std::vector<uint32_t> sharers_;
};

const std::vector<AtomSet>* Ledger::groups_of(const AtomSet& input,
                                              std::span<const uint32_t> counts) const {
    if (input.empty())
        return nullptr;
    const auto known = std::find_if(recent_.begin(), recent_.end(), [&](const Recent& recent) {
        return recent.input == input &&
               std::equal(recent.counts.begin(), recent.counts.end(), counts.begin(), counts.end());
    });
    if (known != recent_.end())
        return known->answer();
    std::optional<std::vector<AtomSet>> groups;
    try {
        groups = make_plan(shape_, input, counts, false, "").groups;
    } catch (const Error&) {
        groups.reset();
    }
    Recent& oldest = recent_[oldest_];
    oldest_ = (oldest_ + 1) % recent_.size();
    oldest = {input, {counts.begin(), counts.end()}, std::move(groups)};
    return oldest.answer();
}

std::optional<Holdings> Ledger::plan(std::span<const Wish> wishes, const AtomSet& usable) const {
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

std::optional<Holdings> Ledger::plan_within(std::span<const Wish> wishes,
                                            const AtomSet& usable) const {
    auto found = Change(*this, wishes, usable).run();
    if (found && !std::all_of(found->begin(), found->end(),
                              [&](const Holding& next) { return legal_(next.all()); }))
        found.reset();
    return found;
}

void Ledger::set(uint64_t who, const Holding& holding) {
    const auto at = find(holdings_, who);
    const bool is_there = at != holdings_.end() && at->first == who;
    if (!holding.all().empty())
        (is_there ? at : holdings_.emplace(at, who, Holding()))->second = holding;
    else if (is_there)
        holdings_.erase(at);
}

Holding Ledger::of(uint64_t who) const {
    const auto at = find(holdings_, who);
    return at != holdings_.end() && at->first == who ? at->second : Holding();
}

AtomSet Ledger::held() const {
    AtomSet held;
    for (const auto& [who, holding] : holdings_)
        held = held | holding.all();
    return held;
}

} // namespace gcx

#include "core/sm_allocator.hpp"

#include "core/split.hpp"

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
    Change(const Ledger& ledger, std::span<const Wish> wishes, const AtomSet& usable, Moving moving)
        : shape_(ledger.shape_), wishes_(wishes), moving_(moving), next_(wishes.size()) {
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
            if (wishes[i].shared && !gives_exclusive(i))
                single_ = single_ - now_[i].own;
        }
        shareable_ = usable - others;
    }

    std::optional<Reservationings> run() {
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

    // What a shared lease has exclusively stays as it is, unless the lease is to have less. Then it
    // shares nothing, and gives up some of its exclusive atoms as any other lease.
    bool gives_exclusive(std::size_t i) const {
        return wishes_[i].shared && wishes_[i].count < shape_.sm_count(now_[i].own);
    }

    // Gives atoms to those who want them exclusively: leases that are not shared, shared ones that
    // give up exclusive atoms, and the floor of new ones that are shared.
    bool give_single() {
        Parts parts;
        for (std::size_t i = 0; i < wishes_.size(); i++) {
            const Wish& wish = wishes_[i];
            if (!wish.shared || gives_exclusive(i))
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
        if (all_new || moving_ == Moving::allowed) {
            for (const Part& part : parts)
                next_[part.index].own = part.planned;
        } else {
            move(parts);
        }
        return true;
    }

    std::optional<Plan> find_groups(const AtomSet& input, std::span<const uint32_t> counts) const {
        return input.empty() ? std::nullopt : find_plan(shape_, input, counts);
    }

    // How many atoms each gets: as a split of all that they can have.
    bool split(Parts& parts) {
        Few<uint32_t, 4> counts;
        for (const Part& part : parts)
            counts.push_back(part.count);
        auto plan = find_groups(single_, counts);
        const Wish& first = wishes_[parts[0].index];
        if (!plan && parts.size() == 1 && first.least != 0 && !first.shared)
            plan = find_groups(single_, kTheRest); // all that there is, if that is enough
        if (!plan)
            return false;
        for (std::size_t i = 0; i < parts.size(); i++) {
            parts[i].planned = plan->groups[i];
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
        for (const Reservationing& holding : next_)
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
        Reservationing& next = next_[index];
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
        if (const auto plan = find_groups(shareable_, {&more, 1}))
            planned = plan->groups.front();
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

    const AtomShape& shape_;
    std::span<const Wish> wishes_;
    Moving moving_;
    Reservationings now_;
    Reservationings next_;
    AtomSet units_; // all but the odd one
    AtomSet single_;
    AtomSet shareable_;
    AtomSet shared_by_others_;
    // By atom, without those who take part until they have theirs; empty if none of them shares.
    std::vector<uint32_t> sharers_;
};

std::optional<Reservationings> Ledger::plan(std::span<const Wish> wishes,
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

bool Ledger::legal(const Reservationings& holdings) const {
    return std::all_of(holdings.begin(), holdings.end(),
                       [&](const Reservationing& next) { return legal_(next.all()); });
}

std::optional<Reservationings> Ledger::plan_within(std::span<const Wish> wishes,
                                                   const AtomSet& usable) const {
    auto found = Change(*this, wishes, usable, Moving::avoided).run();
    if (!found)
        return std::nullopt;
    if (auto layout = remembered(wishes, *found, usable))
        return layout;
    if (legal(*found))
        return found;
    // The sets of a split are legal if what can be had has no gaps. So the numbers of SMs that
    // leases get don't depend on the SMs that they had before.
    found = Change(*this, wishes, usable, Moving::allowed).run();
    return found && legal(*found) ? std::move(found) : std::nullopt;
}

Ledger::LayoutName Ledger::name_of(std::span<const Wish> wishes,
                                   const Reservationings& holdings) const {
    LayoutName name;
    name.reserve(wishes.size());
    for (std::size_t i = 0; i < wishes.size(); i++)
        name.push_back(
            {wishes[i].who, shape_.sm_count(holdings[i].own), shape_.sm_count(holdings[i].shared)});
    std::sort(name.begin(), name.end());
    return name;
}

// The layout with the numbers of SMs that were planned, if its atoms are the leases' own or free.
std::optional<Reservationings> Ledger::remembered(std::span<const Wish> wishes,
                                                  const Reservationings& planned,
                                                  const AtomSet& usable) const {
    if (layouts_.empty())
        return std::nullopt;
    const LayoutName name = name_of(wishes, planned);
    const auto known = layouts_.find(name);
    if (known == layouts_.end())
        return std::nullopt;
    AtomSet others_own;
    AtomSet others_shared;
    for (const auto& [who, holding] : holdings_) {
        if (std::any_of(wishes.begin(), wishes.end(),
                        [id = who](const Wish& wish) { return wish.who == id; }))
            continue;
        others_own = others_own | holding.own;
        others_shared = others_shared | holding.shared;
    }
    Reservationings layout;
    for (const Wish& wish : wishes) {
        const auto part = std::find_if(name.begin(), name.end(),
                                       [&](const Part& its) { return its.who == wish.who; });
        const Reservationing& holding =
            known->second.holdings[static_cast<std::size_t>(part - name.begin())];
        if (!(holding.own - (usable - others_own - others_shared)).empty() ||
            !(holding.shared - (usable - others_own)).empty())
            return std::nullopt;
        layout.push_back(holding);
    }
    return layout;
}

void Ledger::remember(std::span<const Wish> wishes, const Reservationings& layout) {
    const LayoutName name = name_of(wishes, layout);
    Layout kept{next_age_++, std::vector<Reservationing>(wishes.size())};
    for (std::size_t i = 0; i < wishes.size(); i++) {
        const auto part = std::find_if(name.begin(), name.end(),
                                       [&](const Part& its) { return its.who == wishes[i].who; });
        kept.holdings[static_cast<std::size_t>(part - name.begin())] = layout[i];
    }
    layouts_.insert_or_assign(name, std::move(kept));
    for (const Part& part : name)
        in_layouts_.insert(part.who);
    if (layouts_.size() > kMaxLayouts)
        layouts_.erase(
            std::min_element(layouts_.begin(), layouts_.end(), [](const auto& a, const auto& b) {
                return a.second.age < b.second.age;
            }));
}

void Ledger::set(uint64_t who, const Reservationing& holding) {
    const auto at = find(holdings_, who);
    const bool is_there = at != holdings_.end() && at->first == who;
    if (!holding.all().empty())
        (is_there ? at : holdings_.emplace(at, who, Reservationing()))->second = holding;
    else if (is_there)
        holdings_.erase(at);
    if (holding.all().empty() && in_layouts_.erase(who) != 0)
        std::erase_if(layouts_, [&](const auto& layout) {
            return std::any_of(layout.first.begin(), layout.first.end(),
                               [&](const Part& part) { return part.who == who; });
        });
}

Reservationing Ledger::of(uint64_t who) const {
    const auto at = find(holdings_, who);
    return at != holdings_.end() && at->first == who ? at->second : Reservationing();
}

AtomSet Ledger::held() const {
    AtomSet held;
    for (const auto& [who, holding] : holdings_)
        held = held | holding.all();
    return held;
}

} // namespace gcx

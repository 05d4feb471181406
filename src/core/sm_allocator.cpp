#include "core/sm_allocator.hpp"

#include "core/split.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace gcx {
namespace {

constexpr std::size_t kNoAtom = AtomSet::kCapacity;

std::size_t first_of(const AtomSet& set) {
    for (std::size_t w = 0; w < AtomSet::kWords; w++) {
        if (const uint64_t word = set.words()[w]; word != 0)
            return w * 64 + static_cast<std::size_t>(std::countr_zero(word));
    }
    return kNoAtom;
}

std::size_t last_of(const AtomSet& set) {
    for (std::size_t w = AtomSet::kWords; w-- != 0;) {
        if (const uint64_t word = set.words()[w]; word != 0)
            return w * 64 + 63 - static_cast<std::size_t>(std::countl_zero(word));
    }
    return kNoAtom;
}

AtomSet only(std::size_t atom) {
    AtomSet set;
    set.add(atom);
    return set;
}

constexpr uint32_t kRestAlone[] = {kRest}; // as the counts of a split

// Returns where the allocation of an owner is, or belongs.
template <class Allocations>
auto find(Allocations& allocations, uint64_t owner) {
    return std::lower_bound(allocations.begin(), allocations.end(), owner,
                            [](const auto& entry, uint64_t id) { return entry.first < id; });
}

bool is_owner(std::span<const SmAllocator::Request> requests, uint64_t owner) {
    return std::any_of(requests.begin(), requests.end(),
                       [&](const SmAllocator::Request& request) { return request.owner == owner; });
}

} // namespace

// Computes one plan.
class SmAllocator::Planner {
  public:
    Planner(const SmAllocator& allocator, std::span<const Request> requests, const AtomSet& usable,
            const AtomSet& exclusive, Moving moving)
        : shape_(allocator.shape_), requests_(requests), moving_(moving), next_(requests.size()) {
        units_ = AtomSet::first(shape_.unit_count);
        if (std::any_of(requests.begin(), requests.end(),
                        [](const Request& request) { return request.shared; })) {
            sharer_counts_.resize(shape_.atom_count());
            for (const auto& [owner, allocation] : allocator.allocations_) {
                if (!is_owner(requests_, owner))
                    allocation.shared.for_each([&](std::size_t atom) { sharer_counts_[atom]++; });
            }
        }
        const Allocation others = allocator.of_others(requests);
        for (const Request& request : requests)
            now_.push_back(allocator.of(request.owner));
        exclusive_input_ = exclusive - others.all();
        for (std::size_t i = 0; i < requests.size(); i++) {
            if (requests[i].shared && !shrinks_exclusive(i))
                exclusive_input_ = exclusive_input_ - now_[i].exclusive;
        }
        shareable_ = usable - others.exclusive;
    }

    std::optional<Allocations> run() {
        if (!plan_exclusive() || !plan_shared())
            return std::nullopt;
        return std::move(next_);
    }

  private:
    struct Part {
        std::size_t index; // of the request
        uint32_t sm_count;
        AtomSet planned;         // what a split would give
        std::size_t surplus = 0; // atoms that the lease has and is to lose
    };
    using Parts = SmallVector<Part, 4>;

    // The exclusive atoms of a shared lease stay as they are unless the lease is to have fewer SMs
    // than those. It then shares nothing and loses exclusive atoms like any other lease.
    bool shrinks_exclusive(std::size_t i) const {
        return requests_[i].shared && requests_[i].sm_count < shape_.sm_count(now_[i].exclusive);
    }

    // Plans exclusive atoms: for leases that are not shared, for shared leases that lose exclusive
    // atoms, and for new shared leases with an exclusive_sm_count.
    bool plan_exclusive() {
        Parts parts;
        for (std::size_t i = 0; i < requests_.size(); i++) {
            const Request& request = requests_[i];
            if (request.sm_count == 0)
                continue; // parked
            if (!request.shared || shrinks_exclusive(i))
                parts.push_back({i, request.sm_count, {}});
            else if (request.exclusive_sm_count != 0 && now_[i].exclusive.empty())
                parts.push_back({i, request.exclusive_sm_count, {}});
            else
                next_[i].exclusive = now_[i].exclusive;
        }
        if (parts.empty())
            return true;
        if (!split(parts))
            return false;
        const bool all_new = std::all_of(parts.begin(), parts.end(), [&](const Part& part) {
            return now_[part.index].exclusive.empty();
        });
        if (all_new || moving_ == Moving::allowed) {
            for (const Part& part : parts)
                next_[part.index].exclusive = part.planned;
        } else {
            adjust(parts);
        }
        return true;
    }

    std::optional<SplitPlan> find_groups(const AtomSet& input,
                                         std::span<const uint32_t> counts) const {
        return input.empty() ? std::nullopt : find_split_plan(shape_, input, counts);
    }

    // Finds how many atoms each part gets: as many as a split of all available atoms gives.
    bool split(Parts& parts) {
        SmallVector<uint32_t, 4> counts;
        for (const Part& part : parts)
            counts.push_back(part.sm_count);
        auto plan = find_groups(exclusive_input_, counts);
        const Request& first = requests_[parts[0].index];
        if (!plan && parts.size() == 1 && first.min_sm_count != 0 && !first.shared)
            plan = find_groups(exclusive_input_, kRestAlone); // min_sm_count may still be met
        if (!plan)
            return false;
        for (std::size_t i = 0; i < parts.size(); i++) {
            parts[i].planned = plan->groups[i];
            const Request& request = requests_[parts[i].index];
            if (!request.shared && shape_.sm_count(parts[i].planned) < request.min_sm_count)
                return false;
        }
        return true;
    }

    // Gives each part its planned number of atoms such that a lease that grows keeps all that it
    // has and a lease that shrinks gets none that it did not have.
    void adjust(Parts& parts) {
        AtomSet untaken = exclusive_input_ & units_;
        for (Part& part : parts) {
            const AtomSet has = now_[part.index].exclusive & units_;
            const std::size_t requested = (part.planned & units_).count();
            next_[part.index].exclusive = has | (part.planned - units_);
            untaken = untaken - has;
            if (has.count() > requested)
                part.surplus = has.count() - requested;
        }
        // By position, new leases last.
        std::sort(parts.begin(), parts.end(), [&](const Part& a, const Part& b) {
            const auto position = [&](const Part& part) {
                return std::pair(first_of(now_[part.index].exclusive), part.index);
            };
            return position(a) < position(b);
        });
        for (const Part& part : parts) {
            AtomSet& grows = next_[part.index].exclusive;
            const std::size_t requested = (part.planned & units_).count();
            for (std::size_t has = (grows & units_).count(); has < requested; has++)
                take_nearest(grows, untaken, parts);
        }
        for (Part& part : parts) {
            AtomSet& atoms = next_[part.index].exclusive;
            for (; part.surplus != 0; part.surplus--) {
                const AtomSet has = atoms & units_;
                atoms = atoms - only(atoms == has ? last_of(has) : first_of(has));
            }
        }
    }

    // Adds one atom to a lease that grows, from the free ones and those of leases with a surplus.
    void take_nearest(AtomSet& grows, AtomSet& untaken, Parts& parts) {
        AtomSet offered = untaken;
        for (const Part& part : parts) {
            if (part.surplus != 0)
                offered = offered | (next_[part.index].exclusive & units_);
        }
        const std::size_t atom = nearest(grows, offered);
        untaken = untaken - only(atom);
        for (Part& part : parts) {
            AtomSet& atoms = next_[part.index].exclusive;
            if (&atoms != &grows && atoms.contains(atom)) {
                atoms = atoms - only(atom);
                part.surplus--;
            }
        }
        grows.add(atom);
    }

    // Returns the first offered atom behind the lease's first one, else the last one before it. A
    // lease with the remainder atom grows from the back.
    std::size_t nearest(const AtomSet& grows, const AtomSet& offered) const {
        const AtomSet has = grows & units_;
        const bool downward = grows != has;
        if (downward || has.empty())
            return downward ? last_of(offered) : first_of(offered);
        const AtomSet before = AtomSet::first(first_of(has));
        const AtomSet after = offered - before;
        return after.empty() ? last_of(offered & before) : first_of(after);
    }

    bool plan_shared() {
        for (const Allocation& allocation : next_)
            shareable_ = shareable_ - allocation.exclusive;
        for (std::size_t i = 0; i < requests_.size(); i++) {
            if (requests_[i].shared && requests_[i].sm_count != 0 && !share(i))
                return false;
        }
        return true;
    }

    // Gives a lease as many shared atoms as a split of the shareable ones would, and prefers those
    // that it has.
    bool share(std::size_t index) {
        const Request& request = requests_[index];
        Allocation& next = next_[index];
        const uint32_t exclusive = shape_.sm_count(next.exclusive);
        const auto planned = shared_atoms_for(request, exclusive);
        if (!planned)
            return false;
        AtomSet shared = *planned - units_;
        // As in a split, the remainder atom goes with the last atoms.
        const bool from_back = !((next.exclusive | shared) - units_).empty();
        if (moving_ == Moving::avoided)
            shared = shared | (now_[index].shared & shareable_ & units_);
        const std::size_t requested = (*planned & units_).count();
        while ((shared & units_).count() > requested)
            shared = shared - only(least_shared(shared & units_, from_back));
        while ((shared & units_).count() < requested)
            shared.add(most_shared((shareable_ - shared) & units_, from_back));
        next.shared = shared;
        shared.for_each([&](std::size_t atom) { sharer_counts_[atom]++; });
        return true;
    }

    // Returns what a split would give in addition to the exclusive SMs, or nothing if the lease
    // would have fewer than min_sm_count.
    std::optional<AtomSet> shared_atoms_for(const Request& request, uint32_t exclusive) const {
        if (request.sm_count <= exclusive)
            return AtomSet();
        const uint32_t requested = request.sm_count == kRest ? 1 : request.sm_count;
        const uint32_t min_sm_count = request.min_sm_count != 0 ? request.min_sm_count : requested;
        AtomSet planned;
        const uint32_t more = request.sm_count == kRest ? kRest : request.sm_count - exclusive;
        if (const auto plan = find_groups(shareable_, {&more, 1}))
            planned = plan->groups.front();
        else if (request.sm_count == kRest || request.min_sm_count != 0)
            planned = shareable_;
        if (exclusive + shape_.sm_count(planned) < min_sm_count)
            return std::nullopt;
        return planned;
    }

    // Returns the atom with the most sharers; of several, the last one if from_back, else the first.
    std::size_t most_shared(const AtomSet& atoms, bool from_back) const {
        std::size_t best = kNoAtom;
        atoms.for_each([&](std::size_t atom) {
            if (best == kNoAtom || sharers(atom) > sharers(best) ||
                (from_back && sharers(atom) == sharers(best)))
                best = atom;
        });
        return best;
    }

    // Returns the atom that most_shared() would add last.
    std::size_t least_shared(const AtomSet& atoms, bool from_back) const {
        std::size_t worst = kNoAtom;
        atoms.for_each([&](std::size_t atom) {
            if (worst == kNoAtom || sharers(atom) < sharers(worst) ||
                (!from_back && sharers(atom) == sharers(worst)))
                worst = atom;
        });
        return worst;
    }

    // Returns 0 where leases may move: the positions alone then decide, as in a split.
    uint32_t sharers(std::size_t atom) const {
        return moving_ == Moving::avoided ? sharer_counts_[atom] : 0;
    }

    const AtomShape& shape_;
    std::span<const Request> requests_;
    Moving moving_;
    Allocations now_;
    Allocations next_;
    AtomSet units_; // all atoms but the remainder atom
    AtomSet exclusive_input_;
    AtomSet shareable_;
    // How many leases share each atom. Leases of this plan are counted once they have their atoms.
    // Empty if no lease of this plan is shared.
    std::vector<uint32_t> sharer_counts_;
};

std::optional<SmAllocator::Allocations> SmAllocator::plan(std::span<const Request> requests,
                                                          const AtomSet& usable) const {
    auto found = plan_within(requests, usable, usable);
    // If the driver makes no context of the planned sets with the remainder atom, a plan without it
    // may be legal, or one that gives out only the last atoms exclusively.
    if (!found && shape_.remainder_size != 0 && usable.contains(shape_.unit_count)) {
        const AtomSet units = usable - only(shape_.unit_count);
        found = plan_within(requests, units, units);
        // The exclusive atoms of a shared lease come from the front of the run and its shared ones
        // from the end. Without a gap between them they may be legal.
        const bool may_have_gap =
            std::any_of(requests.begin(), requests.end(),
                        [](const Request& request) { return request.exclusive_sm_count != 0; });
        AtomSet run = found ? AtomSet() : last_run(requests, usable);
        while (!found && !run.empty()) {
            found = plan_within(requests, usable, run);
            run = may_have_gap ? run - only(first_of(run)) : AtomSet();
        }
    }
    return found;
}

// Returns the longest run of atoms that ends at the last one and that no other lease has.
AtomSet SmAllocator::last_run(std::span<const Request> requests, const AtomSet& usable) const {
    AtomSet open = usable & free();
    for (const Request& request : requests)
        open = open | of(request.owner).all();
    std::size_t begin = shape_.atom_count();
    while (begin != 0 && open.contains(begin - 1))
        begin--;
    return shape_.all() - AtomSet::first(begin);
}

bool SmAllocator::are_legal(const Allocations& allocations) const {
    return std::all_of(allocations.begin(), allocations.end(), [&](const Allocation& allocation) {
        return allocation.all().empty() || is_legal_(allocation.all());
    });
}

std::optional<SmAllocator::Allocations> SmAllocator::plan_within(std::span<const Request> requests,
                                                                 const AtomSet& usable,
                                                                 const AtomSet& exclusive) const {
    auto found = Planner(*this, requests, usable, exclusive, Moving::avoided).run();
    if (!found)
        return std::nullopt;
    if (auto layout = find_layout(requests, *found, usable))
        return layout;
    if (are_legal(*found))
        return found;
    // The sets of a split are legal if the available atoms have no gaps. The fallback makes the SM
    // counts that leases get independent of the SMs that they had before.
    found = Planner(*this, requests, usable, exclusive, Moving::allowed).run();
    return found && are_legal(*found) ? std::move(found) : std::nullopt;
}

SmAllocator::Allocation SmAllocator::of_others(std::span<const Request> requests) const {
    Allocation others;
    for (const auto& [owner, allocation] : allocations_) {
        if (is_owner(requests, owner))
            continue;
        others.exclusive = others.exclusive | allocation.exclusive;
        others.shared = others.shared | allocation.shared;
    }
    return others;
}

SmAllocator::LayoutKey SmAllocator::key_of(std::span<const Request> requests,
                                           const Allocations& allocations) const {
    LayoutKey key;
    key.reserve(requests.size());
    for (std::size_t i = 0; i < requests.size(); i++)
        key.push_back({requests[i].owner, shape_.sm_count(allocations[i].exclusive),
                       shape_.sm_count(allocations[i].shared)});
    std::sort(key.begin(), key.end());
    return key;
}

// Returns the remembered layout with the planned SM counts if its atoms are free or belong to the
// same owners.
std::optional<SmAllocator::Allocations> SmAllocator::find_layout(std::span<const Request> requests,
                                                                 const Allocations& planned,
                                                                 const AtomSet& usable) const {
    if (layouts_.empty())
        return std::nullopt;
    const LayoutKey key = key_of(requests, planned);
    const auto known = layouts_.find(key);
    if (known == layouts_.end())
        return std::nullopt;
    const Allocation others = of_others(requests);
    Allocations layout;
    for (const Request& request : requests) {
        const Allocation& allocation = known->second.allocations.at(request.owner);
        if (!(allocation.exclusive - (usable - others.all())).empty() ||
            !(allocation.shared - (usable - others.exclusive)).empty())
            return std::nullopt;
        layout.push_back(allocation);
    }
    return layout;
}

void SmAllocator::remember(std::span<const Request> requests, const Allocations& layout) {
    const LayoutKey key = key_of(requests, layout);
    Layout entry{next_age_++, {}};
    for (std::size_t i = 0; i < requests.size(); i++)
        entry.allocations[requests[i].owner] = layout[i];
    layouts_.insert_or_assign(key, std::move(entry));
    for (const LayoutPart& part : key)
        layout_owners_.insert(part.owner);
    if (layouts_.size() > kMaxLayouts)
        layouts_.erase(
            std::min_element(layouts_.begin(), layouts_.end(), [](const auto& a, const auto& b) {
                return a.second.age < b.second.age;
            }));
}

void SmAllocator::assign(uint64_t owner, const Allocation& allocation) {
    const auto at = find(allocations_, owner);
    const bool exists = at != allocations_.end() && at->first == owner;
    if (!allocation.all().empty())
        (exists ? at : allocations_.emplace(at, owner, Allocation()))->second = allocation;
    else if (exists)
        allocations_.erase(at);
}

void SmAllocator::make_room(std::size_t owners) {
    const std::size_t count = allocations_.size() + owners;
    if (allocations_.capacity() < count)
        allocations_.reserve(std::max(count, 2 * allocations_.capacity()));
}

void SmAllocator::forget(uint64_t owner) {
    assign(owner, {});
    if (layout_owners_.erase(owner) != 0)
        std::erase_if(layouts_, [&](const auto& layout) {
            return std::any_of(layout.first.begin(), layout.first.end(),
                               [&](const LayoutPart& part) { return part.owner == owner; });
        });
}

SmAllocator::Allocation SmAllocator::of(uint64_t owner) const {
    const auto at = find(allocations_, owner);
    return at != allocations_.end() && at->first == owner ? at->second : Allocation();
}

AtomSet SmAllocator::allocated() const {
    AtomSet allocated;
    for (const auto& [owner, allocation] : allocations_)
        allocated = allocated | allocation.all();
    return allocated;
}

} // namespace gcx

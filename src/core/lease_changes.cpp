// How leases change: SMs that go from one to another, and what work waits for what.
#include "core/lease_rows.hpp"
#include "core/leases.hpp"

#include <algorithm>
#include <utility>

namespace gcx {

void Leases::settle(Lock& lock, Shelf& shelf, std::span<const Size> sizes) {
    changed_.wait(lock, [&] {
        return std::all_of(sizes.begin(), sizes.end(), [&](const Size& size) {
            const auto row = shelf.rows.find(size.lease->id);
            if (row == shelf.rows.end())
                size.lease->check_alive(); // throws
            return !row->second.changing;
        });
    });
}

void Leases::check_together(std::span<const Size> sizes) {
    const Lease& first = *sizes[0].lease;
    for (std::size_t i = 1; i < sizes.size(); i++) {
        const Lease& lease = *sizes[i].lease;
        for (std::size_t before = 0; before < i; before++) {
            if (sizes[before].lease == &lease)
                fail(GCX_ERROR_INVALID_VALUE,
                     format("sizes %zu and %zu are both of %s", before, i, lease.label().c_str()));
        }
        if (&lease.device != &first.device || lease.family != first.family)
            fail(GCX_ERROR_INVALID_RESOURCE_CONFIGURATION,
                 format("%s is of %s, %s family, and %s of %s, %s family: SMs don't go from one "
                        "to the other",
                        first.label().c_str(), first.device.label().c_str(),
                        family_name(first.family->kind()), lease.label().c_str(),
                        lease.device.label().c_str(), family_name(lease.family->kind())));
        if (lease.terms.hold != first.terms.hold)
            fail(GCX_ERROR_INVALID_RESOURCE_CONFIGURATION,
                 format("%s and %s are not of the same hold: SMs don't go from one to the other",
                        first.label().c_str(), lease.label().c_str()));
    }
}

Leases::Wishes Leases::wishes_of(std::span<const Size> sizes) {
    Wishes wishes;
    for (const Size& size : sizes) {
        const LeaseTerms& terms = size.lease->terms;
        wishes.push_back({size.lease->id, size.sm_count, 0, terms.shared, terms.own_sm_count});
    }
    return wishes;
}

Leases::Members Leases::plan(Shelf& shelf, std::span<const Size> sizes) {
    const auto& family = sizes[0].lease->family;
    const Ledger& ledger = Leases::ledger(shelf, family);
    const LeaseTerms& first = sizes[0].lease->terms;
    AtomSet usable = Leases::usable(shelf, family) & within(*family, first);
    AtomSet theirs;
    for (const Size& size : sizes) {
        const LeaseTerms& terms = size.lease->terms;
        if (size.sm_count < terms.own_sm_count)
            fail(GCX_ERROR_INVALID_RESOURCE_CONFIGURATION,
                 format("requested %u SMs for %s, which was acquired with exclusive_sm_count %u; "
                        "request as many at least",
                        size.sm_count, size.lease->label().c_str(), terms.own_sm_count));
        theirs = theirs | ledger.of(size.lease->id).all();
    }
    const Wishes wishes = wishes_of(sizes);
    // What is free is for those who wait.
    if (has_waiters(shelf, first))
        usable = usable & theirs;
    else
        usable = usable - (awaited(shelf, *family, first, nullptr) - theirs);
    const auto planned = ledger.plan(wishes, usable);
    if (!planned) {
        std::string requested;
        for (const Size& size : sizes)
            requested +=
                (requested.empty() ? "" : ", ") +
                (size.sm_count == kRest ? std::string("the rest") : format("%u", size.sm_count)) +
                " for " + size.lease->label();
        check_possible(shelf, family, wishes, first, requested);
        fail(GCX_ERROR_ALREADY_ACQUIRED,
             format("requested %s: %s; release or resize other leases first", requested.c_str(),
                    holders(shelf, family, first).c_str()));
    }
    Members members;
    for (std::size_t i = 0; i < sizes.size(); i++)
        members.push_back({sizes[i].lease, ledger.of(sizes[i].lease->id), (*planned)[i], {}, {}});
    return members;
}

void Leases::resize(std::span<const Size> sizes, bool at_once) {
    check_together(sizes);
    Lock lock(mutex_);
    Shelf& shelf = this->shelf(sizes[0].lease->device);
    settle(lock, shelf, sizes);
    take_out_expired(shelf);
    change(lock, shelf, plan(shelf, sizes), at_once, nullptr);
}

void Leases::prepare(std::span<const Size> sizes) {
    check_together(sizes);
    const Lease& first = *sizes[0].lease;
    Members members;
    {
        Lock lock(mutex_);
        Shelf& shelf = this->shelf(first.device);
        settle(lock, shelf, sizes);
        take_out_expired(shelf);
        members = plan(shelf, sizes);
    }
    std::vector<ContextKey> keys;
    for (const Member& member : members)
        keys.push_back(member.lease->key(member.after.all()));
    const auto nothing = [] {};
    cache_.prepare(keys, nothing, nothing);
    // From now on the layout comes back to these sets, unless a lease was released meanwhile.
    const Lock lock(mutex_);
    Shelf& shelf = this->shelf(first.device);
    Holdings layout;
    for (const Member& member : members) {
        if (!shelf.rows.contains(member.lease->id))
            return;
        layout.push_back(member.after);
    }
    ledger(shelf, first.family).remember(wishes_of(sizes), layout);
}

void Leases::hand_over(Lease& from, Lease& to, bool at_once) {
    const Size both[] = {{&from, kRest}, {&to, kRest}};
    check_together(both);
    Lock lock(mutex_);
    Shelf& shelf = this->shelf(to.device);
    settle(lock, shelf, both);
    const Ledger& ledger = Leases::ledger(shelf, to.family);
    const Holding before = ledger.of(from.id);
    Holding after = ledger.of(to.id);
    const Holding has = after;
    after.own = after.own | before.own;
    after.shared = (after.shared | before.shared) - after.own;
    if (!to.terms.shared && !before.shared.empty())
        fail(GCX_ERROR_INVALID_RESOURCE_CONFIGURATION,
             format("%s shares SMs with others, so that %s, which is not shared, can't have them",
                    from.label().c_str(), to.label().c_str()));
    if (!to.family->can_realise(after.all()))
        fail(GCX_ERROR_NOT_SUPPORTED,
             format("a driver of CUDA %s makes no context of the SMs of both: the odd atom and "
                    "atoms that don't run up to the last can't go together there",
                    version_text(to.device.driver().version()).c_str()));
    Members members;
    members.push_back({&from, before, {}, {}, {}});
    members.push_back({&to, has, after, {}, {}});
    change(lock, shelf, std::move(members), at_once, &from);
}

void Leases::release(Lease& lease) {
    Lock lock(mutex_);
    Shelf& shelf = this->shelf(lease.device);
    if (!shelf.rows.contains(lease.id)) // handed over
        return;
    const Size one[] = {{&lease, kRest}};
    settle(lock, shelf, one);
    Members members;
    members.push_back({&lease, ledger(shelf, lease.family).of(lease.id), {}, {}, {}});
    change(lock, shelf, std::move(members), false, &lease);
}

// What nobody else is to get while a change is under way: what is free and is to be given, and what
// some of its leases share and one is to have alone.
AtomSet Leases::held_back(const Ledger& ledger, const Members& members) {
    AtomSet alone;
    AtomSet after;
    AtomSet own;
    for (const Member& member : members) {
        alone = alone | member.before.own;
        after = after | member.after.all();
        own = own | member.after.own;
    }
    return (after - ledger.held()) | (own - alone);
}

// In one order for all, as by those who pass several.
Few<Gate::Closed, 2> Leases::close_gates(const Members& members) {
    Few<Lease*, 2> leases;
    for (const Member& member : members)
        leases.push_back(member.lease);
    std::sort(leases.begin(), leases.end());
    Few<Gate::Closed, 2> closed;
    for (Lease* lease : leases)
        closed.emplace_back(lease->gate());
    return closed;
}

// Contexts are made and work is asked for without the lock, while the leases are marked, so that
// other leases go on meanwhile.
void Leases::change(Lock& lock, Shelf& shelf, Members members, bool at_once,
                    const Lease* released) {
    members.remove_if([](const Member& member) { return member.before == member.after; });
    if (members.empty())
        return;
    Ledger& ledger = Leases::ledger(shelf, members[0].lease->family);
    const uint64_t reserve = next_id_++;
    const AtomSet alone = held_back(ledger, members);
    // What is to be shared stays so, also if those who share it now give it up.
    AtomSet shared;
    for (const Member& member : members)
        shared = shared | member.after.shared;
    ledger.set(reserve, {alone, shared - alone});
    for (const Member& member : members)
        shelf.rows.at(member.lease->id).changing = true;
    lock.unlock();
    const auto end = [&] {
        ledger.set(reserve, {});
        for (const Member& member : members)
            shelf.rows.at(member.lease->id).changing = false;
    };
    Few<Gate::Closed, 2> closed;
    try {
        for (Member& member : members) {
            const AtomSet atoms = member.after.all();
            if (!atoms.empty() && atoms != member.before.all())
                member.context = cache_.get(member.lease->key(atoms), ContextCache::Sharing::shared,
                                            ContextCache::Use::lease);
        }
        closed = close_gates(members);
        for (Member& member : members)
            member.work = member.lease->in_flight(cache_, shelf.events);
    } catch (...) {
        lock.lock();
        end();
        serve(shelf);
        throw;
    }
    lock.lock();
    end();
    for (const Member& member : members)
        ledger.set(member.lease->id, member.after);
    commit(shelf, members, at_once);
    publish_changes(members);
    closed.clear();
    if (released != nullptr)
        shelf.rows.erase(released->id);
    serve(shelf);
    if (released != nullptr)
        drop_passed_on(shelf);
    lock.unlock(); // the former contexts are given up without it
}

// Cannot fail but for memory.
void Leases::commit(Shelf& shelf, Members& members, bool at_once) {
    drop_passed_on(shelf); // before those that were seen at work just now
    for (Member& member : members) {
        for (Lease::Work& work : member.work)
            shelf.left.push_back({member.lease->id, {work.fence, std::move(work.context)}});
    }
    for (Member& member : members) {
        Lease& lease = *member.lease;
        const AtomSet has = member.after.all();
        const Fences gained = fences_on(shelf, lease, has - member.before.all());
        const std::lock_guard state(lease.mutex_);
        lease.holding_ = member.after;
        lease.released_ = has.empty();
        lease.at_once_ = at_once;
        if (member.context || lease.released_)
            std::swap(lease.context_, member.context);
        drop_passed(shelf.device.driver(), lease.left_);
        lease.elsewhere_.clear();
        for (Lease::Work& work : member.work)
            lease.left_.push_back(std::move(work.fence));
        std::erase_if(lease.behind_,
                      [&](const auto& fence) { return !fence->meets(lease.family, has); });
        for (const auto& fence : gained) {
            if (std::find(lease.behind_.begin(), lease.behind_.end(), fence) == lease.behind_.end())
                lease.behind_.push_back(fence);
        }
        lease.changes_.fetch_add(1, std::memory_order_acq_rel);
    }
}

} // namespace gcx

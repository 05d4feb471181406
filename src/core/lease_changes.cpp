// How leases change: SMs that go from one to another, and what work waits for what.
#include "core/lease_rows.hpp"
#include "core/leases.hpp"

#include <algorithm>
#include <iterator>
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
        if (queue_of(lease.terms) != queue_of(first.terms))
            fail(
                GCX_ERROR_INVALID_RESOURCE_CONFIGURATION,
                format(
                    "%s and %s are not of the same reservation: SMs don't go from one to the other",
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
        members.push_back({sizes[i].lease, ledger.of(sizes[i].lease->id), (*planned)[i], {}});
    return members;
}

void Leases::resize(std::span<const Size> sizes, bool deferred) {
    check_together(sizes);
    Lock lock(mutex_);
    Shelf& shelf = this->shelf(sizes[0].lease->device);
    settle(lock, shelf, sizes);
    take_out_expired(shelf);
    change(lock, shelf, plan(shelf, sizes), deferred, nullptr);
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
    Reservationings layout;
    for (const Member& member : members) {
        if (!shelf.rows.contains(member.lease->id))
            return;
        layout.push_back(member.after);
    }
    ledger(shelf, first.family).remember(wishes_of(sizes), layout);
}

void Leases::hand_over(Lease& from, Lease& to, bool deferred) {
    const Size both[] = {{&from, kRest}, {&to, kRest}};
    check_together(both);
    Lock lock(mutex_);
    Shelf& shelf = this->shelf(to.device);
    settle(lock, shelf, both);
    const Ledger& ledger = Leases::ledger(shelf, to.family);
    const Reservationing before = ledger.of(from.id);
    Reservationing after = ledger.of(to.id);
    const Reservationing has = after;
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
    members.push_back({&from, before, {}, {}});
    members.push_back({&to, has, after, {}});
    change(lock, shelf, std::move(members), deferred, &from);
}

bool Leases::release(Lease& lease) {
    Lock lock(mutex_);
    Shelf& shelf = this->shelf(lease.device);
    // Waits for a change of the lease in another thread: at most until its contexts are made.
    changed_.wait(lock, [&] {
        const auto row = shelf.rows.find(lease.id);
        return row == shelf.rows.end() || !row->second.changing;
    });
    if (!shelf.rows.contains(lease.id))
        return false;
    Members members;
    members.push_back({&lease, ledger(shelf, lease.family).of(lease.id), {}, {}});
    change(lock, shelf, std::move(members), false, &lease);
    return true;
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
void Leases::change(Lock& lock, Shelf& shelf, Members members, bool deferred,
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
        const RelaxedCapture relaxed(shelf.device.driver());
        // If a later step fails, what is recorded here is registered by the next change.
        for (const Member& member : members)
            member.lease->record_work();
    } catch (...) {
        lock.lock();
        end();
        serve(shelf);
        throw;
    }
    Dropped dropped;
    lock.lock();
    end();
    for (const Member& member : members)
        ledger.set(member.lease->id, member.after);
    commit(shelf, members, deferred, dropped);
    publish_changes(members);
    closed.clear();
    if (released != nullptr)
        shelf.rows.erase(released->id);
    serve(shelf);
    const bool last = shelf.rows.empty();
    if (last)
        sweep(shelf, SIZE_MAX, dropped);
    lock.unlock(); // the former contexts are given up without it
    dropped = Dropped();
    if (last)
        shelf.events.clear();
}

// Cannot fail but for memory.
void Leases::commit(Shelf& shelf, Members& members, bool deferred, Dropped& dropped) {
    sweep(shelf, kSwept, dropped);
    for (const Member& member : members) {
        Lease& lease = *member.lease;
        const std::lock_guard state(lease.mutex_);
        for (const auto& work : lease.left_)
            add_pending(shelf, work, dropped);
        lease.left_.clear();
        if (member.after.all().empty())
            end_pending_of(shelf, lease, dropped);
    }
    for (Member& member : members) {
        Lease& lease = *member.lease;
        const AtomSet had = member.before.all();
        const AtomSet has = member.after.all();
        const std::lock_guard state(lease.mutex_);
        lease.holding_ = member.after;
        lease.released_ = has.empty();
        if (lease.released_)
            dropped.reservation = std::move(lease.reservation_);
        for (Lease::Awaited& awaited : lease.awaited_) {
            awaited.lost = awaited.lost | (awaited.atoms - has);
            awaited.atoms = awaited.atoms & has;
            // Of use only while the work itself still counts there.
            awaited.lost = awaited.work->family == lease.family
                               ? awaited.lost & awaited.work->frontier_
                               : AtomSet();
        }
        std::erase_if(lease.awaited_, [&](const Lease::Awaited& awaited) {
            const bool over = awaited.work->known_to_have_passed() ||
                              (awaited.atoms.empty() && awaited.lost.empty());
            if (over)
                dropped.works.push_back(awaited.work);
            return over;
        });
        await(shelf, lease, has - had, lease.placement_.load() + 1);
        settle_streams(lease, member, deferred, dropped);
        lease.changes_.fetch_add(1, std::memory_order_acq_rel);
        lease.placement_.fetch_add(1, std::memory_order_acq_rel);
    }
}

// Where the streams of a lease go after a change: to the context of the new set, which may be that
// of the old one, or, if the change is deferred, nowhere yet.
void Leases::settle_streams(Lease& lease, Member& member, bool deferred, Dropped& dropped) {
    if (member.context || lease.released_)
        std::swap(lease.context_, member.context);
    const auto is_waited_for = [&](const AtomSet& from) {
        return std::any_of(lease.awaited_.begin(), lease.awaited_.end(),
                           [&](const auto& awaited) { return !(awaited.atoms - from).empty(); });
    };
    const AtomSet had = member.before.all();
    // One that loses SMs must not stay: others would wait for it, and it for them.
    if (deferred && (had - member.after.all()).empty()) {
        if (!lease.stays_ && member.context && is_waited_for(had)) {
            lease.stays_ = std::move(member.context);
            lease.deferred_.store(true, std::memory_order_release);
        }
        return;
    }
    if (!lease.stays_)
        return;
    // The streams have followed the deferred change without waiting for these.
    for (Lease::Awaited& awaited : lease.awaited_) {
        if (!(awaited.atoms - lease.stays_->key.set).empty())
            awaited.since = lease.placement_.load() + 1;
    }
    dropped.contexts.push_back(std::move(lease.stays_));
    lease.deferred_.store(false, std::memory_order_release);
}

// Lets a lease wait for what others left on atoms that it gained.
void Leases::await(const Shelf& shelf, Lease& lease, const AtomSet& gained, uint64_t since) {
    if (gained.empty())
        return;
    for (const auto& work : shelf.pending) {
        if (work->source.lease == lease.id)
            continue;
        const AtomSet atoms = atoms_touched(lease.family, gained, work->family, work->frontier_);
        if (!atoms.empty())
            lease.awaited_.push_back({work, atoms, {}, since});
    }
}

// Registers unfinished work. The older work of its stream no longer counts where this ran too.
void Leases::add_pending(Shelf& shelf, const std::shared_ptr<PendingWork>& work, Dropped& dropped) {
    work->registered_ = true;
    for (const auto& older : shelf.pending) {
        if (older->source.stream == work->source.stream)
            older->frontier_ = older->frontier_ - work->atoms;
    }
    for (auto& older : work->implies_) {
        older->frontier_ = older->frontier_ - work->atoms;
        dropped.works.push_back(std::move(older));
    }
    work->implies_.clear();
    shelf.pending.push_back(work);
    absorb_implied(shelf, *work, dropped);
}

// Takes out what newer work, this one, implies everywhere.
void Leases::absorb_implied(Shelf& shelf, PendingWork& work, Dropped& dropped) {
    std::erase_if(shelf.pending, [&](const std::shared_ptr<PendingWork>& older) {
        if (!older->frontier_.empty() || older.get() == &work)
            return false;
        work.absorb(*older);
        dropped.works.push_back(older);
        return true;
    });
}

// A released lease never gets its SMs back, so that from now on its work can stand for the work
// that its streams waited for. While it lived it could not: new streams of the same lease don't
// wait for its own work, but have to wait for that of former holders.
void Leases::end_pending_of(Shelf& shelf, Lease& lease, Dropped& dropped) {
    const PendingWorks all = shelf.pending;
    for (const auto& work : all) {
        if (work->source.lease != lease.id)
            continue;
        for (const Lease::Awaited& awaited : lease.awaited_) {
            if (awaited.since <= work->source.waited && awaited.work->family == work->family)
                awaited.work->frontier_ =
                    awaited.work->frontier_ - (work->atoms & (awaited.atoms | awaited.lost));
        }
        absorb_implied(shelf, *work, dropped);
    }
    for (Lease::Awaited& awaited : lease.awaited_)
        dropped.works.push_back(std::move(awaited.work));
    lease.awaited_.clear();
    std::move(lease.closed_.begin(), lease.closed_.end(), std::back_inserter(dropped.works));
    lease.closed_.clear();
}

// Drops pending work that has finished. Asks about so many entries at most, in turn.
void Leases::sweep(Shelf& shelf, std::size_t most, Dropped& dropped) {
    if (!shelf.pending.empty()) {
        const Driver& driver = shelf.device.driver();
        const RelaxedCapture relaxed(driver);
        for (std::size_t left = std::min(most, shelf.pending.size()); left != 0; left--) {
            if (shelf.sweep_at >= shelf.pending.size())
                shelf.sweep_at = 0;
            const auto work = shelf.pending.begin() + static_cast<std::ptrdiff_t>(shelf.sweep_at);
            if ((*work)->passed(driver, relaxed)) {
                (*work)->release_all(dropped.contexts); // others may refer to it for longer
                dropped.works.push_back(std::move(*work));
                shelf.pending.erase(work);
            } else {
                (*work)->release_finished(driver, relaxed, dropped.contexts);
                shelf.sweep_at++;
            }
        }
    }
}

} // namespace gcx

#include "core/lease_manager.hpp"

#include "base/log.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <set>
#include <utility>

namespace gcx {

namespace {

using Clock = std::chrono::steady_clock;

std::string count_text(uint32_t sm_count) {
    return sm_count == kRest ? "the rest" : format("%u SMs", sm_count);
}

// "64 SMs, at least 40 (min_sm_count)": what a request says.
std::string request_text(const Wish& wish) {
    std::string text = count_text(wish.count);
    if (wish.least != 0)
        text += format(", at least %u (min_sm_count)", wish.least);
    if (wish.own != 0)
        text += format(", %u of them exclusively (exclusive_sm_count)", wish.own);
    return text;
}

// "device 0", or "the reservation "train" of device 0": where a request's SMs come from.
std::string reach_label(const Device& device, const LeaseTerms& terms) {
    if (terms.reservation == nullptr)
        return device.label();
    const char* const name = terms.reservation->name;
    return "the reservation " + (*name != '\0' ? "\"" + std::string(name) + "\" " : "") + "of " +
           device.label();
}

} // namespace

std::optional<Workqueue> Leases::workqueue(const Device& device) {
    const Driver& driver = device.driver();
    if (!driver.has(GCX_CAPABILITY_WORKQUEUES))
        return std::nullopt;
    CUdevResource native{};
    GCX_CALL(driver, cuDeviceGetDevResource, device.native(), &native,
             cu::kResourceWorkqueueConfig);
    const auto fields = cu::get_fields<cu::WorkqueueFields>(native);
    return Workqueue{GCX_WORKQUEUE_SCOPE_GREEN_CTX_BALANCED, fields.concurrency_limit, 0};
}

Leases::Shelf& Leases::shelf(Device& device) {
    std::unique_ptr<Shelf>& found = shelves_[&device];
    if (found == nullptr)
        found = std::make_unique<Shelf>(device);
    return *found;
}

Ledger& Leases::ledger(Shelf& shelf, const std::shared_ptr<Family>& family) {
    const auto found = shelf.ledgers.find(family);
    if (found != shelf.ledgers.end())
        return found->second;
    const auto legal = [family](const AtomSet& set) { return family->can_realise(set); };
    return shelf.ledgers.emplace(family, Ledger(family->shape(), legal)).first->second;
}

// The atoms that leases of other families have; nothing if that isn't known.
std::optional<AtomSet> Leases::taken_elsewhere(Shelf& shelf,
                                               const std::shared_ptr<Family>& family) {
    AtomSet taken;
    for (const auto& [other, ledger] : shelf.ledgers) {
        const AtomSet held = other == family ? AtomSet() : ledger.held();
        if (held.empty())
            continue;
        const auto found = atoms_meeting(*family, *other, held);
        if (!found)
            return std::nullopt;
        taken = taken | *found;
    }
    return taken;
}

AtomSet Leases::usable(Shelf& shelf, const std::shared_ptr<Family>& family) {
    const auto taken = taken_elsewhere(shelf, family);
    if (!taken)
        fail(GCX_ERROR_NOT_READY,
             format("there are leases of another family than the %s one on %s, and which SMs the "
                    "atoms of both hold isn't known yet: call gcx_device_map_sms for each",
                    family_name(family->kind()), shelf.device.label().c_str()));
    return family->all() - *taken;
}

bool Leases::grant(Shelf& shelf, Waiter& waiter) {
    const auto taken = taken_elsewhere(shelf, waiter.family);
    if (!taken)
        return false;
    Ledger& ledger = Leases::ledger(shelf, waiter.family);
    const auto planned =
        ledger.plan({&waiter.wish, 1}, within(*waiter.family, *waiter.terms) - *taken -
                                           awaited(shelf, *waiter.family, *waiter.terms, &waiter));
    if (!planned)
        return false;
    shelf.rows[waiter.wish.who].name = waiter.terms->name;
    ledger.set(waiter.wish.who, planned->front());
    waiter.granted = planned->front();
    return true;
}

// Gives those who wait what they can have, in the order in which they came. Whoever can't be served
// holds up its own queue only.
void Leases::serve(Shelf& shelf) {
    const auto now = Clock::now();
    std::erase_if(shelf.waiters, [&](const Waiter* waiter) { return waiter->until <= now; });
    std::set<uint64_t> held_up;
    for (auto next = shelf.waiters.begin(); next != shelf.waiters.end();) {
        const uint64_t queue = queue_of(*(*next)->terms);
        if (!held_up.contains(queue) && grant(shelf, **next)) {
            next = shelf.waiters.erase(next);
        } else {
            held_up.insert(queue);
            ++next;
        }
    }
    changed_.notify_all();
}

template <class Is>
void Leases::take_out_waiters(Shelf& shelf, const Is& is) {
    if (std::erase_if(shelf.waiters, [&](const Waiter* waiter) {
            const bool out = is(*waiter);
            if (out)
                Publisher::Update(publisher_).remove(waiter->wish.who);
            return out;
        }) != 0)
        serve(shelf);
}

// A thread may wake long after its timeout. Until then its request gets nothing, and holds up none.
void Leases::take_out_expired(Shelf& shelf) {
    if (shelf.waiters.empty())
        return;
    const auto now = Clock::now();
    take_out_waiters(shelf, [&](const Waiter& waiter) { return waiter.until <= now; });
}

void Leases::take_out(Shelf& shelf, uint64_t id) {
    for (auto& [family, ledger] : shelf.ledgers)
        ledger.set(id, {});
    shelf.rows.erase(id);
    Publisher::Update(publisher_).remove(id);
    serve(shelf);
}

// "device 0 has 132, of which 40 are free; "decode" has 64, "prefill" 28; 1 waits, the first for 64
// SMs": for messages. Free is what a request with these terms could be given.
std::string Leases::holders(Shelf& shelf, const std::shared_ptr<Family>& family,
                            const LeaseTerms& terms) {
    const AtomSet within = Leases::within(*family, terms);
    const AtomSet taken = taken_elsewhere(shelf, family).value_or(family->all());
    AtomSet held;
    for (const auto& [id, holding] : ledger(shelf, family).holdings())
        held = held | (terms.shared ? holding.own : holding.all());
    const AtomSet free = within - taken - held;
    const AtomSet awaited = free & Leases::awaited(shelf, *family, terms, nullptr);
    std::string text =
        format("%s has %u, of which %u are free", reach_label(shelf.device, terms).c_str(),
               family->sm_count(within), family->sm_count(free - awaited));
    if (!awaited.empty())
        text += format(" and %u awaited in reservations", family->sm_count(awaited));
    for (const auto& [its_family, ledger] : shelf.ledgers) {
        for (const auto& [id, holding] : ledger.holdings()) {
            const auto row = shelf.rows.find(id);
            if (row == shelf.rows.end())
                continue;
            uint32_t has = its_family->sm_count(holding.all());
            if (terms.reservation != nullptr) { // of the reservation's
                const auto met = atoms_meeting(*family, *its_family, holding.all());
                has = met ? family->sm_count(*met & within) : has;
            }
            if (has != 0)
                text += format("; %s has %u", lease_label(id, row->second.name).c_str(), has);
        }
    }
    const Waiter* first = nullptr;
    std::size_t waiters = 0;
    for (const Waiter* waiter : shelf.waiters) {
        if (queue_of(*waiter->terms) != queue_of(terms))
            continue;
        first = first == nullptr ? waiter : first;
        waiters++;
    }
    if (first != nullptr)
        text += format("; %zu wait%s, the first for %s", waiters, waiters == 1 ? "s" : "",
                       count_text(first->wish.count).c_str());
    return text;
}

// The atoms that a lease can have, whoever has them.
AtomSet Leases::within(const Family& family, const LeaseTerms& terms) {
    return terms.reservation != nullptr ? terms.reservation_atoms : family.all();
}

uint64_t Leases::queue_of(const LeaseTerms& terms) {
    return terms.reservation != nullptr ? terms.reservation->id : 0;
}

bool Leases::has_waiters(const Shelf& shelf, const LeaseTerms& terms) {
    return std::any_of(shelf.waiters.begin(), shelf.waiters.end(), [&](const Waiter* waiter) {
        return queue_of(*waiter->terms) == queue_of(terms);
    });
}

// A lease outside of reservations may have the SMs of one, and would otherwise starve who waits in
// it. Between families of which it isn't known which SMs the atoms hold, nothing is kept.
AtomSet Leases::awaited(const Shelf& shelf, const Family& family, const LeaseTerms& terms,
                        const Waiter* before) {
    AtomSet atoms;
    if (terms.reservation != nullptr)
        return atoms;
    for (const Waiter* waiter : shelf.waiters) {
        if (waiter == before)
            break;
        if (waiter->terms->reservation != nullptr)
            atoms = atoms |
                    atoms_meeting(family, *waiter->family, within(*waiter->family, *waiter->terms))
                        .value_or(AtomSet());
    }
    return atoms;
}

void Leases::check_possible(const Shelf& shelf, const std::shared_ptr<Family>& family,
                            std::span<const Wish> wishes, const LeaseTerms& terms,
                            const std::string& requested) {
    const AtomSet within = Leases::within(*family, terms);
    const Ledger empty(family->shape(),
                       [&](const AtomSet& set) { return family->can_realise(set); });
    if (empty.plan(wishes, within))
        return;
    const std::string where = reach_label(shelf.device, terms);
    std::string problem;
    // Of shared leases, and where less is acceptable, the arithmetic is not a split's.
    if (std::none_of(wishes.begin(), wishes.end(),
                     [](const Wish& wish) { return wish.shared || wish.least != 0; })) {
        std::vector<uint32_t> counts;
        for (const Wish& wish : wishes)
            counts.push_back(wish.count);
        problem = plan_problem(family->shape(), within, counts, where.c_str());
    }
    if (problem.empty())
        problem = format("%s has %u", where.c_str(), family->sm_count(within));
    fail(GCX_ERROR_INVALID_RESOURCE_CONFIGURATION,
         "requested " + requested + ": " + problem + "; request fewer SMs");
}

bool Leases::is_cancelled(const LeaseRequest& request) {
    return request.cancel != nullptr && request.cancel->signalled();
}

std::shared_ptr<Lease> Leases::acquire(Device& device, const LeaseRequest& request) {
    const auto family = device.family(request.family);
    const bool shared = request.terms.shared;
    if (request.terms.require_workqueues)
        device.driver().require(GCX_CAPABILITY_WORKQUEUES,
                                "GCX_LEASE_REQUIRE_WORKQUEUES, queues of a lease's own");
    const auto until = request.timeout_ms == GCX_FOREVER
                           ? Clock::time_point::max()
                           : Clock::now() + std::chrono::milliseconds(request.timeout_ms);
    Waiter waiter{{0, request.sm_count, request.least, shared, request.terms.own_sm_count},
                  family,
                  &request.terms,
                  request.cancel,
                  until,
                  {}};
    Lock lock(mutex_);
    Shelf& shelf = this->shelf(device);
    take_out_expired(shelf);
    waiter.wish.who = next_id_++;
    if (is_cancelled(request) || has_waiters(shelf, request.terms) || !grant(shelf, waiter)) {
        check_possible(shelf, family, {&waiter.wish, 1}, request.terms, request_text(waiter.wish));
        usable(shelf, family); // throws if it isn't known
        wait(lock, shelf, waiter, request);
    }
    lock.unlock();
    return make(shelf, request, waiter);
}

// A request is granted or refused for good under the mutex: by serve, by a signal, or by its
// timeout, whether its thread has woken or not.
void Leases::wait(Lock& lock, Shelf& shelf, Waiter& waiter, const LeaseRequest& request) {
    const auto over = [&] { return waiter.granted.has_value() || is_cancelled(request); };
    if (request.timeout_ms != 0 && !is_cancelled(request)) {
        shelf.waiters.push_back(&waiter);
        if (publisher_.active())
            Publisher::Update(publisher_)
                .put(row_of(shelf.device, *waiter.family, *waiter.terms, waiter.wish));
        if (request.timeout_ms == GCX_FOREVER)
            changed_.wait(lock, over);
        else
            changed_.wait_until(lock, waiter.until, over);
        if (waiter.granted)
            return;
        take_out_waiters(shelf, [&](const Waiter& other) { return &other == &waiter; });
        Publisher::Update(publisher_).remove(waiter.wish.who);
    }
    const std::string requested = request_text(waiter.wish);
    const std::string who = holders(shelf, waiter.family, request.terms);
    if (is_cancelled(request))
        fail(GCX_ERROR_NOT_PERMITTED,
             format("the wait for %s was cancelled by gcx_cancel_signal: %s", requested.c_str(),
                    who.c_str()));
    if (request.timeout_ms != 0)
        fail(GCX_ERROR_ALREADY_ACQUIRED,
             format("timed out after %u ms waiting for %s: %s", request.timeout_ms,
                    requested.c_str(), who.c_str()));
    fail(GCX_ERROR_ALREADY_ACQUIRED,
         format("requested %s: %s; set a timeout to wait for them, or %s", requested.c_str(),
                who.c_str(),
                waiter.wish.least != 0 ? "lower min_sm_count" : "min_sm_count to accept fewer"));
}

// What was granted becomes a lease.
std::shared_ptr<Lease> Leases::make(Shelf& shelf, const LeaseRequest& request,
                                    const Waiter& waiter) {
    const uint64_t id = waiter.wish.who;
    try {
        const auto lease =
            std::make_shared<Lease>(id, request.terms, shelf.device, waiter.family, publisher_);
        lease->workqueue_ = workqueue(shelf.device);
        // It was granted. NOLINTNEXTLINE(bugprone-unchecked-optional-access)
        lease->holding_ = waiter.granted.value();
        lease->reservation_ = request.reservation;
        const AtomSet atoms = lease->holding_.all();
        lease->context_ =
            cache_.get(lease->key(atoms), ContextCache::Sharing::shared, ContextCache::Use::lease);
        Dropped dropped;
        const Lock lock(mutex_);
        sweep(shelf, kSwept, dropped);
        await(shelf, *lease, atoms, 1);
        lease->changes_ = 1;
        lease->placement_ = 1;
        shelf.rows.at(id).lease = lease;
        if (publisher_.active())
            Publisher::Update(publisher_).put(row_of(*lease, lease->holding_));
        return lease;
    } catch (...) {
        const Lock lock(mutex_);
        take_out(shelf, id);
        throw;
    }
}

std::vector<Leases::Live> Leases::live(const Device* device) {
    const Lock lock(mutex_);
    std::vector<Live> found;
    for (const auto& [key, shelf] : shelves_) {
        if (device != nullptr && key != device)
            continue;
        for (const auto& [id, row] : shelf->rows) {
            if (row.lease != nullptr)
                found.push_back(
                    {id, row.lease->terms, key, row.lease->family, false, row.lease->state(), 0});
        }
    }
    std::sort(found.begin(), found.end(), [](const Live& a, const Live& b) { return a.id < b.id; });
    for (const auto& [key, shelf] : shelves_) {
        if (device != nullptr && key != device)
            continue;
        for (const Waiter* waiter : shelf->waiters) {
            found.push_back({waiter->wish.who,
                             *waiter->terms,
                             key,
                             waiter->family,
                             true,
                             {},
                             waiter->wish.count});
        }
    }
    return found;
}

AtomSet Leases::held(Device& device, const std::shared_ptr<Family>& family) {
    const Lock lock(mutex_);
    Shelf& found = shelf(device);
    return (family->all() - usable(found, family)) | ledger(found, family).held();
}

EventPool& Leases::events(Device& device) {
    const Lock lock(mutex_);
    return shelf(device).events;
}

void Leases::tidy() {
    std::vector<Shelf*> unused;
    {
        Dropped dropped;
        const Lock lock(mutex_);
        for (const auto& [device, shelf] : shelves_) {
            sweep(*shelf, SIZE_MAX, dropped);
            for (const auto& [id, row] : shelf->rows) {
                if (row.lease != nullptr)
                    row.lease->drop_finished(dropped.contexts);
            }
            if (shelf->rows.empty())
                unused.push_back(shelf.get());
        }
    }
    for (Shelf* shelf : unused) // they live as long as this
        shelf->events.clear();
}

void Leases::signal(Cancel& cancel) {
    {
        const Lock lock(mutex_);
        cancel.signalled_.store(true, std::memory_order_release);
        for (const auto& [device, shelf] : shelves_)
            take_out_waiters(*shelf,
                             [&](const Waiter& waiter) { return waiter.cancel == &cancel; });
        changed_.notify_all();
    }
    cancel.waits.cancel_all();
}

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

namespace {

published::Row begin_row(uint64_t id, const Device& device, const Family& family,
                         const LeaseTerms& terms) {
    published::Row row{};
    row.id = id;
    row.device = device.ordinal();
    row.family = static_cast<uint32_t>(family.kind());
    row.flags = terms.shared ? GCX_LEASE_SHARED : 0;
    row.unit_count = family.shape().unit_count;
    row.unit_size = family.shape().unit_size;
    row.odd_size = family.shape().odd_size;
    std::memcpy(row.name, terms.name.c_str(), std::min(terms.name.size(), sizeof row.name - 1));
    return row;
}

} // namespace

published::Row row_of(const Lease& lease, const Reservationing& holding) {
    published::Row row = begin_row(lease.id, lease.device, *lease.family, lease.terms);
    row.changes = lease.changes() - 1;
    row.sm_count = lease.family->sm_count(holding.all());
    row.exclusive_sm_count = lease.family->sm_count(holding.own);
    std::copy_n(holding.own.words().data(), AtomSet::kWords, row.own);
    std::copy_n(holding.shared.words().data(), AtomSet::kWords, row.shared);
    return row;
}

published::Row row_of(const Device& device, const Family& family, const LeaseTerms& terms,
                      const Wish& wish) {
    published::Row row = begin_row(wish.who, device, family, terms);
    row.waits = 1;
    row.sm_count = wish.count;
    return row;
}

void Leases::publish(const published::Head& head) {
    const Lock lock(mutex_);
    std::vector<published::Row> rows;
    for (const auto& [device, shelf] : shelves_) {
        for (const auto& [id, row] : shelf->rows) {
            if (row.lease != nullptr)
                rows.push_back(row_of(*row.lease, row.lease->state().holding));
        }
        for (const Waiter* waiter : shelf->waiters)
            rows.push_back(row_of(*device, *waiter->family, *waiter->terms, waiter->wish));
    }
    publisher_.start(head);
    for (const published::Row& row : rows)
        Publisher::Update(publisher_).put(row);
    // From here on each lease tells of its streams itself.
    for (const auto& [device, shelf] : shelves_) {
        for (const auto& [id, row] : shelf->rows) {
            if (row.lease != nullptr)
                row.lease->count_streams(0);
        }
    }
    publisher_.show();
}

// In one moment, as they were changed.
void Leases::publish_changes(const Members& members) {
    if (!publisher_.active())
        return;
    Publisher::Update update(publisher_);
    for (const Member& member : members) {
        if (member.after.all().empty())
            update.remove(member.lease->id);
        else
            update.put(row_of(*member.lease, member.after));
    }
}

} // namespace gcx

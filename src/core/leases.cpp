#include "core/leases.hpp"

#include "base/log.hpp"
#include "core/lease_rows.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
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

} // namespace gcx

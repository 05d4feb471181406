#include "core/leases.hpp"

#include "base/log.hpp"
#include "core/lease_rows.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace gcx {
namespace {

std::string count_text(uint32_t sm_count) {
    return sm_count == kRest ? "the rest" : format("%u SMs", sm_count);
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
        ledger.plan({&waiter.wish, 1}, within(*waiter.family, *waiter.terms) - *taken);
    if (!planned)
        return false;
    shelf.rows[waiter.wish.who].name = waiter.terms->name;
    ledger.set(waiter.wish.who, planned->front());
    waiter.granted = planned->front();
    return true;
}

// Gives those who wait what they can have, in the order in which they came.
void Leases::serve(Shelf& shelf) {
    while (!shelf.waiters.empty() && grant(shelf, *shelf.waiters.front()))
        shelf.waiters.pop_front();
    changed_.notify_all();
}

void Leases::take_out(Shelf& shelf, uint64_t id) {
    for (auto& [family, ledger] : shelf.ledgers)
        ledger.set(id, {});
    shelf.rows.erase(id);
    Publisher::Update(publisher_).remove(id);
    serve(shelf);
}

// "40 are free; "decode" has 64, "prefill" 28; 1 other waits": for messages.
std::string Leases::holders(const Shelf& shelf, const std::shared_ptr<Family>& family) {
    std::string text = format("%s has %u", shelf.device.label().c_str(), shelf.device.sm_count());
    if (const auto found = shelf.ledgers.find(family); found != shelf.ledgers.end())
        text += format(", of which %u are free",
                       family->sm_count(family->all() - found->second.held()));
    for (const auto& [its_family, ledger] : shelf.ledgers) {
        for (const auto& [id, holding] : ledger.holdings()) {
            const auto row = shelf.rows.find(id);
            if (row != shelf.rows.end())
                text += format("; %s has %u", lease_label(id, row->second.name).c_str(),
                               its_family->sm_count(holding.all()));
        }
    }
    if (!shelf.waiters.empty())
        text += format("; %zu wait%s, the first for %s", shelf.waiters.size(),
                       shelf.waiters.size() == 1 ? "s" : "",
                       count_text(shelf.waiters.front()->wish.count).c_str());
    return text;
}

void Leases::drop_passed_on(Shelf& shelf) {
    const Driver& driver = shelf.device.driver();
    std::erase_if(shelf.left, [&](const Left& left) { return left.work.fence->passed(driver); });
    if (shelf.rows.empty())
        shelf.events.clear();
}

// What others left on these atoms.
Fences Leases::fences_on(const Shelf& shelf, const Lease& lease, const AtomSet& atoms) {
    Fences found;
    for (const Left& left : shelf.left) {
        if (left.owner != lease.id && left.work.fence->meets(lease.family, atoms))
            found.push_back(left.work.fence);
    }
    return found;
}

// The atoms that a lease can have, whoever has them.
AtomSet Leases::within(const Family& family, const LeaseTerms& terms) {
    return terms.hold != nullptr ? terms.hold->record().set() : family.all();
}

// Whether the device, or the hold, has the SMs, whoever has them.
bool Leases::fits(const std::shared_ptr<Family>& family, const Wish& wish, const AtomSet& within) {
    const Ledger empty(family->shape(),
                       [&](const AtomSet& set) { return family->can_realise(set); });
    return empty.plan({&wish, 1}, within).has_value();
}

void Leases::refuse_size(const Shelf& shelf, const std::string& what, const LeaseTerms& terms) {
    if (terms.hold == nullptr)
        fail(GCX_ERROR_INVALID_RESOURCE_CONFIGURATION,
             format("%s; %s has %u SMs, whoever holds them", what.c_str(),
                    shelf.device.label().c_str(), shelf.device.sm_count()));
    fail(GCX_ERROR_INVALID_RESOURCE_CONFIGURATION,
         format("%s; the hold of %s has %u SMs, whichever lease has them", what.c_str(),
                shelf.device.label().c_str(), terms.hold->record().sm_count()));
}

bool Leases::is_given_up(const LeaseRequest& request) {
    return request.cancel != nullptr && request.cancel->signalled();
}

std::shared_ptr<Lease> Leases::acquire(Device& device, const LeaseRequest& request) {
    const auto family = device.family(request.family);
    const bool shared = request.terms.shared;
    if (request.terms.own_queues)
        device.driver().require(GCX_CAPABILITY_WORKQUEUES,
                                "GCX_LEASE_OWN_QUEUES, queues of a lease's own");
    Waiter waiter{{0, request.sm_count, request.least, shared, request.terms.own_sm_count},
                  family,
                  &request.terms};
    Lock lock(mutex_);
    Shelf& shelf = this->shelf(device);
    waiter.wish.who = next_id_++;
    if (is_given_up(request) || !shelf.waiters.empty() || !grant(shelf, waiter)) {
        if (!fits(family, waiter.wish, within(*family, request.terms)))
            refuse_size(shelf, "asked for " + count_text(request.sm_count), request.terms);
        usable(shelf, family); // throws if it isn't known
        wait(lock, shelf, waiter, request);
    }
    lock.unlock();
    return make(shelf, request, waiter);
}

void Leases::wait(Lock& lock, Shelf& shelf, Waiter& waiter, const LeaseRequest& request) {
    const auto over = [&] { return waiter.granted.has_value() || is_given_up(request); };
    if (request.timeout_ms != 0 && !is_given_up(request)) {
        shelf.waiters.push_back(&waiter);
        if (publisher_.active())
            Publisher::Update(publisher_)
                .put(row_of(shelf.device, *waiter.family, *waiter.terms, waiter.wish));
        if (request.timeout_ms == GCX_FOREVER)
            changed_.wait(lock, over);
        else
            changed_.wait_for(lock, std::chrono::milliseconds(request.timeout_ms), over);
        if (waiter.granted)
            return;
        std::erase(shelf.waiters, &waiter);
        Publisher::Update(publisher_).remove(waiter.wish.who);
    }
    const bool cancelled = is_given_up(request);
    const std::string who = holders(shelf, waiter.family);
    serve(shelf); // those who came after it may be next
    const std::string asked = count_text(request.sm_count);
    if (cancelled)
        fail(GCX_ERROR_NOT_PERMITTED,
             format("the wait for %s was given up by gcx_cancel_signal; %s", asked.c_str(),
                    who.c_str()));
    if (request.timeout_ms != 0)
        fail(GCX_ERROR_ALREADY_ACQUIRED, format("waited %u ms for %s in vain: %s",
                                                request.timeout_ms, asked.c_str(), who.c_str()));
    fail(GCX_ERROR_ALREADY_ACQUIRED,
         format("asked for %s: %s. A time-out waits for them, min_sm_count takes less",
                asked.c_str(), who.c_str()));
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
        const AtomSet atoms = lease->holding_.all();
        lease->context_ =
            cache_.get(lease->key(atoms), ContextCache::Sharing::shared, ContextCache::Use::lease);
        const Lock lock(mutex_);
        drop_passed_on(shelf);
        lease->behind_ = fences_on(shelf, *lease, atoms);
        lease->changes_ = 1;
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
    const Lock lock(mutex_);
    for (const auto& [device, shelf] : shelves_)
        drop_passed_on(*shelf);
}

void Leases::signal(Cancel& cancel) {
    {
        const Lock lock(mutex_);
        cancel.signalled_.store(true, std::memory_order_release);
        changed_.notify_all();
    }
    cancel.waits.cancel_all();
}

} // namespace gcx

#include "core/lease_manager.hpp"

#include "base/log.hpp"
#include "core/reservation_request.hpp"
#include "core/split.hpp"
#include "driver/nvtx.hpp"

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
using reservations::count_text;
using reservations::refuse_request;
using reservations::source_label;

// Describes a request: "64 SMs, at least 40 (min_sm_count)".
std::string request_text(const SmAllocator::Request& request) {
    std::string text = count_text(request.sm_count);
    if (request.min_sm_count != 0)
        text += format(", at least %u (min_sm_count)", request.min_sm_count);
    if (request.exclusive_sm_count != 0)
        text += format(", %u of them exclusively (exclusive_sm_count)", request.exclusive_sm_count);
    return text;
}

// Describes a resize: "64 for "decode", the rest for "prefill"".
std::string sizes_text(std::span<const LeaseManager::Size> sizes) {
    std::string text;
    for (const auto& [lease, sm_count] : sizes)
        text += (text.empty() ? "" : ", ") +
                (sm_count == kRest ? std::string("the rest")
                 : sm_count == 0   ? std::string("none")
                                   : format("%u", sm_count)) +
                " for " + lease->label();
    return text;
}

published::Row begin_row(uint64_t id, const Device& device, const Family& family,
                         const LeaseTerms& terms) {
    published::Row row{};
    row.id = id;
    row.device = device.ordinal();
    row.family = static_cast<uint32_t>(family.kind());
    row.flags = terms.shared ? GCX_LEASE_SHARED : 0;
    row.unit_count = family.shape().unit_count;
    row.unit_size = family.shape().unit_size;
    row.remainder_size = family.shape().remainder_size;
    std::memcpy(row.name, terms.name.c_str(), std::min(terms.name.size(), sizeof row.name - 1));
    return row;
}

// Returns a lease as it is published. The publisher fills in the number of streams.
published::Row row_of(const Lease& lease, const SmAllocator::Allocation& allocation) {
    published::Row row = begin_row(lease.id, lease.device, *lease.family, lease.terms);
    row.changes = lease.changes() - 1;
    row.sm_count = lease.family->sm_count(allocation.all());
    row.exclusive_sm_count = lease.family->sm_count(allocation.exclusive);
    std::copy_n(allocation.exclusive.words().data(), AtomSet::kWords, row.exclusive);
    std::copy_n(allocation.shared.words().data(), AtomSet::kWords, row.shared);
    return row;
}

// Returns a waiting request as it is published.
published::Row row_of(const Device& device, const Family& family, const LeaseTerms& terms,
                      const SmAllocator::Request& request) {
    published::Row row = begin_row(request.owner, device, family, terms);
    row.waits = 1;
    row.sm_count = request.sm_count;
    return row;
}

} // namespace

std::optional<Workqueue> LeaseManager::workqueue(const Device& device) {
    const Driver& driver = device.driver();
    if (!driver.has(GCX_CAPABILITY_WORKQUEUES))
        return std::nullopt;
    CUdevResource native{};
    GCX_CALL(driver, cuDeviceGetDevResource, device.native(), &native,
             cu::kResourceWorkqueueConfig);
    const auto fields = cu::get_fields<cu::WorkqueueFields>(native);
    return Workqueue{GCX_WORKQUEUE_SCOPE_GREEN_CTX_BALANCED, fields.concurrency_limit, 0};
}

LeaseManager::DeviceState& LeaseManager::state_of(Device& device) {
    auto found = device_states_.find(&device);
    if (found == device_states_.end())
        found = device_states_.emplace(&device, std::make_unique<DeviceState>(device)).first;
    return *found->second;
}

SmAllocator& LeaseManager::allocator_of(DeviceState& state, const std::shared_ptr<Family>& family) {
    const auto found = state.allocators.find(family);
    if (found != state.allocators.end())
        return found->second;
    const auto legal = [family](const AtomSet& set) { return family->can_make_context(set); };
    return state.allocators.emplace(family, SmAllocator(family->shape(), legal)).first->second;
}

// Returns the atoms whose SMs leases of other families have, or nothing if that is not known.
std::optional<AtomSet>
LeaseManager::taken_by_other_families(DeviceState& state, const std::shared_ptr<Family>& family) {
    AtomSet taken;
    for (const auto& [other, allocator] : state.allocators) {
        const AtomSet atoms = other == family ? AtomSet() : allocator.allocated();
        if (atoms.empty())
            continue;
        const auto found = atoms_meeting(*family, *other, atoms);
        if (!found)
            return std::nullopt;
        taken = taken | *found;
    }
    return taken;
}

AtomSet LeaseManager::available_atoms(DeviceState& state, const std::shared_ptr<Family>& family) {
    const auto taken = taken_by_other_families(state, family);
    if (!taken)
        fail(GCX_ERROR_SMS_NOT_MAPPED,
             format("there are leases of another family than the %s one on %s, and which SMs their "
                    "atoms are is not known yet; call gcx_device_map_sms for both families",
                    family_name(family->kind()), state.device.label().c_str()));
    return family->all() - *taken;
}

bool LeaseManager::grant(DeviceState& state, Waiter& waiter) {
    const auto taken = taken_by_other_families(state, waiter.family);
    if (!taken)
        return false;
    SmAllocator& allocator = allocator_of(state, waiter.family);
    const auto planned = allocator.plan(
        {&waiter.request, 1}, reachable_atoms(*waiter.family, *waiter.terms) - *taken -
                                  withheld_atoms(state, *waiter.family, *waiter.terms, &waiter));
    if (!planned)
        return false;
    std::string name = waiter.terms->name;
    allocator.make_room(1);
    state.entries[waiter.request.owner].name.swap(name);
    allocator.assign(waiter.request.owner, planned->front());
    waiter.granted = planned->front();
    return true;
}

// Grants waiting requests in order of arrival. A request that cannot be granted blocks only its own
// queue. If memory runs out, the next change grants the others.
void LeaseManager::serve_waiters(DeviceState& state) {
    try {
        grant_waiting(state);
    } catch (const std::bad_alloc&) { // NOLINT(bugprone-empty-catch): see above
    }
    changed_.notify_all();
}

void LeaseManager::grant_waiting(DeviceState& state) {
    const auto now = Clock::now();
    std::erase_if(state.waiters, [&](const Waiter* waiter) { return waiter->until <= now; });
    std::set<uint64_t> blocked_queues;
    for (auto next = state.waiters.begin(); next != state.waiters.end();) {
        const uint64_t queue = queue_id(*(*next)->terms);
        if (!blocked_queues.contains(queue) && grant(state, **next)) {
            next = state.waiters.erase(next);
        } else {
            blocked_queues.insert(queue);
            ++next;
        }
    }
}

template <class Is>
void LeaseManager::remove_waiters(DeviceState& state, const Is& is) {
    if (std::erase_if(state.waiters, [&](const Waiter* waiter) {
            const bool out = is(*waiter);
            if (out)
                Publisher::Update(publisher_).remove(waiter->request.owner);
            return out;
        }) != 0)
        serve_waiters(state);
}

// A thread may wake long after its timeout. Until then its request must neither be granted nor
// block others.
void LeaseManager::remove_expired_waiters(DeviceState& state) {
    if (state.waiters.empty())
        return;
    const auto now = Clock::now();
    remove_waiters(state, [&](const Waiter& waiter) { return waiter.until <= now; });
}

void LeaseManager::remove_lease(DeviceState& state, uint64_t id) {
    for (auto& [family, allocator] : state.allocators)
        allocator.forget(id);
    state.entries.erase(id);
    Publisher::Update(publisher_).remove(id);
    serve_waiters(state);
}

// Describes who has the SMs: "device 0 has 132, of which 40 are free; "decode" has 64, "prefill"
// 28; 1 waits, the first for 64 SMs". Free are the SMs that a request with these terms could get.
std::string LeaseManager::describe_usage(DeviceState& state, const std::shared_ptr<Family>& family,
                                         const LeaseTerms& terms) {
    const AtomSet reachable = reachable_atoms(*family, terms);
    const AtomSet taken = taken_by_other_families(state, family).value_or(family->all());
    AtomSet allocated;
    for (const auto& [id, allocation] : allocator_of(state, family).allocations())
        allocated = allocated | (terms.shared ? allocation.exclusive : allocation.all());
    const AtomSet free = reachable - taken - allocated;
    const AtomSet withheld = free & withheld_atoms(state, *family, terms, nullptr);
    std::string text = format("%s has %u, of which %u are free",
                              source_label(state.device, terms.reservation.get()).c_str(),
                              family->sm_count(reachable), family->sm_count(free - withheld));
    if (!withheld.empty())
        text += format(" and %u awaited in reservations", family->sm_count(withheld));
    for (const auto& [its_family, allocator] : state.allocators) {
        for (const auto& [id, allocation] : allocator.allocations()) {
            const auto entry = state.entries.find(id);
            if (entry == state.entries.end())
                continue;
            uint32_t has = its_family->sm_count(allocation.all());
            if (terms.reservation != nullptr) { // count only the reservation's SMs
                const auto met = atoms_meeting(*family, *its_family, allocation.all());
                has = met ? family->sm_count(*met & reachable) : has;
            }
            if (has != 0)
                text += format("; %s has %u", lease_label(id, entry->second.name).c_str(), has);
        }
    }
    const Waiter* first = nullptr;
    std::size_t waiters = 0;
    for (const Waiter* waiter : state.waiters) {
        if (queue_id(*waiter->terms) != queue_id(terms))
            continue;
        first = first == nullptr ? waiter : first;
        waiters++;
    }
    if (first != nullptr)
        text += format("; %zu wait%s, the first for %s", waiters, waiters == 1 ? "s" : "",
                       count_text(first->request.sm_count).c_str());
    return text;
}

// Returns all atoms that a lease can have, whether free or not.
AtomSet LeaseManager::reachable_atoms(const Family& family, const LeaseTerms& terms) {
    return terms.reservation != nullptr ? terms.reservation_atoms : family.all();
}

uint64_t LeaseManager::queue_id(const LeaseTerms& terms) {
    return terms.reservation != nullptr ? terms.reservation->id : 0;
}

bool LeaseManager::has_waiters(const DeviceState& state, const LeaseTerms& terms) {
    return std::any_of(state.waiters.begin(), state.waiters.end(), [&](const Waiter* waiter) {
        return queue_id(*waiter->terms) == queue_id(terms);
    });
}

// Leases outside of a reservation can have its SMs, and would starve requests that wait in it.
// Withholds nothing between families whose SMs are not known.
AtomSet LeaseManager::withheld_atoms(const DeviceState& state, const Family& family,
                                     const LeaseTerms& terms, const Waiter* before) {
    AtomSet atoms;
    if (terms.reservation != nullptr)
        return atoms;
    for (const Waiter* waiter : state.waiters) {
        if (waiter == before)
            break;
        if (waiter->terms->reservation != nullptr)
            atoms = atoms | atoms_meeting(family, *waiter->family,
                                          reachable_atoms(*waiter->family, *waiter->terms))
                                .value_or(AtomSet());
    }
    return atoms;
}

void LeaseManager::check_feasible(const DeviceState& state, const std::shared_ptr<Family>& family,
                                  std::span<const SmAllocator::Request> requests,
                                  const LeaseTerms& terms, const std::string& requested) {
    const AtomSet reachable = reachable_atoms(*family, terms);
    const SmAllocator empty(family->shape(),
                            [&](const AtomSet& set) { return family->can_make_context(set); });
    if (empty.plan(requests, reachable))
        return;
    const std::string where = source_label(state.device, terms.reservation.get());
    std::string problem;
    // The arithmetic of shared leases and of requests with a min_sm_count is not that of a split.
    if (std::none_of(requests.begin(), requests.end(), [](const SmAllocator::Request& request) {
            return request.shared || request.min_sm_count != 0;
        })) {
        std::vector<uint32_t> counts;
        for (const SmAllocator::Request& request : requests) {
            if (request.sm_count != 0)
                counts.push_back(request.sm_count);
        }
        problem = split_problem(family->shape(), reachable, counts, where.c_str());
    }
    if (problem.empty())
        problem = format("%s has %u", where.c_str(), family->sm_count(reachable));
    fail(GCX_ERROR_INVALID_RESOURCE_CONFIGURATION,
         "requested " + requested + ": " + problem + "; request fewer SMs");
}

bool LeaseManager::is_cancelled(const LeaseRequest& request) {
    return request.cancel != nullptr && request.cancel->signalled();
}

std::shared_ptr<Lease> LeaseManager::acquire(Device& device, const LeaseRequest& request) {
    const auto family = device.family(request.family);
    const bool shared = request.terms.shared;
    if (request.terms.require_workqueues)
        device.driver().require(GCX_CAPABILITY_WORKQUEUES,
                                "GCX_LEASE_REQUIRE_WORKQUEUES, queues of a lease's own");
    const auto since = Clock::now();
    const auto until = request.timeout_ms == GCX_FOREVER
                           ? Clock::time_point::max()
                           : since + std::chrono::milliseconds(request.timeout_ms);
    Waiter waiter{
        {0, request.sm_count, request.min_sm_count, shared, request.terms.exclusive_sm_count},
        family,
        &request.terms,
        request.cancel,
        since,
        until,
        {}};
    Lock lock(mutex_);
    DeviceState& state = state_of(device);
    remove_expired_waiters(state);
    waiter.request.owner = next_id_++;
    if (is_cancelled(request) || has_waiters(state, request.terms) || !grant(state, waiter)) {
        check_feasible(state, family, {&waiter.request, 1}, request.terms,
                       request_text(waiter.request));
        available_atoms(state, family); // throws if it is not known
        wait(lock, state, waiter, request);
    }
    lock.unlock();
    return make_lease(state, request, waiter);
}

// A request is decided under the mutex: granted by serve_waiters(), or refused by a signal or its
// timeout. Whether its thread has woken does not matter.
void LeaseManager::wait(Lock& lock, DeviceState& state, Waiter& waiter,
                        const LeaseRequest& request) {
    const auto over = [&] { return waiter.granted.has_value() || is_cancelled(request); };
    if (request.timeout_ms != 0 && !is_cancelled(request)) {
        state.waiters.push_back(&waiter);
        waits_++;
        if (publisher_.active()) {
            Publisher::Update update(publisher_);
            update.put(row_of(state.device, *waiter.family, *waiter.terms, waiter.request));
            publish_requests(update);
        }
        if (request.timeout_ms == GCX_FOREVER)
            changed_.wait(lock, over);
        else
            changed_.wait_until(lock, waiter.until, over);
        waited_ += Clock::now() - waiter.since;
        if (publisher_.active()) {
            Publisher::Update update(publisher_);
            publish_requests(update);
        }
        if (waiter.granted)
            return;
        remove_waiters(state, [&](const Waiter& other) { return &other == &waiter; });
        Publisher::Update(publisher_).remove(waiter.request.owner);
    }
    refuse_request({request_text(waiter.request),
                    describe_usage(state, waiter.family, request.terms), is_cancelled(request),
                    request.timeout_ms, waiter.request.min_sm_count != 0});
}

// Makes a lease of a granted request.
std::shared_ptr<Lease> LeaseManager::make_lease(DeviceState& state, const LeaseRequest& request,
                                                const Waiter& waiter) {
    const uint64_t id = waiter.request.owner;
    try {
        const auto lease =
            std::make_shared<Lease>(id, request.terms, state.device, waiter.family, publisher_);
        lease->workqueue_ = workqueue(state.device);
        // It was granted. NOLINTNEXTLINE(bugprone-unchecked-optional-access)
        lease->allocation_ = waiter.granted.value();
        lease->reservation_ = request.reservation;
        const AtomSet atoms = lease->allocation_.all();
        lease->context_ =
            cache_.get(lease->key(atoms), ContextCache::Sharing::shared, ContextCache::Use::lease);
        Dropped dropped;
        const Lock lock(mutex_);
        sweep_pending(state, kSweptPerChange, dropped);
        add_awaited(state, *lease, atoms, 1);
        lease->changes_ = 1;
        lease->placement_ = 1;
        state.entries.at(id).lease = lease;
        if (publisher_.active())
            Publisher::Update(publisher_).put(row_of(*lease, lease->allocation_));
        return lease;
    } catch (...) {
        const Lock lock(mutex_);
        remove_lease(state, id);
        throw;
    }
}

std::vector<LeaseManager::Live> LeaseManager::live(const Device* device) {
    const Lock lock(mutex_);
    std::vector<Live> found;
    for (const auto& [key, state] : device_states_) {
        if (device != nullptr && key != device)
            continue;
        for (const auto& [id, entry] : state->entries) {
            if (entry.lease != nullptr)
                found.push_back({id, entry.lease->terms, key, entry.lease->family, false,
                                 entry.lease->state(), 0});
        }
    }
    std::sort(found.begin(), found.end(), [](const Live& a, const Live& b) { return a.id < b.id; });
    for (const auto& [key, state] : device_states_) {
        if (device != nullptr && key != device)
            continue;
        for (const Waiter* waiter : state->waiters) {
            found.push_back({waiter->request.owner,
                             *waiter->terms,
                             key,
                             waiter->family,
                             true,
                             {},
                             waiter->request.sm_count});
        }
    }
    return found;
}

AtomSet LeaseManager::leased_atoms(Device& device, const std::shared_ptr<Family>& family) {
    const Lock lock(mutex_);
    DeviceState& found = state_of(device);
    return (family->all() - available_atoms(found, family)) |
           allocator_of(found, family).allocated();
}

EventPool& LeaseManager::events(Device& device) {
    const Lock lock(mutex_);
    return state_of(device).events;
}

void LeaseManager::drop_finished_work() {
    std::vector<DeviceState*> unused;
    {
        Dropped dropped;
        const Lock lock(mutex_);
        for (const auto& [device, state] : device_states_) {
            sweep_pending(*state, SIZE_MAX, dropped);
            for (const auto& [id, entry] : state->entries) {
                if (entry.lease != nullptr)
                    entry.lease->drop_finished(dropped.contexts);
            }
            if (state->entries.empty())
                unused.push_back(state.get());
        }
    }
    for (DeviceState* state : unused) // states live as long as the manager
        state->events.clear();
}

void LeaseManager::signal(Cancel& cancel) {
    cancel.signal(); // first: a request that joins a queue from here on sees it
    const Lock lock(mutex_);
    for (const auto& [device, state] : device_states_)
        remove_waiters(*state, [&](const Waiter& waiter) { return waiter.cancel == &cancel; });
    changed_.notify_all();
}

void LeaseManager::wait_for_changes(Lock& lock, DeviceState& state, std::span<const Size> sizes) {
    changed_.wait(lock, [&] {
        return std::all_of(sizes.begin(), sizes.end(), [&](const Size& size) {
            const auto entry = state.entries.find(size.lease->id);
            if (entry == state.entries.end())
                size.lease->check_alive(); // throws
            return !entry->second.changing;
        });
    });
}

void LeaseManager::check_same_pool(std::span<const Size> sizes) {
    const Lease& first = *sizes[0].lease;
    for (std::size_t i = 1; i < sizes.size(); i++) {
        const Lease& lease = *sizes[i].lease;
        for (std::size_t before = 0; before < i; before++) {
            if (sizes[before].lease == &lease)
                fail(GCX_ERROR_INVALID_VALUE,
                     format("sizes %zu and %zu are both of %s", before, i, lease.label().c_str()));
        }
        if (&lease.device != &first.device || lease.family != first.family)
            fail(
                GCX_ERROR_INVALID_RESOURCE_CONFIGURATION,
                format(
                    "%s is of %s, %s family, and %s of %s, %s family: SMs cannot move between them",
                    first.label().c_str(), first.device.label().c_str(),
                    family_name(first.family->kind()), lease.label().c_str(),
                    lease.device.label().c_str(), family_name(lease.family->kind())));
        if (queue_id(lease.terms) != queue_id(first.terms))
            fail(GCX_ERROR_INVALID_RESOURCE_CONFIGURATION,
                 format("%s and %s are not of the same reservation: SMs cannot move between them",
                        first.label().c_str(), lease.label().c_str()));
    }
}

LeaseManager::Requests LeaseManager::requests_of(std::span<const Size> sizes) {
    Requests requests;
    for (const Size& size : sizes) {
        const LeaseTerms& terms = size.lease->terms;
        requests.push_back(
            {size.lease->id, size.sm_count, 0, terms.shared, terms.exclusive_sm_count});
    }
    return requests;
}

LeaseManager::Transitions LeaseManager::plan_transitions(DeviceState& state,
                                                         std::span<const Size> sizes) {
    const auto& family = sizes[0].lease->family;
    const SmAllocator& allocator = allocator_of(state, family);
    const LeaseTerms& first = sizes[0].lease->terms;
    AtomSet usable = LeaseManager::available_atoms(state, family) & reachable_atoms(*family, first);
    AtomSet current;
    for (const Size& size : sizes) {
        const LeaseTerms& terms = size.lease->terms;
        if (size.sm_count != 0 && size.sm_count < terms.exclusive_sm_count)
            fail(GCX_ERROR_INVALID_RESOURCE_CONFIGURATION,
                 format("requested %u SMs for %s, which was acquired with exclusive_sm_count %u; "
                        "request at least as many",
                        size.sm_count, size.lease->label().c_str(), terms.exclusive_sm_count));
        current = current | allocator.of(size.lease->id).all();
    }
    const Requests requests = requests_of(sizes);
    // Free SMs belong to waiting requests.
    if (has_waiters(state, first))
        usable = usable & current;
    else
        usable = usable - (withheld_atoms(state, *family, first, nullptr) - current);
    const auto planned = allocator.plan(requests, usable);
    if (!planned) {
        const std::string requested = sizes_text(sizes);
        check_feasible(state, family, requests, first, requested);
        fail(GCX_ERROR_ALREADY_ACQUIRED,
             format("requested %s: %s; release or resize other leases first", requested.c_str(),
                    describe_usage(state, family, first).c_str()));
    }
    Transitions transitions;
    for (std::size_t i = 0; i < sizes.size(); i++)
        transitions.push_back(
            {sizes[i].lease, allocator.of(sizes[i].lease->id), (*planned)[i], {}, false});
    return transitions;
}

LeaseManager::Transitions LeaseManager::plan_next(Lock& lock, std::span<const Size> sizes) {
    check_same_pool(sizes);
    lock.lock();
    DeviceState& state = state_of(sizes[0].lease->device);
    wait_for_changes(lock, state, sizes);
    remove_expired_waiters(state);
    return plan_transitions(state, sizes);
}

void LeaseManager::resize(std::span<const Size> sizes, bool deferred) {
    const nvtx::Range range([&] { return "resize: " + sizes_text(sizes); });
    Lock lock(mutex_, std::defer_lock);
    Transitions transitions = plan_next(lock, sizes);
    apply(lock, state_of(sizes[0].lease->device), std::move(transitions), deferred);
}

LeaseManager::Layout LeaseManager::layout(std::span<const Size> sizes) {
    Lock lock(mutex_, std::defer_lock);
    const Transitions transitions = plan_next(lock, sizes);
    const Lease& first = *sizes[0].lease;
    DeviceState& state = state_of(first.device);
    AtomSet had;
    AtomSet has;
    Layout planned;
    for (const Transition& transition : transitions) {
        planned.sets.push_back(transition.after.all());
        has = has | transition.after.all();
    }
    for (const auto& [owner, allocation] : allocator_of(state, first.family).allocations()) {
        const auto is_it = [&, id = owner](const Size& size) { return size.lease->id == id; };
        if (std::none_of(sizes.begin(), sizes.end(), is_it))
            had = had | allocation.all();
    }
    planned.remainder =
        (available_atoms(state, first.family) & reachable_atoms(*first.family, first.terms)) - had -
        has;
    return planned;
}

void LeaseManager::prepare(std::span<const Size> sizes) {
    Lock lock(mutex_, std::defer_lock);
    const Transitions transitions = plan_next(lock, sizes);
    lock.unlock();
    const Lease& first = *sizes[0].lease;
    std::vector<ContextKey> keys;
    for (const Transition& transition : transitions) {
        if (!transition.after.all().empty())
            keys.push_back(transition.lease->key(transition.after.all()));
    }
    const auto nothing = [] {};
    cache_.prepare(keys, nothing, nothing);
    // Later plans return to this layout, unless a lease was released in the meantime.
    lock.lock();
    DeviceState& state = state_of(first.device);
    SmAllocator::Allocations layout;
    for (const Transition& transition : transitions) {
        if (!state.entries.contains(transition.lease->id))
            return;
        layout.push_back(transition.after);
    }
    allocator_of(state, first.family).remember(requests_of(sizes), layout);
}

bool LeaseManager::release(Lease& lease) {
    Lock lock(mutex_);
    DeviceState& state = state_of(lease.device);
    // Another thread may be changing the lease. This waits at most until its contexts are made.
    changed_.wait(lock, [&] {
        const auto entry = state.entries.find(lease.id);
        return entry == state.entries.end() || !entry->second.changing;
    });
    if (!state.entries.contains(lease.id))
        return false;
    Transitions transitions;
    transitions.push_back({&lease, allocator_of(state, lease.family).of(lease.id), {}, {}, true});
    apply(lock, state, std::move(transitions), false);
    return true;
}

// Locks in order of address, like submitters do.
SmallVector<SubmitLock::Exclusive, 2>
LeaseManager::lock_submitters(const Transitions& transitions) {
    SmallVector<Lease*, 2> leases;
    for (const Transition& transition : transitions)
        leases.push_back(transition.lease);
    std::sort(leases.begin(), leases.end());
    SmallVector<SubmitLock::Exclusive, 2> closed;
    for (Lease* lease : leases)
        closed.emplace_back(lease->submit_lock());
    return closed;
}

// Keeps other changes away from the leases of a change and from the atoms that they gain. Created
// and ended under LeaseManager::mutex_.
class LeaseManager::ChangeMark {
  public:
    ChangeMark(DeviceState& state, SmAllocator& allocator, uint64_t placeholder_id,
               const Transitions& transitions)
        : state_(state), transitions_(transitions),
          gained_(allocator, placeholder_id, gained_atoms(allocator, transitions)) {
        set_changing(true);
    }
    ~ChangeMark() { end(); }
    void end() {
        if (!std::exchange(ended_, true)) {
            set_changing(false);
            gained_.release();
        }
    }
    ChangeMark(const ChangeMark&) = delete;
    ChangeMark& operator=(const ChangeMark&) = delete;

  private:
    // Withheld exclusively: free atoms that are to be assigned, and shared atoms that one lease is
    // to have exclusively. Withheld as shared: atoms that are to be shared, even if the leases that
    // share them now lose them.
    static SmAllocator::Allocation gained_atoms(const SmAllocator& allocator,
                                                const Transitions& transitions) {
        AtomSet exclusive_before;
        AtomSet exclusive_after;
        AtomSet shared_after;
        for (const Transition& transition : transitions) {
            exclusive_before = exclusive_before | transition.before.exclusive;
            exclusive_after = exclusive_after | transition.after.exclusive;
            shared_after = shared_after | transition.after.shared;
        }
        const AtomSet gained = ((exclusive_after | shared_after) - allocator.allocated()) |
                               (exclusive_after - exclusive_before);
        return {gained, shared_after - gained};
    }
    void set_changing(bool changing) {
        for (const Transition& transition : transitions_)
            state_.entries.at(transition.lease->id).changing = changing;
    }

    DeviceState& state_;
    const Transitions& transitions_;
    SmAllocator::Placeholder gained_;
    bool ended_ = false;
};

// Makes contexts and records work without the mutex, so that other leases are not blocked. The mark
// keeps the leases of this change as they are until then.
void LeaseManager::apply(Lock& lock, DeviceState& state, Transitions transitions, bool deferred) {
    transitions.remove_if([](const Transition& transition) {
        return transition.before == transition.after && !transition.releases;
    });
    if (transitions.empty())
        return;
    SmAllocator& allocator = allocator_of(state, transitions[0].lease->family);
    ChangeMark mark(state, allocator, next_id_++, transitions);
    lock.unlock();
    SmallVector<SubmitLock::Exclusive, 2> submit_locks;
    try {
        for (Transition& transition : transitions) {
            const AtomSet atoms = transition.after.all();
            if (!atoms.empty() && atoms != transition.before.all())
                transition.context =
                    cache_.get(transition.lease->key(atoms), ContextCache::Sharing::shared,
                               ContextCache::Use::lease);
        }
        submit_locks = lock_submitters(transitions);
        const RelaxedCapture relaxed(state.device.driver());
        // If a later step fails, the next change registers this work.
        for (const Transition& transition : transitions)
            transition.lease->record_work();
    } catch (...) {
        for (Transition& transition : transitions)
            transition.context = ContextCache::Ref(); // which may destroy it, so without the mutex
        lock.lock();
        mark.end();
        serve_waiters(state);
        throw;
    }
    Dropped dropped;
    lock.lock();
    try {
        make_room(state, transitions, dropped);
        allocator.make_room(transitions.size());
    } catch (...) {
        mark.end();
        serve_waiters(state);
        lock.unlock();
        for (Transition& transition : transitions)
            transition.context = ContextCache::Ref();
        throw;
    }
    mark.end();
    for (const Transition& transition : transitions) {
        if (transition.releases)
            allocator.forget(transition.lease->id);
        else
            allocator.assign(transition.lease->id, transition.after);
    }
    commit(state, transitions, deferred, dropped);
    resizes_ += transitions[0].releases ? 0 : 1;
    publish_transitions(transitions);
    submit_locks.clear();
    for (const Transition& transition : transitions) {
        if (transition.releases)
            state.entries.erase(transition.lease->id);
    }
    serve_waiters(state);
    const bool last = state.entries.empty();
    if (last)
        sweep_pending(state, SIZE_MAX, dropped);
    lock.unlock(); // releasing the former contexts calls the driver
    dropped = Dropped();
    if (last)
        state.events.clear();
}

// Makes room for all that commit() adds, so that it does not fail.
void LeaseManager::make_room(DeviceState& state, const Transitions& transitions, Dropped& dropped) {
    const auto reserve = [](auto& list, std::size_t count) {
        if (list.capacity() < count)
            list.reserve(std::max(count, 2 * list.capacity()));
    };
    std::size_t works = state.pending.size();
    std::size_t contexts = transitions.size();
    std::size_t dropping = 0;
    bool releases = false;
    const auto count = [&](const PendingWork& work) {
        contexts += work.contexts_.size();
        dropping += work.implies_.size();
    };
    for (const auto& work : state.pending)
        count(*work);
    for (const Transition& transition : transitions) {
        const std::lock_guard lease_lock(transition.lease->mutex_);
        works += transition.lease->unregistered_.size();
        dropping += transition.lease->awaited_.size() + transition.lease->closed_.size();
        releases = releases || transition.releases;
        for (const auto& work : transition.lease->unregistered_)
            count(*work);
    }
    for (const Transition& transition : transitions) {
        Lease& lease = *transition.lease;
        const std::lock_guard lease_lock(lease.mutex_);
        reserve(lease.awaited_, lease.awaited_.size() + works);
        for (const auto& work : lease.unregistered_)
            reserve(work->contexts_, contexts);
    }
    if (releases) {
        reserve(dropped.retired, works);
        for (const auto& work : state.pending)
            reserve(work->contexts_, contexts);
    }
    reserve(state.pending, works);
    reserve(dropped.contexts, contexts);
    reserve(dropped.works, dropping + works + works * transitions.size());
}

void LeaseManager::commit(DeviceState& state, Transitions& transitions, bool deferred,
                          Dropped& dropped) {
    sweep_pending(state, kSweptPerChange, dropped);
    for (const Transition& transition : transitions) {
        Lease& lease = *transition.lease;
        const std::lock_guard lease_lock(lease.mutex_);
        for (const auto& work : lease.unregistered_)
            register_work(state, work, dropped);
        lease.unregistered_.clear();
        if (transition.releases)
            retire_work_of(state, lease, dropped);
    }
    for (Transition& transition : transitions) {
        Lease& lease = *transition.lease;
        const AtomSet had = transition.before.all();
        const AtomSet has = transition.after.all();
        const std::lock_guard lease_lock(lease.mutex_);
        lease.allocation_ = transition.after;
        lease.released_ = transition.releases;
        if (lease.released_)
            dropped.reservation = std::move(lease.reservation_);
        for (Lease::Awaited& awaited : lease.awaited_) {
            awaited.lost = awaited.lost | (awaited.atoms - has);
            awaited.atoms = awaited.atoms & has;
            // It matters only while the awaited work itself counts there.
            awaited.lost = awaited.work->family == lease.family
                               ? awaited.lost & awaited.work->frontier_
                               : AtomSet();
        }
        std::erase_if(lease.awaited_, [&](const Lease::Awaited& awaited) {
            const bool over =
                awaited.work->known_finished() || (awaited.atoms.empty() && awaited.lost.empty());
            if (over)
                dropped.works.push_back(awaited.work);
            return over;
        });
        add_awaited(state, lease, has - had, lease.placement_.load() + 1);
        retarget_streams(lease, transition, deferred, dropped);
        lease.changes_.fetch_add(1, std::memory_order_acq_rel);
        lease.placement_.fetch_add(1, std::memory_order_acq_rel);
    }
}

// Decides where the streams of a lease go after a change: to the context of the new set, or nowhere
// yet if the change is deferred. A parked lease keeps its last context, in which its streams' work
// finishes.
void LeaseManager::retarget_streams(Lease& lease, Transition& transition, bool deferred,
                                    Dropped& dropped) {
    if (transition.context || lease.released_)
        std::swap(lease.context_, transition.context);
    const auto is_waited_for = [&](const AtomSet& from) {
        return std::any_of(lease.awaited_.begin(), lease.awaited_.end(),
                           [&](const auto& awaited) { return !(awaited.atoms - from).empty(); });
    };
    const AtomSet had = transition.before.all();
    // A lease that loses SMs must not stay: other leases would wait for it, and it for them. A
    // parked lease has no SMs to stay on.
    if (deferred && !had.empty() && (had - transition.after.all()).empty()) {
        if (!lease.former_context_ && transition.context && is_waited_for(had)) {
            lease.former_context_ = std::move(transition.context);
            lease.is_deferred_.store(true, std::memory_order_release);
        }
        return;
    }
    if (!lease.former_context_)
        return;
    // The streams followed the deferred change without waiting for this work.
    for (Lease::Awaited& awaited : lease.awaited_) {
        if (!(awaited.atoms - lease.former_context_->key.set).empty())
            awaited.since = lease.placement_.load() + 1;
    }
    dropped.contexts.push_back(std::move(lease.former_context_));
    lease.is_deferred_.store(false, std::memory_order_release);
}

// Makes a lease wait for the work that others left on the atoms that it gained.
void LeaseManager::add_awaited(const DeviceState& state, Lease& lease, const AtomSet& gained,
                               uint64_t since) {
    if (gained.empty())
        return;
    for (const auto& work : state.pending) {
        if (work->source.lease == lease.id)
            continue;
        const AtomSet atoms = atoms_touched(lease.family, gained, work->family, work->frontier_);
        if (!atoms.empty())
            lease.awaited_.push_back({work, atoms, {}, since});
    }
}

// Registers unfinished work. Older work of its stream no longer counts on the same atoms.
void LeaseManager::register_work(DeviceState& state, const std::shared_ptr<PendingWork>& work,
                                 Dropped& dropped) {
    work->registered_ = true;
    for (const auto& older : state.pending) {
        if (older->source.stream == work->source.stream)
            older->frontier_ = older->frontier_ - work->atoms;
    }
    for (auto& older : work->implies_) {
        older->frontier_ = older->frontier_ - work->atoms;
        dropped.works.push_back(std::move(older));
    }
    work->implies_.clear();
    state.pending.push_back(work);
    absorb_implied(state, *work, dropped);
}

// Removes older work that this newer work implies on all atoms.
void LeaseManager::absorb_implied(DeviceState& state, PendingWork& work, Dropped& dropped) {
    std::erase_if(state.pending, [&](const std::shared_ptr<PendingWork>& older) {
        if (!older->frontier_.empty() || older.get() == &work)
            return false;
        work.absorb(*older);
        dropped.works.push_back(older);
        return true;
    });
}

// A released lease never gets its SMs back, so its work can now stand for the work that its streams
// waited for. Before the release it could not, because new streams of the lease wait for earlier
// owners' work but not for the lease's own.
void LeaseManager::retire_work_of(DeviceState& state, Lease& lease, Dropped& dropped) {
    dropped.retired = state.pending;
    for (const auto& work : dropped.retired) {
        if (work->source.lease != lease.id)
            continue;
        for (const Lease::Awaited& awaited : lease.awaited_) {
            if (awaited.since <= work->source.waited && awaited.work->family == work->family)
                awaited.work->frontier_ =
                    awaited.work->frontier_ - (work->atoms & (awaited.atoms | awaited.lost));
        }
        absorb_implied(state, *work, dropped);
    }
    for (Lease::Awaited& awaited : lease.awaited_)
        dropped.works.push_back(std::move(awaited.work));
    lease.awaited_.clear();
    std::move(lease.closed_.begin(), lease.closed_.end(), std::back_inserter(dropped.works));
    lease.closed_.clear();
}

// Drops finished pending work. Queries at most limit entries, in turn.
void LeaseManager::sweep_pending(DeviceState& state, std::size_t limit, Dropped& dropped) {
    if (!state.pending.empty()) {
        const Driver& driver = state.device.driver();
        const RelaxedCapture relaxed(driver);
        for (std::size_t left = std::min(limit, state.pending.size()); left != 0; left--) {
            if (state.next_sweep >= state.pending.size())
                state.next_sweep = 0;
            const auto work = state.pending.begin() + static_cast<std::ptrdiff_t>(state.next_sweep);
            if ((*work)->finished(driver, relaxed)) {
                (*work)->release_all(dropped.contexts); // other objects may keep the entry
                dropped.works.push_back(std::move(*work));
                state.pending.erase(work);
            } else {
                (*work)->release_finished(driver, relaxed, dropped.contexts);
                state.next_sweep++;
            }
        }
    }
}

void LeaseManager::publish(const published::Head& head) {
    const Lock lock(mutex_);
    std::vector<published::Row> rows;
    for (const auto& [device, state] : device_states_) {
        for (const auto& [id, entry] : state->entries) {
            if (entry.lease != nullptr)
                rows.push_back(row_of(*entry.lease, entry.lease->state().allocation));
        }
        for (const Waiter* waiter : state->waiters)
            rows.push_back(row_of(*device, *waiter->family, *waiter->terms, waiter->request));
    }
    publisher_.start(head);
    {
        Publisher::Update update(publisher_);
        for (const published::Row& row : rows)
            update.put(row);
        publish_requests(update);
    }
    cache_.publish_to(publisher_);
    // From here on each lease publishes its own stream count.
    for (const auto& [device, state] : device_states_) {
        for (const auto& [id, entry] : state->entries) {
            if (entry.lease != nullptr)
                entry.lease->count_streams(0);
        }
    }
    publisher_.show();
}

// Readers see all changes of an operation at once.
void LeaseManager::publish_transitions(const Transitions& transitions) {
    if (!publisher_.active())
        return;
    Publisher::Update update(publisher_);
    for (const Transition& transition : transitions) {
        if (transition.releases)
            update.remove(transition.lease->id);
        else
            update.put(row_of(*transition.lease, transition.after));
    }
    publish_requests(update);
}

void LeaseManager::publish_requests(Publisher::Update& update) const {
    update.set_requests(resizes_, waits_, static_cast<uint64_t>(waited_.count()));
}

} // namespace gcx

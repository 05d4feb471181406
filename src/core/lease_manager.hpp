// The lease manager: decides which lease has which SMs, serves waiting requests in order of
// arrival, and moves SMs between leases.
//
// ARCHITECTURE.md has the lock order, and what the driver may be asked under LeaseManager::mutex_.
#pragma once

#include "core/cancel.hpp"
#include "core/lease.hpp"
#include "core/sm_allocator.hpp"
#include "ipc/published_leases.hpp"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <span>
#include <vector>

namespace gcx {

// What gcx_lease_acquire asks for.
struct LeaseRequest {
    uint32_t sm_count = kRest;
    uint32_t min_sm_count = 0; // 0: sm_count, or one atom for kRest
    gcx_sm_family family = GCX_SM_FAMILY_COSCHEDULED;
    LeaseTerms terms;
    std::shared_ptr<const reservations::Reservation>
        reservation; // keeps terms.reservation alive; null: none
    uint32_t timeout_ms = 0;
    const Cancel* cancel = nullptr;
};

class LeaseManager {
  public:
    explicit LeaseManager(ContextCache& cache) : cache_(cache) {}

    // Acquires a lease. Waits for SMs for at most the request's timeout. Throws as gcx.h documents.
    std::shared_ptr<Lease> acquire(Device& device, const LeaseRequest& request);
    // Frees the SMs of a lease, even if other threads use it. Returns false, and does nothing, if
    // another thread has released it.
    bool release(Lease& lease);

    // The SM count that a lease is to have.
    struct Size {
        Lease* lease;
        uint32_t sm_count; // kRest: what all other leases leave; 0: none, the lease is parked
    };
    // Resizes leases of one device and family together. If deferred, a lease that loses no SMs
    // stays on its old ones until all new ones are free.
    void resize(std::span<const Size> sizes, bool deferred);
    // [13.1+] Returns the workqueue configuration of lease contexts, which asks for queues that
    // other contexts do not use as far as the device has enough. Returns nothing if the driver has
    // no workqueues.
    static std::optional<Workqueue> workqueue(const Device& device);
    // Makes the contexts that resize() would need. Resizes nothing.
    void prepare(std::span<const Size> sizes);
    // What resize() would do.
    struct Layout {
        SmallVector<AtomSet, 4> sets; // one for each size
        AtomSet remainder;            // atoms that no lease would have
    };
    Layout layout(std::span<const Size> sizes);
    // Cancels all calls that were given this cancel.
    void signal(Cancel& cancel);

    // A lease or a waiting request.
    struct Live {
        uint64_t id;
        LeaseTerms terms;
        Device* device;
        std::shared_ptr<Family> family;
        bool waiting;
        Lease::State state;
        uint32_t requested; // SMs, of a waiting request
    };
    // Returns the leases by id, then the waiting requests in order of arrival, of a device or of
    // all for null.
    std::vector<Live> live(const Device* device);
    // Returns the atoms of a family whose SMs any lease has, of whatever family.
    AtomSet leased_atoms(Device& device, const std::shared_ptr<Family>& family);
    EventPool& events(Device& device);
    // Makes the leases visible to other processes of the user. head describes this process.
    void publish(const published::Head& head);
    Publisher& publisher() { return publisher_; }
    // Releases events and contexts that were kept for work which has finished since.
    void drop_finished_work();

  private:
    // A request that waits for SMs, on the stack of the waiting thread.
    struct Waiter {
        SmAllocator::Request request;
        std::shared_ptr<Family> family;
        const LeaseTerms* terms;
        const Cancel* cancel;
        std::chrono::steady_clock::time_point since;
        std::chrono::steady_clock::time_point until; // max: no timeout
        std::optional<SmAllocator::Allocation> granted;
    };
    // A lease, by its id.
    struct Entry {
        std::string name;             // as in LeaseTerms
        std::shared_ptr<Lease> lease; // null while its context is being made
        bool changing = false;
    };
    // All leases of a device.
    struct DeviceState {
        explicit DeviceState(Device& its_device) : device(its_device), events(its_device) {}
        Device& device;
        EventPool events;
        std::map<std::shared_ptr<Family>, SmAllocator> allocators;
        std::map<uint64_t, Entry> entries; // by lease id
        // All waiting requests in order of arrival. Those of one reservation form a queue, and so
        // do those outside of reservations: see queue_id().
        std::deque<Waiter*> waiters;
        // Unfinished work that leases left where they lost SMs or were released, oldest first.
        PendingWorks pending;
        std::size_t next_sweep = 0; // index in pending of the next entry to query
    };
    // Objects to destroy once the mutex is released, because destroying them may call the driver.
    struct Dropped {
        PendingWorks works;
        std::vector<ContextCache::Ref> contexts;
        std::shared_ptr<const reservations::Reservation> reservation;
        PendingWorks retired; // the pending work before that of a released lease is retired
    };
    // The change of one lease in an operation on several.
    struct Transition {
        Lease* lease;
        SmAllocator::Allocation before;
        SmAllocator::Allocation after;
        ContextCache::Ref context; // of after; empty: the same as before, or no SMs
        bool releases = false;     // the lease ends
    };
    // Number of pending entries to query at each change. It is constant, so that the cost of a
    // change does not depend on the number of entries.
    static constexpr std::size_t kSweptPerChange = 1;
    using Transitions = SmallVector<Transition, 2>;
    using Lock = std::unique_lock<std::mutex>;

    // These require mutex_.
    DeviceState& state_of(Device& device);
    static SmAllocator& allocator_of(DeviceState& state, const std::shared_ptr<Family>& family);
    static std::optional<AtomSet> taken_by_other_families(DeviceState& state,
                                                          const std::shared_ptr<Family>& family);
    static AtomSet available_atoms(DeviceState& state, const std::shared_ptr<Family>& family);
    static AtomSet reachable_atoms(const Family& family, const LeaseTerms& terms);
    // Returns the id of the reservation in whose queue a request waits; 0: the queue outside of
    // reservations.
    static uint64_t queue_id(const LeaseTerms& terms);
    static bool has_waiters(const DeviceState& state, const LeaseTerms& terms);
    // Returns the atoms that a new request or a growing lease outside of reservations must leave to
    // requests that wait in reservations. Considers requests that came before a waiter, or all for
    // null.
    static AtomSet withheld_atoms(const DeviceState& state, const Family& family,
                                  const LeaseTerms& terms, const Waiter* before);
    // Throws if the requests could not be granted even if all SMs were free.
    static void check_feasible(const DeviceState& state, const std::shared_ptr<Family>& family,
                               std::span<const SmAllocator::Request> requests,
                               const LeaseTerms& terms, const std::string& requested);
    static bool grant(DeviceState& state, Waiter& waiter);
    void serve_waiters(DeviceState& state);
    static void grant_waiting(DeviceState& state);
    // Removes the waiters that match a predicate and serves the ones behind them.
    template <class Is>
    void remove_waiters(DeviceState& state, const Is& is);
    void remove_expired_waiters(DeviceState& state);
    void remove_lease(DeviceState& state, uint64_t id);
    static void sweep_pending(DeviceState& state, std::size_t limit, Dropped& dropped);
    static bool is_cancelled(const LeaseRequest& request);
    static std::string describe_usage(DeviceState& state, const std::shared_ptr<Family>& family,
                                      const LeaseTerms& terms);
    static void register_work(DeviceState& state, const std::shared_ptr<PendingWork>& work,
                              Dropped& dropped);
    static void absorb_implied(DeviceState& state, PendingWork& work, Dropped& dropped);
    static void retire_work_of(DeviceState& state, Lease& lease, Dropped& dropped);
    static void add_awaited(const DeviceState& state, Lease& lease, const AtomSet& gained,
                            uint64_t since);
    void wait(Lock& lock, DeviceState& state, Waiter& waiter, const LeaseRequest& request);
    // Waits until no other thread changes one of the leases. Throws if one was released.
    void wait_for_changes(Lock& lock, DeviceState& state, std::span<const Size> sizes);
    class ChangeMark;
    using Requests = SmallVector<SmAllocator::Request, 4>;
    static Requests requests_of(std::span<const Size> sizes);
    static Transitions plan_transitions(DeviceState& state, std::span<const Size> sizes);
    // Returns what resize() would do, once no other thread changes one of the leases.
    Transitions plan_next(Lock& lock, std::span<const Size> sizes);
    static void check_same_pool(std::span<const Size> sizes);
    static void make_room(DeviceState& state, const Transitions& transitions, Dropped& dropped);
    static void commit(DeviceState& state, Transitions& transitions, bool deferred,
                       Dropped& dropped);
    static void retarget_streams(Lease& lease, Transition& transition, bool deferred,
                                 Dropped& dropped);
    void publish_transitions(const Transitions& transitions);
    void publish_requests(Publisher::Update& update) const;
    static SmallVector<SubmitLock::Exclusive, 2> lock_submitters(const Transitions& transitions);

    // These acquire mutex_.
    std::shared_ptr<Lease> make_lease(DeviceState& state, const LeaseRequest& request,
                                      const Waiter& waiter);
    // Releases mutex_ before it releases the former contexts.
    void apply(Lock& lock, DeviceState& state, Transitions transitions, bool deferred);

    ContextCache& cache_;
    Publisher publisher_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::map<Device*, std::unique_ptr<DeviceState>> device_states_;
    uint64_t next_id_ = 1;
    // Since the driver was opened, for those who read what this process publishes.
    uint64_t resizes_ = 0;
    uint64_t waits_ = 0;
    std::chrono::nanoseconds waited_{0};
};

// The object of a gcx_lease handle.
struct LeaseHandle {
    LeaseManager& leases;
    std::shared_ptr<Lease> lease;

    void check_alive() const { lease->check_alive(); }
    // The table closes a handle's object once no thread uses it any more, which would be too late
    // for the SMs. gcx_lease_release therefore calls release() first, and this call finds nothing
    // to do.
    void close() { leases.release(*lease); }
};

} // namespace gcx

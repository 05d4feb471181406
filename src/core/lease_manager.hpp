// All leases of the process: who has which SMs, who waits, and how SMs change hands.
#pragma once

#include "core/cancel_list.hpp"
#include "core/lease.hpp"
#include "core/published.hpp"
#include "core/sm_allocator.hpp"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <span>
#include <vector>

namespace gcx {

// But for its streams, which the publisher counts.
published::Row row_of(const Lease& lease, const SmAllocator::Allocation& allocation);
// Of one that waits.
published::Row row_of(const Device& device, const Family& family, const LeaseTerms& terms,
                      const SmAllocator::Request& request);

// Cancels the waits of other threads.
class Cancel {
  public:
    bool signalled() const { return signalled_.load(std::memory_order_acquire); }
    void check_alive() const {}
    void close() {}
    // The waits that are not in the queue of Leases.
    CancelList waits;

  private:
    friend class LeaseManager;
    std::atomic<bool> signalled_{false};
};

struct LeaseRequest {
    uint32_t sm_count = kRest;
    uint32_t min_sm_count = 0; // SMs that will do; 0: sm_count
    gcx_sm_family family = GCX_SM_FAMILY_COSCHEDULED;
    LeaseTerms terms;
    std::shared_ptr<const reservations::Reservation>
        reservation; // that has terms.reservation; null: none
    uint32_t timeout_ms = 0;
    const Cancel* cancel = nullptr;
};

class LeaseManager {
  public:
    explicit LeaseManager(ContextCache& cache) : cache_(cache) {}

    std::shared_ptr<Lease> acquire(Device& device, const LeaseRequest& request);
    // Frees the SMs of a lease, whatever other threads do with it. False, and nothing was done, if
    // another thread has released it or handed it over.
    bool release(Lease& lease);

    struct Size {
        Lease* lease;
        uint32_t sm_count;
    };
    void resize(std::span<const Size> sizes, bool deferred);
    // [13.1+] Where the driver has workqueues, the contexts of leases have ones of their own, as
    // far as it can.
    static std::optional<Workqueue> workqueue(const Device& device);
    // Makes what resize would need, and changes nothing.
    void prepare(std::span<const Size> sizes);
    // Releases the one, whose SMs the other gets.
    void hand_over(Lease& from, Lease& to, bool deferred);
    void signal(Cancel& cancel);

    struct Live {
        uint64_t id;
        LeaseTerms terms;
        Device* device;
        std::shared_ptr<Family> family;
        bool waiting;
        Lease::State state;
        uint32_t requested; // of one that waits: SMs
    };
    std::vector<Live> live(const Device* device);
    // The atoms of a family that a lease of any family has.
    AtomSet leased_atoms(Device& device, const std::shared_ptr<Family>& family);
    EventPool& events(Device& device);
    // From now on other processes of the user can see the leases. head: what the process is.
    void publish(const published::Head& head);
    Publisher& publisher() { return publisher_; }
    // Gives up what was kept for work that has finished since.
    void drop_finished_work();

  private:
    struct Waiter {
        SmAllocator::Request request;
        std::shared_ptr<Family> family;
        const LeaseTerms* terms;
        const Cancel* cancel;
        std::chrono::steady_clock::time_point until; // max: forever
        std::optional<SmAllocator::Allocation> granted;
    };
    struct Entry {
        std::string name;             // as in LeaseTerms
        std::shared_ptr<Lease> lease; // none yet: its context is being made
        bool changing = false;
    };
    struct DeviceState {
        explicit DeviceState(Device& its_device) : device(its_device), events(its_device) {}
        Device& device;
        EventPool events;
        std::map<std::shared_ptr<Family>, SmAllocator> allocators;
        std::map<uint64_t, Entry> entries; // by id
        // All queues, in the order of arrival: each reservation has a queue of its own, and so have
        // the leases outside of any. See queue_of.
        std::deque<Waiter*> waiters;
        // Unfinished work that leases left where they lost SMs or were released, in the order in
        // which it was recorded.
        PendingWorks pending;
        std::size_t next_sweep = 0; // in pending, which is to be asked about next
    };
    // What is released once the mutex is free, since the driver may be called then.
    struct Dropped {
        PendingWorks works;
        std::vector<ContextCache::Ref> contexts;
        std::shared_ptr<const reservations::Reservation> reservation;
    };
    // One lease in a change.
    struct Transition {
        Lease* lease;
        SmAllocator::Allocation before;
        SmAllocator::Allocation after;
        ContextCache::Ref context; // of after; none: it has the same as before, or no SMs
    };
    // So many entries of pending work are asked about at each change, so that its cost does not
    // depend on how many there are.
    static constexpr std::size_t kSweptPerChange = 1;
    using Transitions = SmallVector<Transition, 2>;
    using Lock = std::unique_lock<std::mutex>;

    // These want the mutex.
    DeviceState& state_of(Device& device);
    static SmAllocator& allocator_of(DeviceState& state, const std::shared_ptr<Family>& family);
    static std::optional<AtomSet> taken_by_other_families(DeviceState& state,
                                                          const std::shared_ptr<Family>& family);
    static AtomSet available_atoms(DeviceState& state, const std::shared_ptr<Family>& family);
    static AtomSet reachable_atoms(const Family& family, const LeaseTerms& terms);
    // The id of the reservation in whose queue a request waits; 0: it is outside of any.
    static uint64_t queue_id(const LeaseTerms& terms);
    static bool has_waiters(const DeviceState& state, const LeaseTerms& terms);
    // The atoms that are kept from a new request, or a lease that grows, for requests which wait in
    // reservations. Before: those requests came before that one; null: all.
    static AtomSet withheld_atoms(const DeviceState& state, const Family& family,
                                  const LeaseTerms& terms, const Waiter* before);
    // Throws if the wishes could not be granted if all SMs were free.
    static void check_feasible(const DeviceState& state, const std::shared_ptr<Family>& family,
                               std::span<const SmAllocator::Request> requests,
                               const LeaseTerms& terms, const std::string& requested);
    static bool grant(DeviceState& state, Waiter& waiter);
    void serve_waiters(DeviceState& state);
    // Takes waiters out of their queue that are not to be served any more, by a predicate, and
    // serves those behind them.
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
    // Waits until nobody else changes one of the leases. Throws if one was released.
    void wait_for_changes(Lock& lock, DeviceState& state, std::span<const Size> sizes);
    class ChangeMark;
    using Requests = SmallVector<SmAllocator::Request, 4>;
    static Requests requests_of(std::span<const Size> sizes);
    static Transitions plan_transitions(DeviceState& state, std::span<const Size> sizes);
    static void check_same_pool(std::span<const Size> sizes);
    static void commit(DeviceState& state, Transitions& transitions, bool deferred,
                       Dropped& dropped);
    static void retarget_streams(Lease& lease, Transition& transition, bool deferred,
                                 Dropped& dropped);
    void publish_transitions(const Transitions& transitions);
    static SmallVector<SubmitLock::Exclusive, 2> lock_submitters(const Transitions& transitions);

    // These take it.
    std::shared_ptr<Lease> make_lease(DeviceState& state, const LeaseRequest& request,
                                      const Waiter& waiter);
    // Lets go of it before the former contexts are given up.
    void apply(Lock& lock, DeviceState& state, Transitions transitions, bool deferred,
               const Lease* released);

    ContextCache& cache_;
    Publisher publisher_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::map<Device*, std::unique_ptr<DeviceState>> device_states_;
    uint64_t next_id_ = 1;
};

// A caller's reservation on a lease.
struct LeaseHandle {
    LeaseManager& leases;
    std::shared_ptr<Lease> lease;

    void check_alive() const { lease->check_alive(); }
    // A handle's object is closed once no thread uses it any more, which would be too late for the
    // SMs: gcx_lease_release has released them before.
    void close() { leases.release(*lease); }
};

} // namespace gcx

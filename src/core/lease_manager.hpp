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
published::Row row_of(const Lease& lease, const Reservationing& holding);
// Of one that waits.
published::Row row_of(const Device& device, const Family& family, const LeaseTerms& terms,
                      const Wish& wish);

// Cancels the waits of other threads.
class Cancel {
  public:
    bool signalled() const { return signalled_.load(std::memory_order_acquire); }
    void check_alive() const {}
    void close() {}
    // The waits that are not in the queue of Leases.
    CancelList waits;

  private:
    friend class Leases;
    std::atomic<bool> signalled_{false};
};

struct LeaseRequest {
    uint32_t sm_count = kRest;
    uint32_t least = 0; // SMs that will do; 0: sm_count
    gcx_sm_family family = GCX_SM_FAMILY_COSCHEDULED;
    LeaseTerms terms;
    std::shared_ptr<const reservations::Reservation>
        reservation; // that has terms.reservation; null: none
    uint32_t timeout_ms = 0;
    const Cancel* cancel = nullptr;
};

class Leases {
  public:
    explicit Leases(ContextCache& cache) : cache_(cache) {}

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
        bool waits;
        Lease::State state;
        uint32_t asked; // of one that waits: SMs
    };
    std::vector<Live> live(const Device* device);
    // The atoms of a family that a lease of any family has.
    AtomSet held(Device& device, const std::shared_ptr<Family>& family);
    EventPool& events(Device& device);
    // From now on other processes of the user can see the leases. head: what the process is.
    void publish(const published::Head& head);
    Publisher& publisher() { return publisher_; }
    // Gives up what was kept for work that has finished since.
    void tidy();

  private:
    struct Waiter {
        Wish wish;
        std::shared_ptr<Family> family;
        const LeaseTerms* terms;
        const Cancel* cancel;
        std::chrono::steady_clock::time_point until; // max: forever
        std::optional<Reservationing> granted;
    };
    struct Row {
        std::string name;             // as in LeaseTerms
        std::shared_ptr<Lease> lease; // none yet: its context is being made
        bool changing = false;
    };
    struct Shelf {
        explicit Shelf(Device& its_device) : device(its_device), events(its_device) {}
        Device& device;
        EventPool events;
        std::map<std::shared_ptr<Family>, Ledger> ledgers;
        std::map<uint64_t, Row> rows; // by id
        // All queues, in the order of arrival: each reservation has a queue of its own, and so have
        // the leases outside of any. See queue_of.
        std::deque<Waiter*> waiters;
        // Unfinished work that leases left where they lost SMs or were released, in the order in
        // which it was recorded.
        PendingWorks pending;
        std::size_t sweep_at = 0; // in pending, which is to be asked about next
    };
    // What is released once the mutex is free, since the driver may be called then.
    struct Dropped {
        PendingWorks works;
        std::vector<ContextCache::Ref> contexts;
        std::shared_ptr<const reservations::Reservation> reservation;
    };
    // One lease in a change.
    struct Member {
        Lease* lease;
        Reservationing before;
        Reservationing after;
        ContextCache::Ref context; // of after; none: it has the same as before, or no SMs
    };
    // So many entries of pending work are asked about at each change, so that its cost does not
    // depend on how many there are.
    static constexpr std::size_t kSwept = 1;
    using Members = Few<Member, 2>;
    using Lock = std::unique_lock<std::mutex>;

    // These want the mutex.
    Shelf& shelf(Device& device);
    static Ledger& ledger(Shelf& shelf, const std::shared_ptr<Family>& family);
    static std::optional<AtomSet> taken_elsewhere(Shelf& shelf,
                                                  const std::shared_ptr<Family>& family);
    static AtomSet usable(Shelf& shelf, const std::shared_ptr<Family>& family);
    static AtomSet within(const Family& family, const LeaseTerms& terms);
    // The id of the reservation in whose queue a request waits; 0: it is outside of any.
    static uint64_t queue_of(const LeaseTerms& terms);
    static bool has_waiters(const Shelf& shelf, const LeaseTerms& terms);
    // The atoms that are kept from a new request, or a lease that grows, for requests which wait in
    // reservations. Before: those requests came before that one; null: all.
    static AtomSet awaited(const Shelf& shelf, const Family& family, const LeaseTerms& terms,
                           const Waiter* before);
    // Throws if the wishes could not be granted if all SMs were free.
    static void check_possible(const Shelf& shelf, const std::shared_ptr<Family>& family,
                               std::span<const Wish> wishes, const LeaseTerms& terms,
                               const std::string& requested);
    static bool grant(Shelf& shelf, Waiter& waiter);
    void serve(Shelf& shelf);
    // Takes waiters out of their queue that are not to be served any more, by a predicate, and
    // serves those behind them.
    template <class Is>
    void take_out_waiters(Shelf& shelf, const Is& is);
    void take_out_expired(Shelf& shelf);
    void take_out(Shelf& shelf, uint64_t id);
    static void sweep(Shelf& shelf, std::size_t most, Dropped& dropped);
    static bool is_cancelled(const LeaseRequest& request);
    static std::string holders(Shelf& shelf, const std::shared_ptr<Family>& family,
                               const LeaseTerms& terms);
    static void add_pending(Shelf& shelf, const std::shared_ptr<PendingWork>& work,
                            Dropped& dropped);
    static void absorb_implied(Shelf& shelf, PendingWork& work, Dropped& dropped);
    static void end_pending_of(Shelf& shelf, Lease& lease, Dropped& dropped);
    static void await(const Shelf& shelf, Lease& lease, const AtomSet& gained, uint64_t since);
    void wait(Lock& lock, Shelf& shelf, Waiter& waiter, const LeaseRequest& request);
    // Waits until nobody else changes one of the leases. Throws if one was released.
    void settle(Lock& lock, Shelf& shelf, std::span<const Size> sizes);
    static AtomSet held_back(const Ledger& ledger, const Members& members);
    using Wishes = Few<Wish, 4>;
    static Wishes wishes_of(std::span<const Size> sizes);
    static Members plan(Shelf& shelf, std::span<const Size> sizes);
    static void check_together(std::span<const Size> sizes);
    static void commit(Shelf& shelf, Members& members, bool deferred, Dropped& dropped);
    static void settle_streams(Lease& lease, Member& member, bool deferred, Dropped& dropped);
    void publish_changes(const Members& members);
    static Few<Gate::Closed, 2> close_gates(const Members& members);

    // These take it.
    std::shared_ptr<Lease> make(Shelf& shelf, const LeaseRequest& request, const Waiter& waiter);
    // Lets go of it before the former contexts are given up.
    void change(Lock& lock, Shelf& shelf, Members members, bool deferred, const Lease* released);

    ContextCache& cache_;
    Publisher publisher_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::map<Device*, std::unique_ptr<Shelf>> shelves_;
    uint64_t next_id_ = 1;
};

// A caller's reservation on a lease.
struct LeaseHold {
    Leases& leases;
    std::shared_ptr<Lease> lease;

    void check_alive() const { lease->check_alive(); }
    // A handle's object is closed once no thread uses it any more, which would be too late for the
    // SMs: gcx_lease_release has released them before.
    void close() { leases.release(*lease); }
};

} // namespace gcx

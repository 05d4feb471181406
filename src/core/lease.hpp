// A lease of SMs, and the streams that follow it. Who has which SMs is for leases.hpp.
#pragma once

#include "core/context_cache.hpp"
#include "core/event.hpp"
#include "core/publisher.hpp"
#include "core/reservation.hpp"
#include "core/scoped.hpp"
#include "core/sm_allocator.hpp"
#include "core/submit_lock.hpp"

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace gcx {

// What a stream of a lease had not finished at some moment, as an event, and the context in which
// it runs. A gcx stream's later work begins after its earlier work, wherever that was submitted, so
// a newer entry of the same stream implies the older ones.
class PendingWork {
  public:
    // Where the work comes from.
    struct Source {
        uint64_t lease = 0;
        uint64_t stream = 0; // of a LeaseStream, never used twice
        uint64_t waited = 0; // the placement of the lease whose former holders' work it waited for
    };
    PendingWork(const Source& its_source, ContextCache::Ref context, EventPool::Event event);

    const Source source;
    const uint64_t number; // ascending in the order of creation
    const std::shared_ptr<Family> family;
    const AtomSet atoms; // those of its context

    // Whether the work has finished. Asks the driver, unless the answer is known, so the caller is
    // in relaxed mode.
    bool finished(const Driver& driver, const RelaxedCapture& relaxed);
    // The same without asking the driver.
    bool known_finished() const { return finished_.load(std::memory_order_acquire); }
    // Makes later work of the stream wait for it.
    void make_wait(const Driver& driver, CUstream stream) const;
    // Waits for it in the calling thread.
    void synchronize(const Driver& driver) const;

  private:
    friend class LeaseManager;
    friend class Lease;
    // Keeps a context until an event: a program may still name the streams of a context whose work
    // is unfinished, and destroying the context would take them away.
    struct KeptContext {
        ContextCache::Ref context;
        std::shared_ptr<EventPool::Event> until;
    };
    // Takes over the contexts of an older entry that this one implies. A context that both keep is
    // kept until this one has passed, so that there is one event for each context at most.
    void absorb(PendingWork& older);
    // Moves the contexts whose work has finished to released; asks about one event at most.
    void release_finished(const Driver& driver, const RelaxedCapture& relaxed,
                          std::vector<ContextCache::Ref>& released);

    // The same of all of them.
    void release_all(std::vector<ContextCache::Ref>& released);

    const std::shared_ptr<EventPool::Event> event_;
    std::atomic<bool> finished_{false};
    // The rest is guarded by the mutex of Leases once the entry is registered there, and by that of
    // its lease before.
    bool registered_ = false;
    AtomSet frontier_;                  // the atoms on which no newer entry implies it
    std::vector<KeptContext> contexts_; // its own context comes first
    // Entries of other streams that this one implies, because the stream was made to wait for them.
    std::vector<std::shared_ptr<PendingWork>> implies_;
};

using PendingWorks = std::vector<std::shared_ptr<PendingWork>>;

// What a lease is, and never changes.
struct LeaseTerms {
    std::string name;
    bool shared = false;
    uint32_t exclusive_sm_count = 0; // of a shared one: SMs that are to be its alone
    bool require_workqueues = false; // [13.1+] refused where the driver has none
    std::shared_ptr<const reservations::Record>
        reservation;           // whose SMs it has; null: any of the device
    AtomSet reservation_atoms; // those SMs, in the lease's family
};

// "decode", with its quotes, or "lease 3" for one without a name: for messages.
std::string lease_label(uint64_t id, const std::string& name);

class LeaseStream;

class Lease {
  public:
    const uint64_t id; // never used twice in a process
    const LeaseTerms terms;
    Device& device;
    const std::shared_ptr<Family> family;

    Lease(uint64_t its_id, LeaseTerms its_terms, Device& its_device,
          std::shared_ptr<Family> its_family, Publisher& publisher)
        : id(its_id), terms(std::move(its_terms)), device(its_device),
          family(std::move(its_family)), publisher_(publisher) {}

    std::string label() const { return lease_label(id, terms.name); }

    struct State {
        SmAllocator::Allocation allocation;
        uint64_t changes = 0;
        uint32_t streams = 0;
        bool released = false;
    };
    State state() const;
    // Tells the publisher how many streams there are, after so many more.
    void count_streams(int more);
    // Throws GCX_ERROR_CONTEXT_IS_DESTROYED if it was released, or the device was reset.
    void check_alive() const;

    uint64_t changes() const { return changes_.load(std::memory_order_acquire); }
    // Whether the work of its own streams has finished; those that capture a graph have none.
    bool finished();
    // Waits for that work.
    void synchronize(EventPool& events);
    // Everything that submits to its streams on behalf of gcx passes here, so that it comes before
    // or after a change and never in between, where nothing would wait for it.
    SubmitLock& submit_lock() { return submit_lock_; }

  private:
    friend class LeaseManager;
    friend class LeaseStream;

    // Work of a former holder that the streams wait for.
    struct Awaited {
        std::shared_ptr<PendingWork> work;
        AtomSet atoms; // that both the work and the lease have
        // Atoms that the lease had together with the work and lost since. Of use only when the
        // lease is released: what waited for the work then implies it there.
        AtomSet lost;
        uint64_t since; // placement from which on streams wait for it
    };
    // Where a stream is to go that has waited for what was awaited up to a placement.
    struct Target {
        uint64_t placement = 0;
        ContextCache::Ref context;
        PendingWorks wait_for; // what its work waits for
    };
    Target target(ContextCache& cache, uint64_t waited);
    // The context of a new stream.
    ContextCache::Ref start_context(ContextCache& cache);
    // Ends a deferred change once the gained SMs are free.
    void end_deferral();
    // Notes what the streams have in flight, as part of left_.
    void record_work();
    // Notes work that a stream leaves behind.
    void add_work(std::shared_ptr<PendingWork> work);
    // The same of a stream that is closed.
    void add_closed_work(const std::shared_ptr<PendingWork>& work,
                         const std::shared_ptr<PendingWork>& chained);
    // What a stream of this context waits for before it is closed, so that its work implies that;
    // null: nothing, unless too many closed streams have unfinished work.
    std::shared_ptr<PendingWork> find_work_to_chain(const GreenContext& context,
                                                    const RelaxedCapture& relaxed);
    // Drops what of the work that the streams left has finished, and the contexts that were kept
    // for it.
    void drop_finished(std::vector<ContextCache::Ref>& contexts);
    // Unfinished work of closed streams, and some that may have finished.
    PendingWorks closed_work();

    void check_unreleased() const;
    ContextKey key(const AtomSet& set) const;
    // These want the mutex.
    void check_alive_locked() const;
    void check_unreleased_locked() const;

    Publisher& publisher_;
    SubmitLock submit_lock_;
    // Held while streams move and while their work is recorded. Comes before mutex_; never taken
    // under the mutex of Leases, since the driver is called under it.
    std::mutex streams_mutex_;
    std::vector<LeaseStream*> streams_;

    mutable std::mutex mutex_;
    std::atomic<uint64_t> changes_{0};
    // Counts the moments from which on streams belong elsewhere: changes, and ends of deferrals.
    std::atomic<uint64_t> placement_{0};
    // Whether the streams stay in stays_ until the SMs of a deferred change are free.
    std::atomic<bool> is_deferred_{false};
    SmAllocator::Allocation allocation_;
    ContextCache::Ref context_;
    ContextCache::Ref former_context_;
    std::optional<Workqueue> workqueue_;
    // Keeps the SMs from other processes until the lease is released, however long the object
    // lives.
    std::shared_ptr<const reservations::Reservation> reservation_;
    bool released_ = false;
    uint32_t stream_count_ = 0;
    std::vector<Awaited> awaited_;
    std::size_t next_query_ = 0; // in awaited_, which entry is to be asked about next
    PendingWorks unregistered_;  // what its streams left unfinished, not yet registered
    PendingWorks closed_;        // unfinished work of closed streams, registered or not
};

// A stream that follows its lease: one native stream after the other.
class LeaseStream {
  public:
    LeaseStream(ContextCache& cache, EventPool& events, std::shared_ptr<Lease> lease, int priority);
    ~LeaseStream();
    LeaseStream(const LeaseStream&) = delete;
    LeaseStream& operator=(const LeaseStream&) = delete;

    struct Target {
        CUstream native = nullptr;
        ContextCache::Ref context;
    };
    // What somebody wants of it. One that is only asked goes with its lease, but does not wait for
    // former holders, since nothing of its own would be behind that.
    enum class Purpose { submit, ask };
    // Where it is, after it has gone where its lease is now, unless it captures a graph or waits
    // for the SMs of a deferred change.
    Target target(Purpose purpose);
    // Gives the native stream up. Throws, and changes nothing, if the driver refuses.
    void close();
    Lease& lease() const { return *lease_; }

  private:
    friend class Lease;
    // These want the lease's following_.
    void follow(Purpose purpose);
    void move_to(ContextCache::Ref context, const PendingWorks& wait_for,
                 const RelaxedCapture& relaxed);
    // Whether its native stream, which may capture, has work in flight.
    bool is_busy() const;
    // What its native stream, which doesn't capture, has in flight; null if nothing.
    std::shared_ptr<PendingWork> record_unfinished(const RelaxedCapture& relaxed);
    void record_work(const RelaxedCapture& relaxed);

    ContextCache& cache_;
    EventPool& events_;
    const std::shared_ptr<Lease> lease_;
    const int priority_;
    // Names it in pending work. Also gets it its own native streams back: as it comes and goes
    // between the same contexts, work that waits is in as many native streams as there are
    // contexts, each of which occupies one of the device's queues, and not in one for each move.
    const uint64_t id_;
    // Guarded by the lease's following_.
    ContextCache::Ref context_;
    CUstream native_ = nullptr;
    uint64_t followed_ = 0;    // the lease's placement
    uint64_t waited_ = 0;      // the placement whose former holders' work it has waited for
    uint64_t submissions_ = 0; // how often it was given out to submit
    uint64_t recorded_ = 0;    // of these, those whose work is recorded
};

} // namespace gcx

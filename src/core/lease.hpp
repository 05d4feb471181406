// A lease of SMs, the streams that follow it, and the unfinished work that these leave behind when
// the lease loses SMs. lease_manager.hpp decides which lease has which SMs, and ARCHITECTURE.md states
// the lock order.
#pragma once

#include "core/context_cache.hpp"
#include "core/event.hpp"
#include "core/sm_allocator.hpp"
#include "ipc/published_leases.hpp"
#include "ipc/reservation.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace gcx {

// Work of one stream of a lease that was unfinished at some moment, as an event. Later work of a
// gcx stream starts after its earlier work, on whatever SMs, so a newer entry of the same stream
// implies the older ones.
class PendingWork {
  public:
    // Where the work comes from.
    struct Source {
        uint64_t lease = 0;
        uint64_t stream = 0; // LeaseStream::id_
        // The stream had waited for earlier owners' work up to this placement of the lease.
        uint64_t waited = 0;
    };
    PendingWork(const Source& its_source, ContextCache::Ref context, EventPool::Event event);

    const Source source;
    const uint64_t number; // in order of creation
    const std::shared_ptr<Family> family;
    const AtomSet atoms; // atoms of its context

    // Returns whether the work has finished. Queries the driver unless the answer is known, so the
    // caller must be in relaxed capture mode.
    bool finished(const Driver& driver, const RelaxedCapture& relaxed);
    // Returns false if the driver has not been queried since.
    bool known_finished() const { return finished_.load(std::memory_order_acquire); }
    // Makes later work of a stream wait for this work.
    void make_wait(const Driver& driver, CUstream stream) const;
    // Blocks until the work has finished.
    void synchronize(const Driver& driver) const;

  private:
    friend class LeaseManager;
    friend class Lease;
    // A context that must live until an event. Programs may still name streams of a context with
    // unfinished work, and destroying the context would destroy them.
    struct RetainedContext {
        ContextCache::Ref context;
        std::shared_ptr<EventPool::Event> until;
    };
    // Takes over the contexts of an older entry that this one implies. A context that both keep now
    // waits for this entry's event, so that there is at most one event per context.
    void absorb(PendingWork& older);
    // Moves contexts whose work has finished to released. Queries at most one event.
    void release_finished(const Driver& driver, const RelaxedCapture& relaxed,
                          std::vector<ContextCache::Ref>& released);

    // Moves all contexts to released.
    void release_all(std::vector<ContextCache::Ref>& released);

    const std::shared_ptr<EventPool::Event> event_;
    std::atomic<bool> finished_{false};
    // Guarded by LeaseManager::mutex_ once the work is registered there, and by Lease::mutex_
    // before.
    bool registered_ = false;
    AtomSet frontier_;                      // atoms on which no newer entry implies this one
    std::vector<RetainedContext> contexts_; // its own context is the first
    // Entries of other streams that this one implies, because its stream waits for them.
    std::vector<std::shared_ptr<PendingWork>> implies_;
};

using PendingWorks = std::vector<std::shared_ptr<PendingWork>>;

// The immutable properties of a lease.
struct LeaseTerms {
    std::string name;
    bool shared = false;
    uint32_t exclusive_sm_count = 0; // of a shared lease: SMs that it does not share
    bool require_workqueues = false; // [13.1+] fails if the driver has none
    std::shared_ptr<const reservations::Record> reservation; // null: not limited to a reservation
    AtomSet reservation_atoms; // the reservation's SMs, in the lease's family
};

// Returns the name in quotes, or "lease 3" if it is empty. For messages.
std::string lease_label(uint64_t id, const std::string& name);

// A lock that submitters of work share and a resize takes exclusively.
class SubmitLock {
  public:
    // Locks several for submission, in order of address. Entries may be null or equal.
    class Shared {
      public:
        explicit Shared(std::span<SubmitLock*> locks) : locks_(locks) {
            std::sort(locks_.begin(), locks_.end());
            for (std::size_t i = 0; i < locks_.size(); i++) {
                if (i != 0 && locks_[i] == locks_[i - 1])
                    locks_[i - 1] = nullptr;
            }
            for (SubmitLock* submit_lock : locks_) {
                if (submit_lock != nullptr)
                    submit_lock->enter();
            }
        }
        ~Shared() {
            for (SubmitLock* submit_lock : locks_) {
                if (submit_lock != nullptr)
                    submit_lock->leave();
            }
        }
        Shared(const Shared&) = delete;
        Shared& operator=(const Shared&) = delete;

      private:
        std::span<SubmitLock*> locks_;
    };

    // Waits for all submitters, then blocks new ones. One thread at a time.
    class Exclusive {
      public:
        explicit Exclusive(SubmitLock& submit_lock) : submit_lock_(&submit_lock) {
            submit_lock.close();
        }
        Exclusive(Exclusive&& other) noexcept
            : submit_lock_(std::exchange(other.submit_lock_, nullptr)) {}
        Exclusive& operator=(Exclusive&& other) noexcept {
            std::swap(submit_lock_, other.submit_lock_);
            return *this;
        }
        ~Exclusive() {
            if (submit_lock_ != nullptr)
                submit_lock_->open();
        }

      private:
        SubmitLock* submit_lock_;
    };

  private:
    static constexpr uint32_t kClosed = uint32_t{1} << 31;

    void enter() {
        uint32_t state = state_.load(std::memory_order_relaxed);
        for (;;) {
            if ((state & kClosed) != 0) {
                state_.wait(state);
                state = state_.load(std::memory_order_relaxed);
            } else if (state_.compare_exchange_weak(state, state + 1, std::memory_order_acquire)) {
                return;
            }
        }
    }
    void leave() {
        if (state_.fetch_sub(1, std::memory_order_release) == kClosed + 1)
            state_.notify_all();
    }
    void close() {
        uint32_t state = state_.fetch_or(kClosed, std::memory_order_acquire) | kClosed;
        while (state != kClosed) {
            state_.wait(state);
            state = state_.load(std::memory_order_acquire);
        }
    }
    void open() {
        state_.fetch_and(~kClosed, std::memory_order_release);
        state_.notify_all();
    }

    std::atomic<uint32_t> state_{0}; // number of submitters, and kClosed
};

class LeaseStream;

// One lease. Thread-safe. The manager changes it; its streams move themselves at their next use.
class Lease {
  public:
    const uint64_t id; // unique in a process
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
    // Adds to the number of streams and publishes it.
    void count_streams(int more);
    // Throws GCX_ERROR_CONTEXT_IS_DESTROYED if the lease was released or the device was reset.
    void check_alive() const;

    uint64_t changes() const { return changes_.load(std::memory_order_acquire); }
    // Returns whether all work of the lease's streams has finished. A stream that captures a graph
    // has none.
    bool finished();
    // Blocks until that work has finished.
    void synchronize(EventPool& events);
    // Submissions to the lease's streams hold this shared, and a resize holds it exclusively. So
    // each submission comes before or after a resize, never in between, where no later work would
    // wait for it.
    SubmitLock& submit_lock() { return submit_lock_; }

  private:
    friend class LeaseManager;
    friend class LeaseStream;

    // Work of an earlier owner of the SMs, which the streams wait for.
    struct Awaited {
        std::shared_ptr<PendingWork> work;
        AtomSet atoms; // atoms that the work and the lease have in common
        // Atoms that the lease had in common with the work and has lost. They matter when the lease
        // is released: the lease's work then implies the awaited work there.
        AtomSet lost;
        uint64_t since; // streams wait for it from this placement on
    };
    // The context that a stream is to move to.
    struct Target {
        uint64_t placement = 0;
        ContextCache::Ref context;
        PendingWorks wait_for; // earlier owners' work that the stream has not waited for
    };
    Target target(ContextCache& cache, uint64_t waited);
    // Returns the context of a new stream.
    ContextCache::Ref start_context(ContextCache& cache);
    // Ends a deferred resize if the gained SMs are free.
    void end_deferral();
    // Records unfinished work of the streams in unregistered_.
    void record_work();
    // Adds work that a stream leaves behind.
    void add_work(std::shared_ptr<PendingWork> work);
    // Adds work of a stream that is being closed. chained: the work that it waits for, or null.
    void add_closed_work(const std::shared_ptr<PendingWork>& work,
                         const std::shared_ptr<PendingWork>& chained);
    // Returns work that a stream in this context must wait for before it is closed, so that its own
    // work implies the other. Returns null unless many closed streams have unfinished work.
    std::shared_ptr<PendingWork> find_work_to_chain(const GreenContext& context,
                                                    const RelaxedCapture& relaxed);
    // Drops finished work of the streams and moves the contexts retained for it to contexts.
    void drop_finished(std::vector<ContextCache::Ref>& contexts);
    // Returns the work of closed streams that is not known to have finished.
    PendingWorks closed_work();

    void check_unreleased() const;
    ContextKey key(const AtomSet& set) const;
    // These require mutex_.
    void check_alive_locked() const;
    void check_unreleased_locked() const;
    // Throws GCX_ERROR_LEASE_PARKED if the lease has no SMs.
    void check_unparked_locked() const;

    Publisher& publisher_;
    SubmitLock submit_lock_;
    // Held while streams move and while their work is recorded.
    std::mutex streams_mutex_;
    std::vector<LeaseStream*> streams_;

    mutable std::mutex mutex_;
    std::atomic<uint64_t> changes_{0};
    // Counts the moments from which on streams belong elsewhere: resizes and ends of deferred
    // resizes.
    std::atomic<uint64_t> placement_{0};
    // Whether the streams stay in former_context_ until the SMs of a deferred resize are free.
    std::atomic<bool> is_deferred_{false};
    SmAllocator::Allocation allocation_;
    ContextCache::Ref context_; // of a parked lease: the last one
    ContextCache::Ref former_context_;
    std::optional<Workqueue> workqueue_;
    // Keeps the SMs from other processes until the lease is released, even if the object lives
    // longer.
    std::shared_ptr<const reservations::Reservation> reservation_;
    bool released_ = false;
    uint32_t stream_count_ = 0;
    std::vector<Awaited> awaited_;
    std::size_t next_query_ = 0; // index in awaited_ of the next entry to query
    PendingWorks unregistered_;  // work of the streams that the manager has not registered
    PendingWorks closed_;        // unfinished work of closed streams, registered or not
};

// A stream that follows its lease. It is a name for one native stream after another.
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
    // submit: the caller submits work. ask: it does not, so the stream moves with its lease but
    // need not wait for earlier owners' work. wait: it waits for submitted work, so the stream
    // stays where that is.
    enum class Purpose { submit, ask, wait };
    // Returns where work of the stream goes. Moves the stream to the lease's current SMs first,
    // unless it captures a graph or the resize is deferred. Throws GCX_ERROR_LEASE_PARKED if the
    // lease has no SMs and the stream does not capture.
    Target target(Purpose purpose);
    // Releases the native stream. Throws, and changes nothing, if the driver refuses.
    void close();
    Lease& lease() const { return *lease_; }

  private:
    friend class Lease;
    // These require the lease's streams_mutex_.
    void follow(Purpose purpose);
    void name_native() const; // for profilers
    void move_to(ContextCache::Ref context, const PendingWorks& wait_for,
                 const RelaxedCapture& relaxed);
    // Returns whether the native stream has work in flight. It may capture a graph.
    bool is_busy() const;
    // Records the work in flight of the native stream, which must not capture a graph. Returns null
    // if there is none.
    std::shared_ptr<PendingWork> record_unfinished(const RelaxedCapture& relaxed);
    void record_work(const RelaxedCapture& relaxed);

    ContextCache& cache_;
    EventPool& events_;
    const std::shared_ptr<Lease> lease_;
    const int priority_;
    // Identifies the stream in pending work and in StreamCache. A stream that alternates between
    // contexts thus gets its former native streams back. Each native stream with waiting work
    // occupies one of the device's queues, and there are then only as many as contexts, not one per
    // move.
    const uint64_t id_;
    // Guarded by the lease's streams_mutex_.
    ContextCache::Ref context_;
    CUstream native_ = nullptr;
    uint64_t followed_ = 0;    // the lease's placement that the stream has followed
    uint64_t waited_ = 0;      // it has waited for earlier owners' work up to this placement
    uint64_t submissions_ = 0; // how often target() returned it to submit
    uint64_t recorded_ = 0;    // value of submissions_ when its work was last recorded
};

} // namespace gcx

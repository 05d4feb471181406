// What later work waits for: the work that streams had in flight at a moment, as events.
#pragma once

#include "core/capture.hpp"
#include "core/context_cache.hpp"

#include <atomic>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace gcx {

// Events of a device without times, used again and again.
class EventPool {
  public:
    explicit EventPool(Device& device) : device_(device) {}
    ~EventPool() { clear(); }
    EventPool(const EventPool&) = delete;
    EventPool& operator=(const EventPool&) = delete;

    // An event while it is used; goes back into the pool.
    class Event {
      public:
        Event(EventPool& pool, CUevent native, uint64_t epoch)
            : pool_(&pool), native_(native), epoch_(epoch) {}
        Event(Event&& other) noexcept
            : pool_(std::exchange(other.pool_, nullptr)), native_(other.native_),
              epoch_(other.epoch_) {}
        Event& operator=(Event&& other) noexcept {
            std::swap(pool_, other.pool_);
            std::swap(native_, other.native_);
            std::swap(epoch_, other.epoch_);
            return *this;
        }
        ~Event() {
            if (pool_ != nullptr)
                pool_->put_back(native_, epoch_);
        }
        CUevent native() const { return native_; }

      private:
        EventPool* pool_;
        CUevent native_;
        uint64_t epoch_;
    };
    Event take();
    // Gives back to the driver what nobody uses, and the primary context with the last of it.
    void clear();

  private:
    void put_back(CUevent native, uint64_t epoch);
    void forget_dead();

    Device& device_;
    std::mutex mutex_;
    Device::PrimaryHold primary_;
    uint64_t epoch_ = 0; // counts the resets of the device that were noticed
    std::size_t out_ = 0;
    std::vector<CUevent> idle_;
};

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
    bool passed(const Driver& driver, const RelaxedCapture& relaxed);
    // The same without asking the driver.
    bool known_to_have_passed() const { return passed_.load(std::memory_order_acquire); }
    // Makes later work of the stream wait for it.
    void make_wait(const Driver& driver, CUstream stream) const;
    // Waits for it in the calling thread.
    void synchronize(const Driver& driver) const;

  private:
    friend class Leases;
    friend class Lease;
    // Keeps a context until an event: a program may still name the streams of a context whose work
    // is unfinished, and destroying the context would take them away.
    struct Kept {
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
    std::atomic<bool> passed_{false};
    // The rest is guarded by the mutex of Leases once the entry is registered there, and by that of
    // its lease before.
    bool registered_ = false;
    AtomSet frontier_;       // the atoms on which no newer entry implies it
    std::vector<Kept> kept_; // its own context comes first
    // Entries of other streams that this one implies, because the stream was made to wait for them.
    std::vector<std::shared_ptr<PendingWork>> implies_;
};

using PendingWorks = std::vector<std::shared_ptr<PendingWork>>;

// The atoms of a family that have SMs in common with these atoms of another; all if that isn't
// known, as between families that were not mapped.
AtomSet atoms_touched(const std::shared_ptr<Family>& family, const AtomSet& atoms,
                      const std::shared_ptr<Family>& other, const AtomSet& others);

} // namespace gcx

// A lease of SMs, and the streams that follow it. Who has which SMs is for leases.hpp.
#pragma once

#include "core/context_cache.hpp"
#include "core/fence.hpp"
#include "core/gate.hpp"
#include "core/hold.hpp"
#include "core/ledger.hpp"
#include "core/publisher.hpp"

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

namespace gcx {

// What a lease is, and never changes.
struct LeaseTerms {
    std::string name;
    bool shared = false;
    uint32_t own_sm_count = 0;               // of a shared one: SMs that are to be its alone
    bool own_queues = false;                 // [13.1+] refused where the driver has none
    std::shared_ptr<const holds::Hold> hold; // whose SMs it has alone; null: any of the device
};

// "decode", with its quotes, or "lease 3" for one without a name: for messages.
std::string lease_label(uint64_t id, const std::string& name);

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
        Holding holding;
        uint64_t changes = 0;
        uint32_t streams = 0;
        bool released = false;
    };
    State state() const;
    // Tells the publisher how many streams there are, after so many more.
    void count_streams(int more);
    // Throws GCX_ERROR_CONTEXT_IS_DESTROYED if it was released, or the device was reset.
    void check_alive() const;

    // Where a stream that has seen so many changes is to go.
    struct Place {
        uint64_t changes = 0;
        ContextCache::Ref context; // none: where it is
        Fences behind;             // what its work waits for
    };
    Place place_for(ContextCache& cache, uint64_t changes_seen, GreenContext* now);
    uint64_t changes() const { return changes_.load(std::memory_order_acquire); }
    // Work, and the context that it runs in.
    struct Work {
        std::shared_ptr<Fence> fence;
        ContextCache::Ref context;
    };
    // What its streams were given since its last change and have in flight.
    std::vector<Work> in_flight(ContextCache& cache, EventPool& events) const;
    // The same and what is left of before.
    Fences work(ContextCache& cache, EventPool& events);
    // Whoever submits work of gcx's own to its streams passes here, so that it is before or after a
    // change and never in between, where nobody would wait for it.
    Gate& gate() { return gate_; }

  private:
    friend class Leases;
    friend class LeaseStream;
    ContextKey key(const AtomSet& set) const;
    // These want the mutex.
    void check_alive_locked() const;
    bool covers(const AtomSet& set) const;
    void note_elsewhere(ContextCache& cache, GreenContext& context);
    std::vector<Work> in_flight_locked(ContextCache& cache, EventPool& events) const;

    Publisher& publisher_;
    Gate gate_;
    mutable std::mutex mutex_;
    std::atomic<uint64_t> changes_{0};
    Holding holding_;
    ContextCache::Ref context_;
    std::optional<Workqueue> workqueue_;
    bool at_once_ = false;
    bool released_ = false;
    uint32_t streams_ = 0;
    Fences behind_; // the former holders' work on its atoms
    Fences left_;   // its own work on the contexts that it had
    // Contexts of a part of its atoms where its streams start at once, since its last change.
    std::vector<ContextCache::Ref> elsewhere_;
};

// The work that the streams of a context have in flight.
std::shared_ptr<Fence> fence_of(GreenContext& context, EventPool& events);

// A stream that follows its lease: one native stream after the other.
class LeaseStream {
  public:
    LeaseStream(ContextCache& cache, EventPool& events, std::shared_ptr<Lease> lease, int priority);
    ~LeaseStream();
    LeaseStream(const LeaseStream&) = delete;
    LeaseStream& operator=(const LeaseStream&) = delete;

    struct At {
        CUstream native = nullptr;
        ContextCache::Ref context;
    };
    // Where it is, after it has gone where its lease is now, unless it captures a graph.
    At at();
    // Gives the native stream up. Throws, and changes nothing, if the driver refuses.
    void close();
    Lease& lease() const { return *lease_; }

  private:
    void follow();
    void move_to(ContextCache::Ref context, const Fences& behind);

    ContextCache& cache_;
    EventPool& events_;
    const std::shared_ptr<Lease> lease_;
    const int priority_;
    // By which it gets its own native streams back: as it comes and goes between the same contexts,
    // work that waits is in as many streams as there are contexts, each of which holds one of the
    // device's queues, and not in one for each move.
    const uint64_t user_;
    std::mutex mutex_;
    ContextCache::Ref context_;
    CUstream native_ = nullptr;
    uint64_t changes_ = 0; // of the lease, those that it has followed
};

} // namespace gcx

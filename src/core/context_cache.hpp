// The context cache: creates green contexts, which takes milliseconds and leaks device memory, and
// caches them by the set of resources that they consist of.
// Thread-safe. ContextCache::mutex_ is not held while a context is created. ARCHITECTURE.md has the
// lock order.
#pragma once

#include "core/device.hpp"
#include "core/resource.hpp"
#include "ipc/published_leases.hpp"

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <ranges>
#include <set>
#include <span>
#include <vector>

namespace gcx {

// The resources of a green context.
struct ContextKey {
    Device* device = nullptr;
    std::shared_ptr<Family> family; // null: a part that is only a workqueue
    AtomSet set;
    std::optional<Workqueue> workqueue;
    auto operator<=>(const ContextKey&) const = default;
};

// Adds one more resource to a key. index is its number in messages. Throws if it cannot go together
// with those before it.
void add_part(ContextKey& key, const ContextKey& part, std::size_t index);
void check_has_sms(const ContextKey& key); // throws if it has none

// The streams of one green context: those in use, and released ones that are cached for reuse.
// Caching does more than save time. A library that caches memory by stream, like PyTorch, still
// names a stream after its owner has released it, and aborts if the driver has destroyed it.
//
// Thread-safe. Priorities are clamped to the driver's range by the caller.
class StreamCache {
  public:
    explicit StreamCache(const Driver& driver) : driver_(driver) {}

    // Limit of cached streams: the size of a stream pool in PyTorch.
    static constexpr std::size_t kMaxCached = 32;

    // Returns a cached stream of this priority, or null. Prefers the one that this owner released,
    // even with work in flight and changed attributes, because later work of the same owner is
    // ordered behind it. Otherwise returns one that is idle and has default attributes. owner 0
    // stands for no owner.
    CUstream acquire(int priority, uint64_t owner = 0);
    // Adds a stream in use that the driver just made.
    void add(CUstream stream, int priority);
    // Releases a stream in use: caches it, or destroys it if the cache is full. Throws, and changes
    // nothing, if the driver refuses.
    void release(CUstream stream, int priority, uint64_t owner = 0);
    // Returns whether one of the streams captures a graph.
    bool capturing();
    std::size_t cached_count();
    // Destroys the cached streams. Returns the driver's error if it refuses one.
    CUresult destroy();
    // Like destroy(), but spares streams with work in flight, which may be waited for, and streams
    // that capture a graph.
    CUresult trim();

  private:
    using Streams = std::set<CUstream>;
    // A stream moves between the two containers as a node, so that release() allocates no set node.
    struct Cached {
        Streams::node_type node;
        int priority;
        uint64_t owner = 0;

        CUstream stream() const { return node.value(); }
    };
    // Five attribute values as bytes. They are only compared; by memcmp, as the bytes are integers.
    using Attributes = std::array<unsigned char, 5 * sizeof(CUlaunchAttributeValue)>;
    std::optional<Attributes> attributes_of(CUstream stream) const;

    // These require mutex_.
    CUstream hand_out(const std::deque<Cached>::iterator& cached);
    std::optional<bool> changed(CUstream stream, int priority) const;
    bool has_room(CUstream stream);
    bool make_room(bool for_capture);

    const Driver& driver_;
    std::mutex mutex_;
    Streams in_use_;
    std::deque<Cached> cached_;                    // in order of release
    std::map<int, Attributes> default_attributes_; // attributes of a new stream, by priority
};

// A green context and its streams.
class GreenContext {
  public:
    const ContextKey key;
    const uint64_t id; // unique in a process
    CUgreenCtx green = nullptr;
    CUcontext native = nullptr;
    StreamCache streams{driver()};

    GreenContext(const ContextKey& its_key, uint64_t its_id) : key(its_key), id(its_id) {}

    const Driver& driver() const { return key.device->driver(); }
    uint32_t sm_count() const { return key.family->sm_count(key.set); }
    uint64_t native_id() const { return native_id_; } // cuCtxGetId's
    SmResource sms() const { return {key.device, key.family, key.set}; }
    // Returns a cached stream or a new one. The caller returns it with streams.release(). owner is
    // as in StreamCache::acquire().
    CUstream acquire_stream(int priority, uint64_t owner = 0);

  private:
    friend class ContextCache;
    Device::PrimaryContextRef primary_;
    unsigned long long native_id_ = 0;
    std::atomic<bool> dead_{false};
    // Guarded by the cache's mutex.
    bool complete_ = false;                    // the driver's context exists
    bool exclusive_ = false;                   // not shared while it is in use
    bool prepared_ = false;                    // automatic eviction spares it
    uint64_t queue_ = 0;                       // the number of its workqueue, if known
    std::array<std::byte, 40> native_queue_{}; // identifies that queue to the driver
    uint32_t users_ = 0;
    uint32_t handles_ = 0;
    uint32_t streams_ = 0;
    uint64_t last_used_ = 0;
};

// Set at the end of a thread, whose stack of contexts CUDA drops: none counts as current in it.
inline constinit thread_local bool thread_has_ended = false;

class ContextCache {
  public:
    // What uses a context: a handle, a stream, a thread that has it current, a lease or an
    // executable of a graph.
    enum class Use { handle, stream, current, lease, graph };

    class Ref {
      public:
        Ref() = default;
        Ref(Ref&& other) noexcept { *this = std::move(other); }
        Ref& operator=(Ref&& other) noexcept {
            std::swap(cache_, other.cache_);
            std::swap(context_, other.context_);
            std::swap(use_, other.use_);
            return *this;
        }
        ~Ref() {
            if (context_ != nullptr)
                cache_->release(*context_, use_);
        }
        GreenContext* operator->() const { return context_; }
        GreenContext& operator*() const { return *context_; }
        explicit operator bool() const { return context_ != nullptr; }
        // Throws GCX_ERROR_CONTEXT_IS_DESTROYED if the device was reset under the context.
        void check_alive() const { cache_->check_alive(*context_); }

      private:
        friend class ContextCache;
        Ref(ContextCache& cache, GreenContext& context, Use use)
            : cache_(&cache), context_(&context), use_(use) {}
        ContextCache* cache_ = nullptr;
        GreenContext* context_ = nullptr;
        Use use_ = Use::handle;
    };

    explicit ContextCache(const Driver& driver) : driver_(driver) {}
    // Destroys all contexts, even those in use.
    ~ContextCache();
    ContextCache(const ContextCache&) = delete;
    ContextCache& operator=(const ContextCache&) = delete;

    enum class Sharing { shared, exclusive };

    // Returns the context of a key, and makes it if there is none. A shared context may have other
    // users. An exclusive one has none, and gets none until it is released. Other threads block
    // only if they want the same context.
    Ref get(const ContextKey& key, Sharing sharing, Use use = Use::handle);
    // Returns the context of a key, or an empty Ref if none is available at once.
    Ref find(const ContextKey& key, Use use);
    // Adds a user to a context in use.
    Ref share(GreenContext& context, Use use);
    // Returns the context with a native handle, or an empty Ref if it is not in the cache.
    Ref find(CUcontext native, Use use);
    // Makes a context outside the cache, to probe the device. It is destroyed after its last use.
    Ref make_uncached(const ContextKey& key);

    // Returns whether the context survived all resets of its device. Removes a dead one from the
    // cache.
    bool is_alive(GreenContext& context);

    // A context in use.
    struct Live {
        uint64_t id;
        uint64_t native_id;
        SmResource sms;
        uint32_t handles;
        uint32_t streams;
        bool exclusive;
    };
    // Returns the contexts in use of a device, or of all devices for null, in order of creation.
    std::vector<Live> live(const Device* device);

    // Returns whether the end of a handle may destroy green contexts: it is the last handle, and
    // the cache is full.
    bool may_destroy(const GreenContext& context);
    uint32_t stream_count(const GreenContext& context);
    // Returns the number of a context's workqueue. Contexts that share a queue have the same
    // number.
    uint64_t queue_of(GreenContext& context);

    // Sets how many unused contexts each device keeps, and destroys the surplus, prepared ones
    // last. At most that many contexts of a device stay prepared.
    void set_limit(uint32_t limit);
    gcx_cache_stats stats(); // fills in all fields but struct_size
    // Publishes the number of contexts, now and at each change.
    void publish_to(Publisher& publisher);
    // Makes the missing contexts of these keys and marks all of them as prepared. Calls before and
    // after for each key, without locks. Throws, before it makes any, if a device would have more
    // prepared contexts than its limit.
    void prepare(std::span<const ContextKey> keys, const std::function<void()>& before,
                 const std::function<void()>& after);

    struct Trimmed {
        uint32_t contexts = 0;
        uint32_t streams = 0;
        uint32_t contexts_left = 0;
        uint32_t streams_left = 0;
        uint64_t bytes = 0;
    };
    // Destroys all but keep of the unused contexts, and the cached streams of the remaining
    // contexts.
    Trimmed trim(uint32_t keep);

  private:
    using Entry = std::unique_ptr<GreenContext>;
    using QueueBytes = decltype(GreenContext::native_queue_);
    using Entries = std::multimap<ContextKey, Entry>;
    // A destroy call that the driver refused, or, with function null, that was not made because the
    // context is current in this thread.
    struct Refusal {
        CUresult result;
        const char* function;
    };
    std::string describe(const Refusal& refusal) const;

    enum class Purpose { now, later };

    Ref get_or_make(const ContextKey& key, Sharing sharing, Use use, Purpose purpose);
    using Keys = std::multiset<ContextKey>;
    class Preparation;
    std::set<Device*> devices();
    std::optional<Refusal> trim_contexts(uint32_t keep, Trimmed& done);
    std::optional<Refusal> trim_streams(Trimmed& done);
    void check_alive(GreenContext& context);
    void make(GreenContext& context);
    // Adds a user to a context that has this queue, so that the queue stays alive. Throws if there
    // is none.
    Ref share_queue_user(uint64_t queue);
    bool alive(GreenContext& context);
    bool is_known_dead(GreenContext& context);
    void release(GreenContext& context, Use use);
    static void count(GreenContext& context, Use use, int step);
    // These require mutex_.
    GreenContext* find_usable(const ContextKey& key, Sharing sharing);
    Entries::iterator find_entry(const GreenContext& context);
    void mark_dead(GreenContext& context);
    void publish();
    std::optional<Refusal> evict(const Device* device);
    std::optional<Refusal> evict_surplus(const Device& device);
    void drop_dead(const Device& device);
    // Returns the entries of a device, or all for null.
    std::ranges::subrange<Entries::iterator> entries_of(const Device* device);
    enum class Prepared { spared, included };
    Entries::iterator least_recently_used(const Device* device, Prepared prepared);
    uint32_t cached(const Device* device);
    uint32_t prepared(const Device& device);
    void mark_prepared(GreenContext& context);
    void unmark_surplus(const Device& device);
    // Throws if a device would have more prepared contexts, including those of these keys, than its
    // limit.
    void check_room(const Keys& keys);
    uint32_t prepared_with(const Device& device, const Keys& keys);
    std::optional<Refusal> destroy(GreenContext& context) const;

    const Driver& driver_;
    std::mutex mutex_;
    std::condition_variable completed_; // a context was created, or that failed
    Entries entries_;
    std::list<Entry> detached_; // dead or uncached: destroyed after the last use
    uint64_t next_queue_ = 1;
    uint32_t limit_ = 64; // per device
    Keys preparing_;      // keys of prepare() calls in progress; counted as prepared
    uint64_t next_id_ = 1;
    uint64_t clock_ = 0;
    gcx_cache_stats stats_{};
    Publisher* publisher_ = nullptr;
};

// The object of a gcx_context handle. Several handles may share one green context.
struct Context {
    ContextCache::Ref green;

    void check_alive() const { green.check_alive(); }
    void close() { green = ContextCache::Ref(); }
};

} // namespace gcx

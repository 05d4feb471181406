// What a green context is made of: the key by which it is kept.
#pragma once

#include "core/device.hpp"
#include "core/resource.hpp"
#include "core/stream_cache.hpp"

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
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

struct ContextKey {
    Device* device = nullptr;
    std::shared_ptr<Family> family; // null: no SMs, a part that is a workqueue alone
    AtomSet set;
    std::optional<Workqueue> workqueue;
    auto operator<=>(const ContextKey&) const = default;
};

// The key of a context over these parts, each of one resource. Throws if they don't go together.
ContextKey key_of(std::span<const ContextKey> parts);

class GreenContext {
  public:
    const ContextKey key;
    const uint64_t id; // never used twice in a process
    CUgreenCtx green = nullptr;
    CUcontext native = nullptr;
    StreamCache streams;

    GreenContext(const ContextKey& its_key, uint64_t its_id) : key(its_key), id(its_id) {}

    const Driver& driver() const { return key.device->driver(); }
    uint32_t sm_count() const { return key.family->sm_count(key.set); }
    SmResource sms() const { return {key.device, key.family, key.set}; }
    // A stream that was given up, or a new one, to be given to streams.give_up. user as there.
    CUstream acquire_stream(int priority, uint64_t user = 0);

  private:
    friend class ContextCache;
    Device::PrimaryContextRef primary_;
    unsigned long long native_id_ = 0;
    std::atomic<bool> dead_{false};
    // The rest is the cache's, under its mutex.
    bool made_ = false;
    bool exclusive_ = false; // while it is used, nobody else is given it
    bool prepared_ = false;  // automatic eviction never takes it
    uint64_t queue_ = 0;     // the number of the workqueue that it is known to have
    std::array<std::byte, 40> native_queue_{}; // what names that queue to the driver
    uint32_t users_ = 0;
    uint32_t handles_ = 0;
    uint32_t streams_ = 0;
    uint64_t last_used_ = 0;
};

class ContextCache {
  public:
    // What holds a context: a handle, a stream, a thread that has it current, a lease, or a graph's
    // executable.
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
    // Destroys what is left, in use or not.
    ~ContextCache();
    ContextCache(const ContextCache&) = delete;
    ContextCache& operator=(const ContextCache&) = delete;

    enum class Sharing { shared, exclusive };

    // The context of a key, made now if there is none: one that others may use too, or one that
    // nobody uses or is given while it is used. Other threads are held up only if they want the
    // same one.
    Ref get(const ContextKey& key, Sharing sharing, Use use = Use::handle);
    // The context of a key, if there is one that may be had at once.
    Ref find(const ContextKey& key, Use use);
    // One more use of a context that is in use.
    Ref share(GreenContext& context, Use use);
    // The context behind a native one, if it is one of these.
    Ref find(CUcontext native, Use use);
    // Makes a context that is not kept: for looking at the device.
    Ref make_uncached(const ContextKey& key);

    // Whether the device was not reset under the context; one found dead leaves the cache.
    bool is_alive(GreenContext& context);

    // What is known of a context in use.
    struct Live {
        uint64_t id;
        SmResource sms;
        uint32_t handles;
        uint32_t streams;
        bool exclusive;
    };
    // Those of a device, or of all (null), that somebody uses, in the order in which they were
    // made.
    std::vector<Live> live(const Device* device);

    bool last_handle(const GreenContext& context);
    uint32_t stream_count(const GreenContext& context);
    // The number of a context's workqueue: one for each queue, as long as a context has it.
    uint64_t queue_of(GreenContext& context);

    // Sets how many contexts that nobody uses are kept on each device, and destroys those beyond:
    // prepared ones last. At most that many contexts of a device stay prepared.
    void set_limit(uint32_t limit);
    gcx_cache_stats stats(); // all but struct_size
    // Makes the contexts of these keys that do not exist yet, and marks all of them as prepared.
    // Calls before and after for each key, without locks. Throws, before it makes any, if more
    // contexts of a device would be prepared than its limit.
    void prepare(std::span<const ContextKey> keys, const std::function<void()>& before,
                 const std::function<void()>& after);

    struct Trimmed {
        uint32_t contexts = 0;
        uint32_t streams = 0;
        uint32_t contexts_left = 0;
        uint32_t streams_left = 0;
        uint64_t bytes = 0;
    };
    // Destroys the kept contexts beyond that many, and of those that stay the given-up streams.
    Trimmed trim(uint32_t keep);

  private:
    using Entry = std::unique_ptr<GreenContext>;
    using QueueBytes = decltype(GreenContext::native_queue_);
    using Entries = std::multimap<ContextKey, Entry>;
    // What the driver would not destroy.
    struct Refusal {
        CUresult result;
        const char* function;
    };

    enum class Purpose { now, later };

    Ref get_or_make(const ContextKey& key, Sharing sharing, Use use, Purpose purpose);
    using Keys = std::multiset<ContextKey>;
    class Preparation;
    std::set<Device*> devices();
    std::optional<Refusal> trim_contexts(uint32_t keep, Trimmed& done);
    std::optional<Refusal> trim_streams(Trimmed& done);
    void check_alive(GreenContext& context);
    void make(GreenContext& context);
    CUdevResource native_config(const Device& device, const Workqueue& wanted);
    // A use of a context that has the queue, so that it lasts. Throws if there is none.
    Ref share_owner_of(uint64_t queue);
    bool alive(GreenContext& context);
    bool is_known_dead(GreenContext& context);
    void release(GreenContext& context, Use use);
    static void count(GreenContext& context, Use use, int step);
    // These want the mutex.
    GreenContext* find_usable(const ContextKey& key, Sharing sharing);
    Entries::iterator find_entry(const GreenContext& context);
    void mark_dead(GreenContext& context);
    std::optional<Refusal> evict(const Device* device);
    std::optional<Refusal> evict_surplus(const Device& device);
    void drop_dead(const Device& device);
    // The entries of a device; of all devices for null.
    std::ranges::subrange<Entries::iterator> entries_of(const Device* device);
    enum class Prepared { spared, included };
    Entries::iterator least_recently_used(const Device* device, Prepared prepared);
    uint32_t cached(const Device* device);
    uint32_t prepared(const Device& device);
    void mark_prepared(GreenContext& context);
    void unmark_surplus(const Device& device);
    // Throws if the limit of a device is too small for what is prepared, with these keys.
    void check_room(const Keys& keys);
    uint32_t prepared_with(const Device& device, const Keys& keys);
    std::optional<Refusal> destroy(GreenContext& context) const;

    const Driver& driver_;
    std::mutex mutex_;
    std::condition_variable made_;
    Entries entries_;
    std::list<Entry> detached_; // dead, or made for once: gone when their last user is
    uint64_t next_queue_ = 1;
    uint32_t limit_ = 64; // of each device
    Keys preparing_;      // what prepare is making contexts for; counts as prepared already
    uint64_t next_id_ = 1;
    uint64_t clock_ = 0;
    gcx_cache_stats stats_{};
};

// A caller's reservation on a green context, which other handles may share.
struct Context {
    ContextCache::Ref green;

    void check_alive() const { green.check_alive(); }
    void close() { green = ContextCache::Ref(); }
};

} // namespace gcx

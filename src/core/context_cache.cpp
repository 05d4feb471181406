#include "core/context_cache.hpp"

#include "base/log.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <iterator>
#include <set>
#include <utility>

namespace gcx {

namespace {

// The attributes that make a released stream unfit for another owner.
constexpr std::array kAttributes = {
    CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW,
    CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY,
    CU_LAUNCH_ATTRIBUTE_PRIORITY,
    CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP,
    CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN,
};

void add_sms(ContextKey& key, const ContextKey& part, std::size_t index) {
    if (key.family == nullptr) {
        key.family = part.family;
        key.set = part.set;
        return;
    }
    if (key.family != part.family)
        fail(GCX_ERROR_INVALID_RESOURCE_CONFIGURATION,
             format("resource %zu is of another family than the ones before it, and which SMs they "
                    "share is not known; use resources of one family",
                    index));
    const uint32_t shared = part.family->sm_count(key.set & part.set);
    if (shared != 0)
        fail(GCX_ERROR_INVALID_RESOURCE_CONFIGURATION,
             format("resource %zu has %u SMs that the ones before it also have; remove them with "
                    "gcx_resource_subtract",
                    index, shared));
    key.set = key.set | part.set;
}

} // namespace

void add_part(ContextKey& key, const ContextKey& part, std::size_t index) {
    if (part.workqueue && key.workqueue)
        fail(GCX_ERROR_INVALID_RESOURCE_TYPE,
             format("resource %zu is a second workqueue; a context has one at most", index));
    if (key.device != nullptr && key.device != part.device)
        fail(GCX_ERROR_INVALID_RESOURCE_CONFIGURATION,
             format("resource %zu is of %s, the ones before it of %s; use resources of one device",
                    index, part.device->label().c_str(), key.device->label().c_str()));
    key.device = part.device;
    if (part.workqueue)
        key.workqueue = part.workqueue;
    else
        add_sms(key, part, index);
}

void check_has_sms(const ContextKey& key) {
    if (key.family == nullptr)
        fail(GCX_ERROR_INVALID_RESOURCE_TYPE,
             "none of the resources is an SM resource; a context needs one");
    if (key.set.empty())
        fail(GCX_ERROR_INVALID_RESOURCE_CONFIGURATION, "the resources hold no SMs");
}

CUstream GreenContext::acquire_stream(int priority, uint64_t owner) {
    if (CUstream const cached = streams.acquire(priority, owner); cached != nullptr)
        return cached;
    CUstream stream = nullptr;
    if (driver().has(GCX_CAPABILITY_STREAM_CREATE)) {
        GCX_CALL(driver(), cuGreenCtxStreamCreate, &stream, green, CU_STREAM_NON_BLOCKING,
                 priority);
    } else {
        const ScopedCurrent current(driver(), native);
        GCX_CALL(driver(), cuStreamCreateWithPriority, &stream, CU_STREAM_NON_BLOCKING, priority);
    }
    streams.add(stream, priority);
    return stream;
}

ContextCache::~ContextCache() {
    for (auto& [key, context] : entries_)
        destroy(*context);
    for (const Entry& context : detached_)
        destroy(*context);
}

ContextCache::Ref ContextCache::get(const ContextKey& key, Sharing sharing, Use use) {
    return get_or_make(key, sharing, use, Purpose::now);
}

ContextCache::Ref ContextCache::get_or_make(const ContextKey& key, Sharing sharing, Use use,
                                            Purpose purpose) {
    const bool exclusive = sharing == Sharing::exclusive;
    std::unique_lock lock(mutex_);
    while (GreenContext* found = find_usable(key, sharing)) {
        if (!found->complete_) {
            completed_.wait(lock); // another thread creates it
            continue;
        }
        if (alive(*found)) {
            stats_.hits += purpose == Purpose::now ? 1 : 0;
            found->exclusive_ = exclusive;
            if (purpose == Purpose::later)
                mark_prepared(*found);
            count(*found, use, 1);
            return Ref(*this, *found, use);
        }
        mark_dead(*found);
    }
    GreenContext& context =
        *entries_.emplace(key, std::make_unique<GreenContext>(key, next_id_++))->second;
    context.exclusive_ = exclusive;
    lock.unlock();
    const auto start = std::chrono::steady_clock::now();
    try {
        make(context);
    } catch (...) {
        lock.lock();
        entries_.erase(find_entry(context));
        completed_.notify_all();
        throw;
    }
    const std::chrono::nanoseconds elapsed = std::chrono::steady_clock::now() - start;
    lock.lock();
    context.complete_ = true;
    stats_.misses++;
    if (purpose == Purpose::later) {
        stats_.prepared++;
        mark_prepared(context);
    }
    stats_.creation_ns += static_cast<uint64_t>(elapsed.count());
    stats_.longest_creation_ns =
        std::max(stats_.longest_creation_ns, static_cast<uint64_t>(elapsed.count()));
    count(context, use, 1);
    publish();
    completed_.notify_all();
    return Ref(*this, context, use);
}

ContextCache::Ref ContextCache::find(const ContextKey& key, Use use) {
    const std::lock_guard lock(mutex_);
    GreenContext* const found = find_usable(key, Sharing::shared);
    if (found == nullptr || !found->complete_ || !alive(*found))
        return {};
    stats_.hits++;
    count(*found, use, 1);
    return Ref(*this, *found, use);
}

ContextCache::Ref ContextCache::make_uncached(const ContextKey& key) {
    auto context = std::make_unique<GreenContext>(key, 0);
    make(*context);
    const std::lock_guard lock(mutex_);
    context->complete_ = true;
    try {
        detached_.push_back(std::move(context));
    } catch (...) {
        destroy(*context); // not moved
        throw;
    }
    count(*detached_.back(), Use::handle, 1);
    return Ref(*this, *detached_.back(), Use::handle);
}

ContextCache::Ref ContextCache::share(GreenContext& context, Use use) {
    const std::lock_guard lock(mutex_);
    count(context, use, 1);
    return Ref(*this, context, use);
}

ContextCache::Ref ContextCache::find(CUcontext native, Use use) {
    const std::lock_guard lock(mutex_);
    for (auto& [key, context] : entries_) {
        if (context->complete_ && context->native == native && alive(*context)) {
            count(*context, use, 1);
            return Ref(*this, *context, use);
        }
    }
    return {};
}

bool ContextCache::is_alive(GreenContext& context) {
    if (alive(context))
        return true;
    const std::lock_guard lock(mutex_);
    mark_dead(context);
    return false;
}

void ContextCache::check_alive(GreenContext& context) {
    if (!is_alive(context))
        fail(GCX_ERROR_CONTEXT_IS_DESTROYED,
             format("the context of %u SMs died: the primary context of %s was reset; destroy the "
                    "handle and make a new context",
                    context.sm_count(), context.key.device->label().c_str()));
}

std::vector<ContextCache::Live> ContextCache::live(const Device* device) {
    const std::lock_guard lock(mutex_);
    std::vector<GreenContext*> used;
    for (const auto& [key, context] : entries_) {
        if (context->users_ != 0 && (device == nullptr || key.device == device))
            used.push_back(context.get());
    }
    std::vector<Live> found;
    for (GreenContext* context : used) {
        if (alive(*context))
            found.push_back({context->id, context->native_id_, context->sms(), context->handles_,
                             context->streams_, context->exclusive_});
        else
            mark_dead(*context);
    }
    std::sort(found.begin(), found.end(), [](const Live& a, const Live& b) { return a.id < b.id; });
    return found;
}

bool ContextCache::may_destroy(const GreenContext& context) {
    const std::lock_guard lock(mutex_);
    return context.handles_ == 1 && (entries_.size() > limit_ || !detached_.empty());
}

uint32_t ContextCache::stream_count(const GreenContext& context) {
    const std::lock_guard lock(mutex_);
    return context.streams_;
}

uint64_t ContextCache::queue_of(GreenContext& context) {
    CUdevResource native{};
    GCX_CALL(driver_, cuGreenCtxGetDevResource, context.green, &native, cu::kResourceWorkqueue);
    const std::lock_guard lock(mutex_);
    context.native_queue_ = cu::get_fields<QueueBytes>(native);
    if (context.queue_ != 0)
        return context.queue_;
    // A context also shares a queue if the driver reports the same one, as with the device's own.
    for (const auto& [key, other] : entries_) {
        if (other->queue_ != 0 && key.device == context.key.device &&
            other->native_queue_ == context.native_queue_ && context.native_queue_ != QueueBytes{})
            context.queue_ = other->queue_;
    }
    if (context.queue_ == 0)
        context.queue_ = next_queue_++;
    return context.queue_;
}

bool ContextCache::alive(GreenContext& context) {
    return !context.dead_.load(std::memory_order_acquire) &&
           driver_.context_has_id(context.native, context.native_id_);
}

// Returns false, and does not throw, if the driver reports an error.
bool ContextCache::is_known_dead(GreenContext& context) {
    try {
        return !alive(context);
    } catch (const Error& error) {
        log::write(GCX_LOG_DEBUG, error.message);
        return false;
    }
}

void ContextCache::count(GreenContext& context, Use use, int step) {
    const auto add = [step](uint32_t& number) { number += static_cast<uint32_t>(step); };
    add(context.users_);
    if (use == Use::handle)
        add(context.handles_);
    if (use == Use::stream)
        add(context.streams_);
}

void ContextCache::release(GreenContext& context, Use use) {
    const std::lock_guard lock(mutex_);
    count(context, use, -1);
    if (context.users_ != 0)
        return;
    context.exclusive_ = false; // the next user may share it
    context.last_used_ = ++clock_;
    if (const auto failed = evict(context.key.device))
        log::write(GCX_LOG_WARNING, describe(*failed) + "; the context is destroyed later");
}

// Prefers a context in use over a cached one, so that sharers get the same one, and a prepared
// context over other cached ones.
GreenContext* ContextCache::find_usable(const ContextKey& key, Sharing sharing) {
    GreenContext* found = nullptr;
    const auto [begin, end] = entries_.equal_range(key);
    for (auto it = begin; it != end; ++it) {
        GreenContext& context = *it->second;
        const bool unused = context.complete_ && context.users_ == 0;
        if (unused)
            found = found != nullptr && found->prepared_ ? found : &context;
        else if (sharing == Sharing::shared && !context.exclusive_)
            return &context;
    }
    return found;
}

ContextCache::Entries::iterator ContextCache::find_entry(const GreenContext& context) {
    const auto [begin, end] = entries_.equal_range(context.key);
    const auto it =
        std::find_if(begin, end, [&](const auto& entry) { return entry.second.get() == &context; });
    return it == end ? entries_.end() : it;
}

// Removes a dead context from the cache. Its users keep the object, which names no driver context.
void ContextCache::mark_dead(GreenContext& context) {
    if (context.dead_.exchange(true))
        return;
    stats_.lost++;
    log::write(GCX_LOG_WARNING, format("a context of %u SMs died: %s was reset", context.sm_count(),
                                       context.key.device->label().c_str()));
    const auto it = find_entry(context);
    if (it == entries_.end())
        return;
    if (context.users_ != 0)
        detached_.push_back(std::move(it->second));
    entries_.erase(it);
    publish();
}

void ContextCache::make(GreenContext& context) {
    warn_of_few_connections();
    const Driver& driver = context.driver();
    context.primary_ = context.key.device->retain_primary();
    std::vector<CUdevResource> resources = context.key.family->native_resources(context.key.set);
    Ref queue_user; // keeps the requested queue alive
    if (const auto& requested = context.key.workqueue; requested && requested->queue != 0) {
        queue_user = share_queue_user(requested->queue);
        CUdevResource queue{};
        GCX_CALL(driver, cuGreenCtxGetDevResource, queue_user->green, &queue,
                 cu::kResourceWorkqueue);
        resources.push_back(queue);
        context.queue_ = requested->queue;
    } else if (requested) {
        resources.push_back(context.key.device->native_config(*requested));
    }
    CUdevResourceDesc descriptor = nullptr;
    const CUresult described = driver.cuDevResourceGenerateDesc(
        &descriptor, resources.data(), static_cast<unsigned>(resources.size()));
    // From 13.1 on, cuda.h requires that all resources of a descriptor have the same
    // smCoscheduledAlignment, which a remainder does not share with groups.
    if (described == CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION &&
        driver.has(GCX_CAPABILITY_STRUCTURED_SPLIT))
        fail(GCX_ERROR_INVALID_RESOURCE_CONFIGURATION,
             format("a driver of CUDA %s makes no context of these %u SMs: it accepts the "
                    "remainder atom only together with the last atoms, and groups of a structured "
                    "split only if they were requested alike; use sets that gcx_sm_split returned",
                    version_text(driver.version()).c_str(), context.sm_count()));
    driver.check(described, "cuDevResourceGenerateDesc");
    GCX_CALL(driver, cuGreenCtxCreate, &context.green, descriptor, context.key.device->native(),
             cu::kGreenCtxDefaultStream);
    try {
        GCX_CALL(driver, cuCtxFromGreenCtx, &context.native, context.green);
        GCX_CALL(driver, cuCtxGetId, context.native, &context.native_id_);
    } catch (...) {
        driver.cuGreenCtxDestroy(context.green);
        throw;
    }
    if (log::enabled(GCX_LOG_INFO))
        log::write(GCX_LOG_INFO, format("made a context of %u SMs on %s", context.sm_count(),
                                        context.key.device->label().c_str()));
}

ContextCache::Ref ContextCache::share_queue_user(uint64_t queue) {
    const std::lock_guard lock(mutex_);
    for (const auto& [key, context] : entries_) {
        if (context->complete_ && context->queue_ == queue && alive(*context)) {
            count(*context, Use::current, 1);
            return Ref(*this, *context, Use::current);
        }
    }
    fail(GCX_ERROR_CONTEXT_IS_DESTROYED,
         "the workqueue no longer exists, because all its contexts were destroyed; keep one of "
         "them alive, or make a context over a GCX_RESOURCE_WORKQUEUE_CONFIG");
}

namespace {

// Free memory of the devices that a trim affects.
class FreeMemory {
  public:
    void add(Device& device) { entries_.push_back({device.retain_primary(), &device, 0}); }
    void begin() {
        for (Entry& entry : entries_)
            entry.before = entry.device->free_memory(entry.primary);
    }
    // Returns the increase in free bytes since begin(), or 0 if other allocations exceed it.
    uint64_t gained() const {
        int64_t bytes = 0;
        for (const Entry& entry : entries_) {
            const auto now = entry.device->free_memory(entry.primary);
            if (now && entry.before)
                bytes += static_cast<int64_t>(*now) - static_cast<int64_t>(*entry.before);
        }
        return static_cast<uint64_t>(std::max<int64_t>(bytes, 0));
    }

  private:
    struct Entry {
        Device::PrimaryContextRef primary;
        Device* device;
        std::optional<uint64_t> before;
    };
    std::vector<Entry> entries_;
};

} // namespace

// Counts the keys of a prepare() call as prepared until their contexts are marked, so that
// concurrent calls do not use the same room twice.
class ContextCache::Preparation {
  public:
    // Throws if they exceed the limit of a device.
    Preparation(ContextCache& cache, std::span<const ContextKey> keys) : cache_(cache) {
        Keys reserved(keys.begin(), keys.end());
        const std::lock_guard lock(cache.mutex_);
        cache.check_room(reserved);
        keys_.reserve(reserved.size());
        while (!reserved.empty())
            keys_.push_back(cache.preparing_.insert(reserved.extract(reserved.begin())));
    }
    ~Preparation() {
        const std::lock_guard lock(cache_.mutex_);
        for (const Keys::iterator& key : keys_)
            cache_.preparing_.erase(key);
    }
    Preparation(const Preparation&) = delete;
    Preparation& operator=(const Preparation&) = delete;

  private:
    ContextCache& cache_;
    std::vector<Keys::iterator> keys_;
};

void ContextCache::set_limit(uint32_t limit) {
    const std::lock_guard lock(mutex_);
    limit_ = limit;
    std::optional<Refusal> refusal = evict(nullptr); // spares prepared contexts
    std::set<const Device*> devices;
    for (const auto& [key, context] : entries_)
        devices.insert(key.device);
    for (const Device* device : devices)
        unmark_surplus(*device);
    if (!refusal)
        refusal = evict(nullptr);
    if (refusal)
        fail(static_cast<gcx_result>(refusal->result), describe(*refusal));
}

void ContextCache::publish_to(Publisher& publisher) {
    const std::lock_guard lock(mutex_);
    publisher_ = &publisher;
    publish();
}

void ContextCache::publish() {
    if (publisher_ == nullptr || !publisher_->active())
        return;
    const auto count =
        std::ranges::count_if(entries_, [](const auto& entry) { return entry.second->complete_; });
    Publisher::Update(*publisher_)
        .set_contexts(static_cast<std::size_t>(count), stats_.misses, stats_.evicted);
}

gcx_cache_stats ContextCache::stats() {
    const std::lock_guard lock(mutex_);
    gcx_cache_stats stats = stats_;
    stats.limit = limit_;
    stats.cached = cached(nullptr);
    stats.in_use = static_cast<uint32_t>(entries_.size()) - stats.cached;
    for (const auto& [key, context] : entries_) {
        if (context->complete_)
            stats.cached_streams += static_cast<uint32_t>(context->streams.cached_count());
    }
    return stats;
}

void ContextCache::prepare(std::span<const ContextKey> keys, const std::function<void()>& before,
                           const std::function<void()>& after) {
    const Preparation preparation(*this, keys);
    for (const ContextKey& key : keys) {
        before();
        {
            const std::lock_guard lock(mutex_);
            check_room({}); // the limit may have been lowered
        }
        get_or_make(key, Sharing::shared, Use::current, Purpose::later);
        after();
    }
}

void ContextCache::check_room(const Keys& keys) {
    std::set<const Device*> devices;
    for (const Keys* all : {&keys, &std::as_const(preparing_)}) {
        for (const ContextKey& key : *all)
            devices.insert(key.device);
    }
    for (const Device* device : devices) {
        uint32_t count = prepared_with(*device, keys);
        if (count <= limit_)
            continue;
        drop_dead(*device);
        count = prepared_with(*device, keys);
        if (count > limit_)
            fail(GCX_ERROR_CACHE_LIMIT_EXCEEDED,
                 format("%s would have %u prepared context%s, it has %u now, and its limit of "
                        "cached contexts is %u; raise the limit with gcx_cache_set_limit, or "
                        "destroy contexts that are no longer needed with gcx_cache_trim",
                        device->label().c_str(), count, count == 1 ? "" : "s", prepared(*device),
                        limit_));
    }
}

// Returns how many contexts of a device would be prepared, including those of these keys.
uint32_t ContextCache::prepared_with(const Device& device, const Keys& keys) {
    std::set<ContextKey> unprepared;
    for (const Keys* all : {&keys, &std::as_const(preparing_)}) {
        for (const ContextKey& key : *all) {
            if (key.device != &device)
                continue;
            const GreenContext* const found = find_usable(key, Sharing::shared);
            if (found == nullptr || !found->prepared_)
                unprepared.insert(key);
        }
    }
    return prepared(device) + static_cast<uint32_t>(unprepared.size());
}

uint32_t ContextCache::prepared(const Device& device) {
    return static_cast<uint32_t>(std::ranges::count_if(
        entries_of(&device), [](const auto& entry) { return entry.second->prepared_; }));
}

// Respects the limit, which another thread may have lowered since.
void ContextCache::mark_prepared(GreenContext& context) {
    if (!context.prepared_ && prepared(*context.key.device) < limit_)
        context.prepared_ = true;
}

// Leaves at most as many contexts prepared as the limit. Unmarks the least recently used first, and
// those in use last.
void ContextCache::unmark_surplus(const Device& device) {
    for (uint32_t count = prepared(device); count > limit_; count--) {
        GreenContext* next = nullptr;
        const auto rank = [](const GreenContext& context) {
            return std::pair(context.users_ != 0, context.last_used_);
        };
        for (const auto& [key, context] : entries_of(&device)) {
            if (context->prepared_ && (next == nullptr || rank(*context) < rank(*next)))
                next = context.get();
        }
        next->prepared_ = false;
    }
}

ContextCache::Trimmed ContextCache::trim(uint32_t keep) {
    Trimmed done;
    FreeMemory memory;
    for (Device* device : devices())
        memory.add(*device);
    memory.begin();
    std::optional<Refusal> refusal = trim_contexts(keep, done);
    if (!refusal)
        refusal = trim_streams(done);
    if (refusal)
        fail(static_cast<gcx_result>(refusal->result),
             format("%s; %u contexts and %u streams were destroyed before; call gcx_cache_trim "
                    "again for the others",
                    describe(*refusal).c_str(), done.contexts, done.streams));
    done.bytes = memory.gained();
    return done;
}

// Returns the devices that have contexts. Removes dead contexts first.
std::set<Device*> ContextCache::devices() {
    const std::lock_guard lock(mutex_);
    std::set<Device*> found;
    std::vector<GreenContext*> dead;
    for (const auto& [key, context] : entries_) {
        if (!context->complete_)
            continue;
        if (alive(*context))
            found.insert(key.device);
        else
            dead.push_back(context.get());
    }
    for (GreenContext* context : dead)
        mark_dead(*context);
    return found;
}

// Destroys the contexts without the mutex, so that other contexts can be had concurrently.
std::optional<ContextCache::Refusal> ContextCache::trim_contexts(uint32_t keep, Trimmed& done) {
    std::vector<Entries::node_type> taken;
    std::unique_lock lock(mutex_);
    if (const auto refusal = evict(nullptr))
        return refusal;
    taken.reserve(cached(nullptr));
    while (cached(nullptr) > keep) {
        const auto oldest = least_recently_used(nullptr, Prepared::included);
        if (oldest == entries_.end())
            break;
        taken.push_back(entries_.extract(oldest));
    }
    const uint32_t left = cached(nullptr);
    done.contexts_left = left > keep ? left - keep : 0;
    lock.unlock();
    std::optional<Refusal> refusal;
    for (Entries::node_type& node : taken) {
        GreenContext& context = *node.mapped();
        const bool was_prepared = std::exchange(context.prepared_, false);
        const std::size_t streams = context.streams.cached_count();
        if (!refusal)
            refusal = destroy(context);
        lock.lock();
        if (refusal) {
            entries_.insert(std::move(node));
            if (was_prepared)
                mark_prepared(context);
        } else {
            stats_.evicted++;
            publish();
            done.contexts++;
            done.streams += static_cast<uint32_t>(streams);
        }
        lock.unlock();
    }
    return refusal;
}

std::optional<ContextCache::Refusal> ContextCache::trim_streams(Trimmed& done) {
    for (uint64_t last = 0;;) {
        const std::lock_guard lock(mutex_);
        GreenContext* next = nullptr; // in order of id, because the mutex is released between two
        for (const auto& [key, context] : entries_) {
            if (context->complete_ && context->id > last &&
                (next == nullptr || context->id < next->id))
                next = context.get();
        }
        if (next == nullptr)
            return std::nullopt;
        last = next->id;
        if (!alive(*next))
            continue;
        const std::size_t before = next->streams.cached_count();
        const CUresult result = next->streams.trim();
        const std::size_t after = next->streams.cached_count();
        done.streams += static_cast<uint32_t>(before - after);
        done.streams_left += static_cast<uint32_t>(after);
        if (result != CUDA_SUCCESS)
            return Refusal{result, "cuStreamDestroy"};
    }
}

// Destroys unused detached contexts, and the surplus of unused cached ones of a device, or of all
// devices for null. Stops at the first refusal of the driver; the next call tries again.
std::optional<ContextCache::Refusal> ContextCache::evict(const Device* device) {
    for (auto it = detached_.begin(); it != detached_.end();) {
        if ((*it)->users_ != 0) {
            ++it;
            continue;
        }
        if (const auto refusal = destroy(**it))
            return refusal;
        it = detached_.erase(it);
    }
    // cached() is only worth its cost if the limit may be exceeded.
    if (entries_.size() <= limit_)
        return std::nullopt;
    if (device != nullptr)
        return evict_surplus(*device);
    std::set<const Device*> devices;
    for (const auto& [key, context] : entries_)
        devices.insert(key.device);
    for (const Device* each : devices) {
        if (const auto refusal = evict_surplus(*each))
            return refusal;
    }
    return std::nullopt;
}

// Destroys the least recently used contexts beyond the limit. Spares prepared ones, of which there
// are at most as many as the limit.
std::optional<ContextCache::Refusal> ContextCache::evict_surplus(const Device& device) {
    if (cached(&device) <= limit_)
        return std::nullopt;
    drop_dead(device);
    for (uint32_t count = cached(&device); count > limit_; count--) {
        const auto oldest = least_recently_used(&device, Prepared::spared);
        if (oldest == entries_.end())
            break;
        if (const auto refusal = destroy(*oldest->second))
            return refusal;
        stats_.evicted++;
        entries_.erase(oldest);
        publish();
    }
    return std::nullopt;
}

// Removes contexts that died in a reset, which would otherwise use up the limit.
void ContextCache::drop_dead(const Device& device) {
    const auto entries = entries_of(&device);
    for (auto it = entries.begin(); it != entries.end();) {
        GreenContext& context = *(it++)->second;
        if (context.complete_ && is_known_dead(context))
            mark_dead(context);
    }
}

// Considers the unused contexts of a device, or of all for null. Skips a context with a cached
// stream that captures a graph, because the capture would end with the context.
ContextCache::Entries::iterator ContextCache::least_recently_used(const Device* device,
                                                                  Prepared prepared) {
    auto found = entries_.end();
    const auto entries = entries_of(device);
    for (auto it = entries.begin(); it != entries.end(); ++it) {
        GreenContext& context = *it->second;
        if (context.complete_ && context.users_ == 0 &&
            (prepared == Prepared::included || !context.prepared_) &&
            (found == entries_.end() || context.last_used_ < found->second->last_used_) &&
            !context.streams.capturing())
            found = it;
    }
    return found;
}

std::ranges::subrange<ContextCache::Entries::iterator>
ContextCache::entries_of(const Device* device) {
    if (device == nullptr)
        return {entries_.begin(), entries_.end()};
    // Keys are ordered by device first.
    const auto is_before = [&](const auto& entry) {
        return std::less<const Device*>()(entry.first.device, device);
    };
    const auto begin = std::find_if_not(entries_.begin(), entries_.end(), is_before);
    const auto end = std::find_if(begin, entries_.end(),
                                  [&](const auto& entry) { return entry.first.device != device; });
    return {begin, end};
}

uint32_t ContextCache::cached(const Device* device) {
    return static_cast<uint32_t>(std::ranges::count_if(entries_of(device), [](const auto& entry) {
        return entry.second->complete_ && entry.second->users_ == 0;
    }));
}

std::string ContextCache::describe(const Refusal& refusal) const {
    return refusal.function != nullptr
               ? driver_.describe(refusal.result, refusal.function)
               : "a green context to destroy is current in this thread; make another one current";
}

std::optional<ContextCache::Refusal> ContextCache::destroy(GreenContext& context) const {
    if (context.dead_.load() || context.green == nullptr)
        return std::nullopt; // it died with its device's primary context
    CUcontext current = nullptr;
    if (!thread_has_ended && driver_.cuCtxGetCurrent(&current) == CUDA_SUCCESS &&
        current == context.native)
        return Refusal{CUDA_ERROR_CONTEXT_ALREADY_IN_USE, nullptr};
    // Streams go first: once their context is destroyed, the driver cannot destroy them.
    if (const CUresult result = context.streams.destroy(); result != CUDA_SUCCESS)
        return Refusal{result, "cuStreamDestroy"};
    const CUresult result = driver_.cuGreenCtxDestroy(context.green);
    if (result != CUDA_SUCCESS && result != CUDA_ERROR_CONTEXT_IS_DESTROYED)
        return Refusal{result, "cuGreenCtxDestroy"};
    return std::nullopt;
}

std::optional<StreamCache::Attributes> StreamCache::attributes_of(CUstream stream) const {
    Attributes attributes{};
    static_assert(attributes.size() == kAttributes.size() * sizeof(CUlaunchAttributeValue));
    for (std::size_t i = 0; i < kAttributes.size(); i++) {
        CUlaunchAttributeValue value{}; // the driver fills in the attribute's own size
        if (driver_.cuStreamGetAttribute(stream, kAttributes[i], &value) != CUDA_SUCCESS)
            return std::nullopt;
        std::memcpy(attributes.data() + i * sizeof value, &value, sizeof value);
    }
    return attributes;
}

CUstream StreamCache::acquire(int priority, uint64_t owner) {
    const std::lock_guard lock(mutex_);
    if (cached_.empty())
        return nullptr;
    const RelaxedCapture relaxed(driver_);
    const auto same_owner = std::find_if(cached_.begin(), cached_.end(), [&](const Cached& cached) {
        return owner != 0 && cached.owner == owner && cached.priority == priority &&
               is_capturing(driver_, cached.stream()) == false;
    });
    if (same_owner != cached_.end())
        return hand_out(same_owner);
    for (auto it = cached_.begin(); it != cached_.end();) {
        CUstream stream = it->stream();
        // A query would break the capture. Only the former owner can end it.
        const auto was_changed = it->priority == priority &&
                                         is_capturing(driver_, stream) == false &&
                                         driver_.cuStreamQuery(stream) == CUDA_SUCCESS
                                     ? changed(stream, priority)
                                     : std::nullopt;
        if (was_changed == false)
            return hand_out(it);
        it = was_changed && is_destroyed(driver_.cuStreamDestroy(stream)) ? cached_.erase(it)
                                                                          : std::next(it);
    }
    return nullptr;
}

CUstream StreamCache::hand_out(const std::deque<Cached>::iterator& cached) {
    CUstream stream = cached->stream();
    in_use_.insert(std::move(cached->node));
    cached_.erase(cached);
    return stream;
}

void StreamCache::add(CUstream stream, int priority) {
    const std::lock_guard lock(mutex_);
    in_use_.insert(stream);
    if (default_attributes_.contains(priority))
        return;
    if (const auto attributes = attributes_of(stream))
        default_attributes_.emplace(priority, *attributes);
}

void StreamCache::release(CUstream stream, int priority, uint64_t owner) {
    const std::lock_guard lock(mutex_);
    if (has_room(stream)) {
        cached_.push_back({{}, priority, owner});
        cached_.back().node = in_use_.extract(stream);
        return;
    }
    if (const CUresult result = driver_.cuStreamDestroy(stream); !is_destroyed(result))
        driver_.check(result, "cuStreamDestroy");
    in_use_.erase(stream);
}

bool StreamCache::capturing() {
    const std::lock_guard lock(mutex_);
    return std::any_of(in_use_.begin(), in_use_.end(),
                       [&](CUstream stream) { return is_capturing(driver_, stream) == true; }) ||
           std::any_of(cached_.begin(), cached_.end(), [&](const Cached& cached) {
               return is_capturing(driver_, cached.stream()) == true;
           });
}

CUresult StreamCache::destroy() {
    const std::lock_guard lock(mutex_);
    while (!cached_.empty()) {
        const CUresult result = driver_.cuStreamDestroy(cached_.front().stream());
        if (!is_destroyed(result))
            return result;
        cached_.pop_front();
    }
    return CUDA_SUCCESS;
}

std::size_t StreamCache::cached_count() {
    const std::lock_guard lock(mutex_);
    return cached_.size();
}

CUresult StreamCache::trim() {
    const std::lock_guard lock(mutex_);
    const RelaxedCapture relaxed(driver_);
    for (auto it = cached_.begin(); it != cached_.end();) {
        CUstream stream = it->stream();
        if (is_capturing(driver_, stream) != false ||
            driver_.cuStreamQuery(stream) == CUDA_ERROR_NOT_READY) {
            ++it;
            continue;
        }
        if (const CUresult result = driver_.cuStreamDestroy(stream); !is_destroyed(result))
            return result;
        it = cached_.erase(it);
    }
    return CUDA_SUCCESS;
}

// Returns whether attributes of a stream differ from a new one's. Checked on reuse, because the
// former owner can still change them after the release. Returns nothing if the driver reports an
// error.
std::optional<bool> StreamCache::changed(CUstream stream, int priority) const {
    const auto attributes = attributes_of(stream);
    const auto defaults = default_attributes_.find(priority);
    if (!attributes || defaults == default_attributes_.end())
        return std::nullopt;
    return defaults->second != *attributes;
}

bool StreamCache::has_room(CUstream stream) {
    const auto captured = is_capturing(driver_, stream);
    if (!captured)
        return false; // the stream no longer exists
    return cached_.size() < kMaxCached || make_room(*captured);
}

// Destroys one cached stream. Normally this is the oldest, and only if its attributes were changed:
// it would never be reused. If the stream to be cached captures a graph, it must not be destroyed,
// so the first cached one that does not capture is destroyed instead.
bool StreamCache::make_room(bool for_capture) {
    const auto end = for_capture ? cached_.end() : std::next(cached_.begin());
    const auto found = std::find_if(cached_.begin(), end, [&](const Cached& cached) {
        return is_capturing(driver_, cached.stream()) == false &&
               (for_capture || changed(cached.stream(), cached.priority) == true);
    });
    if (found == end || !is_destroyed(driver_.cuStreamDestroy(found->stream())))
        return false;
    cached_.erase(found);
    return true;
}

} // namespace gcx

// What is kept, within which limits, and made ahead of time.
#include "core/context_cache.hpp"

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

namespace gcx {
namespace {

// The devices whose memory a trim may give back, and what is free on them.
class Watched {
  public:
    void add(Device& device) { reservations_.push_back({device.hold_primary(), &device, 0}); }
    void begin() {
        for (Row& row : reservations_)
            row.before = row.device->free_memory(row.reservation);
    }
    // The bytes that came free since; others may have taken more than that.
    uint64_t gained() const {
        int64_t bytes = 0;
        for (const Row& row : reservations_) {
            const auto now = row.device->free_memory(row.reservation);
            if (now && row.before)
                bytes += static_cast<int64_t>(*now) - static_cast<int64_t>(*row.before);
        }
        return static_cast<uint64_t>(std::max<int64_t>(bytes, 0));
    }

  private:
    struct Row {
        Device::PrimaryHold reservation;
        Device* device;
        std::optional<uint64_t> before;
    };
    std::vector<Row> reservations_;
};

} // namespace

// Counts the keys of a call as prepared until their contexts are made and marked, so that calls of
// several threads do not all count on the same room.
class ContextCache::Reservation {
  public:
    // Throws if the limit of a device is too small for them.
    Reservation(ContextCache& cache, std::span<const ContextKey> keys) : cache_(cache) {
        Keys reserved(keys.begin(), keys.end());
        const std::lock_guard lock(cache.mutex_);
        cache.check_room(reserved);
        places_.reserve(reserved.size());
        while (!reserved.empty())
            places_.push_back(cache.preparing_.insert(reserved.extract(reserved.begin())));
    }
    ~Reservation() {
        const std::lock_guard lock(cache_.mutex_);
        for (const Keys::iterator& place : places_)
            cache_.preparing_.erase(place);
    }
    Reservation(const Reservation&) = delete;
    Reservation& operator=(const Reservation&) = delete;

  private:
    ContextCache& cache_;
    std::vector<Keys::iterator> places_;
};

void ContextCache::set_limit(uint32_t limit) {
    const std::lock_guard lock(mutex_);
    limit_ = limit;
    std::optional<Refusal> refusal = evict(nullptr); // spares the prepared ones
    std::set<const Device*> devices;
    for (const auto& [key, context] : entries_)
        devices.insert(key.device);
    for (const Device* device : devices)
        unmark_surplus(*device);
    if (!refusal)
        refusal = evict(nullptr);
    if (refusal)
        driver_.check(refusal->result, refusal->function);
}

gcx_cache_stats ContextCache::stats() {
    const std::lock_guard lock(mutex_);
    gcx_cache_stats stats = stats_;
    stats.limit = limit_;
    stats.kept = kept(nullptr);
    stats.in_use = static_cast<uint32_t>(entries_.size()) - stats.kept;
    for (const auto& [key, context] : entries_) {
        if (context->made_)
            stats.kept_streams += static_cast<uint32_t>(context->streams.idle_count());
    }
    return stats;
}

void ContextCache::prepare(std::span<const ContextKey> keys, const std::function<void()>& before,
                           const std::function<void()>& after) {
    const Reservation reservation(*this, keys);
    for (const ContextKey& key : keys) {
        before();
        {
            const std::lock_guard lock(mutex_);
            check_room({}); // The limit may have been lowered since.
        }
        obtain(key, Sharing::shared, Use::current, Purpose::later);
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
        bury_dead(*device);
        count = prepared_with(*device, keys);
        if (count > limit_)
            fail(GCX_ERROR_INVALID_VALUE,
                 format("%s would have %u prepared context%s, it has %u now, and its limit of "
                        "cached contexts is %u; raise the limit with gcx_cache_set_limit, or "
                        "destroy contexts that are no longer needed with gcx_cache_trim",
                        device->label().c_str(), count, count == 1 ? "" : "s", prepared(*device),
                        limit_));
    }
}

// Returns how many contexts of a device are prepared once those of these keys are too.
uint32_t ContextCache::prepared_with(const Device& device, const Keys& keys) {
    std::set<ContextKey> wanted;
    for (const Keys* all : {&keys, &std::as_const(preparing_)}) {
        for (const ContextKey& key : *all) {
            if (key.device != &device)
                continue;
            const GreenContext* const found = fitting(key, Sharing::shared);
            if (found == nullptr || !found->prepared_)
                wanted.insert(key);
        }
    }
    return prepared(device) + static_cast<uint32_t>(wanted.size());
}

uint32_t ContextCache::prepared(const Device& device) {
    return static_cast<uint32_t>(std::ranges::count_if(
        entries_of(&device), [](const auto& entry) { return entry.second->prepared_; }));
}

// Keeps to the limit, which another thread may have lowered while the context was made.
void ContextCache::mark_prepared(GreenContext& context) {
    if (!context.prepared_ && prepared(*context.key.device) < limit_)
        context.prepared_ = true;
}

// Leaves no more contexts prepared than the limit. The longest unused are the first that are not
// prepared any more; those in use are the last.
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
    Watched watched;
    for (Device* device : devices())
        watched.add(*device);
    watched.begin();
    std::optional<Refusal> refusal = trim_contexts(keep, done);
    if (!refusal)
        refusal = trim_streams(done);
    if (refusal)
        fail(static_cast<gcx_result>(refusal->result),
             format("%s; %u contexts and %u streams were destroyed before, what is left can be "
                    "trimmed again",
                    driver_.describe(refusal->result, refusal->function).c_str(), done.contexts,
                    done.streams));
    done.bytes = watched.gained();
    return done;
}

// Those with a context, after what a reset has taken has left.
std::set<Device*> ContextCache::devices() {
    const std::lock_guard lock(mutex_);
    std::set<Device*> found;
    std::vector<GreenContext*> dead;
    for (const auto& [key, context] : entries_) {
        if (!context->made_)
            continue;
        if (alive(*context))
            found.insert(key.device);
        else
            dead.push_back(context.get());
    }
    for (GreenContext* context : dead)
        bury(*context);
    return found;
}

// They are destroyed without the lock, for those who want other contexts meanwhile.
std::optional<ContextCache::Refusal> ContextCache::trim_contexts(uint32_t keep, Trimmed& done) {
    std::vector<Entries::node_type> taken;
    std::unique_lock lock(mutex_);
    if (const auto refusal = evict(nullptr))
        return refusal;
    taken.reserve(kept(nullptr));
    while (kept(nullptr) > keep) {
        const auto oldest = longest_unused(nullptr, Prepared::included);
        if (oldest == entries_.end())
            break;
        taken.push_back(entries_.extract(oldest));
    }
    const uint32_t left = kept(nullptr);
    done.contexts_left = left > keep ? left - keep : 0;
    lock.unlock();
    std::optional<Refusal> refusal;
    for (Entries::node_type& node : taken) {
        GreenContext& context = *node.mapped();
        const bool was_prepared = std::exchange(context.prepared_, false);
        const std::size_t streams = context.streams.idle_count();
        if (!refusal)
            refusal = destroy(context);
        lock.lock();
        if (refusal) {
            entries_.insert(std::move(node));
            if (was_prepared)
                mark_prepared(context);
        } else {
            stats_.evicted++;
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
        GreenContext* next = nullptr; // by id, since the lock is free between two
        for (const auto& [key, context] : entries_) {
            if (context->made_ && context->id > last && (next == nullptr || context->id < next->id))
                next = context.get();
        }
        if (next == nullptr)
            return std::nullopt;
        last = next->id;
        if (!alive(*next))
            continue;
        const std::size_t before = next->streams.idle_count();
        const CUresult result = next->streams.trim(driver_);
        const std::size_t after = next->streams.idle_count();
        done.streams += static_cast<uint32_t>(before - after);
        done.streams_left += static_cast<uint32_t>(after);
        if (result != CUDA_SUCCESS)
            return Refusal{result, "cuStreamDestroy"};
    }
}

// Destroys what nobody uses: contexts that stand apart, and cached ones of a device, or of all for
// null, beyond the limit. Stops at the first that the driver refuses to destroy; the next call
// tries again.
std::optional<ContextCache::Refusal> ContextCache::evict(const Device* device) {
    for (auto it = apart_.begin(); it != apart_.end();) {
        if ((*it)->users_ != 0) {
            ++it;
            continue;
        }
        if (const auto refusal = destroy(**it))
            return refusal;
        it = apart_.erase(it);
    }
    // They are counted only where there can be too many.
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

// Destroys the longest unused first, and none that was prepared: there are at most as many of those
// as the limit allows.
std::optional<ContextCache::Refusal> ContextCache::evict_surplus(const Device& device) {
    if (kept(&device) <= limit_)
        return std::nullopt;
    bury_dead(device);
    for (uint32_t count = kept(&device); count > limit_; count--) {
        const auto oldest = longest_unused(&device, Prepared::spared);
        if (oldest == entries_.end())
            break;
        if (const auto refusal = destroy(*oldest->second))
            return refusal;
        stats_.evicted++;
        entries_.erase(oldest);
    }
    return std::nullopt;
}

// After a reset those that nobody has noticed yet would take the room of others.
void ContextCache::bury_dead(const Device& device) {
    const auto entries = entries_of(&device);
    for (auto it = entries.begin(); it != entries.end();) {
        GreenContext& context = *(it++)->second;
        if (context.made_ && found_dead(context))
            bury(context);
    }
}

// Of the cached ones of a device, or of all for null. Not one with a stream that was given up while
// it captured a graph: with the context that capture would end.
ContextCache::Entries::iterator ContextCache::longest_unused(const Device* device,
                                                             Prepared prepared) {
    auto found = entries_.end();
    const auto entries = entries_of(device);
    for (auto it = entries.begin(); it != entries.end(); ++it) {
        GreenContext& context = *it->second;
        if (context.made_ && context.users_ == 0 &&
            (prepared == Prepared::included || !context.prepared_) &&
            (found == entries_.end() || context.last_used_ < found->second->last_used_) &&
            !context.streams.capturing(driver_))
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

uint32_t ContextCache::kept(const Device* device) {
    return static_cast<uint32_t>(std::ranges::count_if(entries_of(device), [](const auto& entry) {
        return entry.second->made_ && entry.second->users_ == 0;
    }));
}

std::optional<ContextCache::Refusal> ContextCache::destroy(GreenContext& context) const {
    if (context.dead_.load() || context.green == nullptr)
        return std::nullopt; // gone with the reset
    // First: a stream of a destroyed context can't be destroyed any more.
    if (const CUresult result = context.streams.destroy(driver_); result != CUDA_SUCCESS)
        return Refusal{result, "cuStreamDestroy"};
    const CUresult result = driver_.cuGreenCtxDestroy(context.green);
    if (result != CUDA_SUCCESS && result != CUDA_ERROR_CONTEXT_IS_DESTROYED)
        return Refusal{result, "cuGreenCtxDestroy"};
    return std::nullopt;
}

} // namespace gcx

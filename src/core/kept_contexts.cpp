// What is kept, within which limits, and made ahead of time.
#include "core/context_cache.hpp"

#include <algorithm>
#include <set>

namespace gcx {
namespace {

std::string mebibytes(uint64_t bytes) {
    return format("%.1f MiB", static_cast<double>(bytes) / (1 << 20));
}

// The devices whose memory a trim may give back, and what is free on them.
class Watched {
  public:
    void add(Device& device) { holds_.push_back({device.hold_primary(), &device, 0}); }
    void begin() {
        for (Row& row : holds_)
            row.before = row.device->free_memory(row.hold);
    }
    // The bytes that came free since; others may have taken more than that.
    uint64_t gained() const {
        int64_t bytes = 0;
        for (const Row& row : holds_) {
            const auto now = row.device->free_memory(row.hold);
            if (now && row.before)
                bytes += static_cast<int64_t>(*now) - static_cast<int64_t>(*row.before);
        }
        return static_cast<uint64_t>(std::max<int64_t>(bytes, 0));
    }

  private:
    struct Row {
        Device::PrimaryHold hold;
        Device* device;
        MemoryGauge::Bytes before;
    };
    std::vector<Row> holds_;
};

} // namespace

void ContextCache::set_limit(uint32_t limit) {
    const std::lock_guard lock(mutex_);
    limit_ = limit;
    if (const auto failed = evict())
        driver_.check(failed->result, failed->function);
}

void ContextCache::set_memory_limit(uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    memory_limit_ = bytes;
    if (const auto failed = evict())
        driver_.check(failed->result, failed->function);
}

gcx_cache_stats ContextCache::stats() {
    const std::lock_guard lock(mutex_);
    gcx_cache_stats stats = stats_;
    stats.limit = limit_;
    stats.memory_limit = memory_limit_;
    stats.kept = kept();
    stats.in_use = static_cast<uint32_t>(entries_.size()) - stats.kept;
    for (const auto& [key, context] : entries_) {
        if (!context->made_)
            continue;
        (context->users_ == 0 ? stats.bytes_kept : stats.bytes_in_use) += context->bytes();
        stats.kept_streams += static_cast<uint32_t>(context->streams.idle_count());
    }
    return stats;
}

void ContextCache::prepare(std::span<const ContextKey> keys, const std::function<void()>& before,
                           const std::function<void()>& after) {
    for (const ContextKey& key : keys) {
        before();
        check_room(keys); // again each time: what they hold is known once some were made
        obtain(key, Sharing::shared, Use::current, Purpose::later);
        after();
    }
}

// Of those that somebody uses, the limits say nothing.
void ContextCache::check_room(std::span<const ContextKey> keys) {
    const std::lock_guard lock(mutex_);
    const std::set<ContextKey> all(keys.begin(), keys.end());
    uint32_t count = 0;
    std::map<const Device*, uint64_t> bytes;
    for (const ContextKey& key : all) {
        const GreenContext* const found = fitting(key, Sharing::shared);
        if (found != nullptr && found->users_ != 0)
            continue;
        count++;
        bytes[key.device] +=
            found != nullptr && found->made_ ? found->bytes() : key.device->gauge().expected();
    }
    if (count > limit_)
        fail(GCX_ERROR_INVALID_VALUE,
             format(
                 "%u sets that nobody uses are to be kept at once, and the limit of kept contexts "
                 "is %u; gcx_cache_set_limit raises it",
                 count, limit_));
    for (const auto& [device, needed] : bytes) {
        if (needed > memory_limit_)
            fail(GCX_ERROR_INVALID_VALUE,
                 format(
                     "the contexts that are to be kept at once hold about %s on %s, and the limit "
                     "of what kept ones may hold there is %s; gcx_cache_set_memory_limit raises "
                     "it",
                     mebibytes(needed).c_str(), device->label().c_str(),
                     mebibytes(memory_limit_).c_str()));
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
    if (const auto refusal = evict())
        return refusal;
    taken.reserve(kept());
    while (kept() > keep) {
        const auto oldest = longest_unused(nullptr);
        if (oldest == entries_.end())
            break;
        taken.push_back(entries_.extract(oldest));
    }
    done.contexts_left = kept() > keep ? kept() - keep : 0;
    lock.unlock();
    std::optional<Refusal> refusal;
    for (Entries::node_type& node : taken) {
        GreenContext& context = *node.mapped();
        const std::size_t streams = context.streams.idle_count();
        if (!refusal)
            refusal = destroy(context);
        lock.lock();
        if (refusal) {
            entries_.insert(std::move(node));
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

// Destroys what nobody uses: contexts that stand apart, and kept ones beyond the limits, the
// longest unused first. Stops at the first that the driver refuses to destroy; the next call tries
// again.
std::optional<ContextCache::Refusal> ContextCache::evict() {
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
    for (uint32_t surplus = entries_.size() > limit_ ? kept() : 0; surplus > limit_; surplus--) {
        const auto oldest = longest_unused(nullptr);
        if (oldest == entries_.end())
            break;
        if (const auto refusal = evict(oldest))
            return refusal;
    }
    return memory_limit_ == UINT64_MAX ? std::nullopt : evict_by_memory();
}

std::optional<ContextCache::Refusal> ContextCache::evict_by_memory() {
    std::map<const Device*, uint64_t> bytes;
    for (const auto& [key, context] : entries_) {
        if (context->made_ && context->users_ == 0)
            bytes[key.device] += context->bytes();
    }
    for (auto& [device, held] : bytes) {
        while (held > memory_limit_) {
            const auto oldest = longest_unused(device);
            if (oldest == entries_.end())
                break;
            held -= std::min(held, oldest->second->bytes());
            if (const auto refusal = evict(oldest))
                return refusal;
        }
    }
    return std::nullopt;
}

std::optional<ContextCache::Refusal> ContextCache::evict(Entries::iterator entry) {
    if (const auto refusal = destroy(*entry->second))
        return refusal;
    stats_.evicted++;
    entries_.erase(entry);
    return std::nullopt;
}

// Of the kept ones of a device, or of all (null). Not one with a stream that was given up while it
// captured a graph: with the context that capture would end.
ContextCache::Entries::iterator ContextCache::longest_unused(const Device* device) {
    auto found = entries_.end();
    for (auto it = entries_.begin(); it != entries_.end(); ++it) {
        GreenContext& context = *it->second;
        if (context.made_ && context.users_ == 0 &&
            (device == nullptr || context.key.device == device) &&
            (found == entries_.end() || context.last_used_ < found->second->last_used_) &&
            !context.streams.capturing(driver_))
            found = it;
    }
    return found;
}

uint32_t ContextCache::kept() const {
    return static_cast<uint32_t>(
        std::count_if(entries_.begin(), entries_.end(), [](const auto& entry) {
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

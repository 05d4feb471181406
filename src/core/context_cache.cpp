#include "core/context_cache.hpp"

#include "base/log.hpp"
#include "core/scoped_current.hpp"

#include <algorithm>
#include <chrono>

namespace gcx {

CUstream GreenContext::obtain_stream(int priority, uint64_t user) {
    if (CUstream const kept = streams.take(driver(), priority, user); kept != nullptr)
        return kept;
    CUstream stream = nullptr;
    if (driver().has(GCX_CAPABILITY_STREAM_CREATE)) {
        GCX_CALL(driver(), cuGreenCtxStreamCreate, &stream, green, CU_STREAM_NON_BLOCKING,
                 priority);
    } else {
        const ScopedCurrent current(driver(), native);
        GCX_CALL(driver(), cuStreamCreateWithPriority, &stream, CU_STREAM_NON_BLOCKING, priority);
    }
    streams.add(driver(), stream, priority);
    return stream;
}

ContextCache::~ContextCache() {
    for (auto& [key, context] : entries_)
        destroy(*context);
    for (const Entry& context : apart_)
        destroy(*context);
}

ContextCache::Ref ContextCache::get(const ContextKey& key, Sharing sharing, Use use) {
    return obtain(key, sharing, use, Purpose::now);
}

ContextCache::Ref ContextCache::obtain(const ContextKey& key, Sharing sharing, Use use,
                                       Purpose purpose) {
    const bool exclusive = sharing == Sharing::exclusive;
    std::unique_lock lock(mutex_);
    while (GreenContext* found = fitting(key, sharing)) {
        if (!found->made_) {
            made_.wait(lock); // another thread makes it
            continue;
        }
        if (alive(*found)) {
            stats_.hits += purpose == Purpose::now ? 1 : 0;
            found->private_ = exclusive;
            if (purpose == Purpose::later)
                mark_prepared(*found);
            count(*found, use, 1);
            return Ref(*this, *found, use);
        }
        bury(*found);
    }
    GreenContext& context =
        *entries_.emplace(key, std::make_unique<GreenContext>(key, next_id_++))->second;
    context.private_ = exclusive;
    lock.unlock();
    const auto start = std::chrono::steady_clock::now();
    try {
        make(context);
    } catch (...) {
        lock.lock();
        entries_.erase(find_entry(context));
        made_.notify_all();
        throw;
    }
    const std::chrono::nanoseconds took = std::chrono::steady_clock::now() - start;
    lock.lock();
    context.made_ = true;
    stats_.misses++;
    if (purpose == Purpose::later) {
        stats_.prepared++;
        mark_prepared(context);
    }
    stats_.making_ns += static_cast<uint64_t>(took.count());
    stats_.longest_making_ns =
        std::max(stats_.longest_making_ns, static_cast<uint64_t>(took.count()));
    count(context, use, 1);
    made_.notify_all();
    return Ref(*this, context, use);
}

ContextCache::Ref ContextCache::find(const ContextKey& key, Use use) {
    const std::lock_guard lock(mutex_);
    GreenContext* const found = fitting(key, Sharing::shared);
    if (found == nullptr || !found->made_ || !alive(*found))
        return {};
    stats_.hits++;
    count(*found, use, 1);
    return Ref(*this, *found, use);
}

ContextCache::Ref ContextCache::make_for_once(const ContextKey& key) {
    auto context = std::make_unique<GreenContext>(key, 0);
    make(*context);
    const std::lock_guard lock(mutex_);
    context->made_ = true;
    count(*context, Use::handle, 1);
    apart_.push_back(std::move(context));
    return Ref(*this, *apart_.back(), Use::handle);
}

ContextCache::Ref ContextCache::share(GreenContext& context, Use use) {
    const std::lock_guard lock(mutex_);
    count(context, use, 1);
    return Ref(*this, context, use);
}

ContextCache::Ref ContextCache::find(CUcontext native, Use use) {
    const std::lock_guard lock(mutex_);
    for (auto& [key, context] : entries_) {
        if (context->made_ && context->native == native && alive(*context)) {
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
    bury(context);
    return false;
}

void ContextCache::check_alive(GreenContext& context) {
    if (!is_alive(context))
        fail(GCX_ERROR_CONTEXT_IS_DESTROYED,
             format("the context of %u SMs died: the primary context of %s was reset. Destroy the "
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
            found.push_back({context->id, context->sms(), context->handles_, context->streams_,
                             context->private_});
        else
            bury(*context);
    }
    std::sort(found.begin(), found.end(), [](const Live& a, const Live& b) { return a.id < b.id; });
    return found;
}

bool ContextCache::last_handle(const GreenContext& context) {
    const std::lock_guard lock(mutex_);
    return context.handles_ == 1;
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
    // Contexts that share a queue without having been made of it, as those that share the device's.
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

// The same, for callers that must not throw: false if the driver does not say.
bool ContextCache::found_dead(GreenContext& context) {
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
    context.private_ = false; // the next one may be given it
    context.last_used_ = ++clock_;
    if (const auto failed = evict(context.key.device))
        log::write(GCX_LOG_WARNING, driver_.describe(failed->result, failed->function) +
                                        "; the context is destroyed later");
}

// Prefers a context in use over a cached one, so that sharers get the same one, and of the cached
// ones one that was prepared.
GreenContext* ContextCache::fitting(const ContextKey& key, Sharing sharing) {
    GreenContext* found = nullptr;
    const auto [begin, end] = entries_.equal_range(key);
    for (auto it = begin; it != end; ++it) {
        GreenContext& context = *it->second;
        const bool unused = context.made_ && context.users_ == 0;
        if (unused)
            found = found != nullptr && found->prepared_ ? found : &context;
        else if (sharing == Sharing::shared && !context.private_)
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

// Takes a dead context out of the cache. Users that it has keep the empty shell.
void ContextCache::bury(GreenContext& context) {
    if (context.dead_.exchange(true))
        return;
    stats_.lost++;
    log::write(GCX_LOG_WARNING, format("a context of %u SMs died: %s was reset", context.sm_count(),
                                       context.key.device->label().c_str()));
    const auto it = find_entry(context);
    if (it == entries_.end())
        return;
    if (context.users_ != 0)
        apart_.push_back(std::move(it->second));
    entries_.erase(it);
}

} // namespace gcx

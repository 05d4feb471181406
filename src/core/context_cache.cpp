#include "core/context_cache.hpp"

#include "base/log.hpp"
#include "core/scoped_current.hpp"

#include <algorithm>

namespace gcx {

CUstream GreenContext::obtain_stream(int priority) {
    if (CUstream const kept = streams.take(driver(), priority); kept != nullptr)
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
    const bool exclusive = sharing == Sharing::exclusive;
    std::unique_lock lock(mutex_);
    while (GreenContext* found = fitting(key, sharing)) {
        if (!found->made_) {
            made_.wait(lock); // another thread makes it
            continue;
        }
        if (alive(*found)) {
            stats_.hits++;
            found->private_ = exclusive;
            count(*found, use, 1);
            return Ref(*this, *found, use);
        }
        bury(*found);
    }
    GreenContext& context =
        *entries_.emplace(key, std::make_unique<GreenContext>(key, next_id_++))->second;
    context.private_ = exclusive;
    lock.unlock();
    try {
        make(context);
    } catch (...) {
        lock.lock();
        entries_.erase(find_entry(context));
        made_.notify_all();
        throw;
    }
    lock.lock();
    context.made_ = true;
    stats_.misses++;
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

void ContextCache::set_limit(uint32_t limit) {
    const std::lock_guard lock(mutex_);
    limit_ = limit;
    if (const auto failed = evict())
        driver_.check(failed->result, failed->function);
}

void ContextCache::get_stats(gcx_cache_stats& stats) {
    const std::lock_guard lock(mutex_);
    const uint32_t size = stats.struct_size;
    stats = stats_;
    stats.struct_size = size;
    stats.limit = limit_;
    stats.kept = kept();
    stats.in_use = static_cast<uint32_t>(entries_.size()) - stats.kept;
}

void ContextCache::make(GreenContext& context) {
    const Driver& driver = context.driver();
    context.primary_ = context.key.device->hold_primary();
    std::vector<CUdevResource> resources = context.key.family->realise(context.key.set);
    Ref holder; // of the queue that the context is to have
    if (const auto& wanted = context.key.workqueue; wanted && wanted->queue != 0) {
        holder = holder_of(wanted->queue);
        CUdevResource queue{};
        GCX_CALL(driver, cuGreenCtxGetDevResource, holder->green, &queue, cu::kResourceWorkqueue);
        resources.push_back(queue);
        context.queue_ = wanted->queue;
    } else if (wanted) {
        resources.push_back(native_config(*context.key.device, *wanted));
    }
    CUdevResourceDesc descriptor = nullptr;
    const CUresult described = driver.cuDevResourceGenerateDesc(
        &descriptor, resources.data(), static_cast<unsigned>(resources.size()));
    // From 13.1 on the header wants one smCoscheduledAlignment in a descriptor, which a remainder
    // does not share with groups.
    if (described == CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION &&
        driver.has(GCX_CAPABILITY_STRUCTURED_SPLIT))
        fail(GCX_ERROR_NOT_SUPPORTED,
             format("a driver of CUDA %s makes no context of these %u SMs: the odd atom and atoms "
                    "that don't run up to the last can't go together there, nor groups of a "
                    "structured split that were asked for differently. gcx_sm_split gives the odd "
                    "atom only together with the last ones",
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
    if (log::wanted(GCX_LOG_INFO))
        log::write(GCX_LOG_INFO, format("made a context of %u SMs on %s", context.sm_count(),
                                        context.key.device->label().c_str()));
}

ContextCache::Ref ContextCache::holder_of(uint64_t queue) {
    const std::lock_guard lock(mutex_);
    for (const auto& [key, context] : entries_) {
        if (context->made_ && context->queue_ == queue && alive(*context)) {
            count(*context, Use::current, 1);
            return Ref(*this, *context, Use::current);
        }
    }
    fail(GCX_ERROR_CONTEXT_IS_DESTROYED,
         "the contexts that had the workqueue are gone, and it with them; keep one of them alive, "
         "or make a context over a GCX_RESOURCE_WORKQUEUE_CONFIG");
}

CUdevResource ContextCache::native_config(const Device& device, const Workqueue& wanted) {
    CUdevResource native{};
    GCX_CALL(driver_, cuDeviceGetDevResource, device.native(), &native,
             cu::kResourceWorkqueueConfig);
    // The header: a workqueue's configuration is changed in place.
    auto fields = cu::get_fields<cu::WorkqueueFields>(native);
    fields.scope = static_cast<uint32_t>(wanted.scope);
    fields.concurrency_limit = wanted.concurrency_limit;
    cu::set_fields(native, fields);
    return native;
}

bool ContextCache::alive(GreenContext& context) {
    return !context.dead_.load(std::memory_order_acquire) &&
           driver_.context_has_id(context.native, context.native_id_);
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
    if (const auto failed = evict())
        log::write(GCX_LOG_WARNING, driver_.describe(failed->result, failed->function) +
                                        "; the context is destroyed later");
}

// One in use before one that is kept: those who share a context have the same one.
GreenContext* ContextCache::fitting(const ContextKey& key, Sharing sharing) {
    GreenContext* found = nullptr;
    const auto [begin, end] = entries_.equal_range(key);
    for (auto it = begin; it != end; ++it) {
        GreenContext& context = *it->second;
        const bool unused = context.made_ && context.users_ == 0;
        if (unused)
            found = &context;
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

// Destroys what nobody uses: contexts that stand apart, and kept ones beyond the limit, the longest
// unused first. Stops at the first that the driver refuses to destroy; the next call tries again.
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
    for (uint32_t surplus = kept(); surplus > limit_; surplus--) {
        const auto oldest = longest_unused();
        if (oldest == entries_.end())
            break;
        if (const auto refusal = destroy(*oldest->second))
            return refusal;
        stats_.evicted++;
        entries_.erase(oldest);
    }
    return std::nullopt;
}

// Of the kept ones. Not one with a stream that was given up while it captured a graph: with the
// context that capture would end.
ContextCache::Entries::iterator ContextCache::longest_unused() {
    auto found = entries_.end();
    for (auto it = entries_.begin(); it != entries_.end(); ++it) {
        GreenContext& context = *it->second;
        if (context.made_ && context.users_ == 0 &&
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

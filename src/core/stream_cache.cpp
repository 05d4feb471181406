#include "core/stream_cache.hpp"

#include "core/scoped.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

namespace gcx {

namespace {

constexpr std::array kAttributes = {
    CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW,
    CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY,
    CU_LAUNCH_ATTRIBUTE_PRIORITY,
    CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP,
    CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN,
};

} // namespace

std::optional<StreamCache::Attributes> StreamCache::attributes_of(const Driver& driver,
                                                                  CUstream stream) {
    Attributes attributes{};
    static_assert(attributes.size() == kAttributes.size() * sizeof(CUlaunchAttributeValue));
    for (std::size_t i = 0; i < kAttributes.size(); i++) {
        CUlaunchAttributeValue value{}; // the driver fills in the attribute's own size
        if (driver.cuStreamGetAttribute(stream, kAttributes[i], &value) != CUDA_SUCCESS)
            return std::nullopt;
        std::memcpy(attributes.data() + i * sizeof value, &value, sizeof value);
    }
    return attributes;
}

CUstream StreamCache::acquire(const Driver& driver, int priority, uint64_t owner) {
    const std::lock_guard lock(mutex_);
    if (cached_.empty())
        return nullptr;
    const RelaxedCapture relaxed(driver);
    const auto same_owner = std::find_if(cached_.begin(), cached_.end(), [&](const Cached& cached) {
        return owner != 0 && cached.owner == owner && cached.priority == priority &&
               is_capturing(driver, cached.stream()) == false;
    });
    if (same_owner != cached_.end())
        return hand_out(same_owner);
    for (auto it = cached_.begin(); it != cached_.end();) {
        CUstream stream = it->stream();
        // A query would break the capture. Only the former owner can end it.
        const auto was_changed = it->priority == priority &&
                                         is_capturing(driver, stream) == false &&
                                         driver.cuStreamQuery(stream) == CUDA_SUCCESS
                                     ? changed(driver, stream, priority)
                                     : std::nullopt;
        if (was_changed == false)
            return hand_out(it);
        it = was_changed && is_destroyed(driver.cuStreamDestroy(stream)) ? cached_.erase(it)
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

void StreamCache::add(const Driver& driver, CUstream stream, int priority) {
    const std::lock_guard lock(mutex_);
    in_use_.insert(stream);
    if (default_attributes_.contains(priority))
        return;
    if (const auto attributes = attributes_of(driver, stream))
        default_attributes_.emplace(priority, *attributes);
}

void StreamCache::release(const Driver& driver, CUstream stream, int priority, uint64_t owner) {
    const std::lock_guard lock(mutex_);
    if (has_room(driver, stream)) {
        cached_.push_back({{}, priority, owner});
        cached_.back().node = in_use_.extract(stream);
        return;
    }
    if (const CUresult result = driver.cuStreamDestroy(stream); !is_destroyed(result))
        driver.check(result, "cuStreamDestroy");
    in_use_.erase(stream);
}

bool StreamCache::capturing(const Driver& driver) {
    const std::lock_guard lock(mutex_);
    return std::any_of(in_use_.begin(), in_use_.end(),
                       [&](CUstream stream) { return is_capturing(driver, stream) == true; }) ||
           std::any_of(cached_.begin(), cached_.end(), [&](const Cached& cached) {
               return is_capturing(driver, cached.stream()) == true;
           });
}

CUresult StreamCache::destroy(const Driver& driver) {
    const std::lock_guard lock(mutex_);
    while (!cached_.empty()) {
        const CUresult result = driver.cuStreamDestroy(cached_.front().stream());
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

CUresult StreamCache::trim(const Driver& driver) {
    const std::lock_guard lock(mutex_);
    const RelaxedCapture relaxed(driver);
    for (auto it = cached_.begin(); it != cached_.end();) {
        CUstream stream = it->stream();
        if (is_capturing(driver, stream) != false ||
            driver.cuStreamQuery(stream) == CUDA_ERROR_NOT_READY) {
            ++it;
            continue;
        }
        if (const CUresult result = driver.cuStreamDestroy(stream); !is_destroyed(result))
            return result;
        it = cached_.erase(it);
    }
    return CUDA_SUCCESS;
}

// Returns whether attributes of a stream differ from a new one's. Checked on reuse, because the
// former owner can still change them after the release. Returns nothing if the driver reports an
// error.
std::optional<bool> StreamCache::changed(const Driver& driver, CUstream stream,
                                         int priority) const {
    const auto attributes = attributes_of(driver, stream);
    const auto defaults = default_attributes_.find(priority);
    if (!attributes || defaults == default_attributes_.end())
        return std::nullopt;
    return defaults->second != *attributes;
}

bool StreamCache::has_room(const Driver& driver, CUstream stream) {
    const auto captured = is_capturing(driver, stream);
    if (!captured)
        return false; // the stream no longer exists
    return cached_.size() < kMaxCached || make_room(driver, *captured);
}

// Destroys one cached stream. Normally this is the oldest, and only if its attributes were changed:
// it would never be reused. If the stream to be cached captures a graph, it must not be destroyed,
// so the first cached one that does not capture is destroyed instead.
bool StreamCache::make_room(const Driver& driver, bool for_capture) {
    const auto end = for_capture ? cached_.end() : std::next(cached_.begin());
    const auto found = std::find_if(cached_.begin(), end, [&](const Cached& cached) {
        return is_capturing(driver, cached.stream()) == false &&
               (for_capture || changed(driver, cached.stream(), cached.priority) == true);
    });
    if (found == end || !is_destroyed(driver.cuStreamDestroy(found->stream())))
        return false;
    cached_.erase(found);
    return true;
}

} // namespace gcx

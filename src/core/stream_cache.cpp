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

std::optional<ContextStreams::Attributes> ContextStreams::attributes_of(const Driver& driver,
                                                                        CUstream stream) {
    Attributes attributes{};
    static_assert(attributes.size() == kAttributes.size());
    for (std::size_t i = 0; i < attributes.size(); i++) {
        CUlaunchAttributeValue value{}; // the driver fills in as much as the attribute has
        if (driver.cuStreamGetAttribute(stream, kAttributes[i], &value) != CUDA_SUCCESS)
            return std::nullopt;
        std::memcpy(attributes[i].data(), &value, sizeof value);
    }
    return attributes;
}

CUstream ContextStreams::take(const Driver& driver, int priority, uint64_t user) {
    const std::lock_guard lock(mutex_);
    if (idle_.empty())
        return nullptr;
    const RelaxedCapture relaxed(driver);
    const auto own = std::find_if(idle_.begin(), idle_.end(), [&](const Idle& idle) {
        return user != 0 && idle.user == user && idle.priority == priority &&
               is_capturing(driver, idle.stream()) == false;
    });
    if (own != idle_.end())
        return give_out(own);
    for (auto it = idle_.begin(); it != idle_.end();) {
        CUstream stream = it->stream();
        // A capturing one must not even be queried. Its former owner ends that capture, or never.
        const auto was_changed = it->priority == priority &&
                                         is_capturing(driver, stream) == false &&
                                         driver.cuStreamQuery(stream) == CUDA_SUCCESS
                                     ? changed(driver, stream, priority)
                                     : std::nullopt;
        if (was_changed == false)
            return give_out(it);
        it = was_changed && gone(driver.cuStreamDestroy(stream)) ? idle_.erase(it) : std::next(it);
    }
    return nullptr;
}

CUstream ContextStreams::give_out(const std::deque<Idle>::iterator& idle) {
    CUstream stream = idle->stream();
    given_out_.insert(std::move(idle->node));
    idle_.erase(idle);
    return stream;
}

void ContextStreams::add(const Driver& driver, CUstream stream, int priority) {
    const std::lock_guard lock(mutex_);
    given_out_.insert(stream);
    if (fresh_.contains(priority))
        return;
    if (const auto attributes = attributes_of(driver, stream))
        fresh_.emplace(priority, *attributes);
}

void ContextStreams::give_up(const Driver& driver, CUstream stream, int priority, uint64_t user) {
    const std::lock_guard lock(mutex_);
    if (has_room(driver, stream)) {
        idle_.push_back({{}, priority, user});
        idle_.back().node = given_out_.extract(stream);
        return;
    }
    if (const CUresult result = driver.cuStreamDestroy(stream); !gone(result))
        driver.check(result, "cuStreamDestroy");
    given_out_.erase(stream);
}

bool ContextStreams::capturing(const Driver& driver) {
    const std::lock_guard lock(mutex_);
    return std::any_of(given_out_.begin(), given_out_.end(),
                       [&](CUstream stream) { return is_capturing(driver, stream) == true; }) ||
           std::any_of(idle_.begin(), idle_.end(), [&](const Idle& idle) {
               return is_capturing(driver, idle.stream()) == true;
           });
}

CUresult ContextStreams::destroy(const Driver& driver) {
    const std::lock_guard lock(mutex_);
    while (!idle_.empty()) {
        const CUresult result = driver.cuStreamDestroy(idle_.front().stream());
        if (!gone(result))
            return result;
        idle_.pop_front();
    }
    return CUDA_SUCCESS;
}

std::size_t ContextStreams::idle_count() {
    const std::lock_guard lock(mutex_);
    return idle_.size();
}

CUresult ContextStreams::trim(const Driver& driver) {
    const std::lock_guard lock(mutex_);
    const RelaxedCapture relaxed(driver);
    for (auto it = idle_.begin(); it != idle_.end();) {
        CUstream stream = it->stream();
        if (is_capturing(driver, stream) != false ||
            driver.cuStreamQuery(stream) == CUDA_ERROR_NOT_READY) {
            ++it;
            continue;
        }
        if (const CUresult result = driver.cuStreamDestroy(stream); !gone(result))
            return result;
        it = idle_.erase(it);
    }
    return CUDA_SUCCESS;
}

// Whether it differs from a new one: its owner set attributes, before giving it up or after. Asked
// when the next one wants a stream, so that it is asked once. nullopt if the driver doesn't tell.
std::optional<bool> ContextStreams::changed(const Driver& driver, CUstream stream,
                                            int priority) const {
    const auto attributes = attributes_of(driver, stream);
    const auto fresh = fresh_.find(priority);
    if (!attributes || fresh == fresh_.end())
        return std::nullopt;
    return fresh->second != *attributes;
}

bool ContextStreams::has_room(const Driver& driver, CUstream stream) {
    const auto captured = is_capturing(driver, stream);
    if (!captured)
        return false; // the driver says that it isn't a stream any more
    return idle_.size() < kMost || make_room(driver, *captured);
}

// Destroys the one that has waited longest, if nobody will be given it, since it was changed: what
// is taken comes to the end when it is given up again, so that changed ones come first in time. For
// one that captures, whose capture would end if it were destroyed, the first that doesn't capture.
bool ContextStreams::make_room(const Driver& driver, bool for_capture) {
    const auto end = for_capture ? idle_.end() : std::next(idle_.begin());
    const auto found = std::find_if(idle_.begin(), end, [&](const Idle& idle) {
        return is_capturing(driver, idle.stream()) == false &&
               (for_capture || changed(driver, idle.stream(), idle.priority) == true);
    });
    if (found == end || !gone(driver.cuStreamDestroy(found->stream())))
        return false;
    idle_.erase(found);
    return true;
}

} // namespace gcx

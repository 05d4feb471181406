#include "core/idle_streams.hpp"

#include "core/relaxed_capture.hpp"

#include <algorithm>
#include <cstring>

namespace gcx {
namespace {

constexpr std::array kAttributes = {
    CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW,
    CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY,
    CU_LAUNCH_ATTRIBUTE_PRIORITY,
    CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP,
    CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN,
};

// A capturing stream must not be queried: that would break the capture of one who still uses it.
bool is_capturing(const Driver& driver, CUstream stream) {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    return driver.cuStreamIsCapturing(stream, &status) != CUDA_SUCCESS ||
           status != CU_STREAM_CAPTURE_STATUS_NONE;
}

} // namespace

std::optional<IdleStreams::Attributes> IdleStreams::attributes_of(const Driver& driver,
                                                                  CUstream stream) {
    Attributes attributes{};
    static_assert(attributes.size() == kAttributes.size());
    for (std::size_t i = 0; i < attributes.size(); i++) {
        CUlaunchAttributeValue value; // the driver fills in as much as the attribute has
        std::memset(&value, 0, sizeof value);
        if (driver.cuStreamGetAttribute(stream, kAttributes[i], &value) != CUDA_SUCCESS)
            return std::nullopt;
        std::memcpy(attributes[i].data(), &value, sizeof value);
    }
    return attributes;
}

CUstream IdleStreams::take(const Driver& driver, int priority) {
    const std::lock_guard lock(mutex_);
    if (idle_.empty())
        return nullptr;
    const RelaxedCapture relaxed(driver);
    const auto found = std::find_if(idle_.begin(), idle_.end(), [&](const Idle& idle) {
        return idle.priority == priority && !is_capturing(driver, idle.stream) &&
               driver.cuStreamQuery(idle.stream) == CUDA_SUCCESS;
    });
    if (found == idle_.end())
        return nullptr;
    CUstream stream = found->stream;
    idle_.erase(found);
    return stream;
}

void IdleStreams::learn(const Driver& driver, CUstream stream, int priority) {
    const std::lock_guard lock(mutex_);
    if (fresh_.contains(priority))
        return;
    if (const auto attributes = attributes_of(driver, stream))
        fresh_.emplace(priority, *attributes);
}

bool IdleStreams::keep(const Driver& driver, CUstream stream, int priority) {
    if (is_capturing(driver, stream))
        return false;
    const auto attributes = attributes_of(driver, stream);
    const std::lock_guard lock(mutex_);
    const auto fresh = fresh_.find(priority);
    if (!attributes || fresh == fresh_.end() || idle_.size() >= kMost ||
        *attributes != fresh->second)
        return false;
    idle_.push_back({stream, priority});
    return true;
}

CUresult IdleStreams::destroy(const Driver& driver) {
    const std::lock_guard lock(mutex_);
    while (!idle_.empty()) {
        const CUresult result = driver.cuStreamDestroy(idle_.front().stream);
        if (result != CUDA_SUCCESS && result != CUDA_ERROR_CONTEXT_IS_DESTROYED)
            return result;
        idle_.pop_front();
    }
    return CUDA_SUCCESS;
}

} // namespace gcx

#include "core/device.hpp"

#include "base/log.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace gcx {
namespace {

// In multiples of the coscheduled alignment, the smallest group that allows larger clusters than
// the coscheduled family. On an H200 groups of 8 and 16 SMs allow clusters of 8, and those of 24
// allow 16.
constexpr uint32_t kMaxClusterAlignments = 3;
// No group is smaller.
constexpr uint32_t kSmsOfATpc = 2;

} // namespace

Device::Device(const Driver& driver, int32_t ordinal)
    : driver_(driver), ordinal_(ordinal), label_(format("device %d", ordinal)) {
    GCX_CALL(driver, cuDeviceGet, &native_, ordinal);
    char name[sizeof(gcx_device_info::name)] = "";
    GCX_CALL(driver, cuDeviceGetName, name, static_cast<int>(sizeof name), native_);
    name_ = name;
    GCX_CALL(driver, cuDeviceGetUuid, &uuid_, native_);
    GCX_CALL(driver, cuDeviceGetAttribute, &major_, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
             native_);
    GCX_CALL(driver, cuDeviceGetAttribute, &minor_, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
             native_);
    if (driver.has(GCX_CAPABILITY_LOCALITY_DOMAINS)) {
        int domains = 1;
        GCX_CALL(driver, cuDeviceGetAttribute, &domains, cu::kAttributeLocalityDomainCount,
                 native_);
        locality_domains_ = static_cast<uint32_t>(std::max(domains, 1));
    }

    CUdevResource resource{};
    GCX_CALL(driver, cuDeviceGetDevResource, native_, &resource, cu::kResourceSm);
    const auto fields = cu::get_fields<cu::SmFields>(resource);
    sm_count_ = fields.sm_count;
    if (driver.has(GCX_CAPABILITY_RESOURCE_DETAILS)) {
        min_partition_size_ = fields.min_partition_size;
        coscheduled_alignment_ = fields.coscheduled_alignment;
    } else {
        // From the CUDA documentation of each compute capability.
        min_partition_size_ = major_ >= 9 ? 8 : major_ == 8 ? 4 : 2;
        coscheduled_alignment_ = major_ >= 9 ? 8 : 2;
    }
}

void Device::get_info(gcx_device_info& info) const {
    info.compute_capability_major = major_;
    info.compute_capability_minor = minor_;
    info.sm_count = sm_count_;
    info.min_partition_size = min_partition_size_;
    info.coscheduled_alignment = coscheduled_alignment_;
    info.locality_domain_count = locality_domains_;
    std::strncpy(info.name, name_.c_str(), sizeof info.name - 1);
    info.name[sizeof info.name - 1] = '\0';
    std::memcpy(info.uuid, uuid_.bytes, sizeof info.uuid);
}

bool Device::has_max_cluster_family() const {
    return has_clusters() && sm_count_ >= kMaxClusterAlignments * coscheduled_alignment_;
}

FamilyRequest Device::request_for(gcx_sm_family kind) const {
    if (kind == GCX_SM_FAMILY_FINE)
        return {kind, 1, kSmsOfATpc};
    if (kind != GCX_SM_FAMILY_MAX_CLUSTER)
        return {kind, 1, min_partition_size_}; // the smallest groups that the driver gives
    if (major_ < 9)
        fail(
            GCX_ERROR_NOT_SUPPORTED,
            format("the max-cluster family needs compute capability 9.0 or newer, for there are no "
                   "clusters before; %s has %d.%d",
                   label().c_str(), major_, minor_));
    const uint32_t atom_sm_count = kMaxClusterAlignments * coscheduled_alignment_;
    if (sm_count_ < atom_sm_count)
        fail(GCX_ERROR_NOT_SUPPORTED,
             format("the max-cluster family has groups of %u SMs, since smaller ones allow no "
                    "larger clusters than the coscheduled family's; %s has %u SMs, use that",
                    atom_sm_count, label().c_str(), sm_count_));
    return {kind, atom_sm_count, atom_sm_count};
}

CUdevResource Device::native_config(const Workqueue& requested) const {
    CUdevResource native{};
    GCX_CALL(driver_, cuDeviceGetDevResource, native_, &native, cu::kResourceWorkqueueConfig);
    // cuda.h: a workqueue configuration is changed in place.
    auto fields = cu::get_fields<cu::WorkqueueFields>(native);
    fields.scope = static_cast<uint32_t>(requested.scope);
    fields.concurrency_limit = requested.concurrency_limit;
    cu::set_fields(native, fields);
    return native;
}

std::shared_ptr<Family> Device::family(gcx_sm_family kind) {
    const std::lock_guard lock(mutex_);
    std::unique_ptr<Family>& family = families_.at(static_cast<std::size_t>(kind));
    if (family == nullptr)
        family = std::make_unique<Family>(driver_, native_, request_for(kind));
    // The device owns the family. A pointer without an owner of its own has no counter, so copying
    // it is free of atomic instructions.
    return {std::shared_ptr<Family>(), family.get()};
}

std::shared_ptr<Family> Device::intern_structured(std::span<const cu::SmGroupParams> requests) {
    const SplitId id = split_id(requests);
    const std::lock_guard lock(mutex_);
    auto found = structured_.find(id);
    if (found == structured_.end()) {
        auto family = std::make_shared<Family>(driver_, native_, requests);
        if (structured_.size() >= evict_at_)
            evict_structured_locked();
        found = structured_.emplace(id, Interned{std::move(family)}).first;
    }
    found->second.last_use = ++structured_uses_;
    return found->second.family;
}

std::shared_ptr<Family> Device::try_structured(std::span<const cu::SmGroupParams> requests) {
    const std::lock_guard lock(mutex_);
    const auto found = structured_.find(split_id(requests));
    return found != structured_.end() ? found->second.family
                                      : std::make_shared<Family>(driver_, native_, requests);
}

std::shared_ptr<Family> Device::structured_family(const SplitId& id) {
    const std::lock_guard lock(mutex_);
    const auto found = structured_.find(id);
    if (found == structured_.end())
        fail(GCX_ERROR_INVALID_RESOURCE_CONFIGURATION,
             format("the resource is of a structured split that gcx no longer knows: at least %zu "
                    "other structured splits of %s were used since; repeat the split with the "
                    "same requests, then the resource is valid again",
                    kCachedSplits, label().c_str()));
    found->second.last_use = ++structured_uses_;
    return found->second.family;
}

// Evicts the least recently used half at once, so that an eviction costs little per split.
void Device::evict_structured_locked() {
    std::vector<uint64_t> idle;
    for (const auto& [id, split] : structured_) {
        if (split.family.use_count() == 1)
            idle.push_back(split.last_use);
    }
    if (idle.size() > kCachedSplits) {
        const auto oldest_cached = idle.end() - kCachedSplits;
        std::nth_element(idle.begin(), oldest_cached, idle.end());
        std::erase_if(structured_, [last = *oldest_cached](const auto& entry) {
            return entry.second.family.use_count() == 1 && entry.second.last_use < last;
        });
    }
    evict_at_ = structured_.size() + kCachedSplits;
}

std::vector<uint32_t> Device::shared_sms() {
    const std::lock_guard lock(mutex_);
    return maybe_shared_.size() == kSharedSms ? maybe_shared_ : std::vector<uint32_t>();
}

void Device::note_extra_sms(const std::vector<uint32_t>& seen) {
    const std::lock_guard lock(mutex_);
    if (maybe_shared_.size() == kSharedSms)
        return;
    std::vector<uint32_t> both;
    std::set_intersection(maybe_shared_.begin(), maybe_shared_.end(), seen.begin(), seen.end(),
                          std::back_inserter(both));
    // The shared SMs are in every list. If fewer are in both, the earlier list was wrong.
    maybe_shared_ = both.size() < kSharedSms ? seen : both;
    if (maybe_shared_.size() == kSharedSms)
        log::write(GCX_LOG_WARNING,
                   format("SMs %u and %u are shared by all partitions of this process on %s: a "
                          "module with dynamic parallelism is loaded",
                          maybe_shared_[0], maybe_shared_[1], label().c_str()));
}

Device::Priorities Device::stream_priorities() {
    {
        const std::lock_guard lock(mutex_);
        if (priorities_)
            return *priorities_;
    }
    const PrimaryContextRef primary = retain_primary();
    const ScopedCurrent current(driver_, primary.context());
    Priorities range;
    GCX_CALL(driver_, cuCtxGetStreamPriorityRange, &range.least, &range.greatest);
    const std::lock_guard lock(mutex_);
    priorities_ = range;
    return range;
}

int Device::clamp_priority(int priority) {
    const Priorities range = stream_priorities();
    return std::clamp(priority, range.greatest, range.least);
}

bool Device::primary_is_current_locked() {
    return primary_ != nullptr && driver_.context_has_id(primary_, primary_id_);
}

Device::PrimaryContextRef Device::retain_primary() {
    const std::lock_guard lock(mutex_);
    if (!primary_is_current_locked()) {
        CUcontext context = nullptr;
        GCX_CALL(driver_, cuDevicePrimaryCtxRetain, &context, native_);
        unsigned long long id = 0;
        if (const CUresult result = driver_.cuCtxGetId(context, &id); result != CUDA_SUCCESS) {
            driver_.cuDevicePrimaryCtxRelease(native_);
            driver_.check(result, "cuCtxGetId");
        }
        if (primary_ != nullptr) // by cuda.h a reset does not release what was retained before
            release_primary_of_driver();
        primary_ = context;
        primary_id_ = id;
        primary_epoch_++;
        primary_refs_ = 0;
    }
    primary_refs_++;
    PrimaryContextRef ref;
    ref.device_ = this;
    ref.epoch_ = primary_epoch_;
    ref.context_ = primary_;
    return ref;
}

std::optional<uint64_t> Device::free_memory(const PrimaryContextRef& primary) const {
    const RelaxedCapture relaxed(driver_);
    try {
        const ScopedCurrent current(driver_, primary.context());
        std::size_t free = 0;
        std::size_t total = 0;
        GCX_CALL(driver_, cuMemGetInfo, &free, &total);
        return free;
    } catch (const Error& error) { // nothing depends on it
        log::write(GCX_LOG_DEBUG, error.message);
        return std::nullopt;
    }
}

bool Device::primary_alive(uint64_t epoch) {
    const std::lock_guard lock(mutex_);
    return epoch == primary_epoch_ && primary_is_current_locked();
}

void Device::release_primary(uint64_t epoch) noexcept {
    const std::lock_guard lock(mutex_);
    // References from before a reset refer to nothing any more.
    if (epoch != primary_epoch_ || --primary_refs_ != 0)
        return;
    primary_ = nullptr;
    release_primary_of_driver();
}

void Device::release_primary_of_driver() const noexcept {
    const CUresult result = retry_once([&] { return driver_.cuDevicePrimaryCtxRelease(native_); });
    if (result != CUDA_SUCCESS)
        log::write(GCX_LOG_WARNING, driver_.describe(result, "cuDevicePrimaryCtxRelease"));
}

} // namespace gcx

// A device: its properties, its families of atoms, and its primary context.
//
// Thread-safe. Device::mutex_ is the innermost lock and is held during driver calls.
#pragma once

#include "core/family.hpp"
#include "core/resource.hpp"

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace gcx {

class Device {
  public:
    Device(const Driver& driver, int32_t ordinal);

    const Driver& driver() const { return driver_; }
    int32_t ordinal() const { return ordinal_; }
    CUdevice native() const { return native_; }
    // "device 0", for messages.
    const std::string& label() const { return label_; }
    uint32_t sm_count() const { return sm_count_; }
    uint32_t locality_domain_count() const { return locality_domains_; }
    bool has_clusters() const { return major_ >= 9; }

    // Compute capability 9.x: once a module with dynamic parallelism is loaded, kernels of every
    // partition of the process also run on this many additional SMs (cuda.h; measured on an H200).
    static constexpr uint32_t kSharedSms = 2;
    bool may_share_sms() const { return major_ == 9; }
    // Returns those SMs, ascending; empty while they are not known.
    std::vector<uint32_t> shared_sms();
    // Learns from the SMs that a partition's kernels ran on, which are kSharedSms more than it has.
    // The shared SMs are in every such list, and nothing else is if the partitions are disjoint.
    void note_extra_sms(const std::vector<uint32_t>& seen);
    void get_info(gcx_device_info& info) const;

    bool has_max_cluster_family() const;
    // Returns the family of a kind other than structured. The first call splits the device.
    std::shared_ptr<Family> family(gcx_sm_family kind);
    // Structured splits used most recently, which are never evicted. gcx.h states the number.
    static constexpr std::size_t kCachedSplits = 1024;
    // Returns the structured family of these requests. Caches it, so that equal requests give the
    // same family, and evicts families that neither a context nor a recent call uses.
    std::shared_ptr<Family> intern_structured(std::span<const cu::SmGroupParams> requests);
    // Like intern_structured(), but caches and evicts nothing.
    std::shared_ptr<Family> try_structured(std::span<const cu::SmGroupParams> requests);
    // Returns the family with this id. Throws if it was evicted.
    std::shared_ptr<Family> structured_family(const SplitId& id);

    // Returns the driver's struct of a workqueue configuration.
    CUdevResource native_config(const Workqueue& requested) const;

    // A reference to the primary context. gcx retains the primary context once for all references.
    class PrimaryContextRef {
      public:
        PrimaryContextRef() = default;
        PrimaryContextRef(PrimaryContextRef&& other) noexcept { *this = std::move(other); }
        PrimaryContextRef& operator=(PrimaryContextRef&& other) noexcept {
            std::swap(device_, other.device_);
            std::swap(epoch_, other.epoch_);
            std::swap(context_, other.context_);
            return *this;
        }
        ~PrimaryContextRef() {
            if (device_ != nullptr)
                device_->release_primary(epoch_);
        }
        CUcontext context() const { return context_; }
        // Returns whether the device was not reset since.
        bool alive() const { return device_ != nullptr && device_->primary_alive(epoch_); }

      private:
        friend class Device;
        Device* device_ = nullptr;
        uint64_t epoch_ = 0;
        CUcontext context_ = nullptr;
    };
    PrimaryContextRef retain_primary();
    // Returns the free bytes of device memory, or nothing if the driver reports an error. Breaks no
    // graph capture.
    std::optional<uint64_t> free_memory(const PrimaryContextRef& primary) const;

    // The priorities of streams; lower numbers are more urgent. Cached after the first call, which
    // retains the primary context.
    struct Priorities {
        int least = 0;
        int greatest = 0;
    };
    Priorities stream_priorities();
    // Returns the priority that the driver gives to a stream for which this one is requested.
    int clamp_priority(int priority);

  private:
    // A structured split that was interned.
    struct Interned {
        std::shared_ptr<Family> family;
        uint64_t last_use = 0;
    };

    void evict_structured_locked();
    FamilyRequest request_for(gcx_sm_family kind) const;
    bool primary_alive(uint64_t epoch);
    bool primary_is_current_locked();
    void release_primary(uint64_t epoch) noexcept;
    void release_primary_of_driver() const noexcept;

    const Driver& driver_;
    int32_t ordinal_;
    std::string label_;
    CUdevice native_ = 0;
    int major_ = 0;
    int minor_ = 0;
    uint32_t sm_count_ = 0;
    uint32_t min_partition_size_ = 0;
    uint32_t coscheduled_alignment_ = 0;
    uint32_t locality_domains_ = 1;
    std::string name_;
    CUuuid uuid_{};

    std::mutex mutex_;
    std::array<std::unique_ptr<Family>, GCX_SM_FAMILY_STRUCTURED> families_; // by kind
    std::map<SplitId, Interned> structured_;
    std::size_t evict_at_ = 2 * kCachedSplits; // the size of structured_
    uint64_t structured_uses_ = 0;             // orders Interned::last_use
    std::optional<Priorities> priorities_;
    std::vector<uint32_t> maybe_shared_; // the SMs in all lists of note_extra_sms() so far
    CUcontext primary_ = nullptr;        // null: not retained
    unsigned long long primary_id_ = 0;
    uint64_t primary_epoch_ = 0; // counts how often it was retained
    uint32_t primary_refs_ = 0;
};

} // namespace gcx

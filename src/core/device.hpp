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

    // Returns the family of a kind other than structured. The first call splits the device.
    std::shared_ptr<Family> family(gcx_sm_family kind);
    // Returns the structured family of packed requests. Equal requests give the same family as long
    // as it is referenced. The device is only split again if the family was not used recently.
    std::shared_ptr<Family> structured_family(const std::string& requests);
    // Remembers packed requests that do not fit into a gcx_resource, which takes more than about 20
    // different groups. Returns their number, which stays valid.
    uint64_t remember_requests(const std::string& requests);
    std::string remembered_requests(uint64_t number);

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
    static constexpr std::size_t kRecentSplits = 64;

    FamilyRequest request_for(gcx_sm_family kind) const;
    bool primary_alive(uint64_t epoch);
    bool primary_is_current_locked();
    void release_primary(uint64_t epoch) noexcept;

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
    std::array<std::shared_ptr<Family>, GCX_SM_FAMILY_STRUCTURED> families_; // by kind
    // By packed requests. Unreferenced families are removed when the map has grown.
    std::map<std::string, std::weak_ptr<Family>> structured_;
    std::size_t sweep_at_ = 2 * kRecentSplits;
    std::array<std::shared_ptr<Family>, kRecentSplits> recent_; // keeps these families alive
    std::size_t next_recent_ = 0;
    std::map<std::string, uint64_t> remembered_; // number by packed requests
    // packed requests by number; points into remembered_
    std::vector<const std::string*> remembered_requests_;
    std::optional<Priorities> priorities_;
    std::vector<uint32_t> maybe_shared_; // the SMs in all lists of note_extra_sms() so far
    CUcontext primary_ = nullptr;        // null: not retained
    unsigned long long primary_id_ = 0;
    uint64_t primary_epoch_ = 0; // counts how often it was retained
    uint32_t primary_refs_ = 0;
};

} // namespace gcx

// A device: what it is, its families of atoms, its primary context.
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

    // Compute capability 9.x: as soon as a module with dynamic parallelism is loaded, kernels of
    // every partition of the process also run on so many SMs more (cuda.h; measured on an H200).
    static constexpr uint32_t kSharedSms = 2;
    bool may_share_sms() const { return major_ == 9; }
    // Those SMs, ascending; empty while they are not known.
    std::vector<uint32_t> shared_sms();
    // Takes in the SMs that a partition's kernels were seen on, kSharedSms more than it has. The
    // shared ones are in each such list, and two disjoint partitions have nothing else in common.
    void note_extra_sms(const std::vector<uint32_t>& seen);
    void get_info(gcx_device_info& info) const;

    // The family of a kind; asks the driver for its atoms the first time. Not of the structured.
    std::shared_ptr<Family> family(gcx_sm_family kind);
    // The structured family of requests as pack_requests gives them: one for equal requests, as
    // long as anyone holds it. Asks the driver for it unless it was in use a while ago.
    std::shared_ptr<Family> structured_family(const std::string& requests);
    // A number for requests that a gcx_resource has no room for, for good: those of splits into
    // a score and more unlike groups.
    uint64_t remember_requests(const std::string& requests);
    std::string remembered_requests(uint64_t number);

    // The primary context, held while the reservation lives: gcx retains it once for all its holds.
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
        // Whether the device was not reset since.
        bool alive() const { return device_ != nullptr && device_->primary_alive(epoch_); }

      private:
        friend class Device;
        Device* device_ = nullptr;
        uint64_t epoch_ = 0;
        CUcontext context_ = nullptr;
    };
    PrimaryContextRef retain_primary();
    // Returns the bytes of its memory that are free; nothing if the driver refuses to say. Breaks
    // no capture.
    std::optional<uint64_t> free_memory(const PrimaryContextRef& primary) const;

    // The priorities that streams can have: lower numbers are more urgent. Asked of the driver
    // once, which wants the primary context for it.
    struct Priorities {
        int least = 0;
        int greatest = 0;
    };
    Priorities stream_priorities();
    // The priority that the driver gives a stream which is asked for with this one.
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
    std::array<std::shared_ptr<Family>, GCX_SM_FAMILY_STRUCTURED> families_; // by kind; kept
    // By requests. What nobody holds is swept out when many have come.
    std::map<std::string, std::weak_ptr<Family>> structured_;
    std::size_t sweep_at_ = 2 * kRecentSplits;
    std::array<std::shared_ptr<Family>, kRecentSplits> recent_; // so that these aren't asked again
    std::size_t next_recent_ = 0;
    std::map<std::string, uint64_t> remembered_;          // numbers, by requests
    std::vector<const std::string*> remembered_requests_; // by number; the map's own
    std::optional<Priorities> priorities_;
    std::vector<uint32_t> maybe_shared_; // in every list of note_extra_sms
    CUcontext primary_ = nullptr;        // null: not retained
    unsigned long long primary_id_ = 0;
    uint64_t primary_epoch_ = 0; // counts the times it was retained
    uint32_t primary_refs_ = 0;
};

} // namespace gcx

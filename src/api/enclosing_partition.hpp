// The partition in which `gcx exec` runs this process, if any. The process sees the partition as
// its device, and divides the partition's reservation, as other processes in it do. Reservations
// are therefore planned in atoms of the whole device and used in atoms of the partition.
#pragma once

#include "core/device.hpp"
#include "interpose/exec_plan.hpp"

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace gcx {

class EnclosingPartition {
  public:
    // driver is the one that this process uses.
    explicit EnclosingPartition(const Driver& driver) : driver_(driver) {}

    // One device of the partition.
    struct Part {
        const interpose::DevicePart* plan; // has a token
        Device* whole;                     // the device outside of the partition
        // The partition's family, for the whole device and for the partition.
        std::shared_ptr<Family> outside;
        std::shared_ptr<Family> inside;
        // For each atom of the whole device the atoms of the partition with the same SMs; empty if
        // they are unknown or outside of the partition.
        std::vector<AtomSet> counterparts;

        // Returns the atoms of the whole device that this process can use.
        AtomSet usable() const;
        AtomSet to_inside(const AtomSet& atoms) const;
        bool is_usable(const AtomSet& atoms) const { return (atoms - usable()).empty(); }
    };
    // Returns null if no `gcx exec` reserved SMs of this device for the process.
    const Part* find(Device& device);

  private:
    void open();

    const Driver& driver_;
    std::mutex mutex_; // guards the members below
    bool opened_ = false;
    std::optional<interpose::Plan> plan_;
    std::unique_ptr<const Driver> whole_driver_; // null: driver_ shows the whole devices
    std::vector<std::unique_ptr<Device>> devices_;
    std::vector<std::unique_ptr<Part>> parts_; // by ordinal; null: none
};

} // namespace gcx

// The `gcx exec` that this process runs in, if any. This process sees a partition as the device;
// what it reserves is a part of the partition's reservation, in which other processes have parts
// too. So it is planned in the atoms of the whole device, and used in those of the partition.
#pragma once

#include "core/device.hpp"
#include "interpose/exec_plan.hpp"

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace gcx {

class Around {
  public:
    // The driver of this process.
    explicit Around(const Driver& driver) : driver_(driver) {}

    // A device of the partition.
    struct Part {
        const interpose::DevicePart* plan; // with a token
        Device* whole;                     // as it is outside the partition
        // The family of the partition on both, and of each atom of the whole those in the
        // partition that are the same SMs; none: unknown, or it isn't the partition's.
        std::shared_ptr<Family> outside;
        std::shared_ptr<Family> inside;
        std::vector<AtomSet> counterparts;

        // What can be used in this process.
        AtomSet usable() const;
        AtomSet to_inside(const AtomSet& atoms) const;
        bool is_usable(const AtomSet& atoms) const { return (atoms - usable()).empty(); }
    };
    // Of a device of this process. Null if no reservation keeps the device for a gcx exec around.
    const Part* find(Device& device);

  private:
    void open();

    const Driver& driver_;
    std::mutex mutex_; // guards what follows
    bool opened_ = false;
    std::optional<interpose::Plan> plan_;
    std::unique_ptr<const Driver> own_; // null: driver_ shows the whole devices
    std::vector<std::unique_ptr<Device>> devices_;
    std::vector<std::unique_ptr<Part>> parts_; // by ordinal; null: none
};

} // namespace gcx

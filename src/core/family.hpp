// A family: the atoms that one split of a device gives, and the native resources of a set of them.
#pragma once

#include "base/atom_set.hpp"
#include "driver/driver.hpp"

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace gcx {

// The SM ids of each atom.
using SmMap = std::vector<std::vector<uint32_t>>;

// "max-cluster", for messages.
const char* family_name(gcx_sm_family kind);

// How a family splits its device.
struct FamilyRequest {
    gcx_sm_family kind;
    uint32_t atom_sm_count; // group size to ask the driver for
    uint32_t min_sm_count;  // a smaller device cannot be split
};

// Identifies a structured split of a device by content: a 128-bit hash of its requests.
using SplitId = std::array<uint64_t, 2>;
SplitId split_id(std::span<const cu::SmGroupParams> requests);

class Family {
  public:
    // Splits by cuDevSmResourceSplitByCount, in one of three kinds.
    Family(const Driver& driver, CUdevice device, const FamilyRequest& request);
    // Splits by cuDevSmResourceSplit. The atoms are the groups and the remainder.
    Family(const Driver& driver, CUdevice device, std::span<const cu::SmGroupParams> requests);

    gcx_sm_family kind() const { return kind_; }
    // Returns the id of a structured family; 0 for the others.
    const SplitId& split_id() const { return split_id_; }
    const std::vector<CUdevResource>& atoms() const { return atoms_; }

    // Returns the sizes of the atoms. A structured family has an empty shape, because each atom has
    // its own size.
    const AtomShape& shape() const { return shape_; }
    uint32_t atom_count() const { return static_cast<uint32_t>(atoms_.size()); }
    uint32_t sm_count(const AtomSet& set) const;
    // Fills in what gcx_resource_info says of a set.
    void describe(const AtomSet& set, gcx_resource_info& info) const;
    AtomSet all() const { return AtomSet::first(atoms_.size()); }

    // Returns the native resources of a set, for cuDevResourceGenerateDesc. They are one resource
    // if one is known to be the same set.
    std::vector<CUdevResource> native_resources(const AtomSet& set) const;

    // Returns whether the SMs of this driver's resources are known.
    bool reads_sms() const { return masks_known_; }
    // Returns the set whose atoms are the SMs of a resource of the driver, or nothing if there is
    // none.
    std::optional<AtomSet> find(const CUdevResource& native) const;

    // Returns whether the driver makes a context of a set according to cuda.h. Before 13.1 it does
    // so of any set.
    bool can_make_context(const AtomSet& set) const;

    // Returns for each of these atoms the atoms of part that are the same SMs, or an empty set if
    // that is not certain. part is the split of a green context over these atoms, which the driver
    // may divide in another order or into other sizes.
    std::vector<AtomSet> find_in(const Family& part, const AtomSet& atoms) const;

    // Returns null until the probe has read the map, which then never changes.
    const SmMap* sm_map() const { return sm_map_.load(std::memory_order_acquire); }
    void set_sm_map(SmMap map);

  private:
    void split_into_atoms(CUdevice device, uint32_t atom_sm_count);
    void describe_structured(const AtomSet& set, gcx_resource_info& info) const;
    std::optional<CUdevResource> remainder_after(uint32_t units) const;

    const Driver& driver_;
    gcx_sm_family kind_;
    SplitId split_id_{};
    CUdevResource device_resource_{};
    std::vector<CUdevResource> atoms_;
    AtomShape shape_;
    uint32_t split_flags_ = 0;
    bool masks_known_ = false;
    std::unique_ptr<const SmMap> sm_map_storage_;
    std::atomic<const SmMap*> sm_map_{nullptr};
};

// Returns the atoms of a family that have SMs in common with atoms of another, or nothing if that
// is not known.
std::optional<AtomSet> atoms_meeting(const Family& family, const Family& other,
                                     const AtomSet& atoms);

// Returns those of atoms that have SMs in common with others, which are of another family. Returns
// all of them if that is not known because a family was not mapped.
AtomSet atoms_touched(const std::shared_ptr<Family>& family, const AtomSet& atoms,
                      const std::shared_ptr<Family>& other, const AtomSet& others);

} // namespace gcx

// A family: the atoms of one split of a device, and how a set of them becomes what the
// driver makes a context of.
#pragma once

#include "core/atom_set.hpp"
#include "driver/driver.hpp"

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace gcx {

// Which SMs each atom holds, by atom.
using SmMap = std::vector<std::vector<uint32_t>>;

// "max-cluster", for messages.
const char* family_name(gcx_sm_family kind);

// What a family's atoms are to be.
struct FamilyRequest {
    gcx_sm_family kind;
    uint32_t atom_sm_count; // SMs of an atom: the driver is asked for groups of as many
    uint32_t min_sm_count;  // SMs: the driver makes no group on a device that has fewer
};

class Family {
  public:
    // The atoms that cuDevSmResourceSplitByCount gives in one of the three kinds.
    Family(const Driver& driver, CUdevice device, const FamilyRequest& request);
    // The groups and the remainder of cuDevSmResourceSplit, by requests as pack_requests gives
    // them.
    Family(const Driver& driver, CUdevice device, const std::string& requests);

    gcx_sm_family kind() const { return kind_; }
    // Of the structured family: what it was made of; else empty.
    const std::string& requests() const { return requests_; }
    const std::vector<CUdevResource>& atoms() const { return atoms_; }

    // Sizes. Of the structured family each atom has its own size and shape() is empty.
    const AtomShape& shape() const { return shape_; }
    uint32_t atom_count() const { return static_cast<uint32_t>(atoms_.size()); }
    uint32_t sm_count(const AtomSet& set) const;
    // Fills in what gcx_resource_info says of a set of these atoms.
    void describe(const AtomSet& set, gcx_resource_info& info) const;
    AtomSet all() const { return AtomSet::first(atoms_.size()); }

    // The native resources of a set, for cuDevResourceGenerateDesc: a single one where one is known
    // to be the same set.
    std::vector<CUdevResource> native_resources(const AtomSet& set) const;

    // Whether the driver makes a context of a set, as far as its header says; of any, before 13.1.
    bool can_make_context(const AtomSet& set) const;

    // For each of these atoms the atoms of another family that are the same SMs, by atom; none
    // where that isn't certain. part is what a green context of these atoms is split into: the
    // driver may divide them in another order, or otherwise.
    std::vector<AtomSet> find_in(const Family& part, const AtomSet& atoms) const;

    // Null until the probe has read it. Set once, never changed.
    const SmMap* sm_map() const { return sm_map_.load(std::memory_order_acquire); }
    void set_sm_map(SmMap map);

  private:
    void split_into_atoms(uint32_t atom_sm_count);
    void describe_structured(const AtomSet& set, gcx_resource_info& info) const;
    std::optional<CUdevResource> remainder_after(uint32_t units) const;

    const Driver& driver_;
    gcx_sm_family kind_;
    std::string requests_;
    CUdevResource device_resource_{};
    std::vector<CUdevResource> atoms_;
    AtomShape shape_;
    uint32_t split_flags_ = 0;
    bool masks_known_ = false;
    std::unique_ptr<const SmMap> owned_map_;
    std::atomic<const SmMap*> sm_map_{nullptr};
};

// The atoms of a family whose SMs are among those of atoms of another; nothing if that isn't known.
std::optional<AtomSet> atoms_meeting(const Family& family, const Family& other,
                                     const AtomSet& atoms);

// The atoms of a family that have SMs in common with these atoms of another; all if that isn't
// known, as between families that were not mapped.
AtomSet atoms_touched(const std::shared_ptr<Family>& family, const AtomSet& atoms,
                      const std::shared_ptr<Family>& other, const AtomSet& others);

} // namespace gcx

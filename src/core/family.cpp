#include "core/family.hpp"

namespace gcx {
namespace {

CUdevResource query_device(const Driver& driver, CUdevice device) {
    CUdevResource resource{};
    GCX_CALL(driver, cuDeviceGetDevResource, device, &resource, cu::kResourceSm);
    return resource;
}

uint32_t sms_of(const CUdevResource& resource) {
    return resource.type == cu::kResourceSm ? cu::get_fields<cu::SmFields>(resource).sm_count : 0;
}

unsigned flags_of(gcx_sm_family kind) {
    switch (kind) {
    case GCX_SM_FAMILY_FINE:
        return cu::kSplitIgnoreCoscheduling;
    case GCX_SM_FAMILY_MAX_CLUSTER:
        return cu::kSplitMaxClusterSize;
    default:
        return 0;
    }
}

void refuse_too_many(std::size_t atoms) {
    if (atoms > AtomSet::kCapacity)
        fail(GCX_ERROR_NOT_SUPPORTED,
             format("the device has %zu atoms; this version of gcx knows %zu", atoms,
                    AtomSet::kCapacity));
}

} // namespace

Family::Family(const Driver& driver, CUdevice device, gcx_sm_family kind, uint32_t least)
    : driver_(driver), kind_(kind), device_resource_(query_device(driver, device)),
      split_flags_(flags_of(kind)) {
    // With no room for groups the driver says how many it would give.
    unsigned groups = 0;
    GCX_CALL(driver, cuDevSmResourceSplitByCount, nullptr, &groups, &device_resource_, nullptr,
             split_flags_, least);
    refuse_too_many(std::size_t{groups} + 1);
    atoms_.resize(groups);
    CUdevResource remainder{};
    GCX_CALL(driver, cuDevSmResourceSplitByCount, atoms_.data(), &groups, &device_resource_,
             &remainder, split_flags_, least);
    atoms_.resize(groups);
    if (groups == 0)
        fail(GCX_ERROR_INVALID_RESOURCE_CONFIGURATION,
             "the driver splits the device into no group");
    shape_ = {groups, sms_of(atoms_.front()), sms_of(remainder)};
    if (shape_.odd_size != 0)
        atoms_.push_back(remainder);
}

Family::Family(const Driver& driver, CUdevice device, std::vector<cu::SmGroupParams> groups)
    : driver_(driver), kind_(GCX_SM_FAMILY_STRUCTURED), asked_(groups),
      device_resource_(query_device(driver, device)) {
    refuse_too_many(groups.size() + 1);
    atoms_.resize(groups.size());
    CUdevResource remainder{};
    GCX_CALL(driver, cuDevSmResourceSplit, atoms_.data(), static_cast<unsigned>(groups.size()),
             &device_resource_, &remainder, 0, groups.data());
    if (sms_of(remainder) != 0)
        atoms_.push_back(remainder);
}

uint32_t Family::sm_count(const AtomSet& set) const {
    if (kind_ != GCX_SM_FAMILY_STRUCTURED)
        return shape_.sm_count(set);
    uint32_t total = 0;
    set.for_each([&](std::size_t atom) { total += sms_of(atoms_[atom]); });
    return total;
}

void Family::describe_atom(const AtomSet& set, gcx_resource_info& info) const {
    set.for_each([&](std::size_t atom) {
        const auto fields = cu::get_fields<cu::SmFields>(atoms_[atom]);
        info.min_partition_size = fields.sm_count; // it can't be split further
        info.coscheduled_alignment = fields.coscheduled_alignment;
        info.flags = fields.flags;
        info.locality_domain_id = fields.locality_domain_id;
    });
}

// What the driver leaves after the first units atoms. Asked for fewer groups, it gives the same
// first ones (measured for every number of groups in all three kinds, see docs/measurements.md),
// so this is exactly the other atoms.
CUdevResource Family::rest_after(uint32_t units) const {
    std::vector<CUdevResource> groups(units);
    unsigned count = units;
    CUdevResource remainder{};
    GCX_CALL(driver_, cuDevSmResourceSplitByCount, groups.data(), &count, &device_resource_,
             &remainder, split_flags_, shape_.unit_size);
    if (count != units)
        fail(GCX_ERROR_INVALID_RESOURCE_CONFIGURATION,
             format("the driver split off %u groups of %u SMs where it had given %u before", count,
                    shape_.unit_size, shape_.unit_count));
    return remainder;
}

std::vector<CUdevResource> Family::realise(const AtomSet& set) const {
    if (set == all())
        return {device_resource_};
    const bool with_odd = kind_ != GCX_SM_FAMILY_STRUCTURED && shape_.odd_size != 0 &&
                          set.contains(shape_.unit_count);
    if (with_odd) {
        // A set that runs up to the last atom is what a direct split leaves: one resource, which
        // every driver takes, and which allows larger clusters than its atoms put together.
        const auto units = static_cast<uint32_t>(set.count()) - 1;
        const uint32_t before = shape_.unit_count - units;
        if (set == all() - AtomSet::first(before))
            return {rest_after(before)};
    }
    if (set.count() > 1 && (with_odd || kind_ == GCX_SM_FAMILY_STRUCTURED) &&
        driver_.has(GCX_CAPABILITY_STRUCTURED_SPLIT)) {
        // From 13.1 on the header wants one smCoscheduledAlignment in a descriptor, which a
        // remainder does not share with the groups, nor groups that were asked for differently.
        const uint32_t alignment = cu::get_fields<cu::SmFields>(atoms_[0]).coscheduled_alignment;
        bool same = true;
        set.for_each([&](std::size_t atom) {
            same = same &&
                   cu::get_fields<cu::SmFields>(atoms_[atom]).coscheduled_alignment == alignment;
        });
        if (!same)
            fail(GCX_ERROR_NOT_SUPPORTED,
                 format(
                     "a driver of CUDA %s allows no context of %u SMs that are atoms of different "
                     "alignment; keep the odd atom together with the last ones, as gcx_sm_split "
                     "does",
                     version_text(driver_.version()).c_str(), sm_count(set)));
    }
    std::vector<CUdevResource> native;
    set.for_each([&](std::size_t atom) { native.push_back(atoms_[atom]); });
    return native;
}

void Family::set_sm_map(SmMap map) {
    owned_map_ = std::make_unique<const SmMap>(std::move(map));
    sm_map_.store(owned_map_.get(), std::memory_order_release);
}

} // namespace gcx

#include "core/family.hpp"

#include <array>
#include <bit>
#include <cstring>

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

// The part of the struct that is the driver's own. From its first byte on it holds a mask of
// the resource's SMs (seen on a driver of CUDA 13.0, docs/measurements.md). Only ever compared.
class Private {
  public:
    Private() = default;
    explicit Private(const CUdevResource& resource) {
        std::memcpy(words_.data(), reinterpret_cast<const char*>(&resource) + kOffset,
                    sizeof words_);
    }
    bool operator==(const Private&) const = default;
    Private operator|(const Private& other) const {
        Private both;
        for (std::size_t i = 0; i < words_.size(); i++)
            both.words_[i] = words_[i] | other.words_[i];
        return both;
    }
    // Whether the masks have a bit in common.
    bool meets(const Private& other) const {
        uint64_t common = 0;
        for (std::size_t i = 0; i < kMaskWords; i++)
            common |= words_[i] & other.words_[i];
        return common != 0;
    }
    // Whether the mask has a bit for each SM, or for each pair of them.
    bool counts(uint32_t sms) const {
        uint32_t bits = 0;
        for (std::size_t i = 0; i < kMaskWords; i++)
            bits += static_cast<uint32_t>(std::popcount(words_[i]));
        return bits == sms || bits * 2 == sms;
    }

  private:
    static constexpr std::size_t kOffset = 24;
    static constexpr std::size_t kMaskWords = 4;
    std::array<uint64_t, (cu::kResourceUnionOffset - kOffset) / sizeof(uint64_t)> words_{};
};

// Whether this driver keeps masks there: each atom but the odd one has as many bits as it
// should, and no two atoms share one. (Part of the odd one's SMs are noted elsewhere.)
bool masks_are_known(const std::vector<CUdevResource>& atoms, uint32_t units) {
    Private all;
    for (std::size_t i = 0; i < atoms.size(); i++) {
        const Private part(atoms[i]);
        if (part.meets(all) || (i < units && !part.counts(sms_of(atoms[i]))))
            return false;
        all = all | part;
    }
    return true;
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
    masks_known_ = masks_are_known(atoms_, shape_.unit_count);
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

// What the driver leaves when it splits off that many groups of the atoms' size, if it is exactly
// the atoms after the first so many. That it is can't be taken for granted: asked for fewer groups
// of 24 for the largest clusters, an H200 gives others than the first ones. So the driver's own
// masks are compared.
std::optional<CUdevResource> Family::rest_after(uint32_t units) const {
    std::vector<CUdevResource> groups(units);
    unsigned count = units;
    CUdevResource remainder{};
    GCX_CALL(driver_, cuDevSmResourceSplitByCount, groups.data(), &count, &device_resource_,
             &remainder, split_flags_, shape_.unit_size);
    Private expected;
    for (std::size_t atom = units; atom < atoms_.size(); atom++)
        expected = expected | Private(atoms_[atom]);
    if (count != units || !masks_known_ || Private(remainder) != expected)
        return std::nullopt;
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
        if (set == all() - AtomSet::first(before)) {
            if (const auto rest = rest_after(before))
                return {*rest};
        }
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

#include "core/family.hpp"

#include "base/error.hpp"
#include "base/log.hpp"

#include <algorithm>
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

// The driver's private part of the struct. It begins with a mask of the resource's SMs, and some SMs
// have their bits in its last word instead, as seen on a driver of CUDA 13.0
// (docs/measurements/log.md). Masks are only compared.
class DriverMask {
  public:
    DriverMask() = default;
    explicit DriverMask(const CUdevResource& resource) {
        std::memcpy(words_.data(), reinterpret_cast<const char*>(&resource) + kOffset,
                    sizeof words_);
    }
    bool operator==(const DriverMask&) const = default;
    DriverMask operator|(const DriverMask& other) const {
        DriverMask both;
        for (std::size_t i = 0; i < words_.size(); i++)
            both.words_[i] = words_[i] | other.words_[i];
        return both;
    }
    // Returns whether the masks have a bit in common.
    bool meets(const DriverMask& other) const {
        const SmBits own = sms();
        const SmBits others = other.sms();
        uint64_t common = 0;
        for (std::size_t i = 0; i < own.size(); i++)
            common |= own[i] & others[i];
        return common != 0;
    }
    bool empty() const { return sms() == SmBits{}; }
    // Unlike ==, ignores what is not the SMs.
    bool has_same_sms(const DriverMask& other) const { return sms() == other.sms(); }
    // Returns whether the mask has one bit per SM or per pair of SMs.
    bool counts(uint32_t sm_count) const {
        uint32_t bits = 0;
        for (const uint64_t word : sms())
            bits += static_cast<uint32_t>(std::popcount(word));
        return bits == sm_count || bits * 2 == sm_count;
    }

  private:
    using SmBits = std::array<uint64_t, 5>;
    SmBits sms() const {
        constexpr uint64_t kSmsInLastWord = 0xffff;
        return {words_[0], words_[1], words_[2], words_[3], words_.back() & kSmsInLastWord};
    }
    static constexpr std::size_t kOffset = 24;
    std::array<uint64_t, (cu::kResourceUnionOffset - kOffset) / sizeof(uint64_t)> words_{};
};

// Returns whether this driver stores masks there: each atom has as many bits as it should, and no
// two atoms share one.
bool masks_are_known(const std::vector<CUdevResource>& atoms) {
    DriverMask all;
    for (const CUdevResource& atom : atoms) {
        const DriverMask part(atom);
        if (part.meets(all) || !part.counts(sms_of(atom)))
            return false;
        all = all | part;
    }
    return true;
}

// Returns the mask of a resource. That of a context has none, but what is split from it has. The
// driver refuses to split what it did not return.
DriverMask mask_of(const Driver& driver, const CUdevResource& native) {
    DriverMask mask(native);
    if (!mask.empty())
        return mask;
    constexpr unsigned kCount = 2;
    const auto split = [&](CUdevResource* parts, unsigned& count, CUdevResource* remainder) {
        return driver.cuDevSmResourceSplitByCount(parts, &count, &native, remainder,
                                                  cu::kSplitIgnoreCoscheduling,
                                                  kCount) == CUDA_SUCCESS;
    };
    unsigned count = 0;
    if (!split(nullptr, count, nullptr))
        return mask;
    std::vector<CUdevResource> parts(count);
    CUdevResource remainder{};
    if (!split(parts.data(), count, &remainder))
        return mask;
    parts.push_back(remainder);
    for (const CUdevResource& part : parts)
        mask = mask | DriverMask(part);
    return mask;
}

void refuse_too_many(std::size_t atoms) {
    if (atoms > AtomSet::kCapacity)
        fail(GCX_ERROR_NOT_SUPPORTED,
             format("the device would have %zu atoms; this version of gcx knows %zu", atoms,
                    AtomSet::kCapacity));
}

constexpr const char* kStructuredSplit = "cuDevSmResourceSplit";

// Splits by the first count requests. Takes a copy of them, because the driver fills in counts.
CUresult split_structured(const Driver& driver, const CUdevResource& device,
                          std::vector<cu::SmGroupParams> requests, std::size_t count,
                          std::vector<CUdevResource>& groups, CUdevResource& remainder) {
    groups.resize(count);
    return driver.cuDevSmResourceSplit(groups.data(), static_cast<unsigned>(count), &device,
                                       &remainder, 0, requests.data());
}

std::string describe(const cu::SmGroupParams& request) {
    std::string text =
        request.sm_count != 0 ? format("%u SMs", request.sm_count) : "the SMs that are left";
    if (request.coscheduled_sm_count != 0)
        text += format(", %u coscheduled", request.coscheduled_sm_count);
    if (request.preferred_coscheduled_sm_count != 0)
        text += format(", %u preferred", request.preferred_coscheduled_sm_count);
    if (request.flags != 0)
        text += format(", flags %#x", request.flags);
    if (request.locality_domain_id != 0)
        text += format(", locality domain %u", request.locality_domain_id);
    return text;
}

// The driver does not report which request it refuses, so a binary search finds it.
[[noreturn]] void refuse_structured(const Driver& driver, const CUdevResource& device,
                                    const std::vector<cu::SmGroupParams>& requests,
                                    CUresult result) {
    std::size_t good = 0;
    std::size_t bad = requests.size();
    while (bad - good > 1) {
        const std::size_t middle = good + (bad - good) / 2;
        std::vector<CUdevResource> groups;
        CUdevResource remainder{};
        const bool splits =
            split_structured(driver, device, requests, middle, groups, remainder) == CUDA_SUCCESS;
        (splits ? good : bad) = middle;
    }
    uint64_t before = 0;
    for (std::size_t i = 0; i < good; i++)
        before += requests[i].sm_count;
    fail(static_cast<gcx_result>(result),
         format("request %zu: %s can't be split off: the requests before it ask for %llu of the "
                "%u SMs, and a structured split rounds nothing; %s",
                good, describe(requests[good]).c_str(), static_cast<unsigned long long>(before),
                sms_of(device), driver.describe(result, kStructuredSplit).c_str()));
}

} // namespace

const char* family_name(gcx_sm_family kind) {
    static constexpr const char* kNames[] = {"no", "coscheduled", "fine", "max-cluster",
                                             "structured"};
    return kNames[kind];
}

Family::Family(const Driver& driver, CUdevice device, const FamilyRequest& request)
    : driver_(driver), kind_(request.kind), device_resource_(query_device(driver, device)),
      split_flags_(flags_of(request.kind)) {
    const uint32_t sms = sms_of(device_resource_);
    if (sms < request.min_sm_count) { // a small MIG slice is a single atom
        atoms_ = {device_resource_};
        shape_ = {1, sms, 0};
        return;
    }
    split_into_atoms(device, request.atom_sm_count);
    masks_known_ = masks_are_known(atoms_);
}

void Family::split_into_atoms(CUdevice device, uint32_t atom_sm_count) {
    // Without an array for groups, the driver reports how many it would give.
    unsigned groups = 0;
    GCX_CALL(driver_, cuDevSmResourceSplitByCount, nullptr, &groups, &device_resource_, nullptr,
             split_flags_, atom_sm_count);
    refuse_too_many(std::size_t{groups} + 1);
    atoms_.resize(groups);
    CUdevResource remainder{};
    GCX_CALL(driver_, cuDevSmResourceSplitByCount, atoms_.data(), &groups, &device_resource_,
             &remainder, split_flags_, atom_sm_count);
    atoms_.resize(groups);
    const std::string limit = mps_limit_of(driver_, device, groups != 0);
    if (groups == 0)
        fail(GCX_ERROR_INVALID_RESOURCE_CONFIGURATION,
             limit.empty()
                 ? format(
                       "the driver splits the %u SMs of the device into no group of the %s family",
                       sms_of(device_resource_), family_name(kind_))
                 : format("MPS limits this process to %u SMs, which the driver does not split: %s",
                          sms_of(device_resource_), limit.c_str()));
    if (!limit.empty())
        log::write(GCX_LOG_WARNING,
                   format("MPS limits this process to a part of the SMs, which other processes may "
                          "have too: %s",
                          limit.c_str()));
    shape_ = {groups, sms_of(atoms_.front()), sms_of(remainder)};
    if (shape_.remainder_size != 0)
        atoms_.push_back(remainder);
}

SplitId split_id(std::span<const cu::SmGroupParams> requests) {
    // Two multiply-xorshift hashes with different odd multipliers.
    SplitId id = {0x243f6a8885a308d3U, 0x13198a2e03707344U};
    const auto add = [&](uint64_t value) {
        id[0] = (id[0] ^ value) * 0x9e3779b97f4a7c15U;
        id[0] ^= id[0] >> 29;
        id[1] = (id[1] ^ value) * 0xd6e8feb86659fd93U;
        id[1] ^= id[1] >> 32;
    };
    for (const cu::SmGroupParams& request : requests) {
        add(uint64_t{request.sm_count} << 32 | request.coscheduled_sm_count);
        add(uint64_t{request.preferred_coscheduled_sm_count} << 32 | request.flags);
        add(request.locality_domain_id);
    }
    return id;
}

Family::Family(const Driver& driver, CUdevice device, std::span<const cu::SmGroupParams> requests)
    : driver_(driver), kind_(GCX_SM_FAMILY_STRUCTURED), split_id_(gcx::split_id(requests)),
      device_resource_(query_device(driver, device)) {
    const std::vector<cu::SmGroupParams> requested(requests.begin(), requests.end());
    refuse_too_many(requested.size() + 1);
    CUdevResource remainder{};
    const CUresult result =
        split_structured(driver, device_resource_, requested, requested.size(), atoms_, remainder);
    if (result == CUDA_ERROR_INVALID_VALUE || result == CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION)
        refuse_structured(driver, device_resource_, requested, result);
    driver.check(result, kStructuredSplit);
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

void Family::describe(const AtomSet& set, gcx_resource_info& info) const {
    info.family = kind_;
    info.sm_count = sm_count(set);
    info.atom_count = static_cast<uint32_t>(set.count());
    if (kind_ == GCX_SM_FAMILY_STRUCTURED) {
        describe_structured(set, info);
        return;
    }
    const bool has_remainder = shape_.remainder_size != 0 && set.contains(shape_.unit_count);
    const bool remainder_only = has_remainder && info.atom_count == 1;
    info.coscheduled_alignment = remainder_only ? shape_.remainder_size : shape_.unit_size;
    info.min_partition_size = info.coscheduled_alignment;
    if (has_remainder)
        info.min_partition_size = std::min(info.min_partition_size, shape_.remainder_size);
    if (info.atom_count == 0)
        info.min_partition_size = 0;
}

// A structured group cannot be split further, so its minimum is all of it. So is its step if the
// driver reports none.
void Family::describe_structured(const AtomSet& set, gcx_resource_info& info) const {
    info.min_partition_size = info.sm_count;
    uint32_t step = sms_of(device_resource_);
    set.for_each([&](std::size_t atom) {
        const auto fields = cu::get_fields<cu::SmFields>(atoms_[atom]);
        if (fields.coscheduled_alignment != 0)
            step = std::min(step, fields.coscheduled_alignment);
        if (info.atom_count == 1) {
            info.flags = fields.flags;
            info.locality_domain_id = fields.locality_domain_id;
        }
    });
    info.coscheduled_alignment = step;
}

// Returns what the driver leaves when it splits off that many unit atoms, if that is exactly the
// atoms behind them. It need not be: if fewer groups of 24 SMs for the largest clusters are
// requested, an H200 returns other groups than the first ones. Only the driver's masks show that.
std::optional<CUdevResource> Family::remainder_after(uint32_t units) const {
    std::vector<CUdevResource> groups(units);
    unsigned count = units;
    CUdevResource remainder{};
    GCX_CALL(driver_, cuDevSmResourceSplitByCount, groups.data(), &count, &device_resource_,
             &remainder, split_flags_, shape_.unit_size);
    DriverMask expected;
    for (std::size_t atom = units; atom < atoms_.size(); atom++)
        expected = expected | DriverMask(atoms_[atom]);
    if (count != units || !masks_known_ || DriverMask(remainder) != expected)
        return std::nullopt;
    return remainder;
}

std::vector<CUdevResource> Family::native_resources(const AtomSet& set) const {
    if (set == all())
        return {device_resource_};
    const bool with_remainder = kind_ != GCX_SM_FAMILY_STRUCTURED && shape_.remainder_size != 0 &&
                                set.contains(shape_.unit_count);
    if (with_remainder) {
        // A set that runs up to the last atom is what a direct split leaves. That is one resource,
        // which every driver accepts and which allows larger clusters than its atoms put together.
        const auto units = static_cast<uint32_t>(set.count()) - 1;
        const uint32_t before = shape_.unit_count - units;
        if (set == all() - AtomSet::first(before)) {
            if (const auto rest = remainder_after(before))
                return {*rest};
        }
    }
    std::vector<CUdevResource> native;
    set.for_each([&](std::size_t atom) { native.push_back(atoms_[atom]); });
    return native;
}

std::optional<AtomSet> Family::find(const CUdevResource& native) const {
    if (sms_of(native) == sms_of(device_resource_))
        return all();
    if (!masks_known_)
        return std::nullopt;
    const DriverMask mask = mask_of(driver_, native);
    AtomSet found;
    DriverMask together;
    for (std::size_t atom = 0; atom < atoms_.size(); atom++) {
        const DriverMask part(atoms_[atom]);
        if (part.meets(mask)) {
            found.add(atom);
            together = together | part;
        }
    }
    if (!together.has_same_sms(mask) || sm_count(found) != sms_of(native))
        return std::nullopt;
    return found;
}

bool Family::can_make_context(const AtomSet& set) const {
    const bool with_remainder = shape_.remainder_size != 0 && set.contains(shape_.unit_count);
    if (!with_remainder || !driver_.has(GCX_CAPABILITY_STRUCTURED_SPLIT))
        return true;
    // cuda.h requires one alignment in a descriptor. Below compute capability 9.0 all atoms have
    // the same.
    const auto alignment = [&](std::size_t atom) {
        return cu::get_fields<cu::SmFields>(atoms_[atom]).coscheduled_alignment;
    };
    if (alignment(shape_.unit_count) == alignment(0))
        return true;
    return set == all() - AtomSet::first(atom_count() - set.count());
}

std::vector<AtomSet> Family::find_in(const Family& part, const AtomSet& atoms) const {
    std::vector<AtomSet> found(atoms_.size());
    if (atoms.count() == 1 && part.sm_count(part.all()) == sm_count(atoms)) {
        atoms.for_each([&](std::size_t atom) { found[atom] = part.all(); });
        return found;
    }
    if (!masks_known_ || !part.masks_known_)
        return found;
    AtomSet unclear;
    part.all().for_each([&](std::size_t piece) {
        const DriverMask mask(part.atoms_[piece]);
        std::vector<std::size_t> met;
        atoms.for_each([&](std::size_t atom) {
            if (DriverMask(atoms_[atom]).meets(mask))
                met.push_back(atom);
        });
        if (met.size() == 1)
            found[met.front()].add(piece);
        else
            std::for_each(met.begin(), met.end(), [&](std::size_t atom) { unclear.add(atom); });
    });
    atoms.for_each([&](std::size_t atom) {
        if (unclear.contains(atom) || part.sm_count(found[atom]) != sms_of(atoms_[atom]))
            found[atom] = {};
    });
    return found;
}

void Family::set_sm_map(SmMap map) {
    sm_map_storage_ = std::make_unique<const SmMap>(std::move(map));
    sm_map_.store(sm_map_storage_.get(), std::memory_order_release);
}

std::optional<AtomSet> atoms_meeting(const Family& family, const Family& other,
                                     const AtomSet& atoms) {
    if (&family == &other)
        return atoms;
    const SmMap* const own_map = family.sm_map();
    const SmMap* const other_map = other.sm_map();
    if (own_map == nullptr || other_map == nullptr)
        return std::nullopt;
    std::vector<bool> has_sm(GCX_MAX_SMS, false);
    atoms.for_each([&](std::size_t atom) {
        for (const uint32_t sm : (*other_map)[atom])
            has_sm[sm] = true;
    });
    AtomSet found;
    family.all().for_each([&](std::size_t atom) {
        const std::vector<uint32_t>& sms = (*own_map)[atom];
        if (std::any_of(sms.begin(), sms.end(), [&](uint32_t sm) { return has_sm[sm]; }))
            found.add(atom);
    });
    return found;
}

AtomSet atoms_touched(const std::shared_ptr<Family>& family, const AtomSet& atoms,
                      const std::shared_ptr<Family>& other, const AtomSet& others) {
    if (family == other)
        return atoms & others;
    if (others.empty())
        return {};
    const auto found = atoms_meeting(*family, *other, others);
    return found ? atoms & *found : atoms;
}

} // namespace gcx

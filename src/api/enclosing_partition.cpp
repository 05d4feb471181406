#include "api/enclosing_partition.hpp"

#include "base/error.hpp"
#include "interpose/stub_library.hpp"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace gcx {
namespace {

// gcx exec itself opens the driver behind the stub library.
bool is_behind_stub_library(const Driver& driver) {
    return std::string_view(driver.choice()).starts_with(interpose::kRealPrefix);
}

// Returns null if the driver does not show a partition.
const char* plan_text(const Driver& driver) {
    if (is_behind_stub_library(driver))
        return std::getenv(interpose::kPlanVariable);
    const link_map* map = nullptr;
    return dlinfo(driver.handle(), RTLD_DI_LINKMAP, &map) == 0 && map != nullptr
               ? interpose::stub_library_plan(map->l_ld, map->l_addr)
               : nullptr;
}

AtomSet set_of(const std::vector<uint32_t>& atoms) {
    AtomSet set;
    for (const uint32_t atom : atoms)
        set.add(atom);
    return set;
}

} // namespace

AtomSet EnclosingPartition::Part::usable() const {
    AtomSet set;
    for (std::size_t atom = 0; atom < counterparts.size(); atom++) {
        if (!counterparts[atom].empty())
            set.add(atom);
    }
    return set;
}

AtomSet EnclosingPartition::Part::to_inside(const AtomSet& atoms) const {
    AtomSet set;
    atoms.for_each([&](std::size_t atom) { set = set | counterparts[atom]; });
    return set;
}

void EnclosingPartition::open() {
    const char* const text = plan_text(driver_);
    if (text == nullptr)
        return;
    try {
        plan_ = interpose::read_plan(text);
    } catch (const interpose::PlanError& error) {
        fail(GCX_ERROR_INVALID_VALUE, error.what());
    }
    if (!is_behind_stub_library(driver_))
        whole_driver_ = std::make_unique<const Driver>(interpose::kRealPrefix + plan_->driver);
}

const EnclosingPartition::Part* EnclosingPartition::find(Device& device) {
    const std::lock_guard lock(mutex_);
    if (!opened_)
        open();
    opened_ = true;
    const auto ordinal = static_cast<std::size_t>(device.ordinal());
    if (!plan_)
        return nullptr;
    parts_.resize(std::max(parts_.size(), ordinal + 1));
    if (parts_[ordinal] != nullptr)
        return parts_[ordinal].get();
    gcx_device_info info = GCX_DEVICE_INFO_INIT;
    device.get_info(info);
    const interpose::DevicePart* const named = plan_->find(info.uuid);
    if (named == nullptr || named->token.empty())
        return nullptr;
    auto part = std::make_unique<Part>();
    part->plan = named;
    part->whole = &device;
    if (whole_driver_ != nullptr) {
        devices_.push_back(std::make_unique<Device>(*whole_driver_, device.ordinal()));
        part->whole = devices_.back().get();
    }
    part->outside = part->whole->family(named->family);
    part->inside = device.family(named->family);
    const AtomSet atoms = set_of(named->atoms);
    if (part->outside->atom_count() != named->family_atoms)
        fail(GCX_ERROR_INVALID_RESOURCE_CONFIGURATION,
             format("%s has %u atoms, and had %u when gcx exec divided it: the driver or its "
                    "settings changed; start the program again",
                    device.label().c_str(), part->outside->atom_count(), named->family_atoms));
    if (whole_driver_ != nullptr) {
        part->counterparts = part->outside->find_in(*part->inside, atoms);
    } else {
        part->counterparts.resize(part->outside->atom_count());
        atoms.for_each([&](std::size_t atom) { part->counterparts[atom].add(atom); });
    }
    parts_[ordinal] = std::move(part);
    return parts_[ordinal].get();
}

} // namespace gcx

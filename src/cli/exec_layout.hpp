// What `gcx exec` was asked for: how many SMs of which devices.
#pragma once

#include "cli/args.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gcx::cli {

// "24", "50%" or "rest".
struct SmShare {
    enum class Unit { kSms, kPercent, kRest };
    Unit unit = Unit::kRest;
    uint32_t number = 0;

    // In SMs, of so many that there are, in atoms of atom_sm_count; GCX_REST for the rest. A
    // percentage is rounded down to whole atoms, so that shares which add up to 100 fit. Throws
    // Failure for one that is less than an atom.
    uint32_t of(uint32_t sm_count, uint32_t atom_sm_count) const;
};

struct DeviceShare {
    std::string device; // as it was given: an ordinal, or a UUID
    SmShare share;
};

struct ExecLayout {
    std::vector<DeviceShare> devices;
    std::optional<SmShare> of_each; // of every device, instead
};

// Of --sms with --device, or of --layout. Throws UsageError. Opens no driver.
ExecLayout read_exec_layout(const Arguments& arguments);

} // namespace gcx::cli

// How a set of atoms is divided: arithmetic on counts and sets, no driver.
#pragma once

#include "core/atom_set.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace gcx {

constexpr uint32_t kRest = UINT32_MAX; // as a count of SMs: GCX_REST

// The sizes of a family's atoms: all alike, but for an odd one that may come last.
struct AtomShape {
    uint32_t unit_count = 0; // atoms of unit_size SMs: indices 0 to unit_count - 1
    uint32_t unit_size = 0;
    uint32_t odd_size = 0; // the atom at index unit_count; 0: there is none

    uint32_t atom_count() const { return unit_count + (odd_size != 0 ? 1 : 0); }
    bool is_odd(std::size_t atom) const { return odd_size != 0 && atom == unit_count; }
    uint32_t sm_count(const AtomSet& set) const {
        const bool odd = odd_size != 0 && set.contains(unit_count);
        const auto units = static_cast<uint32_t>(set.count()) - (odd ? 1 : 0);
        return units * unit_size + (odd ? odd_size : 0);
    }
    AtomSet all() const { return AtomSet::first(atom_count()); }
};

struct Plan {
    std::vector<AtomSet> groups;
    AtomSet remainder;
};

// Divides input by counts in SMs; kRest takes a share of what the others leave. Throws if it does
// not fit; exact refuses to round. The rule is at gcx_sm_split in gcx.h. where names the input in
// messages: "device 0".
Plan make_plan(const AtomShape& shape, const AtomSet& input, std::span<const uint32_t> counts,
               bool exact, const char* where);

// The same for callers that need no message: returns nothing if the counts do not fit.
std::optional<Plan> find_plan(const AtomShape& shape, const AtomSet& input,
                              std::span<const uint32_t> counts);

// Says why the counts do not fit; empty if they do.
std::string plan_problem(const AtomShape& shape, const AtomSet& input,
                         std::span<const uint32_t> counts, const char* where);

} // namespace gcx

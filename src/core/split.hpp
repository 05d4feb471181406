// Splits: divides a resource by requested SM counts. The planning of a split is pure arithmetic on
// counts and sets; structured splits are left to the driver.
#pragma once

#include "base/atom_set.hpp"
#include "core/resource.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace gcx {

struct SplitPlan {
    std::vector<AtomSet> groups;
    AtomSet remainder;
};

// Divides input by counts of SMs. kRest takes a share of what the other counts leave. Throws if the
// counts do not fit, or if exact is set and one would be rounded. The rules are in gcx.h, at
// gcx_sm_split. where names the input in messages: "device 0".
SplitPlan plan_split(const AtomShape& shape, const AtomSet& input, std::span<const uint32_t> counts,
                     bool exact, const char* where);

// Like plan_split(), but returns nothing and formats no message if the counts do not fit.
std::optional<SplitPlan> find_split_plan(const AtomShape& shape, const AtomSet& input,
                                         std::span<const uint32_t> counts);

// Returns why the counts do not fit, to be appended to what was requested; empty if they do.
std::string split_problem(const AtomShape& shape, const AtomSet& input,
                          std::span<const uint32_t> counts, const char* where);

class LeaseManager;

struct SplitResult {
    std::vector<SmResource> groups;
    SmResource remainder;
};

// Splits a resource by requests. Throws as gcx.h documents at gcx_sm_split. The resources of a dry
// run only have counts: a structured one is not interned.
SplitResult split(LeaseManager& leases, const SmResource& input,
                  std::span<const gcx_sm_request> requests, uint32_t flags, bool dry_run);

} // namespace gcx

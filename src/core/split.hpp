// How a set of atoms is divided: arithmetic on counts and sets, no driver.
#pragma once

#include "core/atom_set.hpp"
#include "core/resource.hpp"
#include "driver/cuda_api.h"

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

// Divides input by counts in SMs; kRest takes a share of what the others leave. Throws if it does
// not fit; exact refuses to round. The rule is at gcx_sm_split in gcx.h. where names the input in
// messages: "device 0".
SplitPlan plan_split(const AtomShape& shape, const AtomSet& input, std::span<const uint32_t> counts,
                     bool exact, const char* where);

// The same for callers that need no message: returns nothing if the counts do not fit.
std::optional<SplitPlan> find_split_plan(const AtomShape& shape, const AtomSet& input,
                                         std::span<const uint32_t> counts);

// Says why the counts do not fit; empty if they do.
std::string split_problem(const AtomShape& shape, const AtomSet& input,
                          std::span<const uint32_t> counts, const char* where);

// Equal requests give equal bytes: equal ones in a row are counted, and a field that is 0 takes
// none. A group of usual size takes 4 or 5 bytes.
std::string pack_requests(std::span<const cu::SmGroupParams> requests);

// Of what pack_requests gave.
std::vector<cu::SmGroupParams> unpack_requests(const std::string& packed);

class LeaseManager;

struct SplitResult {
    std::vector<SmResource> groups;
    SmResource remainder;
};

// Throws as gcx_sm_split documents.
SplitResult split(LeaseManager& leases, const SmResource& input,
                  std::span<const gcx_sm_request> requests, uint32_t flags);

} // namespace gcx

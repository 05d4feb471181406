// Splits: divides a resource by requested SM counts. The planning of a split is pure arithmetic on
// counts and sets; structured splits are left to the driver.
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

// Divides input by counts of SMs. kRest takes a share of what the other counts leave. Throws if the
// counts do not fit, or if exact is set and one would be rounded. The rules are in gcx.h, at
// gcx_sm_split. where names the input in messages: "device 0".
SplitPlan plan_split(const AtomShape& shape, const AtomSet& input, std::span<const uint32_t> counts,
                     bool exact, const char* where);

// Like plan_split(), but returns nothing and formats no message if the counts do not fit.
std::optional<SplitPlan> find_split_plan(const AtomShape& shape, const AtomSet& input,
                                         std::span<const uint32_t> counts);

// Returns why the counts do not fit; empty if they do.
std::string split_problem(const AtomShape& shape, const AtomSet& input,
                          std::span<const uint32_t> counts, const char* where);

// Packs the requests of a structured split into the bytes that its resources carry, so that the
// split can be repeated from any of them. Equal requests give equal bytes. Repeated requests are
// counted and fields that are 0 take no space, so that a typical group takes 4 or 5 bytes.
std::string pack_requests(std::span<const cu::SmGroupParams> requests);

// Unpacks the result of pack_requests().
std::vector<cu::SmGroupParams> unpack_requests(const std::string& packed);

class LeaseManager;

struct SplitResult {
    std::vector<SmResource> groups;
    SmResource remainder;
};

// Splits a resource by requests. Throws as gcx.h documents at gcx_sm_split.
SplitResult split(LeaseManager& leases, const SmResource& input,
                  std::span<const gcx_sm_request> requests, uint32_t flags);

} // namespace gcx

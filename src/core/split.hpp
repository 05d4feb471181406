// Splitting a resource by requests: which family, whose atoms.
#pragma once

#include "core/leases.hpp"

#include <span>

namespace gcx {

struct SplitResult {
    std::vector<SmResource> groups;
    SmResource remainder;
};

// Throws as gcx_sm_split documents.
SplitResult split(Leases& leases, const SmResource& input, std::span<const gcx_sm_request> requests,
                  uint32_t flags);

} // namespace gcx

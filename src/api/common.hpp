// What several API functions share.
#pragma once

#include "api/library.hpp"

#include <vector>

namespace gcx {

// The resource of one type of a green context, as gcx_context_get_resource documents.
gcx_resource resource_of(Library& lib, GreenContext& green, gcx_resource_type type);

gcx_resource seal_workqueue_config(const Device& device, const CUdevResource& native);

[[noreturn]] void refuse_type(gcx_resource_type type);

// Writes SM ids to a caller's array; *count is what there are, also if they don't fit.
void give_sm_ids(const std::vector<uint32_t>& ids, uint32_t* sm_ids, uint32_t capacity,
                 uint32_t* count);

} // namespace gcx

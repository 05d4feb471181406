// The resources of contexts and streams, for several API functions.
#pragma once

#include "api/library.hpp"

#include <vector>

namespace gcx {

// Returns the resource of a live green context, as gcx_context_get_resource documents.
gcx_resource resource_of(Library& lib, GreenContext& green, gcx_resource_type type);

// Returns the resource of a stream whose context gcx did not create, as gcx_stream_get_resource
// documents.
gcx_resource resource_of_external(Library& lib, const Stream& stream, const Stream::Target& target,
                                  gcx_resource_type type);

gcx_resource seal_workqueue_config(const Device& device, const CUdevResource& native);

[[noreturn]] void refuse_type(gcx_resource_type type);

// Writes SM ids to a caller's array. *count is their number even if they don't fit.
void give_sm_ids(const std::vector<uint32_t>& ids, uint32_t* sm_ids, uint32_t capacity,
                 uint32_t* count);

} // namespace gcx

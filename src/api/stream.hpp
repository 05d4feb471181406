// What functions on streams, events and contexts share: refusing calls that would break a graph
// capture, with the capture intact, and queries.
#pragma once

#include "api/library.hpp"

namespace gcx {

gcx_stream_params stream_params(const gcx_stream_params* params);

// Refuses to query or wait for a stream's work while it captures.
void refuse_capturing(const Driver& driver, CUstream stream);
// Refuses what concerns all streams of a context. Checks only streams that gcx created.
void refuse_capturing(const Driver& driver, const Context& context);
// Refuses to query or wait for an event of a capture. Checks only events that gcx recorded.
void refuse_captured(Library& lib, const Event& event);

// Returns the stream's handle if the stream is capturing, otherwise 0.
uint64_t capture_of(const Driver& driver, uint64_t stream, CUstream native);

// Returns the result of a query: success or NOT_READY, which needs no message. Throws for others.
gcx_result ready_or_fail(const Driver& driver, CUresult result, const char* function);

} // namespace gcx

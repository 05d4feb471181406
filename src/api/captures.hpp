// What would break a graph capture is refused before the driver is asked, with the capture whole.
#pragma once

#include "api/library.hpp"

namespace gcx {

// For what asks or waits for a stream's work.
void refuse_capturing(const Driver& driver, CUstream stream);
// For what concerns all streams of a context. Knows those that gcx made.
void refuse_capturing(const Driver& driver, const Context& context);
// For what asks or waits for an event's work. Knows what gcx recorded.
void refuse_captured(Library& lib, const Event& event);

// The handle of a stream that is recorded now, if it is capturing; else 0: for Event.
uint64_t capture_of(const Driver& driver, uint64_t stream, CUstream native);

} // namespace gcx

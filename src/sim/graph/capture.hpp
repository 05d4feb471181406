// What a capture is to other calls.
#pragma once

#include "sim/machine.hpp"

namespace gcx::sim {

// Work of a stream that captures.
void capture_work(Machine& machine, Stream& stream, Work work);
// The stream waits for an event of a capture.
void join_capture(Stream& stream, const Event& event);
// The capturing stream is being destroyed.
void leave_capture(Machine& machine, Stream& stream);
// For calls that a capture forbids: ends the capture that does.
void refuse_during_capture(Machine& machine);

} // namespace gcx::sim

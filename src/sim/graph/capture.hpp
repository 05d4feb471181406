// Stream capture, as other calls need it.
#pragma once

#include "sim/machine.hpp"

namespace gcx::sim {

// Adds work of a capturing stream to the graph.
void capture_work(Machine& machine, Stream& stream, Work work);
// Lets a stream wait for an event that was recorded in a capture.
void join_capture(Stream& stream, const Event& event);
// Called before a capturing stream is destroyed.
void leave_capture(Machine& machine, Stream& stream);
// Refuses an action in the NULL stream while a blocking stream of its context captures, and
// invalidates the capture unless it is only a question.
void refuse_implicit_capture(const Machine& machine, const Stream& stream, bool question = false);
// Refuses a call that an active capture forbids, and invalidates the capture.
void refuse_during_capture(Machine& machine);

} // namespace gcx::sim

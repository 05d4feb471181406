// Events of all that a context, green or not, has been given.
#include "sim/edge/entry.hpp"
#include "sim/partition/partition.hpp"
#include "sim/work/work.hpp"

#include <algorithm>

namespace gcx::sim {
namespace {

// A capture on the context's streams can hold neither: it is invalid then.
void refuse_capturing(const Machine& machine, const Context& context) {
    bool found = false;
    for (const auto& [id, capture] : machine.captures)
        for (const auto& [stream, nodes] : capture->tips)
            if (stream->context == &context)
                found = capture->invalid = true;
    require(!found, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

void record(Machine& machine, const Context& context, CUevent handle) {
    Event& event = known(find(machine.events, handle), CUDA_ERROR_INVALID_HANDLE);
    require(event.context->device == context.device, CUDA_ERROR_INVALID_HANDLE);
    refuse_capturing(machine, context);
    event.recorded = true;
    event.capture = nullptr;
    event.done_at = std::max(machine.clock_ns, context_busy_until(machine, context));
}

void wait(Machine& machine, const Context& context, CUevent handle) {
    const Event& event = known(find(machine.events, handle), CUDA_ERROR_INVALID_HANDLE);
    refuse_capturing(machine, context);
    if (event.capture != nullptr) {
        event.capture->invalid = true; // measured on 13.0
        refuse(CUDA_ERROR_CAPTURED_EVENT);
    }
    if (!event.recorded)
        return;
    // The header: with a primary context its green ones wait.
    for (const auto& [id, other] : machine.contexts)
        if (other.get() == &context || other->primary == &context)
            other->busy_barrier = std::max(other->busy_barrier, event.done_at);
}

} // namespace

GCX_SIM_API(cuGreenCtxRecordEvent, CUgreenCtx handle, CUevent event) {
    GCX_SIM_BODY(record(machine, green_or_current(machine, handle), event));
}

GCX_SIM_API(cuGreenCtxWaitEvent, CUgreenCtx handle, CUevent event) {
    GCX_SIM_BODY(wait(machine, green_or_current(machine, handle), event));
}

} // namespace gcx::sim

// Events, on the simulated clock.
#include "sim/device/device.hpp"
#include "sim/entry/entry.hpp"
#include "sim/graph/capture.hpp"
#include "sim/work/work.hpp"

#include <algorithm>

namespace gcx::sim {
namespace {

Event& event_of(Machine& machine, CUevent handle) {
    return known(find(machine.events, handle), CUDA_ERROR_INVALID_HANDLE);
}

void create_event(Machine& machine, CUevent* out, unsigned flags) {
    constexpr unsigned kKnown =
        CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
    require(out != nullptr && (flags & ~kKnown) == 0);
    require((flags & CU_EVENT_INTERPROCESS) == 0 || (flags & CU_EVENT_DISABLE_TIMING) != 0);
    Context& context = current_context(machine);
    Event& event = create(machine.events);
    event.flags = flags;
    event.context = &context.owner();
    give(out, event.handle);
}

void submit_event(Machine& machine, Stream& stream, Work::Kind kind, const Event& event) {
    Work work(kind);
    work.event = event.handle;
    submit(machine, stream, std::move(work));
}

void record(Machine& machine, CUevent handle, CUstream stream_handle, unsigned flags) {
    Stream& stream = stream_of(machine, stream_handle);
    Event& event = event_of(machine, handle);
    require(event.context == &stream.context->owner(), CUDA_ERROR_INVALID_HANDLE);
    require(flags <= CU_EVENT_RECORD_EXTERNAL);
    refuse_implicit_capture(machine, stream);
    if (stream.capture != nullptr && flags == CU_EVENT_RECORD_EXTERNAL) {
        submit_event(machine, stream, Work::Kind::EventRecord, event);
    } else if (stream.capture != nullptr) {
        event.capture = stream.capture;
        event.capture_nodes = stream.capture->tips[&stream];
    } else {
        event.capture = nullptr;
        event.recorded = true;
        event.done = start_time(machine, stream);
        // Recorded: the event covers the NULL stream's work, but the stream does not wait for it.
        note_action(stream, start_beside_null(machine, stream));
    }
}

void wait(Machine& machine, CUstream stream_handle, CUevent handle, unsigned flags) {
    Stream& stream = stream_of(machine, stream_handle);
    const Event& event = event_of(machine, handle);
    require(flags <= CU_EVENT_WAIT_EXTERNAL);
    refuse_implicit_capture(machine, stream);
    if (event.capture != nullptr) {
        join_capture(stream, event);
    } else if (stream.capture != nullptr) {
        if (flags != CU_EVENT_WAIT_EXTERNAL) {
            stream.capture->invalid = true; // measured on 13.0
            refuse(CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
        }
        submit_event(machine, stream, Work::Kind::EventWait, event);
    } else if (event.recorded) { // the header: otherwise the call has no effect
        // Recorded: it does not make a blocking stream wait for the NULL stream.
        Moment ready = later(start_beside_null(machine, stream), event.done);
        if (!has_passed(machine, event.done))
            ready = start_in_queue(machine, stream, std::move(ready));
        note_action(stream, ready);
    }
}

CUresult elapsed_time(Machine& machine, float* out, CUevent begin, CUevent end) {
    require(out != nullptr);
    const Event& first = event_of(machine, begin);
    const Event& last = event_of(machine, end);
    // Measured on 13.0: does not invalidate the capture.
    require(first.capture == nullptr && last.capture == nullptr, CUDA_ERROR_CAPTURED_EVENT);
    require(first.recorded && last.recorded &&
                ((first.flags | last.flags) & CU_EVENT_DISABLE_TIMING) == 0,
            CUDA_ERROR_INVALID_HANDLE);
    // The programming guide says that it fails; the result is assumed.
    require(first.context->device == last.context->device, CUDA_ERROR_INVALID_HANDLE);
    if (!has_passed(machine, first.done) || !has_passed(machine, last.done))
        return CUDA_ERROR_NOT_READY;
    *out = static_cast<float>(
        (static_cast<double>(planned_ns(last.done)) - static_cast<double>(planned_ns(first.done))) /
        1e6);
    return CUDA_SUCCESS;
}

// Refuses an event that was recorded in a capture.
const Event& uncaptured_event(Machine& machine, CUevent handle) {
    const Event& event = event_of(machine, handle);
    if (event.capture != nullptr) {
        event.capture->invalid = true; // measured on 13.0
        refuse(CUDA_ERROR_CAPTURED_EVENT);
    }
    refuse_during_capture(machine);
    return event;
}

} // namespace

GCX_SIM_API(cuEventCreate, CUevent* out, unsigned flags) {
    GCX_SIM_BODY(create_event(machine, out, flags));
}

GCX_SIM_API(cuEventDestroy_v2, CUevent handle) {
    GCX_SIM_BODY(require(machine.events.erase(to_handle(handle)) != 0, CUDA_ERROR_INVALID_HANDLE));
}

GCX_SIM_STREAM_API(cuEventRecord, _ptsz, (CUevent event, CUstream stream), (event, stream)) {
    GCX_SIM_BODY(record(machine, event, stream, 0));
}

GCX_SIM_STREAM_API(cuEventRecordWithFlags, _ptsz, (CUevent event, CUstream stream, unsigned flags),
                   (event, stream, flags)) {
    GCX_SIM_BODY(record(machine, event, stream, flags));
}

GCX_SIM_API(cuEventQuery, CUevent handle) {
    GCX_SIM_BODY({
        const Event& event = uncaptured_event(machine, handle);
        const bool pending = event.recorded && !has_passed(machine, event.done);
        return pending ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
    });
}

GCX_SIM_API(cuEventSynchronize, CUevent handle) {
    GCX_SIM_BODY({
        const Event& event = uncaptured_event(machine, handle);
        if (event.recorded)
            wait_until(machine, event.done);
        trim_pools(machine);
    });
}

GCX_SIM_API(cuEventElapsedTime, float* out, CUevent begin, CUevent end) {
    GCX_SIM_BODY(return elapsed_time(machine, out, begin, end));
}

GCX_SIM_API(cuEventElapsedTime_v2, float* out, CUevent begin, CUevent end) {
    GCX_SIM_BODY(return elapsed_time(machine, out, begin, end));
}

GCX_SIM_STREAM_API(cuStreamWaitEvent, _ptsz, (CUstream stream, CUevent event, unsigned flags),
                   (stream, event, flags)) {
    GCX_SIM_BODY(wait(machine, stream, event, flags));
}

} // namespace gcx::sim

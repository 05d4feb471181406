// Events, on the simulated clock.
#include "sim/edge/entry.hpp"

#include <algorithm>

namespace gcx::sim {
namespace {

CUresult create_event(Machine& machine, CUevent* out, unsigned flags) {
    constexpr unsigned kKnown =
        CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
    if (out == nullptr || (flags & ~kKnown) != 0 ||
        ((flags & CU_EVENT_INTERPROCESS) != 0 && (flags & CU_EVENT_DISABLE_TIMING) == 0))
        return CUDA_ERROR_INVALID_VALUE;
    Context* context = nullptr;
    if (const CUresult code = current_context(machine, context); code != CUDA_SUCCESS)
        return code;
    auto event = std::make_unique<Event>();
    event->handle = new_handle();
    event->flags = flags;
    // An event belongs to the primary context that lies under a green one.
    event->context = context->kind == Context::Kind::Green ? context->primary : context;
    *out = to_pointer<CUevent>(event->handle);
    machine.events[event->handle] = std::move(event);
    return CUDA_SUCCESS;
}

bool same_primary(const Event& event, const Stream& stream) {
    const Context& context = *stream.context;
    return event.context ==
           (context.kind == Context::Kind::Green ? context.primary : stream.context);
}

CUresult record_event(Machine& machine, CUevent handle, CUstream stream_handle, unsigned flags) {
    Stream* stream = nullptr;
    if (const CUresult code = check_stream(machine, stream_handle, stream); code != CUDA_SUCCESS)
        return code;
    Event* const event = find(machine.events, handle);
    if (event == nullptr || !same_primary(*event, *stream))
        return CUDA_ERROR_INVALID_HANDLE;
    if (flags > CU_EVENT_RECORD_EXTERNAL)
        return CUDA_ERROR_INVALID_VALUE;
    if (stream->capture != nullptr) {
        if (flags == CU_EVENT_RECORD_EXTERNAL) {
            Work work;
            work.kind = Work::Kind::EventRecord;
            work.event = event->handle;
            return submit(machine, *stream, std::move(work));
        }
        event->capture = stream->capture;
        event->capture_nodes = stream->capture->tips[stream];
        return CUDA_SUCCESS;
    }
    event->capture = nullptr;
    event->recorded = true;
    event->done_at = start_time(machine, *stream);
    return CUDA_SUCCESS;
}

CUresult elapsed_time(Machine& machine, float* out, CUevent begin, CUevent end) {
    const Event* const first = find(machine.events, begin);
    const Event* const last = find(machine.events, end);
    if (out == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    if (first == nullptr || last == nullptr || !first->recorded || !last->recorded ||
        ((first->flags | last->flags) & CU_EVENT_DISABLE_TIMING) != 0)
        return CUDA_ERROR_INVALID_HANDLE;
    if (std::max(first->done_at, last->done_at) > machine.clock_ns)
        return CUDA_ERROR_NOT_READY;
    *out = static_cast<float>(
        (static_cast<double>(last->done_at) - static_cast<double>(first->done_at)) / 1e6);
    return CUDA_SUCCESS;
}

CUresult find_uncaptured(Machine& machine, CUevent handle, Event*& event) {
    event = find(machine.events, handle);
    if (event == nullptr)
        return CUDA_ERROR_INVALID_HANDLE;
    return event->capture != nullptr ? CUDA_ERROR_CAPTURED_EVENT : CUDA_SUCCESS;
}

} // namespace
GCX_SIM_API(cuEventCreate, CUevent* out, unsigned flags) {
    return call(__func__,
                [&](Machine& machine) -> CUresult { return create_event(machine, out, flags); });
}

GCX_SIM_API(cuEventDestroy_v2, CUevent handle) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return machine.events.erase(to_handle(handle)) != 0 ? CUDA_SUCCESS
                                                            : CUDA_ERROR_INVALID_HANDLE;
    });
}

GCX_SIM_API(cuEventRecord, CUevent event, CUstream stream) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return record_event(machine, event, stream, 0);
    });
}

GCX_SIM_API(cuEventRecordWithFlags, CUevent event, CUstream stream, unsigned flags) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return record_event(machine, event, stream, flags);
    });
}

GCX_SIM_API(cuEventQuery, CUevent handle) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        Event* event = nullptr;
        if (const CUresult code = find_uncaptured(machine, handle, event); code != CUDA_SUCCESS)
            return code;
        if (const CUresult code = refuse_during_capture(machine); code != CUDA_SUCCESS)
            return code;
        return event->recorded && event->done_at > machine.clock_ns ? CUDA_ERROR_NOT_READY
                                                                    : CUDA_SUCCESS;
    });
}

GCX_SIM_API(cuEventSynchronize, CUevent handle) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        Event* event = nullptr;
        if (const CUresult code = find_uncaptured(machine, handle, event); code != CUDA_SUCCESS)
            return code;
        if (const CUresult code = refuse_during_capture(machine); code != CUDA_SUCCESS)
            return code;
        if (event->recorded)
            wait_until(machine, event->done_at);
        return CUDA_SUCCESS;
    });
}

GCX_SIM_API(cuEventElapsedTime, float* out, CUevent begin, CUevent end) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return elapsed_time(machine, out, begin, end);
    });
}

GCX_SIM_API(cuEventElapsedTime_v2, float* out, CUevent begin, CUevent end) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return elapsed_time(machine, out, begin, end);
    });
}

GCX_SIM_API(cuStreamWaitEvent, CUstream stream_handle, CUevent handle, unsigned flags) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        Stream* stream = nullptr;
        if (const CUresult code = check_stream(machine, stream_handle, stream);
            code != CUDA_SUCCESS)
            return code;
        const Event* const event = find(machine.events, handle);
        if (event == nullptr)
            return CUDA_ERROR_INVALID_HANDLE;
        if (flags > CU_EVENT_WAIT_EXTERNAL)
            return CUDA_ERROR_INVALID_VALUE;
        if (event->capture != nullptr)
            return join_capture(machine, *stream, *event);
        if (stream->capture != nullptr) {
            if (flags != CU_EVENT_WAIT_EXTERNAL)
                return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
            Work work;
            work.kind = Work::Kind::EventWait;
            work.event = event->handle;
            return submit(machine, *stream, std::move(work));
        }
        if (event->recorded)
            stream->busy_until = std::max(stream->busy_until, event->done_at);
        return CUDA_SUCCESS;
    });
}

} // namespace gcx::sim

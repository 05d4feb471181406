// Events, by which streams wait for each other.

#include "api/library.hpp"
#include "api/result.hpp"

using namespace gcx;

gcx_result gcx_stream_record(gcx_stream stream, gcx_event event) {
    GCX_BODY({
        Library& lib = library();
        const auto from = pin_alive(lib.streams, stream);
        const auto to = pin_alive(lib.events, event);
        to->check_recordable(from->device());
        SubmitLock* locks[] = {from->submit_lock()};
        const SubmitLock::Shared submitting(locks);
        const Stream::Target target = from->target();
        const uint64_t capturing = capture_of(lib.driver, from.handle(), target.native);
        GCX_CALL(lib.driver, cuEventRecord, to->native(), target.native);
        to->note_recorded(capturing);
    });
}

gcx_result gcx_stream_wait(gcx_stream stream, gcx_event event) {
    GCX_BODY({
        Library& lib = library();
        const auto waiter = pin_alive(lib.streams, stream);
        const auto awaited = pin_alive(lib.events, event);
        SubmitLock* locks[] = {waiter->submit_lock()};
        const SubmitLock::Shared submitting(locks);
        const Stream::Target target = waiter->target();
        GCX_CALL(lib.driver, cuStreamWaitEvent, target.native, awaited->native(), 0);
    });
}

gcx_result gcx_event_create(int32_t device, uint32_t flags, gcx_event* event) {
    GCX_BODY({
        not_null(event, "event");
        if ((flags & ~(GCX_EVENT_TIMING | GCX_EVENT_BLOCKING_SYNC)) != 0)
            fail(GCX_ERROR_INVALID_VALUE, format("flags is %#x; there are GCX_EVENT_TIMING (1) and "
                                                 "GCX_EVENT_BLOCKING_SYNC (2)",
                                                 flags));
        Library& lib = library();
        auto object = std::make_unique<Event>(lib.device(device), flags);
        *event = handle_of<gcx_event>(lib.events.add(std::move(object)));
    });
}

gcx_result gcx_event_from_native(struct CUevent_st* native, gcx_event* event) {
    GCX_BODY({
        not_null(native, "native");
        not_null(event, "event");
        Library& lib = library();
        auto object = std::make_unique<Event>(lib.driver, native);
        *event = handle_of<gcx_event>(lib.events.add(std::move(object)));
    });
}

gcx_result gcx_event_destroy(gcx_event event) {
    GCX_BODY({
        if (Library* const lib = library_to_destroy_in(); lib != nullptr)
            lib->events.close(lib->events.pin(event));
    });
}

struct CUevent_st* gcx_event_native(gcx_event event) {
    CUevent native = nullptr;
    run_api_function(__func__, [&] {
        const auto pin = pin_alive(library().events, event);
        native = pin->native();
    });
    return native;
}

gcx_result gcx_event_synchronize(gcx_event event) {
    GCX_BODY({
        Library& lib = library();
        const auto pin = pin_alive(lib.events, event);
        refuse_captured(lib, *pin);
        const RelaxedCapture relaxed(lib.driver);
        GCX_CALL(lib.driver, cuEventSynchronize, pin->native());
    });
}

gcx_result gcx_event_query(gcx_event event) {
    GCX_BODY({
        Library& lib = library();
        const auto pin = pin_alive(lib.events, event);
        refuse_captured(lib, *pin);
        const RelaxedCapture relaxed(lib.driver);
        return ready_or_fail(lib.driver, lib.driver.cuEventQuery(pin->native()), "cuEventQuery");
    });
}

gcx_result gcx_event_get_elapsed(gcx_event start, gcx_event end, float* milliseconds) {
    GCX_BODY({
        not_null(milliseconds, "milliseconds");
        Library& lib = library();
        const auto from = pin_alive(lib.events, start);
        const auto to = pin_alive(lib.events, end);
        from->check_comparable(*to);
        float elapsed = 0;
        const CUresult result =
            lib.driver.cuEventElapsedTime(&elapsed, from->native(), to->native());
        if (result == CUDA_ERROR_INVALID_HANDLE || result == CUDA_ERROR_NOT_READY) {
            from->check_timed("start");
            to->check_timed("end");
        }
        lib.driver.check(result, "cuEventElapsedTime");
        *milliseconds = elapsed;
    });
}

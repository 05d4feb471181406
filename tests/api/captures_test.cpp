// Tests graph captures in gcx's streams: gcx does or refuses each call during a capture, and the
// capture continues.

#include "support.hpp"

#include <array>
#include <fstream>
#include <thread>

using namespace support;

namespace {

constexpr std::array kModes = {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
                               CU_STREAM_CAPTURE_MODE_RELAXED};

void in_this_thread_and_another(const std::function<void()>& body) {
    body();
    std::thread(body).join();
}

// Calls gcx through another handle of the green context that captures.
void calls_do_not_break_a_capture() {
    const gcx_resource resource = split(whole_device(), {24}).groups[0];
    const Partition capturing(resource);
    const Partition other(resource);
    CUstream native = gcx_stream_native(capturing.stream);
    const gcx_event outside = make_event();
    CHECK_OK(gcx_stream_record(other.stream, outside));
    for (const CUstreamCaptureMode mode : kModes) {
        begin_capture(native, mode);
        in_this_thread_and_another([&] {
            constexpr gcx_result kCaptures = GCX_ERROR_STREAM_CAPTURE_UNSUPPORTED;
            CHECK_REFUSED(gcx_context_synchronize(other.context), kCaptures);
            CHECK(message_has("24 SMs") && message_has("GCX_CONTEXT_PRIVATE"));
            CHECK_REFUSED(gcx_context_record(other.context, outside), kCaptures);
            CHECK_REFUSED(gcx_context_wait(other.context, outside), kCaptures);
            CHECK_REFUSED(gcx_stream_synchronize(capturing.stream), kCaptures);
            CHECK_REFUSED(gcx_stream_query(capturing.stream), kCaptures);
            uint32_t ids[GCX_MAX_SMS];
            uint32_t count = 0;
            CHECK_REFUSED(gcx_stream_probe_sms(capturing.stream, ids, GCX_MAX_SMS, &count),
                          kCaptures);
            // The capture is visible through another handle of the stream, too.
            gcx_stream again = handle_for(native);
            CHECK_REFUSED(gcx_stream_synchronize(again), kCaptures);
            info_of(again);
            CHECK_OK(gcx_stream_destroy(again));
            // Calls on other streams succeed.
            CHECK_OK(gcx_stream_synchronize(other.stream));
            CHECK_OK(gcx_stream_query(other.stream));
            CHECK_OK(gcx_stream_record(other.stream, outside));
            CHECK_OK(gcx_stream_wait(other.stream, outside));
            CHECK_OK(gcx_event_synchronize(outside));
            CHECK_OK(gcx_event_query(outside));
            CHECK_EQ(other.probe().size(), 24U);
            CHECK_OK(gcx_device_map_sms(0, GCX_SM_FAMILY_COSCHEDULED));
            for (int round = 0; round < 3; round++) {
                const gcx_stream fresh = make_stream(other.context);
                CHECK(gcx_stream_native(fresh) != native);
                CHECK_OK(gcx_stream_destroy(fresh));
            }
            const gcx_event event = make_event();
            CHECK_OK(gcx_event_destroy(event));
            const Partition elsewhere(split(whole_device(), {24, 32}).groups[1]);
            CHECK_OK(gcx_context_synchronize(elsewhere.context));
            CHECK_EQ(elsewhere.probe().size(), 32U);
            const Partition third(resource);
            CHECK_OK(gcx_context_push(third.context));
            CHECK_OK(gcx_context_pop(nullptr));
            CHECK_OK(gcx_cache_set_limit(0));
            CHECK_OK(gcx_cache_set_limit(64));
        });
        end_capture(native);
        CHECK_OK(gcx_context_synchronize(other.context));
        // The thread's own mode is unchanged.
        CUstreamCaptureMode own = CU_STREAM_CAPTURE_MODE_RELAXED;
        CHECK_NATIVE(cuThreadExchangeStreamCaptureMode, &own);
        CHECK_EQ(own, CU_STREAM_CAPTURE_MODE_GLOBAL);
        CHECK_NATIVE(cuThreadExchangeStreamCaptureMode, &own);
    }
    CHECK_OK(gcx_event_destroy(outside));
}

// The driver documents that querying a captured event breaks the capture, so gcx does not query it.
void captured_events_are_refused() {
    const Split made = split(whole_device(), {24, 24});
    const Partition capturing(made.groups[0]);
    const Partition elsewhere(made.groups[1]);
    CUstream native = gcx_stream_native(capturing.stream);
    const gcx_event event = make_event();
    for (const CUstreamCaptureMode mode : kModes) {
        begin_capture(native, mode);
        CHECK_OK(gcx_stream_record(capturing.stream, event));
        in_this_thread_and_another([&] {
            CHECK_REFUSED(gcx_event_query(event), GCX_ERROR_CAPTURED_EVENT);
            CHECK_REFUSED(gcx_event_synchronize(event), GCX_ERROR_CAPTURED_EVENT);
            CHECK_REFUSED(gcx_context_wait(elsewhere.context, event), GCX_ERROR_CAPTURED_EVENT);
        });
        // Recorded again in another stream, it is an event like any other.
        CHECK_OK(gcx_stream_record(elsewhere.stream, event));
        CHECK_OK(gcx_event_synchronize(event));
        CHECK_OK(gcx_stream_record(capturing.stream, event));
        CHECK_OK(gcx_context_record(elsewhere.context, event));
        CHECK_OK(gcx_event_query(event));
        // A stream of another partition joins the capture, and leaves it again.
        CHECK_OK(gcx_stream_record(capturing.stream, event));
        CHECK_OK(gcx_stream_wait(elsewhere.stream, event));
        CHECK_REFUSED(gcx_context_synchronize(elsewhere.context),
                      GCX_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        CHECK_REFUSED(gcx_stream_query(elsewhere.stream), GCX_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        CHECK_OK(gcx_stream_record(elsewhere.stream, event));
        CHECK_REFUSED(gcx_event_query(event), GCX_ERROR_CAPTURED_EVENT);
        CHECK_OK(gcx_stream_wait(capturing.stream, event));
        end_capture(native);
        CHECK_OK(gcx_stream_record(capturing.stream, event));
        CHECK_OK(gcx_event_synchronize(event));
        CHECK_OK(gcx_context_synchronize(elsewhere.context));
    }
    CHECK_OK(gcx_event_destroy(event));
}

// Destroying the handle of a capturing stream, as a garbage collector may, leaves the capture
// intact.
void destroyed_stream_continues_its_capture() {
    const gcx_resource resource = split(whole_device(), {24}).groups[0];
    for (const CUstreamCaptureMode mode : kModes) {
        const gcx_context context = make_context(resource);
        gcx_stream stream = make_stream(context);
        CUstream native = gcx_stream_native(stream);
        begin_capture(native, mode);
        CHECK_OK(gcx_stream_destroy(stream));
        // The stream is not reused, and its context has nothing to wait for.
        CHECK_OK(gcx_stream_create(context, nullptr, &stream));
        CHECK(gcx_stream_native(stream) != native);
        CHECK_REFUSED(gcx_context_synchronize(context), GCX_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        CHECK_OK(gcx_stream_destroy(stream));
        // Evicting its context does not destroy it either.
        CHECK_OK(gcx_context_destroy(context));
        CHECK_OK(gcx_cache_set_limit(0));
        CHECK_EQ(sim::counts().green_contexts, 1U);
        end_capture(native);
        CHECK_OK(gcx_cache_set_limit(0));
        CHECK_EQ(sim::counts().green_contexts, 0U);
        CHECK_OK(gcx_cache_set_limit(64));
    }
    // Once the capture has ended, the stream is reused.
    const Partition partition(resource);
    const gcx_stream stream = [&] {
        gcx_stream made = make_stream(partition.context);
        return made;
    }();
    CUstream native = gcx_stream_native(stream);
    begin_capture(native);
    CHECK_OK(gcx_stream_destroy(stream));
    end_capture(native);
    const Partition next(resource);
    CHECK_EQ(gcx_stream_native(next.stream), native);
}

// Returns the resident memory of the process, or 0 under a sanitizer, which does not return freed
// memory.
std::size_t resident_bytes() {
    if (check::sanitized)
        return 0;
    std::ifstream statm("/proc/self/statm");
    std::size_t total = 0;
    std::size_t resident = 0;
    statm >> total >> resident;
    return resident * 4096;
}

// Captures that are begun and never ended: the first 32 of a context stay, later ones end with
// their streams, and memory does not grow.
void abandoned_captures_leak_nothing() {
    const gcx_context context = make_context(split(whole_device(), {24}).groups[0]);
    std::vector<CUstream> natives;
    const auto abandon = [&] {
        gcx_stream stream = make_stream(context);
        natives.push_back(gcx_stream_native(stream));
        begin_capture(natives.back(), CU_STREAM_CAPTURE_MODE_RELAXED);
        CHECK_OK(gcx_stream_destroy(stream));
    };
    for (int i = 0; i < 40; i++)
        abandon();
    CHECK_EQ(sim::counts().streams, 32U);
    const std::size_t before = resident_bytes();
    constexpr int kRounds = 4000;
    for (int i = 0; i < kRounds; i++) {
        abandon();
        natives.pop_back();
    }
    CHECK_EQ(sim::counts().streams, 32U);
    // The simulated driver itself remembers each destroyed stream, in some 50 bytes.
    CHECK(resident_bytes() < before + std::size_t{100} * kRounds + (1U << 20));
    for (std::size_t i = 0; i < 32; i++)
        end_capture(natives[i]);
    // Streams without a capture make room for one that captures.
    for (int i = 0; i < 33; i++)
        abandon();
    CHECK_EQ(sim::counts().streams, 32U);
    CHECK_OK(gcx_context_destroy(context));
}

void ended_captures_leak_nothing() {
    const Partition partition(split(whole_device(), {24}).groups[0]);
    std::size_t before = 0;
    for (int i = 0; i < 6000; i++) {
        gcx_stream stream = make_stream(partition.context);
        CUstream native = gcx_stream_native(stream);
        begin_capture(native);
        CHECK_OK(gcx_stream_destroy(stream));
        end_capture(native);
        if (i == 1000)
            before = resident_bytes();
    }
    CHECK_EQ(sim::counts().streams, 2U);
    CHECK_EQ(sim::counts().graphs, 0U);
    CHECK(resident_bytes() < before + (1U << 20));
}

} // namespace

int main() {
    on_h100({calls_do_not_break_a_capture, captured_events_are_refused,
             destroyed_stream_continues_its_capture});
    on_machine("h100@13.0", abandoned_captures_leak_nothing);
    on_machine("h100@13.0", ended_captures_leak_nothing);
    return support::summary("captures");
}

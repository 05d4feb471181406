#include "api/captures.hpp"

#include "core/scoped.hpp"

namespace gcx {
namespace {

// Whether the stream that an event was recorded in captures still. One that was given up doesn't.
bool captures_still(Library& lib, uint64_t stream) {
    try {
        const auto pin = lib.streams.pin(stream);
        return is_capturing(lib.driver, pin->target(Stream::Purpose::ask).native) == true;
    } catch (const Error&) {
        return false;
    }
}

} // namespace

void refuse_capturing(const Driver& driver, CUstream stream) {
    if (is_capturing(driver, stream) == true)
        fail(GCX_ERROR_STREAM_CAPTURE_UNSUPPORTED,
             "the stream is capturing a graph: what it is given doesn't run before the graph is "
             "launched. End the capture first");
}

void refuse_capturing(const Driver& driver, const Context& context) {
    if (context.green->streams.capturing(driver))
        fail(GCX_ERROR_STREAM_CAPTURE_UNSUPPORTED,
             format("a stream of this context of %u SMs is capturing a graph, which this would "
                    "break; end the capture first, or use single streams. A context made with "
                    "GCX_CONTEXT_PRIVATE has no streams of others",
                    context.green->sm_count()));
}

void refuse_captured(Library& lib, const Event& event) {
    const uint64_t stream = event.captured_in();
    if (stream != 0 && captures_still(lib, stream))
        fail(GCX_ERROR_CAPTURED_EVENT,
             "the event was recorded in a stream that is capturing a graph: it has no work to wait "
             "for. End the capture first, or record the event in another stream");
}

uint64_t capture_of(const Driver& driver, uint64_t stream, CUstream native) {
    return is_capturing(driver, native) == true ? stream : 0;
}

} // namespace gcx

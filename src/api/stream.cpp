// Streams: creating, querying, waiting for and probing them.

#include "core/stream.hpp"
#include "api/library.hpp"
#include "api/result.hpp"
#include "probe/verification.hpp"

#include <algorithm>
#include <cstring>

using namespace gcx;

namespace {

// Returns whether the stream that an event was recorded in still captures. A destroyed stream does
// not.
bool captures_still(Library& lib, uint64_t stream) {
    try {
        const auto pin = lib.streams.pin(stream);
        return is_capturing(lib.driver, pin->target(Stream::Purpose::wait).native) == true;
    } catch (const Error&) {
        return false;
    }
}

// Refuses CUDA's names for its default streams, which stand for another stream whenever another
// context is current.
void refuse_default_stream(CUstream native) {
    const auto number = reinterpret_cast<uintptr_t>(native);
    const bool legacy = native == nullptr || native == CU_STREAM_LEGACY;
    if (!legacy && native != CU_STREAM_PER_THREAD)
        return;
    fail(GCX_ERROR_INVALID_VALUE,
         format("native is %s (%zu), CUDA's name for the %sdefault stream of whatever context is "
                "current at each use, so that it has no SMs of its own; pass a stream that was "
                "made, as by cudaStreamCreate, torch.cuda.Stream, cupy.cuda.Stream or "
                "cuda.core's Device.create_stream",
                native == nullptr ? "NULL"
                : legacy          ? "cudaStreamLegacy"
                                  : "cudaStreamPerThread",
                static_cast<std::size_t>(number), legacy ? "" : "thread's "));
}

// Returns the SMs that the stream's kernels run on.
ProbedStream probed(Library& lib, Stream& stream) {
    Device& device = lib.device(stream.device());
    if (stream.submit_lock() != nullptr) {
        EventPool& events = lib.leases.events(device);
        Probe::Seen seen = lib.probe.stream_sms(lib.cache, device, events, stream);
        return {seen.promised, std::move(seen.sms), stream.follows_shared_lease()};
    }
    const Stream::Target target = stream.target(Stream::Purpose::ask);
    const uint32_t promised = stream.sm_count(target);
    return {promised, lib.probe.stream_sms(device, target.context, target.native, promised)};
}

// Returns the SMs that all partitions share, if a stream was seen on more SMs than it has.
std::vector<uint32_t> shared_by_all(Library& lib, Device& device,
                                    const std::vector<ProbedStream>& streams) {
    const bool more = std::ranges::any_of(
        streams, [](const ProbedStream& one) { return one.seen.size() > one.promised; });
    return more ? lib.probe.shared_sms(lib.cache, device) : std::vector<uint32_t>();
}

template <std::size_t kWords>
void set_bits(uint64_t (&words)[kWords], const std::vector<uint32_t>& sms) {
    for (const uint32_t sm : sms)
        words[sm / 64] |= uint64_t{1} << (sm % 64);
}

// Writes one text per line. The last line counts those that did not fit.
template <std::size_t kRoom>
void write_lines(char (&text)[kRoom], const std::vector<std::string>& lines) {
    constexpr std::size_t kLast = 32; // bytes for the last line
    std::string written;
    std::size_t done = 0;
    for (; done < lines.size(); done++) {
        const bool is_last = done + 1 == lines.size();
        if (written.size() + lines[done].size() + 1 + (is_last ? 0 : kLast) >= kRoom)
            break;
        written += (written.empty() ? "" : "\n") + lines[done];
    }
    if (done < lines.size())
        written += format("%sand %zu more", written.empty() ? "" : "\n", lines.size() - done);
    std::memcpy(text, written.c_str(), written.size() + 1);
}

} // namespace

namespace gcx {

gcx_stream_params stream_params(const gcx_stream_params* params) {
    const auto options = params_or_defaults(params, GCX_STREAM_PARAMS_INIT);
    if (options.sync != GCX_STREAM_NON_BLOCKING)
        fail(GCX_ERROR_INVALID_VALUE,
             format("params->sync is %d; a green context has only streams that don't wait for the "
                    "default stream, GCX_STREAM_NON_BLOCKING (0)",
                    options.sync));
    return options;
}

void refuse_capturing(const Driver& driver, CUstream stream) {
    if (is_capturing(driver, stream) == true)
        fail(GCX_ERROR_STREAM_CAPTURE_UNSUPPORTED,
             "the stream is capturing a graph, so its work does not run before the graph is "
             "launched; end the capture first");
}

void refuse_capturing(const Context& context) {
    if (context.green->streams.capturing())
        fail(GCX_ERROR_STREAM_CAPTURE_UNSUPPORTED,
             format("a stream of this context of %u SMs is capturing a graph, which this would "
                    "break; end the capture first, use single streams, or create the context with "
                    "GCX_CONTEXT_PRIVATE, so that others have no streams in it",
                    context.green->sm_count()));
}

void refuse_captured(Library& lib, const Event& event) {
    const uint64_t stream = event.captured_in();
    if (stream != 0 && captures_still(lib, stream))
        fail(GCX_ERROR_CAPTURED_EVENT,
             "the event was recorded in a stream that is capturing a graph, so it has no work to "
             "wait for; end the capture first, or record the event in another stream");
}

uint64_t capture_of(const Driver& driver, uint64_t stream, CUstream native) {
    return is_capturing(driver, native) == true ? stream : 0;
}

gcx_result ready_or_fail(const Driver& driver, CUresult result, const char* function) {
    if (result != CUDA_ERROR_NOT_READY)
        driver.check(result, function);
    return static_cast<gcx_result>(result);
}

} // namespace gcx

gcx_result gcx_stream_create(gcx_context context, const gcx_stream_params* params,
                             gcx_stream* stream) {
    GCX_BODY({
        not_null(stream, "stream");
        const gcx_stream_params options = stream_params(params);
        Library& lib = library();
        const auto pin = pin_alive(lib.contexts, context);
        auto object = std::make_unique<Stream>(lib.cache, *pin->green, options.priority);
        *stream = handle_of<gcx_stream>(lib.streams.add(std::move(object)));
    });
}

gcx_result gcx_stream_from_native(struct CUstream_st* native, gcx_stream* stream) {
    GCX_BODY({
        refuse_default_stream(native);
        not_null(stream, "stream");
        Library& lib = library();
        auto object = std::make_unique<Stream>(lib.cache, lib.driver, native);
        *stream = handle_of<gcx_stream>(lib.streams.add(std::move(object)));
    });
}

gcx_result gcx_stream_destroy(gcx_stream stream) {
    GCX_BODY({
        Library* const lib = library_unless_closed();
        if (lib == nullptr)
            return;
        try {
            lib->streams.close(lib->streams.pin(stream));
        } catch (const Error& error) {
            if (error.result != GCX_ERROR_DEINITIALIZED) // the driver has destroyed it
                throw;
        }
    });
}

struct CUstream_st* gcx_stream_native(gcx_stream stream) {
    CUstream native = nullptr;
    run_api_function(__func__, [&] {
        const auto pin = pin_alive(library().streams, stream);
        native = pin->target().native;
    });
    return native;
}

gcx_result gcx_stream_get_info(gcx_stream stream, gcx_stream_info* info) {
    GCX_BODY({
        StructOutput out(info, "info");
        const auto pin = pin_alive(library().streams, stream);
        pin->get_info(*out);
        out.write();
    });
}

gcx_result gcx_stream_get_resource(gcx_stream stream, gcx_resource_type type,
                                   gcx_resource* resource) {
    GCX_BODY({
        not_null(resource, "resource");
        Library& lib = library();
        const auto pin = pin_alive(lib.streams, stream);
        const Stream::Target target = pin->target(Stream::Purpose::ask);
        *resource = target.green != nullptr ? resource_of(lib, *target.green, type)
                                            : resource_of_external(lib, *pin, target, type);
    });
}

gcx_result gcx_stream_synchronize(gcx_stream stream) {
    GCX_BODY({
        Library& lib = library();
        const auto pin = pin_alive(lib.streams, stream);
        const Stream::Target target = pin->target(Stream::Purpose::wait);
        refuse_capturing(lib.driver, target.native);
        const RelaxedCapture relaxed(lib.driver);
        GCX_CALL(lib.driver, cuStreamSynchronize, target.native);
    });
}

gcx_result gcx_stream_query(gcx_stream stream) {
    GCX_BODY({
        Library& lib = library();
        const auto pin = pin_alive(lib.streams, stream);
        const Stream::Target target = pin->target(Stream::Purpose::wait);
        refuse_capturing(lib.driver, target.native);
        const RelaxedCapture relaxed(lib.driver);
        return ready_or_fail(lib.driver, lib.driver.cuStreamQuery(target.native), "cuStreamQuery");
    });
}

gcx_result gcx_stream_get_kernel_fit(gcx_stream stream, struct CUfunc_st* function,
                                     const gcx_kernel_fit_params* params, gcx_kernel_fit* fit) {
    GCX_BODY({
        not_null(function, "function");
        const gcx_kernel_fit_params options = read_struct(params, "params");
        StructOutput out(fit, "fit");
        constexpr uint32_t kMaxThreads = 1024; // of every GPU so far
        if (options.block_threads == 0 || options.block_threads > kMaxThreads)
            fail(GCX_ERROR_INVALID_VALUE,
                 format("params->block_threads is %u; a block has 1 to %u threads",
                        options.block_threads, kMaxThreads));
        Library& lib = library();
        const auto pin = pin_alive(lib.streams, stream);
        get_kernel_fit(lib.device(pin->device()), *pin, function, options, *out);
        out.write();
    });
}

gcx_result gcx_stream_probe_sms(gcx_stream stream, uint32_t* sm_ids, uint32_t capacity,
                                uint32_t* count) {
    GCX_BODY({
        not_null(count, "count");
        Library& lib = library();
        const auto pin = pin_alive(lib.streams, stream);
        give_sm_ids(probed(lib, *pin).seen, sm_ids, capacity, count);
    });
}

gcx_result gcx_verify(const gcx_stream* streams, uint32_t count, gcx_verified_stream* results,
                      gcx_verification* verification) {
    GCX_BODY({
        not_null(streams, "streams");
        StructOutput out(verification, "verification");
        if (count == 0)
            fail(GCX_ERROR_INVALID_VALUE, "count is 0; give at least one stream to verify");
        Library& lib = library();
        std::vector<HandleTable<Stream>::Pin> pins;
        for (uint32_t i = 0; i < count; i++) {
            pins.push_back(pin_alive(lib.streams, streams[i]));
            if (pins[i]->device() != pins[0]->device())
                fail(GCX_ERROR_INVALID_VALUE,
                     format("the streams are of devices %d and %d; verify those of each device on "
                            "their own",
                            pins[0]->device(), pins[i]->device()));
        }
        Device& device = lib.device(pins[0]->device());
        const bool is_virtual = mps_of(lib.driver, device.native()).state == GCX_MPS_ON;
        std::vector<ProbedStream> seen;
        seen.reserve(count);
        for (const auto& pin : pins)
            seen.push_back(probed(lib, *pin));
        const std::vector<uint32_t> shared =
            is_virtual ? std::vector<uint32_t>() : shared_by_all(lib, device, seen);
        const Verification found = verify(seen, is_virtual, shared, device.may_share_sms());

        for (uint32_t i = 0; results != nullptr && i < count; i++) {
            results[i] = gcx_verified_stream{};
            results[i].sm_count = seen[i].promised;
            results[i].seen_count = static_cast<uint32_t>(seen[i].seen.size());
            results[i].ok = found.fine[i];
            results[i].shared_lease = seen[i].of_shared_lease ? 1 : 0;
            set_bits(results[i].seen, seen[i].seen);
        }
        gcx_verification& filled = *out;
        filled.device = pins[0]->device();
        filled.ok = found.problems.empty() ? 1 : 0;
        filled.problem_count = static_cast<uint32_t>(found.problems.size());
        filled.virtual_sm_numbers = is_virtual ? 1 : 0;
        filled.overlap_count = static_cast<uint32_t>(found.overlap.size());
        set_bits(filled.overlap, found.overlap);
        set_bits(filled.shared_by_all, shared);
        write_lines(filled.problems, found.problems);
        out.write();
    });
}

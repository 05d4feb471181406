// Streams: making, asking, waiting for and probing them.

#include "api/captures.hpp"
#include "api/common.hpp"
#include "api/guard.hpp"
#include "core/capture.hpp"
#include "core/kernel_fit.hpp"

using namespace gcx;

namespace {

// CUDA's names for its default streams: which stream each one is follows what is current at every
// use of it.
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

} // namespace

gcx_result gcx_stream_create(gcx_context context, const gcx_stream_params* params,
                             gcx_stream* stream) {
    GCX_BODY({
        not_null(stream, "stream");
        const gcx_stream_params wanted = stream_params(params);
        Library& lib = library();
        const auto pin = pin_alive(lib.contexts, context);
        auto object = std::make_unique<Stream>(lib.cache, *pin->green, wanted.priority);
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
        if (Library* const lib = library_to_destroy_in(); lib != nullptr)
            lib->streams.close(lib->streams.pin(stream));
    });
}

struct CUstream_st* gcx_stream_native(gcx_stream stream) {
    CUstream native = nullptr;
    guarded(__func__, [&] {
        const auto pin = pin_alive(library().streams, stream);
        native = pin->place().native;
    });
    return native;
}

gcx_result gcx_stream_get_info(gcx_stream stream, gcx_stream_info* info) {
    GCX_BODY({
        check_size(info, "info");
        const auto pin = pin_alive(library().streams, stream);
        pin->get_info(*info);
    });
}

gcx_result gcx_stream_get_resource(gcx_stream stream, gcx_resource_type type,
                                   gcx_resource* resource) {
    GCX_BODY({
        not_null(resource, "resource");
        Library& lib = library();
        const auto pin = pin_alive(lib.streams, stream);
        const Stream::Place place = pin->place(Stream::Purpose::ask);
        *resource = place.green != nullptr ? resource_of(lib, *place.green, type)
                                           : resource_of_foreign(lib, *pin, place, type);
    });
}

gcx_result gcx_stream_synchronize(gcx_stream stream) {
    GCX_BODY({
        Library& lib = library();
        const auto pin = pin_alive(lib.streams, stream);
        const Stream::Place place = pin->place(Stream::Purpose::ask);
        refuse_capturing(lib.driver, place.native);
        const RelaxedCapture relaxed(lib.driver);
        GCX_CALL(lib.driver, cuStreamSynchronize, place.native);
    });
}

gcx_result gcx_stream_query(gcx_stream stream) {
    GCX_BODY({
        Library& lib = library();
        const auto pin = pin_alive(lib.streams, stream);
        const Stream::Place place = pin->place(Stream::Purpose::ask);
        refuse_capturing(lib.driver, place.native);
        const RelaxedCapture relaxed(lib.driver);
        return ready_or_fail(lib.driver, lib.driver.cuStreamQuery(place.native), "cuStreamQuery");
    });
}

gcx_result gcx_stream_get_max_cluster_size(gcx_stream stream, uint32_t* blocks) {
    GCX_BODY({
        not_null(blocks, "blocks");
        Library& lib = library();
        const auto pin = pin_alive(lib.streams, stream);
        const Device& device = lib.device(pin->device());
        const Stream::Place place = pin->place(Stream::Purpose::ask);
        *blocks = device.has_clusters()
                      ? lib.probe.max_cluster_size(device, place.context, place.native)
                      : 1;
    });
}

gcx_result gcx_stream_get_kernel_fit(gcx_stream stream, struct CUfunc_st* function,
                                     const gcx_kernel_fit_params* params, gcx_kernel_fit* fit) {
    GCX_BODY({
        not_null(function, "function");
        check_size(params, "params");
        check_size(fit, "fit");
        constexpr uint32_t kMostThreads = 1024; // of every GPU so far
        if (params->block_threads == 0 || params->block_threads > kMostThreads)
            fail(GCX_ERROR_INVALID_VALUE,
                 format("params->block_threads is %u; a block has 1 to %u threads",
                        params->block_threads, kMostThreads));
        Library& lib = library();
        const auto pin = pin_alive(lib.streams, stream);
        gcx_kernel_fit found = *fit;
        get_kernel_fit(lib.device(pin->device()), *pin, function, *params, found);
        *fit = found;
    });
}

gcx_result gcx_stream_probe_sms(gcx_stream stream, uint32_t* sm_ids, uint32_t capacity,
                                uint32_t* count) {
    GCX_BODY({
        not_null(count, "count");
        Library& lib = library();
        const auto pin = pin_alive(lib.streams, stream);
        Device& device = lib.device(pin->device());
        if (pin->gate() != nullptr) {
            EventPool& events = lib.leases.events(device);
            give_sm_ids(lib.probe.stream_sms(lib.cache, device, events, *pin), sm_ids, capacity,
                        count);
            return;
        }
        const Stream::Place place = pin->place(Stream::Purpose::ask);
        give_sm_ids(lib.probe.stream_sms(device, place.context, place.native, pin->sm_count(place)),
                    sm_ids, capacity, count);
    });
}

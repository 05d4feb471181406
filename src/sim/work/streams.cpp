// Streams, and the order and timing of their work.
#include "sim/device/device.hpp"
#include "sim/entry/entry.hpp"
#include "sim/graph/capture.hpp"
#include "sim/partition/partition.hpp"
#include "sim/work/work.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace gcx::sim {
namespace {

// Recorded: priorities are clamped to [0, -5].
int clamp_priority(int priority) {
    return std::clamp(priority, -5, 0);
}

// Recorded (sets-and-graphs log): a stream uses 0.02 MiB.
constexpr uint64_t kStreamBytes = 20ULL << 10;

void create_stream(Machine& machine, Context& context, CUstream* out, unsigned flags,
                   int priority) {
    require(out != nullptr && (flags & ~static_cast<unsigned>(CU_STREAM_NON_BLOCKING)) == 0);
    charge_memory(*context.device, kStreamBytes);
    Stream& stream = create(machine.streams);
    stream.context = &context;
    stream.flags = flags;
    stream.priority = clamp_priority(priority);
    stream.id = machine.next_stream_id++;
    give(out, stream.handle);
}

// Returns when a stream has no work that its queries and waits include. Recorded: those of the NULL
// stream include the blocking streams; those of a blocking stream include the NULL stream's work
// only if it has had an action since.
Moment end_of_work(const Stream& stream) {
    Moment end = later(stream.busy, stream.context->barrier);
    if (is_legacy(stream))
        extend(end, stream.context->blocking_busy);
    return end;
}

void destroy_stream(Machine& machine, CUstream handle) {
    Stream& stream = known(find(machine.streams, handle), CUDA_ERROR_INVALID_HANDLE);
    // Recorded on 13.0: a stream whose context was destroyed can't be destroyed. From 13.1 on it
    // can, by the header's text.
    require(stream.context->alive || machine.has(kDetachesStreams),
            CUDA_ERROR_CONTEXT_IS_DESTROYED);
    if (stream.capture != nullptr)
        leave_capture(machine, stream);
    return_memory(*stream.context->device, kStreamBytes);
    machine.dead_streams.insert(stream.handle);
    machine.streams.erase(stream.handle);
}

void check_attribute(CUstreamAttrID attribute) {
    constexpr int kKnown[] = {
        CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW,
        CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY,
        CU_LAUNCH_ATTRIBUTE_PRIORITY,
        CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP,
        CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN,
    };
    require(std::ranges::find(kKnown, attribute) != std::end(kKnown));
}

// The header: misses are normal or streaming, and the size is limited. Assumed: the driver refuses
// other values, and ratios outside 0 to 1.
void check_window(const Stream& stream, const CUaccessPolicyWindow& window) {
    require(window.missProp == CU_ACCESS_PROPERTY_NORMAL ||
            window.missProp == CU_ACCESS_PROPERTY_STREAMING);
    require(window.hitRatio >= 0 && window.hitRatio <= 1);
    require(window.num_bytes <= max_access_window(*stream.context->device));
}

// The defaults were measured on 13.0.
CUstreamAttrValue attribute_of(const Stream& stream, CUstreamAttrID attribute) {
    CUstreamAttrValue value{};
    const auto set = stream.attributes.find(attribute);
    if (set != stream.attributes.end())
        value = set->second;
    else if (attribute == CU_LAUNCH_ATTRIBUTE_PRIORITY)
        value.priority = stream.priority;
    else if (attribute == CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY)
        std::memset(&value.syncPolicy, 0xff,
                    sizeof value.syncPolicy); // -1, which has no enumerator
    else if (attribute == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP)
        value.memSyncDomainMap.remote = 1;
    return value;
}

Stream& thread_stream(Machine& machine, Context& context) {
    // Counted, since the id of an ended thread is used again. Recorded: a new thread's stream does not
    // wait for the ended one's.
    static std::atomic<uint64_t> threads = 0;
    thread_local const uint64_t thread = ++threads;
    auto& stream = context.thread_streams[thread];
    if (stream == nullptr) {
        stream = std::make_unique<Stream>();
        stream->context = &context;
        stream->id = machine.next_stream_id++;
    }
    return *stream;
}

void submit_host(Machine& machine, Stream& stream, std::function<void()> host,
                 std::string parameters = {}) {
    Work work(Work::Kind::Host);
    work.parameters = std::move(parameters);
    work.host = std::move(host);
    submit(machine, stream, std::move(work));
}

} // namespace

Stream& stream_of(Machine& machine, CUstream handle) {
    if (handle == nullptr || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD) {
        Context& context = current_context(machine);
        const bool own =
            handle == CU_STREAM_PER_THREAD || (handle == nullptr && PerThreadStream::active());
        // Recorded on 13.0 with driver 580: a launch into the per-thread default stream is refused
        // while a green context is current. Assumed: other functions refuse it too.
        require(!own || context.kind != Context::Kind::Green, CUDA_ERROR_INVALID_HANDLE);
        return own ? thread_stream(machine, context) : context.null_stream;
    }
    Stream& stream = known(find(machine.streams, handle), CUDA_ERROR_INVALID_HANDLE);
    const bool detached =
        machine.has(kDetachesStreams) && stream.context->kind == Context::Kind::Green;
    require(stream.context->alive,
            detached ? cu::kErrorStreamDetached : CUDA_ERROR_CONTEXT_IS_DESTROYED);
    return stream;
}

void refuse_capturing(const Stream& stream) {
    if (stream.capture == nullptr)
        return;
    stream.capture->invalid = true;
    refuse(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

void refuse_dead_stream(const Machine& machine, CUstream handle) {
    if (machine.dead_streams.contains(to_handle(handle)))
        crash("a launch on a destroyed stream");
}

bool is_blocking(const Stream& stream) {
    return stream.context->kind != Context::Kind::Green && !is_legacy(stream) &&
           (stream.flags & CU_STREAM_NON_BLOCKING) == 0;
}

bool is_legacy(const Stream& stream) {
    return stream.context->kind != Context::Kind::Green && &stream == &stream.context->null_stream;
}

Moment start_time(const Machine& machine, const Stream& stream) {
    Moment start = start_beside_null(machine, stream);
    if (is_blocking(stream))
        extend(start, stream.context->null_stream.busy);
    return start;
}

// Recorded: the NULL stream's actions wait for the blocking streams, also for destroyed ones, and
// these wait for it.
Moment start_beside_null(const Machine& machine, const Stream& stream) {
    const Context& context = *stream.context;
    Moment start = later(stream.busy, context.barrier);
    start.ns = std::max(start.ns, machine.clock_ns);
    if (is_legacy(stream))
        extend(start, context.blocking_busy);
    return start;
}

void note_action(Stream& stream, const Moment& end) {
    Context& context = *stream.context;
    stream.busy = end;
    extend(context.busy, end);
    // The header of cuCtxSynchronize: a primary context includes its green ones.
    if (&context.owner() != &context)
        extend(context.owner().busy, end);
    extend(context.device->busy, end);
    if (is_blocking(stream))
        extend(context.blocking_busy, end);
    else if (is_legacy(stream))
        context.blocking_busy = {}; // the action has waited for it
}

Moment perform(Machine& machine, const Stream& stream, const Work& work, Moment begin,
               uint64_t launch) {
    const bool is_kernel = work.kind == Work::Kind::Kernel;
    const uint64_t duration = is_kernel ? kernel_duration(machine, work) : work.duration_ns;
    note_run(machine, stream, work, launch, begin, duration);
    if (work.host)
        return schedule_host(machine, begin, work.host);
    if (work.awaited)
        return schedule_wait(machine, begin, work.awaited);
    Moment end = plus(std::move(begin), duration);
    if (auto effect = is_kernel ? kernel_effect(machine, work) : work.effect)
        schedule(machine, end, std::move(effect));
    return end;
}

void submit(Machine& machine, Stream& stream, Work work) {
    refuse_implicit_capture(machine, stream);
    if (work.context == nullptr)
        work.context = stream.context;
    if (stream.capture != nullptr) {
        capture_work(machine, stream, std::move(work));
        return;
    }
    Moment begin = start_time(machine, stream);
    if (work.kind == Work::Kind::Kernel || work.kind == Work::Kind::Memset)
        begin = start_in_queue(machine, stream, std::move(begin));
    note_action(stream, perform(machine, stream, work, std::move(begin), 0));
}

GCX_SIM_API(cuStreamCreate, CUstream* out, unsigned flags) {
    GCX_SIM_BODY(create_stream(machine, current_context(machine), out, flags, 0));
}

GCX_SIM_API(cuStreamCreateWithPriority, CUstream* out, unsigned flags, int priority) {
    GCX_SIM_BODY(create_stream(machine, current_context(machine), out, flags, priority));
}

GCX_SIM_API(cuGreenCtxStreamCreate, CUstream* out, CUgreenCtx handle, unsigned flags,
            int priority) {
    GCX_SIM_BODY({
        Context& context = green_of(machine, handle);
        require(flags == CU_STREAM_NON_BLOCKING); // recorded: blocking ones are refused
        create_stream(machine, context, out, flags, priority);
    });
}

GCX_SIM_API(cuStreamDestroy_v2, CUstream handle) {
    GCX_SIM_BODY(destroy_stream(machine, handle));
}

GCX_SIM_STREAM_API(cuStreamQuery, _ptsz, (CUstream handle), (handle)) {
    GCX_SIM_BODY({
        const Stream& stream = stream_of(machine, handle);
        refuse_implicit_capture(machine, stream);
        refuse_capturing(stream);
        refuse_during_capture(machine);
        return has_passed(machine, end_of_work(stream)) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
    });
}

GCX_SIM_STREAM_API(cuStreamSynchronize, _ptsz, (CUstream handle), (handle)) {
    GCX_SIM_BODY({
        const Stream& stream = stream_of(machine, handle);
        refuse_implicit_capture(machine, stream);
        refuse_capturing(stream);
        refuse_during_capture(machine);
        wait_until(machine, end_of_work(stream));
        trim_pools(machine);
    });
}

GCX_SIM_STREAM_API(cuStreamGetPriority, _ptsz, (CUstream handle, int* out), (handle, out)) {
    GCX_SIM_BODY(give(out, stream_of(machine, handle).priority));
}

GCX_SIM_STREAM_API(cuStreamGetFlags, _ptsz, (CUstream handle, unsigned* out), (handle, out)) {
    GCX_SIM_BODY({
        // Recorded: all streams of a green context say that they are non-blocking, NULL too.
        const Stream& stream = stream_of(machine, handle);
        const bool is_green = stream.context->kind == Context::Kind::Green;
        give(out, is_green ? unsigned{CU_STREAM_NON_BLOCKING} : stream.flags);
    });
}

GCX_SIM_STREAM_API(cuStreamGetId, _ptsz, (CUstream handle, unsigned long long* out),
                   (handle, out)) {
    GCX_SIM_BODY(give(out, stream_of(machine, handle).id));
}

GCX_SIM_STREAM_API(cuStreamGetDevice, _ptsz, (CUstream handle, CUdevice* out), (handle, out)) {
    GCX_SIM_BODY(give(out, stream_of(machine, handle).context->device->ordinal));
}

GCX_SIM_STREAM_API(cuStreamGetCtx, _ptsz, (CUstream handle, CUcontext* out), (handle, out)) {
    GCX_SIM_BODY(give(out, stream_of(machine, handle).context->handle));
}

GCX_SIM_STREAM_API(cuStreamGetCtx_v2, _ptsz, (CUstream handle, CUcontext* out, CUgreenCtx* green),
                   (handle, out, green)) {
    GCX_SIM_BODY({
        // The header: returns the primary and the green context for a stream of a green context.
        Context& context = *stream_of(machine, handle).context;
        const bool is_green = context.kind == Context::Kind::Green;
        give(out, context.owner().handle);
        if (green != nullptr)
            give(green, is_green ? context.green : Handle{0});
    });
}

GCX_SIM_API(cuStreamGetGreenCtx, CUstream handle, CUgreenCtx* out) {
    GCX_SIM_BODY(give(out, green_handle_of(machine, *stream_of(machine, handle).context)));
}

GCX_SIM_STREAM_API(cuStreamGetDevResource, _ptsz,
                   (CUstream handle, CUdevResource* resource, CUdevResourceType type),
                   (handle, resource, type)) {
    GCX_SIM_BODY({
        const Stream& stream = stream_of(machine, handle);
        // The header: workqueues of streams can't be queried.
        require(type == cu::kResourceSm, CUDA_ERROR_INVALID_RESOURCE_TYPE);
        query_resource(machine, *stream.context->device, stream.context, resource, type);
    });
}

GCX_SIM_STREAM_API(cuStreamGetAttribute, _ptsz,
                   (CUstream handle, CUstreamAttrID attribute, CUstreamAttrValue* out),
                   (handle, attribute, out)) {
    GCX_SIM_BODY({
        const Stream& stream = stream_of(machine, handle);
        check_attribute(attribute);
        give(out, attribute_of(stream, attribute));
    });
}

GCX_SIM_STREAM_API(cuStreamSetAttribute, _ptsz,
                   (CUstream handle, CUstreamAttrID attribute, const CUstreamAttrValue* value),
                   (handle, attribute, value)) {
    GCX_SIM_BODY({
        Stream& stream = stream_of(machine, handle);
        require(value != nullptr);
        check_attribute(attribute);
        if (attribute == CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW)
            check_window(stream, value->accessPolicyWindow);
        if (attribute == CU_LAUNCH_ATTRIBUTE_PRIORITY)
            stream.priority = clamp_priority(value->priority);
        else
            stream.attributes[attribute] = *value;
    });
}

GCX_SIM_STREAM_API(cuStreamCopyAttributes, _ptsz, (CUstream to, CUstream from), (to, from)) {
    GCX_SIM_BODY({
        Stream& target = stream_of(machine, to);
        const Stream& source = stream_of(machine, from);
        target.attributes = source.attributes;
        target.priority = source.priority;
    });
}

GCX_SIM_STREAM_API(cuStreamAddCallback, _ptsz,
                   (CUstream handle, CUstreamCallback callback, void* data, unsigned flags),
                   (handle, callback, data, flags)) {
    GCX_SIM_BODY({
        Stream& stream = stream_of(machine, handle);
        require(callback != nullptr && flags == 0);
        refuse_capturing(stream);
        submit_host(machine, stream, [=] { callback(handle, CUDA_SUCCESS, data); });
    });
}

GCX_SIM_STREAM_API(cuLaunchHostFunc, _ptsz, (CUstream handle, CUhostFn function, void* data),
                   (handle, function, data)) {
    GCX_SIM_BODY({
        Stream& stream = stream_of(machine, handle);
        require(function != nullptr);
        CUDA_HOST_NODE_PARAMS parameters{}; // for the node, if the stream captures
        parameters.fn = function;
        parameters.userData = data;
        submit_host(machine, stream, [=] { function(data); }, to_bytes(parameters));
    });
}

// All memory is accessible from everywhere. Recorded: it separates actions when it is in NULL, and
// makes a blocking stream wait for nothing.
GCX_SIM_STREAM_API(cuStreamAttachMemAsync, _ptsz,
                   (CUstream handle, [[maybe_unused]] CUdeviceptr address,
                    [[maybe_unused]] std::size_t bytes, [[maybe_unused]] unsigned flags),
                   (handle, address, bytes, flags)) {
    GCX_SIM_BODY({
        Stream& stream = stream_of(machine, handle);
        refuse_implicit_capture(machine, stream); // assumed: like any action
        if (stream.capture == nullptr)
            note_action(stream, start_beside_null(machine, stream));
    });
}

} // namespace gcx::sim

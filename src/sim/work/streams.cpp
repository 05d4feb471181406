// Streams, and the order and time of what they do.
#include "sim/edge/entry.hpp"
#include "sim/partition/resource.hpp"

#include <algorithm>
#include <cstring>

namespace gcx::sim {
namespace {

// Recorded: priorities are clamped to [0, -5].
int clamp_priority(int priority) {
    return std::clamp(priority, -5, 0);
}

// sets-and-graphs: a stream that is kept costs 0.02 MiB.
constexpr uint64_t kStreamBytes = 20ULL << 10;

CUresult create_stream(Machine& machine, Context& context, CUstream* out, unsigned flags,
                       int priority) {
    if (out == nullptr || (flags & ~static_cast<unsigned>(CU_STREAM_NON_BLOCKING)) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (!charge_memory(*context.device, kStreamBytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    auto made = std::make_unique<Stream>();
    made->handle = new_handle();
    made->context = &context;
    made->flags = flags;
    made->priority = clamp_priority(priority);
    made->id = machine.next_stream_id++;
    *out = to_pointer<CUstream>(made->handle);
    machine.streams[made->handle] = std::move(made);
    return CUDA_SUCCESS;
}

// The NULL stream waits for the blocking streams of its context, and they for it.
uint64_t legacy_barrier(const Machine& machine, const Stream& stream) {
    uint64_t time = 0;
    const Context& context = *stream.context;
    if (&stream == &context.null_stream) {
        for (const auto& [handle, other] : machine.streams)
            if (other->context == &context && (other->flags & CU_STREAM_NON_BLOCKING) == 0)
                time = std::max(time, other->busy_until);
    } else if ((stream.flags & CU_STREAM_NON_BLOCKING) == 0) {
        time = context.null_stream.busy_until;
    }
    return time;
}

CUresult refuse_capturing(Machine& machine, const Stream& stream) {
    if (stream.capture == nullptr)
        return CUDA_SUCCESS;
    invalidate_capture(machine, *stream.capture);
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult destroy_stream(Machine& machine, CUstream handle) {
    Stream* const stream = find(machine.streams, handle);
    if (stream == nullptr)
        return CUDA_ERROR_INVALID_HANDLE;
    // Recorded on 13.0: once its context is gone, a stream cannot even be destroyed. The header has
    // this otherwise from 13.1 on.
    if (!stream->context->alive && !machine.has(kDetachesStreams))
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if (stream->capture != nullptr) {
        invalidate_capture(machine, *stream->capture);
        stream->capture->tips.erase(stream);
    }
    Device& device = *stream->context->device;
    device.memory_used -= std::min(device.memory_used, kStreamBytes);
    machine.dead_streams.insert(stream->handle);
    machine.streams.erase(stream->handle);
    return CUDA_SUCCESS;
}

bool is_stream_attribute(CUstreamAttrID attribute) {
    switch (attribute) {
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
        return true;
    default:
        return false;
    }
}

// What a new stream has was measured on 13.0.
CUstreamAttrValue attribute_of(const Stream& stream, CUstreamAttrID attribute) {
    CUstreamAttrValue value{};
    const auto set = stream.attributes.find(attribute);
    if (set != stream.attributes.end())
        value = set->second;
    else if (attribute == CU_LAUNCH_ATTRIBUTE_PRIORITY)
        value.priority = stream.priority;
    else if (attribute == CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY)
        std::memset(&value.syncPolicy, 0xff, sizeof value.syncPolicy); // -1, which has no name
    else if (attribute == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP)
        value.memSyncDomainMap.remote = 1;
    return value;
}

Stream& thread_stream(Machine& machine, Context& context) {
    auto& stream = context.thread_streams[std::this_thread::get_id()];
    if (stream == nullptr) {
        stream = std::make_unique<Stream>();
        stream->context = &context;
        stream->id = machine.next_stream_id++;
    }
    return *stream;
}

template <class Body>
CUresult with_stream(Machine& machine, CUstream handle, const Body& body) {
    Stream* stream = nullptr;
    const CUresult code = check_stream(machine, handle, stream);
    return code == CUDA_SUCCESS ? body(*stream) : code;
}

template <class Body>
CUresult with_current(Machine& machine, const Body& body) {
    Context* context = nullptr;
    const CUresult code = current_context(machine, context);
    return code == CUDA_SUCCESS ? body(*context) : code;
}

} // namespace

CUresult check_stream(Machine& machine, CUstream handle, Stream*& stream) {
    if (handle == nullptr || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD) {
        Context* context = nullptr;
        if (const CUresult code = current_context(machine, context); code != CUDA_SUCCESS)
            return code;
        const bool own =
            handle == CU_STREAM_PER_THREAD || (handle == nullptr && per_thread_stream());
        stream = own ? &thread_stream(machine, *context) : &context->null_stream;
        return CUDA_SUCCESS;
    }
    stream = find(machine.streams, handle);
    if (stream == nullptr)
        return CUDA_ERROR_INVALID_HANDLE;
    if (stream->context->alive)
        return CUDA_SUCCESS;
    return machine.has(kDetachesStreams) && stream->context->kind == Context::Kind::Green
               ? cu::kErrorStreamDetached
               : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

uint64_t start_time(Machine& machine, Stream& stream) {
    return std::max({machine.clock_ns, stream.busy_until, stream.context->busy_barrier,
                     legacy_barrier(machine, stream)});
}

void run_work(Machine& machine, Stream& stream, Work& work, uint64_t start) {
    if (work.effect)
        work.effect(machine);
    uint64_t duration = work.duration_ns;
    if (work.kind == Work::Kind::Kernel) {
        kernel_effect(machine, work);
        duration = kernel_duration(machine, work);
    }
    if (work.host)
        after_call(work.host);
    stream.busy_until = std::max(stream.busy_until, start + duration);
    Device& device = *stream.context->device;
    device.busy_until = std::max(device.busy_until, stream.busy_until);
}

CUresult submit(Machine& machine, Stream& stream, Work work) {
    if (work.context == nullptr)
        work.context = stream.context;
    if (stream.capture != nullptr)
        return capture_work(machine, stream, std::move(work));
    run_work(machine, stream, work, start_time(machine, stream));
    return CUDA_SUCCESS;
}

void wait_until(Machine& machine, uint64_t time) {
    machine.clock_ns = std::max(machine.clock_ns, time);
}

uint64_t context_busy_until(Machine& machine, const Context& context) {
    uint64_t time = std::max(context.null_stream.busy_until, context.busy_barrier);
    for (const auto& [thread, stream] : context.thread_streams)
        time = std::max(time, stream->busy_until);
    for (const auto& [handle, stream] : machine.streams)
        if (stream->context == &context)
            time = std::max(time, stream->busy_until);
    return time;
}

GCX_SIM_API(cuStreamCreate, CUstream* out, unsigned flags) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return with_current(machine, [&](Context& context) {
            return create_stream(machine, context, out, flags, 0);
        });
    });
}

GCX_SIM_API(cuStreamCreateWithPriority, CUstream* out, unsigned flags, int priority) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return with_current(machine, [&](Context& context) {
            return create_stream(machine, context, out, flags, priority);
        });
    });
}

GCX_SIM_API(cuGreenCtxStreamCreate, CUstream* out, CUgreenCtx handle, unsigned flags,
            int priority) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        Context* context = nullptr;
        if (const CUresult code = check_green(machine, handle, context); code != CUDA_SUCCESS)
            return code;
        if (flags != CU_STREAM_NON_BLOCKING) // recorded: blocking ones are refused
            return CUDA_ERROR_INVALID_VALUE;
        return create_stream(machine, *context, out, flags, priority);
    });
}

GCX_SIM_API(cuStreamDestroy_v2, CUstream handle) {
    return call(__func__,
                [&](Machine& machine) -> CUresult { return destroy_stream(machine, handle); });
}

GCX_SIM_API(cuStreamQuery, CUstream handle) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return with_stream(machine, handle, [&](Stream& stream) {
            if (const CUresult code = refuse_capturing(machine, stream); code != CUDA_SUCCESS)
                return code;
            if (const CUresult code = refuse_during_capture(machine); code != CUDA_SUCCESS)
                return code;
            const uint64_t ready = std::max(stream.busy_until, stream.context->busy_barrier);
            return ready > machine.clock_ns ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
        });
    });
}

GCX_SIM_API(cuStreamSynchronize, CUstream handle) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return with_stream(machine, handle, [&](Stream& stream) {
            if (const CUresult code = refuse_capturing(machine, stream); code != CUDA_SUCCESS)
                return code;
            if (const CUresult code = refuse_during_capture(machine); code != CUDA_SUCCESS)
                return code;
            wait_until(machine, std::max(stream.busy_until, legacy_barrier(machine, stream)));
            return CUDA_SUCCESS;
        });
    });
}

GCX_SIM_API(cuStreamGetPriority, CUstream handle, int* out) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return with_stream(machine, handle, [&](const Stream& stream) {
            if (out == nullptr)
                return CUDA_ERROR_INVALID_VALUE;
            *out = stream.priority;
            return CUDA_SUCCESS;
        });
    });
}

GCX_SIM_API(cuStreamGetAttribute, CUstream handle, CUstreamAttrID attribute,
            CUstreamAttrValue* out) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return with_stream(machine, handle, [&](const Stream& stream) {
            if (out == nullptr || !is_stream_attribute(attribute))
                return CUDA_ERROR_INVALID_VALUE;
            *out = attribute_of(stream, attribute);
            return CUDA_SUCCESS;
        });
    });
}

GCX_SIM_API(cuStreamSetAttribute, CUstream handle, CUstreamAttrID attribute,
            const CUstreamAttrValue* value) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return with_stream(machine, handle, [&](Stream& stream) {
            if (value == nullptr || !is_stream_attribute(attribute))
                return CUDA_ERROR_INVALID_VALUE;
            if (attribute == CU_LAUNCH_ATTRIBUTE_PRIORITY)
                stream.priority = clamp_priority(value->priority);
            else
                stream.attributes[attribute] = *value;
            return CUDA_SUCCESS;
        });
    });
}

GCX_SIM_API(cuStreamCopyAttributes, CUstream to, CUstream from) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return with_stream(machine, to, [&](Stream& target) {
            return with_stream(machine, from, [&](const Stream& source) {
                target.attributes = source.attributes;
                target.priority = source.priority;
                return CUDA_SUCCESS;
            });
        });
    });
}

GCX_SIM_API(cuStreamGetFlags, CUstream handle, unsigned* out) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return with_stream(machine, handle, [&](const Stream& stream) {
            if (out == nullptr)
                return CUDA_ERROR_INVALID_VALUE;
            *out = stream.flags;
            return CUDA_SUCCESS;
        });
    });
}

GCX_SIM_API(cuStreamGetId, CUstream handle, unsigned long long* out) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return with_stream(machine, handle, [&](const Stream& stream) {
            if (out == nullptr)
                return CUDA_ERROR_INVALID_VALUE;
            *out = stream.id;
            return CUDA_SUCCESS;
        });
    });
}

GCX_SIM_API(cuStreamGetDevice, CUstream handle, CUdevice* out) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return with_stream(machine, handle, [&](const Stream& stream) {
            if (out == nullptr)
                return CUDA_ERROR_INVALID_VALUE;
            *out = stream.context->device->ordinal;
            return CUDA_SUCCESS;
        });
    });
}

GCX_SIM_API(cuStreamGetCtx, CUstream handle, CUcontext* out) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return with_stream(machine, handle, [&](const Stream& stream) {
            if (out == nullptr)
                return CUDA_ERROR_INVALID_VALUE;
            *out = to_pointer<CUcontext>(stream.context->handle);
            return CUDA_SUCCESS;
        });
    });
}

GCX_SIM_API(cuStreamGetCtx_v2, CUstream handle, CUcontext* out, CUgreenCtx* green) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return with_stream(machine, handle, [&](const Stream& stream) {
            // The header: of a green context's stream the primary context, and the green one.
            if (out == nullptr)
                return CUDA_ERROR_INVALID_VALUE;
            const bool is_green = stream.context->kind == Context::Kind::Green;
            if (is_green && handle == CU_STREAM_PER_THREAD)
                return CUDA_ERROR_INVALID_HANDLE;
            const Context& plain = is_green ? *stream.context->primary : *stream.context;
            *out = to_pointer<CUcontext>(plain.handle);
            if (green != nullptr)
                *green = is_green ? to_pointer<CUgreenCtx>(stream.context->green) : nullptr;
            return CUDA_SUCCESS;
        });
    });
}

GCX_SIM_API(cuStreamGetGreenCtx, CUstream handle, CUgreenCtx* out) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return with_stream(machine, handle, [&](const Stream& stream) {
            if (out == nullptr)
                return CUDA_ERROR_INVALID_VALUE;
            *out = to_pointer<CUgreenCtx>(green_handle_of(machine, *stream.context));
            return CUDA_SUCCESS;
        });
    });
}

GCX_SIM_API(cuStreamGetDevResource, CUstream handle, CUdevResource* resource,
            CUdevResourceType type) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return with_stream(machine, handle, [&](const Stream& stream) {
            if (type != cu::kResourceSm) // the header: workqueues are not told of streams
                return CUDA_ERROR_INVALID_RESOURCE_TYPE;
            return query_resource(machine, *stream.context->device, stream.context, resource, type);
        });
    });
}

GCX_SIM_API(cuStreamAddCallback, CUstream handle, CUstreamCallback callback, void* data,
            unsigned flags) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return with_stream(machine, handle, [&](Stream& stream) {
            if (callback == nullptr || flags != 0)
                return CUDA_ERROR_INVALID_VALUE;
            if (const CUresult code = refuse_capturing(machine, stream); code != CUDA_SUCCESS)
                return code;
            Work work;
            work.kind = Work::Kind::Host;
            work.host = [=] { callback(handle, CUDA_SUCCESS, data); };
            return submit(machine, stream, std::move(work));
        });
    });
}

GCX_SIM_API(cuStreamAttachMemAsync, CUstream handle, CUdeviceptr, std::size_t, unsigned) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return with_stream(machine, handle, [](const Stream&) { return CUDA_SUCCESS; });
    });
}

GCX_SIM_API(cuLaunchHostFunc, CUstream handle, CUhostFn function, void* data) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return with_stream(machine, handle, [&](Stream& stream) {
            if (function == nullptr)
                return CUDA_ERROR_INVALID_VALUE;
            Work work;
            work.kind = Work::Kind::Host;
            work.host = [=] { function(data); };
            return submit(machine, stream, std::move(work));
        });
    });
}

} // namespace gcx::sim

// Hooks of all functions that use a stream. Each calls the driver's function and
// - replaces the per-thread default stream by a stream of the thread (thread_streams.hpp),
// - keeps the order of the legacy default stream and blocking streams (stream_order.hpp),
// - enters the partition before it uses the legacy default stream, which is the current context's.
// And of functions that create and free what belongs to the current context, for the lists of
// contexts of cuCtxCreate (created_contexts.hpp).
#include "interpose/created_contexts.hpp"
#include "interpose/partition.hpp"
#include "interpose/real_driver.hpp"
#include "interpose/thread_streams.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <type_traits>

namespace gcx::interpose {
namespace {

// What a function does with its stream.
enum class Kind {
    Action,          // submits work, or something that has a place among work
    Mark,            // the same, but it starts without a wait for the legacy default stream
    Wait,            // waits for the stream, or asks whether it is idle
    Allocation,      // allocates in the order of the stream
    Question,        // neither depends on work nor is it work
    BeginCapture,    // begins a capture
    EndCapture,      // ends a capture
    CaptureQuestion, // asks whether the stream captures
};

// The default streams' values are the smallest ones: NULL, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD.
bool is_default(CUstream stream) {
    return reinterpret_cast<uintptr_t>(stream) <= reinterpret_cast<uintptr_t>(CU_STREAM_PER_THREAD);
}

// An argument of a hook. stream_in() returns a pointer to its stream, or null if it has none.
// get() returns the argument with another stream. The program's structs stay as they are.
template <class T>
struct Argument {
    static const CUstream* stream_in(const T&) { return nullptr; }
    Argument(T given, const CUstream*) : value(given) {}
    T get() { return value; }
    T value;
};

template <>
struct Argument<CUstream> {
    static const CUstream* stream_in(const CUstream& given) { return &given; }
    Argument(CUstream given, const CUstream* other) : value(other != nullptr ? *other : given) {}
    CUstream get() { return value; }
    CUstream value;
};

template <>
struct Argument<const CUlaunchConfig*> {
    static const CUstream* stream_in(const CUlaunchConfig* given) {
        return given != nullptr ? &given->hStream : nullptr;
    }
    Argument(const CUlaunchConfig* given, const CUstream* other) : original(given) {
        if (other == nullptr)
            return;
        changed = *given;
        changed.hStream = *other;
        original = &changed;
    }
    const CUlaunchConfig* get() { return original; }
    const CUlaunchConfig* original;
    CUlaunchConfig changed;
};

// The driver writes results into this struct, so they are copied back.
template <>
struct Argument<CUDA_GRAPH_INSTANTIATE_PARAMS*> {
    static const CUstream* stream_in(CUDA_GRAPH_INSTANTIATE_PARAMS* given) {
        return given != nullptr && (given->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) != 0
                   ? &given->hUploadStream
                   : nullptr;
    }
    Argument(CUDA_GRAPH_INSTANTIATE_PARAMS* given, const CUstream* other) : original(given) {
        if (other == nullptr)
            return;
        changed = *given;
        changed.hUploadStream = *other;
        replaced = true;
    }
    ~Argument() {
        if (!replaced)
            return;
        changed.hUploadStream = original->hUploadStream;
        *original = changed;
    }
    Argument(const Argument&) = delete;
    Argument& operator=(const Argument&) = delete;
    CUDA_GRAPH_INSTANTIATE_PARAMS* get() { return replaced ? &changed : original; }
    CUDA_GRAPH_INSTANTIATE_PARAMS* original;
    CUDA_GRAPH_INSTANTIATE_PARAMS changed;
    bool replaced = false;
};

// Calls with a stream that is neither legacy nor per-thread.
template <Kind kKind, class Call>
CUresult around(CUstream stream, BlockingStream* blocking, const Call& call) {
    if constexpr (kKind == Kind::Action || kKind == Kind::Mark) {
        if (blocking == nullptr)
            return call();
        CUresult result = CUDA_SUCCESS;
        if constexpr (kKind == Kind::Action)
            result = StreamOrder::begin_blocking(*blocking);
        if (result != CUDA_SUCCESS)
            return result;
        result = call();
        StreamOrder::end_blocking(*blocking);
        return result;
    } else if constexpr (kKind == Kind::BeginCapture) {
        StreamOrder::note_capture(1);
        const CUresult result = call();
        if (result != CUDA_SUCCESS)
            StreamOrder::note_capture(-1);
        return result;
    } else if constexpr (kKind == Kind::EndCapture) {
        const bool captured = StreamOrder::is_capturing(stream);
        const CUresult result = call();
        if (captured && !StreamOrder::is_capturing(stream))
            StreamOrder::note_capture(-1);
        return result;
    } else {
        return call();
    }
}

// Calls with the legacy default stream.
template <Kind kKind, class Call>
[[gnu::always_inline]] inline CUresult around_legacy(const Call& call) {
    ProgramContext* context = nullptr;
    CUresult result = enter_partition(&context);
    if (result != CUDA_SUCCESS || context == nullptr)
        return result == CUDA_SUCCESS ? call() : result;
    // Plain CUDA refuses what the driver allows in a green context (both measured).
    if constexpr (kKind == Kind::BeginCapture)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if constexpr (kKind == Kind::CaptureQuestion)
        return context->order.captures() ? CUDA_ERROR_STREAM_CAPTURE_IMPLICIT : call();
    constexpr bool kHasPlace = kKind == Kind::Action || kKind == Kind::Mark;
    if constexpr (kHasPlace || kKind == Kind::Wait)
        result = context->order.begin_legacy();
    if constexpr (kKind == Kind::Allocation)
        result = context->order.refuse_beside_capture();
    if (result == CUDA_SUCCESS)
        result = call();
    if constexpr (kHasPlace)
        context->order.end_legacy();
    return result;
}

template <Kind kKind, bool kNullIsPerThread, class... Parameters>
CUresult call_in_thread_stream(RealFunction<CUresult(CUDAAPI*)(Parameters...)>& real,
                               BlockingStream& stream, Parameters... arguments) {
    return around<kKind>(stream.handle, &stream, [&] {
        const auto replace = [&](const CUstream* given) {
            return given != nullptr && is_per_thread<kNullIsPerThread>(*given) ? &stream.handle
                                                                               : nullptr;
        };
        return real(
            Argument<Parameters>(arguments, replace(Argument<Parameters>::stream_in(arguments)))
                .get()...);
    });
}

template <Kind kKind, bool kNullIsPerThread, class... Parameters>
[[gnu::noinline]] CUresult call_in_order(RealFunction<CUresult(CUDAAPI*)(Parameters...)>& real,
                                         Parameters... arguments) {
    // Of two streams, as of cuStreamCopyAttributes, the per-thread default stream.
    const CUstream* stream = nullptr;
    for (const CUstream* const each : {Argument<Parameters>::stream_in(arguments)...})
        if (each != nullptr && (stream == nullptr || is_per_thread<kNullIsPerThread>(*each)))
            stream = each;
    const auto call = [&] { return real(arguments...); };
    if (stream == nullptr)
        return call();
    if (is_per_thread<kNullIsPerThread>(*stream)) {
        ThreadStream own;
        if (const CUresult result = own.find(); result != CUDA_SUCCESS)
            return result;
        return own.found() != nullptr ? call_in_thread_stream<kKind, kNullIsPerThread>(
                                            real, *own.found(), arguments...)
                                      : call();
    }
    return is_default(*stream) ? around_legacy<kKind>(call)
                               : around<kKind>(*stream, StreamOrder::find(*stream), call);
}

// Calls the driver's function. Without blocking streams, a launch costs two comparisons and a jump,
// and one in the legacy default stream also a look at the current context.
template <Kind kKind, bool kNullIsPerThread, class... Parameters>
[[gnu::always_inline]] inline CUresult call(RealFunction<CUresult(CUDAAPI*)(Parameters...)>& real,
                                            Parameters... arguments) {
    constexpr bool kHasPlace = kKind == Kind::Action || kKind == Kind::Mark;
    constexpr bool kCaptures = kKind == Kind::BeginCapture || kKind == Kind::EndCapture;
    const auto function = real.found();
    const auto uses_default = [](const CUstream* stream) {
        return stream != nullptr && is_default(*stream);
    };
    const auto uses_thread_stream = [](const CUstream* stream) {
        return stream != nullptr && is_per_thread<kNullIsPerThread>(*stream);
    };
    const bool direct = (!uses_default(Argument<Parameters>::stream_in(arguments)) && ...);
    const bool ordered = kCaptures || (kHasPlace && StreamOrder::needed());
    if (function != nullptr && direct && !ordered) [[likely]]
        return function(arguments...);
    if (kHasPlace && function != nullptr && !ordered &&
        (!uses_thread_stream(Argument<Parameters>::stream_in(arguments)) && ...)) {
        if (ProgramContext* const context = find_current_context(); context != nullptr) {
            const CUresult result = function(arguments...);
            context->order.end_legacy();
            return result;
        }
    }
    return call_in_order<kKind, kNullIsPerThread>(real, arguments...);
}

template <class... Parameters>
CUresult enter_and_call(RealFunction<CUresult(CUDAAPI*)(Parameters...)>& real,
                        Parameters... arguments) {
    const CUresult entered = enter_partition();
    return entered == CUDA_SUCCESS ? real(arguments...) : entered;
}

template <class T>
uint64_t number_of(T handle) {
    if constexpr (std::is_pointer_v<T>)
        return reinterpret_cast<uintptr_t>(handle);
    else
        return handle;
}

// Returns the new object of a call, to which the first argument points.
template <class... Others>
uint64_t created_by(const void* out, const Others&...) {
    uint64_t handle = 0;
    std::memcpy(&handle, out, sizeof handle);
    return handle;
}

template <class First, class... Others>
uint64_t first_of(First first, const Others&...) {
    return number_of(first);
}

// Calls a function that creates an object of the current context.
template <Object kObject, class... Parameters>
CUresult create_object(RealFunction<CUresult(CUDAAPI*)(Parameters...)>& real,
                       Parameters... arguments) {
    ProgramContext* context = nullptr;
    CUresult result = enter_partition(&context);
    if (result == CUDA_SUCCESS)
        result = real(arguments...);
    if (result != CUDA_SUCCESS || context == nullptr || as_created(*context) == nullptr)
        return result;
    if constexpr (kObject == Object::Registration)
        return add_object(context, kObject, first_of(arguments...));
    else
        return add_object(context, kObject, created_by(arguments...));
}

// Frees an object that a context of cuCtxCreate may have in its list.
template <class Free>
CUresult free_listed(Object kind, uint64_t handle, const Free& free) {
    CreatedContext* const context = remove_object(kind, handle);
    const CUresult result = free();
    if (result != CUDA_SUCCESS && context != nullptr)
        add_again(*context, kind, handle);
    return result;
}

// Calls a function that frees an object.
template <Object kObject, class... Parameters>
CUresult free_object(RealFunction<CUresult(CUDAAPI*)(Parameters...)>& real,
                     Parameters... arguments) {
    return free_listed(kObject, first_of(arguments...), [&] { return real(arguments...); });
}

// Calls a function that uses the legacy default stream implicitly.
template <class... Parameters>
CUresult call_in_legacy(RealFunction<CUresult(CUDAAPI*)(Parameters...)>& real,
                        Parameters... arguments) {
    return around_legacy<Kind::Action>([&] { return real(arguments...); });
}

// When a function without a stream argument waits for the thread's stream.
enum class Waits { Always, Never, IfHost, IfHostIn2D, IfHostIn3D };

// Returns whether memory is or can be on the host. Such memory must be set, or can be changed, when
// the call returns.
bool may_be_host(CUdeviceptr memory) {
    unsigned managed = 0;
    CUmemorytype type = CU_MEMORYTYPE_HOST;
    const bool known = GCX_DRIVER(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                                         memory) == CUDA_SUCCESS &&
                       GCX_DRIVER(cuPointerGetAttribute)(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                                         memory) == CUDA_SUCCESS;
    return !known || type != CU_MEMORYTYPE_DEVICE || managed != 0;
}

bool may_be_host(CUmemorytype type, CUdeviceptr memory) {
    return type == CU_MEMORYTYPE_HOST || (type != CU_MEMORYTYPE_ARRAY && may_be_host(memory));
}

template <class Copy>
bool copies_host(const Copy* copy) {
    return copy != nullptr && (may_be_host(copy->srcMemoryType, copy->srcDevice) ||
                               may_be_host(copy->dstMemoryType, copy->dstDevice));
}

bool uses_host(CUdeviceptr to, CUdeviceptr from, std::size_t) {
    return may_be_host(to) || may_be_host(from);
}
template <class... Others>
bool uses_host(CUdeviceptr filled, const Others&...) {
    return may_be_host(filled);
}

template <Waits kWaits, class... Parameters>
bool call_waits([[maybe_unused]] const Parameters&... arguments) {
    if constexpr (kWaits == Waits::IfHost)
        return uses_host(arguments...);
    else if constexpr (kWaits == Waits::IfHostIn2D)
        return copies_host(static_cast<const CUDA_MEMCPY2D*>(arguments)...);
    else if constexpr (kWaits == Waits::IfHostIn3D)
        return copies_host(static_cast<const CUDA_MEMCPY3D*>(arguments)...);
    else
        return kWaits == Waits::Always;
}

// Starts an operation in the thread's stream, and waits for it there if the host uses its memory.
// Calls the driver's function if no partition is current.
template <class Plain, class Start, class Wait>
CUresult in_thread_stream(const Plain& plain, const Start& start, const Wait& host_waits) {
    ThreadStream own;
    CUresult result = own.find();
    if (result != CUDA_SUCCESS || own.found() == nullptr)
        return result == CUDA_SUCCESS ? plain() : result;
    const CUstream stream = own.found()->handle;
    result = around<Kind::Action>(stream, own.found(), [&] { return start(stream); });
    return result == CUDA_SUCCESS && host_waits() ? GCX_DRIVER(cuStreamSynchronize)(stream)
                                                  : result;
}

// Calls the asynchronous counterpart of a function that uses the per-thread default stream
// implicitly.
template <Waits kWaits, class Asynchronous, class... Parameters>
CUresult call_asynchronous(RealFunction<CUresult(CUDAAPI*)(Parameters...)>& real,
                           Asynchronous& asynchronous, Parameters... arguments) {
    return in_thread_stream([&] { return real(arguments...); },
                            [&](CUstream stream) { return asynchronous(arguments..., stream); },
                            [&] { return call_waits<kWaits>(arguments...); });
}

// The same for functions without an asynchronous counterpart, which copy what this describes.
template <class Plain>
CUresult copy_in_thread_stream(const CUDA_MEMCPY2D* copy, const Plain& plain) {
    return in_thread_stream(
        plain, [&](CUstream stream) { return GCX_DRIVER(cuMemcpy2DAsync_v2)(copy, stream); },
        [&] { return copies_host(copy); });
}

// Part of a row in an array or in device memory.
struct Place {
    CUarray array;
    CUdeviceptr device;
    std::size_t offset;
};

CUDA_MEMCPY2D row_copy(const Place& to, const Place& from, std::size_t bytes) {
    CUDA_MEMCPY2D copy{};
    copy.dstMemoryType = to.array != nullptr ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_DEVICE;
    copy.dstArray = to.array;
    copy.dstDevice = to.device;
    copy.dstXInBytes = to.offset;
    copy.srcMemoryType = from.array != nullptr ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_DEVICE;
    copy.srcArray = from.array;
    copy.srcDevice = from.device;
    copy.srcXInBytes = from.offset;
    copy.WidthInBytes = bytes;
    copy.Height = 1;
    return copy;
}

} // namespace

// Streams.

namespace {

template <class Create>
CUresult create_stream(CUstream* out, unsigned flags, const Create& create) {
    ProgramContext* context = nullptr;
    CUresult result = enter_partition(&context);
    if (result == CUDA_SUCCESS)
        result = create();
    if (result != CUDA_SUCCESS || context == nullptr)
        return result;
    if ((flags & CU_STREAM_NON_BLOCKING) != 0)
        return add_object(context, Object::Stream, number_of(*out));
    const InsideGate inside(context->gate);
    const CUcontext green = context->green.load();
    if (green == nullptr)
        return result; // destroyed by a reset, with the stream
    result = context->order.add(green, *out);
    if (result != CUDA_SUCCESS) {
        GCX_DRIVER(cuStreamDestroy_v2)(*out);
        return result;
    }
    return add_object(context, Object::Stream, number_of(*out));
}

template <class Destroy>
CUresult destroy_stream(CUstream stream, Destroy& real) {
    return free_listed(Object::Stream, number_of(stream),
                       [&] { return StreamOrder::destroy(stream, real.find()); });
}

// The driver says that all streams of a green context are non-blocking (measured).
template <bool kNullIsPerThread, class GetFlags>
CUresult get_flags(CUstream stream, unsigned* out, GetFlags& real) {
    const CUresult result = call<Kind::Question, kNullIsPerThread>(real, stream, out);
    CUcontext context = nullptr;
    if (result != CUDA_SUCCESS || out == nullptr)
        return result;
    const bool blocking = is_default(stream)
                              ? GCX_DRIVER(cuCtxGetCurrent)(&context) == CUDA_SUCCESS &&
                                    find_program_context(context) != nullptr
                              : StreamOrder::find(stream) != nullptr;
    if (blocking)
        *out = CU_STREAM_DEFAULT;
    return CUDA_SUCCESS;
}

// A callback of the program in the per-thread default stream, which gets the stream as the program
// named it.
struct Callback {
    CUstreamCallback function;
    CUstream stream;
    void* data;
};

void CUDA_CB call_back(CUstream, CUresult result, void* callback) {
    const std::unique_ptr<Callback> given(static_cast<Callback*>(callback));
    given->function(given->stream, result, given->data);
}

template <bool kNullIsPerThread, class AddCallback>
CUresult add_callback(CUstream stream, CUstreamCallback function, void* data, unsigned flags,
                      AddCallback& real) {
    if (!is_per_thread<kNullIsPerThread>(stream) || function == nullptr)
        return call<Kind::Action, kNullIsPerThread>(real, stream, function, data, flags);
    auto* const callback = new (std::nothrow) Callback{function, stream, data};
    if (callback == nullptr)
        return CUDA_ERROR_OUT_OF_MEMORY;
    const CUresult result = call<Kind::Action, kNullIsPerThread>(
        real, stream, &call_back, static_cast<void*>(callback), flags);
    if (result != CUDA_SUCCESS)
        delete callback;
    return result;
}

// Waits for all work in the context of a partition.
CUresult synchronize(CUcontext context) {
    CUcontext popped = nullptr;
    CUresult result = GCX_DRIVER(cuCtxPushCurrent_v2)(to_driver(context));
    if (result != CUDA_SUCCESS)
        return result;
    result = GCX_DRIVER(cuCtxSynchronize)();
    GCX_DRIVER(cuCtxPopCurrent_v2)(&popped);
    return result;
}

// A copy between devices waits for all work of both, and the host waits for the copy, by the text of
// the programming guide.
template <class Copy>
CUresult copy_between(CUcontext to, CUcontext from, const Copy& copy) {
    if (to == nullptr || from == nullptr || to == from)
        return copy();
    CUresult result = synchronize(to);
    if (result == CUDA_SUCCESS)
        result = synchronize(from);
    if (result == CUDA_SUCCESS)
        result = copy();
    return result == CUDA_SUCCESS ? GCX_DRIVER(cuCtxSynchronize)() : result;
}

// Returns the same copy within one context. Measured in a green context: the host waits for
// cuMemcpy3DPeerAsync there, and not for cuMemcpy3DAsync.
CUDA_MEMCPY3D without_contexts(const CUDA_MEMCPY3D_PEER& given) {
    CUDA_MEMCPY3D copy{};
    static_assert(sizeof copy == sizeof given &&
                  offsetof(CUDA_MEMCPY3D, reserved1) == offsetof(CUDA_MEMCPY3D_PEER, dstContext));
    std::memcpy(&copy, &given, sizeof copy);
    copy.reserved0 = copy.reserved1 = nullptr;
    return copy;
}

// Plain CUDA refuses to let the legacy default stream join a capture (measured). In a green context
// the driver would let it.
template <class WaitEvent>
CUresult refuse_to_join_capture(CUevent event, const WaitEvent& wait_event) {
    ProgramContext* context = nullptr;
    if (!StreamOrder::any_captures() || enter_partition(&context) != CUDA_SUCCESS ||
        context == nullptr)
        return wait_event();
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    CUresult result = GCX_DRIVER(cuThreadExchangeStreamCaptureMode)(&mode);
    if (result != CUDA_SUCCESS)
        return result;
    // Measured: it invalidates the capture of a captured event, and no other one.
    const CUresult queried = GCX_DRIVER(cuEventQuery)(event);
    result = GCX_DRIVER(cuThreadExchangeStreamCaptureMode)(&mode);
    if (result != CUDA_SUCCESS)
        return result;
    return queried == CUDA_ERROR_CAPTURED_EVENT ? CUDA_ERROR_STREAM_CAPTURE_IMPLICIT : wait_event();
}

template <bool kNullIsPerThread, class WaitEvent>
CUresult wait_event(CUstream stream, CUevent event, unsigned flags, WaitEvent& real) {
    const auto wait = [&] {
        return call<Kind::Mark, kNullIsPerThread>(real, stream, event, flags);
    };
    const bool legacy = is_default(stream) && !is_per_thread<kNullIsPerThread>(stream);
    return legacy ? refuse_to_join_capture(event, wait) : wait();
}

} // namespace

GCX_HOOK(cuStreamCreate, CUstream* out, unsigned flags) {
    return create_stream(out, flags, [&] { return GCX_REAL(cuStreamCreate)(out, flags); });
}

GCX_HOOK(cuStreamCreateWithPriority, CUstream* out, unsigned flags, int priority) {
    return create_stream(
        out, flags, [&] { return GCX_REAL(cuStreamCreateWithPriority)(out, flags, priority); });
}

GCX_HOOK(cuStreamDestroy, CUstream stream) {
    return destroy_stream(stream, GCX_REAL(cuStreamDestroy));
}

GCX_HOOK(cuStreamDestroy_v2, CUstream stream) {
    return destroy_stream(stream, GCX_REAL(cuStreamDestroy_v2));
}

GCX_HOOK(cuStreamGetFlags, CUstream stream, unsigned* out) {
    return get_flags<false>(stream, out, GCX_REAL(cuStreamGetFlags));
}

GCX_HOOK(cuStreamGetFlags_ptsz, CUstream stream, unsigned* out) {
    return get_flags<true>(stream, out, GCX_REAL(cuStreamGetFlags_ptsz));
}

GCX_HOOK(cuStreamWaitEvent, CUstream stream, CUevent event, unsigned flags) {
    return wait_event<false>(stream, event, flags, GCX_REAL(cuStreamWaitEvent));
}

GCX_HOOK(cuStreamWaitEvent_ptsz, CUstream stream, CUevent event, unsigned flags) {
    return wait_event<true>(stream, event, flags, GCX_REAL(cuStreamWaitEvent_ptsz));
}

GCX_HOOK(cuStreamAddCallback, CUstream stream, CUstreamCallback function, void* data,
         unsigned flags) {
    return add_callback<false>(stream, function, data, flags, GCX_REAL(cuStreamAddCallback));
}

GCX_HOOK(cuStreamAddCallback_ptsz, CUstream stream, CUstreamCallback function, void* data,
         unsigned flags) {
    return add_callback<true>(stream, function, data, flags, GCX_REAL(cuStreamAddCallback_ptsz));
}

GCX_HOOK(cuLaunchCooperativeKernelMultiDevice, CUDA_LAUNCH_PARAMS* list, unsigned count,
         unsigned flags) {
    const auto each = [&](const auto& function) {
        CUresult result = CUDA_SUCCESS;
        for (unsigned i = 0; list != nullptr && i < count && result == CUDA_SUCCESS; i++)
            if (BlockingStream* const stream = StreamOrder::find(list[i].hStream))
                result = function(*stream);
        return result;
    };
    CUresult result =
        each([](BlockingStream& stream) { return StreamOrder::begin_blocking(stream); });
    if (result == CUDA_SUCCESS)
        result = GCX_REAL(cuLaunchCooperativeKernelMultiDevice)(list, count, flags);
    each([](BlockingStream& stream) {
        StreamOrder::end_blocking(stream);
        return CUDA_SUCCESS;
    });
    return result;
}

GCX_HOOK(cuMemcpy2DUnaligned_v2_ptds, const CUDA_MEMCPY2D* copy) {
    return copy_in_thread_stream(copy, [&] { return GCX_REAL(cuMemcpy2DUnaligned_v2_ptds)(copy); });
}

GCX_HOOK(cuMemcpyAtoA_v2_ptds, CUarray to, std::size_t to_offset, CUarray from,
         std::size_t from_offset, std::size_t bytes) {
    const CUDA_MEMCPY2D copy = row_copy({to, 0, to_offset}, {from, 0, from_offset}, bytes);
    return copy_in_thread_stream(&copy, [&] {
        return GCX_REAL(cuMemcpyAtoA_v2_ptds)(to, to_offset, from, from_offset, bytes);
    });
}

GCX_HOOK(cuMemcpyAtoD_v2_ptds, CUdeviceptr to, CUarray from, std::size_t offset,
         std::size_t bytes) {
    const CUDA_MEMCPY2D copy = row_copy({nullptr, to, 0}, {from, 0, offset}, bytes);
    return copy_in_thread_stream(
        &copy, [&] { return GCX_REAL(cuMemcpyAtoD_v2_ptds)(to, from, offset, bytes); });
}

GCX_HOOK(cuMemcpyDtoA_v2_ptds, CUarray to, std::size_t offset, CUdeviceptr from,
         std::size_t bytes) {
    const CUDA_MEMCPY2D copy = row_copy({to, 0, offset}, {nullptr, from, 0}, bytes);
    return copy_in_thread_stream(
        &copy, [&] { return GCX_REAL(cuMemcpyDtoA_v2_ptds)(to, offset, from, bytes); });
}

GCX_HOOK(cuMemcpyPeer, CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
         CUcontext from_context, std::size_t bytes) {
    return copy_between(to_context, from_context, [&] {
        return call_in_legacy(GCX_REAL(cuMemcpyPeer), to, to_context, from, from_context, bytes);
    });
}

GCX_HOOK(cuMemcpyPeer_ptds, CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
         CUcontext from_context, std::size_t bytes) {
    return copy_between(to_context, from_context, [&] {
        return call_asynchronous<Waits::Never>(GCX_REAL(cuMemcpyPeer_ptds),
                                               GCX_DRIVER(cuMemcpyPeerAsync), to, to_context, from,
                                               from_context, bytes);
    });
}

GCX_HOOK(cuMemcpy3DPeer, const CUDA_MEMCPY3D_PEER* copy) {
    return copy_between(copy != nullptr ? copy->dstContext : nullptr,
                        copy != nullptr ? copy->srcContext : nullptr,
                        [&] { return call_in_legacy(GCX_REAL(cuMemcpy3DPeer), copy); });
}

GCX_HOOK(cuMemcpy3DPeer_ptds, const CUDA_MEMCPY3D_PEER* copy) {
    const auto plain = [&] { return GCX_REAL(cuMemcpy3DPeer_ptds)(copy); };
    if (copy == nullptr)
        return plain();
    if (copy->dstContext == copy->srcContext) {
        const CUDA_MEMCPY3D same = without_contexts(*copy);
        return in_thread_stream(
            plain, [&](CUstream stream) { return GCX_DRIVER(cuMemcpy3DAsync_v2)(&same, stream); },
            [&] { return copies_host(&same); });
    }
    return copy_between(copy->dstContext, copy->srcContext, [&] {
        return call_asynchronous<Waits::Never>(GCX_REAL(cuMemcpy3DPeer_ptds),
                                               GCX_DRIVER(cuMemcpy3DPeerAsync), copy);
    });
}

// PARAMETERS(types...) and ARGUMENTS(types...) number the parameters of the types.
// NOLINTBEGIN(bugprone-macro-parentheses)
#define COUNT(...) PICK(__VA_ARGS__, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define PICK(a, b, c, d, e, f, g, h, i, j, k, count, ...) count
#define JOIN(a, b) JOIN_AS_IS(a, b)
#define JOIN_AS_IS(a, b) a##b
#define PARAMETERS(...) JOIN(PARAMETERS_, COUNT(__VA_ARGS__))(__VA_ARGS__)
#define PARAMETERS_1(type) type a1
#define PARAMETERS_2(type, ...) type a2, PARAMETERS_1(__VA_ARGS__)
#define PARAMETERS_3(type, ...) type a3, PARAMETERS_2(__VA_ARGS__)
#define PARAMETERS_4(type, ...) type a4, PARAMETERS_3(__VA_ARGS__)
#define PARAMETERS_5(type, ...) type a5, PARAMETERS_4(__VA_ARGS__)
#define PARAMETERS_6(type, ...) type a6, PARAMETERS_5(__VA_ARGS__)
#define PARAMETERS_7(type, ...) type a7, PARAMETERS_6(__VA_ARGS__)
#define PARAMETERS_8(type, ...) type a8, PARAMETERS_7(__VA_ARGS__)
#define PARAMETERS_9(type, ...) type a9, PARAMETERS_8(__VA_ARGS__)
#define PARAMETERS_10(type, ...) type a10, PARAMETERS_9(__VA_ARGS__)
#define PARAMETERS_11(type, ...) type a11, PARAMETERS_10(__VA_ARGS__)
#define ARGUMENTS(...) JOIN(ARGUMENTS_, COUNT(__VA_ARGS__))
#define ARGUMENTS_1 a1
#define ARGUMENTS_2 a2, ARGUMENTS_1
#define ARGUMENTS_3 a3, ARGUMENTS_2
#define ARGUMENTS_4 a4, ARGUMENTS_3
#define ARGUMENTS_5 a5, ARGUMENTS_4
#define ARGUMENTS_6 a6, ARGUMENTS_5
#define ARGUMENTS_7 a7, ARGUMENTS_6
#define ARGUMENTS_8 a8, ARGUMENTS_7
#define ARGUMENTS_9 a9, ARGUMENTS_8
#define ARGUMENTS_10 a10, ARGUMENTS_9
#define ARGUMENTS_11 a11, ARGUMENTS_10

#define COMMA ,
#define DEFINE(symbol, caller, ...)                                                                \
    GCX_HOOK(symbol, PARAMETERS(__VA_ARGS__)) {                                                    \
        return caller(GCX_REAL(symbol), ARGUMENTS(__VA_ARGS__));                                   \
    }
#define S(kind, base, symbol, since, ...)                                                          \
    DEFINE(symbol, call<Kind::kind COMMA false>, __VA_ARGS__)                                      \
    DEFINE(symbol##_ptsz, call<Kind::kind COMMA true>, __VA_ARGS__)
// Recorded: NULL is refused by cuMemcpyBatchAsync_ptsz too.
#define B(kind, base, symbol, since, ...)                                                          \
    DEFINE(symbol, call<Kind::kind COMMA false>, __VA_ARGS__)                                      \
    DEFINE(symbol##_ptsz, call<Kind::kind COMMA false>, __VA_ARGS__)
#define N(kind, base, symbol, since, ...) DEFINE(symbol, call<Kind::kind COMMA false>, __VA_ARGS__)
#define C(object, base, symbol, since, ...)                                                        \
    DEFINE(symbol, create_object<Object::object>, __VA_ARGS__)
#define R(object, base, symbol, since, ...) DEFINE(symbol, free_object<Object::object>, __VA_ARGS__)
#define NE(base, symbol, since, ...) DEFINE(symbol, enter_and_call, __VA_ARGS__)
#define M(base, symbol, since, ...) DEFINE(symbol, call_in_legacy, __VA_ARGS__)
#define D(base, symbol, since, asynchronous, waits, ...)                                           \
    M(base, symbol, since, __VA_ARGS__)                                                            \
    GCX_HOOK(symbol##_ptds, PARAMETERS(__VA_ARGS__)) {                                             \
        return call_asynchronous<Waits::waits>(                                                    \
            GCX_REAL(symbol##_ptds),                                                               \
            GCX_REAL_AS(asynchronous, CUresult(CUDAAPI*)(__VA_ARGS__, CUstream)),                  \
            ARGUMENTS(__VA_ARGS__));                                                               \
    }
#define L M
// NOLINTEND(bugprone-macro-parentheses)

#define E(...)
#define P(...)
#include "interpose/entry_points.inc"

} // namespace gcx::interpose

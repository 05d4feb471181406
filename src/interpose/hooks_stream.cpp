// Hooks of all functions that take a stream. Each calls the driver's function, and replaces the
// per-thread default stream by a stream of the thread. Measured with driver 580: while a green
// context is current, each use of the per-thread default stream fails with
// CUDA_ERROR_INVALID_HANDLE.
#include "interpose/partition.hpp"
#include "interpose/real_driver.hpp"

#include <pthread.h>

#include <cstddef>
#include <cstdlib>
#include <exception>
#include <memory>
#include <vector>

namespace gcx::interpose {
namespace {

// A thread's stream in one partition.
struct ThreadStream {
    Partition* partition;
    uint64_t generation; // of the partition. If it has changed since, the stream is destroyed.
    CUstream stream;
};
using ThreadStreams = std::vector<ThreadStream>;

constexpr int64_t kNoKey = -1;
constinit std::atomic<int64_t> streams_key{kNoKey};
// Set by atexit before the driver shuts down, since functions registered last run first.
constinit std::atomic<bool> process_ends{false};

// Set while the thread creates or destroys a stream. A driver that calls its replacement functions
// by name calls hooks during that time.
thread_local bool t_busy = false;

struct Busy {
    Busy() { t_busy = true; }
    ~Busy() { t_busy = false; }
    Busy(const Busy&) = delete;
    Busy& operator=(const Busy&) = delete;
};

// Destroys one stream of an ending thread. Does nothing in the child of a fork or after the driver
// has shut down: CUDA is unusable there, and the lock can belong to a thread that does not exist.
void destroy_stream(const ThreadStream& entry) {
    if (process_ends.load() || check_driver_usable() != CUDA_SUCCESS)
        return;
    const std::lock_guard lock(entry.partition->mutex);
    if (entry.partition->generation.load() != entry.generation)
        return;
    std::erase(entry.partition->thread_streams, entry.stream);
    GCX_DRIVER(cuStreamDestroy_v2)(entry.stream);
}

// Destroys the streams of a thread that ends. Destructors of keys run after those of thread_local
// objects, which can still use the stream; a later use creates a new one. At the end of the process
// the driver destroys the streams of the main thread and of running threads.
void end_thread(void* streams) {
    const Busy busy;
    const auto* const all = static_cast<ThreadStreams*>(streams);
    for (const ThreadStream& entry : *all)
        destroy_stream(entry);
    delete all;
}

// Returns the key of the thread's list, or kNoKey. The first caller creates it. Takes no lock:
// after a fork the child could find it locked.
int64_t get_key() {
    int64_t known = streams_key.load(std::memory_order_acquire);
    pthread_key_t created = 0;
    if (known != kNoKey || pthread_key_create(&created, end_thread) != 0)
        return known;
    if (!streams_key.compare_exchange_strong(known, static_cast<int64_t>(created))) {
        pthread_key_delete(created);
        return known;
    }
    std::atexit([] { process_ends.store(true); });
    return static_cast<int64_t>(created);
}

// Returns the thread's list, or null if there is no memory or key for it.
ThreadStreams* get_all() {
    const int64_t key = get_key();
    if (key == kNoKey)
        return nullptr;
    const auto thread_key = static_cast<pthread_key_t>(key);
    auto* all = static_cast<ThreadStreams*>(pthread_getspecific(thread_key));
    if (all != nullptr)
        return all;
    auto created = std::make_unique<ThreadStreams>();
    if (pthread_setspecific(thread_key, created.get()) != 0)
        return nullptr;
    return created.release();
}

// Creates a stream. A capture that the thread is in must not be affected.
CUresult create_stream(CUstream* out) {
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    CUresult result = GCX_DRIVER(cuThreadExchangeStreamCaptureMode)(&mode);
    if (result != CUDA_SUCCESS)
        return result;
    result = GCX_DRIVER(cuStreamCreate)(out, CU_STREAM_DEFAULT);
    GCX_DRIVER(cuThreadExchangeStreamCaptureMode)(&mode);
    return result;
}

// Creates the thread's stream. The partition's green context must be current.
CUresult create_thread_stream(Partition& partition, CUcontext green, ThreadStreams& all,
                              CUstream* out) {
    const Busy busy;
    if (const CUresult usable = check_driver_usable(); usable != CUDA_SUCCESS)
        return usable;
    all.reserve(all.size() + 1);
    const std::lock_guard lock(partition.mutex);
    if (partition.green.load() != green)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED; // by a concurrent reset
    partition.thread_streams.reserve(partition.thread_streams.size() + 1);
    const CUresult result = create_stream(out);
    if (result != CUDA_SUCCESS)
        return result;
    partition.thread_streams.push_back(*out);
    std::erase_if(all, [&](const ThreadStream& entry) { return entry.partition == &partition; });
    all.push_back({&partition, partition.generation.load(), *out});
    return CUDA_SUCCESS;
}

CUresult find_or_create(Partition& partition, CUcontext green, CUstream* out) {
    ThreadStreams* const all = get_all();
    if (all == nullptr)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (const ThreadStream& entry : *all)
        if (entry.partition == &partition && entry.generation == partition.generation.load()) {
            *out = entry.stream;
            return CUDA_SUCCESS;
        }
    return create_thread_stream(partition, green, *all, out);
}

// An argument of a hook. needs_replacement() returns whether it is or contains the per-thread
// default stream. get() returns the argument with that stream replaced. The program's structs stay
// as they are.
template <bool kNullIsPerThread, class T>
struct Argument {
    static bool needs_replacement(const T&) { return false; }
    Argument(T given, CUstream) : value(given) {}
    T get() { return value; }
    T value;
};

template <bool kNullIsPerThread>
struct Argument<kNullIsPerThread, CUstream> {
    static bool needs_replacement(CUstream given) { return is_per_thread<kNullIsPerThread>(given); }
    Argument(CUstream given, CUstream replacement)
        : value(needs_replacement(given) ? replacement : given) {}
    CUstream get() { return value; }
    CUstream value;
};

template <bool kNullIsPerThread>
struct Argument<kNullIsPerThread, const CUlaunchConfig*> {
    static bool needs_replacement(const CUlaunchConfig* given) {
        return given != nullptr && is_per_thread<kNullIsPerThread>(given->hStream);
    }
    Argument(const CUlaunchConfig* given, CUstream replacement) : value(*given) {
        value.hStream = replacement;
    }
    const CUlaunchConfig* get() { return &value; }
    CUlaunchConfig value;
};

// The driver writes results into this struct, so they are copied back.
template <bool kNullIsPerThread>
struct Argument<kNullIsPerThread, CUDA_GRAPH_INSTANTIATE_PARAMS*> {
    static bool needs_replacement(const CUDA_GRAPH_INSTANTIATE_PARAMS* given) {
        return given != nullptr && (given->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) != 0 &&
               is_per_thread<kNullIsPerThread>(given->hUploadStream);
    }
    Argument(CUDA_GRAPH_INSTANTIATE_PARAMS* given, CUstream replacement)
        : original(given), value(*given) {
        value.hUploadStream = replacement;
    }
    ~Argument() {
        value.hUploadStream = original->hUploadStream;
        *original = value;
    }
    Argument(const Argument&) = delete;
    Argument& operator=(const Argument&) = delete;
    CUDA_GRAPH_INSTANTIATE_PARAMS* get() { return &value; }
    CUDA_GRAPH_INSTANTIATE_PARAMS* original;
    CUDA_GRAPH_INSTANTIATE_PARAMS value;
};

template <bool kNullIsPerThread, class... Parameters>
[[gnu::noinline, gnu::cold]] CUresult
call_replaced(RealFunction<CUresult(CUDAAPI*)(Parameters...)>& real, Parameters... arguments) {
    CUstream replacement = nullptr;
    if ((Argument<kNullIsPerThread, Parameters>::needs_replacement(arguments) || ...))
        if (const CUresult result = get_thread_stream(&replacement); result != CUDA_SUCCESS)
            return result;
    return replacement != nullptr
               ? real(Argument<kNullIsPerThread, Parameters>(arguments, replacement).get()...)
               : real(arguments...);
}

// Calls the driver's function. On the path of a launch this is two comparisons and a jump.
template <bool kNullIsPerThread, class... Parameters>
[[gnu::always_inline]] inline CUresult call(RealFunction<CUresult(CUDAAPI*)(Parameters...)>& real,
                                            Parameters... arguments) {
    const auto function = real.found();
    const bool replace =
        (Argument<kNullIsPerThread, Parameters>::needs_replacement(arguments) || ...);
    if (function != nullptr && !replace) [[likely]]
        return function(arguments...);
    return call_replaced<kNullIsPerThread>(real, arguments...);
}

template <bool kNullIsPerThread, class... Parameters>
CUresult enter_and_call(RealFunction<CUresult(CUDAAPI*)(Parameters...)>& real,
                        Parameters... arguments) {
    const CUresult entered = enter_partition();
    return entered == CUDA_SUCCESS ? call<kNullIsPerThread>(real, arguments...) : entered;
}

// When a function without a stream argument waits for the thread's stream.
enum class Waits { Always, Never, IfHost };

// Returns whether memory is or can be on the host. Such memory must be set when the call returns.
bool may_be_host(CUdeviceptr memory) {
    unsigned managed = 0;
    CUmemorytype type = CU_MEMORYTYPE_HOST;
    const bool known = GCX_DRIVER(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                                         memory) == CUDA_SUCCESS &&
                       GCX_DRIVER(cuPointerGetAttribute)(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                                         memory) == CUDA_SUCCESS;
    return !known || type != CU_MEMORYTYPE_DEVICE || managed != 0;
}

template <Waits kWaits, class First, class... Others>
bool call_waits([[maybe_unused]] First first, const Others&...) {
    if constexpr (kWaits == Waits::IfHost)
        return may_be_host(first);
    return kWaits == Waits::Always;
}

// Calls the asynchronous counterpart of a function that has no stream argument.
template <Waits kWaits, class Asynchronous, class... Parameters>
CUresult call_in_thread_stream(RealFunction<CUresult(CUDAAPI*)(Parameters...)>& real,
                               Asynchronous& asynchronous, Parameters... arguments) {
    CUstream replacement = nullptr;
    CUresult result = get_thread_stream(&replacement);
    if (result != CUDA_SUCCESS)
        return result;
    if (replacement == nullptr)
        return real(arguments...);
    result = asynchronous(arguments..., replacement);
    return result == CUDA_SUCCESS && call_waits<kWaits>(arguments...)
               ? GCX_DRIVER(cuStreamSynchronize)(replacement)
               : result;
}

template <class... Parameters>
CUresult call_in_legacy(RealFunction<CUresult(CUDAAPI*)(Parameters...)>& real,
                        RealFunction<CUresult(CUDAAPI*)(Parameters...)>& legacy,
                        Parameters... arguments) {
    CUstream replacement = nullptr;
    const CUresult result = get_thread_stream(&replacement);
    if (result != CUDA_SUCCESS)
        return result;
    return replacement != nullptr ? legacy(arguments...) : real(arguments...);
}

} // namespace

CUresult get_thread_stream(CUstream* found) {
    *found = nullptr;
    CUcontext current = nullptr;
    // Without a context and after a fork, the driver returns the right error.
    if (t_busy || GCX_DRIVER(cuCtxGetCurrent)(&current) != CUDA_SUCCESS || current == nullptr)
        return CUDA_SUCCESS;
    Partition* partition = find_partition_by_green(current);
    if (partition == nullptr) {
        const CUresult entered = enter_partition();
        if (entered != CUDA_SUCCESS)
            return entered;
        if (GCX_DRIVER(cuCtxGetCurrent)(&current) != CUDA_SUCCESS)
            return CUDA_SUCCESS;
        partition = find_partition_by_green(current);
    }
    if (partition == nullptr)
        return CUDA_SUCCESS;
    try {
        return find_or_create(*partition, current, found);
    } catch (const std::exception&) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
}

void destroy_thread_streams(Partition& partition) {
    const Busy busy;
    for (const CUstream stream : partition.thread_streams)
        GCX_DRIVER(cuStreamDestroy_v2)(stream);
    partition.thread_streams.clear();
    partition.generation++;
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

#define DEFINE(symbol, caller, ...)                                                                \
    GCX_HOOK(symbol, PARAMETERS(__VA_ARGS__)) {                                                    \
        return caller(GCX_REAL(symbol), ARGUMENTS(__VA_ARGS__));                                   \
    }
#define S(base, symbol, since, ...)                                                                \
    DEFINE(symbol, call<false>, __VA_ARGS__)                                                       \
    DEFINE(symbol##_ptsz, call<true>, __VA_ARGS__)
#define N(base, symbol, since, ...) DEFINE(symbol, call<false>, __VA_ARGS__)
#define SE(base, symbol, since, ...)                                                               \
    DEFINE(symbol, enter_and_call<false>, __VA_ARGS__)                                             \
    DEFINE(symbol##_ptsz, enter_and_call<true>, __VA_ARGS__)
#define NE(base, symbol, since, ...) DEFINE(symbol, enter_and_call<false>, __VA_ARGS__)
#define D(base, symbol, asynchronous, waits, ...)                                                  \
    GCX_HOOK(symbol##_ptds, PARAMETERS(__VA_ARGS__)) {                                             \
        return call_in_thread_stream<Waits::waits>(                                                \
            GCX_REAL(symbol##_ptds),                                                               \
            GCX_REAL_AS(asynchronous, CUresult(CUDAAPI*)(__VA_ARGS__, CUstream)),                  \
            ARGUMENTS(__VA_ARGS__));                                                               \
    }
#define L(base, symbol, ...)                                                                       \
    GCX_HOOK(symbol##_ptds, PARAMETERS(__VA_ARGS__)) {                                             \
        return call_in_legacy(GCX_REAL(symbol##_ptds),                                             \
                              GCX_REAL_AS(symbol, CUresult(CUDAAPI*)(__VA_ARGS__)),                \
                              ARGUMENTS(__VA_ARGS__));                                             \
    }
// NOLINTEND(bugprone-macro-parentheses)

#define E(...)
#define P(...)
#include "interpose/entry_points.inc"

} // namespace gcx::interpose

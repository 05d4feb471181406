#include "interpose/thread_streams.hpp"

#include "interpose/real_driver.hpp"

#include <pthread.h>

#include <cstdlib>
#include <exception>
#include <memory>
#include <vector>

namespace gcx::interpose {
namespace {

// A thread's stream in one context.
struct Entry {
    ProgramContext* context;
    uint64_t generation; // of the context. If it has changed since, the stream is destroyed.
    BlockingStream* stream;
};
using Entries = std::vector<Entry>;

constexpr int64_t kNoKey = -1;
constinit std::atomic<int64_t> entries_key{kNoKey};
// Set by atexit before the driver shuts down, since functions registered last run first.
constinit std::atomic<bool> process_ends{false};

// Set while the thread creates or destroys a stream. A driver that calls its own functions by name
// calls hooks during that time.
thread_local bool t_busy = false;

struct Busy {
    Busy() { t_busy = true; }
    ~Busy() { t_busy = false; }
    Busy(const Busy&) = delete;
    Busy& operator=(const Busy&) = delete;
};

// Destroys one stream of an ending thread. Does nothing in the child of a fork or after the driver
// has shut down: CUDA is unusable there, and the lock can belong to a thread that does not exist.
void destroy_stream(const Entry& entry) {
    if (process_ends.load() || check_driver_usable() != CUDA_SUCCESS)
        return;
    ProgramContext& context = *entry.context;
    const InsideGate inside(context.gate);
    {
        const std::lock_guard lock(context.mutex);
        if (context.generation.load() != entry.generation)
            return;
        std::erase(context.thread_streams, entry.stream);
    }
    context.order.destroy(*entry.stream, GCX_DRIVER(cuStreamDestroy_v2).find());
}

// Destroys the streams of a thread that ends. Destructors of keys run after those of thread_local
// objects, which can still use the stream; a later use creates a new one. At the end of the process
// the driver destroys the streams of the main thread and of running threads.
void end_thread(void* entries) {
    const Busy busy;
    const auto* const all = static_cast<Entries*>(entries);
    for (const Entry& entry : *all)
        destroy_stream(entry);
    delete all;
}

// Returns the key of the thread's list, or kNoKey. The first caller creates it. Takes no lock:
// after a fork the child could find it locked.
int64_t get_key() {
    int64_t known = entries_key.load(std::memory_order_acquire);
    pthread_key_t created = 0;
    if (known != kNoKey || pthread_key_create(&created, end_thread) != 0)
        return known;
    if (!entries_key.compare_exchange_strong(known, static_cast<int64_t>(created))) {
        pthread_key_delete(created);
        return known;
    }
    std::atexit([] { process_ends.store(true); });
    return static_cast<int64_t>(created);
}

// Returns the thread's list, or null if there is no memory or key for it.
Entries* get_all() {
    const int64_t key = get_key();
    if (key == kNoKey)
        return nullptr;
    const auto thread_key = static_cast<pthread_key_t>(key);
    auto* all = static_cast<Entries*>(pthread_getspecific(thread_key));
    if (all != nullptr)
        return all;
    auto created = std::make_unique<Entries>();
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

// Creates the thread's stream. The context's green context must be current, and its gate entered.
CUresult create_thread_stream(ProgramContext& context, CUcontext green, Entries& all,
                              BlockingStream** out) {
    const Busy busy;
    if (const CUresult usable = check_driver_usable(); usable != CUDA_SUCCESS)
        return usable;
    if (context.green.load() != green)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED; // by a reset
    all.reserve(all.size() + 1);
    CUstream stream = nullptr;
    CUresult result = create_stream(&stream);
    if (result != CUDA_SUCCESS)
        return result;
    result = context.order.add(green, stream, out);
    if (result != CUDA_SUCCESS) {
        GCX_DRIVER(cuStreamDestroy_v2)(stream);
        return result;
    }
    try {
        const std::lock_guard lock(context.mutex);
        context.thread_streams.push_back(*out);
    } catch (const std::exception&) {
        context.order.destroy(**out, GCX_DRIVER(cuStreamDestroy_v2).find());
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    std::erase_if(all, [&](const Entry& entry) { return entry.context == &context; });
    all.push_back({&context, context.generation.load(), *out});
    return CUDA_SUCCESS;
}

CUresult find_or_create(ProgramContext& context, CUcontext green, BlockingStream** out) {
    Entries* const all = get_all();
    if (all == nullptr)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (const Entry& entry : *all)
        if (entry.context == &context && entry.generation == context.generation.load()) {
            *out = entry.stream;
            return CUDA_SUCCESS;
        }
    return create_thread_stream(context, green, *all, out);
}

} // namespace

ThreadStream::~ThreadStream() {
    if (context_ != nullptr)
        context_->gate.leave();
}

CUresult ThreadStream::find() {
    // Without a context and after a fork, the driver returns the right error.
    CUcontext current = nullptr;
    if (t_busy || GCX_DRIVER(cuCtxGetCurrent)(&current) != CUDA_SUCCESS || current == nullptr)
        return CUDA_SUCCESS;
    ProgramContext* entered = nullptr;
    const CUresult result = enter_partition(&entered);
    if (result != CUDA_SUCCESS || entered == nullptr)
        return result;
    entered->gate.enter();
    context_ = entered;
    // A reset since then has destroyed the context that is current, as the driver will say.
    if (GCX_DRIVER(cuCtxGetCurrent)(&current) != CUDA_SUCCESS || current != entered->green.load())
        return CUDA_SUCCESS;
    try {
        return find_or_create(*entered, current, &found_);
    } catch (const std::exception&) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
}

void destroy_thread_streams(ProgramContext& context) {
    const Busy busy;
    for (const BlockingStream* const stream : context.thread_streams)
        GCX_DRIVER(cuStreamDestroy_v2)(stream->handle);
    context.thread_streams.clear();
    context.generation++;
}

} // namespace gcx::interpose

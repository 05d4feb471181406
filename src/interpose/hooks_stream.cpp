#include "interpose/thread_streams.hpp"

#include "interpose/real_driver.hpp"

#include <pthread.h>

#include <cstdlib>
#include <exception>
#include <memory>
#include <vector>

namespace gcx::shim {
namespace {

// A stream of a thread, as the thread knows it.
struct Kept {
    Partition* partition;
    uint64_t generation; // of the partition's streams: if that has changed, it is gone
    CUstream stream;
};
using AllKept = std::vector<Kept>;

constexpr int64_t kNoKey = -1;
constinit std::atomic<int64_t> key{kNoKey};
// Set before the driver shuts down, since what is registered last runs first.
constinit std::atomic<bool> process_ends{false};

// Set while the thread makes or destroys one: a driver that calls its own functions by their names
// comes here in the middle of it.
thread_local bool t_busy = false;

struct Busy {
    Busy() { t_busy = true; }
    ~Busy() { t_busy = false; }
    Busy(const Busy&) = delete;
    Busy& operator=(const Busy&) = delete;
};

// A child of a fork, and a process whose driver has shut down, have no CUDA: there is nothing to
// destroy, and the lock may be held by who isn't there any more.
void end_one(const Kept& kept) {
    if (process_ends.load() || ask_usable() != CUDA_SUCCESS)
        return;
    const std::lock_guard lock(kept.partition->making);
    if (kept.partition->generation.load() != kept.generation)
        return;
    std::erase(kept.partition->thread_streams, kept.stream);
    GCX_REAL_ALONE(cuStreamDestroy_v2)(kept.stream);
}

// At a thread's end, but not at the process's: the streams of threads that live then, and the main
// thread's, are left to the driver. Destructors of thread_local objects, which may still use the
// stream, come before those of keys; and if somebody uses it later, it is made anew.
void end_thread(void* streams) {
    const Busy busy;
    const auto* const all = static_cast<AllKept*>(streams);
    for (const Kept& kept : *all)
        end_one(kept);
    delete all;
}

// Made by whoever comes first, without a lock that a child of a fork could find held.
int64_t get_key() {
    int64_t known = key.load(std::memory_order_acquire);
    pthread_key_t made = 0;
    if (known != kNoKey || pthread_key_create(&made, end_thread) != 0)
        return known;
    if (!key.compare_exchange_strong(known, static_cast<int64_t>(made))) {
        pthread_key_delete(made);
        return known;
    }
    std::atexit([] { process_ends.store(true); });
    return static_cast<int64_t>(made);
}

// The thread's list, empty at first; null without memory or keys.
AllKept* get_all() {
    const int64_t its_key = get_key();
    if (its_key == kNoKey)
        return nullptr;
    const auto thread_key = static_cast<pthread_key_t>(its_key);
    auto* all = static_cast<AllKept*>(pthread_getspecific(thread_key));
    if (all != nullptr)
        return all;
    auto made = std::make_unique<AllKept>();
    if (pthread_setspecific(thread_key, made.get()) != 0)
        return nullptr;
    return made.release();
}

// What a new stream is made by must not be taken for a part of a capture that the thread is in.
CUresult create_stream(CUstream* out) {
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    CUresult result = GCX_REAL_ALONE(cuThreadExchangeStreamCaptureMode)(&mode);
    if (result != CUDA_SUCCESS)
        return result;
    result = GCX_REAL_ALONE(cuStreamCreate)(out, CU_STREAM_DEFAULT);
    GCX_REAL_ALONE(cuThreadExchangeStreamCaptureMode)(&mode);
    return result;
}

// The partition's green context is current. The list is the thread's own.
CUresult make_stream(Partition& partition, CUcontext green, AllKept& all, CUstream* out) {
    const Busy busy;
    if (const CUresult usable = ask_usable(); usable != CUDA_SUCCESS)
        return usable;
    all.reserve(all.size() + 1);
    const std::lock_guard lock(partition.making);
    if (partition.green.load() != green)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED; // by a reset meanwhile
    partition.thread_streams.reserve(partition.thread_streams.size() + 1);
    const CUresult result = create_stream(out);
    if (result != CUDA_SUCCESS)
        return result;
    partition.thread_streams.push_back(*out);
    std::erase_if(all, [&](const Kept& kept) { return kept.partition == &partition; });
    all.push_back({&partition, partition.generation.load(), *out});
    return CUDA_SUCCESS;
}

CUresult find_or_make(Partition& partition, CUcontext green, CUstream* out) {
    AllKept* const all = get_all();
    if (all == nullptr)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (const Kept& kept : *all)
        if (kept.partition == &partition && kept.generation == partition.generation.load()) {
            *out = kept.stream;
            return CUDA_SUCCESS;
        }
    return make_stream(partition, green, *all, out);
}

} // namespace

CUresult find_thread_stream(CUstream* found) {
    *found = nullptr;
    CUcontext current = nullptr;
    // What the driver itself answers without a context, or after a fork, is right.
    if (t_busy || GCX_REAL_ALONE(cuCtxGetCurrent)(&current) != CUDA_SUCCESS || current == nullptr)
        return CUDA_SUCCESS;
    Partition* partition = partition_of(current);
    if (partition == nullptr) {
        const CUresult entered = enter();
        if (entered != CUDA_SUCCESS)
            return entered;
        if (GCX_REAL_ALONE(cuCtxGetCurrent)(&current) != CUDA_SUCCESS)
            return CUDA_SUCCESS;
        partition = partition_of(current);
    }
    if (partition == nullptr)
        return CUDA_SUCCESS;
    try {
        return find_or_make(*partition, current, found);
    } catch (const std::exception&) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
}

void destroy_thread_streams(Partition& partition) {
    const Busy busy;
    for (const CUstream stream : partition.thread_streams)
        GCX_REAL_ALONE(cuStreamDestroy_v2)(stream);
    forget_thread_streams(partition);
}

void forget_thread_streams(Partition& partition) {
    partition.thread_streams.clear();
    partition.generation++;
}

} // namespace gcx::shim

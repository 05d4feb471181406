#include "interpose/stream_order.hpp"

#include "interpose/real_driver.hpp"

#include <exception>
#include <mutex>
#include <new>
#include <thread>
#include <utility>

namespace gcx::interpose {
namespace {

// Guards the lists of streams, of all orders. Not held during calls of the driver.
constinit std::mutex lists_mutex;

constexpr std::size_t kBuckets = 4096;
constinit std::array<BlockingStream::Slot, kBuckets> buckets{};

BlockingStream::Slot& bucket_of(CUstream stream) {
    const auto address = reinterpret_cast<uintptr_t>(stream);
    return buckets[(address >> 4 ^ address >> 16) % kBuckets];
}

BlockingStream* find_any(CUstream stream) {
    BlockingStream* found = bucket_of(stream).load(std::memory_order_acquire);
    while (found != nullptr && found->handle != stream)
        found = found->next;
    return found;
}

// Requires the lock.
BlockingStream& find_or_create(CUstream stream) {
    BlockingStream* found = find_any(stream);
    if (found == nullptr) {
        found = new BlockingStream(stream);
        found->next = bucket_of(stream).load();
        bucket_of(stream).store(found, std::memory_order_release);
    }
    return *found;
}

// Raises a count that several threads raise.
void raise(std::atomic<uint64_t>& count, uint64_t to) {
    uint64_t now = count.load();
    while (now < to && !count.compare_exchange_weak(now, to)) {
    }
}

CUresult create_event(CUevent* out) {
    return GCX_DRIVER(cuEventCreate)(out, CU_EVENT_DISABLE_TIMING);
}

CUresult record(CUevent event, CUstream stream) {
    return GCX_DRIVER(cuEventRecord)(event, stream);
}

CUresult wait(CUstream stream, CUevent event) {
    return GCX_DRIVER(cuStreamWaitEvent)(stream, event, 0);
}

// Calls with the context current, for which NULL is its legacy default stream.
template <class Call>
CUresult with_current(CUcontext context, const Call& call) {
    CUcontext current = nullptr;
    CUresult result = GCX_DRIVER(cuCtxGetCurrent)(&current);
    if (result != CUDA_SUCCESS || current == context)
        return result == CUDA_SUCCESS ? call() : result;
    result = GCX_DRIVER(cuCtxPushCurrent_v2)(context);
    if (result != CUDA_SUCCESS)
        return result;
    result = call();
    GCX_DRIVER(cuCtxPopCurrent_v2)(&current);
    return result;
}

// Calls unless the stream is destroyed, and keeps it from that.
template <class Call>
CUresult while_alive(BlockingStream& stream, const StreamOrder* order, const Call& call) {
    stream.visitors.fetch_add(1);
    const CUresult result = stream.order.load() == order ? call() : CUDA_SUCCESS;
    stream.visitors.fetch_sub(1);
    return result;
}

// Unused objects for work of destroyed streams, guarded by the lock.
constinit BlockingStream* unused_work = nullptr;

// Returns null if there is no memory.
BlockingStream* take_work() {
    const std::lock_guard lock(lists_mutex);
    if (unused_work == nullptr)
        return new (std::nothrow) BlockingStream(nullptr);
    return std::exchange(unused_work, unused_work->next);
}

} // namespace

template <class Visit>
CUresult StreamOrder::visit(const Visit& function) {
    for (Chunk* chunk = &streams_; chunk != nullptr; chunk = chunk->next.load()) {
        for (const Slot& slot : chunk->slots) {
            BlockingStream* visited = nullptr;
            // Again if another thread has destroyed the stream and left its work in the slot.
            for (BlockingStream* now = slot.load(); now != visited; now = slot.load()) {
                visited = now;
                if (const CUresult result = visited != nullptr ? function(*visited) : CUDA_SUCCESS;
                    result != CUDA_SUCCESS)
                    return result;
            }
        }
    }
    return CUDA_SUCCESS;
}

BlockingStream* StreamOrder::find(CUstream stream) {
    BlockingStream* const found = find_any(stream);
    return found != nullptr && found->order.load() != nullptr ? found : nullptr;
}

bool StreamOrder::is_capturing(CUstream stream) {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    return any_captures() && GCX_DRIVER(cuStreamIsCapturing)(stream, &status) == CUDA_SUCCESS &&
           status != CU_STREAM_CAPTURE_STATUS_NONE;
}

void StreamOrder::add_slots() {
    Chunk* chunk = &streams_;
    free_slots_.reserve(slot_count_ + chunk->slots.size());
    if (slot_count_ != 0) {
        while (Chunk* const next = chunk->next.load())
            chunk = next;
        auto* const added = new Chunk;
        chunk->next.store(added);
        chunk = added;
    }
    slot_count_ += chunk->slots.size();
    for (Slot& slot : chunk->slots)
        free_slots_.push_back(&slot);
}

StreamOrder::Slot* StreamOrder::take_slot() {
    if (free_slots_.empty())
        add_slots();
    Slot* const taken = free_slots_.back();
    free_slots_.pop_back();
    return taken;
}

void StreamOrder::put(BlockingStream& stream, CUevent event, uint64_t pending) {
    stream.event = event;
    stream.joined.store(stream.submitted.fetch_add(pending));
    stream.waits.store(0);
    stream.order.store(this);
    stream.slot->store(&stream);
}

CUresult StreamOrder::add(CUcontext context, CUstream stream, BlockingStream** added) {
    CUevent event = nullptr;
    CUevent legacy = nullptr;
    release_completed();
    CUresult result = create_event(&event);
    if (result == CUDA_SUCCESS && legacy_event_.load() == nullptr)
        result = create_event(&legacy);
    if (result == CUDA_SUCCESS) {
        try {
            const std::lock_guard lock(lists_mutex);
            BlockingStream& found = find_or_create(stream);
            if (legacy != nullptr && legacy_event_.load() == nullptr)
                legacy_event_.store(std::exchange(legacy, nullptr));
            context_.store(context);
            found.slot = take_slot();
            put(found, std::exchange(event, nullptr));
            if (added != nullptr)
                *added = &found;
            needed_.store(true);
        } catch (const std::exception&) {
            result = CUDA_ERROR_OUT_OF_MEMORY;
        }
    }
    for (const CUevent unused : {event, legacy})
        if (unused != nullptr)
            GCX_DRIVER(cuEventDestroy_v2)(unused);
    return result;
}

// Returns false if another thread removes it.
bool StreamOrder::claim(BlockingStream& stream) {
    StreamOrder* expected = this;
    return stream.order.compare_exchange_strong(expected, nullptr);
}

// Removes a stream that the thread has claimed, from its slot too unless that is another's. Waits
// for visitors, which do not block: a stream in which another thread launches, or waits to launch,
// must not be destroyed by the program.
void StreamOrder::remove(BlockingStream& stream, Slot* slot) {
    if (slot != nullptr)
        slot->store(nullptr);
    while (stream.visitors.load() != 0)
        std::this_thread::yield();
}

void StreamOrder::release(Slot* slot, BlockingStream* work) {
    const std::lock_guard lock(lists_mutex);
    if (slot != nullptr)
        free_slots_.push_back(slot);
    if (work != nullptr)
        work->next = std::exchange(unused_work, work);
}

CUresult StreamOrder::destroy(BlockingStream& stream, DestroyFn driver_destroy) {
    const InsideGate inside(gate_);
    release_completed();
    BlockingStream* const work = take_work();
    if (work == nullptr)
        return CUDA_ERROR_OUT_OF_MEMORY;
    const CUevent event = stream.event;
    Slot* const slot = stream.slot;
    // A captured stream's work is that of the graph.
    const bool pending = stream.joined.load() < stream.submitted.load() &&
                         !is_capturing(stream.handle) &&
                         record(event, stream.handle) == CUDA_SUCCESS;
    if (pending) {
        // Takes the stream's slot before the stream is claimed, so that no visit misses both.
        destroyed_.fetch_add(1);
        work->slot = slot;
        put(*work, event, 1);
    }
    if (!claim(stream))
        return driver_destroy(stream.handle); // another thread destroys it too
    remove(stream, pending ? nullptr : slot);
    const CUresult result = driver_destroy(stream.handle);
    // From here on another thread can create a stream with the same handle.
    if (result == CUDA_SUCCESS && !pending) {
        GCX_DRIVER(cuEventDestroy_v2)(event);
        release(slot, work);
    } else if (result != CUDA_SUCCESS && !pending) {
        put(stream, event);
        release(nullptr, work);
    } else if (result != CUDA_SUCCESS) {
        add_again(stream);
    }
    return result;
}

CUresult StreamOrder::destroy(CUstream stream, DestroyFn driver_destroy) {
    BlockingStream* const blocking = find(stream);
    StreamOrder* const order = blocking != nullptr ? blocking->order.load() : nullptr;
    if (order != nullptr)
        return order->destroy(*blocking, driver_destroy);
    return driver_destroy != nullptr ? driver_destroy(stream) : missing_function_result();
}

// Adds a stream whose work keeps its event and its slot. Without memory it stays unknown.
void StreamOrder::add_again(BlockingStream& stream) {
    CUevent event = nullptr;
    if (create_event(&event) != CUDA_SUCCESS)
        return;
    try {
        const std::lock_guard lock(lists_mutex);
        stream.slot = take_slot();
        put(stream, event);
    } catch (const std::exception&) {
        GCX_DRIVER(cuEventDestroy_v2)(event);
    }
}

// Forgets work of destroyed streams for which NULL waits already, or that has completed.
void StreamOrder::release_completed() {
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    if (destroyed_.load() == 0 ||
        GCX_DRIVER(cuThreadExchangeStreamCaptureMode)(&mode) != CUDA_SUCCESS)
        return;
    visit([&](BlockingStream& work) {
        if (work.handle != nullptr)
            return CUDA_SUCCESS;
        bool over = false;
        CUevent event = nullptr;
        Slot* slot = nullptr;
        // Claimed during the visit: afterwards the object can stand for other work.
        while_alive(work, this, [&] {
            event = work.event;
            slot = work.slot;
            over = (work.joined.load() >= work.submitted.load() ||
                    GCX_DRIVER(cuEventQuery)(event) == CUDA_SUCCESS) &&
                   claim(work);
            return CUDA_SUCCESS;
        });
        if (over) {
            remove(work, slot);
            GCX_DRIVER(cuEventDestroy_v2)(event);
            destroyed_.fetch_sub(1);
            release(slot, &work);
        }
        return CUDA_SUCCESS;
    });
    GCX_DRIVER(cuThreadExchangeStreamCaptureMode)(&mode);
}

CUresult StreamOrder::join(BlockingStream& stream) {
    if (stream.joined.load() >= stream.submitted.load())
        return CUDA_SUCCESS;
    return while_alive(stream, this, [&] {
        const uint64_t submitted = stream.submitted.load();
        CUresult result =
            stream.handle != nullptr ? record(stream.event, stream.handle) : CUDA_SUCCESS;
        if (result == CUDA_SUCCESS)
            result = wait(nullptr, stream.event);
        if (result == CUDA_SUCCESS)
            raise(stream.joined, submitted);
        return result;
    });
}

CUresult StreamOrder::refuse_beside_capture() {
    bool captured = false;
    if (!any_captures())
        return CUDA_SUCCESS;
    const InsideGate inside(gate_);
    visit([&](BlockingStream& stream) {
        return while_alive(stream, this, [&] {
            if (stream.handle == nullptr || !is_capturing(stream.handle))
                return CUDA_SUCCESS;
            captured = true;
            // Measured: it fails, and invalidates a capture in any mode.
            GCX_DRIVER(cuStreamQuery)(stream.handle);
            return CUDA_SUCCESS;
        });
    });
    return captured ? CUDA_ERROR_STREAM_CAPTURE_IMPLICIT : CUDA_SUCCESS;
}

CUresult StreamOrder::begin_legacy() {
    if (!needed())
        return CUDA_SUCCESS;
    const InsideGate inside(gate_);
    const CUresult result = refuse_beside_capture();
    return result == CUDA_SUCCESS ? visit([&](BlockingStream& stream) { return join(stream); })
                                  : result;
}

CUresult StreamOrder::wait_for_legacy(BlockingStream& stream) {
    const InsideGate inside(gate_);
    const uint64_t actions = legacy_actions_.load();
    const CUevent event = legacy_event_.load();
    // A capturing stream does not wait; the launch of its graph does.
    if (stream.order.load() != this || is_capturing(stream.handle))
        return CUDA_SUCCESS;
    CUresult result = with_current(context_.load(), [&] { return record(event, nullptr); });
    if (result == CUDA_SUCCESS)
        result = wait(stream.handle, event);
    if (result == CUDA_SUCCESS)
        raise(stream.waits, actions);
    return result;
}

CUresult StreamOrder::begin_blocking(BlockingStream& stream) {
    StreamOrder* const order = stream.order.load();
    return order == nullptr || stream.waits.load() >= order->legacy_actions_.load()
               ? CUDA_SUCCESS
               : order->wait_for_legacy(stream);
}

bool StreamOrder::captures() {
    if (!any_captures())
        return false;
    const InsideGate inside(gate_);
    bool found = false;
    visit([&](BlockingStream& stream) {
        return while_alive(stream, this, [&] {
            found = found || (stream.handle != nullptr && is_capturing(stream.handle));
            return CUDA_SUCCESS;
        });
    });
    return found;
}

void StreamOrder::clear() {
    const std::lock_guard lock(lists_mutex);
    visit([&](BlockingStream& stream) {
        stream.order.store(nullptr);
        stream.slot->store(nullptr);
        free_slots_.push_back(stream.slot);
        if (stream.handle == nullptr)
            stream.next = std::exchange(unused_work, &stream);
        return CUDA_SUCCESS;
    });
    destroyed_.store(0);
    context_.store(nullptr);
    legacy_event_.store(nullptr);
}

} // namespace gcx::interpose

// The order of the legacy default stream and blocking streams, which the driver does not keep in a
// green context.
//
// Plain CUDA: work in the legacy default stream (NULL) waits for all earlier work in blocking
// streams, and later work in blocking streams waits for it. Measured with driver 580: in a green
// context all streams are non-blocking, NULL too. So hooks add the missing waits, by events:
//
// - Before an action in NULL: each blocking stream with actions that NULL does not wait for yet
//   records its event, and NULL waits for that.
// - Before an action in a blocking stream: if there were actions in NULL that the stream does not
//   wait for yet, NULL records an event, and the stream waits for that.
//
// No lock is held during a call of the driver, since any of them can block: a launch into a full
// stream (1,022 launches, measured) waits until the stream moves, which can need a call of another
// thread. Instead both sides count. An action is counted after it was submitted, and a wait after
// it was submitted. So a thread that reads too small a count of waits only adds another wait, and
// calls that the program itself orders see each other's counts. Events are created with their
// stream, since creating one waits while a launch is blocked (measured), and are recorded again and
// again: a thread that waits for another thread's later record waits for more, never for less.
#pragma once

#include "driver/cuda_api.h"

#include "interpose/call_gate.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace gcx::interpose {

class StreamOrder;

// A blocking stream. Never freed, so that threads can look at one which another thread removes. It
// is used again for a stream with the same handle. Without a handle it stands for work of a
// destroyed stream, for which NULL still has to wait.
struct BlockingStream {
    using Slot = std::atomic<BlockingStream*>;

    explicit BlockingStream(CUstream of) : handle(of) {}

    const CUstream handle;
    BlockingStream* next = nullptr;               // in the same bucket, or unused
    std::atomic<StreamOrder*> order{nullptr};     // null: destroyed
    std::atomic<BlockingStream*>* slot = nullptr; // in the order's list
    CUevent event = nullptr;
    std::atomic<uint32_t> visitors{0};  // threads that use the handle and the event for NULL
    std::atomic<uint64_t> submitted{0}; // actions in the stream
    std::atomic<uint64_t> joined{0};    // of these, the ones that NULL waits for
    std::atomic<uint64_t> waits{0};     // actions in NULL that the stream waits for
};

// The order within one context as the program sees it.
class StreamOrder {
  public:
    // The gate is that of the context, which must be open or entered during all calls below but
    // clear().
    explicit StreamOrder(CallGate& gate) : gate_(gate) {}

    // Returns whether a blocking stream was ever created. Until then there is no order to keep.
    static bool needed() { return needed_.load(); }

    // Returns the blocking stream with this handle, or null.
    static BlockingStream* find(CUstream stream);

    // Adds a new blocking stream. The context is the driver's, and current.
    CUresult add(CUcontext context, CUstream stream, BlockingStream** added = nullptr);

    // Destroys a blocking stream by the driver's function. The next action in NULL still waits for
    // its work.
    using DestroyFn = CUresult(CUDAAPI*)(CUstream);
    CUresult destroy(BlockingStream& stream, DestroyFn driver_destroy);
    // Destroys a stream of any kind.
    static CUresult destroy(CUstream stream, DestroyFn driver_destroy);

    // Makes NULL wait for the blocking streams. Fails if one of them captures, which invalidates
    // the capture. The context must be current.
    CUresult begin_legacy();
    // Only fails if a blocking stream captures.
    CUresult refuse_beside_capture();
    // Counts an action in NULL after it was submitted.
    void end_legacy() {
        if (needed())
            legacy_actions_.fetch_add(1);
    }

    // Makes the stream wait for NULL.
    static CUresult begin_blocking(BlockingStream& stream);
    // Counts an action after it was submitted.
    static void end_blocking(BlockingStream& stream) { stream.submitted.fetch_add(1); }

    // Returns whether a blocking stream captures.
    bool captures();

    // Counts captures, of all streams. While there are none, nothing asks for the state of streams.
    static void note_capture(int more) { captures_.fetch_add(more); }
    static bool any_captures() { return captures_.load() != 0; }
    static bool is_capturing(CUstream stream);

    // Forgets all streams and events after the driver has destroyed them. The gate must be closed.
    void clear();

  private:
    using Slot = BlockingStream::Slot;
    struct Chunk {
        std::array<Slot, 64> slots{};
        std::atomic<Chunk*> next{nullptr};
    };

    Slot* take_slot();
    void add_slots();
    CUresult join(BlockingStream& stream);
    CUresult wait_for_legacy(BlockingStream& stream);
    bool claim(BlockingStream& stream);
    void remove(BlockingStream& stream, Slot* slot);
    void add_again(BlockingStream& stream);
    void put(BlockingStream& stream, CUevent event, uint64_t pending = 0);
    void release(Slot* slot, BlockingStream* work);
    void release_completed();
    // Calls with each stream in the list, until a call fails.
    template <class Visit>
    CUresult visit(const Visit& function);

    static inline constinit std::atomic<bool> needed_{false};
    static inline constinit std::atomic<int> captures_{0};

    CallGate& gate_;
    std::atomic<CUcontext> context_{nullptr};
    std::atomic<CUevent> legacy_event_{nullptr};
    // Not 0, so that the first action in a stream waits for actions from before the first count.
    std::atomic<uint64_t> legacy_actions_{1};
    Chunk streams_;
    // Guarded by the lock of all orders.
    std::size_t slot_count_ = 0;
    std::vector<Slot*> free_slots_; // has room for all slots
    std::atomic<int> destroyed_{0}; // streams whose work is in the list
};

} // namespace gcx::interpose

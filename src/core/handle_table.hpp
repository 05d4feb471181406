// Handles: an index and a generation, never an address. A generation has 40 bits, and the slot that
// was free for the longest time is used next. A program that makes and destroys a million objects
// per second meets an old handle's number again after decades.
//
// A lookup pins the object with one compare-and-swap on its slot and takes no lock. Destroying a
// handle makes it stale at once. The object is closed when its last pin is released, so that one
// thread can destroy a handle while another uses it.
#pragma once

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/random.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

namespace gcx {

static_assert(sizeof(void*) == 8, "handles need 64 bits");

// T has close(), which releases what the object has of the driver. If it throws an Error, the
// object must be unchanged.
template <class T>
class HandleTable {
    static constexpr std::size_t kChunkSlots = 1024;
    static constexpr std::size_t kChunks = 1024;
    static constexpr unsigned kGenerationBits = 40;
    static constexpr uint64_t kGenerations = (uint64_t{1} << kGenerationBits) - 1;
    static_assert(kChunks * kChunkSlots == std::size_t{1} << (60 - kGenerationBits));
    static constexpr unsigned kStateBits = 64 - kGenerationBits;
    static constexpr uint64_t kAlive = uint64_t{1} << (kStateBits - 1);
    static constexpr uint64_t kPins = kAlive - 1; // more than there can be threads

    // state: the generation, whether the handle is alive, and the number of pins.
    struct Slot {
        std::atomic<uint64_t> state{0};
        std::unique_ptr<T> object;
        uint32_t index = 0;
        Slot* next_free = nullptr;
    };
    struct Chunk {
        std::array<Slot, kChunkSlots> slots;
    };

  public:
    // kind distinguishes handles of different types. what names the type in messages.
    HandleTable(unsigned kind, const char* what) : kind_(kind), what_(what), seed_(random_bits()) {}
    ~HandleTable() {
        for (auto& chunk : chunks_)
            delete chunk.load();
    }
    HandleTable(const HandleTable&) = delete;
    HandleTable& operator=(const HandleTable&) = delete;

    class Pin {
      public:
        Pin(HandleTable& table, Slot& slot, uint64_t handle)
            : table_(&table), slot_(&slot), handle_(handle) {}
        Pin(Pin&& other) noexcept
            : table_(other.table_), slot_(std::exchange(other.slot_, nullptr)),
              handle_(other.handle_) {}
        Pin(const Pin&) = delete;
        Pin& operator=(const Pin&) = delete;
        Pin& operator=(Pin&&) = delete;
        ~Pin() {
            if (slot_ != nullptr)
                table_->unpin(*slot_);
        }
        T* operator->() const { return slot_->object.get(); }
        T& operator*() const { return *slot_->object; }
        uint64_t handle() const { return handle_; }

      private:
        friend class HandleTable;
        HandleTable* table_;
        Slot* slot_;
        uint64_t handle_;
    };

    // Room for an object that is to be created. Adding it then does not fail.
    class Room {
      public:
        Room(Room&& other) noexcept
            : table_(other.table_), slot_(std::exchange(other.slot_, nullptr)) {}
        Room& operator=(Room&&) = delete;
        ~Room() {
            if (slot_ == nullptr)
                return;
            const std::lock_guard lock(table_.mutex_);
            table_.line_up(*slot_);
        }

      private:
        friend class HandleTable;
        Room(HandleTable& table, Slot& slot) : table_(table), slot_(&slot) {}
        HandleTable& table_;
        Slot* slot_;
    };

    // Throws if the table is full.
    Room make_room() {
        const std::lock_guard lock(mutex_);
        if (first_free_ == nullptr)
            grow();
        Slot& s = *first_free_;
        first_free_ = s.next_free;
        return Room(*this, s);
    }

    // Adds an object and returns its handle. If the table is full, closes the object and throws.
    uint64_t add(std::unique_ptr<T> object) {
        try {
            return add(make_room(), std::move(object));
        } catch (...) {
            object->close(); // not moved
            throw;
        }
    }
    uint64_t add(Room room, std::unique_ptr<T>&& object) {
        const std::lock_guard lock(mutex_);
        Slot& s = *std::exchange(room.slot_, nullptr);
        live_++;
        const uint64_t generation = s.state.load(std::memory_order_relaxed) >> kStateBits;
        s.object = std::move(object);
        s.state.store((generation << kStateBits) | kAlive, std::memory_order_release);
        return encode(s.index, generation);
    }

    // Returns the object of a handle and keeps it alive while the pin lives. Throws if the handle
    // is not valid.
    Pin pin(const void* handle) { return pin(reinterpret_cast<uint64_t>(handle)); }
    Pin pin(uint64_t bits) {
        Slot* s = slot_of(bits);
        uint64_t state = s->state.load(std::memory_order_acquire);
        do {
            if (!names(bits, state))
                refuse(bits);
        } while (!s->state.compare_exchange_weak(state, state + 1, std::memory_order_acq_rel));
        return Pin(*this, *s, bits);
    }

    // Makes the handle stale and closes its object, at once or when other threads release their
    // pins. If closing fails here, the handle stays valid.
    void close(Pin pin) {
        Slot& s = *pin.slot_;
        uint64_t state = s.state.load(std::memory_order_acquire);
        do {
            if (!names(pin.handle_, state))
                refuse(pin.handle_); // another thread destroyed it in the meantime
        } while (!s.state.compare_exchange_weak(state, state & ~kAlive, std::memory_order_acq_rel));
        if ((state & kPins) == 1) {
            try {
                s.object->close();
            } catch (...) {
                s.state.fetch_or(kAlive, std::memory_order_acq_rel);
                throw;
            }
        }
    }

    // Returns whether no handle is alive.
    bool empty() {
        const std::lock_guard lock(mutex_);
        return live_ == 0;
    }

  private:
    static bool names(uint64_t bits, uint64_t state) {
        return (state & kAlive) != 0 && state >> kStateBits == (bits & kGenerations);
    }

    uint64_t encode(uint32_t index, uint64_t generation) const {
        return (uint64_t{kind_} << 60) | (uint64_t{index} << kGenerationBits) | generation;
    }

    Slot* slot(uint32_t index) {
        Chunk* chunk = chunks_[index / kChunkSlots].load(std::memory_order_acquire);
        return chunk == nullptr ? nullptr : &chunk->slots[index % kChunkSlots];
    }

    Slot* slot_of(uint64_t bits) {
        if (bits == 0)
            fail(GCX_ERROR_INVALID_HANDLE, format("the %s handle is NULL", what_));
        const auto index =
            static_cast<uint32_t>((bits >> kGenerationBits) % (kChunks * kChunkSlots));
        Slot* s = (bits >> 60) == kind_ ? slot(index) : nullptr;
        if (s == nullptr)
            refuse(bits);
        return s;
    }

    [[noreturn]] void refuse(uint64_t bits) const {
        fail(GCX_ERROR_INVALID_HANDLE, format("%#llx is not a live %s handle: it was destroyed, is "
                                              "of another type, or was never valid",
                                              static_cast<unsigned long long>(bits), what_));
    }

    void grow() {
        const std::size_t index = grown_;
        if (index == kChunks)
            fail(GCX_ERROR_OUT_OF_MEMORY, format("%zu %s handles are alive, the most there can be",
                                                 kChunks * kChunkSlots, what_));
        auto chunk = std::make_unique<Chunk>();
        for (std::size_t i = 0; i < kChunkSlots; i++) {
            // Generations start at random, so that handles of other processes are refused.
            seed_ = seed_ * 6364136223846793005U + 1442695040888963407U;
            Slot& s = chunk->slots[i];
            s.state.store((seed_ >> kStateBits) << kStateBits, std::memory_order_relaxed);
            s.index = static_cast<uint32_t>(index * kChunkSlots + i);
            line_up(s);
        }
        chunks_[index].store(chunk.release(), std::memory_order_release);
        grown_++;
    }

    void line_up(Slot& s) {
        s.next_free = nullptr;
        (first_free_ == nullptr ? first_free_ : last_free_->next_free) = &s;
        last_free_ = &s;
    }

    void unpin(Slot& s) {
        const uint64_t before = s.state.fetch_sub(1, std::memory_order_acq_rel);
        if ((before & kAlive) != 0 || (before & kPins) != 1)
            return;
        // This was the last pin of a destroyed handle, so no other thread can reach the slot.
        try {
            s.object->close();
        } catch (const Error& error) {
            log::write(GCX_LOG_ERROR,
                       format("a %s could not be destroyed: %s", what_, error.message.c_str()));
        }
        s.object.reset();
        const uint64_t next = ((before >> kStateBits) + 1) & kGenerations;
        s.state.store(next << kStateBits, std::memory_order_release);
        const std::lock_guard lock(mutex_);
        live_--;
        line_up(s);
    }

    unsigned kind_;
    const char* what_;
    uint64_t seed_;
    std::array<std::atomic<Chunk*>, kChunks> chunks_{};
    std::mutex mutex_;
    // Free slots form a linked list, oldest first, which needs no memory of its own.
    Slot* first_free_ = nullptr;
    Slot* last_free_ = nullptr; // valid unless first_free_ is null
    std::size_t grown_ = 0;
    std::size_t live_ = 0;
};

} // namespace gcx

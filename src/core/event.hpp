// Events: the objects of event handles, and a pool of events that order work on the device.
#pragma once

#include "core/device.hpp"

#include <atomic>
#include <mutex>
#include <utility>
#include <vector>

namespace gcx {

// Reuses events without timing. Thread-safe.
class EventPool {
  public:
    explicit EventPool(Device& device) : device_(device) {}
    ~EventPool() { clear(); }
    EventPool(const EventPool&) = delete;
    EventPool& operator=(const EventPool&) = delete;

    // An event in use. Returns to the pool.
    class Event {
      public:
        Event(EventPool& pool, CUevent native, uint64_t epoch)
            : pool_(&pool), native_(native), epoch_(epoch) {}
        Event(Event&& other) noexcept
            : pool_(std::exchange(other.pool_, nullptr)), native_(other.native_),
              epoch_(other.epoch_) {}
        Event& operator=(Event&& other) noexcept {
            std::swap(pool_, other.pool_);
            std::swap(native_, other.native_);
            std::swap(epoch_, other.epoch_);
            return *this;
        }
        ~Event() {
            if (pool_ != nullptr)
                pool_->put_back(native_, epoch_);
        }
        CUevent native() const { return native_; }

      private:
        EventPool* pool_;
        CUevent native_;
        uint64_t epoch_;
    };
    Event take();
    // Destroys idle events, and releases the primary context if none is in use.
    void clear();

  private:
    void put_back(CUevent native, uint64_t epoch);
    void drop_dead();

    Device& device_;
    std::mutex mutex_;
    Device::PrimaryContextRef primary_;
    uint64_t epoch_ = 0; // counts the resets of the device
    std::size_t in_use_ = 0;
    std::vector<CUevent> idle_;
};

// The object of an event handle.
class Event {
  public:
    Event(Device& device, uint32_t flags);
    // Wraps an event that gcx did not make.
    Event(const Driver& driver, CUevent native);

    void close();
    CUevent native() const { return native_; }
    void check_alive() const;
    // Throws if the event is known to be of another device.
    void check_recordable(int32_t device) const;
    // Throws if the events are known to be of two devices, because CUDA then measures no time.
    void check_comparable(const Event& end) const;
    // Throws if the event is the reason why the driver cannot measure a time. name names it in
    // messages.
    void check_timed(const char* name) const;

    // Returns the handle of the stream if the last recording was in a graph capture, else 0.
    uint64_t captured_in() const { return captured_in_.load(std::memory_order_relaxed); }
    void note_recorded(uint64_t capturing_stream) {
        captured_in_.store(capturing_stream, std::memory_order_relaxed);
    }

  private:
    const Driver& driver_;
    Device* device_ = nullptr; // null: not made by gcx, device unknown
    Device::PrimaryContextRef primary_;
    CUevent native_ = nullptr;
    bool timing_ = true;
    std::atomic<uint64_t> captured_in_{0};
};

} // namespace gcx

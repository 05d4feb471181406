// What later work waits for: the work that streams had in flight at a moment, as events.
#pragma once

#include "core/device.hpp"

#include <atomic>
#include <mutex>
#include <utility>
#include <vector>

namespace gcx {

// Events of a device without times, used again and again.
class EventPool {
  public:
    explicit EventPool(Device& device) : device_(device) {}
    ~EventPool() { clear(); }
    EventPool(const EventPool&) = delete;
    EventPool& operator=(const EventPool&) = delete;

    // An event while it is used; goes back into the pool.
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
    // Gives back to the driver what nobody uses, and the primary context with the last of it.
    void clear();

  private:
    void put_back(CUevent native, uint64_t epoch);
    void drop_dead();

    Device& device_;
    std::mutex mutex_;
    Device::PrimaryContextRef primary_;
    uint64_t epoch_ = 0; // counts the resets of the device that were noticed
    std::size_t in_use_ = 0;
    std::vector<CUevent> idle_;
};

class Event {
  public:
    Event(Device& device, uint32_t flags);
    // Someone else's event.
    Event(const Driver& driver, CUevent native);

    void close();
    CUevent native() const { return native_; }
    void check_alive() const;
    // Throws if it is known that work of this device can't be recorded in the event.
    void check_recordable(int32_t device) const;
    // Throws if it is known that no time lies between the two: events of two devices.
    void check_comparable(const Event& end) const;
    // Throws, calling the event by this name, if it is why the driver knows no time for it.
    void check_timed(const char* name) const;

    // The handle of the capturing stream that it was recorded in last; 0: the last wasn't one.
    uint64_t captured_in() const { return captured_in_.load(std::memory_order_relaxed); }
    void note_recorded(uint64_t capturing_stream) {
        captured_in_.store(capturing_stream, std::memory_order_relaxed);
    }

  private:
    const Driver& driver_;
    Device* device_ = nullptr; // null: someone else's, whose device the driver doesn't tell
    Device::PrimaryContextRef primary_;
    CUevent native_ = nullptr;
    bool timing_ = true;
    std::atomic<uint64_t> captured_in_{0};
};

} // namespace gcx

// What later work waits for: the work that streams had in flight at a moment, as events.
#pragma once

#include "core/device.hpp"

#include <memory>
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
    void forget_dead();

    Device& device_;
    std::mutex mutex_;
    Device::PrimaryHold primary_;
    uint64_t epoch_ = 0; // counts the resets of the device that were noticed
    std::size_t out_ = 0;
    std::vector<CUevent> idle_;
};

// The work of some streams on some atoms.
class Fence {
  public:
    Fence(const std::shared_ptr<Family>& family, const AtomSet& atoms,
          std::vector<EventPool::Event> events)
        : family_(family), atoms_(atoms), events_(std::move(events)) {}

    // Whether the work ran on any of these atoms; also if that isn't known, as between families
    // whose atoms nobody has looked at.
    bool meets(const std::shared_ptr<Family>& family, const AtomSet& atoms) const;
    // The atoms of a family that it is about.
    AtomSet within(const std::shared_ptr<Family>& family, const AtomSet& atoms) const;
    // Whether all of the work has finished.
    bool passed(const Driver& driver);
    // Makes later work of the stream wait for it.
    void hold(const Driver& driver, CUstream stream);
    // Waits for it in the calling thread.
    void synchronize(const Driver& driver);

  private:
    const std::shared_ptr<Family> family_;
    const AtomSet atoms_;
    std::mutex mutex_;
    std::vector<EventPool::Event> events_; // those that are not known to have passed
    uint32_t waiting_ = 0;                 // threads that need the events as they are
};

using Fences = std::vector<std::shared_ptr<Fence>>;

// Takes out those whose work has finished.
void drop_passed(const Driver& driver, Fences& fences);

} // namespace gcx

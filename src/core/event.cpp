#include "core/event.hpp"

#include <algorithm>

namespace gcx {

EventPool::Event EventPool::take() {
    const std::lock_guard lock(mutex_);
    drop_dead();
    if (!idle_.empty()) {
        const CUevent native = idle_.back();
        idle_.pop_back();
        in_use_++;
        return {*this, native, epoch_};
    }
    const Driver& driver = device_.driver();
    if (primary_.context() == nullptr)
        primary_ = device_.retain_primary();
    // Reserves space so that put_back() cannot fail.
    idle_.reserve(idle_.size() + in_use_ + 1);
    const ScopedCurrent current(driver, primary_.context());
    CUevent native = nullptr;
    GCX_CALL(driver, cuEventCreate, &native, CU_EVENT_DISABLE_TIMING);
    in_use_++;
    return {*this, native, epoch_};
}

void EventPool::put_back(CUevent native, uint64_t epoch) {
    const std::lock_guard lock(mutex_);
    if (epoch != epoch_)
        return; // the reset of the device destroyed it
    in_use_--;
    idle_.push_back(native);
}

// Drops the events that a reset of the device destroyed.
void EventPool::drop_dead() {
    if (primary_.context() == nullptr || primary_.alive())
        return;
    idle_.clear();
    in_use_ = 0;
    epoch_++;
    primary_ = Device::PrimaryContextRef();
}

void EventPool::clear() {
    const std::lock_guard lock(mutex_);
    drop_dead();
    std::erase_if(idle_, [&](CUevent native) {
        return is_destroyed(retry_once([&] { return device_.driver().cuEventDestroy(native); }));
    });
    if (idle_.empty() && in_use_ == 0)
        primary_ = Device::PrimaryContextRef();
}

Event::Event(Device& device, uint32_t flags)
    : driver_(device.driver()), device_(&device), primary_(device.retain_primary()),
      timing_((flags & GCX_EVENT_TIMING) != 0) {
    const ScopedCurrent current(driver_, primary_.context());
    unsigned native_flags = CU_EVENT_DEFAULT;
    if (!timing_)
        native_flags |= CU_EVENT_DISABLE_TIMING;
    if ((flags & GCX_EVENT_BLOCKING_SYNC) != 0)
        native_flags |= CU_EVENT_BLOCKING_SYNC;
    GCX_CALL(driver_, cuEventCreate, &native_, native_flags);
}

Event::Event(const Driver& driver, CUevent native) : driver_(driver), native_(native) {
    const RelaxedCapture relaxed(driver);
    // A query would break the capture of a captured event; measuring a time does not.
    float milliseconds = 0;
    if (driver.cuEventElapsedTime(&milliseconds, native, native) == CUDA_ERROR_CAPTURED_EVENT)
        return;
    const CUresult result = driver.cuEventQuery(native);
    if (result != CUDA_ERROR_NOT_READY)
        driver.check(result, "cuEventQuery");
}

void Event::close() {
    if (device_ != nullptr && native_ != nullptr && primary_.alive()) {
        const CUresult result = driver_.cuEventDestroy(native_);
        if (!is_destroyed(result))
            driver_.check(result, "cuEventDestroy");
    }
    native_ = nullptr;
    primary_ = Device::PrimaryContextRef();
}

void Event::check_recordable(int32_t device) const {
    if (device_ != nullptr && device_->ordinal() != device)
        fail(GCX_ERROR_INVALID_HANDLE,
             format("the event is of device %d, the work of device %d: an event can only be "
                    "recorded on its own device; make one with gcx_event_create(%d, ...). Any "
                    "device can wait for it",
                    device_->ordinal(), device, device));
}

void Event::check_comparable(const Event& end) const {
    if (device_ != nullptr && end.device_ != nullptr && device_ != end.device_)
        fail(GCX_ERROR_INVALID_HANDLE,
             format("start is of device %d, end of device %d: CUDA only measures times between "
                    "events of one device; wait for both and use the host's clock",
                    device_->ordinal(), end.device_->ordinal()));
}

void Event::check_timed(const char* name) const {
    float none = 0; // between the event and itself
    const CUresult result = driver_.cuEventElapsedTime(&none, native_, native_);
    if (result == CUDA_ERROR_INVALID_HANDLE)
        fail(GCX_ERROR_INVALID_HANDLE,
             !timing_ ? format("%s records no times: it was made without GCX_EVENT_TIMING", name)
             : device_ != nullptr
                 ? format("%s was never recorded", name)
                 : format("%s, which gcx did not make, records no times or was never recorded",
                          name));
    if (result == CUDA_ERROR_NOT_READY)
        fail(GCX_ERROR_NOT_READY,
             format("the work of %s has not finished; wait with gcx_event_synchronize", name));
}

void Event::check_alive() const {
    if (device_ != nullptr && !primary_.alive())
        fail(GCX_ERROR_CONTEXT_IS_DESTROYED,
             format("the event died: the primary context of %s was reset; destroy the handle and "
                    "make a new event",
                    device_->label().c_str()));
}

} // namespace gcx

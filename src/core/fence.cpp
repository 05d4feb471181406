#include "core/fence.hpp"

#include "core/capture.hpp"
#include "core/give_back.hpp"
#include "core/scoped_current.hpp"

#include <algorithm>

namespace gcx {

EventPool::Event EventPool::take() {
    const std::lock_guard lock(mutex_);
    forget_dead();
    if (!idle_.empty()) {
        const CUevent native = idle_.back();
        idle_.pop_back();
        out_++;
        return {*this, native, epoch_};
    }
    const Driver& driver = device_.driver();
    if (primary_.context() == nullptr)
        primary_ = device_.hold_primary();
    // So that an event that comes back has its place.
    idle_.reserve(idle_.size() + out_ + 1);
    const ScopedCurrent current(driver, primary_.context());
    CUevent native = nullptr;
    GCX_CALL(driver, cuEventCreate, &native, CU_EVENT_DISABLE_TIMING);
    out_++;
    return {*this, native, epoch_};
}

void EventPool::put_back(CUevent native, uint64_t epoch) {
    const std::lock_guard lock(mutex_);
    if (epoch != epoch_)
        return; // it died with the primary context
    out_--;
    idle_.push_back(native);
}

// After a reset of the device its events are gone.
void EventPool::forget_dead() {
    if (primary_.context() == nullptr || primary_.alive())
        return;
    idle_.clear();
    out_ = 0;
    epoch_++;
    primary_ = Device::PrimaryHold();
}

void EventPool::clear() {
    const std::lock_guard lock(mutex_);
    forget_dead();
    std::erase_if(idle_, [&](CUevent native) {
        return gone(give_back([&] { return device_.driver().cuEventDestroy(native); }));
    });
    if (idle_.empty() && out_ == 0)
        primary_ = Device::PrimaryHold();
}

bool Fence::meets(const std::shared_ptr<Family>& family, const AtomSet& atoms) const {
    return !within(family, atoms).empty();
}

AtomSet Fence::within(const std::shared_ptr<Family>& family, const AtomSet& atoms) const {
    if (family == family_)
        return atoms & atoms_;
    const SmMap* const mine = family_->sm_map();
    const SmMap* const theirs = family->sm_map();
    if (mine == nullptr || theirs == nullptr)
        return atoms;
    std::vector<uint32_t> busy;
    atoms_.for_each([&](std::size_t atom) {
        busy.insert(busy.end(), (*mine)[atom].begin(), (*mine)[atom].end());
    });
    std::sort(busy.begin(), busy.end());
    AtomSet found;
    atoms.for_each([&](std::size_t atom) {
        const std::vector<uint32_t>& sms = (*theirs)[atom];
        if (std::any_of(sms.begin(), sms.end(), [&](uint32_t sm) {
                return std::binary_search(busy.begin(), busy.end(), sm);
            }))
            found.add(atom);
    });
    return found;
}

bool Fence::passed(const Driver& driver) {
    const std::lock_guard lock(mutex_);
    if (events_.empty())
        return true;
    const RelaxedCapture relaxed(driver);
    // Whatever else the driver answers, as after a reset: there is nothing left to wait for.
    const auto has_passed = [&](const EventPool::Event& event) {
        return driver.cuEventQuery(event.native()) != CUDA_ERROR_NOT_READY;
    };
    if (waiting_ != 0)
        return std::all_of(events_.begin(), events_.end(), has_passed);
    std::erase_if(events_, has_passed);
    return events_.empty();
}

void Fence::hold(const Driver& driver, CUstream stream) {
    const std::lock_guard lock(mutex_);
    for (const EventPool::Event& event : events_)
        GCX_CALL(driver, cuStreamWaitEvent, stream, event.native(), CU_EVENT_WAIT_DEFAULT);
}

void Fence::synchronize(const Driver& driver) {
    std::vector<CUevent> natives;
    {
        const std::lock_guard lock(mutex_);
        for (const EventPool::Event& event : events_)
            natives.push_back(event.native());
        waiting_++;
    }
    CUresult result = CUDA_SUCCESS;
    {
        const RelaxedCapture relaxed(driver);
        for (std::size_t i = 0; i < natives.size() && result == CUDA_SUCCESS; i++)
            result = driver.cuEventSynchronize(natives[i]);
    }
    const std::lock_guard lock(mutex_);
    waiting_--;
    driver.check(result, "cuEventSynchronize");
}

void drop_passed(const Driver& driver, Fences& fences) {
    std::erase_if(fences, [&](const auto& fence) { return fence->passed(driver); });
}

} // namespace gcx

#include "core/fence.hpp"

#include "core/give_back.hpp"
#include "core/scoped_current.hpp"

#include <algorithm>

namespace gcx {
namespace {

constinit std::atomic<uint64_t> next_work{1};

} // namespace

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

PendingWork::PendingWork(const Source& its_source, ContextCache::Ref context_ref,
                         EventPool::Event event)
    : source(its_source), number(next_work++), family(context_ref->key.family),
      atoms(context_ref->key.set), event_(std::make_shared<EventPool::Event>(std::move(event))),
      frontier_(atoms) {
    kept_.push_back({std::move(context_ref), event_});
}

bool PendingWork::passed(const Driver& driver, const RelaxedCapture& /*relaxed*/) {
    if (known_to_have_passed())
        return true;
    // Any other answer, as after a reset, means that there is nothing left to wait for.
    if (driver.cuEventQuery(event_->native()) == CUDA_ERROR_NOT_READY)
        return false;
    passed_.store(true, std::memory_order_release);
    return true;
}

void PendingWork::make_wait(const Driver& driver, CUstream stream) const {
    GCX_CALL(driver, cuStreamWaitEvent, stream, event_->native(), CU_EVENT_WAIT_DEFAULT);
}

void PendingWork::synchronize(const Driver& driver) const {
    const RelaxedCapture relaxed(driver);
    GCX_CALL(driver, cuEventSynchronize, event_->native());
}

void PendingWork::absorb(PendingWork& older) {
    for (Kept& kept : older.kept_) {
        const auto same = std::find_if(kept_.begin(), kept_.end(), [&](const Kept& mine) {
            return &*mine.context == &*kept.context;
        });
        if (same == kept_.end())
            kept_.push_back(std::move(kept));
        else
            same->until = event_;
    }
    older.kept_.clear();
}

void PendingWork::release_finished(const Driver& driver, const RelaxedCapture& /*relaxed*/,
                                   std::vector<ContextCache::Ref>& released) {
    const auto kept = std::find_if(kept_.begin(), kept_.end(),
                                   [&](const Kept& mine) { return mine.until != event_; });
    if (kept == kept_.end() || driver.cuEventQuery(kept->until->native()) == CUDA_ERROR_NOT_READY)
        return;
    released.push_back(std::move(kept->context));
    kept_.erase(kept);
}

void PendingWork::release_all(std::vector<ContextCache::Ref>& released) {
    for (Kept& kept : kept_)
        released.push_back(std::move(kept.context));
    kept_.clear();
}

AtomSet atoms_touched(const std::shared_ptr<Family>& family, const AtomSet& atoms,
                      const std::shared_ptr<Family>& other, const AtomSet& others) {
    if (family == other)
        return atoms & others;
    if (others.empty())
        return {};
    const auto found = atoms_meeting(*family, *other, others);
    return found ? atoms & *found : atoms;
}

} // namespace gcx

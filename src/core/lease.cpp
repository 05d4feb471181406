#include "core/lease.hpp"

#include "base/log.hpp"
#include "core/capture.hpp"

#include <algorithm>

namespace gcx {
namespace {

constinit std::atomic<uint64_t> next_user{1};

bool is_busy(const Driver& driver, CUstream stream) {
    const RelaxedCapture relaxed(driver);
    return driver.cuStreamQuery(stream) == CUDA_ERROR_NOT_READY;
}

} // namespace

std::shared_ptr<Fence> fence_of(GreenContext& context, EventPool& events) {
    const Driver& driver = context.driver();
    std::vector<EventPool::Event> recorded;
    context.streams.each_busy(driver, [&](CUstream stream) {
        recorded.push_back(events.take());
        GCX_CALL(driver, cuEventRecord, recorded.back().native(), stream);
    });
    if (recorded.empty())
        return nullptr;
    return std::make_shared<Fence>(context.key.family, context.key.set, std::move(recorded));
}

std::string lease_label(uint64_t id, const std::string& name) {
    return name.empty() ? "lease " + std::to_string(id) : "\"" + name + "\"";
}

Lease::State Lease::state() const {
    const std::lock_guard lock(mutex_);
    return {holding_, changes_.load(), streams_, released_};
}

void Lease::count_streams(int more) {
    const std::lock_guard lock(mutex_);
    streams_ += static_cast<uint32_t>(more);
    Publisher::Update(publisher_).set_streams(id, streams_);
}

void Lease::check_alive() const {
    const std::lock_guard lock(mutex_);
    check_alive_locked();
}

void Lease::check_alive_locked() const {
    if (released_)
        fail(GCX_ERROR_CONTEXT_IS_DESTROYED,
             format("%s was released, and its streams ended with it; destroy the handle",
                    label().c_str()));
    context_.check_alive();
}

ContextKey Lease::key(const AtomSet& set) const {
    return {&device, family, set, workqueue_};
}

bool Lease::covers(const AtomSet& set) const {
    return (set - holding_.all()).empty();
}

void Lease::note_elsewhere(ContextCache& cache, GreenContext& context) {
    const bool known = &*context_ == &context ||
                       std::any_of(elsewhere_.begin(), elsewhere_.end(),
                                   [&](const auto& other) { return &*other == &context; });
    if (!known)
        elsewhere_.push_back(cache.share(context, ContextCache::Use::lease));
}

Lease::Place Lease::place_for(ContextCache& cache, uint64_t changes_seen, GreenContext* now) {
    const std::lock_guard lock(mutex_);
    check_alive_locked();
    const Driver& driver = device.driver();
    drop_passed(driver, behind_);
    Place place;
    place.changes = changes_seen;
    if (at_once_ && !behind_.empty()) {
        AtomSet busy;
        for (const auto& fence : behind_)
            busy = busy | fence->within(family, holding_.all());
        const AtomSet start = holding_.all() - busy;
        const bool is_there = now != nullptr && now->key.set == start;
        if (!start.empty() && !is_there)
            place.context = cache.find(key(start), ContextCache::Use::stream);
        const bool may_stay =
            now != nullptr && covers(now->key.set) && (now->key.set & busy).empty();
        if (place.context || may_stay) {
            note_elsewhere(cache, place.context ? *place.context : *now);
            return place;
        }
    }
    place.changes = changes_.load();
    place.context = cache.share(*context_, ContextCache::Use::stream);
    place.behind = behind_;
    return place;
}

std::vector<Lease::Work> Lease::in_flight(ContextCache& cache, EventPool& events) const {
    const std::lock_guard lock(mutex_);
    return in_flight_locked(cache, events);
}

std::vector<Lease::Work> Lease::in_flight_locked(ContextCache& cache, EventPool& events) const {
    std::vector<Work> found;
    const auto look = [&](const ContextCache::Ref& context) {
        if (auto fence = fence_of(*context, events))
            found.push_back({std::move(fence), cache.share(*context, ContextCache::Use::lease)});
    };
    if (context_)
        look(context_);
    std::for_each(elsewhere_.begin(), elsewhere_.end(), look);
    return found;
}

Fences Lease::work(ContextCache& cache, EventPool& events) {
    const std::lock_guard lock(mutex_);
    drop_passed(device.driver(), left_);
    Fences all = left_;
    for (Work& work : in_flight_locked(cache, events))
        all.push_back(std::move(work.fence));
    return all;
}

LeaseStream::LeaseStream(ContextCache& cache, EventPool& events, std::shared_ptr<Lease> lease,
                         int priority)
    : cache_(cache), events_(events), lease_(std::move(lease)),
      priority_(lease_->device.clamp_priority(priority)), user_(next_user++) {
    // What it is to wait for it is told when it is used.
    context_ = lease_->place_for(cache_, 0, nullptr).context;
    native_ = context_->obtain_stream(priority_);
    lease_->count_streams(1);
}

LeaseStream::~LeaseStream() {
    lease_->count_streams(-1);
}

LeaseStream::At LeaseStream::at() {
    const std::lock_guard lock(mutex_);
    if (changes_ != lease_->changes())
        follow();
    context_.check_alive();
    return {native_, cache_.share(*context_, ContextCache::Use::current)};
}

void LeaseStream::follow() {
    const Driver& driver = lease_->device.driver();
    lease_->check_alive();
    if (is_capturing(driver, native_) == true)
        return;
    Lease::Place place = lease_->place_for(cache_, changes_, &*context_);
    if (place.context)
        move_to(std::move(place.context), place.behind);
    changes_ = place.changes;
}

void LeaseStream::move_to(ContextCache::Ref context, const Fences& behind) {
    const Driver& driver = lease_->device.driver();
    const auto wait = [&](CUstream stream) {
        for (const auto& fence : behind)
            fence->hold(driver, stream);
    };
    if (&*context == &*context_) {
        wait(native_);
        return;
    }
    CUstream const next = context->obtain_stream(priority_, user_);
    try {
        if (is_busy(driver, native_)) {
            const EventPool::Event event = events_.take();
            GCX_CALL(driver, cuEventRecord, event.native(), native_);
            GCX_CALL(driver, cuStreamWaitEvent, next, event.native(), CU_EVENT_WAIT_DEFAULT);
        }
        wait(next);
        context_->streams.give_up(driver, native_, priority_, user_);
    } catch (...) {
        try {
            context->streams.give_up(driver, next, priority_, user_);
        } catch (const Error& error) {
            log::write(GCX_LOG_ERROR, "a stream is left behind: " + error.message);
        }
        throw;
    }
    if (log::wanted(GCX_LOG_DEBUG))
        log::write(GCX_LOG_DEBUG,
                   format("a stream of %s went from %u to %u SMs; a CUstream taken from it before "
                          "stays on the former ones",
                          lease_->label().c_str(), context_->sm_count(), context->sm_count()));
    native_ = next;
    context_ = std::move(context);
}

void LeaseStream::close() {
    const std::lock_guard lock(mutex_);
    if (native_ != nullptr && cache_.is_alive(*context_))
        context_->streams.give_up(lease_->device.driver(), native_, priority_);
    native_ = nullptr;
    context_ = ContextCache::Ref();
}

} // namespace gcx

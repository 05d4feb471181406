#include "core/lease.hpp"

#include "base/log.hpp"
#include "driver/nvtx.hpp"

#include <algorithm>

namespace gcx {
namespace {

constinit std::atomic<uint64_t> next_work{1};
constinit std::atomic<uint64_t> next_stream{1};

// Finished work is dropped when it is swept or waited for. A lease that awaits more entries than
// this queries one of them at each resize.
constexpr std::size_t kMaxUnqueried = 8;
// Number of closed streams with unfinished work from which on streams are chained when they are
// closed.
constexpr std::size_t kMaxClosed = 8;

void drop_known_finished(PendingWorks& works) {
    std::erase_if(works, [](const auto& work) { return work->known_finished(); });
}

} // namespace

PendingWork::PendingWork(const Source& its_source, ContextCache::Ref context_ref,
                         EventPool::Event event)
    : source(its_source), number(next_work++), family(context_ref->key.family),
      atoms(context_ref->key.set), event_(std::make_shared<EventPool::Event>(std::move(event))),
      frontier_(atoms) {
    contexts_.push_back({std::move(context_ref), event_});
}

bool PendingWork::finished(const Driver& driver, const RelaxedCapture& /*relaxed*/) {
    if (known_finished())
        return true;
    // Any other result, as after a reset, means that there is nothing left to wait for.
    if (driver.cuEventQuery(event_->native()) == CUDA_ERROR_NOT_READY)
        return false;
    finished_.store(true, std::memory_order_release);
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
    for (RetainedContext& retained : older.contexts_) {
        const auto same =
            std::find_if(contexts_.begin(), contexts_.end(), [&](const RetainedContext& own) {
                return &*own.context == &*retained.context;
            });
        if (same == contexts_.end())
            contexts_.push_back(std::move(retained));
        else
            same->until = event_;
    }
    older.contexts_.clear();
}

void PendingWork::release_finished(const Driver& driver, const RelaxedCapture& /*relaxed*/,
                                   std::vector<ContextCache::Ref>& released) {
    const auto retained =
        std::find_if(contexts_.begin(), contexts_.end(),
                     [&](const RetainedContext& own) { return own.until != event_; });
    if (retained == contexts_.end() ||
        driver.cuEventQuery(retained->until->native()) == CUDA_ERROR_NOT_READY)
        return;
    released.push_back(std::move(retained->context));
    contexts_.erase(retained);
}

void PendingWork::release_all(std::vector<ContextCache::Ref>& released) {
    for (RetainedContext& retained : contexts_)
        released.push_back(std::move(retained.context));
    contexts_.clear();
}

std::string lease_label(uint64_t id, const std::string& name) {
    return name.empty() ? "lease " + std::to_string(id) : "\"" + name + "\"";
}

Lease::State Lease::state() const {
    const std::lock_guard lock(mutex_);
    return {allocation_, changes_.load(), stream_count_, released_};
}

void Lease::count_streams(int more) {
    const std::lock_guard lock(mutex_);
    stream_count_ += static_cast<uint32_t>(more);
    Publisher::Update(publisher_).set_streams(id, stream_count_);
}

void Lease::check_alive() const {
    const std::lock_guard lock(mutex_);
    check_alive_locked();
}

void Lease::check_unreleased() const {
    const std::lock_guard lock(mutex_);
    check_unreleased_locked();
}

void Lease::check_alive_locked() const {
    check_unreleased_locked();
    context_.check_alive();
}

void Lease::check_unreleased_locked() const {
    if (released_)
        fail(GCX_ERROR_CONTEXT_IS_DESTROYED,
             format("%s was released, and its streams ended with it; destroy the handle",
                    label().c_str()));
}

void Lease::check_unparked_locked() const {
    if (allocation_.all().empty())
        fail(GCX_ERROR_LEASE_PARKED,
             format("%s is parked and has no SMs; resize it first", label().c_str()));
}

ContextKey Lease::key(const AtomSet& set) const {
    return {&device, family, set, workqueue_};
}

Lease::Target Lease::target(ContextCache& cache, uint64_t waited) {
    end_deferral();
    const std::lock_guard lock(mutex_);
    check_unreleased_locked();
    check_unparked_locked();
    const ContextCache::Ref& context = former_context_ ? former_context_ : context_;
    Target target{placement_.load(), cache.share(*context, ContextCache::Use::stream), {}};
    for (const Awaited& awaited : awaited_) {
        if (awaited.since <= waited || awaited.work->known_finished() ||
            (awaited.atoms & context->key.set).empty())
            continue;
        // The newest work of a stream implies its older work.
        const auto same =
            std::find_if(target.wait_for.begin(), target.wait_for.end(), [&](const auto& work) {
                return work->source.stream == awaited.work->source.stream;
            });
        if (same == target.wait_for.end())
            target.wait_for.push_back(awaited.work);
        else if ((*same)->number < awaited.work->number)
            *same = awaited.work;
    }
    return target;
}

ContextCache::Ref Lease::start_context(ContextCache& cache) {
    const std::lock_guard lock(mutex_);
    check_alive_locked();
    check_unparked_locked();
    return cache.share(former_context_ ? *former_context_ : *context_, ContextCache::Use::stream);
}

void Lease::end_deferral() {
    if (!is_deferred_.load(std::memory_order_acquire))
        return;
    PendingWorks blocking;
    uint64_t placement = 0;
    {
        const std::lock_guard lock(mutex_);
        if (!former_context_)
            return;
        placement = placement_.load();
        for (const Awaited& awaited : awaited_) {
            if (!(awaited.atoms - former_context_->key.set).empty())
                blocking.push_back(awaited.work);
        }
    }
    const Driver& driver = device.driver();
    {
        const RelaxedCapture relaxed(driver);
        if (!std::all_of(blocking.begin(), blocking.end(),
                         [&](const auto& work) { return work->finished(driver, relaxed); }))
            return;
    }
    ContextCache::Ref former; // released without the mutex
    const std::lock_guard lock(mutex_);
    if (placement_.load() != placement)
        return; // resized by another thread
    former = std::move(former_context_);
    former_context_ = ContextCache::Ref();
    is_deferred_.store(false, std::memory_order_release);
    placement_.fetch_add(1, std::memory_order_acq_rel);
}

void Lease::record_work() {
    std::shared_ptr<PendingWork> queried;
    {
        const std::lock_guard lock(mutex_);
        if (awaited_.size() > kMaxUnqueried)
            queried = awaited_[next_query_++ % awaited_.size()].work;
    }
    const std::lock_guard lock(streams_mutex_);
    if (queried == nullptr &&
        std::none_of(streams_.begin(), streams_.end(), [](const LeaseStream* stream) {
            return stream->submissions_ != stream->recorded_;
        }))
        return;
    const RelaxedCapture relaxed(device.driver());
    for (LeaseStream* stream : streams_)
        stream->record_work(relaxed);
    if (queried != nullptr)
        queried->finished(device.driver(), relaxed);
}

void Lease::add_work(std::shared_ptr<PendingWork> work) {
    PendingWorks older; // released without the mutex
    const std::lock_guard lock(mutex_);
    for (auto it = unregistered_.begin(); it != unregistered_.end();) {
        if ((*it)->source.stream != work->source.stream || !((*it)->atoms - work->atoms).empty()) {
            ++it;
            continue;
        }
        work->absorb(**it);
        work->implies_.insert(work->implies_.end(), (*it)->implies_.begin(), (*it)->implies_.end());
        older.push_back(std::move(*it));
        it = unregistered_.erase(it);
    }
    unregistered_.push_back(std::move(work));
}

std::shared_ptr<PendingWork> Lease::find_work_to_chain(const GreenContext& context,
                                                       const RelaxedCapture& relaxed) {
    PendingWorks queried; // keeps them alive until the mutex is released
    {
        const std::lock_guard lock(mutex_);
        if (closed_.size() < kMaxClosed)
            return nullptr;
        queried = closed_;
    }
    for (const auto& work : queried)
        work->finished(device.driver(), relaxed);
    const std::lock_guard lock(mutex_);
    drop_known_finished(closed_);
    if (closed_.size() < kMaxClosed)
        return nullptr;
    const auto found = std::find_if(closed_.rbegin(), closed_.rend(), [&](const auto& work) {
        return work->atoms == context.key.set;
    });
    return found == closed_.rend() ? nullptr : *found;
}

void Lease::add_closed_work(const std::shared_ptr<PendingWork>& work,
                            const std::shared_ptr<PendingWork>& chained) {
    if (chained != nullptr) {
        const std::lock_guard lock(mutex_);
        std::erase(closed_, chained);
        if (chained->registered_) {
            work->implies_.push_back(chained);
        } else {
            std::erase(unregistered_, chained);
            work->absorb(*chained);
            work->implies_ = std::move(chained->implies_);
        }
    }
    add_work(work);
    const std::lock_guard lock(mutex_);
    closed_.push_back(work);
}

void Lease::drop_finished(std::vector<ContextCache::Ref>& contexts) {
    const std::lock_guard lock(mutex_);
    if (unregistered_.empty() && closed_.empty())
        return;
    const Driver& driver = device.driver();
    const RelaxedCapture relaxed(driver);
    std::erase_if(unregistered_, [&](const auto& work) {
        if (!work->finished(driver, relaxed))
            return false;
        work->release_all(contexts);
        return true;
    });
    std::erase_if(closed_, [&](const auto& work) { return work->finished(driver, relaxed); });
}

bool Lease::finished() {
    const Driver& driver = device.driver();
    const RelaxedCapture relaxed(driver);
    {
        const std::lock_guard lock(streams_mutex_);
        for (const LeaseStream* stream : streams_) {
            if (stream->is_busy())
                return false;
        }
    }
    for (const auto& work : closed_work()) {
        if (!work->finished(driver, relaxed))
            return false;
    }
    return true;
}

void Lease::synchronize(EventPool& events) {
    const Driver& driver = device.driver();
    const RelaxedCapture relaxed(driver);
    std::vector<EventPool::Event> recorded;
    {
        const std::lock_guard lock(streams_mutex_);
        for (const LeaseStream* stream : streams_) {
            if (!stream->is_busy())
                continue;
            recorded.push_back(events.take());
            GCX_CALL(driver, cuEventRecord, recorded.back().native(), stream->native_);
        }
    }
    for (const EventPool::Event& event : recorded)
        GCX_CALL(driver, cuEventSynchronize, event.native());
    for (const auto& work : closed_work())
        work->synchronize(driver);
}

PendingWorks Lease::closed_work() {
    PendingWorks finished; // released without the mutex
    const std::lock_guard lock(mutex_);
    finished = closed_;
    drop_known_finished(closed_);
    return closed_;
}

LeaseStream::LeaseStream(ContextCache& cache, EventPool& events, std::shared_ptr<Lease> lease,
                         int priority)
    : cache_(cache), events_(events), lease_(std::move(lease)),
      priority_(lease_->device.clamp_priority(priority)), id_(next_stream++) {
    // What its work waits for is decided at the first use.
    context_ = lease_->start_context(cache_);
    native_ = context_->acquire_stream(priority_);
    name_native();
    {
        const std::lock_guard lock(lease_->streams_mutex_);
        lease_->streams_.push_back(this);
    }
    lease_->count_streams(1);
}

LeaseStream::~LeaseStream() {
    {
        const std::lock_guard lock(lease_->streams_mutex_);
        std::erase(lease_->streams_, this);
    }
    lease_->count_streams(-1);
}

LeaseStream::Target LeaseStream::target(Purpose purpose) {
    const std::lock_guard lock(lease_->streams_mutex_);
    if (purpose != Purpose::wait &&
        (followed_ != lease_->placement_.load(std::memory_order_acquire) ||
         (purpose == Purpose::submit && waited_ != followed_) ||
         lease_->is_deferred_.load(std::memory_order_acquire)))
        follow(purpose);
    else
        context_.check_alive();
    if (purpose == Purpose::submit)
        submissions_++;
    return {native_, cache_.share(*context_, ContextCache::Use::current)};
}

void LeaseStream::follow(Purpose purpose) {
    const Driver& driver = lease_->device.driver();
    lease_->check_unreleased(); // the handle lookup has checked for a reset
    if (is_capturing(driver, native_) == true)
        return;
    const RelaxedCapture relaxed(driver);
    Lease::Target target = lease_->target(cache_, waited_);
    if (purpose == Purpose::ask)
        target.wait_for.clear();
    move_to(std::move(target.context), target.wait_for, relaxed);
    followed_ = target.placement;
    if (purpose == Purpose::submit)
        waited_ = target.placement;
}

void LeaseStream::move_to(ContextCache::Ref context, const PendingWorks& wait_for,
                          const RelaxedCapture& relaxed) {
    const Driver& driver = lease_->device.driver();
    const auto wait = [&](CUstream stream) {
        for (const auto& work : wait_for) {
            if (!work->finished(driver, relaxed))
                work->make_wait(driver, stream);
        }
    };
    if (&*context == &*context_) {
        wait(native_);
        return;
    }
    CUstream const next = context->acquire_stream(priority_, id_);
    std::shared_ptr<PendingWork> left;
    try {
        left = record_unfinished(relaxed);
        if (left != nullptr)
            left->make_wait(driver, next);
        wait(next);
        context_->streams.release(native_, priority_, id_);
    } catch (...) {
        try {
            context->streams.release(next, priority_, id_);
        } catch (const Error& error) {
            log::write(GCX_LOG_ERROR, "a stream could not be destroyed: " + error.message);
        }
        throw;
    }
    if (log::enabled(GCX_LOG_DEBUG))
        log::write(GCX_LOG_DEBUG,
                   format("a stream of %s moved from %u to %u SMs; a CUstream obtained from it "
                          "before stays on the former ones",
                          lease_->label().c_str(), context_->sm_count(), context->sm_count()));
    native_ = next;
    context_ = std::move(context);
    // This work was submitted after the last resize, so it is not recorded yet.
    if (left != nullptr)
        lease_->add_work(std::move(left));
    name_native();
}

void LeaseStream::name_native() const {
    if (nvtx::listens())
        nvtx::name_stream(native_,
                          format("gcx: %s, %u SMs", lease_->label().c_str(), context_->sm_count()));
}

bool LeaseStream::is_busy() const {
    const Driver& driver = lease_->device.driver();
    if (is_capturing(driver, native_) == true)
        return false; // a query would break the capture
    const CUresult result = driver.cuStreamQuery(native_);
    if (result == CUDA_ERROR_NOT_READY)
        return true;
    driver.check(result, "cuStreamQuery");
    return false;
}

std::shared_ptr<PendingWork> LeaseStream::record_unfinished(const RelaxedCapture& /*relaxed*/) {
    const Driver& driver = lease_->device.driver();
    // Any other result means that there is nothing to wait for.
    if (driver.cuStreamQuery(native_) != CUDA_ERROR_NOT_READY)
        return nullptr;
    EventPool::Event event = events_.take();
    GCX_CALL(driver, cuEventRecord, event.native(), native_);
    return std::make_shared<PendingWork>(PendingWork::Source{lease_->id, id_, waited_},
                                         cache_.share(*context_, ContextCache::Use::lease),
                                         std::move(event));
}

void LeaseStream::record_work(const RelaxedCapture& relaxed) {
    // Work of an unused stream is already recorded. A stream that captures a graph must not be
    // queried.
    if (submissions_ == recorded_ || is_capturing(lease_->device.driver(), native_) == true)
        return;
    if (auto work = record_unfinished(relaxed))
        lease_->add_work(std::move(work));
    recorded_ = submissions_;
}

void LeaseStream::close() {
    const Driver& driver = lease_->device.driver();
    const std::lock_guard lock(lease_->streams_mutex_);
    if (native_ != nullptr && cache_.is_alive(*context_)) {
        std::shared_ptr<PendingWork> before;
        std::shared_ptr<PendingWork> work;
        // The work of a released lease's streams is already recorded.
        if (submissions_ != 0 && !lease_->state().released &&
            is_capturing(driver, native_) != true) {
            const RelaxedCapture relaxed(driver);
            if (driver.cuStreamQuery(native_) == CUDA_ERROR_NOT_READY) {
                before = lease_->find_work_to_chain(*context_, relaxed);
                if (before != nullptr)
                    before->make_wait(driver, native_);
                work = record_unfinished(relaxed);
            }
        }
        context_->streams.release(native_, priority_);
        if (work != nullptr)
            lease_->add_closed_work(work, before);
    }
    native_ = nullptr;
    context_ = ContextCache::Ref();
    std::erase(lease_->streams_, this);
}

} // namespace gcx

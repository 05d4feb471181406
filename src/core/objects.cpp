#include "core/objects.hpp"

#include "base/log.hpp"
#include "core/capture.hpp"
#include "core/give_back.hpp"
#include "core/scoped_current.hpp"

namespace gcx {

Stream::Stream(ContextCache& cache, GreenContext& context, int priority)
    : cache_(cache), driver_(context.driver()),
      green_(cache.share(context, ContextCache::Use::stream)),
      device_(context.key.device->ordinal()), owned_(true),
      priority_(context.key.device->clamp_priority(priority)) {
    native_ = context.obtain_stream(priority_);
}

Stream::Stream(ContextCache& cache, const Driver& driver, CUstream native)
    : cache_(cache), driver_(driver), native_(native), owned_(false) {
    GCX_CALL(driver, cuStreamGetCtx, native, &foreign_);
    green_ = cache.find(foreign_, ContextCache::Use::stream);
    if (green_) {
        device_ = green_->key.device->ordinal();
    } else {
        const ScopedCurrent current(driver, foreign_);
        GCX_CALL(driver, cuCtxGetDevice, &device_);
    }
}

Stream::Stream(ContextCache& cache, EventPool& events, std::shared_ptr<Lease> lease, int priority)
    : cache_(cache), driver_(lease->device.driver()), device_(lease->device.ordinal()),
      owned_(true) {
    follower_ = std::make_unique<LeaseStream>(cache, events, std::move(lease), priority);
}

void Stream::close() {
    if (follower_ != nullptr)
        follower_->close();
    else if (owned_ && native_ != nullptr && cache_.is_alive(*green_))
        green_->streams.give_up(driver_, native_, priority_);
    native_ = nullptr;
    green_ = ContextCache::Ref();
}

Stream::Place Stream::place(Purpose purpose) {
    if (follower_ == nullptr)
        return {native_, green_ ? green_->native : foreign_, green_ ? &*green_ : nullptr, {}};
    LeaseStream::At at = follower_->at(purpose);
    GreenContext& green = *at.context;
    return {at.native, green.native, &green, std::move(at.context)};
}

Gate* Stream::gate() const {
    return follower_ == nullptr ? nullptr : &follower_->lease().gate();
}

void Stream::check_alive() const {
    if (follower_ != nullptr)
        follower_->lease().check_alive();
    if (green_)
        green_.check_alive();
}

uint32_t Stream::sm_count(const Place& place) const {
    if (place.green != nullptr)
        return place.green->sm_count();
    CUdevResource resource{};
    GCX_CALL(driver_, cuCtxGetDevResource, place.context, &resource, cu::kResourceSm);
    return cu::get_fields<cu::SmFields>(resource).sm_count;
}

void Stream::get_info(gcx_stream_info& info) {
    const Place place = this->place(Purpose::ask);
    int priority = 0;
    GCX_CALL(driver_, cuStreamGetPriority, place.native, &priority);
    info.sm_count = sm_count(place);
    info.priority = priority;
    info.device = device_;
    info.context_id = place.green != nullptr ? place.green->id : 0;
}

TemporaryStream::~TemporaryStream() {
    // Nobody could repeat a call that failed: a failure of the moment gets a second chance.
    for (const bool last : {false, true}) {
        try {
            stream_.close();
            return;
        } catch (const Error& error) {
            if (last)
                log::write(GCX_LOG_ERROR, "a stream is left behind: " + error.message);
        }
    }
}

Event::Event(Device& device, uint32_t flags)
    : driver_(device.driver()), device_(&device), primary_(device.hold_primary()),
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
    // Asking a captured event for its work breaks the capture, asking for times doesn't.
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
        if (!gone(result))
            driver_.check(result, "cuEventDestroy");
    }
    native_ = nullptr;
    primary_ = Device::PrimaryHold();
}

void Event::check_recordable(int32_t device) const {
    if (device_ != nullptr && device_->ordinal() != device)
        fail(GCX_ERROR_INVALID_HANDLE,
             format("the event is of device %d, the work of device %d: an event is recorded on its "
                    "own device alone, so make one with gcx_event_create(%d, ...). Waiting for it "
                    "works on any",
                    device_->ordinal(), device, device));
}

void Event::check_comparable(const Event& end) const {
    if (device_ != nullptr && end.device_ != nullptr && device_ != end.device_)
        fail(GCX_ERROR_INVALID_HANDLE,
             format("start is of device %d, end of device %d: CUDA takes times between events of "
                    "one device alone. Wait for both, and take the time of the host's clock",
                    device_->ordinal(), end.device_->ordinal()));
}

void Event::check_timed(const char* name) const {
    float none = 0; // between an event and itself
    const CUresult result = driver_.cuEventElapsedTime(&none, native_, native_);
    if (result == CUDA_ERROR_INVALID_HANDLE)
        fail(
            GCX_ERROR_INVALID_HANDLE,
            !timing_ ? format("%s takes no times: it was made without GCX_EVENT_TIMING", name)
            : device_ != nullptr
                ? format("%s was never recorded", name)
                : format("%s, which gcx did not make, takes no times or was never recorded", name));
    if (result == CUDA_ERROR_NOT_READY)
        fail(GCX_ERROR_NOT_READY,
             format("the work of %s has not finished; wait with gcx_event_synchronize", name));
}

void Event::check_alive() const {
    if (device_ != nullptr && !primary_.alive())
        fail(GCX_ERROR_CONTEXT_IS_DESTROYED,
             format("the event died: the primary context of %s was reset. Destroy the handle and "
                    "make a new event",
                    device_->label().c_str()));
}

} // namespace gcx

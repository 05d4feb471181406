#include "core/objects.hpp"

#include "core/scoped_current.hpp"

namespace gcx {
namespace {

CUstream create_stream(const Driver& driver, const GreenContext& context, int priority) {
    CUstream stream = nullptr;
    if (driver.has(GCX_CAPABILITY_STREAM_CREATE)) {
        GCX_CALL(driver, cuGreenCtxStreamCreate, &stream, context.green, CU_STREAM_NON_BLOCKING,
                 priority);
    } else {
        const ScopedCurrent current(driver, context.native);
        GCX_CALL(driver, cuStreamCreateWithPriority, &stream, CU_STREAM_NON_BLOCKING, priority);
    }
    return stream;
}

// Answers to a destroy call that mean that there is nothing left to destroy.
bool gone(CUresult result) {
    return result == CUDA_SUCCESS || result == CUDA_ERROR_CONTEXT_IS_DESTROYED ||
           result == CUDA_ERROR_DEINITIALIZED;
}

} // namespace

Stream::Stream(ContextCache& cache, GreenContext& context, int priority)
    : cache_(cache), driver_(context.driver()),
      green_(cache.share(context, ContextCache::Use::stream)), owned_(true), priority_(priority) {
    native_ = context.idle_streams.take(driver_, priority);
    if (native_ == nullptr) {
        native_ = create_stream(driver_, context, priority);
        context.idle_streams.learn(driver_, native_, priority);
    }
}

Stream::Stream(ContextCache& cache, const Driver& driver, CUstream native)
    : cache_(cache), driver_(driver), native_(native), owned_(false) {
    GCX_CALL(driver, cuStreamGetCtx, native, &foreign_);
    green_ = cache.find(foreign_, ContextCache::Use::stream);
}

void Stream::close() {
    if (owned_ && native_ != nullptr && cache_.is_alive(*green_) &&
        !green_->idle_streams.keep(driver_, native_, priority_)) {
        const CUresult result = driver_.cuStreamDestroy(native_);
        if (!gone(result))
            driver_.check(result, "cuStreamDestroy");
    }
    native_ = nullptr;
    green_ = ContextCache::Ref();
}

void Stream::check_alive() const {
    if (green_)
        green_.check_alive();
}

uint32_t Stream::sm_count() const {
    if (green_)
        return green_->sm_count();
    CUdevResource resource{};
    GCX_CALL(driver_, cuCtxGetDevResource, foreign_, &resource, cu::kResourceSm);
    return cu::get_fields<cu::SmFields>(resource).sm_count;
}

void Stream::get_info(gcx_stream_info& info) const {
    int priority = 0;
    GCX_CALL(driver_, cuStreamGetPriority, native_, &priority);
    int device = 0;
    if (green_) {
        device = green_->key.device->ordinal();
    } else {
        const ScopedCurrent current(driver_, foreign_);
        GCX_CALL(driver_, cuCtxGetDevice, &device);
    }
    info.sm_count = sm_count();
    info.priority = priority;
    info.device = device;
    info.context_id = green_ ? green_->id : 0;
}

Event::Event(Device& device, uint32_t flags) : device_(device), primary_(device.hold_primary()) {
    const ScopedCurrent current(device.driver(), primary_.context());
    const bool timing = (flags & GCX_EVENT_TIMING) != 0;
    GCX_CALL(device.driver(), cuEventCreate, &native_,
             timing ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING);
}

void Event::close() {
    if (native_ != nullptr && primary_.alive()) {
        const CUresult result = device_.driver().cuEventDestroy(native_);
        if (!gone(result))
            device_.driver().check(result, "cuEventDestroy");
    }
    native_ = nullptr;
    primary_ = Device::PrimaryHold();
}

void Event::check_alive() const {
    if (!primary_.alive())
        fail(GCX_ERROR_CONTEXT_IS_DESTROYED,
             format("the event died: the primary context of %s was reset. Destroy the handle and "
                    "make a new event",
                    device_.label().c_str()));
}

} // namespace gcx

// Scopes and retries around driver calls: the current context, the graph capture mode, and releases
// that must not fail.
#pragma once

#include "driver/driver.hpp"

#include <cstdint>
#include <optional>

namespace gcx {

// Repeats a release that failed, for destructors, whose caller cannot. What stays unreleased leaks,
// so a temporary failure, such as a lack of host memory, deserves a second try. Returns the last
// result.
template <class Call>
CUresult retry_once(Call&& call) {
    const CUresult result = call();
    return result == CUDA_SUCCESS ? result : call();
}

// Returns whether a destroy call succeeded or found nothing to destroy.
inline bool is_destroyed(CUresult result) {
    return result == CUDA_SUCCESS || result == CUDA_ERROR_CONTEXT_IS_DESTROYED ||
           result == CUDA_ERROR_DEINITIALIZED || result == CUDA_ERROR_INVALID_HANDLE;
}

// Makes a context current for the calling thread, for driver functions that use the current one.
class ScopedCurrent {
  public:
    ScopedCurrent(const Driver& driver, CUcontext context) : driver_(driver) {
        GCX_CALL(driver, cuCtxPushCurrent, context);
    }
    ~ScopedCurrent() {
        CUcontext popped = nullptr;
        retry_once([&] { return driver_.cuCtxPopCurrent(&popped); });
    }
    ScopedCurrent(const ScopedCurrent&) = delete;
    ScopedCurrent& operator=(const ScopedCurrent&) = delete;

  private:
    const Driver& driver_;
};

// Puts the calling thread into relaxed capture mode. Costs nothing inside another one.
//
// While a graph capture is in progress, CUDA forbids its thread, and in global mode all threads, to
// query, synchronize and allocate, and invalidates the capture if they do. In relaxed mode these
// calls are allowed, and are harmless on streams and events that take no part in a capture. On
// those that do, they invalidate it in any mode, so gcx refuses such calls itself.
// docs/measurements/log.md records which calls do what.
class RelaxedCapture {
  public:
    explicit RelaxedCapture(const Driver& driver) : driver_(driver) {
        if (depth_++ == 0)
            driver_.cuThreadExchangeStreamCaptureMode(&mode_);
    }
    ~RelaxedCapture() {
        if (--depth_ == 0)
            driver_.cuThreadExchangeStreamCaptureMode(&mode_);
    }
    RelaxedCapture(const RelaxedCapture&) = delete;
    RelaxedCapture& operator=(const RelaxedCapture&) = delete;

  private:
    static constinit inline thread_local uint32_t depth_ = 0;
    const Driver& driver_;
    CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

// Returns whether a stream takes part in a capture, including an invalidated one, or nothing if the
// driver reports an error. Invalidates no capture.
inline std::optional<bool> is_capturing(const Driver& driver, CUstream stream) {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    if (driver.cuStreamIsCapturing(stream, &status) != CUDA_SUCCESS)
        return std::nullopt;
    return status != CU_STREAM_CAPTURE_STATUS_NONE;
}

} // namespace gcx

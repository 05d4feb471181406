// Keeps graph captures whole. While one is under way, CUDA forbids its thread, and in global mode
// all others, to query, synchronize and allocate, and breaks the capture if they do. A thread in
// relaxed mode is let through: it is right to ask of streams and events that take no part in a
// capture, which can't hurt it. Asking those that do breaks it in any mode, so gcx refuses that
// itself. docs/measurements.md has what was seen of which call.
#pragma once

#include "driver/driver.hpp"

#include <cstdint>
#include <optional>

namespace gcx {

// Gives something back where nobody could repeat a call that failed: in destructors.
// What isn't given back then is lost for good, so a failure of the moment, as for want of host
// memory, gets a second chance. Answers what the last try did.
template <class Call>
CUresult retry_once(Call&& call) {
    const CUresult result = call();
    return result == CUDA_SUCCESS ? result : call();
}

// Answers to a destroy call that mean that there is nothing left to destroy.
inline bool already_destroyed(CUresult result) {
    return result == CUDA_SUCCESS || result == CUDA_ERROR_CONTEXT_IS_DESTROYED ||
           result == CUDA_ERROR_DEINITIALIZED || result == CUDA_ERROR_INVALID_HANDLE;
}

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

// The calling thread is in relaxed mode while this lives. Inside another one it costs nothing.
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

// Whether a stream takes part in a capture, also in one that is broken; nothing if the driver
// doesn't say. Breaks none.
inline std::optional<bool> is_capturing(const Driver& driver, CUstream stream) {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    if (driver.cuStreamIsCapturing(stream, &status) != CUDA_SUCCESS)
        return std::nullopt;
    return status != CU_STREAM_CAPTURE_STATUS_NONE;
}

} // namespace gcx

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

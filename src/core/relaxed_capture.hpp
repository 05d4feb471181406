// Keeps graph captures whole. While one is under way, CUDA forbids its thread, and in global mode
// all others, to query, synchronize and allocate, and breaks the capture if they do. A thread in
// relaxed mode is let through. gcx asks only of streams and events that take no part in a capture,
// which can't hurt it; those that do are refused in any mode.
#pragma once

#include "driver/driver.hpp"

namespace gcx {

// The calling thread is in relaxed mode while this lives.
class RelaxedCapture {
  public:
    explicit RelaxedCapture(const Driver& driver) : driver_(driver) {
        driver_.cuThreadExchangeStreamCaptureMode(&mode_);
    }
    ~RelaxedCapture() { driver_.cuThreadExchangeStreamCaptureMode(&mode_); }
    RelaxedCapture(const RelaxedCapture&) = delete;
    RelaxedCapture& operator=(const RelaxedCapture&) = delete;

  private:
    const Driver& driver_;
    CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

} // namespace gcx

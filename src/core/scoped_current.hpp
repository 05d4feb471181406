// Makes a context current for the calling thread while it lives. For the few driver functions
// that work on the current context alone.
#pragma once

#include "driver/driver.hpp"

namespace gcx {

class ScopedCurrent {
  public:
    ScopedCurrent(const Driver& driver, CUcontext context) : driver_(driver) {
        GCX_CALL(driver, cuCtxPushCurrent, context);
    }
    ~ScopedCurrent() {
        CUcontext popped = nullptr;
        // A failed pop would leave the caller with another current context than it had.
        for (int attempt = 0; attempt < 2; attempt++) {
            if (driver_.cuCtxPopCurrent(&popped) == CUDA_SUCCESS)
                return;
        }
    }
    ScopedCurrent(const ScopedCurrent&) = delete;
    ScopedCurrent& operator=(const ScopedCurrent&) = delete;

  private:
    const Driver& driver_;
};

} // namespace gcx

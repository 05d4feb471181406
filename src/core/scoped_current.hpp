// Makes a context current for the calling thread while it lives. For the few driver functions
// that work on the current context alone.
#pragma once

#include "core/give_back.hpp"

namespace gcx {

class ScopedCurrent {
  public:
    ScopedCurrent(const Driver& driver, CUcontext context) : driver_(driver) {
        GCX_CALL(driver, cuCtxPushCurrent, context);
    }
    ~ScopedCurrent() {
        CUcontext popped = nullptr;
        give_back([&] { return driver_.cuCtxPopCurrent(&popped); });
    }
    ScopedCurrent(const ScopedCurrent&) = delete;
    ScopedCurrent& operator=(const ScopedCurrent&) = delete;

  private:
    const Driver& driver_;
};

} // namespace gcx

// Work for streams of the simulated driver, and when it ends by the simulated clock.
#pragma once

#include "support.hpp"

namespace support {

class Work {
  public:
    explicit Work(int32_t device = 0);
    ~Work();
    Work(const Work&) = delete;
    Work& operator=(const Work&) = delete;

    // Launches a kernel of one block that lasts this long.
    void spin(CUstream stream, uint64_t nanoseconds) const;
    // Waits for the stream, and returns when its work ended, in milliseconds since construction.
    float free_at(CUstream stream) const;
    CUcontext primary() const { return primary_; }

  private:
    CUdevice device_;
    CUcontext primary_ = nullptr;
    CUmodule module_ = nullptr;
    CUfunction spinner_ = nullptr;
    CUstream clock_ = nullptr;
    CUevent start_ = nullptr;
};

} // namespace support

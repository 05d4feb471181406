// The streams that replace per-thread default streams, which the driver refuses while a green
// context is current (CUDA_ERROR_INVALID_HANDLE, measured with driver 580). Like a per-thread
// default stream, each is a blocking stream. It is destroyed with its thread or by a reset of the
// device.
#pragma once

#include "driver/cuda_api.h"

#include "interpose/partition.hpp"

namespace gcx::interpose {

// The calling thread's stream in the program's context that is current. A reset waits until this
// object is destroyed, so that the stream exists until then.
class ThreadStream {
  public:
    ThreadStream() = default;
    ~ThreadStream();
    ThreadStream(const ThreadStream&) = delete;
    ThreadStream& operator=(const ThreadStream&) = delete;

    // Finds the stream, and creates it at its first use. Finds none if no context of a
    // partition is current.
    CUresult find();
    BlockingStream* found() const { return found_; }

  private:
    ProgramContext* context_ = nullptr;
    BlockingStream* found_ = nullptr;
};

// Destroys the thread streams of a context. Requires the lock and a closed gate.
void destroy_thread_streams(ProgramContext& context);

// Returns whether a stream argument means the per-thread default stream. In the variants of
// functions for per-thread default streams (_ptsz), NULL does too.
template <bool kNullIsPerThread>
constexpr bool is_per_thread(CUstream stream) {
    return stream == CU_STREAM_PER_THREAD || (kNullIsPerThread && stream == nullptr);
}

} // namespace gcx::interpose

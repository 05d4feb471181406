// What stands for CUDA's per-thread default stream in a partition: measured on driver 580, where a
// green context is current each use of that one is refused with CUDA_ERROR_INVALID_HANDLE.
#pragma once

#include "interpose/partition.hpp"

namespace gcx::shim {

// The calling thread's stream of the partition that it has current, made at its first use; null if
// it has none current. It is a blocking one, as the per-thread default stream: it waits for the
// legacy default stream, and that for it.
CUresult find_thread_stream(CUstream* found);

// Whether a program that gives this stream means the thread's own.
template <bool kNullIsOwn>
constexpr bool means_own(CUstream stream) {
    return stream == CU_STREAM_PER_THREAD || (kNullIsOwn && stream == nullptr);
}

// Puts the thread's stream in the place of a stream that means it.
template <bool kNullIsOwn>
CUresult replace_own(CUstream* stream) {
    CUstream own = nullptr;
    if (!means_own<kNullIsOwn>(*stream))
        return CUDA_SUCCESS;
    const CUresult result = find_thread_stream(&own);
    if (result == CUDA_SUCCESS && own != nullptr)
        *stream = own;
    return result;
}

// Destroys the streams of all threads in the partition, before its green context goes; or forgets
// them, once it has gone. The lock must be held.
void destroy_thread_streams(Partition& partition);
void forget_thread_streams(Partition& partition);

} // namespace gcx::shim

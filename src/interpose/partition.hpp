// The partitions of the plan, in this process: on each device one green context, made when the
// program first wants the device's primary context, and current in its place. Programs see the
// primary context's handle alone, wherever a context is given to them.
#pragma once

#include "driver/cuda_api.h"

#include "interpose/exec_plan.hpp"

#include <gcx.h>

#include <array>
#include <atomic>
#include <mutex>
#include <vector>

namespace gcx::shim {

// A green context that ended, and the primary context that programs took it for. A thread may have
// it current still.
struct Former {
    std::atomic<CUcontext> green{nullptr};
    std::atomic<CUcontext> primary{nullptr};
};

struct Partition {
    explicit Partition(const exec::DevicePart& asked_for) : asked(asked_for) {}

    const exec::DevicePart asked;
    // Null until they are there, and after a reset of the device.
    std::atomic<CUcontext> primary{nullptr};
    std::atomic<CUcontext> green{nullptr};
    std::atomic<CUdevice> device{-1}; // once it was asked for
    std::atomic<uint32_t> retains{0}; // the program's own, of the primary context
    std::array<Former, 32> former;    // the last ones
    std::atomic<uint32_t> former_count{0};
    std::atomic<uint64_t> generation{0};  // of the streams below: they all go at once
    std::mutex making;                    // guards what follows, and changes of what is above
    std::vector<CUstream> thread_streams; // see thread_streams.hpp
    gcx_context context = nullptr;
    gcx_reservation reservation = nullptr; // kept until the process ends
};

// The plan. Null where it is missing or damaged, which is said once on standard error.
const exec::Plan* plan();

// The partition on a device; null if the plan doesn't name it. Whoever doesn't know it for an error
// must not go on: it would be outside.
CUresult find_partition(CUdevice device, Partition** found);

// Makes the partition's green context, if it isn't there. The device's primary context has to be.
// A failure is said on standard error.
CUresult make(Partition& partition);

// Gives the partition's green context up, which must not be current in the calling thread; and
// forgets it, once it has gone by whatever way. The lock must be held.
CUresult unmake(Partition& partition);
void forget(Partition& partition);

// Whose primary context it is, one that the library hasn't been asked for yet included; null if of
// none.
CUresult find_by_primary(CUcontext context, Partition** found);

// Whose green context it is; null if of none.
Partition* partition_of(CUcontext green);

// What stands for a context that the program names: the green one, which was made, for a primary
// one.
CUcontext inner(CUcontext context);
// The other way round, for a context that the program is told of.
CUcontext outer(CUcontext context);

// A context was made whose handle may be that of an earlier one: it is not that one.
void forget_former(CUcontext context);

// If the calling thread has a primary context current in whose place a green one belongs, as
// happens where cudart made it current by other ways than cuCtxSetCurrent, or where the green one
// that it had is gone: puts it there.
CUresult enter();

// Says a line on standard error, as "gcx exec: ...".
void say(const char* format, ...) __attribute__((format(printf, 1, 2)));

} // namespace gcx::shim

// How `gcx exec` gets in front of libcuda
//
// 1. Environment. `gcx exec` sets GCX_EXEC_PLAN (exec_plan.hpp) and LD_AUDIT=libgcx-audit.so, and
//    then becomes the program.
// 2. Loading. When anything opens libcuda, the audit library (audit.cpp) gives the loader a stub
//    library (stub_library.hpp). That one depends on libgcx-shim.so and on the real libcuda
//    (real_driver.hpp), so that the shim's functions, the hooks, replace the driver's.
// 3. Lookup. cudart finds functions by cuGetProcAddress, which is a hook too (real_driver.cpp).
//    entry_points.inc lists all hooks.
// 4. Contexts. The shim creates one green context per partitioned device when the program first
//    retains the device's primary context (hooks_context.cpp). Where the program makes the primary
//    context current, the green context becomes current. Where the driver returns the green
//    context, the program gets the primary one. So work in all streams that it creates, and in the
//    legacy default stream, runs on the partition's SMs.
// 5. Lazy initialization. cudart can make the primary context current without a hook. Hooks of all
//    functions that use the current context for work put the green context in its place
//    (enter_partition()).
// 6. Order. The driver orders nothing between the legacy default stream and blocking streams in a
//    green context. Hooks of all functions that submit work add the missing waits
//    (stream_order.hpp, hooks_stream.cpp).
// 7. Per-thread default streams. The driver refuses them in a green context. Hooks of all functions
//    with a stream replace them with a stream of the thread (thread_streams.hpp).
// 8. Graphs. Nodes that name the primary context get the green one (hooks_context.cpp).
// 9. Resets. A reset of the device destroys the green context and all that belongs to it. It waits
//    until no call uses any of it (call_gate.hpp).
// 10. Contexts of cuCtxCreate. The program gets further green contexts over the same SMs, each with
//    its own order and objects (created_contexts.hpp).
// 11. Counts. The program sees the partition's SM count as the device's (hooks_count.cpp). It also
//    sees the partition as the device's resource, so that green contexts of the program are parts
//    of the partition (hooks_context.cpp).
//
// This header: the partitions of the plan in this process, which all of the above share.
#pragma once

#include "driver/cuda_api.h"

#include "interpose/call_gate.hpp"
#include "interpose/exec_plan.hpp"
#include "interpose/stream_order.hpp"

#include <gcx.h>

#include <array>
#include <atomic>
#include <mutex>
#include <vector>

namespace gcx::interpose {

// A destroyed green context and the primary context that the program saw instead. It can still be
// current in a thread.
struct FormerContext {
    std::atomic<CUcontext> green{nullptr};
    std::atomic<CUcontext> primary{nullptr};
};

struct Partition;

// A context of the program. In its place the driver has a green context over the partition's SMs.
struct ProgramContext {
    explicit ProgramContext(Partition& of) : partition(of) {}

    Partition& partition;
    // Null before the green context exists and after a reset of the device.
    std::atomic<CUcontext> green{nullptr};
    std::atomic<uint64_t> generation{0}; // of all that belongs to the green context
    CallGate gate;                       // closed while that is destroyed
    StreamOrder order{gate};
    std::mutex mutex; // guards the members below and changes of those above
    std::vector<BlockingStream*> thread_streams; // of all threads, see thread_streams.hpp
    gcx_context context = nullptr;
};

// The SMs of one device that the plan names, and the context in the place of its primary context.
struct Partition : ProgramContext {
    explicit Partition(const DevicePart& part) : ProgramContext(*this), planned(part) {}

    const DevicePart planned;
    std::atomic<CUcontext> primary{nullptr}; // null like green
    std::atomic<CUdevice> device{-1};        // known once the program has used the device
    std::atomic<uint32_t> retains{0};        // the program's, of the primary context
    std::array<FormerContext, 32> former;    // the latest ones
    std::atomic<uint32_t> former_count{0};   // counts all of them
    // While the driver resets the device, which can have another primary context already.
    std::atomic<bool> resetting{false};
    gcx_reservation reservation = nullptr; // kept until the process ends
};

// Returns the plan. Prints a message and returns null if it is missing or damaged.
const Plan* plan();

// Finds the partition of a device, or null if the plan does not name the device. If this fails, the
// caller must fail too: otherwise the program would run outside of its partition.
CUresult find_partition(CUdevice device, Partition** found);

// Finds the partition of the device with this primary context, or null. Asks the driver for primary
// contexts that no hook has seen yet.
CUresult find_partition_by_primary(CUcontext context, Partition** found);

// Returns the context of the program with this green context, or null. One of cuCtxCreate can be
// destroyed.
ProgramContext* find_program_context(CUcontext green);

// Returns the context of the program whose green context is current in the calling thread, or null.
ProgramContext* find_current_context();

// Creates the partition's green context unless it exists. The device's primary context must be
// active. Prints a message on failure.
CUresult create_green_context(Partition& partition);

// Creates a further green context over the partition's SMs. Locks the partition for a moment only.
// Prints a message on failure.
CUresult create_further_context(Partition& partition, gcx_context* out);

// Destroys the green context. It must not be current in the calling thread. Requires the lock.
CUresult destroy_green_context(ProgramContext& context);

// Records that the green context was destroyed, by gcx or by the driver. Requires the lock.
void forget_green_context(Partition& partition);

// Returns the context to give the driver for one that the program names: the green context for a
// primary one, once it exists.
CUcontext to_driver(CUcontext context);

// Returns the context to give the program for one that the driver names: the reverse.
CUcontext to_program(CUcontext context);

// Forgets a former green context, since a new context has the same handle.
void forget_former_context(CUcontext context);

// Makes the green context current if its primary context is current in the calling thread, or a
// former green context of it. The first happens when cudart bypasses cuCtxSetCurrent, the second
// after a reset. Finds the context of the program that is current then, or null. Fails if it is a
// destroyed one of cuCtxCreate.
CUresult enter_partition(ProgramContext** entered = nullptr);

// Returns whether the program has green contexts, on any device or on this one.
bool program_has_green_contexts();
bool program_has_green_contexts(CUdevice device);

// Returns whether this is the context of one of them.
bool is_program_green_context(CUcontext context);

// Forgets the program's green contexts after a reset of their device.
void forget_program_green_contexts(CUdevice device);

// Prints a line like "gcx exec: ..." on standard error.
void log_line(const char* format, ...) __attribute__((format(printf, 1, 2)));

} // namespace gcx::interpose

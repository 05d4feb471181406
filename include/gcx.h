/*
 * gcx.h - SM partitioning for NVIDIA GPUs
 *
 * gcx divides the streaming multiprocessors (SMs) of a GPU into partitions and creates streams
 * whose kernels run only on the SMs of one partition. It uses CUDA's green contexts.
 *
 *   gcx/common.h       results, messages, versions
 *   gcx/partition.h    devices, SM resources, splits, contexts, streams, events, the context cache
 *   gcx/reservation.h  SMs that no other process has
 *   gcx/lease.h        partitions that are resized while their streams work
 *   gcx/graph.h        CUDA graphs that run on the SMs of any stream
 *   gcx/diagnostics.h  driver, queues, reported counts, probes, published leases, log
 *
 * Rules for all functions
 *
 * Results. A gcx_result below 10000 has the number and the meaning of a CUresult; gcx's own begin
 *   at 10000. The driver's errors are returned unchanged. A function that fails writes no output
 *   parameter and creates nothing, unless its comment says otherwise; gcx_last_error_message() has
 *   the values and what to do. Any function can fail with GCX_ERROR_INVALID_VALUE (a required
 *   pointer is NULL, a flag is unknown, a reserved field is not 0), GCX_ERROR_INVALID_HANDLE,
 *   GCX_ERROR_NOT_INITIALIZED (in a forked child whose parent had started CUDA),
 *   GCX_ERROR_DEINITIALIZED (the process exits), GCX_ERROR_OUT_OF_MEMORY and GCX_ERROR_UNKNOWN (a
 *   defect of gcx). The first function that needs the driver opens it and can fail as
 *   gcx_driver_open().
 * Threads. Every function is thread-safe, also on the same object. Only gcx_context_push() and
 *   gcx_context_pop() change the calling thread's current CUDA context. A thread must not end
 *   within a call: pthread_cancel() during one, and pthread_exit() in a callback, end the process.
 *   A gcx_cancel aborts a call that waits.
 * Handles name objects; a stale or forged one is an error, never a crash. The caller owns each
 *   handle that a function writes and destroys or releases it once. A stream keeps its context,
 *   and destroying a handle never stops submitted work. The destroy functions succeed after the
 *   driver has shut down, so destructors of static objects may call them.
 * Structs that begin with struct_size are initialized with their _INIT macro. The library reads and
 *   writes the smaller of the caller's size and its own, zero-fills what the caller has beyond it,
 *   and refuses unknown bytes that are not 0. Other structs keep their size; set `reserved` to 0.
 * Lists. A function that fills an array takes its capacity in elements and writes the number of
 *   elements to *count. If capacity is too small, it fails with
 *   GCX_ERROR_INSUFFICIENT_CAPACITY, and *count is the capacity that is needed.
 * Graph captures. No function breaks a capture in any thread. An object that takes part in a
 *   capture cannot be queried or waited for: a stream, and a context with such a stream, fail with
 *   GCX_ERROR_STREAM_CAPTURE_UNSUPPORTED, an event that gcx recorded in such a stream fails with
 *   GCX_ERROR_CAPTURED_EVENT. In the capturing stream itself CUDA's rules apply.
 * Sources. Statements about the driver were measured on an H100 and an H200 with driver 580.159.04
 *   (CUDA 13.0), see docs/measurements. [13.1+] marks what concerns newer drivers: it follows the
 *   text of cuda.h and was tested on the simulated driver alone.
 */
#ifndef GCX_H
#define GCX_H

#include "gcx/common.h"
#include "gcx/diagnostics.h"
#include "gcx/graph.h"
#include "gcx/lease.h"
#include "gcx/partition.h"
#include "gcx/reservation.h"

#endif

/*
 * gcx.h - SM partitioning for NVIDIA GPUs
 *
 * gcx divides the streaming multiprocessors (SMs) of a GPU into partitions and creates streams
 * whose kernels run only on the SMs of one partition. It uses CUDA's green contexts.
 *
 * In the order of use: gcx_device_get_resource() returns a device's SMs, gcx_sm_split() divides
 * them, gcx_context_create() creates a context over one part, gcx_stream_create() creates a stream
 * of that context, and gcx_stream_native() returns its CUstream for any CUDA code. A lease
 * (gcx_lease_acquire) is a partition that can be resized while its streams work. A reservation
 * (gcx_reservation_acquire) is a set of SMs that no other process has.
 *
 *   gcx/common.h       results, messages, versions
 *   gcx/partition.h    devices, SM resources, splits, contexts, streams, events, the context cache
 *   gcx/lease.h        partitions that are resized while their streams work
 *   gcx/reservation.h  SMs that no other process has
 *   gcx/graph.h        CUDA graphs that run on the SMs of any stream
 *   gcx/diagnostics.h  driver, queues, reported counts, probes, published leases, log
 *
 * Rules for all functions
 *
 * Results. A gcx_result has the number and name of a CUresult; those from 10000 on are gcx's own,
 *   for conditions that CUDA has no result for. Cast only a result below 10000 to a CUresult. The
 *   driver's own errors are returned unchanged. A function that fails writes no output parameter
 *   and creates nothing, and gcx_last_error_message() says what was wrong, with values, and what
 *   to do. Any function can fail with
 *     GCX_ERROR_INVALID_VALUE    a required pointer is NULL, struct_size is not one that this
 *                                version knows, a flag is unknown, or a reserved field is not 0
 *     GCX_ERROR_INVALID_HANDLE   a handle is NULL, was destroyed, or is of another type
 *     GCX_ERROR_NOT_INITIALIZED  the process is the child of a fork() whose parent had started
 *                                CUDA. Start it with exec
 *     GCX_ERROR_OUT_OF_MEMORY    host or device memory is exhausted
 *     GCX_ERROR_UNKNOWN          a defect of gcx; the message says where
 *   The first function that needs the driver opens it, and can also fail with
 *     GCX_ERROR_SHARED_OBJECT_INIT_FAILED  there is no driver library, or it cannot be loaded
 *     GCX_ERROR_FILE_NOT_FOUND             the simulated driver was requested and is not installed
 *     GCX_ERROR_NOT_SUPPORTED              the driver is older than CUDA 12.4
 *     GCX_ERROR_NO_DEVICE                  the driver has no device
 *
 * Threads. Every function is thread-safe, also on the same object. Only gcx_context_push and
 *   gcx_context_pop change the calling thread's current CUDA context.
 *
 * Handles name objects; they are not addresses. A stale or forged handle is an error, never a
 *   crash. The caller owns each handle that a function writes and destroys or releases it once.
 *   Objects are reference-counted: a stream keeps its context alive, and destroying a handle never
 *   stops submitted work. While the process exits and the driver has shut down, the destroy
 *   functions succeed, so destructors of static objects may call them.
 *
 * Structs that begin with struct_size are initialized with their _INIT macro, so that later
 *   versions can add fields. Structs without it keep their size: new fields will be taken from
 *   `reserved`. Set `reserved` to 0.
 *
 * Lists. A function that fills an array takes the array's capacity in elements and writes the
 *   number of elements to *count. If capacity is too small, it fails with
 *   GCX_ERROR_INSUFFICIENT_CAPACITY, and *count is the capacity that is needed.
 *
 * Graph captures. No function breaks a capture in any thread, although CUDA forbids queries and
 *   synchronization during one. An object that takes part in a capture cannot be queried or waited
 *   for: a stream, and a context with such a stream of gcx, fail with
 *   GCX_ERROR_STREAM_CAPTURE_UNSUPPORTED, an event that gcx recorded in such a stream fails with
 *   GCX_ERROR_CAPTURED_EVENT. In the capturing stream itself CUDA's rules apply: waiting for an
 *   event that was recorded outside the capture breaks it (GCX_ERROR_STREAM_CAPTURE_ISOLATION).
 *
 * Sources. Statements about the driver were measured on an NVIDIA H100 and an H200 with driver
 *   580.159.04 (CUDA 13.0), see docs/measurements/log.md. [13.1+] marks what concerns drivers of CUDA
 *   13.1 and newer: it follows the text of cuda.h and was tested on the simulated driver alone.
 */
#ifndef GCX_H
#define GCX_H

#include "gcx/common.h"
#include "gcx/partition.h"
#include "gcx/lease.h"
#include "gcx/reservation.h"
#include "gcx/graph.h"
#include "gcx/diagnostics.h"

#endif

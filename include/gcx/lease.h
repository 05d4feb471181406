/* gcx/lease.h - partitions that are resized while their streams work. Included by gcx.h. */
#ifndef GCX_LEASE_H
#define GCX_LEASE_H

#include "partition.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------------------------------
 * Leases
 *
 * A lease gives one part of a program exclusive use of some SMs. Two leases of a process have no SM
 * in common unless both are shared. Leases grow, shrink and exchange SMs while their streams work.
 * Contexts of gcx_context_create() ignore leases: split with GCX_SPLIT_EXCLUDE_LEASED to keep them
 * apart. docs/explanation/concepts.md has a picture of a resize.
 *
 * Placement. Deterministic; counts are rounded as by gcx_sm_split(). A lease that grows keeps its
 *   SMs, and a lease that shrinks gets no new ones, unless the rounded count needs the remainder
 *   atom or cannot include it: on an H100, 28 (8 + 8 + 12) to 24 takes one new atom of 8. A
 *   prepared layout returns to the same SMs. Where these contradict each other, the prepared layout
 *   wins, and the lease that moves waits on the device as after any resize.
 * Queue. Waiting requests are served in order of arrival; while one waits, no later request and no
 *   growing lease gets free SMs. Each reservation has a queue of its own.
 * Streams. A function that takes a stream of a lease uses a CUstream on the SMs that the lease has
 *   at that call, ordered behind the stream's earlier work. A CUstream that was obtained before a
 *   resize stays valid, on the SMs of that time. A stream that captures a graph moves when the
 *   capture ends.
 * Parked leases. A resize can take all SMs of a lease, which keeps its handle and its streams.
 *   Submitted work finishes where it runs, and gcx_stream_query(), gcx_stream_synchronize(),
 *   gcx_lease_query() and gcx_lease_synchronize() see it; other functions that take a stream fail
 *   with GCX_ERROR_LEASE_PARKED until a resize gives the lease SMs.
 * Owners. Work of a new owner waits on the device until the former owner's work on those SMs,
 *   submitted before the change, has finished. No host thread waits. A call that submits to a
 *   lease's stream takes effect before a resize or after it, never during one.
 * ---------------------------------------------------------------------------------------- */

typedef struct gcx_lease_s* gcx_lease;
typedef struct gcx_reservation_s* gcx_reservation; /* see reservation.h */

#define GCX_FOREVER 0xffffffffu /* as a timeout */
#define GCX_MAX_LEASE_NAME 64u  /* bytes of a lease's name, including the final 0 */

/* Flags of a lease. */
#define GCX_LEASE_SHARED 0x1u             /* other shared leases may have its SMs too */
#define GCX_LEASE_REQUIRE_WORKQUEUES 0x2u /* fail on drivers before 13.1 */

typedef struct gcx_lease_params {
    uint32_t struct_size;
    uint32_t flags;        /* GCX_LEASE_ */
    gcx_sm_family family;  /* GCX_SM_FAMILY_NONE: coscheduled; not the structured family */
    uint32_t min_sm_count; /* smallest acceptable SM count; 0: the requested count, or one atom
                                    with GCX_REST */
    uint32_t exclusive_sm_count; /* with GCX_LEASE_SHARED: SMs that it has exclusively */
    uint32_t timeout_ms;         /* milliseconds to wait for the SMs; 0: do not wait; GCX_FOREVER */
    gcx_cancel cancel;           /* aborts the wait from another thread; may be NULL */
    const char* name;            /* for messages and lists, copied; may be NULL */
    gcx_reservation reservation; /* acquire within its SMs; NULL: within the device */
} gcx_lease_params;
#define GCX_LEASE_PARAMS_INIT GCX_STRUCT_INIT(gcx_lease_params)

/* Acquires sm_count SMs of a device, or GCX_REST, for exclusive use within this process. params may
 * be NULL.
 *
 * With params->reservation, device is the reservation's or -1, and family the reservation's or
 * GCX_SM_FAMILY_NONE. Resizes of the lease stay within the reservation's SMs and include only
 * leases of the same reservation. The lease keeps the reservation alive, also after
 * gcx_reservation_release(). A lease without a reservation can have SMs of one, but not those of
 * another lease.
 *
 * The count is rounded up to whole atoms; gcx_lease_get_info() returns what was acquired. The first
 * lease over a set of SMs creates its context (1 to 3 ms, waits for running kernels); later leases
 * take about 1 us. If other leases have the SMs, blocks for at most params->timeout_ms. Requests
 * are served in order of arrival.
 *
 * [13.1+] The contexts of a lease have balanced workqueues
 * (GCX_WORKQUEUE_SCOPE_GREEN_CTX_BALANCED), shared with no other such context where possible. On
 * older drivers all leases share the process's queues; GCX_LEASE_REQUIRE_WORKQUEUES fails there.
 *
 * Errors: those of gcx_context_create and, with a reservation, of gcx_reservation_get_resource, and
 *   GCX_ERROR_ALREADY_ACQUIRED                other leases have the SMs or wait for them, and
 *                                             timeout_ms is 0; the message names them
 *   GCX_ERROR_TIMEOUT                         the same, still after timeout_ms
 *   GCX_ERROR_CANCELLED                       gcx_cancel_signal() was called
 *   GCX_ERROR_DUPLICATE_LIBRARY               another copy of gcx in this process has leases; the
 *                                             message has the paths of both
 *   GCX_ERROR_INVALID_RESOURCE_CONFIGURATION  the device, or the reservation, has fewer SMs than
 *                                             requested
 *   GCX_ERROR_SMS_NOT_MAPPED                  there are leases of another family: call
 *                                             gcx_device_map_sms() for both families first
 *   GCX_ERROR_NOT_SUPPORTED                   GCX_LEASE_REQUIRE_WORKQUEUES on a driver before 13.1;
 *                                             the device has no max-cluster family
 *   GCX_ERROR_INVALID_DEVICE                  there is no such device, or it is not the
 *                                             reservation's
 *   GCX_ERROR_INVALID_VALUE                   sm_count is 0; the family has no leases or is not
 *                                             the reservation's; the name is too long;
 *                                             min_sm_count or exclusive_sm_count is greater than
 *                                             sm_count; exclusive_sm_count is GCX_REST, or not 0
 *                                             without GCX_LEASE_SHARED */
GCX_API gcx_result gcx_lease_acquire(int32_t device, uint32_t sm_count,
                                     const gcx_lease_params* params, gcx_lease* lease);

/* Releases the lease. Its SMs are free when this returns. Its work finishes, and the work of the
 * next owner of the SMs waits for that. Calls that other threads make with the lease complete, or
 * fail with GCX_ERROR_CONTEXT_IS_DESTROYED or GCX_ERROR_INVALID_HANDLE. Its streams fail with
 * GCX_ERROR_CONTEXT_IS_DESTROYED in every function but gcx_stream_destroy. Never waits for work;
 * waits for a resize that another thread performs. */
GCX_API gcx_result gcx_lease_release(gcx_lease lease);

/* Flags of a lease's size. */
#define GCX_SIZE_PARKED 0x1u /* no SMs (see Leases) */

/* The SM count that a lease is to have. */
typedef struct gcx_lease_size {
    gcx_lease lease;
    uint32_t sm_count; /* SMs, rounded as by gcx_sm_split; GCX_REST: what all other leases leave,
                          shared as evenly as atoms allow; 0 with GCX_SIZE_PARKED */
    uint32_t flags;    /* GCX_SIZE_ */
} gcx_lease_size;

/* Flags of a resize. */
#define GCX_RESIZE_DEFAULT 0x0u /* later work waits on the device for the former owners' work */
/* A lease whose new set contains its old one stays on the old SMs until all new ones are free, and
 * moves when its streams are used after that. A lease that loses SMs moves at once. Useful only if
 * gcx_lease_prepare() created the contexts: creating them waits for running kernels. */
#define GCX_RESIZE_DEFERRED 0x1u

/* Resizes the leases of sizes[0 .. count - 1] in one operation: all of them or none. One lease can
 * grow by the SMs that another loses in the same call. Work in flight finishes where it runs;
 * later work of the streams runs on the new SMs. Takes microseconds if the contexts of the new sets
 * are cached (gcx_lease_prepare); otherwise the time to create them, which delays no other lease.
 *
 * {a, 0, GCX_SIZE_PARKED} and {b, GCX_REST, 0} give a's SMs to b, also while requests wait:
 * leases of one call exchange SMs ahead of the queue.
 *
 * Errors: those of gcx_context_create, and
 *   GCX_ERROR_ALREADY_ACQUIRED                the SMs of the leases and the free ones are too few,
 *                                             or other requests wait for them; the message names
 *                                             them
 *   GCX_ERROR_INVALID_RESOURCE_CONFIGURATION  the leases are of two devices, families or
 *                                             reservations; the sizes exceed the device or the
 *                                             reservation; or a size is less than the lease's
 *                                             exclusive_sm_count
 *   GCX_ERROR_SMS_NOT_MAPPED                  of a parked lease: there are leases of another family
 *   GCX_ERROR_INVALID_VALUE                   count is 0, an sm_count is 0 without
 *                                             GCX_SIZE_PARKED or not 0 with it, or a lease is
 *                                             listed twice */
GCX_API gcx_result gcx_lease_resize(const gcx_lease_size* sizes, uint32_t count, uint32_t flags);

/* Creates the contexts that gcx_lease_resize() with sizes[0 .. count - 1] would need, and resizes
 * nothing. Until one of the leases is released, every resize of the same leases to the same SM
 * counts returns to these sets, if no other lease has their SMs (of a device, the last 1,024
 * layouts). Call it from a background thread, once for each layout. The contexts count as prepared
 * (gcx_cache_prepare). Before there are leases, use gcx_cache_prepare() with
 * GCX_PREPARE_FOR_LEASES.
 *
 * Errors: those of gcx_lease_resize, and
 *   GCX_ERROR_CACHE_LIMIT_EXCEEDED  as for gcx_cache_prepare */
GCX_API gcx_result gcx_lease_prepare(const gcx_lease_size* sizes, uint32_t count);

/* Returns the SMs that gcx_lease_resize() with sizes[0 .. count - 1] would give, and changes
 * nothing. resources[0 .. count - 1] receives those of each lease, 0 SMs for one to park.
 * *remainder receives the SMs of the device, or of the reservation, that no lease would have.
 * Creates no context. Waits while another thread resizes one of the leases. Thread-safe.
 *
 * After gcx_lease_prepare() with the same sizes, later resizes return to these SMs (see there).
 * gcx_graph_prepare() with the resources and GCX_PREPARE_FOR_LEASES then makes graphs ready for the
 * layout before the leases have it. Without that, a change of any lease can change the layout.
 *
 * Errors: those of gcx_lease_resize, but for the creation of contexts */
GCX_API gcx_result gcx_lease_get_layout(const gcx_lease_size* sizes, uint32_t count,
                                        gcx_resource* resources, gcx_resource* remainder);

typedef struct gcx_lease_info {
    uint32_t struct_size;
    int32_t device;
    gcx_sm_family family;
    uint32_t flags;              /* GCX_LEASE_ */
    uint32_t sm_count;           /* SMs that it has now; 0 if it is parked */
    uint32_t exclusive_sm_count; /* of these, SMs that no other lease can have */
    uint32_t stream_count;
    uint64_t id;      /* never reused in a process */
    uint64_t changes; /* how often its SMs have changed */
    char name[64];
} gcx_lease_info;
#define GCX_LEASE_INFO_INIT GCX_STRUCT_INIT(gcx_lease_info)

/* Returns the properties of a lease. */
GCX_API gcx_result gcx_lease_get_info(gcx_lease lease, gcx_lease_info* info);

/* Returns the SMs that the lease has now, as a resource; of a parked lease, one with 0 SMs. */
GCX_API gcx_result gcx_lease_get_resource(gcx_lease lease, gcx_resource* resource);

/* Describes a lease of this process. */
typedef struct gcx_live_lease {
    uint64_t id;
    int32_t device;
    gcx_sm_family family;
    uint32_t flags;    /* GCX_LEASE_ */
    uint32_t sm_count; /* 0 if the lease is parked; of a waiting request: the requested count, or
                          GCX_REST */
    uint32_t exclusive_sm_count;
    uint32_t stream_count;
    uint32_t waits;       /* 1: a request that waits in gcx_lease_acquire */
    uint32_t reserved[7]; /* 0 */
    char name[64];
    gcx_resource resource; /* its SMs; 0 SMs for a waiting request */
} gcx_live_lease;

/* Lists the leases of a device, or of all (-1): first the leases, in order of acquisition, then the
 * waiting requests in the order of their queue. leases may be NULL if capacity is 0.
 *
 * Errors:
 *   GCX_ERROR_INVALID_DEVICE  there is no such device */
GCX_API gcx_result gcx_lease_list(int32_t device, gcx_live_lease* leases, uint32_t capacity,
                                  uint32_t* count);

/* Creates a stream of the lease, which follows it to other SMs (see Leases). params are those of
 * gcx_stream_create. Destroy it with gcx_stream_destroy().
 *
 * Errors: those of gcx_stream_create, and
 *   GCX_ERROR_LEASE_PARKED  the lease has no SMs */
GCX_API gcx_result gcx_lease_stream_create(gcx_lease lease, const gcx_stream_params* params,
                                           gcx_stream* stream);

/* Waits until all work of the lease's streams has finished, including destroyed streams and work
 * submitted before the last resize. Does not wait for other work on its SMs, nor for a stream that
 * captures a graph. Blocks the calling thread. Errors of that work are returned with the driver's
 * code. */
GCX_API gcx_result gcx_lease_synchronize(gcx_lease lease);

/* Returns GCX_SUCCESS if the work that gcx_lease_synchronize() waits for has finished,
 * GCX_ERROR_NOT_READY if not; the latter sets no message. */
GCX_API gcx_result gcx_lease_query(gcx_lease lease);

#ifdef __cplusplus
}
#endif

#endif

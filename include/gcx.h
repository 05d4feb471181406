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
 * (gcx_reservation_acquire) is a set of SMs that no other process has. Result codes are in
 * gcx_result.h.
 *
 * Rules for all functions
 *
 * Results. A gcx_result has the number and the name of a CUresult and can be cast to one. The
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
 *   number of elements to *count. If capacity is too small, it fails with GCX_ERROR_INVALID_VALUE,
 *   and *count is the capacity that is needed.
 *
 * Graph captures. No function breaks a capture in any thread, although CUDA forbids queries and
 *   synchronization during one. An object that takes part in a capture cannot be queried or waited
 *   for: a stream, and a context with such a stream of gcx, fail with
 *   GCX_ERROR_STREAM_CAPTURE_UNSUPPORTED, an event that gcx recorded in such a stream fails with
 *   GCX_ERROR_CAPTURED_EVENT. In the capturing stream itself CUDA's rules apply: waiting for an
 *   event that was recorded outside the capture breaks it (GCX_ERROR_STREAM_CAPTURE_ISOLATION).
 *
 * Sources. Statements about the driver were measured on an NVIDIA H100 and an H200 with driver
 *   580.159.04 (CUDA 13.0), see docs/measurements.md. [13.1+] marks what concerns drivers of CUDA
 *   13.1 and newer: it follows the text of cuda.h and was tested on the simulated driver alone.
 */
#ifndef GCX_H
#define GCX_H

#include "gcx_result.h"

#include <stddef.h>
#include <stdint.h>

#define GCX_VERSION_MAJOR 0
#define GCX_VERSION_MINOR 2
#define GCX_VERSION_PATCH 0
#define GCX_VERSION (GCX_VERSION_MAJOR * 10000 + GCX_VERSION_MINOR * 100 + GCX_VERSION_PATCH)

#if defined(_WIN32)
#define GCX_API
#else
#define GCX_API __attribute__((visibility("default")))
#endif

/* The initial value of a struct that begins with struct_size: zero but for that field. */
#ifdef __cplusplus
#define GCX_STRUCT_INIT(type)                                                                      \
    [] {                                                                                           \
        type gcx_value = {};                                                                       \
        gcx_value.struct_size = sizeof(type);                                                      \
        return gcx_value;                                                                          \
    }()
#else
#define GCX_STRUCT_INIT(type) {.struct_size = sizeof(type)}
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* CUDA's own types, so that this header needs no cuda.h: CUcontext, CUgreenCtx, CUstream, CUevent
 * and CUfunction are pointers to these. cudaStream_t and cudaEvent_t are the same pointers. */
struct CUctx_st;
struct CUgreenCtx_st;
struct CUstream_st;
struct CUevent_st;
struct CUfunc_st;

/* ------------------------------------------------------------------------------------------
 * Devices. A device is CUDA's ordinal, 0 to count - 1, after CUDA_VISIBLE_DEVICES.
 * ---------------------------------------------------------------------------------------- */

/* Returns the number of devices. */
GCX_API gcx_result gcx_device_get_count(int32_t* count);

typedef struct gcx_device_info {
    uint32_t struct_size;
    int32_t compute_capability_major;
    int32_t compute_capability_minor;
    uint32_t sm_count;
    uint32_t min_partition_size;    /* SMs: the smallest coscheduled partition */
    uint32_t coscheduled_alignment; /* SMs: coscheduled partitions come in multiples of this */
    uint32_t locality_domain_count; /* 1 if the driver does not report it */
    char name[128];                 /* begins with "SIMULATED" on the simulated driver */
    uint8_t uuid[16];
} gcx_device_info;
#define GCX_DEVICE_INFO_INIT GCX_STRUCT_INIT(gcx_device_info)

/* Returns the properties of a device. Creates no context.
 *
 * Errors:
 *   GCX_ERROR_INVALID_DEVICE  there is no such device */
GCX_API gcx_result gcx_device_get_info(int32_t device, gcx_device_info* info);

/* Returns the range of stream priorities: 0 and -5 on an H100. Lower numbers are more urgent, so
 * *greatest is the smaller number. The first call for a device retains its primary context for the
 * duration of the call.
 *
 * Errors:
 *   GCX_ERROR_INVALID_DEVICE  there is no such device */
GCX_API gcx_result gcx_device_get_stream_priority_range(int32_t device, int32_t* least,
                                                        int32_t* greatest);

/* ------------------------------------------------------------------------------------------
 * Resources
 *
 * An SM resource is a set of atoms, the smallest groups into which the driver splits a device. All
 * resources of one device and family consist of the same atoms, whichever calls returned them. So
 * gcx can tell whether two of them overlap, and can unite and subtract them, without the driver.
 * Families differ in what the driver promises:
 *   coscheduled  The default. An H100 has 15 atoms of 8 SMs and one remainder atom of 12. Kernels
 *                with thread block clusters of up to 8 blocks run on any atom of 8 SMs.
 *   fine         An H100 has 66 atoms of 2 SMs. Clusters have at most 2 blocks.
 *   max-cluster  For large clusters; compute capability 9.0 and newer, 24 SMs or more. An H200 has
 *   5
 *                atoms of 24 SMs and a remainder atom of 12. Clusters have up to 16 blocks.
 *   structured   [13.1+] The groups of one gcx_sm_split() whose requests set coscheduled counts,
 *                backfill or locality domains. Equal requests give equal groups. A group cannot be
 *                split further. A resource carries its requests and takes no memory of gcx, except
 *                splits into about 20 or more different groups: each distinct one takes some
 *                hundred bytes, permanently.
 *   foreign      [13.1+] The SMs of a stream whose green context gcx did not create
 *                (gcx_stream_get_resource): a count without atoms. gcx_resource_get_info() accepts
 *                it; functions that need atoms fail with GCX_ERROR_INVALID_RESOURCE_CONFIGURATION.
 * ---------------------------------------------------------------------------------------- */

typedef enum gcx_resource_type GCX_ENUM_OF_INT {
    GCX_RESOURCE_SM = 1,                  /* CU_DEV_RESOURCE_TYPE_SM */
    GCX_RESOURCE_WORKQUEUE_CONFIG = 1000, /* [13.1+] CU_DEV_RESOURCE_TYPE_WORKQUEUE_CONFIG */
    GCX_RESOURCE_WORKQUEUE = 10000        /* [13.1+] CU_DEV_RESOURCE_TYPE_WORKQUEUE */
} gcx_resource_type;

typedef enum gcx_sm_family GCX_ENUM_OF_INT {
    GCX_SM_FAMILY_NONE = 0, /* not an SM resource */
    GCX_SM_FAMILY_COSCHEDULED = 1,
    GCX_SM_FAMILY_FINE = 2,
    GCX_SM_FAMILY_MAX_CLUSTER = 3,
    GCX_SM_FAMILY_STRUCTURED = 4,
    GCX_SM_FAMILY_FOREIGN = 5
} gcx_sm_family;

/* Describes resources of one device. A resource is a value: copy it freely; it needs no destroy.
 * Equal resources are equal byte for byte. It is valid only in the process that created it. Every
 * function that takes a resource can fail with GCX_ERROR_INVALID_RESOURCE_TYPE if it is all zero,
 * and with GCX_ERROR_INVALID_RESOURCE_CONFIGURATION if its bytes were changed. */
typedef struct gcx_resource {
    uint64_t opaque[16];
} gcx_resource;

/* Returns the whole device as a resource. Creates no context. GCX_RESOURCE_SM returns all SMs, in
 * the coscheduled family; gcx_sm_split() can split them in any family. [13.1+]
 * GCX_RESOURCE_WORKQUEUE_CONFIG returns the device's default, for gcx_workqueue_configure().
 *
 * Errors:
 *   GCX_ERROR_INVALID_DEVICE         there is no such device
 *   GCX_ERROR_INVALID_RESOURCE_TYPE  type is unknown, or GCX_RESOURCE_WORKQUEUE, which only
 *                                    contexts have
 *   GCX_ERROR_NOT_SUPPORTED          a workqueue type on a driver before 13.1 */
GCX_API gcx_result gcx_device_get_resource(int32_t device, gcx_resource_type type,
                                           gcx_resource* resource);

typedef enum gcx_workqueue_scope GCX_ENUM_OF_INT {
    GCX_WORKQUEUE_SCOPE_DEVICE_CTX = 0, /* share the device's workqueues with all contexts */
    /* where possible, share no workqueue with other balanced contexts */
    GCX_WORKQUEUE_SCOPE_GREEN_CTX_BALANCED = 1
} gcx_workqueue_scope;

typedef struct gcx_resource_info {
    uint32_t struct_size;
    gcx_resource_type type;
    int32_t device;
    /* Of GCX_RESOURCE_SM, else 0. */
    gcx_sm_family family;
    uint32_t sm_count;
    uint32_t atom_count;
    uint32_t min_partition_size;    /* SMs: the smallest part that a split can give; sm_count if it
                                       cannot be split; 0 only if sm_count is 0 */
    uint32_t coscheduled_alignment; /* SMs, never 0: the step between the sizes that a split can
                                       give, unless the remainder atom is all there is */
    uint32_t flags;                 /* of a structured group: its GCX_SM_REQUEST_ flags */
    uint32_t locality_domain_id;    /* valid with GCX_SM_REQUEST_LOCALITY_DOMAIN_ID in flags */
    /* Of GCX_RESOURCE_WORKQUEUE_CONFIG, else 0. */
    gcx_workqueue_scope workqueue_scope;
    uint32_t workqueue_concurrency_limit; /* expected concurrent stream-ordered workloads */
} gcx_resource_info;
#define GCX_RESOURCE_INFO_INIT GCX_STRUCT_INIT(gcx_resource_info)

/* Returns the properties of a resource. Needs the driver only for a structured group that was not
 * used recently. */
GCX_API gcx_result gcx_resource_get_info(const gcx_resource* resource, gcx_resource_info* info);

/* [13.1+] Copies a workqueue configuration with another scope and concurrency limit. A limit of 0
 * keeps the one of *config. *configured may be *config.
 *
 * Errors:
 *   GCX_ERROR_INVALID_RESOURCE_TYPE  *config is not a workqueue configuration
 *   GCX_ERROR_INVALID_VALUE          scope is unknown */
GCX_API gcx_result gcx_workqueue_configure(const gcx_resource* config, gcx_workqueue_scope scope,
                                           uint32_t concurrency_limit, gcx_resource* configured);

/* ------------------------------------------------------------------------------------------
 * Splitting
 * ---------------------------------------------------------------------------------------- */

/* As an SM count: all SMs that are available. A count of 0 is an error. */
#define GCX_REST 0xffffffffu

/* Flags of one group, CUdevSmResourceGroup_flags. */
#define GCX_SM_REQUEST_BACKFILL 0x1u                         /* [13.1+] */
#define GCX_SM_REQUEST_LOCALITY_DOMAIN_ID 0x2u               /* [13.4+] */
#define GCX_SM_REQUEST_LOCALITY_DOMAIN_SUPPLEMENTAL_SMS 0x4u /* [13.4+] */
#define GCX_LOCALITY_DOMAIN_ID_ANY 0xffffffffu

/* Requests one group: CU_DEV_SM_RESOURCE_GROUP_PARAMS. Set unused fields to 0. sm_count works on
 * every driver. Any other field makes the whole split a structured one [13.1+], for which CUDA's
 * own rules apply and nothing is rounded. */
typedef struct gcx_sm_request {
    uint32_t sm_count;                       /* SMs, or GCX_REST */
    uint32_t coscheduled_sm_count;           /* [13.1+] SMs; 0: the default */
    uint32_t preferred_coscheduled_sm_count; /* [13.1+] SMs, used where possible */
    uint32_t flags;                          /* GCX_SM_REQUEST_ */
    uint32_t locality_domain_id;             /* [13.4+] with GCX_SM_REQUEST_LOCALITY_DOMAIN_ID */
    uint32_t reserved[11];                   /* 0 */
} gcx_sm_request;

/* Flags of a split. The first two are CUdevSmResourceSplitByCount_flags and select the family. */
#define GCX_SPLIT_DEFAULT 0x0u                    /* the family of the input */
#define GCX_SPLIT_IGNORE_SM_COSCHEDULING 0x1u     /* fine */
#define GCX_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE 0x2u /* max-cluster */
#define GCX_SPLIT_EXACT 0x100u                    /* fail where a count would be rounded */
#define GCX_SPLIT_EXCLUDE_LEASED 0x200u           /* leave out SMs that leases have */
#define GCX_SPLIT_EXCLUDE_SHARED 0x400u           /* leave out gcx_device_get_shared_sms() */

/* Divides input into one group for each request, disjoint, and a remainder. The result is the same
 * on every driver from 12.4 on.
 *
 * Rules:
 *   1. If the requests can be met in any way, the split succeeds. Among the ways, the one with the
 *      fewest SMs beyond the requests is used, then the one that meets the most counts exactly,
 *      then the one that favours earlier requests.
 *   2. Counts are rounded up to whole atoms. On an H100 (15 atoms of 8 SMs and a remainder atom of
 *      12), 7 gives 8, 10 gives 12, 16 gives 16, 17 gives 20, 24 gives 24, 108 gives 12 atoms of 8
 *      and the one of 12, and 120 with 5 gives 120 and 12. GCX_SPLIT_EXACT fails instead.
 *   3. The remainder atom does not have the family's cluster size (on an H100 clusters of up to 2
 *      blocks, not 8; see gcx_resource_get_max_cluster_size). Request multiples of the other atoms'
 *      size to avoid it: such a group gets it only if nothing else is left. Of 16 equal groups of 8
 *      SMs the first gets it (12, 8, 8, ...).
 *   4. Groups take atoms in the order of the requests, from the first atom on. So a larger first
 *      group contains the smaller first group of another split. A group with the remainder atom
 *      takes its other atoms from the end: 108 does not contain 104.
 *   5. GCX_REST takes what the counted groups leave. Several share it as evenly as atoms allow; the
 *      last gets the remainder atom. Each gets at least one atom.
 *   6. GCX_SPLIT_EXCLUDE_SHARED leaves out each atom with SMs of gcx_device_get_shared_sms(). It
 *      changes nothing on devices of other compute capabilities than 9.x.
 *   7. input may be a whole device, a group, a remainder, or a union of these. To select another
 *      family than input's, input must be a whole device.
 *
 * Writes the groups to groups[0 .. request_count - 1] and the rest to *remainder, which has 0 SMs
 * if nothing is left. remainder may be NULL. Creates nothing on the device. The first split in a
 * family asks the driver for its atoms, which takes microseconds.
 *
 * Errors:
 *   GCX_ERROR_INVALID_RESOURCE_CONFIGURATION  the groups do not fit, a group would be empty, a
 *                                             count cannot be met exactly (GCX_SPLIT_EXACT), or the
 *                                             family is not input's
 *   GCX_ERROR_INVALID_RESOURCE_TYPE           input is not an SM resource
 *   GCX_ERROR_INVALID_VALUE                   request_count or an sm_count is 0; flags select two
 *                                             families; a structured split breaks a rule of CUDA,
 *                                             for which the driver can also return
 *                                             GCX_ERROR_INVALID_RESOURCE_CONFIGURATION
 *   GCX_ERROR_NOT_READY                       with GCX_SPLIT_EXCLUDE_SHARED: the shared SMs are not
 *                                             known (call gcx_device_get_shared_sms after the
 *                                             module is loaded), or their atoms are not (call
 *                                             gcx_device_map_sms)
 *   GCX_ERROR_NOT_SUPPORTED                   the driver has no structured splits (13.1) or
 *                                             locality domains (13.4), or the device has no
 *                                             clusters or too few SMs (a small MIG slice) for
 *                                             the family */
GCX_API gcx_result gcx_sm_split(const gcx_resource* input, const gcx_sm_request* requests,
                                uint32_t request_count, uint32_t flags, gcx_resource* groups,
                                gcx_resource* remainder);

/* Computes the SM counts that gcx_sm_split() would give, with the same code: the count of each
 * group in sm_counts[0 .. request_count - 1] and that of the remainder. Either may be NULL. Creates
 * and keeps nothing.
 *
 * Errors: those of gcx_sm_split. */
GCX_API gcx_result gcx_sm_plan(const gcx_resource* input, const gcx_sm_request* requests,
                               uint32_t request_count, uint32_t flags, uint32_t* sm_counts,
                               uint32_t* remainder_sm_count);

/* Compute the union, the difference (SMs of a that are not in b) and the intersection of two SM
 * resources. *result may be *a or *b. An empty result is a resource of 0 SMs.
 *
 * Errors:
 *   GCX_ERROR_INVALID_RESOURCE_TYPE           one is not an SM resource
 *   GCX_ERROR_INVALID_RESOURCE_CONFIGURATION  they are of different devices or families */
GCX_API gcx_result gcx_resource_union(const gcx_resource* a, const gcx_resource* b,
                                      gcx_resource* result);
GCX_API gcx_result gcx_resource_subtract(const gcx_resource* a, const gcx_resource* b,
                                         gcx_resource* result);
GCX_API gcx_result gcx_resource_intersect(const gcx_resource* a, const gcx_resource* b,
                                          gcx_resource* result);

/* Counts the SMs of the resource that live contexts of gcx in this process use (gcx_context_list).
 *
 * Errors:
 *   GCX_ERROR_NOT_READY              there are live contexts of another family: call
 *                                    gcx_device_map_sms() for both families first
 *   GCX_ERROR_NOT_SUPPORTED          one of two families is the structured one, which cannot be
 *                                    mapped
 *   GCX_ERROR_INVALID_RESOURCE_TYPE  resource is not an SM resource */
GCX_API gcx_result gcx_resource_get_live_overlap(const gcx_resource* resource, uint32_t* sm_count);

/* Counts the SMs that a and b have in common: 0 for two devices.
 *
 * Errors:
 *   GCX_ERROR_NOT_READY              they are of different families: call gcx_device_map_sms() for
 *                                    both first
 *   GCX_ERROR_NOT_SUPPORTED          they are of different families, and one is a structured split,
 *                                    which cannot be mapped
 *   GCX_ERROR_INVALID_RESOURCE_TYPE  one is not an SM resource */
GCX_API gcx_result gcx_resource_get_overlap(const gcx_resource* a, const gcx_resource* b,
                                            uint32_t* sm_count);

/* Returns what gcx_stream_get_max_cluster_size() returns for a stream with these SMs. On a device
 * with clusters the first call creates a context of them, at its usual cost, and caches it.
 *
 * Errors: those of gcx_context_create, and
 *   GCX_ERROR_INVALID_RESOURCE_CONFIGURATION  the resource has 0 SMs */
GCX_API gcx_result gcx_resource_get_max_cluster_size(const gcx_resource* resource,
                                                     uint32_t* blocks);

/* ------------------------------------------------------------------------------------------
 * Contexts
 *
 * A context is a green context: SMs and, [13.1+], a workqueue configuration. Creating one takes the
 * driver 1 to 3 ms and waits for all kernels that run on the device; destroying it leaks 4 MiB of
 * device memory. So gcx creates one green context for each set of resources and caches it: a
 * context for resources that had one before takes microseconds and waits for nothing.
 *
 * Two handles for equal resources therefore share one green context, and synchronizing or recording
 * one covers the work of both. GCX_CONTEXT_PRIVATE prevents that. The first context on a device
 * retains its primary context permanently.
 *
 * If the application or a library resets the device's primary context (cuDevicePrimaryCtxReset,
 * cudaDeviceReset), its green contexts die. gcx notices when it next uses the device. From then on
 * live handles of contexts, streams and events fail with GCX_ERROR_CONTEXT_IS_DESTROYED, their
 * destroy functions succeed, and new contexts are created as at first. Resources stay valid.
 * ---------------------------------------------------------------------------------------- */

typedef struct gcx_context_s* gcx_context;
typedef struct gcx_stream_s* gcx_stream;
typedef struct gcx_event_s* gcx_event;

/* Uses a green context that no other handle shares, except those of gcx_context_from_native. So
 * synchronizing it waits for no other work, and no other stream's graph capture prevents it. Once
 * released it is cached like others. */
#define GCX_CONTEXT_PRIVATE 0x1u

typedef struct gcx_context_params {
    uint32_t struct_size;
    uint32_t flags; /* GCX_CONTEXT_ */
} gcx_context_params;
#define GCX_CONTEXT_PARAMS_INIT GCX_STRUCT_INIT(gcx_context_params)

/* Creates a context over one or several disjoint SM resources of one device and family and,
 * [13.1+], at most one GCX_RESOURCE_WORKQUEUE_CONFIG or GCX_RESOURCE_WORKQUEUE. params may be NULL.
 *
 * Errors:
 *   GCX_ERROR_INVALID_RESOURCE_CONFIGURATION  the resources overlap, are of different devices or
 *                                             families, or have 0 SMs
 *   GCX_ERROR_INVALID_RESOURCE_TYPE           there is no SM resource, or there are two workqueues
 *   GCX_ERROR_INVALID_VALUE                   resource_count is 0
 *   GCX_ERROR_CONTEXT_IS_DESTROYED            [13.1+] no green context has the workqueue any more
 *   GCX_ERROR_NOT_SUPPORTED                   [13.1+] the remainder atom is combined with atoms
 *                                             that do not run up to the last: CUDA allows no
 *                                             such set */
GCX_API gcx_result gcx_context_create(const gcx_resource* resources, uint32_t resource_count,
                                      const gcx_context_params* params, gcx_context* context);

/* Destroys the handle. Streams of the context stay usable and keep it alive, and work in flight
 * finishes. The green context is cached within gcx_cache_set_limit().
 *
 * Errors:
 *   GCX_ERROR_CONTEXT_ALREADY_IN_USE  the handle is current in the calling thread by
 *                                     gcx_context_push(), or its green context is current and this
 *                                     is the last handle: pop it first */
GCX_API gcx_result gcx_context_destroy(gcx_context context);

typedef struct gcx_context_info {
    uint32_t struct_size;
    int32_t device;
    uint32_t sm_count;
    uint32_t stream_count; /* live gcx streams of the green context, also of its other handles */
    uint64_t id;           /* equal for two handles exactly if they share a green context; never
                              reused in a process. It is not cuGreenCtxGetId's */
} gcx_context_info;
#define GCX_CONTEXT_INFO_INIT GCX_STRUCT_INIT(gcx_context_info)

/* Returns the properties of a context. */
GCX_API gcx_result gcx_context_get_info(gcx_context context, gcx_context_info* info);

/* Describes a green context that is in use. */
typedef struct gcx_live_context {
    uint64_t id; /* as in gcx_context_info */
    int32_t device;
    uint32_t sm_count;
    uint32_t handle_count; /* gcx_context handles */
    uint32_t stream_count; /* gcx_stream handles */
    uint32_t flags;        /* GCX_CONTEXT_PRIVATE */
    uint32_t reserved[3];  /* 0 */
    gcx_resource resource; /* its SMs */
} gcx_live_context;

/* Lists the green contexts of a device, or of all (-1), that have a handle or a stream, are current
 * in a thread by gcx_context_push(), or belong to a lease or a gcx_graph, in the order of their
 * creation. Cached contexts are not listed. contexts may be NULL if capacity is 0.
 *
 * Errors:
 *   GCX_ERROR_INVALID_DEVICE  there is no such device */
GCX_API gcx_result gcx_context_list(int32_t device, gcx_live_context* contexts, uint32_t capacity,
                                    uint32_t* count);

/* Returns the context's resource of one type: its SMs as one resource; [13.1+] its workqueue
 * configuration; or its workqueue, to share it with another context. Contexts with the same
 * workqueue return equal resources. A workqueue can be used as long as one of its contexts exists,
 * live or cached.
 *
 * Errors:
 *   GCX_ERROR_INVALID_RESOURCE_TYPE  type is unknown
 *   GCX_ERROR_NOT_SUPPORTED          a workqueue type on a driver before 13.1 */
GCX_API gcx_result gcx_context_get_resource(gcx_context context, gcx_resource_type type,
                                            gcx_resource* resource);

/* Return the native handles, the context of cuCtxFromGreenCtx and the green context, or NULL on
 * failure, with the reason in gcx_last_error_message(). They are valid as long as the handle or a
 * stream of it is alive. Never destroy them. */
GCX_API struct CUctx_st* gcx_context_native(gcx_context context);
GCX_API struct CUgreenCtx_st* gcx_context_native_green(gcx_context context);

/* Creates a further handle for a context of gcx from its native context.
 *
 * Errors:
 *   GCX_ERROR_NOT_FOUND  native is not a context of gcx */
GCX_API gcx_result gcx_context_from_native(struct CUctx_st* native, gcx_context* context);

/* Push the context on the calling thread's CUDA context stack, which makes it current, and pop it.
 * A pushed context stays alive until it is popped or the thread ends, which pops all that the
 * thread pushed. *context, if not NULL, receives the handle that was pushed.
 *
 * Errors of gcx_context_pop:
 *   GCX_ERROR_INVALID_CONTEXT  this thread pushed nothing, or another context is on top because
 *                              other code pushed or set one: pop that first */
GCX_API gcx_result gcx_context_push(gcx_context context);
GCX_API gcx_result gcx_context_pop(gcx_context* context);

/* Returns the handle that the calling thread pushed last, if its context is current, else NULL with
 * GCX_SUCCESS. It stays with its owner. */
GCX_API gcx_result gcx_context_get_current(gcx_context* context);

/* Waits until all work of the context's streams has finished. Blocks the calling thread. Errors of
 * that work are returned with the driver's code. */
GCX_API gcx_result gcx_context_synchronize(gcx_context context);

/* ------------------------------------------------------------------------------------------
 * Streams
 * ---------------------------------------------------------------------------------------- */

typedef enum gcx_stream_sync GCX_ENUM_OF_INT {
    GCX_STREAM_NON_BLOCKING = 0, /* CU_STREAM_NON_BLOCKING: not ordered with the default stream */
    GCX_STREAM_BLOCKING = 1      /* CU_STREAM_DEFAULT: green contexts have no such streams */
} gcx_stream_sync;

typedef struct gcx_stream_params {
    uint32_t struct_size;
    gcx_stream_sync sync; /* GCX_STREAM_NON_BLOCKING */
    int32_t priority; /* lower is more urgent; clamped to gcx_device_get_stream_priority_range */
} gcx_stream_params;
#define GCX_STREAM_PARAMS_INIT GCX_STRUCT_INIT(gcx_stream_params)

/* Creates a stream of the context, used by this handle alone. params NULL is
 * GCX_STREAM_PARAMS_INIT. Takes microseconds, also while the device is busy. Reuses an idle stream
 * that was destroyed earlier, if one has this priority.
 *
 * Errors:
 *   GCX_ERROR_INVALID_VALUE         sync is not GCX_STREAM_NON_BLOCKING
 *   GCX_ERROR_CONTEXT_IS_DESTROYED  the device was reset */
GCX_API gcx_result gcx_stream_create(gcx_context context, const gcx_stream_params* params,
                                     gcx_stream* stream);

/* Creates a handle for a stream that other code created, such as PyTorch's, to query its SMs and to
 * wait for it. The stream must outlive the handle; destroying the handle does not destroy it.
 *
 * Errors:
 *   GCX_ERROR_INVALID_VALUE  native is NULL, CU_STREAM_LEGACY (1) or CU_STREAM_PER_THREAD (2): the
 *                            default streams, which are different streams in each context
 *   others                   the driver's, as far as it notices that native is not a stream */
GCX_API gcx_result gcx_stream_from_native(struct CUstream_st* native, gcx_stream* stream);

/* Destroys the handle. Never waits; work in the stream finishes. The green context keeps up to 32
 * such streams of about 0.02 MiB for reuse until it is destroyed (gcx_cache_set_limit). So what a
 * library keeps by stream stays valid: PyTorch ends the process if the stream of its pinned memory
 * is gone.
 *
 * Special cases:
 *   - A stream whose attributes were changed (cuStreamSetAttribute) is not reused.
 *   - A stream that captures a graph continues and is kept until the capture ends. If 32 such
 *     streams are kept already, the capture ends.
 *   - If other code destroyed the CUstream, which is not allowed, only the handle is destroyed. */
GCX_API gcx_result gcx_stream_destroy(gcx_stream stream);

/* Returns the CUstream, which is also a cudaStream_t, or NULL on failure, with the reason in
 * gcx_last_error_message(). It is valid until the handle is destroyed; after that it can belong to
 * another handle, so submit nothing to it. Never destroy it. */
GCX_API struct CUstream_st* gcx_stream_native(gcx_stream stream);

typedef struct gcx_stream_info {
    uint32_t struct_size;
    int32_t device;
    int32_t priority;
    uint32_t sm_count;   /* SMs that its kernels can run on */
    uint64_t context_id; /* gcx_context_info.id; 0 if gcx did not create the context */
} gcx_stream_info;
#define GCX_STREAM_INFO_INIT GCX_STRUCT_INIT(gcx_stream_info)

/* Returns the properties of a stream. */
GCX_API gcx_result gcx_stream_get_info(gcx_stream stream, gcx_stream_info* info);

/* Returns the resource of the stream's context, as gcx_context_get_resource() does. For a context
 * that gcx did not create: the whole device, if the stream can run on all SMs; else [13.1+] a
 * resource of GCX_SM_FAMILY_FOREIGN.
 *
 * Errors: those of gcx_context_get_resource, and for a context that gcx did not create
 *   GCX_ERROR_NOT_SUPPORTED  a part of the device on a driver before 13.1; gcx_stream_get_info()
 *                            has its SM count
 *   GCX_ERROR_NOT_FOUND      a workqueue */
GCX_API gcx_result gcx_stream_get_resource(gcx_stream stream, gcx_resource_type type,
                                           gcx_resource* resource);

/* Returns the most blocks that a thread block cluster can have in the stream, including sizes above
 * the portable 8 (CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED), for blocks of 1024 threads
 * without shared memory. Returns 1 on devices without clusters, before compute capability 9.0. The
 * size depends on how the SMs were split, not on their number. */
GCX_API gcx_result gcx_stream_get_max_cluster_size(gcx_stream stream, uint32_t* blocks);

/* The properties of a launch that decide how many of its blocks fit. */
typedef struct gcx_kernel_fit_params {
    uint32_t struct_size;
    uint32_t block_threads;        /* threads in a block, 1 to 1024 */
    uint32_t dynamic_shared_bytes; /* of a block */
    uint32_t cluster_blocks;       /* blocks in a cluster, also if the kernel was compiled with it;
                                      0: no clusters */
} gcx_kernel_fit_params;
#define GCX_KERNEL_FIT_PARAMS_INIT GCX_STRUCT_INIT(gcx_kernel_fit_params)

typedef struct gcx_kernel_fit {
    uint32_t struct_size;
    uint32_t sm_count;      /* SMs that the stream's kernels can run on */
    uint32_t blocks_per_sm; /* blocks that run on one SM at once; 0: the kernel cannot run */
    uint32_t max_blocks;    /* the largest grid whose blocks all run at once, and so the largest
                               cooperative grid */
    uint32_t max_clusters;  /* clusters of cluster_blocks that run at once; 0 without clusters.
                               max_blocks is this times cluster_blocks */
    uint32_t max_cluster_blocks; /* the most blocks in a cluster of this kernel; 1 on a device
                                    without clusters; 0: the kernel cannot run */
} gcx_kernel_fit;
#define GCX_KERNEL_FIT_INIT GCX_STRUCT_INIT(gcx_kernel_fit)

/* Computes how many blocks of a kernel run on the stream's SMs at once if nothing else does, for
 * kernels that size their grid by the SM count. A kernel with its own grid barrier hangs if its
 * grid is larger, and CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT reports the whole device in a
 * partition too.
 *
 * function is a CUfunction, or a CUkernel cast to one, as in CUDA's occupancy functions. The SMs
 * are those of a lease at the time of the call, those that a graph will run on for a stream that
 * captures it, and those of its context for a stream of other code. Clusters of more than 8 blocks
 * need CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED.
 *
 * Errors:
 *   GCX_ERROR_INVALID_VALUE   block_threads is not 1 to 1024, or function is NULL
 *   GCX_ERROR_INVALID_HANDLE  function is not a function, as far as the driver notices */
GCX_API gcx_result gcx_stream_get_kernel_fit(gcx_stream stream, struct CUfunc_st* function,
                                             const gcx_kernel_fit_params* params,
                                             gcx_kernel_fit* fit);

/* Waits until the stream's work has finished. Blocks the calling thread. Errors of that work are
 * returned with the driver's code. */
GCX_API gcx_result gcx_stream_synchronize(gcx_stream stream);

/* Returns GCX_SUCCESS if all work has finished, GCX_ERROR_NOT_READY if not; the latter sets no
 * message. Never waits. */
GCX_API gcx_result gcx_stream_query(gcx_stream stream);

/* ------------------------------------------------------------------------------------------
 * Events
 * ---------------------------------------------------------------------------------------- */

/* Flags of an event. */
#define GCX_EVENT_TIMING 0x1u        /* records times for gcx_event_get_elapsed; costs more */
#define GCX_EVENT_BLOCKING_SYNC 0x2u /* gcx_event_synchronize sleeps instead of spinning */

/* Creates an event on a device. Retains the primary context, as contexts do.
 *
 * Errors:
 *   GCX_ERROR_INVALID_DEVICE  there is no such device */
GCX_API gcx_result gcx_event_create(int32_t device, uint32_t flags, gcx_event* event);

/* Creates a handle for an event that other code created, to record it, wait for it and read times.
 * The event must outlive the handle; destroying the handle does not destroy it. gcx does not know
 * its device and does not notice a reset of it.
 *
 * Errors: the driver's, as far as it notices that native is not an event. */
GCX_API gcx_result gcx_event_from_native(struct CUevent_st* native, gcx_event* event);

/* Destroys the handle, and the event unless other code created it. Never waits. */
GCX_API gcx_result gcx_event_destroy(gcx_event event);

/* Returns the CUevent, or NULL on failure. Valid until the handle is destroyed. */
GCX_API struct CUevent_st* gcx_event_native(gcx_event event);

/* Record in the event the work submitted so far to the stream, or to all streams of the context.
 * Replaces what was recorded before. Never blocks.
 *
 * Errors:
 *   GCX_ERROR_INVALID_HANDLE  the event is of another device (waiting works across devices) */
GCX_API gcx_result gcx_stream_record(gcx_stream stream, gcx_event event);
GCX_API gcx_result gcx_context_record(gcx_context context, gcx_event event);

/* Make all later work of the stream, or of all streams of the context, wait on the device until the
 * event's work has finished. An event that was never recorded makes nothing wait. Never blocks. */
GCX_API gcx_result gcx_stream_wait(gcx_stream stream, gcx_event event);
GCX_API gcx_result gcx_context_wait(gcx_context context, gcx_event event);

/* Waits until the event's work has finished. Blocks the calling thread. */
GCX_API gcx_result gcx_event_synchronize(gcx_event event);

/* Returns GCX_SUCCESS if the event's work has finished, GCX_ERROR_NOT_READY if not; the latter sets
 * no message. Never waits. */
GCX_API gcx_result gcx_event_query(gcx_event event);

/* Returns the milliseconds between the completion of two events' work. Both need GCX_EVENT_TIMING.
 *
 * Errors:
 *   GCX_ERROR_INVALID_HANDLE  one has no timing or was never recorded, or they are of different
 *                             devices; the message says which
 *   GCX_ERROR_NOT_READY       the work of one has not finished; the message says which */
GCX_API gcx_result gcx_event_get_elapsed(gcx_event start, gcx_event end, float* milliseconds);

/* ------------------------------------------------------------------------------------------
 * Cancellation
 *
 * A gcx_cancel lets another thread abort a blocking gcx_lease_acquire, gcx_reservation_acquire or
 * gcx_cache_prepare.
 * ---------------------------------------------------------------------------------------- */

typedef struct gcx_cancel_s* gcx_cancel;

/* Create, signal and destroy a cancellation object. It can be passed to any number of calls. Once
 * it is signalled, all calls that wait with it, and all later ones, fail with
 * GCX_ERROR_NOT_PERMITTED, even if SMs are free. When gcx_cancel_signal returns, each waiting call
 * either has its SMs and returns GCX_SUCCESS, or has left the queue. Destroying the handle cancels
 * nothing. */
GCX_API gcx_result gcx_cancel_create(gcx_cancel* cancel);
GCX_API gcx_result gcx_cancel_signal(gcx_cancel cancel);
GCX_API gcx_result gcx_cancel_destroy(gcx_cancel cancel);

/* ------------------------------------------------------------------------------------------
 * Context cache
 *
 * A green context takes 4 to 6 MiB of device memory on an H100, whatever its SM count. Each of its
 * streams takes about 0.02 MiB.
 * ---------------------------------------------------------------------------------------- */

/* Sets how many green contexts without handle or stream gcx caches on each device. The default is
 * 64; 0 caches none. Contexts beyond the limit are destroyed with their idle streams, least
 * recently used first, but not while one of their streams captures a graph. The driver returns
 * little of their memory (about 1 MiB of 5, or nothing before the next context is created) and
 * leaks the rest, so a limit that is too small costs more memory than it saves.
 *
 * Prepared contexts (gcx_cache_prepare, gcx_lease_prepare) count towards the limit, but only this
 * function and gcx_cache_trim destroy them. A limit below their number destroys the other contexts
 * first; then the prepared contexts that are in use or were used most recently stay. */
GCX_API gcx_result gcx_cache_set_limit(uint32_t kept_contexts);

/* Reports progress. Called in the thread of the call that reports, without any lock of gcx: it may
 * call gcx, for example gcx_cancel_signal. It must not throw. */
typedef void (*gcx_progress_callback)(uint32_t done, uint32_t count, void* user_data);

/* Prepares contexts as leases use them: [13.1+] with balanced workqueues. Changes nothing on older
 * drivers. */
#define GCX_PREPARE_FOR_LEASES 0x1u

typedef struct gcx_prepare_params {
    uint32_t struct_size;
    uint32_t flags;                 /* GCX_PREPARE_ */
    gcx_cancel cancel;              /* aborts the call from another thread; may be NULL */
    gcx_progress_callback progress; /* called after each resource; may be NULL */
    void* user_data;
} gcx_prepare_params;
#define GCX_PREPARE_PARAMS_INIT GCX_STRUCT_INIT(gcx_prepare_params)

/* Creates and caches the context of each SM resource, so that a later gcx_context_create() or
 * gcx_lease_acquire() over the same SMs takes microseconds. Runs in the calling thread; each new
 * context takes milliseconds and waits for all kernels that run on the device. So call it before
 * the work starts, or from a background thread. Contexts that exist already count as used now.
 * params may be NULL. For layouts of live leases use gcx_lease_prepare().
 *
 * Prepared contexts are never evicted by other contexts (gcx_cache_set_limit). A reset of the
 * device destroys them. After a failure the contexts that were created stay prepared.
 *
 * Errors: those of gcx_context_create, and
 *   GCX_ERROR_NOT_PERMITTED          the cancellation object was signalled; it is checked before
 *                                    each resource
 *   GCX_ERROR_INVALID_VALUE          count is 0, or a device would have more prepared contexts than
 *                                    its limit, including those in use; nothing was created
 *   GCX_ERROR_INVALID_RESOURCE_TYPE  one is not an SM resource, or, with GCX_PREPARE_FOR_LEASES, is
 *                                    a structured group, which leases cannot have */
GCX_API gcx_result gcx_cache_prepare(const gcx_resource* resources, uint32_t count,
                                     const gcx_prepare_params* params);

/* The result of gcx_cache_trim. */
typedef struct gcx_cache_trimmed {
    uint32_t struct_size;
    uint32_t contexts;      /* destroyed */
    uint32_t streams;       /* idle streams destroyed, with their contexts or alone */
    uint32_t contexts_left; /* beyond the number, kept because a stream captures in them */
    uint32_t streams_left;  /* without a handle, kept because they work or capture */
    uint32_t reserved;      /* 0 */
    uint64_t bytes; /* by which free device memory grew, all devices together, including changes by
                       other code during the call; at least 0 */
} gcx_cache_trimmed;
#define GCX_CACHE_TRIMMED_INIT GCX_STRUCT_INIT(gcx_cache_trimmed)

/* Destroys the cached contexts beyond a number, all devices together, least recently used first,
 * prepared or not, and the idle streams without handles of all contexts. The limit does not change.
 * Never call it while a library can still name a stream whose handle was destroyed, as PyTorch's
 * allocator does (gcx_stream_destroy). *trimmed, if not NULL, receives the result.
 *
 * Errors: the driver's, if it refuses to destroy something. The rest was trimmed then, and the
 * message has the numbers. */
GCX_API gcx_result gcx_cache_trim(uint32_t kept_contexts, gcx_cache_trimmed* trimmed);

typedef struct gcx_cache_stats {
    uint32_t struct_size;
    uint32_t limit;             /* for each device */
    uint32_t in_use;            /* green contexts with a handle or stream */
    uint32_t kept;              /* green contexts without */
    uint64_t hits;              /* requests met by a context that existed */
    uint64_t misses;            /* green contexts created */
    uint64_t evicted;           /* destroyed by the limit and by gcx_cache_trim */
    uint64_t lost;              /* destroyed by a reset of the device */
    uint64_t prepared;          /* of those created, by a prepare function */
    uint64_t making_ns;         /* nanoseconds in the driver creating them, in total */
    uint64_t longest_making_ns; /* nanoseconds for the slowest one */
    uint32_t kept_streams;      /* streams without handle that are kept for reuse */
    uint32_t reserved;          /* 0 */
} gcx_cache_stats;
#define GCX_CACHE_STATS_INIT GCX_STRUCT_INIT(gcx_cache_stats)

/* Returns the statistics of the cache since the driver was opened. */
GCX_API gcx_result gcx_cache_get_stats(gcx_cache_stats* stats);

/* ------------------------------------------------------------------------------------------
 * Leases
 *
 * A lease gives one part of a program exclusive use of some SMs. Two leases of a process have no SM
 * in common unless both are shared. Leases grow, shrink and exchange SMs while their streams work;
 * work in flight is not interrupted. SMs that no lease has are free. Contexts of
 * gcx_context_create() ignore leases: split with GCX_SPLIT_EXCLUDE_LEASED to keep them apart.
 *
 * Placement. A lease consists of atoms of one family; its count is rounded as gcx_sm_split()
 * rounds.
 *   - Placement is deterministic.
 *   - A lease that grows keeps its SMs, and a lease that shrinks gets no new ones. The remainder
 *     atom is exempt: it goes where a split puts it. [13.1+] Where the driver would refuse a set
 *     with the remainder atom (gcx_context_create), the leases of the resize move, or leave that
 *     atom out.
 *   - A layout that was prepared (gcx_lease_prepare) returns to the same SMs, whose contexts are
 *     cached. A lease can move then; its work waits on the device as after any resize.
 *   - A shared lease prefers the SMs that most leases share, and keeps its exclusive SMs unless it
 *     shrinks below their number.
 *
 * Order of requests. Waiting requests are served in order of arrival. While one waits, no later
 *   request and no growing lease gets free SMs, so no request starves. Each reservation has a queue
 *   of its own for its SMs. A request that was cancelled or timed out leaves the queue at once.
 *
 * Streams. gcx_stream_native() and every function that takes a stream of a lease use a CUstream on
 *   the SMs that the lease has at that call, ordered behind the stream's earlier work. A CUstream
 *   that was obtained before a resize stays valid, on the SMs of that time. So obtain it again for
 *   each step, and submit nothing to it while another thread resizes the lease. A stream that
 *   captures a graph moves when the capture ends.
 *
 * Changes of ownership. Work of a new owner waits on the device until the former owner's work on
 *   those SMs, submitted before the change, has finished. No host thread waits. A stream is made to
 *   wait when it is next used, so an unused stream occupies no hardware queue. A call that submits
 *   to a lease's stream takes effect before a resize or after it, never during one.
 * ---------------------------------------------------------------------------------------- */

typedef struct gcx_lease_s* gcx_lease;

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
} gcx_lease_params;
#define GCX_LEASE_PARAMS_INIT GCX_STRUCT_INIT(gcx_lease_params)

/* Acquires sm_count SMs of a device, or GCX_REST, for exclusive use within this process. params may
 * be NULL.
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
 * Errors: those of gcx_context_create, and
 *   GCX_ERROR_ALREADY_ACQUIRED                other leases have the SMs or wait for them, still
 *                                             after timeout_ms; the message names them
 *   GCX_ERROR_NOT_PERMITTED                   gcx_cancel_signal() was called; or another copy of
 *                                             gcx in this process has leases, and the message has
 *                                             the paths of both
 *   GCX_ERROR_INVALID_RESOURCE_CONFIGURATION  the device, or the reservation, has fewer SMs than
 *                                             requested
 *   GCX_ERROR_NOT_READY                       there are leases of another family: call
 *                                             gcx_device_map_sms() for both families first
 *   GCX_ERROR_NOT_SUPPORTED                   GCX_LEASE_REQUIRE_WORKQUEUES on a driver before 13.1
 *   GCX_ERROR_INVALID_DEVICE                  there is no such device
 *   GCX_ERROR_INVALID_VALUE                   sm_count is 0; the family has no leases; the name is
 *                                             too long; min_sm_count or exclusive_sm_count is
 *                                             greater than sm_count */
GCX_API gcx_result gcx_lease_acquire(int32_t device, uint32_t sm_count,
                                     const gcx_lease_params* params, gcx_lease* lease);

/* Releases the lease. Its SMs are free when this returns. Its work finishes, and the work of the
 * next owner of the SMs waits for that. Calls that other threads make with the lease complete, or
 * fail with GCX_ERROR_CONTEXT_IS_DESTROYED or GCX_ERROR_INVALID_HANDLE. Its streams fail with
 * GCX_ERROR_CONTEXT_IS_DESTROYED in every function but gcx_stream_destroy. Never waits for work;
 * waits for a resize that another thread is making. */
GCX_API gcx_result gcx_lease_release(gcx_lease lease);

/* The SM count that a lease is to have. */
typedef struct gcx_lease_size {
    gcx_lease lease;
    uint32_t sm_count; /* SMs, rounded as by gcx_sm_split; GCX_REST: what all other leases leave,
                          shared as evenly as atoms allow */
    uint32_t reserved; /* 0 */
} gcx_lease_size;

/* Flags of a resize. */
#define GCX_RESIZE_DEFAULT 0x0u /* later work waits on the device for the former owners' work */
/* A lease whose new set contains its old one stays on the old SMs until all new ones are free, and
 * moves when its streams are used after that. A lease that loses SMs moves at once. Useful only if
 * gcx_lease_prepare() created the contexts: creating them waits for running kernels. */
#define GCX_RESIZE_DEFERRED 0x1u

/* Resizes the leases of sizes[0 .. count - 1] in one operation: all of them or none. One lease can
 * grow by the SMs that another gives up in the same call. Work in flight finishes where it runs;
 * later work of the streams runs on the new SMs. Takes microseconds if the contexts of the new sets
 * are cached (gcx_lease_prepare); otherwise the time to create them, which delays no other lease.
 *
 * Errors: those of gcx_context_create, and
 *   GCX_ERROR_ALREADY_ACQUIRED                the SMs of the leases and the free ones are too few,
 *                                             or other requests wait for them; the message names
 *                                             them
 *   GCX_ERROR_INVALID_RESOURCE_CONFIGURATION  the leases are of two devices or families; the sizes
 *                                             exceed the device or the reservation; or a size is
 *                                             less than the lease's exclusive_sm_count
 *   GCX_ERROR_INVALID_VALUE                   count or an sm_count is 0, or a lease is listed
 *                                             twice */
GCX_API gcx_result gcx_lease_resize(const gcx_lease_size* sizes, uint32_t count, uint32_t flags);

/* Creates the contexts that gcx_lease_resize() with sizes[0 .. count - 1] would need, and resizes
 * nothing. Until one of the leases is released, every resize of the same leases to the same SM
 * counts returns to these sets, if no other lease has their SMs (of a device, the last 1,024
 * layouts). Call it from a background thread, once for each layout. The contexts count as prepared
 * (gcx_cache_prepare). Before there are leases, use gcx_cache_prepare() with
 * GCX_PREPARE_FOR_LEASES.
 *
 * Errors: those of gcx_lease_resize, and
 *   GCX_ERROR_INVALID_VALUE  the cache limit is too small, as for gcx_cache_prepare */
GCX_API gcx_result gcx_lease_prepare(const gcx_lease_size* sizes, uint32_t count);

/* Releases the lease from and gives all its SMs to the lease to, ahead of waiting requests, in one
 * operation. flags are those of a resize.
 *
 * Errors: those of gcx_lease_resize, and
 *   GCX_ERROR_NOT_SUPPORTED  [13.1+] the driver refuses the combined set, see gcx_context_create */
GCX_API gcx_result gcx_lease_hand_over(gcx_lease from, gcx_lease to, uint32_t flags);

typedef struct gcx_lease_info {
    uint32_t struct_size;
    int32_t device;
    gcx_sm_family family;
    uint32_t flags;              /* GCX_LEASE_ */
    uint32_t sm_count;           /* SMs that it has now */
    uint32_t exclusive_sm_count; /* of these, SMs that no other lease can have */
    uint32_t stream_count;
    uint32_t reserved;
    uint64_t id;      /* never reused in a process */
    uint64_t changes; /* how often its SMs have changed */
    char name[64];
} gcx_lease_info;
#define GCX_LEASE_INFO_INIT GCX_STRUCT_INIT(gcx_lease_info)

/* Returns the properties of a lease. */
GCX_API gcx_result gcx_lease_get_info(gcx_lease lease, gcx_lease_info* info);

/* Returns the SMs that the lease has now, as a resource. */
GCX_API gcx_result gcx_lease_get_resource(gcx_lease lease, gcx_resource* resource);

/* Describes a lease of this process. */
typedef struct gcx_live_lease {
    uint64_t id;
    int32_t device;
    gcx_sm_family family;
    uint32_t flags;    /* GCX_LEASE_ */
    uint32_t sm_count; /* of a waiting request: the requested count */
    uint32_t exclusive_sm_count;
    uint32_t stream_count;
    uint32_t waits;       /* 1: a request that waits in gcx_lease_acquire */
    uint32_t reserved[7]; /* 0 */
    char name[64];
    gcx_resource resource; /* its SMs; 0 SMs for a waiting request */
} gcx_live_lease;

/* Lists the leases of a device, or of all (-1): first those that have SMs, in order of acquisition,
 * then the waiting requests in the order of their queue. leases may be NULL if capacity is 0.
 *
 * Errors:
 *   GCX_ERROR_INVALID_DEVICE  there is no such device */
GCX_API gcx_result gcx_lease_list(int32_t device, gcx_live_lease* leases, uint32_t capacity,
                                  uint32_t* count);

/* Creates a stream of the lease, which follows it to other SMs (see Leases). params are those of
 * gcx_stream_create. Destroy it with gcx_stream_destroy(). */
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

/* ------------------------------------------------------------------------------------------
 * Published leases
 *
 * A process can publish its leases for `gcx top` and for other processes of the same user. It does
 * so after gcx_publish_start(), or if GCX_PUBLISH in the environment is 1 or a name when the driver
 * is opened; if publishing fails in the latter case, the log has a warning.
 *
 * Each process writes a file in /dev/shm/gcx-UID, where UID is the effective user, or in the folder
 * user-UID below GCX_RESERVATION_DIR if that is set. gcx creates the folder with mode 700, and
 * fails if it is a link, has another owner or a wider mode. A process that ends disappears from the
 * lists. Containers see each other's leases if they share the folder and the user id. A change
 * costs well under a microsecond and no system call. The child of a fork publishes nothing. Reading
 * opens no driver, needs no GPU, and works in a forked child. Each process is seen as it was at one
 * moment. Files that are not valid are skipped with a warning in the log.
 * ---------------------------------------------------------------------------------------- */

#define GCX_MAX_PROCESS_NAME 64u /* bytes of a process's name, including the final 0 */

/* Publishes this process's leases, present and future, up to 512 at a time. name is for lists and
 * is copied; NULL: the program's name. If the process publishes already, changes the name. Opens
 * the driver.
 *
 * Errors:
 *   GCX_ERROR_NOT_PERMITTED     the folder is a link, belongs to another user or is open to others
 *   GCX_ERROR_OPERATING_SYSTEM  the file cannot be created: /dev/shm or the folder of
 *                               GCX_RESERVATION_DIR is missing, full or read-only
 *   GCX_ERROR_INVALID_VALUE     name is too long, or GCX_RESERVATION_DIR is not an absolute path */
GCX_API gcx_result gcx_publish_start(const char* name);

/* Stops publishing. Succeeds if nothing is published. Opens no driver. */
GCX_API gcx_result gcx_publish_stop(void);

/* Describes a process that publishes. */
typedef struct gcx_published_process {
    uint64_t process;  /* a random number that identifies the process */
    uint64_t since_ms; /* milliseconds since 1970 when it began to publish */
    int32_t pid;       /* as the process itself sees it; differs in other containers */
    int32_t simulated; /* 1: it uses the simulated driver */
    int32_t driver_version;
    uint32_t device_count;
    uint32_t lease_count;
    uint32_t unlisted_count; /* leases beyond 512, missing in gcx_published_lease_list */
    uint32_t reserved[8];    /* 0 */
    char name[64];           /* any bytes: escape them for display */
} gcx_published_process;

/* Lists the processes that publish, including this one. Opens no driver. processes may be NULL if
 * capacity is 0. If the user's own folder is missing, the list is empty.
 *
 * Errors:
 *   GCX_ERROR_NOT_PERMITTED, GCX_ERROR_OPERATING_SYSTEM  as for gcx_publish_start */
GCX_API gcx_result gcx_published_process_list(gcx_published_process* processes, uint32_t capacity,
                                              uint32_t* count);

/* Describes a lease of a process that publishes. */
typedef struct gcx_published_lease {
    uint64_t process; /* as in gcx_published_process */
    uint64_t id;      /* of the lease, in that process */
    uint64_t changes; /* how often its SMs have changed */
    int32_t pid;
    int32_t simulated;
    int32_t device; /* the ordinal in that process; device_uuid identifies the device */
    gcx_sm_family family;
    uint32_t flags;    /* GCX_LEASE_ */
    uint32_t waits;    /* 1: a request that waits in gcx_lease_acquire */
    uint32_t sm_count; /* of a waiting request: the requested count, or GCX_REST */
    uint32_t exclusive_sm_count;
    uint32_t stream_count;
    uint32_t device_sm_count;
    uint32_t atom_count;         /* of the family on that device */
    uint32_t atom_sm_count;      /* SMs of each atom but the last */
    uint32_t last_atom_sm_count; /* SMs of the last atom */
    uint32_t reserved[11];       /* 0 */
    uint64_t exclusive_atoms[8]; /* it has atom n exclusively: bit n % 64 of word n / 64 */
    uint64_t shared_atoms[8];    /* the same for atoms that other leases may have too */
    uint8_t device_uuid[16];
    char name[64];         /* any bytes: escape them for display */
    char process_name[64]; /* as above */
    char device_name[128]; /* as above */
} gcx_published_lease;

/* Lists the leases of the processes that publish: of each process first those that have SMs, in
 * order of acquisition, then the waiting requests in the order of their queue. Exclusive leases of
 * one process have no atom in common; leases of two processes can. Opens no driver. leases may be
 * NULL if capacity is 0.
 *
 * Errors: those of gcx_published_process_list. */
GCX_API gcx_result gcx_published_lease_list(gcx_published_lease* leases, uint32_t capacity,
                                            uint32_t* count);

/* ------------------------------------------------------------------------------------------
 * Reservations
 *
 * A reservation is a set of SMs that no other process of the host has, by agreement: no two live
 * reservations of a device have an SM in common if all processes use the same folder. Programs that
 * make no reservation are not bound by it. There is no daemon, and root is not needed.
 *
 * Isolation. Under MPS, the same atoms in two processes are the same SMs, and partitions of two
 *   processes run at the same time (measured on an H200). Without MPS, processes take turns on the
 *   whole device and partitions isolate nothing between them: the reservation succeeds, the log has
 *   a warning, and gcx_mps_get_info() and the lists report it.
 *
 * Lifetime. A reservation is a file that its processes keep locked. It ends when its last process
 *   has released it or ended, however that ended, SIGKILL included. Closing descriptors of unknown
 *   origin does not end it where files can be mapped. A forked child and a program started by exec
 *   have no part in it unless they join or GCX_RESERVATION_INHERIT is set. Work that still runs at
 *   the release continues, on SMs that another process can have by then: destroy contexts first.
 *
 * Order of requests. As for leases, for each device. A process that is killed while it waits is
 *   skipped. A process that is stopped (SIGSTOP) while it is first in the queue delays the others.
 *
 * Placement. As for leases. Whether reservations of two families overlap is known if
 *   gcx_device_map_sms() has read both families in the acquiring process, without MPS; otherwise a
 *   reservation of another family counts as the whole device. The same holds for one whose process
 *   has another driver version, sees other atoms, or has CUDA_MPS_ACTIVE_THREAD_PERCENTAGE below
 *   100 where that matters. Devices are identified by UUID, MIG devices by their own; simulated
 *   devices are distinct from real ones.
 *
 * Folder. gcx_reservation_params.folder; if that is NULL, GCX_RESERVATION_DIR in the environment;
 * if
 *   that is not set, /dev/shm/gcx-UID, which gcx creates with mode 700. UID is the effective user.
 *   A named folder must exist, on a local disk or in memory. It must be the user's own with mode
 *   700, or a group's: setgid, without rights for others (mode 2770, or 3770 to keep members from
 *   removing each other's files), and only members can open it. Members can withhold SMs from each
 *   other, and with mode 2770 remove each other's files, after which others are given those SMs.
 *   Reservations in different folders do not exclude each other. Containers agree if they share the
 *   folder.
 *
 * Inside gcx exec. The SMs of a gcx exec are a reservation. A reservation that its programs request
 *   is a part of it: within it, disjoint from its other parts, of its family and in its folder,
 *   with a queue of its own.
 *
 * A file in the folder that is invalid but locked by a live process is an error that names the
 * file. Files that no process keeps locked are removed.
 * ---------------------------------------------------------------------------------------- */

typedef struct gcx_reservation_s* gcx_reservation;

#define GCX_MAX_RESERVATION_TOKEN 4096u /* bytes of a token, including the final 0 */

/* Forked children and programs that they or this process start by exec keep the reservation too,
 * until they end or close its descriptor: for launchers. */
#define GCX_RESERVATION_INHERIT 0x1u

typedef struct gcx_reservation_params {
    uint32_t struct_size;
    uint32_t flags;        /* GCX_RESERVATION_ */
    gcx_sm_family family;  /* GCX_SM_FAMILY_NONE: coscheduled, inside gcx exec the partition's; not
                              the structured family */
    uint32_t min_sm_count; /* smallest acceptable SM count; 0: the requested count, or one atom
                              with GCX_REST */
    uint32_t timeout_ms;   /* milliseconds to wait for the SMs; 0: do not wait; GCX_FOREVER */
    uint32_t reserved;     /* 0 */
    gcx_cancel cancel;     /* aborts the wait from another thread; may be NULL */
    const char* name;      /* for messages and lists, copied, shorter than GCX_MAX_LEASE_NAME; may
                              be NULL */
    const char* folder;    /* an absolute path; NULL: see above */
} gcx_reservation_params;
#define GCX_RESERVATION_PARAMS_INIT GCX_STRUCT_INIT(gcx_reservation_params)

/* Acquires sm_count SMs of the device, or GCX_REST, that no other process has. params may be NULL.
 * Creates no context. Waits by polling every 20 ms or less; starts no thread. If other processes
 * have the folder locked, which takes them less than a millisecond, waits up to 500 ms for the lock
 * even if timeout_ms is shorter.
 *
 * Errors:
 *   GCX_ERROR_ALREADY_ACQUIRED  other processes have the SMs or wait for them, still after
 *                               timeout_ms, and the message names them; or they changed the folder
 *                               all that time
 *   GCX_ERROR_NOT_PERMITTED     gcx_cancel_signal() was called; or the folder belongs to another
 *                               user or is open to others
 *   GCX_ERROR_OPERATING_SYSTEM  the folder is missing, full or read-only; it has an invalid file; a
 *                               process was stopped in the middle of a change; /dev/shm/gcx-UID was
 *                               removed while a process has a reservation in it
 *   GCX_ERROR_INVALID_RESOURCE_CONFIGURATION  the device, or inside gcx exec the partition, has
 *                               fewer SMs or is of another family
 *   GCX_ERROR_NOT_SUPPORTED     the device has no max-cluster family; inside gcx exec, the driver
 *                               divides the partition into other atoms than the device
 *   GCX_ERROR_NOT_FOUND         inside gcx exec, the partition's reservation has ended
 *   GCX_ERROR_INVALID_DEVICE    there is no such device
 *   GCX_ERROR_INVALID_VALUE     sm_count is 0; the family has no reservations; the name or path is
 *                               too long; the path is not absolute; min_sm_count is greater than
 *                               sm_count */
GCX_API gcx_result gcx_reservation_acquire(int32_t device, uint32_t sm_count,
                                           const gcx_reservation_params* params,
                                           gcx_reservation* reservation);

/* Writes the token with which another process joins the reservation: text for its environment or
 * command line. It is the path of the reservation's file. capacity is the room in token, in bytes;
 * GCX_MAX_RESERVATION_TOKEN is always enough.
 *
 * Errors:
 *   GCX_ERROR_INVALID_VALUE  capacity is too small */
GCX_API gcx_result gcx_reservation_get_token(gcx_reservation reservation, char* token,
                                             uint32_t capacity);

/* Joins a reservation of another process, or of this one. The reservation lasts until all that
 * joined it have released it. Opens no driver, and works in a forked child.
 *
 * Errors:
 *   GCX_ERROR_NOT_FOUND         the reservation has ended or never existed
 *   GCX_ERROR_INVALID_VALUE     token is not a token
 *   GCX_ERROR_ALREADY_ACQUIRED  other processes changed the folder continuously for 5 s
 *   GCX_ERROR_NOT_PERMITTED, GCX_ERROR_OPERATING_SYSTEM  as for gcx_reservation_acquire */
GCX_API gcx_result gcx_reservation_join(const char* token, gcx_reservation* reservation);

/* Releases the reservation. If no other process joined it and no lease in it is left, other
 * processes can have its SMs at once. A forked child has none of its parent's handles. */
GCX_API gcx_result gcx_reservation_release(gcx_reservation reservation);

/* Whether contexts of a process on a device are shared by way of MPS. */
typedef enum gcx_mps_state GCX_ENUM_OF_INT {
    GCX_MPS_UNKNOWN = 0, /* the driver does not report it */
    GCX_MPS_OFF = 1,
    GCX_MPS_ON = 2
} gcx_mps_state;

typedef struct gcx_reservation_info {
    uint32_t struct_size;
    gcx_sm_family family;
    uint32_t flags;           /* GCX_RESERVATION_; 0 for a joined one */
    uint32_t sm_count;        /* SMs that it has */
    uint32_t device_sm_count; /* SMs of the device */
    int32_t joined;           /* 1: by gcx_reservation_join */
    int32_t simulated;        /* 1: of the simulated driver */
    int32_t lost;             /* 1: its file was removed or its folder moved: other processes may be
                                 given its SMs */
    gcx_mps_state mps;        /* as the process that acquired it saw it */
    float mps_thread_percentage; /* the same, as in gcx_mps_info */
    uint64_t id;                 /* a random number that identifies the reservation */
    uint64_t since_ms;           /* milliseconds since 1970 when it was acquired */
    uint64_t atoms[8];           /* it has atom n of the family: bit n % 64 of word n / 64 */
    uint8_t device_uuid[16];
    char name[64]; /* any bytes: escape them for display */
} gcx_reservation_info;
#define GCX_RESERVATION_INFO_INIT GCX_STRUCT_INIT(gcx_reservation_info)

/* Returns the properties of a reservation. Opens no driver. */
GCX_API gcx_result gcx_reservation_get_info(gcx_reservation reservation,
                                            gcx_reservation_info* info);

/* Returns the reservation's SMs as a resource of this process. Opens the driver.
 *
 * Errors:
 *   GCX_ERROR_NO_DEVICE  no device of this process has the reservation's UUID
 *   GCX_ERROR_INVALID_RESOURCE_CONFIGURATION  this process sees other atoms than the process that
 *                        acquired the reservation, or is limited by
 *                        CUDA_MPS_ACTIVE_THREAD_PERCENTAGE and that one was not */
GCX_API gcx_result gcx_reservation_get_resource(gcx_reservation reservation,
                                                gcx_resource* resource);

/* Acquires a lease within the reservation's SMs, as gcx_lease_acquire() does within the device. Its
 * resizes stay within the reservation too, and include only leases of the same reservation.
 * params->family is the reservation's or GCX_SM_FAMILY_NONE. The lease keeps the reservation, also
 * after gcx_reservation_release(). A lease that was acquired without a reservation can have SMs of
 * one, but not those of another lease.
 *
 * Errors: those of gcx_lease_acquire and of gcx_reservation_get_resource, and
 *   GCX_ERROR_INVALID_VALUE  another family */
GCX_API gcx_result gcx_reservation_acquire_lease(gcx_reservation reservation, uint32_t sm_count,
                                                 const gcx_lease_params* params, gcx_lease* lease);

/* Describes a reservation of any process, or a request that waits for one. */
typedef struct gcx_live_reservation {
    uint64_t id;       /* a random number that identifies the reservation */
    uint64_t since_ms; /* milliseconds since 1970 when it was acquired or the wait began */
    uint64_t until_ms; /* of a waiting request: when it times out; 0: never */
    int32_t pid;       /* the process that acquired it, or, once that has ended, another one that
                          keeps it; 0: none is visible here, as in another container */
    uint32_t user;     /* id of the user who owns the file */
    int32_t simulated; /* 1: of the simulated driver */
    uint32_t waits;    /* 1: a request that waits in gcx_reservation_acquire */
    gcx_sm_family family;
    uint32_t sm_count; /* of a waiting request: the requested count, or GCX_REST */
    uint32_t device_sm_count;
    uint32_t atom_count;         /* of the family on that device */
    uint32_t atom_sm_count;      /* SMs of each atom but the last */
    uint32_t last_atom_sm_count; /* SMs of the last atom */
    gcx_mps_state mps;           /* as the process that acquired it saw it */
    float mps_thread_percentage; /* the same, as in gcx_mps_info */
    uint64_t parent;             /* id of the reservation that it is a part of, which may have
                                    ended; 0: of the device */
    uint32_t reserved[6];        /* 0 */
    uint64_t atoms[8];           /* it has atom n: bit n % 64 of word n / 64 */
    uint8_t device_uuid[16];
    char name[64];         /* any bytes: escape them for display */
    char process_name[64]; /* of that process; as above */
    char device_name[128]; /* as above */
} gcx_live_reservation;

/* Lists the reservations of a folder by device: first those that have SMs, in order of acquisition,
 * then the waiting requests in the order of their queue. folder may be NULL, as in
 * gcx_reservation_params. reservations may be NULL if capacity is 0. Opens no driver and needs no
 * GPU. Invalid files are skipped with a warning in the log. Files of processes that have ended are
 * removed where this process may. If the user's own folder is missing, the list is empty.
 *
 * Errors:
 *   GCX_ERROR_NOT_PERMITTED, GCX_ERROR_OPERATING_SYSTEM  as for gcx_reservation_acquire */
GCX_API gcx_result gcx_reservation_list(const char* folder, gcx_live_reservation* reservations,
                                        uint32_t capacity, uint32_t* count);

typedef struct gcx_mps_info {
    uint32_t struct_size;
    gcx_mps_state state;     /* of contexts of this process on the device */
    float thread_percentage; /* CUDA_MPS_ACTIVE_THREAD_PERCENTAGE in the environment, greater than 0
                                and at most 100; 0: not set, or another value. The daemon's own
                                default is not visible */
    uint32_t reserved;
} gcx_mps_info;
#define GCX_MPS_INFO_INIT GCX_STRUCT_INIT(gcx_mps_info)

/* Reports whether the device is used by way of MPS, from CU_DEVICE_ATTRIBUTE_MPS_ENABLED, whose
 * accuracy was not measured. Creates no context.
 *
 * Errors:
 *   GCX_ERROR_INVALID_DEVICE  there is no such device */
GCX_API gcx_result gcx_mps_get_info(int32_t device, gcx_mps_info* info);

/* ------------------------------------------------------------------------------------------
 * Queues
 *
 * All partitions of a process share the hardware queues. CUDA opens as many as
 * CUDA_DEVICE_MAX_CONNECTIONS in the environment says when it starts: the connections. A stream
 * occupies one while its first pending operation waits: for the kernel ahead of it, for an event,
 * or for another branch of its graph. If as many streams wait as there are connections, every other
 * launch of the process waits too, whatever SMs it has. A kernel that waits only for room on its
 * SMs occupies none; neither does a copy or a linear graph. Stream priorities change nothing
 * (measured, docs/measurements.md). [13.1+] Contexts with their own workqueues are independent
 * (GCX_LEASE_REQUIRE_WORKQUEUES, gcx_workqueue_configure).
 * ---------------------------------------------------------------------------------------- */

#define GCX_MAX_CONNECTIONS 32u /* the maximum that CUDA accepts */

/* Where the number of connections comes from. */
typedef enum gcx_queue_source GCX_ENUM_OF_INT {
    GCX_QUEUE_SOURCE_DEFAULT = 0,    /* CUDA's default, 8: the variable is not set */
    GCX_QUEUE_SOURCE_ENVIRONMENT = 1 /* CUDA_DEVICE_MAX_CONNECTIONS */
} gcx_queue_source;

typedef struct gcx_queue_info {
    uint32_t struct_size;
    uint32_t connections; /* that CUDA has, or would have if it started now; 0: unknown, because the
                             variable is not a number from 1 to GCX_MAX_CONNECTIONS */
    gcx_queue_source source;
    int32_t started; /* 1: CUDA has started in the process, and the number is final */
    int32_t certain; /* 0: CUDA started before gcx looked, and the process changed the variable at
                        some time: connections is its present value */
    int32_t too_few; /* 1: there is one connection: all partitions wait as soon as one stream waits.
                        Creating a context then logs a GCX_LOG_WARNING, once */
} gcx_queue_info;
#define GCX_QUEUE_INFO_INIT GCX_STRUCT_INIT(gcx_queue_info)

/* Returns the number of connections. Opens no driver: before one is open, looks at the libraries
 * that are loaded. CUDA has started if cuInit was called there. */
GCX_API gcx_result gcx_queue_get_info(gcx_queue_info* info);

/* Requests connections, 1 to GCX_MAX_CONNECTIONS, before CUDA starts: sets
 * CUDA_DEVICE_MAX_CONNECTIONS in the process's environment unless it is as large already. CUDA
 * reads it in cuInit and never again (measured on 13.0). Call it at the start of the program,
 * before other threads can read the environment. Child processes inherit the number. Opens no
 * driver. Succeeds after CUDA has started if there are enough connections.
 *
 * Errors:
 *   GCX_ERROR_NOT_PERMITTED  CUDA has started with fewer, or certain is 0: it is too late
 *   GCX_ERROR_INVALID_VALUE  connections is 0 or greater than GCX_MAX_CONNECTIONS */
GCX_API gcx_result gcx_queue_request_connections(uint32_t connections);

/* ------------------------------------------------------------------------------------------
 * Graphs
 *
 * A CUDA graph stays on the SMs that it was captured on, whichever stream launches it. A gcx_graph
 * takes a captured graph and launches it on the SMs of any stream. It instantiates one executable
 * for each set of SMs, at the first launch there or ahead of time, and caches it. Nothing is
 * captured again.
 *
 * Nodes. Movable are kernels of libraries (cudart, cuBLAS, cuLibrary) and modules (Triton) with
 * their
 *   arguments and attributes (clusters, cooperative, priority, programmatic launch), copies,
 *   memsets, host functions, events, external semaphores, empty nodes and child graphs. Not movable
 *   are nodes that allocate or free memory and conditional nodes, since CUDA clones no graph that
 *   has them; batched memory operations; and nodes that device code updates. Every moved node is
 *   read back and compared. A node's number is its index in gcx_graph_get_nodes(): the order of
 *   cuGraphGetNodes, with the nodes of a child graph directly behind the node that contains it.
 *
 * Parts. A graph that forks over several partitions has several parts, which can have different
 * SMs:
 *   one part for each context that its kernels were captured in, numbered in order of appearance
 *   (gcx_graph_set_part changes that). CUDA does not report the context of copies and memsets: they
 *   belong to the part of the nearest kernel before them, or else after them.
 *
 * Grids. A kernel whose blocks wait for each other needs all its blocks on the SMs at once: at most
 *   blocks_per_sm of gcx_graph_node times the partition's SMs. A larger cooperative launch is
 *   refused when the executable is instantiated. A larger kernel with its own barrier is not, and
 *   hangs.
 *
 * Threads. Launches of one executable run one after the other, as CUDA orders them. Launches on
 *   different sets of SMs run concurrently, on the same memory. A launch concurrent with a change
 *   of the graph runs the graph as it was before the change or after it.
 * ---------------------------------------------------------------------------------------- */

struct CUgraph_st;
typedef struct gcx_graph_s* gcx_graph;

#define GCX_MAX_GRAPH_PARTS 16u
#define GCX_MAX_KERNEL_NAME 256u /* bytes of a kernel's name, including the final 0; cut to fit */
#define GCX_NO_NODE 0xffffffffu

/* Kernels run with the priorities that they were captured with, as in PyTorch's graphs. Without it,
 * they run with the priority of the stream that the graph is launched in. */
#define GCX_GRAPH_NODE_PRIORITIES 0x1u

typedef struct gcx_graph_params {
    uint32_t struct_size;
    uint32_t flags;           /* GCX_GRAPH_ */
    uint32_t max_executables; /* cached executables, least recently used evicted first; 0: 16. Each
                                 keeps its contexts and some device memory: 0.12 MiB with 3 nodes on
                                 an H200 */
} gcx_graph_params;
#define GCX_GRAPH_PARAMS_INIT GCX_STRUCT_INIT(gcx_graph_params)

/* Creates a movable graph from a captured one, a CUgraph or cudaGraph_t. Copies it: the caller can
 * destroy or change the captured graph at once. params may be NULL. The green contexts of gcx that
 * kernels were captured in must exist; the graph keeps them.
 *
 * Errors:
 *   GCX_ERROR_NOT_SUPPORTED                   a node cannot be moved; the message has its kind and
 *                                             number
 *   GCX_ERROR_INVALID_RESOURCE_CONFIGURATION  kernels of two devices, or of more than
 *                                             GCX_MAX_GRAPH_PARTS contexts
 *   GCX_ERROR_INVALID_CONTEXT                 the graph has no kernels, and no context is current
 *                                             to tell its device
 *   GCX_ERROR_CONTEXT_IS_DESTROYED            a context that kernels were captured in was
 *                                             destroyed */
GCX_API gcx_result gcx_graph_create(struct CUgraph_st* captured, const gcx_graph_params* params,
                                    gcx_graph* graph);

/* Destroys the graph and its executables. Never waits; work in flight finishes. */
GCX_API gcx_result gcx_graph_destroy(gcx_graph graph);

/* Launches the graph in the stream, with all parts on the SMs that the stream has now. A resize of
 * a lease waits for launches in progress in its streams, so each launch runs on the SMs from before
 * or after it. In a stream of the primary context that other code created, the graph runs as it was
 * captured. The first launch on a set of SMs instantiates the executable (gcx_graph_prepare); later
 * ones cost as much as cuGraphLaunch.
 *
 * Errors: those of gcx_graph_prepare, and
 *   GCX_ERROR_INVALID_DEVICE              the stream is of another device
 *   GCX_ERROR_CONTEXT_IS_DESTROYED        the graph is to run as it was captured, in a context that
 *                                         other code has destroyed
 *   GCX_ERROR_STREAM_CAPTURE_UNSUPPORTED  the stream captures a graph: add the captured graph to
 *                                         that one as a child node instead */
GCX_API gcx_result gcx_graph_launch(gcx_graph graph, gcx_stream stream);

/* Launches a graph of several parts: part i on the SMs of streams[i], for streams[0 .. count - 1].
 * count is the number of parts. The graph is launched in streams[0], behind the earlier work of all
 * the streams, and their later work waits for it. Parts without order between them run
 * concurrently.
 *
 * Errors: those of gcx_graph_launch. */
GCX_API gcx_result gcx_graph_launch_parts(gcx_graph graph, const gcx_stream* streams,
                                          uint32_t count);

/* Instantiates the executable for resources[0 .. count - 1] ahead of time, and creates their
 * contexts if there are none: one SM resource for all parts, or one for each part. flags is 0, or
 * GCX_PREPARE_FOR_LEASES for launches in streams of leases. Call it from a background thread: it
 * costs slightly more than cuGraphInstantiate, 1.3 to 2 us for each node, and delays no launch.
 * Does nothing if the executable is cached.
 *
 * Errors: those of gcx_context_create, and
 *   GCX_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE  a cooperative grid does not fit the SMs; the message
 *                                           has the kernel's name, its grid and the largest
 *                                           possible
 *   GCX_ERROR_INVALID_VALUE                 count is neither 1 nor the number of parts
 *   GCX_ERROR_INVALID_DEVICE                a resource is of another device
 *   GCX_ERROR_NOT_SUPPORTED                 the driver did not move a node as requested; the
 *                                           message says which */
GCX_API gcx_result gcx_graph_prepare(gcx_graph graph, const gcx_resource* resources, uint32_t count,
                                     uint32_t flags);

/* Assigns nodes[0 .. count - 1] to a part: an existing one, or the next number. A child graph's
 * node stands for all its nodes. Destroys the executables that were instantiated for several sets
 * of SMs. A part without nodes stays and runs nothing. If count is 0, nothing changes.
 *
 * Errors:
 *   GCX_ERROR_INVALID_VALUE  there is no such node; part is greater than the number of parts or is
 *                            GCX_MAX_GRAPH_PARTS; part is the next one and count is 0 */
GCX_API gcx_result gcx_graph_set_part(gcx_graph graph, const uint32_t* nodes, uint32_t count,
                                      uint32_t part);

/* The launch parameters of a kernel node. */
typedef struct gcx_kernel_params {
    uint32_t struct_size;
    uint32_t shared_bytes;   /* dynamic shared memory of a block */
    uint32_t grid[3];        /* blocks */
    uint32_t block[3];       /* threads */
    const void* arguments;   /* at their offsets (cuFuncGetParamInfo), as in a C struct; copied;
                                NULL: the present ones */
    uint64_t argument_bytes; /* at least to the end of the last argument */
} gcx_kernel_params;
#define GCX_KERNEL_PARAMS_INIT GCX_STRUCT_INIT(gcx_kernel_params)

/* Changes the parameters of a kernel node in the graph and all its executables, or in none. Later
 * launches have them. Takes about 1 us for each executable, where the driver can update
 * executables; it cannot in child graphs, where the executables are instantiated again.
 *
 * Errors: those of gcx_graph_prepare, the driver's about the parameters, and
 *   GCX_ERROR_INVALID_VALUE  there is no such node; it is not a kernel's; the arguments are too
 *                            short */
GCX_API gcx_result gcx_graph_set_kernel(gcx_graph graph, uint32_t node,
                                        const gcx_kernel_params* params);

/* Takes over the parameters of another captured graph with the same nodes in the same order, in all
 * executables or in none. Parts stay. If only kernel parameters differ, this takes about 1 us for
 * each kernel and executable; otherwise the executables are instantiated again. The caller keeps
 * captured.
 *
 * Errors: those of gcx_graph_create, and
 *   GCX_ERROR_GRAPH_EXEC_UPDATE_FAILURE  the nodes or their order differ; the message says where */
GCX_API gcx_result gcx_graph_update(gcx_graph graph, struct CUgraph_st* captured);

typedef struct gcx_graph_info {
    uint32_t struct_size;
    int32_t device;
    uint32_t flags;        /* GCX_GRAPH_ */
    uint32_t node_count;   /* including those of child graphs */
    uint32_t kernel_count; /* of these, kernels */
    uint32_t part_count;
    uint32_t executables; /* cached now */
    uint32_t max_executables;
    uint64_t launches; /* since it was created */
    uint64_t made;     /* executables instantiated since then */
    uint64_t evicted;  /* of these, destroyed because of max_executables */
} gcx_graph_info;
#define GCX_GRAPH_INFO_INIT GCX_STRUCT_INIT(gcx_graph_info)

/* Returns the properties of a graph. */
GCX_API gcx_result gcx_graph_get_info(gcx_graph graph, gcx_graph_info* info);

/* Kinds of nodes, CUgraphNodeType. */
typedef enum gcx_graph_node_kind GCX_ENUM_OF_INT {
    GCX_GRAPH_NODE_KERNEL = 0,
    GCX_GRAPH_NODE_MEMCPY = 1,
    GCX_GRAPH_NODE_MEMSET = 2,
    GCX_GRAPH_NODE_HOST = 3,
    GCX_GRAPH_NODE_GRAPH = 4, /* a child graph */
    GCX_GRAPH_NODE_EMPTY = 5,
    GCX_GRAPH_NODE_WAIT_EVENT = 6,
    GCX_GRAPH_NODE_EVENT_RECORD = 7,
    GCX_GRAPH_NODE_SEMAPHORE_SIGNAL = 8,
    GCX_GRAPH_NODE_SEMAPHORE_WAIT = 9
} gcx_graph_node_kind;

/* Describes a node. */
typedef struct gcx_graph_node {
    gcx_graph_node_kind kind;
    uint32_t parent; /* number of the node whose child graph contains it; GCX_NO_NODE: none */
    uint32_t part;
    /* Of kernels, else 0. */
    uint32_t cooperative;   /* 1: a cooperative launch */
    uint32_t grid[3];       /* blocks */
    uint32_t block[3];      /* threads */
    uint32_t cluster[3];    /* blocks; 0 without clusters */
    uint32_t shared_bytes;  /* dynamic shared memory of a block */
    uint32_t blocks_per_sm; /* blocks that run on one SM at once. The largest grid whose blocks may
                               wait for each other is this times the partition's SMs */
    uint32_t reserved[9];   /* 0 */
    char name[256];         /* the kernel's, as compiled */
} gcx_graph_node;

/* Lists the nodes. nodes may be NULL if capacity is 0. */
GCX_API gcx_result gcx_graph_get_nodes(gcx_graph graph, gcx_graph_node* nodes, uint32_t capacity,
                                       uint32_t* count);

/* ------------------------------------------------------------------------------------------
 * Probing
 *
 * A probe is a kernel that fills a stream's SMs and records the number of each (%smid), in well
 * under a millisecond, concurrently with other work. Numbers are below GCX_MAX_SMS. Under MPS these
 * numbers are virtual, from 0 on in each context (measured with driver 580): they tell how many SMs
 * a stream has, not which.
 * ---------------------------------------------------------------------------------------- */

#define GCX_MAX_SMS 1024u

/* Returns the SMs that the stream's kernels run on, ascending. A capacity of GCX_MAX_SMS is always
 * enough. Waits for the stream. If fewer SMs than promised were seen, probes again, a few times:
 * other work can occupy them. More SMs than promised are returned as seen, with a warning in the
 * log: see gcx_device_get_shared_sms.
 *
 * Errors:
 *   GCX_ERROR_STREAM_CAPTURE_UNSUPPORTED  the stream captures a graph
 *   GCX_ERROR_NOT_READY                   other threads resized the stream's lease all the time */
GCX_API gcx_result gcx_stream_probe_sms(gcx_stream stream, uint32_t* sm_ids, uint32_t capacity,
                                        uint32_t* count);

/* Reads which SMs each atom of a family has, for gcx_resource_get_sm_ids() and for overlaps across
 * families. Creates a few temporary contexts, each at the cost of a first context: 4 for an H100's
 * coscheduled atoms, 7 for its fine ones. Does so once in a process for each family; later calls
 * return at once.
 *
 * Errors:
 *   GCX_ERROR_INVALID_VALUE  family is not coscheduled, fine or max-cluster
 *   GCX_ERROR_NOT_SUPPORTED  under MPS, where the numbers are virtual */
GCX_API gcx_result gcx_device_map_sms(int32_t device, gcx_sm_family family);

/* Finds the SMs that all partitions of this process share because a module with dynamic parallelism
 * is loaded, ascending. From then on kernels of every green context of the process also run there,
 * those created before included (compute capability 9.x; measured on an H200: 2 SMs of the
 * remainder atom, 124 and 125). Other compute capabilities have none.
 *
 * Returns what gcx_stream_probe_sms() has recognised in two disjoint partitions. If that is
 * nothing, creates two contexts of two atoms, at the cost of a first one each, caches them and
 * probes both. Once found, the SMs stay known, and later calls return at once. While none are found
 * *count is 0. Modules load lazily, so call this after a kernel of the module was launched.
 *
 * Errors:
 *   GCX_ERROR_NOT_SUPPORTED  compute capability 9.x under MPS, where the numbers are virtual */
GCX_API gcx_result gcx_device_get_shared_sms(int32_t device, uint32_t* sm_ids, uint32_t capacity,
                                             uint32_t* count);

/* What gcx_verify saw of one stream. */
typedef struct gcx_verified_stream {
    uint32_t sm_count;     /* SMs that it was promised: gcx_stream_info.sm_count */
    uint32_t seen_count;   /* SMs that its kernels ran on */
    uint32_t ok;           /* 1: no problem concerns this stream */
    uint32_t shared_lease; /* 1: it belongs to a shared lease, whose SMs others may have too */
    uint32_t reserved[4];  /* 0 */
    uint64_t seen[16];     /* those SMs: bit n % 64 of seen[n / 64] is SM n */
} gcx_verified_stream;

/* What gcx_verify found. */
typedef struct gcx_verification {
    uint32_t struct_size;
    int32_t device;
    uint32_t ok; /* 1: there is no problem */
    uint32_t problem_count;
    uint32_t virtual_sm_numbers; /* 1: under MPS, where SM numbers tell how many SMs, not which */
    uint32_t overlap_count;      /* SMs that were seen in more than one stream; 0 if virtual */
    uint64_t overlap[16];        /* those SMs, as in gcx_verified_stream.seen */
    uint64_t shared_by_all[16];  /* SMs of gcx_device_get_shared_sms() that were seen */
    char problems[4096];         /* one line for each; the last says how many did not fit */
} gcx_verification;
#define GCX_VERIFICATION_INIT GCX_STRUCT_INIT(gcx_verification)

/* Verifies which SMs streams[0 .. count - 1] run on: probes each, one after the other, as
 * gcx_stream_probe_sms() does, and compares. results[0 .. count - 1] receives what was seen of each
 * stream. results may be NULL.
 *
 * Problems are: a stream ran on more or fewer SMs than promised; two streams share SMs, unless both
 * belong to shared leases; all partitions share SMs because a module with dynamic parallelism is
 * loaded. Their texts call the streams A, B and so on. A problem is not an error: the result is
 * GCX_SUCCESS and verification->ok is 0. A simulated driver proves nothing about a GPU.
 *
 * Errors: those of gcx_stream_probe_sms, and
 *   GCX_ERROR_INVALID_VALUE  count is 0, or the streams are of different devices */
GCX_API gcx_result gcx_verify(const gcx_stream* streams, uint32_t count,
                              gcx_verified_stream* results, gcx_verification* verification);

/* Returns the numbers of the resource's SMs, ascending, as gcx_device_map_sms() found them.
 *
 * Errors:
 *   GCX_ERROR_NOT_READY              the family is not mapped
 *   GCX_ERROR_NOT_SUPPORTED          a structured group, which cannot be mapped: probe a stream of
 *                                    it
 *   GCX_ERROR_INVALID_RESOURCE_TYPE  not an SM resource */
GCX_API gcx_result gcx_resource_get_sm_ids(const gcx_resource* resource, uint32_t* sm_ids,
                                           uint32_t capacity, uint32_t* count);

/* Returns one atom of the resource as a resource. index is 0 to atom_count - 1 of
 * gcx_resource_get_info().
 *
 * Errors:
 *   GCX_ERROR_INVALID_VALUE          there is no such atom
 *   GCX_ERROR_INVALID_RESOURCE_TYPE  not an SM resource */
GCX_API gcx_result gcx_resource_get_atom(const gcx_resource* resource, uint32_t index,
                                         gcx_resource* atom);

/* ------------------------------------------------------------------------------------------
 * Driver
 * ---------------------------------------------------------------------------------------- */

/* Opens a driver library, unless it is open already. driver is
 *   NULL or ""     the open driver; else the one that GCX_DRIVER in the environment names, read as
 *                  below; else libcuda.so.1
 *   "sim:SPEC"     the simulated driver, such as "sim:h100@13.0", "sim:2xh100@12.4" or "sim:FILE"
 *                  with a recording of `gcx info --record`
 *   anything else  a path or name for dlopen
 * Calling it is optional: the first function that needs the driver opens it as with NULL. There is
 * no silent fallback: without a driver each call fails, and the next one tries again.
 *
 * Errors:
 *   GCX_ERROR_ALREADY_ACQUIRED  another driver is open, for the rest of the process */
GCX_API gcx_result gcx_driver_open(const char* driver);

typedef struct gcx_driver_info {
    uint32_t struct_size;
    int32_t version;        /* of the driver, as from cuDriverGetVersion: 13000 is CUDA 13.0 */
    int32_t header_version; /* CUDA_VERSION of the cuda.h that gcx was built with */
    int32_t simulated;      /* 1: the simulated driver */
    char library[256];      /* what was opened */
} gcx_driver_info;
#define GCX_DRIVER_INFO_INIT GCX_STRUCT_INIT(gcx_driver_info)

/* Returns the properties of the driver. */
GCX_API gcx_result gcx_driver_get_info(gcx_driver_info* info);

/* What a driver can do. Functions that need a missing capability fail with GCX_ERROR_NOT_SUPPORTED,
 * except where gcx has a substitute. */
typedef enum gcx_capability GCX_ENUM_OF_INT {
    GCX_CAPABILITY_GREEN_CONTEXTS = 0, /* 12.4: everything that is not listed here */
    /* 12.5: the driver creates streams from green contexts. Before, gcx makes the context current
     * for the call. */
    GCX_CAPABILITY_STREAM_CREATE = 1,
    GCX_CAPABILITY_CONTEXT_ID = 2, /* 13.0: cuGreenCtxGetId */
    /* 13.0: the driver reports the minimum and the alignment of an SM resource. Before, gcx derives
     * them. */
    GCX_CAPABILITY_RESOURCE_DETAILS = 3,
    GCX_CAPABILITY_STRUCTURED_SPLIT = 4, /* 13.1: coscheduled counts in gcx_sm_request, backfill */
    GCX_CAPABILITY_WORKQUEUES = 5,       /* 13.1: workqueue resources */
    /* 13.1: the driver reports a stream's resources. gcx reports those of its own streams on every
     * driver. */
    GCX_CAPABILITY_STREAM_RESOURCE = 6,
    GCX_CAPABILITY_LOCALITY_DOMAINS = 7, /* 13.4: locality domains in gcx_sm_request */
    GCX_CAPABILITY_COUNT = 8
} gcx_capability;

typedef struct gcx_capability_info {
    uint32_t struct_size;
    int32_t available;        /* 1: the open driver has it */
    int32_t required_version; /* of the driver: 13010 is CUDA 13.1 */
    const char* name;         /* such as "structured split"; lives as long as the library */
} gcx_capability_info;
#define GCX_CAPABILITY_INFO_INIT GCX_STRUCT_INIT(gcx_capability_info)

/* Reports whether the open driver has a capability.
 *
 * Errors:
 *   GCX_ERROR_INVALID_VALUE  there is no such capability */
GCX_API gcx_result gcx_capability_get_info(gcx_capability capability, gcx_capability_info* info);

/* Returns the path of the simulated driver that "sim:" opens, for programs that start others on it;
 * NULL if it is not installed, with the searched places in gcx_last_error_message(). The string
 * belongs to the thread and is valid until its next call of this. Opens no driver. */
GCX_API const char* gcx_simulator_path(void);

/* ------------------------------------------------------------------------------------------
 * Reported SM counts
 *
 * CUDA reports the device's SM count whatever partition is current, so libraries size their kernels
 * for SMs that they do not have: inside 108 of an H200's 132 SMs a prefill took 66.7 ms, and 57.8
 * ms with the right count (measured, a whole process in one partition). `gcx exec` reports the
 * partition's count. A process that uses gcx directly enables it with
 * gcx_driver_report_partition_counts():
 *   - In a thread in which a green context is current, by gcx_context_push() or otherwise,
 *     CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT of its device is that context's SM count, and
 *     cuOccupancyMaxPotentialBlockSize returns the grid for it, also by cudart's functions. Other
 *     threads see the device's count.
 *   - Libraries read the count when they set something up, and keep it: cuBLAS keeps that of the
 *     process's first handle for all handles (measured); cublasSetSmCountTarget sets it for one
 *     handle. docs/counts.md lists more.
 *   - cuBLAS versions before 13.10 still see the full device: with a partition's count 13.1 leaves
 *     parts of products unwritten (measured). cublasSetSmCountTarget works there.
 *   - Only the reported count changes, not the SMs that a stream runs on.
 * ---------------------------------------------------------------------------------------- */

/* Loads a library in front of libcuda that reports partition counts as described above, for every
 * library that opens libcuda.so.1 later, until the process ends. Call it before anything loads
 * libcuda.so.1: before gcx opens the driver, before cudart's first call, in Python before torch,
 * cupy or jax is imported. Code that opens libcuda by a path sees the device's count. Launches and
 * copies do not pass through that library. A second call does nothing. To find libcuda's path it
 * may start a short-lived child process.
 *
 * Errors:
 *   GCX_ERROR_NOT_PERMITTED              libcuda.so.1 is loaded already
 *   GCX_ERROR_FILE_NOT_FOUND             libgcx-counts.so, or the simulated driver that GCX_DRIVER
 *                                        names, is not installed
 *   GCX_ERROR_SHARED_OBJECT_INIT_FAILED  there is no driver library, or it cannot be loaded
 *   GCX_ERROR_OPERATING_SYSTEM           a file cannot be created */
GCX_API gcx_result gcx_driver_report_partition_counts(void);

/* Sets *reporting to 1 if gcx_driver_report_partition_counts() has succeeded in this process, else
 * to
 * 0. Opens no driver. */
GCX_API gcx_result gcx_driver_reports_partition_counts(int32_t* reporting);

/* ------------------------------------------------------------------------------------------
 * Version and messages
 * ---------------------------------------------------------------------------------------- */

/* Returns the version of the running library as GCX_VERSION is composed: 10000 * major + 100 *
 * minor + patch. Compare it with GCX_VERSION to detect a library older than the header. Opens no
 * driver and cannot fail. */
GCX_API uint32_t gcx_version(void);

/* Returns the name of a result, such as "GCX_ERROR_INVALID_VALUE", or "GCX_ERROR_UNRECOGNIZED" for
 * a number that this version does not know. The string lives as long as the library. Opens no
 * driver. */
GCX_API const char* gcx_result_name(gcx_result result);

/* Returns the general meaning of a result in one sentence. The string lives as long as the library.
 * Opens no driver. */
GCX_API const char* gcx_result_string(gcx_result result);

/* Returns the message of the last gcx function that failed in the calling thread: what was wrong,
 * the values, and what to do. Empty if none failed. The string belongs to the thread and is valid
 * until its next gcx function fails; success does not change it. Opens no driver. */
GCX_API const char* gcx_last_error_message(void);

/* ------------------------------------------------------------------------------------------
 * Log
 * ---------------------------------------------------------------------------------------- */

typedef enum gcx_log_level GCX_ENUM_OF_INT {
    GCX_LOG_NONE = 0,
    GCX_LOG_ERROR = 1,   /* something was lost or leaked */
    GCX_LOG_WARNING = 2, /* it works, but likely not as intended */
    GCX_LOG_INFO = 3,    /* which driver was opened, contexts created and destroyed */
    GCX_LOG_DEBUG = 4    /* every failed call and its message */
} gcx_log_level;

/* Receives one message, which is valid during the call only. Called at the end of the function that
 * logs, in its thread, so possibly in several threads at once, without any lock of gcx. It may take
 * the application's locks. It must not call gcx. */
typedef void (*gcx_log_callback)(gcx_log_level level, const char* message, void* user_data);

/* Sends log messages up to level to callback. NULL goes back to the default: messages up to the
 * level that GCX_LOG in the environment names (error, warning, info or debug) are printed to
 * standard error, none if it is not set. When the call returns, the previous callback is not
 * running and will not be called again, so call it without a lock that the previous callback takes.
 *
 * Errors:
 *   GCX_ERROR_INVALID_VALUE  level is unknown
 *   GCX_ERROR_NOT_PERMITTED  called from a log callback */
GCX_API gcx_result gcx_log_set_callback(gcx_log_level level, gcx_log_callback callback,
                                        void* user_data);

#ifdef __cplusplus
}
#endif

#endif

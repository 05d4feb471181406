/* gcx/partition.h - devices, SM resources, splits, contexts, streams and events. */
#ifndef GCX_PARTITION_H
#define GCX_PARTITION_H

#include "common.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------------------------------
 * Devices. A device is CUDA's ordinal, 0 to count - 1, after CUDA_VISIBLE_DEVICES.
 * ---------------------------------------------------------------------------------------- */

/* Returns the number of devices. */
GCX_API gcx_result gcx_device_get_count(int32_t* count);

/* Whether contexts of a process on a device are shared by way of MPS. */
typedef enum gcx_mps_state GCX_ENUM_OF_INT {
    GCX_MPS_UNKNOWN = 0, /* the driver does not report it */
    GCX_MPS_OFF = 1,
    GCX_MPS_ON = 2
} gcx_mps_state;

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
    gcx_mps_state mps; /* of contexts of this process, from CU_DEVICE_ATTRIBUTE_MPS_ENABLED, whose
                          accuracy was not measured */
    float mps_thread_percentage; /* CUDA_MPS_ACTIVE_THREAD_PERCENTAGE in the environment, greater
                                    than 0 and at most 100; 0: not set, or another value. The
                                    daemon's own default is not visible */
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
 * resources of one device and family consist of the same atoms, so gcx compares, unites and
 * subtracts them without the driver. Families differ in what the driver promises; the examples are
 * an H100's:
 *   coscheduled  The default. 15 atoms of 8 SMs and a remainder atom of 12; clusters of up to 8
 *                blocks.
 *   fine         66 atoms of 2 SMs; clusters of up to 2 blocks.
 *   max-cluster  5 atoms of 24 SMs and a remainder atom of 12; clusters of up to 16 blocks. Compute
 *                capability 9.0 and newer, 24 SMs or more.
 *   structured   [13.1+] The groups of one gcx_sm_split() whose requests set coscheduled counts,
 *                backfill or locality domains. Equal requests give equal groups. A group cannot be
 *                split further. gcx knows those splits of a device whose groups a context has and
 *                the 1,024 that were used last. Groups of another one fail with
 *                GCX_ERROR_INVALID_RESOURCE_CONFIGURATION until the split is repeated.
 *   external     [13.1+] The SMs of a stream whose green context gcx did not create: a count
 *                without atoms. Functions that need atoms fail with
 *                GCX_ERROR_INVALID_RESOURCE_CONFIGURATION.
 * docs/explanation/concepts.md explains atoms, families and rounding.
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
    GCX_SM_FAMILY_EXTERNAL = 5
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

/* Returns the properties of a resource. */
GCX_API gcx_result gcx_resource_get_info(const gcx_resource* resource, gcx_resource_info* info);

/* Writes a resource as an array of CUdevResource, for cuDevResourceGenerateDesc(): SMs as one for
 * each atom, or as a single one if the driver has them as one; a workqueue configuration as one.
 * *count receives how many there are. natives may be NULL if capacity is 0. Creates no context.
 *
 * Errors:
 *   GCX_ERROR_INVALID_RESOURCE_TYPE           the resource is a GCX_RESOURCE_WORKQUEUE
 *   GCX_ERROR_INVALID_RESOURCE_CONFIGURATION  the resource is external */
GCX_API gcx_result gcx_resource_get_native(const gcx_resource* resource,
                                           struct CUdevResource_st* natives, uint32_t capacity,
                                           uint32_t* count);

/* Returns the resource of a CUdevResource that other code in this process obtained from the driver
 * for this device: of the device, a split or a green context. SMs become a resource of the first of
 * the coscheduled, max-cluster and fine family whose atoms are exactly these SMs. Creates no
 * context.
 *
 * The SMs are read from the mask in CUdevResource, which cuda.h does not describe. It was seen on a
 * driver of CUDA 13.0. gcx checks on each driver that the atoms have such masks.
 *
 * Errors:
 *   GCX_ERROR_INVALID_DEVICE                  there is no such device
 *   GCX_ERROR_INVALID_RESOURCE_TYPE           its type is neither SM nor workqueue configuration
 *   GCX_ERROR_INVALID_RESOURCE_CONFIGURATION  no family's atoms are these SMs, or the workqueue
 *                                             configuration is of another device
 *   GCX_ERROR_NOT_SUPPORTED                   this driver has no such masks, and the SMs are not
 *                                             the whole device */
GCX_API gcx_result gcx_resource_from_native(int32_t device, const struct CUdevResource_st* native,
                                            gcx_resource* resource);

/* [13.1+] Copies a workqueue configuration with another scope and concurrency limit. A limit of 0
 * copies the limit of *config. *configured may be *config.
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
#define GCX_SPLIT_EXCLUDE_SHARED 0x400u           /* leave out gcx_device_find_shared_sms() */

/* Splits input into disjoint groups, one for each request, and a remainder. The result is the same
 * on every driver from 12.4 on.
 *
 * Rules:
 *   1. If the requests can be met in any way, the split succeeds. Among the ways, the one with the
 *      fewest SMs beyond the requests is used, then the one that meets the most counts exactly. If
 *      these are equal, the first of the requests gets the remainder atom.
 *   2. Counts are rounded up to whole atoms. On an H100 (15 atoms of 8 SMs and a remainder atom of
 *      12), 7 gives 8, 10 gives 12, 16 gives 16, 17 gives 20, 24 gives 24, 108 gives 12 atoms of 8
 *      and the one of 12, and 120 with 5 gives 120 and 12. GCX_SPLIT_EXACT fails instead.
 *   3. The remainder atom does not have the family's cluster size (on an H100 clusters of up to 2
 *      blocks, not 8; see gcx_resource_find_max_cluster_size). Request multiples of the other atoms'
 *      size to avoid it: such a group gets it only if nothing else is left. Of 16 equal groups of 8
 *      SMs the first gets it (12, 8, 8, ...).
 *   4. Equal requests of an equal input give equal groups. Which atoms a group gets is otherwise
 *      not specified.
 *   5. GCX_REST takes what the counted groups leave. Several share it as evenly as atoms allow.
 *      Each gets at least one atom.
 *   6. GCX_SPLIT_EXCLUDE_SHARED leaves out each atom with SMs of gcx_device_find_shared_sms(). It
 *      changes nothing on devices of other compute capabilities than 9.x.
 *   7. input may be a whole device, a group, a remainder, or a union of these. To select another
 *      family than input's, input must be a whole device.
 *
 * Writes the groups to groups[0 .. request_count - 1] and the rest to *remainder, which has 0 SMs
 * if nothing is left. Writes the SM counts of the groups to sm_counts[0 .. request_count - 1] and
 * that of the rest to *remainder_sm_count. Creates nothing on the device. The first split in a
 * family asks the driver for its atoms, which takes microseconds.
 *
 * groups may be NULL for a dry run, which only writes the counts: it makes the same checks, fails
 * with the same errors and stores nothing. remainder may be NULL, and must be in a dry run.
 * sm_counts may be NULL. remainder_sm_count may be NULL.
 *
 * Errors:
 *   GCX_ERROR_INVALID_RESOURCE_CONFIGURATION  the groups do not fit, a group would be empty, a
 *                                             count cannot be met exactly (GCX_SPLIT_EXACT), or the
 *                                             family is not input's
 *   GCX_ERROR_INVALID_RESOURCE_TYPE           input is not an SM resource
 *   GCX_ERROR_INVALID_VALUE                   request_count or an sm_count is 0; flags select two
 *                                             families; remainder is not NULL and groups is; a
 *                                             structured split breaks a rule of CUDA,
 *                                             for which the driver can also return
 *                                             GCX_ERROR_INVALID_RESOURCE_CONFIGURATION
 *   GCX_ERROR_SHARED_SMS_UNKNOWN              with GCX_SPLIT_EXCLUDE_SHARED: the shared SMs are not
 *                                             known. Call gcx_device_find_shared_sms() after the
 *                                             module is loaded
 *   GCX_ERROR_SMS_NOT_MAPPED                  with GCX_SPLIT_EXCLUDE_SHARED: the atoms of the
 *                                             shared SMs are not known. Call gcx_device_map_sms()
 *   GCX_ERROR_NOT_SUPPORTED                   the driver has no structured splits (13.1) or
 *                                             locality domains (13.4), or the device has no
 *                                             clusters or too few SMs (a small MIG slice) for
 *                                             the family */
GCX_API gcx_result gcx_sm_split(const gcx_resource* input, const gcx_sm_request* requests,
                                uint32_t request_count, uint32_t flags, gcx_resource* groups,
                                gcx_resource* remainder, uint32_t* sm_counts,
                                uint32_t* remainder_sm_count);

/* Compute the union and the difference (SMs of a that are not in b) of two SM resources. For their
 * intersection, subtract that difference from a. *result may be *a or *b. An empty result is a
 * resource of 0 SMs.
 *
 * Errors:
 *   GCX_ERROR_INVALID_RESOURCE_TYPE           one is not an SM resource
 *   GCX_ERROR_INVALID_RESOURCE_CONFIGURATION  they are of different devices or families */
GCX_API gcx_result gcx_resource_union(const gcx_resource* a, const gcx_resource* b,
                                      gcx_resource* result);
GCX_API gcx_result gcx_resource_subtract(const gcx_resource* a, const gcx_resource* b,
                                         gcx_resource* result);

/* Counts the SMs that a and b have in common: 0 for two devices.
 *
 * Errors:
 *   GCX_ERROR_SMS_NOT_MAPPED         they are of different families: call gcx_device_map_sms() for
 *                                    both first
 *   GCX_ERROR_NOT_SUPPORTED          they are of different families, and one is a structured split,
 *                                    which cannot be mapped
 *   GCX_ERROR_INVALID_RESOURCE_TYPE  one is not an SM resource */
GCX_API gcx_result gcx_resource_get_overlap(const gcx_resource* a, const gcx_resource* b,
                                            uint32_t* sm_count);

/* Finds the most blocks that a thread block cluster can have on these SMs, including more than the
 * portable 8 (CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED), for blocks of 1024 threads
 * without shared memory. Returns 1 on devices without clusters, before compute capability 9.0. The
 * size depends on how the SMs were split, not on their number. For the limit of one kernel in a
 * stream, use gcx_stream_get_kernel_fit(). On a device with clusters the first call creates a
 * context of these SMs, at its usual cost, and caches it.
 *
 * Errors: those of gcx_context_create, and
 *   GCX_ERROR_INVALID_RESOURCE_CONFIGURATION  the resource has 0 SMs */
GCX_API gcx_result gcx_resource_find_max_cluster_size(const gcx_resource* resource,
                                                      uint32_t* blocks);

/* ------------------------------------------------------------------------------------------
 * Contexts
 *
 * A context is a green context: SMs and, [13.1+], a workqueue configuration. Creating one takes the
 * driver 1 to 3 ms and waits for all kernels that run on the device; destroying it leaks 4 MiB of
 * device memory. So gcx caches one green context for each set of resources, and handles for equal
 * resources share it: synchronizing or recording one covers the work of all.
 *
 * Contexts, events and graphs retain the device's primary context. If other code resets the device
 * (cuDevicePrimaryCtxReset, cudaDeviceReset), its green contexts die. Live handles of contexts,
 * streams, events, leases and graphs then fail with GCX_ERROR_CONTEXT_IS_DESTROYED, the functions
 * that destroy and release them succeed, and resources stay valid.
 * ---------------------------------------------------------------------------------------- */

typedef struct gcx_context_s* gcx_context;
typedef struct gcx_stream_s* gcx_stream;
typedef struct gcx_event_s* gcx_event;

/* Uses a green context that no other handle shares. So synchronizing it waits for no other work, no
 * other stream's graph capture prevents it, and [13.1+] it has queues of its own, which contexts of
 * equal resources with a workqueue configuration otherwise share. Once released it is cached like
 * others. */
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
 *                                             families, or have 0 SMs; [13.1+] the remainder atom
 *                                             is combined with atoms that do not run up to the
 *                                             last: CUDA allows no such set
 *   GCX_ERROR_INVALID_RESOURCE_TYPE           there is no SM resource, or there are two workqueues
 *   GCX_ERROR_INVALID_VALUE                   resource_count is 0
 *   GCX_ERROR_CONTEXT_IS_DESTROYED            the device was reset during the call; [13.1+] no green
 *                                             context has the workqueue any more */
GCX_API gcx_result gcx_context_create(const gcx_resource* resources, uint32_t resource_count,
                                      const gcx_context_params* params, gcx_context* context);

/* Destroys the handle. Streams of the context stay usable and keep it alive, and work in flight
 * finishes. The green context is cached within gcx_cache_set_limit().
 *
 * Errors:
 *   GCX_ERROR_CONTEXT_ALREADY_IN_USE  the handle is current in the calling thread by
 *                                     gcx_context_push(); or its green context is current, this is
 *                                     the last handle and the cache is full: pop it first */
GCX_API gcx_result gcx_context_destroy(gcx_context context);

typedef struct gcx_context_info {
    uint32_t struct_size;
    int32_t device;
    uint32_t sm_count;
    uint32_t stream_count; /* live gcx streams of the green context, also of its other handles */
    uint64_t id;           /* equal for two handles if and only if they share a green context;
                              never reused in a process. Not the number of cuGreenCtxGetId */
    uint64_t native_id;    /* the driver's id of the CUcontext, from cuCtxGetId, to compare with the
                              context ids of CUPTI and profilers (the same on CUDA 13.0) */
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
    uint32_t reserved;     /* 0 */
    uint64_t native_id;    /* as in gcx_context_info */
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

/* Push the context on the calling thread's CUDA context stack, which makes it current, and pop it.
 * A pushed context stays alive until it is popped or the thread ends, which pops all that the
 * thread pushed. *context, if not NULL, receives the handle that was pushed.
 *
 * In a green context the driver orders nothing between the legacy default stream and other streams,
 * and refuses the per-thread default stream (measured, driver 580): order work by events. A stream
 * that other code creates while the context is current dies with the green context, so keep the
 * handle as long as that code uses the stream.
 *
 * While it is pushed, other code can make another context current: cudaSetDevice sets one in its
 * place, as torch.cuda.set_device and the initialization of NCCL do, and some libraries push one and
 * leave it. gcx_context_pop removes all of them, so that the stack is as it was before the push.
 *
 * Errors of gcx_context_pop:
 *   GCX_ERROR_INVALID_CONTEXT  this thread pushed nothing */
GCX_API gcx_result gcx_context_push(gcx_context context);
GCX_API gcx_result gcx_context_pop(gcx_context* context);

/* Returns the handle that the calling thread pushed last, if its context is current, else NULL with
 * GCX_SUCCESS. The caller does not own it. */
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
    gcx_stream_sync sync; /* has to be GCX_STREAM_NON_BLOCKING */
    int32_t priority; /* lower is more urgent; clamped to gcx_device_get_stream_priority_range */
} gcx_stream_params;
#define GCX_STREAM_PARAMS_INIT GCX_STRUCT_INIT(gcx_stream_params)

/* Creates a stream of the context. No other handle uses the same CUstream. params may be NULL, for
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

/* Destroys the handle. Never waits; work in the stream finishes. The green context caches up to 32
 * such streams, of about 0.02 MiB each, for reuse until it is destroyed (gcx_cache_set_limit). So
 * state that a library has stored for the stream stays valid. PyTorch ends the process if the
 * stream of its pinned memory no longer exists.
 *
 * Special cases:
 *   - A stream whose attributes were changed (cuStreamSetAttribute) is not reused.
 *   - A stream that captures a graph continues, and is cached until the capture ends. If 32 such
 *     streams are cached already, the capture ends.
 *   - If other code destroyed the CUstream, which is not allowed, only the handle is destroyed. */
GCX_API gcx_result gcx_stream_destroy(gcx_stream stream);

/* Returns the CUstream, which is also a cudaStream_t, or NULL on failure, with the reason in
 * gcx_last_error_message(). It is valid until the handle is destroyed; after that it can belong to
 * another handle, so submit nothing to it. Never destroy it.
 *
 * A lease's stream has another CUstream after a resize. Call this for each step, and give libraries
 * the result again (cublasSetStream): work submitted to an earlier CUstream runs on the SMs that the
 * lease had then, which another lease may have now. */
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
 * resource of GCX_SM_FAMILY_EXTERNAL.
 *
 * Errors: those of gcx_context_get_resource, and for a context that gcx did not create
 *   GCX_ERROR_NOT_SUPPORTED  a part of the device on a driver before 13.1; gcx_stream_get_info()
 *                            has its SM count
 *   GCX_ERROR_NOT_FOUND      a workqueue */
GCX_API gcx_result gcx_stream_get_resource(gcx_stream stream, gcx_resource_type type,
                                           gcx_resource* resource);

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

/* Creates an event on a device.
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

/* Record the work submitted so far to the stream, or to all streams of the context, in the event.
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
 * GCX_ERROR_CANCELLED, even if SMs are free. When gcx_cancel_signal returns, each waiting call
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
 * first; then the prepared contexts that are in use or were used most recently stay.
 *
 * Errors: the driver's, if it refuses to destroy something, and
 *   GCX_ERROR_CONTEXT_ALREADY_IN_USE  a context to destroy is current in the calling thread. The
 *                                     limit is set; the context is destroyed later */
GCX_API gcx_result gcx_cache_set_limit(uint32_t max_contexts);

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
 *   GCX_ERROR_CANCELLED              gcx_cancel_signal() was called; this is checked before each
 *                                    resource
 *   GCX_ERROR_CACHE_LIMIT_EXCEEDED   a device would have more prepared contexts than its limit
 *                                    (gcx_cache_set_limit), including those in use; nothing was
 *                                    created
 *   GCX_ERROR_INVALID_VALUE          count is 0
 *   GCX_ERROR_INVALID_RESOURCE_TYPE  one is not an SM resource, or, with GCX_PREPARE_FOR_LEASES, is
 *                                    a structured group, which leases cannot have */
GCX_API gcx_result gcx_cache_prepare(const gcx_resource* resources, uint32_t count,
                                     const gcx_prepare_params* params);

/* The result of gcx_cache_trim. */
typedef struct gcx_cache_trimmed {
    uint32_t struct_size;
    uint32_t contexts;      /* destroyed */
    uint32_t streams;       /* idle streams destroyed, with their contexts or alone */
    uint32_t contexts_left; /* more than max_contexts: a stream captures in them */
    uint32_t streams_left;  /* without a handle, not destroyed: they work or capture */
    uint64_t bytes; /* by which free device memory grew, all devices together, including changes by
                       other code during the call; at least 0 */
} gcx_cache_trimmed;
#define GCX_CACHE_TRIMMED_INIT GCX_STRUCT_INIT(gcx_cache_trimmed)

/* Destroys cached contexts, prepared or not, least recently used first, until max_contexts are left
 * on all devices together. Destroys the idle streams without handles of all contexts. The limit
 * does not change.
 * Never call it while a library can still name a stream whose handle was destroyed, as PyTorch's
 * allocator does (gcx_stream_destroy). *trimmed, if not NULL, receives the result.
 *
 * Errors: the driver's, if it refuses to destroy something. The rest was trimmed then, and the
 * message has the numbers. */
GCX_API gcx_result gcx_cache_trim(uint32_t max_contexts, gcx_cache_trimmed* trimmed);

typedef struct gcx_cache_stats {
    uint32_t struct_size;
    uint32_t limit;               /* for each device */
    uint32_t in_use;              /* green contexts with a handle or stream */
    uint32_t cached;              /* green contexts without either */
    uint64_t hits;                /* requests met by a context that existed */
    uint64_t misses;              /* green contexts created */
    uint64_t evicted;             /* destroyed by the limit and by gcx_cache_trim */
    uint64_t lost;                /* destroyed by a reset of the device */
    uint64_t prepared;            /* of those created, by a prepare function */
    uint64_t creation_ns;         /* nanoseconds in the driver creating them, in total */
    uint64_t longest_creation_ns; /* nanoseconds for the slowest one */
    uint32_t cached_streams;      /* streams without a handle, cached for reuse */
} gcx_cache_stats;
#define GCX_CACHE_STATS_INIT GCX_STRUCT_INIT(gcx_cache_stats)

/* Returns the statistics of the cache since the driver was opened. */
GCX_API gcx_result gcx_cache_get_stats(gcx_cache_stats* stats);

#ifdef __cplusplus
}
#endif

#endif

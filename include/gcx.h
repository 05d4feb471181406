/*
 * gcx.h - SM partitioning for NVIDIA GPUs
 *
 * gcx divides the streaming multiprocessors (SMs) of a GPU into partitions and hands out
 * streams whose kernels run on one partition's SMs alone, by way of CUDA's green contexts.
 * This header is the whole contract and the manual, in the order of use: a device's resource
 * (gcx_device_get_resource) is split (gcx_sm_split), a context is made of a part
 * (gcx_context_create), a stream of the context (gcx_stream_create), and any CUDA code takes the
 * stream (gcx_stream_native). The driver, messages and diagnostics come last; the numbers of
 * errors are in gcx_result.h.
 *
 * The rules below hold for every function unless it says otherwise.
 *
 * Results. A gcx_result has the number and the name of a CUresult and can be cast to one. What
 *   the driver answered passes through unchanged. After a failure no output parameter was written
 *   and nothing was made, and gcx_last_error_message() says what was wrong, the values, and what
 *   would work. Besides those listed at a function, each may return
 *     GCX_ERROR_INVALID_VALUE    a pointer that must not be NULL is; struct_size is none
 *                                that this version knows; a reserved field isn't 0
 *     GCX_ERROR_INVALID_HANDLE   a handle is NULL, was destroyed, is of another type or
 *                                was never given out
 *     GCX_ERROR_NOT_INITIALIZED  this process is the child of a fork() and CUDA had started in its
 *                                parent: it can't be used here. Start it with exec
 *     GCX_ERROR_OUT_OF_MEMORY    memory is exhausted, of the host or of the device
 *     GCX_ERROR_UNKNOWN          a defect of gcx, its message says where
 *   and what opening the driver can return, since the first call opens it:
 *     GCX_ERROR_SHARED_OBJECT_INIT_FAILED  there is no driver library, or it can't be loaded
 *     GCX_ERROR_FILE_NOT_FOUND             the simulated driver was asked for and isn't there
 *     GCX_ERROR_NOT_SUPPORTED              the driver is older than CUDA 12.4 and has no green
 *                                          contexts
 *     GCX_ERROR_NO_DEVICE                  the driver has no device
 *
 * Threads. Any function may be called from any thread at any time, also on the same object. No
 *   function but gcx_context_push and gcx_context_pop changes the calling thread's current CUDA
 *   context.
 *
 * Graph captures. No function breaks a capture, in the same thread or another, though CUDA forbids
 *   querying and synchronizing meanwhile. What takes part in one can't be asked or waited for: a
 *   stream, and a context with such a stream of gcx, answer
 *   GCX_ERROR_STREAM_CAPTURE_UNSUPPORTED; an event that gcx recorded in such a stream
 *   GCX_ERROR_CAPTURED_EVENT. In a capturing stream itself the rules are CUDA's: it breaks its
 *   capture by waiting for an event that was recorded outside (GCX_ERROR_STREAM_CAPTURE_ISOLATION).
 *
 * Handles (gcx_context, gcx_stream, gcx_event) name objects; they aren't addresses. A stale or
 *   forged one is an error, never a crash. Each handle that a function gives out is owned by the
 *   caller and is destroyed once. Objects are counted: a stream keeps its context, and destroying
 *   a handle never stops work that was submitted. While the process exits and the driver has ended,
 *   the destroy functions succeed, for what was left ended with it; so destructors of static
 *   objects may call them.
 *
 * Values (gcx_resource) only describe. They are copied and thrown away freely and need no destroy.
 *
 * Structs that begin with struct_size are filled in by the caller with sizeof, so that later
 *   versions can add fields at the end: the _INIT macros do it.
 *
 * Sources. What is said here of the driver was measured on an NVIDIA H100 and an H200 with driver
 *   580.159.04 (CUDA 13.0), see docs/measurements.md. What concerns drivers of CUDA 13.1 and newer
 *   follows the text of cuda.h and was tested on the simulated driver alone; it is marked [13.1+].
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

/* The start of a struct that grows: all zero but its size. */
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

/* How many devices there are. Errors: those of opening. */
GCX_API gcx_result gcx_device_get_count(int32_t* count);

typedef struct gcx_device_info {
    uint32_t struct_size;
    int32_t compute_capability_major;
    int32_t compute_capability_minor;
    uint32_t sm_count;
    uint32_t min_partition_size;    /* SMs: the least that a coscheduled partition has */
    uint32_t coscheduled_alignment; /* SMs: coscheduled partitions come in multiples of this */
    uint32_t locality_domain_count; /* 1 where the driver doesn't tell */
    char name[128];                 /* begins with "SIMULATED" on the simulated driver */
    uint8_t uuid[16];
} gcx_device_info;
#define GCX_DEVICE_INFO_INIT GCX_STRUCT_INIT(gcx_device_info)

/* Fills *info. Makes no context on the device.
 * Errors: GCX_ERROR_INVALID_DEVICE no such device. */
GCX_API gcx_result gcx_device_get_info(int32_t device, gcx_device_info* info);

/* The priorities that the device's streams can have. Lower numbers are more urgent, so that
 * *greatest is the lowest: 0 and -5 on an H100. Holds the primary context while it asks, which is
 * once a process.
 * Errors: GCX_ERROR_INVALID_DEVICE no such device. */
GCX_API gcx_result gcx_device_get_stream_priority_range(int32_t device, int32_t* least,
                                                        int32_t* greatest);

/* ------------------------------------------------------------------------------------------
 * Resources
 *
 * An SM resource is a set of atoms: the smallest groups into which the driver splits the
 * device. All resources of a device and family are made of the same atoms, whatever calls they
 * came from, so that it is known whether two of them overlap, and sets can be joined and taken
 * apart without the driver. The families differ in what the driver promises:
 *   coscheduled  the default. An H100's atoms are 15 groups of 8 SMs and one odd group of 12.
 *                Kernels with thread block clusters of up to 8 run on any of those of 8
 *   fine         66 atoms of 2 SMs on an H100, any even count; clusters of up to 2
 *   max-cluster  compute capability 9.0 and newer, 24 SMs or more. Groups that the driver picks
 *                for large clusters: on an H200 5 of 24 SMs and an odd one of 12, clusters of
 *                up to 16
 *   structured   [13.1+] the groups of one gcx_sm_split with coscheduled counts, backfill or
 *                locality domains in its requests; two calls with the same requests give the same
 *                groups. They can't be split further. Their resources carry the requests, so that
 *                gcx keeps nothing for them: of one not used lately the driver is asked again.
 *                Requests for a score and more of unlike groups, for which a resource has no room,
 *                are remembered for good, some hundred bytes for each different split
 *   foreign      [13.1+] what gcx_stream_get_resource tells of a stream whose green context gcx did
 *                not make: counts, with no atoms. It can be asked by gcx_resource_get_info; what
 *                needs the atoms refuses it with GCX_ERROR_INVALID_RESOURCE_CONFIGURATION
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

/* A description of resources of one device: a value that is copied and thrown away at will. Two
 * equal ones are equal byte for byte. It is valid in the process that made it. What isn't one, or
 * was changed, is refused with GCX_ERROR_INVALID_RESOURCE_TYPE (all zero) or
 * GCX_ERROR_INVALID_RESOURCE_CONFIGURATION; any function that takes a resource can return these. */
typedef struct gcx_resource {
    uint64_t opaque[16];
} gcx_resource;

/* The whole device's resource of one type. Makes no context. GCX_RESOURCE_SM gives all SMs, as
 * coscheduled; gcx_sm_split can split it in any family. GCX_RESOURCE_WORKQUEUE_CONFIG [13.1+] gives
 * the device's default, to be changed by gcx_workqueue_configure.
 * Errors: GCX_ERROR_INVALID_DEVICE no such device; GCX_ERROR_INVALID_RESOURCE_TYPE no such type, or
 * GCX_RESOURCE_WORKQUEUE, which only a context has; GCX_ERROR_NOT_SUPPORTED workqueues on a driver
 * before 13.1. */
GCX_API gcx_result gcx_device_get_resource(int32_t device, gcx_resource_type type,
                                           gcx_resource* resource);

typedef enum gcx_workqueue_scope GCX_ENUM_OF_INT {
    GCX_WORKQUEUE_SCOPE_DEVICE_CTX = 0,        /* share the device's workqueues with all contexts */
    GCX_WORKQUEUE_SCOPE_GREEN_CTX_BALANCED = 1 /* where possible, share none with other contexts
                                                  that are balanced */
} gcx_workqueue_scope;

typedef struct gcx_resource_info {
    uint32_t struct_size;
    gcx_resource_type type;
    int32_t device;
    /* of GCX_RESOURCE_SM, else 0 */
    gcx_sm_family family;
    uint32_t sm_count;
    uint32_t atom_count;
    uint32_t min_partition_size;    /* SMs: the least that splitting this can give; all of it, where
                                       it can't be split; 0 only of a resource of 0 SMs */
    uint32_t coscheduled_alignment; /* SMs, never 0: the step of the sizes that splitting this can
                                       give, the odd atom aside, unless that is all there is */
    uint32_t flags;                 /* of one structured group: its GCX_SM_REQUEST_ flags */
    uint32_t locality_domain_id;    /* valid with GCX_SM_REQUEST_LOCALITY_DOMAIN_ID in flags */
    /* of GCX_RESOURCE_WORKQUEUE_CONFIG, else 0 */
    gcx_workqueue_scope workqueue_scope;
    uint32_t workqueue_concurrency_limit; /* concurrent stream-ordered workloads expected */
} gcx_resource_info;
#define GCX_RESOURCE_INFO_INIT GCX_STRUCT_INIT(gcx_resource_info)

/* Fills *info from the value, without the driver but for a structured group that wasn't used
 * lately. */
GCX_API gcx_result gcx_resource_get_info(const gcx_resource* resource, gcx_resource_info* info);

/* [13.1+] Gives in *configured the workqueue configuration *config with another scope and
 * concurrency limit (0: keep the one it has). May be the same variable.
 * Errors: GCX_ERROR_INVALID_RESOURCE_TYPE *config isn't a workqueue configuration;
 * GCX_ERROR_INVALID_VALUE no such scope. */
GCX_API gcx_result gcx_workqueue_configure(const gcx_resource* config, gcx_workqueue_scope scope,
                                           uint32_t concurrency_limit, gcx_resource* configured);

/* ------------------------------------------------------------------------------------------
 * Splitting
 * ---------------------------------------------------------------------------------------- */

/* As a count of SMs: all that are available. A count of 0 is refused. */
#define GCX_REST 0xffffffffu

/* Flags of one group, CUdevSmResourceGroup_flags. */
#define GCX_SM_REQUEST_BACKFILL 0x1u                         /* [13.1+] */
#define GCX_SM_REQUEST_LOCALITY_DOMAIN_ID 0x2u               /* [13.4+] */
#define GCX_SM_REQUEST_LOCALITY_DOMAIN_SUPPLEMENTAL_SMS 0x4u /* [13.4+] */
#define GCX_LOCALITY_DOMAIN_ID_ANY 0xffffffffu

/* What one group is to be: CU_DEV_SM_RESOURCE_GROUP_PARAMS. Zero whatever isn't set. sm_count
 * alone works on every driver; any other field makes the whole split a structured one [13.1+],
 * with CUDA's own rules for it, which round nothing. */
typedef struct gcx_sm_request {
    uint32_t sm_count;                       /* SMs, or GCX_REST: what the other groups leave */
    uint32_t coscheduled_sm_count;           /* [13.1+] SMs that are coscheduled; 0: the default */
    uint32_t preferred_coscheduled_sm_count; /* [13.1+] SMs; where possible */
    uint32_t flags;                          /* GCX_SM_REQUEST_ */
    uint32_t locality_domain_id;             /* [13.4+] with GCX_SM_REQUEST_LOCALITY_DOMAIN_ID */
    uint32_t reserved[11];                   /* 0 */
} gcx_sm_request;

/* Flags of a split. The first two are CUdevSmResourceSplitByCount_flags and choose the family. */
#define GCX_SPLIT_DEFAULT 0x0u                    /* the family of the input */
#define GCX_SPLIT_IGNORE_SM_COSCHEDULING 0x1u     /* fine */
#define GCX_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE 0x2u /* max-cluster */
#define GCX_SPLIT_EXACT 0x100u                    /* refuse a count that would be rounded */
#define GCX_SPLIT_EXCLUDE_LEASED 0x200u           /* of input only what no lease has, see Leases */
#define GCX_SPLIT_EXCLUDE_SHARED 0x400u           /* no SMs of gcx_device_get_shared_sms */

/* Divides input into one group for each request, disjoint, and what is left over. The same on every
 * driver from 12.4 on:
 *   - The rule: what can be given is given, whatever the order of the requests, with the fewest SMs
 *     beyond what was asked, then with the most counts met exactly, then by the order of the
 *     requests.
 *   - So counts are rounded up to whole atoms. On an H100, whose atoms are 15 of 8 and an odd one
 * of 12, 7 gives 8, 16 and 24 are given as they are, and 108 is 12 atoms of 8 and the one of 12.
 *     Where the odd atom is nearer it is taken: 10 gives 12, 17 gives 20, 120 and 5 give 120 and
 *     12. GCX_SPLIT_EXACT refuses whatever would not give each count asked.
 *   - The odd atom by itself lacks what the family promises: an H100's allows clusters of up to 2,
 *     not 8, see gcx_resource_get_max_cluster_size. Who needs clusters asks for multiples of the
 *     other atoms' size, which get it only where nothing else is left: of 16 equal groups of 8 the
 *     first has it (12, 8, 8, ...).
 *   - Groups are filled in the order of the requests from the first atoms on, so that a larger
 *     first group contains the smaller one of another split: growing moves nothing. A group with
 *     the odd atom takes its others from the last ones on instead: 108 is not 104 and some more.
 *   - GCX_REST takes what the counted groups leave; several share it as evenly as atoms allow, by
 *     their order, the last with the odd atom. A group has one atom at least.
 *   - GCX_SPLIT_EXCLUDE_SHARED takes nothing from an atom that holds SMs which all partitions of
 *     the process share, see gcx_device_get_shared_sms. It changes nothing on devices that share
 *     none, those of other compute capabilities than 9.x.
 *   - input may be a whole device, a group, a remainder, or any union: splits of splits need no
 *     context in between. Where GCX_SPLIT_ flags name another family than input's, input must be
 *     a whole device.
 * Writes the groups to groups[0 .. request_count - 1] and what is left to *remainder, an
 * SM resource of 0 SMs if nothing is. remainder may be NULL. Nothing is made on the device; the
 * first split in a family asks the driver for its atoms (microseconds), later ones ask nothing.
 * Errors:
 *   GCX_ERROR_INVALID_RESOURCE_CONFIGURATION  the groups don't fit, or a group would be empty; with
 *       GCX_SPLIT_EXACT a count can't be met; another family than input's
 *   GCX_ERROR_INVALID_RESOURCE_TYPE           input isn't an SM resource
 *   GCX_ERROR_INVALID_VALUE                   request_count or a request's sm_count is 0; unknown
 *       flags; both families at once; a structured split that breaks one of CUDA's rules, for which
 *       the driver may answer GCX_ERROR_INVALID_RESOURCE_CONFIGURATION too
 *   GCX_ERROR_NOT_READY                       with GCX_SPLIT_EXCLUDE_SHARED: the shared SMs aren't
 *       known, call gcx_device_get_shared_sms after the module is loaded; or which atom holds them
 *       isn't, call gcx_device_map_sms
 *   GCX_ERROR_NOT_SUPPORTED                   the driver lacks structured splits (13.1) or locality
 *       domains (13.4); the device has no clusters for the max-cluster family, or too few SMs (a
 *       small MIG slice) */
GCX_API gcx_result gcx_sm_split(const gcx_resource* input, const gcx_sm_request* requests,
                                uint32_t request_count, uint32_t flags, gcx_resource* groups,
                                gcx_resource* remainder);

/* What gcx_sm_split would give, in SMs, without making or keeping anything: the count of each group
 * in sm_counts[0 .. request_count - 1] and that of the remainder. Either may be NULL. A plan and a
 * split can't differ: they are one computation. Errors: those of gcx_sm_split. */
GCX_API gcx_result gcx_sm_plan(const gcx_resource* input, const gcx_sm_request* requests,
                               uint32_t request_count, uint32_t flags, uint32_t* sm_counts,
                               uint32_t* remainder_sm_count);

/* The SMs of a and b together, in *result; those of a without those of b; those of both. *result
 * may be a or b. An empty result is a resource of 0 SMs.
 * Errors: GCX_ERROR_INVALID_RESOURCE_TYPE one isn't an SM resource;
 * GCX_ERROR_INVALID_RESOURCE_CONFIGURATION they are of two devices or families. */
GCX_API gcx_result gcx_resource_union(const gcx_resource* a, const gcx_resource* b,
                                      gcx_resource* result);
GCX_API gcx_result gcx_resource_subtract(const gcx_resource* a, const gcx_resource* b,
                                         gcx_resource* result);
GCX_API gcx_result gcx_resource_intersect(const gcx_resource* a, const gcx_resource* b,
                                          gcx_resource* result);

/* How many of the resource's SMs are held by live contexts, those that gcx_context_list tells, of
 * gcx in this process. Beside contexts of other families it is known once gcx_device_map_sms has
 * read which SMs the atoms hold.
 * Errors: GCX_ERROR_NOT_READY it isn't known yet; GCX_ERROR_NOT_SUPPORTED one of two families is
 * the structured one, which can't be mapped; GCX_ERROR_INVALID_RESOURCE_TYPE not an SM resource. */
GCX_API gcx_result gcx_resource_get_live_overlap(const gcx_resource* resource, uint32_t* sm_count);

/* How many SMs a and b share: 0 for two devices. Within a family this is always known. Across
 * families it is known once gcx_device_map_sms has read which SMs the atoms hold.
 * Errors: GCX_ERROR_NOT_READY it isn't known yet; GCX_ERROR_NOT_SUPPORTED one is of a structured
 * split, which can't be mapped; GCX_ERROR_INVALID_RESOURCE_TYPE one isn't an SM resource. */
GCX_API gcx_result gcx_resource_get_overlap(const gcx_resource* a, const gcx_resource* b,
                                            uint32_t* sm_count);

/* The same as gcx_stream_get_max_cluster_size of a stream with these SMs. On a device with clusters
 * the first call makes a context of them, with the cost of one, and keeps it (below).
 * Errors: those of gcx_context_create; GCX_ERROR_INVALID_RESOURCE_CONFIGURATION it has 0 SMs. */
GCX_API gcx_result gcx_resource_get_max_cluster_size(const gcx_resource* resource,
                                                     uint32_t* blocks);

/* ------------------------------------------------------------------------------------------
 * Contexts
 *
 * A context is a green context: SMs, and [13.1+] a workqueue configuration. gcx makes one green
 * context for each set of resources, once, and keeps it: making one takes the driver 1 to 3 ms,
 * waits for every kernel that runs on the device and loses 4 MiB of device memory for good when
 * it is destroyed. A context for resources that had one before takes microseconds, waits
 * for nothing and loses nothing. So two handles for equal resources stand for one green context,
 * and synchronizing or recording one covers the work of both, unless GCX_CONTEXT_PRIVATE. The first
 * context on a device retains its primary context, which gcx keeps.
 * ---------------------------------------------------------------------------------------- */

typedef struct gcx_context_s* gcx_context;
typedef struct gcx_stream_s* gcx_stream;
typedef struct gcx_event_s* gcx_event;

/* A green context of one's own: nobody else is given it while a handle or stream of it is alive,
 * but by gcx_context_from_native. So nobody else's streams are synchronized or recorded with it,
 * and none of theirs, capturing a graph, stands in the way. Given up, it is kept like others. */
#define GCX_CONTEXT_PRIVATE 0x1u

typedef struct gcx_context_params {
    uint32_t struct_size;
    uint32_t flags; /* GCX_CONTEXT_ */
} gcx_context_params;
#define GCX_CONTEXT_PARAMS_INIT GCX_STRUCT_INIT(gcx_context_params)

/* A context over resource_count resources: one or several SM resources of one device and family,
 * disjoint, and [13.1+] at most one GCX_RESOURCE_WORKQUEUE_CONFIG or GCX_RESOURCE_WORKQUEUE.
 * params may be NULL. The new handle is the caller's, to be given to gcx_context_destroy.
 * Errors:
 *   GCX_ERROR_INVALID_RESOURCE_CONFIGURATION  the resources overlap, or one is given twice, or
 *       they are of two devices or families, or hold no SMs
 *   GCX_ERROR_INVALID_RESOURCE_TYPE           there is no SM resource, or are two workqueues
 *   GCX_ERROR_INVALID_VALUE                   resource_count is 0; unknown flags
 *   GCX_ERROR_CONTEXT_IS_DESTROYED            [13.1+] the GCX_RESOURCE_WORKQUEUE is gone: no green
 *       context has it any more
 *   GCX_ERROR_NOT_SUPPORTED                   [13.1+] the odd atom together with atoms that don't
 *       run up to the last: CUDA allows no such descriptor there */
GCX_API gcx_result gcx_context_create(const gcx_resource* resources, uint32_t resource_count,
                                      const gcx_context_params* params, gcx_context* context);

/* Gives the handle up. Streams of the context stay usable and keep it, and work in flight finishes.
 * The green context is kept for the next that asks for the same resources, within
 * gcx_cache_set_limit.
 * Errors: GCX_ERROR_CONTEXT_ALREADY_IN_USE the handle is current in the calling thread by
 * gcx_context_push, or its green context is current and this is its last handle: pop it first. */
GCX_API gcx_result gcx_context_destroy(gcx_context context);

typedef struct gcx_context_info {
    uint32_t struct_size;
    int32_t device;
    uint32_t sm_count;
    uint32_t stream_count; /* live gcx streams of the green context, those of other handles too */
    uint64_t id;           /* the same for two handles exactly if they share a green context; never
                              used twice in a process. gcx's own, not cuGreenCtxGetId's */
} gcx_context_info;
#define GCX_CONTEXT_INFO_INIT GCX_STRUCT_INIT(gcx_context_info)

/* Fills *info. Errors: GCX_ERROR_CONTEXT_IS_DESTROYED (below). */
GCX_API gcx_result gcx_context_get_info(gcx_context context, gcx_context_info* info);

/* A green context that is in use. Grows at the end of reserved, never in size. */
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

/* The green contexts of a device, or of all (-1), that have a handle or a stream, that a thread
 * has current by gcx_context_push, or that a lease or a gcx_graph keeps: in
 * contexts[0 .. *count - 1], in the order in which they were made. Not the kept ones. capacity is
 * the room in contexts, which may be NULL if that is 0. Errors: GCX_ERROR_INVALID_DEVICE no such
 * device; GCX_ERROR_INVALID_VALUE capacity is too small: *count then holds what is needed. */
GCX_API gcx_result gcx_context_list(int32_t device, gcx_live_context* contexts, uint32_t capacity,
                                    uint32_t* count);

/* The context's resource of one type: the SMs it was made of as one resource; [13.1+] its
 * workqueue configuration, or its workqueue, to be shared with another context. Contexts with the
 * same workqueue give equal resources. It can be used as long as one of them exists, alive or kept.
 * Errors: GCX_ERROR_INVALID_RESOURCE_TYPE no such type; GCX_ERROR_NOT_SUPPORTED workqueues on a
 * driver before 13.1. */
GCX_API gcx_result gcx_context_get_resource(gcx_context context, gcx_resource_type type,
                                            gcx_resource* resource);

/* The native handles, for any CUDA code; NULL on failure, with the reason in
 * gcx_last_error_message(). They stay gcx's: never destroy them. They are valid as long as the
 * handle or a stream of it is alive. cuCtxFromGreenCtx's context, and the green context itself. */
GCX_API struct CUctx_st* gcx_context_native(gcx_context context);
GCX_API struct CUgreenCtx_st* gcx_context_native_green(gcx_context context);

/* A further handle for the context that gcx made behind a native one, the caller's to destroy.
 * Errors: GCX_ERROR_NOT_FOUND native isn't one of gcx's contexts. */
GCX_API gcx_result gcx_context_from_native(struct CUctx_st* native, gcx_context* context);

/* Makes the context current in the calling thread, on top of CUDA's context stack, and takes it
 * off again. push holds the context until pop, or until the thread ends, which takes off all that
 * it had pushed. *context, if not NULL, receives the handle that was pushed. Errors of pop:
 * GCX_ERROR_INVALID_CONTEXT nothing was pushed in this thread, or its end has taken it off, or
 * another context is on top, since other code pushed or set one: take that off first. */
GCX_API gcx_result gcx_context_push(gcx_context context);
GCX_API gcx_result gcx_context_pop(gcx_context* context);

/* The handle that the calling thread pushed last, if its context is current; else NULL, with
 * success. It stays with its owner. */
GCX_API gcx_result gcx_context_get_current(gcx_context* context);

/* Waits until all work of the context's streams has finished. Blocks the calling thread. Errors of
 * that work appear here with the driver's code. */
GCX_API gcx_result gcx_context_synchronize(gcx_context context);

/*
 * When the device is reset. If the application or another library resets the device's primary
 * context (cuDevicePrimaryCtxReset, cudaDeviceReset), the green contexts on it die. gcx notices
 * when it next uses the device: live handles of contexts, streams and events answer
 * GCX_ERROR_CONTEXT_IS_DESTROYED to everything but their destroy function, which succeeds, and new
 * contexts are made anew. Resources stay valid.
 */

/* ------------------------------------------------------------------------------------------
 * Streams
 * ---------------------------------------------------------------------------------------- */

typedef enum gcx_stream_sync GCX_ENUM_OF_INT {
    GCX_STREAM_NON_BLOCKING = 0, /* CU_STREAM_NON_BLOCKING: no order with the default stream */
    GCX_STREAM_BLOCKING = 1      /* CU_STREAM_DEFAULT: green contexts have no such streams */
} gcx_stream_sync;

typedef struct gcx_stream_params {
    uint32_t struct_size;
    gcx_stream_sync sync; /* GCX_STREAM_NON_BLOCKING */
    int32_t priority; /* lower is more urgent; clamped to gcx_device_get_stream_priority_range */
} gcx_stream_params;
#define GCX_STREAM_PARAMS_INIT GCX_STRUCT_INIT(gcx_stream_params)

/* A stream of the context, which it keeps, and nobody else's while the handle lives: one that was
 * given up before, if there is one of this priority whose work has finished, or a new one. params
 * NULL is GCX_STREAM_PARAMS_INIT. Takes microseconds, also while the device is busy. The handle is
 * the caller's. Errors: GCX_ERROR_INVALID_VALUE sync isn't GCX_STREAM_NON_BLOCKING;
 * GCX_ERROR_CONTEXT_IS_DESTROYED the device was reset. */
GCX_API gcx_result gcx_stream_create(gcx_context context, const gcx_stream_params* params,
                                     gcx_stream* stream);

/* A handle for a stream that someone else made, e.g. PyTorch's: for asking for its SMs, and for
 * waiting. It must outlive the handle; destroying the handle leaves it alone.
 * Errors: GCX_ERROR_INVALID_VALUE it is NULL, CU_STREAM_LEGACY (1) or CU_STREAM_PER_THREAD (2), the
 * names of CUDA's default streams, which are other streams in each context; what the driver says
 * of a stream that isn't one, as far as it notices. */
GCX_API gcx_result gcx_stream_from_native(struct CUstream_st* native, gcx_stream* stream);

/* Gives the handle up. Work in the stream finishes. Never waits. The green context keeps up to 32
 * such streams, about 0.02 MiB each, and they go when it does, see gcx_cache_set_limit. So what a
 * library holds by stream stays valid, as PyTorch's cached memory, which ends the process if the
 * stream of its pinned memory is gone. A stream whose attributes were changed
 * (cuStreamSetAttribute), before or after, is given to nobody and destroyed when that is noticed,
 * by the next who wants a stream or the place of one. One that captures a graph captures on, and is
 * kept at least until that has ended; if 32 such are kept already, its capture ends with it. One
 * that somebody destroyed with CUDA's own function, which nobody should, is gone already: then the
 * handle goes. */
GCX_API gcx_result gcx_stream_destroy(gcx_stream stream);

/* The CUstream, which is a cudaStream_t too; NULL on failure, with the reason in
 * gcx_last_error_message(). Valid until the handle is destroyed: don't submit to it afterwards, it
 * may be someone else's then. Never destroy it. */
GCX_API struct CUstream_st* gcx_stream_native(gcx_stream stream);

typedef struct gcx_stream_info {
    uint32_t struct_size;
    int32_t device;
    int32_t priority;
    uint32_t sm_count;   /* SMs that its kernels can run on */
    uint64_t context_id; /* gcx_context_info.id; 0 if the context isn't gcx's */
} gcx_stream_info;
#define GCX_STREAM_INFO_INIT GCX_STRUCT_INIT(gcx_stream_info)

/* Fills *info. */
GCX_API gcx_result gcx_stream_get_info(gcx_stream stream, gcx_stream_info* info);

/* The resource of the stream's context: gcx_context_get_resource, by the stream. If its context
 * isn't gcx's: the whole device's, if it can run on all SMs, as one of the primary context; else
 * [13.1+] a resource of GCX_SM_FAMILY_FOREIGN.
 * Errors: those of gcx_context_get_resource, and of a context that isn't gcx's
 *   GCX_ERROR_NOT_SUPPORTED  a part of the device on a driver before 13.1; gcx_stream_get_info has
 *       its count
 *   GCX_ERROR_NOT_FOUND      a workqueue */
GCX_API gcx_result gcx_stream_get_resource(gcx_stream stream, gcx_resource_type type,
                                           gcx_resource* resource);

/* The most blocks that a thread block cluster of the stream's kernels can have, sizes above the
 * portable 8 included (CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED), as the driver says it
 * of blocks of 1024 threads without shared memory. 1 on a device without clusters, before compute
 * capability 9.0. It follows from how the SMs were split off, not from their number. */
GCX_API gcx_result gcx_stream_get_max_cluster_size(gcx_stream stream, uint32_t* blocks);

/* A kernel's launch, as far as it decides how much of it fits. */
typedef struct gcx_kernel_fit_params {
    uint32_t struct_size;
    uint32_t block_threads;        /* threads of a block, 1 to 1024 */
    uint32_t dynamic_shared_bytes; /* of a block */
    uint32_t cluster_blocks;       /* blocks of a cluster, also of one that the kernel was compiled
                                      with; 0: it is launched without clusters */
} gcx_kernel_fit_params;
#define GCX_KERNEL_FIT_PARAMS_INIT GCX_STRUCT_INIT(gcx_kernel_fit_params)

typedef struct gcx_kernel_fit {
    uint32_t struct_size;
    uint32_t sm_count;      /* SMs that the stream's kernels can run on */
    uint32_t blocks_per_sm; /* blocks of the kernel that an SM holds at once; 0: it can't run */
    uint32_t max_blocks;    /* the largest grid that runs all at once, and so the largest
                               cooperative one */
    uint32_t max_clusters;  /* clusters that run at once, without clusters 0: of cluster_blocks
                               each. max_blocks is cluster_blocks times as many */
    uint32_t max_cluster_blocks; /* the most blocks that a cluster of this kernel can have; 1 on a
                                    device without clusters; 0: it can't run */
} gcx_kernel_fit;
#define GCX_KERNEL_FIT_INIT GCX_STRUCT_INIT(gcx_kernel_fit)

/* How much of a kernel fits the stream's SMs at once, when nothing else is there: for kernels that
 * size their grid by the SMs. A kernel with a barrier of its own over a grid that does not fit
 * hangs, since the blocks which wait leave no room for those which they wait for; and
 * CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT tells the whole device's SMs inside a partition too.
 * function is a CUfunction, or a CUkernel cast to one, as CUDA's own occupancy functions take it.
 * A stream of a lease answers for the SMs that the lease has at that call; one that
 * captures a graph for those that the graph will run on; one of someone else's for those of its
 * context.
 * What a cluster may have follows from the kernel's own attributes too, first of all
 * CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED for more than 8.
 * Errors: GCX_ERROR_INVALID_VALUE block_threads is not 1 to 1024, or function is NULL;
 * GCX_ERROR_INVALID_HANDLE function is none, as far as the driver notices. */
GCX_API gcx_result gcx_stream_get_kernel_fit(gcx_stream stream, struct CUfunc_st* function,
                                             const gcx_kernel_fit_params* params,
                                             gcx_kernel_fit* fit);

/* Waits until the stream's work has finished. Blocks the calling thread. Errors of that work appear
 * here with the driver's code. */
GCX_API gcx_result gcx_stream_synchronize(gcx_stream stream);

/* GCX_SUCCESS if all work has finished, GCX_ERROR_NOT_READY if not; the latter sets no
 * message. Never waits. */
GCX_API gcx_result gcx_stream_query(gcx_stream stream);

/* ------------------------------------------------------------------------------------------
 * Order between streams and contexts. None of these blocks the calling thread but
 * gcx_event_synchronize.
 * ---------------------------------------------------------------------------------------- */

/* Flags of an event. */
#define GCX_EVENT_TIMING 0x1u /* it takes times, for gcx_event_get_elapsed; costs more */
#define GCX_EVENT_BLOCKING_SYNC                                                                    \
    0x2u /* threads in gcx_event_synchronize sleep instead of spinning:                            \
            they leave the CPU to others, and wake a little later */

/* An event on a device; retains the primary context as contexts do. The handle is the caller's.
 * Errors: GCX_ERROR_INVALID_DEVICE; GCX_ERROR_INVALID_VALUE unknown flags. */
GCX_API gcx_result gcx_event_create(int32_t device, uint32_t flags, gcx_event* event);

/* A handle for an event that someone else made, e.g. PyTorch's, for recording, waiting and times.
 * It must outlive the handle; destroying the handle leaves it alone. Its device isn't known, and
 * a reset of it is for its owner to notice.
 * Errors: what the driver says of an event that isn't one, as far as it notices. */
GCX_API gcx_result gcx_event_from_native(struct CUevent_st* native, gcx_event* event);

/* Gives the handle up, and destroys the event unless someone else made it. Never waits. */
GCX_API gcx_result gcx_event_destroy(gcx_event event);

/* The CUevent; NULL on failure. Valid until the handle is destroyed. */
GCX_API struct CUevent_st* gcx_event_native(gcx_event event);

/* Captures in the event the work submitted so far to the stream, or to all streams of the context.
 * Recording again forgets what was captured before.
 * Errors: GCX_ERROR_INVALID_HANDLE the event is of another device; waiting works across devices. */
GCX_API gcx_result gcx_stream_record(gcx_stream stream, gcx_event event);
GCX_API gcx_result gcx_context_record(gcx_context context, gcx_event event);

/* Holds all later work of the stream, or of all streams of the context, until the event's work has
 * finished. An event never recorded holds nothing. */
GCX_API gcx_result gcx_stream_wait(gcx_stream stream, gcx_event event);
GCX_API gcx_result gcx_context_wait(gcx_context context, gcx_event event);

/* Waits in the calling thread for the event's work. */
GCX_API gcx_result gcx_event_synchronize(gcx_event event);

/* GCX_SUCCESS if the event's work has finished, GCX_ERROR_NOT_READY if not; the latter sets no
 * message. */
GCX_API gcx_result gcx_event_query(gcx_event event);

/* Milliseconds between the two events' work. Both need GCX_EVENT_TIMING and to have finished.
 * Errors: GCX_ERROR_INVALID_HANDLE one has no timing or was never recorded, or they are of two
 * devices; GCX_ERROR_NOT_READY one has not finished. The message says which. */
GCX_API gcx_result gcx_event_get_elapsed(gcx_event start, gcx_event end, float* milliseconds);

/* ------------------------------------------------------------------------------------------
 * Giving up
 *
 * What takes long can be given up from another thread: waits for SMs, and contexts that are made
 * ahead of time.
 * ---------------------------------------------------------------------------------------- */

typedef struct gcx_cancel_s* gcx_cancel;

/* One may be given to any number of calls. Once it was signalled, all calls that wait with it, and
 * all that come later, also for SMs that are free, return with GCX_ERROR_NOT_PERMITTED. When
 * gcx_cancel_signal returns, each call that waits has been granted its SMs and returns GCX_SUCCESS,
 * or is out of the queue, of leases and of reservations: it is never granted any, and holds up no
 * other request. The handle is the caller's; destroying it cancels no wait. */
GCX_API gcx_result gcx_cancel_create(gcx_cancel* cancel);
GCX_API gcx_result gcx_cancel_signal(gcx_cancel cancel);
GCX_API gcx_result gcx_cancel_destroy(gcx_cancel cancel);

/* ------------------------------------------------------------------------------------------
 * Kept contexts
 *
 * A green context holds 4 to 6 MiB of device memory on an H100, whatever its SMs. Its streams come
 * on top, about 0.02 MiB each.
 * ---------------------------------------------------------------------------------------- */

/* Sets how many green contexts without handle or stream gcx keeps on each device: 64 at first.
 * Those beyond are destroyed, the longest unused first, with those of their streams that were given
 * up, but not while such a stream captures a graph. 0 keeps none. The driver gives little of their
 * memory back (about 1 MiB of 5, or nothing before the next is made) and loses the rest
 * permanently, so that a limit which is too small costs more memory than it saves.
 *
 * Contexts that gcx_cache_prepare or gcx_lease_prepare made or found count towards the limit, but
 * only this function and gcx_cache_trim destroy them. A limit below their number destroys the
 * others first; no more contexts than the limit stay prepared, those in use and used last. */
GCX_API gcx_result gcx_cache_set_limit(uint32_t kept_contexts);

/* Told how far a call is, in the thread that made it, with no lock of gcx held: it may call gcx,
 * also to give the call up. It must not throw. */
typedef void (*gcx_progress_callback)(uint32_t done, uint32_t count, void* user_data);

/* Flags of preparing. */
#define GCX_PREPARE_FOR_LEASES                                                                     \
    0x1u /* as leases over these SMs have them: [13.1+] with balanced                              \
            workqueues; the same as without before 13.1 */

typedef struct gcx_prepare_params {
    uint32_t struct_size;
    uint32_t flags;                 /* GCX_PREPARE_ */
    gcx_cancel cancel;              /* gives the rest up; may be NULL */
    gcx_progress_callback progress; /* called after each resource; may be NULL */
    void* user_data;
} gcx_prepare_params;
#define GCX_PREPARE_PARAMS_INIT GCX_STRUCT_INIT(gcx_prepare_params)

/* Makes the contexts of SM resources beforehand, one for each, and keeps them, so that
 * gcx_context_create and gcx_lease_acquire over the same SMs take microseconds. In the calling
 * thread: making one takes milliseconds and waits for every kernel that runs on the device, so call
 * it before the work starts, or from a thread that has nothing else to do. Of sets whose context is
 * there already none is made, and it counts as used now. params may be NULL. The layouts of leases
 * that live are made by gcx_lease_prepare.
 * The contexts are prepared from then on: other contexts never push them out of the cache, see
 * gcx_cache_set_limit. A reset of the device destroys them as all others.
 * After a failure what was made stays prepared.
 * Errors: those of gcx_context_create;
 *   GCX_ERROR_NOT_PERMITTED  given up by gcx_cancel_signal, which is looked at before each one
 *   GCX_ERROR_INVALID_VALUE  count is 0; unknown flags; a device would have more prepared contexts
 *       than its limit, those in use among them: nothing was made
 *   GCX_ERROR_INVALID_RESOURCE_TYPE  one isn't an SM resource; with GCX_PREPARE_FOR_LEASES one is
 * of a structured split, which has no leases */
GCX_API gcx_result gcx_cache_prepare(const gcx_resource* resources, uint32_t count,
                                     const gcx_prepare_params* params);

/* What a trim came to. */
typedef struct gcx_cache_trimmed {
    uint32_t struct_size;
    uint32_t contexts;      /* destroyed */
    uint32_t streams;       /* that were given up, destroyed: with their contexts, and beside */
    uint32_t contexts_left; /* beyond the number, but a stream that was given up captures in them */
    uint32_t streams_left;  /* given up, but at work or capturing still */
    uint32_t reserved;      /* 0 */
    uint64_t bytes;         /* device memory that is free now and was not before, all devices
                               together; what others did meanwhile is in it; at least 0 */
} gcx_cache_trimmed;
#define GCX_CACHE_TRIMMED_INIT GCX_STRUCT_INIT(gcx_cache_trimmed)

/* Destroys the kept contexts beyond that number, all devices together, now: the longest unused
 * first, prepared or not, and the given-up streams of all that stay, but those at work. The limit
 * stays as it is. Never while a library may still name a stream that was given up, as PyTorch's
 * allocator does (gcx_stream_destroy).
 * *trimmed, if not NULL, says what was done, and what could not be.
 * Errors: what the driver says if it refuses to destroy something; the rest was trimmed then, and
 * the message has the numbers. */
GCX_API gcx_result gcx_cache_trim(uint32_t kept_contexts, gcx_cache_trimmed* trimmed);

typedef struct gcx_cache_stats {
    uint32_t struct_size;
    uint32_t limit;             /* of each device */
    uint32_t in_use;            /* green contexts with a handle or stream */
    uint32_t kept;              /* without */
    uint64_t hits;              /* contexts given from kept ones or from ones in use */
    uint64_t misses;            /* green contexts made */
    uint64_t evicted;           /* destroyed by the limit and by gcx_cache_trim */
    uint64_t lost;              /* dead by a reset of the device */
    uint64_t prepared;          /* made ahead of time, of those made */
    uint64_t making_ns;         /* nanoseconds in the driver making them, all together */
    uint64_t longest_making_ns; /* of the one that took longest */
    uint32_t kept_streams;      /* streams that were given up, of all contexts */
    uint32_t reserved;          /* 0 */
} gcx_cache_stats;
#define GCX_CACHE_STATS_INIT GCX_STRUCT_INIT(gcx_cache_stats)

/* Fills *stats, since the driver was opened. */
GCX_API gcx_result gcx_cache_get_stats(gcx_cache_stats* stats);

/* ------------------------------------------------------------------------------------------
 * Leases
 *
 * A split says which SMs there are; a lease says whose they are. No two leases of a process have an
 * SM in common unless both are shared, whoever made them, and they grow, shrink and change hands
 * while their streams work. What no lease has is free. Plain contexts are not asked: gcx_sm_split
 * with GCX_SPLIT_EXCLUDE_LEASED keeps clear of leases, gcx_context_list shows both.
 *
 * Which SMs. A lease is atoms of one family, counted and rounded as gcx_sm_split divides what can
 * be had: what is free, and in a change also what its leases have. If min_sm_count allows less, a
 * lease gets all that is free. Placement promises this:
 *   - It is deterministic.
 *   - A lease that grows keeps its SMs, and a lease that shrinks gets no new ones. Exempt is the
 *     family's remainder atom, which goes where a split has it. [13.1+] Where the driver would
 *     make no context of a set with the remainder atom (gcx_context_create), the leases of the
 *     change move, or do without that atom.
 *   - A layout that was prepared (gcx_lease_prepare) comes back to the same SMs, whose contexts are
 *     cached. A lease may move then, and its work waits on the device as after any change.
 * A shared lease prefers the SMs that most leases share. Its exclusive SMs stay unless it is to
 * have fewer SMs than those.
 *
 * Who is first. Requests that wait are served in the order of arrival, and while one waits nobody
 *   who came later is given what is free: neither another request nor a lease that grows. So none
 *   starves, however large. Each reservation has a queue of its own, and so have the leases outside
 * of reservations: a request that waits in a reservation keeps only the reservation's free SMs from
 * leases outside. A request that was cancelled or has timed out is out of its queue at that moment.
 *
 * Streams follow. A gcx_stream of a lease stands for the lease: gcx_stream_native, and every
 *   function that takes the stream, uses a CUstream of the SMs that the lease has at that call,
 *   behind all work of the CUstream before. A CUstream that was taken before a change still is a
 *   live stream of the SMs which the lease had then, until its work is done: so take it anew for
 *   each step, and submit nothing to it while another thread changes the lease. A stream that
 *   captures a graph moves once the capture has ended; the graph stays on the SMs of its capture.
 *
 * SMs that change hands. Their new holder's work waits on the device for the work that the former
 *   holders' streams were given before the change and that runs on them, so that leases are
 *   disjoint in time too. No host thread waits. A stream is told to wait when it is next used, if
 *   there is anything to wait for: one that is not used occupies none of the device's queues.
 *   Functions of gcx that submit to a lease's stream in another thread come before or after a
 *   change, never in between. A change takes as many driver calls whatever waits.
 * ---------------------------------------------------------------------------------------- */

typedef struct gcx_lease_s* gcx_lease;

#define GCX_FOREVER 0xffffffffu /* as a time-out */
#define GCX_MAX_LEASE_NAME 64u  /* bytes of a lease's name, its final 0 among them */

/* Flags of a lease. */
#define GCX_LEASE_SHARED 0x1u             /* others that are shared may have its SMs too */
#define GCX_LEASE_REQUIRE_WORKQUEUES 0x2u /* refuse a driver that has no queues of its own for it  \
                                           */

typedef struct gcx_lease_params {
    uint32_t struct_size;
    uint32_t flags;              /* GCX_LEASE_ */
    gcx_sm_family family;        /* GCX_SM_FAMILY_NONE: coscheduled; not the structured family */
    uint32_t min_sm_count;       /* SMs: so many will do if those asked for can't be had; 0: no less
                                    than asked for, and of GCX_REST one atom */
    uint32_t exclusive_sm_count; /* with GCX_LEASE_SHARED: so many of the SMs are its alone */
    uint32_t timeout_ms;         /* milliseconds to wait for the SMs; 0: don't; GCX_FOREVER */
    gcx_cancel cancel;           /* gives the wait up from another thread; may be NULL */
    const char* name;            /* for messages and lists, copied; NULL: none */
} gcx_lease_params;
#define GCX_LEASE_PARAMS_INIT GCX_STRUCT_INIT(gcx_lease_params)

/* Acquires sm_count SMs of the device, or GCX_REST. params may be NULL. What the lease really got
 * is in gcx_lease_get_info. The first lease over a set of SMs makes a context of them, with the
 * cost of one (above), later ones take microseconds. [13.1+] Each context that the lease has, over
 * its changes, has balanced workqueues (GCX_WORKQUEUE_SCOPE_GREEN_CTX_BALANCED): none in common
 * with other such contexts, when possible. On older drivers leases share the process's queues;
 * GCX_LEASE_REQUIRE_WORKQUEUES is refused there. The handle is the caller's, to be given to
 * gcx_lease_release.
 * Errors: those of gcx_context_create;
 *   GCX_ERROR_ALREADY_ACQUIRED  others hold the SMs, or wait for them, and after timeout_ms still
 *       did; the message says who
 *   GCX_ERROR_NOT_PERMITTED     the wait was cancelled by gcx_cancel_signal; another copy of gcx in
 *       this process has acquired leases, and the message has the paths of both
 *   GCX_ERROR_INVALID_RESOURCE_CONFIGURATION  the device, or the reservation, has fewer SMs than
 * requested GCX_ERROR_NOT_READY         there are leases of another family, and which SMs the
 * families' atoms hold isn't known: call gcx_device_map_sms for both GCX_ERROR_NOT_SUPPORTED
 * GCX_LEASE_REQUIRE_WORKQUEUES on a driver before 13.1 GCX_ERROR_INVALID_DEVICE    no such device
 *   GCX_ERROR_INVALID_VALUE     sm_count is 0; unknown flags, a family that has no leases, a name
 *       that is too long; min_sm_count or exclusive_sm_count is more than sm_count */
GCX_API gcx_result gcx_lease_acquire(int32_t device, uint32_t sm_count,
                                     const gcx_lease_params* params, gcx_lease* lease);

/* Releases the lease. Its SMs are free when this returns, whatever other threads do with the lease:
 * their calls finish, or fail with GCX_ERROR_CONTEXT_IS_DESTROYED or GCX_ERROR_INVALID_HANDLE. Its
 * work finishes, and the work of the SMs' next holder waits for that. Its streams end with it: they
 * answer GCX_ERROR_CONTEXT_IS_DESTROYED to everything but gcx_stream_destroy. Never waits for work;
 * waits for a change of the lease that another thread is making. */
GCX_API gcx_result gcx_lease_release(gcx_lease lease);

/* What a lease is to have. */
typedef struct gcx_lease_size {
    gcx_lease lease;
    uint32_t sm_count; /* SMs, rounded as by gcx_sm_split; GCX_REST: what the others of the
                          operation and all other leases leave, shared as evenly as atoms allow */
    uint32_t reserved; /* 0 */
} gcx_lease_size;

/* Flags of a change. */
#define GCX_RESIZE_DEFAULT 0x0u /* later work waits for the former holders' on SMs that are new */
#define GCX_RESIZE_DEFERRED                                                                        \
    0x1u /* a lease whose new SMs contain its old ones doesn't wait: its streams                   \
            stay on the old SMs until all new ones are free, and move when they                    \
            are used after that. A lease that loses SMs moves at once, as by                       \
            default. Of use only once gcx_lease_prepare made the contexts: making                  \
            them waits for running kernels */

/* Gives the leases of sizes[0 .. count - 1] other sizes, all in one operation or none: one can grow
 * by what another gives.
 * Work in flight finishes where it runs; later work of their streams runs on the new SMs, behind
 * what was before in its stream. Takes microseconds where contexts of the new sets are kept (see
 * gcx_lease_prepare), and else the time to make them, which holds up no other lease.
 * Errors: those of gcx_context_create;
 *   GCX_ERROR_ALREADY_ACQUIRED  the SMs that the leases have and those that are free don't suffice,
 *       or others wait for them; the message says who
 *   GCX_ERROR_INVALID_RESOURCE_CONFIGURATION  the leases are of two devices or families; the sizes,
 *       rounded to whole atoms, never fit on the device or in the reservation, even if all SMs were
 * free; one is less than its lease's exclusive_sm_count GCX_ERROR_INVALID_VALUE     count or an
 * sm_count is 0, a lease is there twice, unknown flags */
GCX_API gcx_result gcx_lease_resize(const gcx_lease_size* sizes, uint32_t count, uint32_t flags);

/* Makes the contexts that gcx_lease_resize with sizes[0 .. count - 1] would need, and changes
 * nothing. Until one of the leases is released, each change of the same leases that comes to the
 * same numbers of SMs brings these sets back, as long as no other lease has their SMs (of a device,
 * the last 1,024 layouts). For a thread of the caller's that makes ahead of time what is to be
 * changed in microseconds later, one call for each layout, between which the caller reports its
 * progress and may stop. Before there are leases it is gcx_cache_prepare with
 * GCX_PREPARE_FOR_LEASES. The contexts are prepared from then on, as after gcx_cache_prepare.
 * Errors: those of gcx_lease_resize; GCX_ERROR_INVALID_VALUE the limit is too small, as at
 * gcx_cache_prepare. */
GCX_API gcx_result gcx_lease_prepare(const gcx_lease_size* sizes, uint32_t count);

/* Releases from and gives all its SMs to the lease to, past those who wait: both or nothing, also
 * if another thread releases one of them. flags as above.
 * Errors: those of gcx_lease_resize; GCX_ERROR_NOT_SUPPORTED [13.1+] the SMs of both can't go
 * together, see gcx_context_create. */
GCX_API gcx_result gcx_lease_hand_over(gcx_lease from, gcx_lease to, uint32_t flags);

typedef struct gcx_lease_info {
    uint32_t struct_size;
    int32_t device;
    gcx_sm_family family;
    uint32_t flags;              /* GCX_LEASE_ */
    uint32_t sm_count;           /* SMs that it has now */
    uint32_t exclusive_sm_count; /* of these, those that nobody else can have meanwhile */
    uint32_t stream_count;
    uint32_t reserved;
    uint64_t id;      /* never used twice in a process */
    uint64_t changes; /* how often its SMs have changed */
    char name[64];
} gcx_lease_info;
#define GCX_LEASE_INFO_INIT GCX_STRUCT_INIT(gcx_lease_info)

/* Fills *info. */
GCX_API gcx_result gcx_lease_get_info(gcx_lease lease, gcx_lease_info* info);

/* The SMs that the lease has now, as a resource. */
GCX_API gcx_result gcx_lease_get_resource(gcx_lease lease, gcx_resource* resource);

/* A lease of the process. Grows at the end of reserved, never in size. */
typedef struct gcx_live_lease {
    uint64_t id;
    int32_t device;
    gcx_sm_family family;
    uint32_t flags;    /* GCX_LEASE_ */
    uint32_t sm_count; /* of one that waits: those it asked for */
    uint32_t exclusive_sm_count;
    uint32_t stream_count;
    uint32_t waits;       /* 1: it has nothing yet, and waits in gcx_lease_acquire */
    uint32_t reserved[7]; /* 0 */
    char name[64];
    gcx_resource resource; /* its SMs; of one that waits 0 SMs */
} gcx_live_lease;

/* The leases of a device, or of all (-1): those that hold SMs in the order in which they were
 * acquired, then those that wait, the first first. capacity is the room in leases, which may be
 * NULL if that is 0. Errors: GCX_ERROR_INVALID_DEVICE no such device; GCX_ERROR_INVALID_VALUE
 * capacity is too small: *count then holds what is needed. */
GCX_API gcx_result gcx_lease_list(int32_t device, gcx_live_lease* leases, uint32_t capacity,
                                  uint32_t* count);

/* A stream of the lease, that follows it (above). params as of gcx_stream_create. The handle is the
 * caller's, to be given to gcx_stream_destroy. */
GCX_API gcx_result gcx_lease_stream_create(gcx_lease lease, const gcx_stream_params* params,
                                           gcx_stream* stream);

/* Waits until the work of the lease's streams has finished, those that were destroyed among them,
 * on whatever SMs it was submitted. Other work on the lease's SMs doesn't count, that of former
 * holders only where work of these streams is behind it. Blocks the calling thread. Errors of that
 * work appear here with the driver's code. A stream that captures a graph is not waited for. */
GCX_API gcx_result gcx_lease_synchronize(gcx_lease lease);

/* GCX_SUCCESS if that work has finished, GCX_ERROR_NOT_READY if not; the latter sets no message. */
GCX_API gcx_result gcx_lease_query(gcx_lease lease);

/* ------------------------------------------------------------------------------------------
 * Published leases: what `gcx top` shows
 *
 * A process that was told to publishes its leases, for other processes of the same user to see:
 * nobody else can, and no process can change what another has. Publishing is asked for, by
 * gcx_publish_start or by GCX_PUBLISH in the environment, which is 1 or a name, when the driver is
 * opened; where that can't be done the log has a warning, and all else works.
 *
 * Each process writes a file in /dev/shm/gcx-UID, where UID is the effective user, or, if the
 * environment has GCX_RESERVATION_DIR, in the folder user-UID below that one. gcx creates the
 * folder with mode 700; a link, another owner or a wider mode is an error. A process that ends,
 * however it ends, is seen no more. Containers see each other's leases if they share the folder
 * and the user's number. A change costs well under a microsecond, no system call and no thread.
 * The child of a fork publishes nothing. Reading opens no driver, needs no GPU, and works in a
 * child too; each process is seen as it was at one moment, several at moments of their own.
 * What lies in the folder and is no such file is left out, with a warning in the log.
 * ---------------------------------------------------------------------------------------- */

#define GCX_MAX_PROCESS_NAME 64u /* bytes of a process's name, its final 0 among them */

/* From now on this process's leases are published, those that there are and those to come, up to
 * 512 at a time. name is for lists, copied; NULL: the program's. Of a process that publishes
 * already it changes the name. Opens the driver. Errors:
 *   GCX_ERROR_NOT_PERMITTED     the folder is a link or another user's, or others may enter it
 *   GCX_ERROR_OPERATING_SYSTEM  the file can't be made: /dev/shm or the folder of
 * GCX_RESERVATION_DIR is missing, full or read-only GCX_ERROR_INVALID_VALUE     name is too long,
 * or GCX_RESERVATION_DIR is not an absolute path */
GCX_API gcx_result gcx_publish_start(const char* name);

/* No longer. Success also where nothing is published. Opens no driver. */
GCX_API gcx_result gcx_publish_stop(void);

/* A process that publishes. Grows at the end of reserved, never in size. */
typedef struct gcx_published_process {
    uint64_t process;  /* a random number, which tells it from all others */
    uint64_t since_ms; /* milliseconds since 1970 when it began to publish */
    int32_t pid;       /* as the process itself sees it; other containers may not */
    int32_t simulated; /* 1: on the simulated driver, no GPU is involved */
    int32_t driver_version;
    uint32_t device_count;
    uint32_t lease_count;
    uint32_t unlisted_count; /* leases beyond the 512, which aren't in gcx_published_lease_list */
    uint32_t reserved[8];    /* 0 */
    char name[64];           /* any bytes: escape them where they are shown */
} gcx_published_process;

/* The processes that publish, this one among them if it does. capacity is the room in processes,
 * which may be NULL if that is 0. Opens no driver. Errors: GCX_ERROR_INVALID_VALUE capacity is too
 * small: *count then holds what is needed; GCX_ERROR_NOT_PERMITTED and GCX_ERROR_OPERATING_SYSTEM
 * as of gcx_publish_start, but if the user's own folder is missing the list is empty. */
GCX_API gcx_result gcx_published_process_list(gcx_published_process* processes, uint32_t capacity,
                                              uint32_t* count);

/* A lease of a process that publishes. Grows at the end of reserved, never in size. */
typedef struct gcx_published_lease {
    uint64_t process; /* as in gcx_published_process */
    uint64_t id;      /* of the lease, in that process */
    uint64_t changes; /* how often its SMs have changed */
    int32_t pid;
    int32_t simulated;
    int32_t device; /* the ordinal in that process; device_uuid tells the same one in others */
    gcx_sm_family family;
    uint32_t flags;    /* GCX_LEASE_ */
    uint32_t waits;    /* 1: it has nothing yet, and waits in gcx_lease_acquire */
    uint32_t sm_count; /* of one that waits: those it asked for, or GCX_REST */
    uint32_t exclusive_sm_count;
    uint32_t stream_count;
    uint32_t device_sm_count;
    uint32_t atom_count;         /* of the family, on that device */
    uint32_t atom_sm_count;      /* SMs of each atom but the last */
    uint32_t last_atom_sm_count; /* SMs of the last atom */
    uint32_t reserved[11];       /* 0 */
    uint64_t exclusive_atoms[8]; /* atom n is its alone: bit n % 64 of word n / 64 */
    uint64_t shared_atoms[8];    /* the same of those that others may have too */
    uint8_t device_uuid[16];
    char name[64];         /* any bytes: escape them where they are shown */
    char process_name[64]; /* as above */
    char device_name[128]; /* as above */
} gcx_published_lease;

/* The leases of the processes that publish: of each process those that hold SMs in the order in
 * which they were acquired, then those that wait, the first first. Two exclusive leases of one
 * process never have an atom in common. Across processes there are no such promises: leases are a
 * process's own, and reservations (below) are what processes agree on. capacity is the room in
 * leases, which may be NULL if that is 0. Opens no driver. Errors: those of
 * gcx_published_process_list. */
GCX_API gcx_result gcx_published_lease_list(gcx_published_lease* leases, uint32_t capacity,
                                            uint32_t* count);

/* ------------------------------------------------------------------------------------------
 * Reservations: SMs that no other process has
 *
 * A lease is a process's own; a reservation is agreed on by the processes of a host. No two live
 * reservations of a device have an SM in common, as long as all take theirs in the same folder.
 * Programs that take none are not bound by it. There is no daemon, and nobody needs to be root.
 *
 * What it isolates. Under MPS, the same atoms in two processes are the same SMs, and partitions of
 * two processes run side by side (measured on an H200). Without MPS, processes take
 * turns on the whole device, and partitions between them change nothing: a reservation is given all
 * the same, gcx_mps_get_info and the lists tell of it, and the log has a warning.
 *
 * How long it lasts. A reservation is a file that its processes keep locked; the kernel drops a
 * lock however its process ends, SIGKILL included. A reservation ends when its last process has
 * destroyed it or has ended; that it closes descriptors which it knows nothing of ends none, where
 * files can be mapped. A forked child has no part in it, and what exec starts neither, unless it
 * joins or GCX_RESERVATION_INHERIT is set. Work that still runs when a reservation is destroyed
 * goes on, on SMs that somebody else may have by then: so destroy contexts first, or wait for them.
 *
 * Who is first. As with leases: those who wait are served in the order in which they came, per
 *   device, and nobody who came later is given what is free. Who was killed while waiting is
 *   skipped. A process that is stopped (SIGSTOP) as the first that waits holds up the others.
 *
 * Which SMs. As a lease's: atoms of one family, those of a split's group of what is free. Between
 * reservations of two families on one device overlap is known where gcx_device_map_sms has read
 * both in the taking process, without MPS; else a reservation of another family has the whole
 * device. The same is true of one whose process has another version of the driver, sees other
 * atoms, or has less than 100 in CUDA_MPS_ACTIVE_THREAD_PERCENTAGE where it matters: the daemon
 * alone knows which SMs such a process has. Devices are told apart by UUID (of MIG devices their
 * own), never by ordinal; simulated ones are never taken for real ones.
 *
 * Where. In gcx_reservation_params.folder, or if that is NULL in GCX_RESERVATION_DIR of the
 * environment, or if that isn't set in /dev/shm/gcx-UID, which gcx creates with mode 700. UID is
 * the effective user: neither login sessions nor sudo's environment change the folder. A folder
 * that was named is either the user's own of mode 700, or a group's: setgid, no rights for others
 * (mode 2770, or 3770 to keep members from removing each other's files), and only its members can
 * open it. It is never made, must be on a local disk or in memory, and reservations in two folders
 * know nothing of each other. Containers agree if they share the folder; process numbers and host
 * names may differ. Members of a group can keep SMs from each other, and without the sticky bit of
 * mode 3770 also remove each other's files, after which others are given those SMs.
 *
 * Inside gcx exec. The SMs of a gcx exec are a reservation, and what its programs request is a part
 * of that reservation: within it, disjoint from other parts, of its family, in its folder, and with
 * a queue of its own. For all others the reservation has its SMs, whatever parts of it there are.
 *
 * What lies there and can't be believed, but is kept locked by a live process, is an error that
 * names the file: gcx never guesses which SMs it means. What nobody keeps locked is removed.
 * ---------------------------------------------------------------------------------------- */

typedef struct gcx_reservation_s* gcx_reservation;

#define GCX_MAX_RESERVATION_TOKEN 4096u /* bytes of a token, its final 0 among them */

/* Flags of a reservation. */
#define GCX_RESERVATION_INHERIT                                                                    \
    0x1u /* forked children and what exec starts, or this process becomes by exec, keep the        \
            reservation too, until they end or close its descriptor: for launchers */

typedef struct gcx_reservation_params {
    uint32_t struct_size;
    uint32_t flags;        /* GCX_RESERVATION_ */
    gcx_sm_family family;  /* GCX_SM_FAMILY_NONE: coscheduled, inside gcx exec the partition's; not
                              the structured family */
    uint32_t min_sm_count; /* SMs: so many will do if those asked for can't be had; 0: no less than
                              asked for, and of GCX_REST one atom */
    uint32_t timeout_ms;   /* milliseconds to wait for the SMs; 0: don't; GCX_FOREVER */
    uint32_t reserved;     /* 0 */
    gcx_cancel cancel;     /* gives the wait up from another thread; may be NULL */
    const char* name;      /* for messages and lists, copied; NULL: none. Shorter than
                              GCX_MAX_LEASE_NAME */
    const char* folder;    /* an absolute path; NULL: see above */
} gcx_reservation_params;
#define GCX_RESERVATION_PARAMS_INIT GCX_STRUCT_INIT(gcx_reservation_params)

/* Takes sm_count SMs of the device, or GCX_REST, from all processes that take theirs in the same
 * folder. params may be NULL. Makes no context. The handle is the caller's, to be given to
 * gcx_reservation_release. Waiting is a look every 20 ms at most, and no thread. timeout_ms bounds
 * all waiting; but if other processes have the folder locked, which takes them less than a
 * millisecond, the call waits for that for up to 500 ms even if timeout_ms is shorter. Errors:
 *   GCX_ERROR_ALREADY_ACQUIRED  others hold the SMs, or wait for them, and after timeout_ms still
 *       did; the message says who. Or others changed the folder all that time
 *   GCX_ERROR_NOT_PERMITTED     the wait was given up by gcx_cancel_signal; the folder is another
 *       user's, or too many may enter it
 *   GCX_ERROR_OPERATING_SYSTEM  the folder isn't there, the disk is full, the folder read-only; a
 *       file there can't be believed; a process stopped in the middle of a change;
 *       /dev/shm/gcx-UID was removed, and a process still has a reservation in it
 *   GCX_ERROR_INVALID_RESOURCE_CONFIGURATION  the device has not so many SMs, whoever holds them;
 *       inside gcx exec, the partition has not, or is of another family
 *   GCX_ERROR_NOT_SUPPORTED     the max-cluster family on a device that has none; inside gcx exec,
 *       the driver divides the partition into no atoms of the device
 *   GCX_ERROR_NOT_FOUND         inside gcx exec, the partition's reservation has ended
 *   GCX_ERROR_INVALID_DEVICE    no such device
 *   GCX_ERROR_INVALID_VALUE     sm_count is 0; unknown flags, a family that has no reservations, a
 * name or path that is too long, a path that is not absolute; min_sm_count is more than sm_count */
GCX_API gcx_result gcx_reservation_acquire(int32_t device, uint32_t sm_count,
                                           const gcx_reservation_params* params,
                                           gcx_reservation* reservation);

/* Writes what another process joins the reservation by: text, to be given to it in its environment
 * or on its command line. It is the path of the reservation's file, so that it works where that
 * path leads to the same folder. capacity is the room in token, in bytes; GCX_MAX_RESERVATION_TOKEN
 * is enough. Errors: GCX_ERROR_INVALID_VALUE capacity is too small. */
GCX_API gcx_result gcx_reservation_get_token(gcx_reservation reservation, char* token,
                                             uint32_t capacity);

/* Joins a reservation that another process, or this one, has: it lasts until all who joined have
 * given it up. Opens no driver, and works in a forked child too. The handle is the caller's, to be
 * given to gcx_reservation_release. Errors: GCX_ERROR_NOT_FOUND         the reservation has ended,
 * or was never there GCX_ERROR_INVALID_VALUE     the token is none GCX_ERROR_ALREADY_ACQUIRED other
 * processes changed the folder all the time for 5 s GCX_ERROR_NOT_PERMITTED,
 * GCX_ERROR_OPERATING_SYSTEM  as of gcx_reservation_acquire */
GCX_API gcx_result gcx_reservation_join(const char* token, gcx_reservation* reservation);

/* Gives the reservation up. If no other process joined it, and no lease was acquired in it that is
 * still there, its SMs can be had by others at once. A forked child has none of its parent's
 * handles. */
GCX_API gcx_result gcx_reservation_release(gcx_reservation reservation);

/* Whether contexts of a process on a device are shared by way of MPS. */
typedef enum gcx_mps_state GCX_ENUM_OF_INT {
    GCX_MPS_UNKNOWN = 0, /* the driver doesn't tell */
    GCX_MPS_OFF = 1,
    GCX_MPS_ON = 2
} gcx_mps_state;

typedef struct gcx_reservation_info {
    uint32_t struct_size;
    gcx_sm_family family;
    uint32_t flags;           /* GCX_RESERVATION_; of one that was joined 0 */
    uint32_t sm_count;        /* SMs that it has */
    uint32_t device_sm_count; /* SMs of the device */
    int32_t joined;           /* 1: by gcx_reservation_join */
    int32_t simulated;        /* 1: of the simulated driver */
    int32_t lost;      /* 1: somebody removed the reservation's file, or moved its folder: others
                          may be given its SMs */
    gcx_mps_state mps; /* as the process saw it that took the reservation */
    float mps_thread_percentage; /* the same, as in gcx_mps_info */
    uint64_t id;                 /* a random number, which tells it from all others */
    uint64_t since_ms;           /* milliseconds since 1970 when it was taken */
    uint64_t atoms[8];           /* of the family: it has atom n: bit n % 64 of word n / 64 */
    uint8_t device_uuid[16];
    char name[64]; /* any bytes: escape them where they are shown */
} gcx_reservation_info;
#define GCX_RESERVATION_INFO_INIT GCX_STRUCT_INIT(gcx_reservation_info)

/* Fills *info. Opens no driver. */
GCX_API gcx_result gcx_reservation_get_info(gcx_reservation reservation,
                                            gcx_reservation_info* info);

/* The reservation's SMs as a resource of this process, to be split and to make contexts of. Opens
 * the driver. Errors: GCX_ERROR_NO_DEVICE no device of this process has the reservation's UUID;
 * GCX_ERROR_INVALID_RESOURCE_CONFIGURATION this process sees other atoms than the one that took the
 * reservation, or is limited by CUDA_MPS_ACTIVE_THREAD_PERCENTAGE, and that one was not. */
GCX_API gcx_result gcx_reservation_get_resource(gcx_reservation reservation,
                                                gcx_resource* resource);

/* gcx_lease_acquire out of the reservation's SMs alone, and so are the lease's later changes:
 * leases of a reservation change only together with leases of the same reservation. params->family
 * is the reservation's or GCX_SM_FAMILY_NONE. The lease keeps the reservation, after
 * gcx_reservation_release too. A lease that was acquired without a reservation may have the same
 * SMs as a reservation, but never as another lease. Errors: those of gcx_lease_acquire and of
 * gcx_reservation_get_resource; GCX_ERROR_INVALID_VALUE another family. */
GCX_API gcx_result gcx_reservation_acquire_lease(gcx_reservation reservation, uint32_t sm_count,
                                                 const gcx_lease_params* params, gcx_lease* lease);

/* A reservation of any process, or one that waits for it. Grows at the end of reserved, never in
 * size. */
typedef struct gcx_live_reservation {
    uint64_t id;       /* a random number, which tells it from all others */
    uint64_t since_ms; /* milliseconds since 1970 when it was taken, or the wait began */
    uint64_t until_ms; /* of one that waits: when it gives up; 0: never */
    int32_t pid;   /* the process that took it while that keeps it, then another one that does; 0:
                      none of those is visible here, as in another container */
    uint32_t user; /* the number of the user whose file it is */
    int32_t simulated; /* 1: of the simulated driver */
    uint32_t waits;    /* 1: it has nothing yet, and waits in gcx_reservation_acquire */
    gcx_sm_family family;
    uint32_t sm_count; /* of one that waits: those it asked for, or GCX_REST */
    uint32_t device_sm_count;
    uint32_t atom_count;         /* of the family, on that device */
    uint32_t atom_sm_count;      /* SMs of each atom but the last */
    uint32_t last_atom_sm_count; /* SMs of the last atom */
    gcx_mps_state mps;           /* as the process saw it that took the reservation */
    float mps_thread_percentage; /* the same, as in gcx_mps_info */
    uint64_t parent;             /* the id of the reservation that it is a part of, which may have
                                    ended; 0: of the device */
    uint32_t reserved[6];        /* 0 */
    uint64_t atoms[8];           /* it has atom n: bit n % 64 of word n / 64 */
    uint8_t device_uuid[16];
    char name[64];         /* any bytes: escape them where they are shown */
    char process_name[64]; /* of that process; as above */
    char device_name[128]; /* as above */
} gcx_live_reservation;

/* The reservations of a folder, by device, of each those that have SMs in the order in which they
 * were taken, then those that wait, the first first. folder: NULL as in gcx_reservation_params.
 * capacity is the room in reservations, which may be NULL if that is 0. Opens no driver and needs
 * no GPU. What can't be believed is left out, with a warning in the log. What the dead left is
 * removed, where this process may. Errors: GCX_ERROR_INVALID_VALUE capacity is too small: *count
 * then holds what is needed; GCX_ERROR_NOT_PERMITTED and GCX_ERROR_OPERATING_SYSTEM as of
 * gcx_reservation_acquire, but that the user's own folder, if it is missing, has no reservations.
 */
GCX_API gcx_result gcx_reservation_list(const char* folder, gcx_live_reservation* reservations,
                                        uint32_t capacity, uint32_t* count);

typedef struct gcx_mps_info {
    uint32_t struct_size;
    gcx_mps_state state;     /* what the driver says of contexts of this process on the device */
    float thread_percentage; /* CUDA_MPS_ACTIVE_THREAD_PERCENTAGE of the environment, which limits
                                this process under MPS: more than 0, at most 100; 0: it isn't set,
                                or holds something else. The daemon's own default is not seen */
    uint32_t reserved;
} gcx_mps_info;
#define GCX_MPS_INFO_INIT GCX_STRUCT_INIT(gcx_mps_info)

/* Fills *info: by the driver's attribute CU_DEVICE_ATTRIBUTE_MPS_ENABLED, of which nobody has
 * measured yet whether it tells the truth. Makes no context.
 * Errors: GCX_ERROR_INVALID_DEVICE no such device. */
GCX_API gcx_result gcx_mps_get_info(int32_t device, gcx_mps_info* info);

/* ------------------------------------------------------------------------------------------
 * Queues
 *
 * What the partitions of a process share beside memory: the hardware's queues, of which CUDA takes
 * as many as the environment's CUDA_DEVICE_MAX_CONNECTIONS says when it starts, the connections. A
 * stream holds one while the first thing in it waits for something before it: for the kernel ahead
 * in its stream, for an event, for another branch of its graph. While as many streams wait so as
 * there are connections, every other launch of the process waits, whatever SMs it has. A kernel
 * that only waits for room on its SMs holds none, nor does a copy or a linear graph.
 * Streams' priorities change nothing. Measured, see docs/measurements.md. [13.1+] Contexts with
 * workqueues of their own have their own (GCX_LEASE_REQUIRE_WORKQUEUES, gcx_workqueue_configure).
 * ---------------------------------------------------------------------------------------- */

#define GCX_MAX_CONNECTIONS 32u /* the most that CUDA takes */

/* Where the number of connections comes from. */
typedef enum gcx_queue_source GCX_ENUM_OF_INT {
    GCX_QUEUE_SOURCE_DEFAULT = 0,    /* CUDA's own number, 8: the variable isn't set */
    GCX_QUEUE_SOURCE_ENVIRONMENT = 1 /* CUDA_DEVICE_MAX_CONNECTIONS */
} gcx_queue_source;

typedef struct gcx_queue_info {
    uint32_t struct_size;
    uint32_t connections; /* that CUDA has or, if it hasn't started, would have; 0: unknown, the
                             variable holds something else than 1 to GCX_MAX_CONNECTIONS */
    gcx_queue_source source;
    int32_t started; /* 1: CUDA has started in the process, and the number stays */
    int32_t certain; /* 0: CUDA had started before gcx looked, and the process had set the variable
                        anew, before that or after: connections is what it holds now */
    int32_t too_few; /* 1: there is one connection, with which all partitions wait as soon as one
                        stream does. Making a context then logs a GCX_LOG_WARNING, once */
} gcx_queue_info;
#define GCX_QUEUE_INFO_INIT GCX_STRUCT_INIT(gcx_queue_info)

/* Fills *info. Opens no driver: before one is open it looks at the one that would be opened and at
 * libcuda.so.1, if they are loaded; CUDA has started if somebody has called cuInit there. */
GCX_API gcx_result gcx_queue_get_info(gcx_queue_info* info);

/* Asks for connections, 1 to GCX_MAX_CONNECTIONS, before CUDA starts: sets
 * CUDA_DEVICE_MAX_CONNECTIONS in the process's environment, unless it holds as many or more. To be
 * called at the beginning of a program, before other threads run, since nothing may read the
 * environment meanwhile; processes that it starts inherit the number. Opens no driver. Succeeds
 * also once CUDA has started with as many or more.
 * CUDA reads the variable in cuInit, and not later (measured on 13.0).
 * Errors: GCX_ERROR_NOT_PERMITTED CUDA has started with fewer, or certain is 0: it is too late;
 * GCX_ERROR_INVALID_VALUE connections is 0 or more than GCX_MAX_CONNECTIONS. */
GCX_API gcx_result gcx_queue_request_connections(uint32_t connections);

/* ------------------------------------------------------------------------------------------
 * Graphs
 *
 * A CUDA graph keeps the SMs it was captured on, whatever stream launches it. A gcx_graph takes
 * one that was captured once, by whoever and wherever, and launches it on the SMs of any stream:
 * it makes one executable for each set of SMs, at the first launch there or ahead of time, and
 * keeps it. Nothing is captured again.
 *
 * What moves. Kernels of libraries (cudart, cuBLAS, cuLibrary) and of modules (Triton), with their
 *   arguments and attributes (clusters, cooperative, priority, programmatic launch), copies,
 *   memsets, host functions, events, external semaphores, empty nodes and child graphs. What was
 *   moved is read back and compared: a driver that does it otherwise is an error, never a wrong
 *   graph. Nodes that allocate or free memory and conditional nodes can't be moved, since CUDA
 *   copies no graph that has them, nor can batched memory operations and nodes that device code
 *   updates.
 *
 * Nodes have numbers, their place in gcx_graph_get_nodes: the order of cuGraphGetNodes, each child
 *   graph's nodes right behind the node that stands for it.
 *
 * Parts. A graph that forks over several partitions has several parts, each of which can have SMs
 *   of its own: one for each context that its kernels were captured in, numbered as they first
 *   appear, unless gcx_graph_set_part says otherwise. Copies and memsets, whose context CUDA does
 *   not tell, are of the part of the kernel nearest before them, or else after them.
 *
 * Grids. A kernel whose blocks wait for each other needs all of them on the SMs at once: at most
 *   blocks_per_sm of gcx_graph_node, times the partition's SMs. A cooperative launch that is larger
 *   is refused when the executable is made. One with a barrier of its own, which CUDA knows nothing
 *   of, is not, and hangs.
 *
 * Threads. One graph is launched from any number of threads. Launches of one executable run one
 *   after the other, as CUDA orders them; those of different sets of SMs run side by side, on the
 *   same memory. A graph may be changed while it is launched: each launch runs the graph as it was
 *   before a change or after it.
 * ---------------------------------------------------------------------------------------- */

struct CUgraph_st;
typedef struct gcx_graph_s* gcx_graph;

#define GCX_MAX_GRAPH_PARTS 16u
#define GCX_MAX_KERNEL_NAME                                                                        \
    256u /* bytes that are told of a kernel's name, its final 0 among them */
#define GCX_NO_NODE 0xffffffffu

/* Flags of a graph. */
#define GCX_GRAPH_NODE_PRIORITIES                                                                  \
    0x1u /* kernels run with the priorities that they were captured with, as in                    \
            PyTorch's graphs; else with that of the stream they are launched in */

typedef struct gcx_graph_params {
    uint32_t struct_size;
    uint32_t flags;           /* GCX_GRAPH_ */
    uint32_t max_executables; /* that are kept, the last used; 0: 16. Each holds its contexts, and
                                 some device memory: 0.12 MiB with 3 nodes on an H200 */
} gcx_graph_params;
#define GCX_GRAPH_PARAMS_INIT GCX_STRUCT_INIT(gcx_graph_params)

/* Takes a copy of a captured graph, a CUgraph or cudaGraph_t. captured stays the caller's, can be
 * destroyed or changed at once, and its own executables run on. params may be NULL. Reads each
 * node once. The handle is the caller's, to be given to gcx_graph_destroy. The green contexts of
 * gcx that kernels were captured in must still exist; they stay as long as the graph does.
 * Errors: GCX_ERROR_NOT_SUPPORTED a node can't be moved; the message has its kind and number;
 * GCX_ERROR_INVALID_RESOURCE_CONFIGURATION kernels of two devices, or of more than
 * GCX_MAX_GRAPH_PARTS contexts; GCX_ERROR_INVALID_CONTEXT the graph has no kernels, and no context
 * is current that would tell its device; GCX_ERROR_CONTEXT_IS_DESTROYED a context that kernels were
 * captured in was destroyed; GCX_ERROR_INVALID_VALUE unknown flags. */
GCX_API gcx_result gcx_graph_create(struct CUgraph_st* captured, const gcx_graph_params* params,
                                    gcx_graph* graph);

/* Gives the graph and its executables up. Work in flight finishes. Never waits for it. */
GCX_API gcx_result gcx_graph_destroy(gcx_graph graph);

/* Launches the graph in the stream, all parts on the SMs that the stream has now. Of a lease's
 * stream: a change of the lease waits for calls of this that are under way, so that the work is of
 * the SMs before or after it, and is waited for as all work of the stream is. In a stream of the
 * primary context, made by someone else, the graph runs as it was captured; in one of another
 * context, where that is.
 * The first launch on a set of SMs makes the executable, see gcx_graph_prepare; later ones cost
 * what cuGraphLaunch does.
 * Errors: those of gcx_graph_prepare; GCX_ERROR_INVALID_DEVICE the stream is of another device;
 * GCX_ERROR_CONTEXT_IS_DESTROYED the graph was captured in a context that someone else made and has
 * destroyed, and is to run there; GCX_ERROR_STREAM_CAPTURE_UNSUPPORTED the stream is capturing a
 * graph: add the captured graph to that as a child node instead. */
GCX_API gcx_result gcx_graph_launch(gcx_graph graph, gcx_stream stream);

/* The same of a graph with several parts: part i runs on the SMs of streams[i], for
 * streams[0 .. count - 1], and count is the number of parts. It is launched in streams[0]; it
 * runs behind what all the streams were given before, and what they are given afterwards runs
 * behind it. Parts with no order between them run side by side. */
GCX_API gcx_result gcx_graph_launch_parts(gcx_graph graph, const gcx_stream* streams,
                                          uint32_t count);

/* Makes the executable for resources[0 .. count - 1] ahead of time, and their contexts if there are
 * none: one SM resource for all parts, or one for each. flags is 0 or GCX_PREPARE_FOR_LEASES,
 * of launches in streams of leases. For a thread of the caller's. Costs what
 * cuGraphInstantiate does and a little more, 1.3 to 2 us a node, and holds up no launches of
 * executables that there are. A no-op if it is kept already. It keeps its contexts, as streams do.
 * Errors: those of gcx_context_create; GCX_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE a cooperative grid is
 * larger than the SMs hold; the message has the kernel's name, its grid and the largest;
 * GCX_ERROR_INVALID_VALUE count is neither 1 nor the number of parts; unknown flags;
 * GCX_ERROR_INVALID_DEVICE a resource of another device; GCX_ERROR_NOT_SUPPORTED the driver did
 * not move a node as it was told, the message says which. */
GCX_API gcx_result gcx_graph_prepare(gcx_graph graph, const gcx_resource* resources, uint32_t count,
                                     uint32_t flags);

/* Says which part nodes[0 .. count - 1] are of: one of those that there are, or the next. A child
 * graph's node stands for all of its nodes. Executables for several sets of SMs are given up. If
 * count is 0, nothing changes. A part that has lost all of its nodes stays, and runs nothing.
 * Errors: GCX_ERROR_INVALID_VALUE no such node; part is more than the number of parts, or
 * GCX_MAX_GRAPH_PARTS; part is the next, and count is 0. */
GCX_API gcx_result gcx_graph_set_part(gcx_graph graph, const uint32_t* nodes, uint32_t count,
                                      uint32_t part);

/* What a kernel is launched with. */
typedef struct gcx_kernel_params {
    uint32_t struct_size;
    uint32_t shared_bytes; /* dynamic shared memory of a block */
    uint32_t grid[3];      /* blocks */
    uint32_t block[3];     /* threads */
    const void* arguments; /* each at its place (cuFuncGetParamInfo), as in a C struct; NULL: those
                              that it has. Copied */
    uint64_t argument_bytes; /* at least to the end of the last */
} gcx_kernel_params;
#define GCX_KERNEL_PARAMS_INIT GCX_STRUCT_INIT(gcx_kernel_params)

/* Gives a kernel node other parameters, in the graph and all executables, or nowhere. Launches
 * from then on have them, work in flight has the former. Takes about a microsecond for each
 * executable where the driver changes executables, which it doesn't in child graphs; else the
 * executables are made anew.
 * Errors: GCX_ERROR_INVALID_VALUE no such node, or not a kernel's; arguments that are too short;
 * what the driver says of the parameters; those of gcx_graph_prepare. */
GCX_API gcx_result gcx_graph_set_kernel(gcx_graph graph, uint32_t node,
                                        const gcx_kernel_params* params);

/* Takes over all parameters of another captured graph with the same nodes and order, as of the same
 * code captured again, in all executables or nowhere. Parts stay. Kernels' parameters alone cost
 * a microsecond each and executable; whatever else differs has the executables made anew.
 * captured stays the caller's.
 * Errors: those of gcx_graph_create; GCX_ERROR_GRAPH_EXEC_UPDATE_FAILURE the nodes or their order
 * differ, the message says where. */
GCX_API gcx_result gcx_graph_update(gcx_graph graph, struct CUgraph_st* captured);

typedef struct gcx_graph_info {
    uint32_t struct_size;
    int32_t device;
    uint32_t flags;        /* GCX_GRAPH_ */
    uint32_t node_count;   /* those of child graphs too */
    uint32_t kernel_count; /* of these, kernels */
    uint32_t part_count;
    uint32_t executables; /* that are kept now */
    uint32_t max_executables;
    uint64_t launches; /* since it was created */
    uint64_t made;     /* executables made since then */
    uint64_t evicted;  /* of these, given up for max_executables */
} gcx_graph_info;
#define GCX_GRAPH_INFO_INIT GCX_STRUCT_INIT(gcx_graph_info)

/* Fills *info. */
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

/* A node. Grows at the end of reserved, never in size. */
typedef struct gcx_graph_node {
    gcx_graph_node_kind kind;
    uint32_t parent; /* number of the node whose child graph it is in; GCX_NO_NODE: none */
    uint32_t part;
    /* of kernels, else 0 */
    uint32_t cooperative;   /* 1: a cooperative launch */
    uint32_t grid[3];       /* blocks */
    uint32_t block[3];      /* threads */
    uint32_t cluster[3];    /* blocks; 0 without clusters */
    uint32_t shared_bytes;  /* dynamic shared memory of a block */
    uint32_t blocks_per_sm; /* that an SM holds at once, without others'. The largest grid whose
                               blocks may wait for each other is this times the partition's SMs */
    uint32_t reserved[9];   /* 0 */
    char name[256];         /* the kernel's, as compiled */
} gcx_graph_node;

/* The nodes in nodes[0 .. *count - 1]. capacity is the room in nodes, which may be NULL if that is
 * 0. Errors: GCX_ERROR_INVALID_VALUE capacity is too small: *count then holds what is needed. */
GCX_API gcx_result gcx_graph_get_nodes(gcx_graph graph, gcx_graph_node* nodes, uint32_t capacity,
                                       uint32_t* count);

/* ------------------------------------------------------------------------------------------
 * Probing: which SMs does it really run on?
 *
 * A kernel that fills the stream's SMs notes the number of each (%smid). Numbers are below
 * GCX_MAX_SMS. Probing launches kernels for well under a millisecond each, beside whatever runs.
 * Under MPS these numbers are virtual, each context's from 0 on (measured: 580): they tell how many
 * SMs a stream has, not which.
 * ---------------------------------------------------------------------------------------- */

#define GCX_MAX_SMS 1024u

/* The SMs that the stream's kernels run on, ascending, in sm_ids[0 .. *count - 1]. capacity is the
 * room in sm_ids, GCX_MAX_SMS suffices always. Waits for the stream. Probes again while fewer SMs
 * than promised were seen, a few times: other work may have held them. More SMs than promised are
 * reported as seen, and a warning logged: see gcx_device_get_shared_sms.
 * Errors: GCX_ERROR_INVALID_VALUE capacity is too small: *count then holds what is needed;
 * GCX_ERROR_STREAM_CAPTURE_UNSUPPORTED the stream is capturing a graph; GCX_ERROR_NOT_READY other
 * threads changed the stream's lease all the time. */
GCX_API gcx_result gcx_stream_probe_sms(gcx_stream stream, uint32_t* sm_ids, uint32_t capacity,
                                        uint32_t* count);

/* Reads which SMs each atom of a family holds, from a few contexts that are made for a moment and
 * not kept: 4 for an H100's coscheduled atoms, 7 for its fine ones, each with the cost of a first
 * context (above). Once a process and family, also if several threads ask at once; later calls
 * return at once. For
 * gcx_resource_get_sm_ids and for overlaps across families.
 * Errors: GCX_ERROR_INVALID_VALUE family isn't coscheduled, fine or max-cluster;
 * GCX_ERROR_NOT_SUPPORTED under MPS, where the numbers are virtual. */
GCX_API gcx_result gcx_device_map_sms(int32_t device, gcx_sm_family family);

/* Finds the SMs that all partitions of this process share because a module with dynamic parallelism
 * is loaded, in sm_ids[0 .. *count - 1], ascending; capacity as above. From then on kernels of
 * every green context of the process also run there, those made before included (compute
 * capability 9.x; measured on an H200: 2 SMs of the remainder atom, 124 and 125). Other
 * capabilities have none.
 *
 * Returns what gcx_stream_probe_sms has recognised in two disjoint partitions; if that is nothing,
 * makes contexts of two atoms, with the cost of a first one each, keeps them and probes both. Once
 * found, the SMs stay known, and later calls return at once. While none are found *count is 0:
 * modules load lazily, so call this after a kernel of the module was launched. Thread-safe.
 *
 * Errors:
 *   GCX_ERROR_INVALID_VALUE  capacity is too small: *count then holds what is needed
 *   GCX_ERROR_NOT_SUPPORTED  compute capability 9.x under MPS, where the numbers are virtual */
GCX_API gcx_result gcx_device_get_shared_sms(int32_t device, uint32_t* sm_ids, uint32_t capacity,
                                             uint32_t* count);

/* What gcx_verify saw of one stream. Grows at the end of reserved, never in size. */
typedef struct gcx_verified_stream {
    uint32_t sm_count;   /* SMs that it was promised: gcx_stream_info.sm_count */
    uint32_t seen_count; /* SMs that its kernels ran on */
    uint32_t ok;         /* 1: none of the problems is of this stream */
    uint32_t
        shared_lease;     /* 1: it follows a shared lease, whose SMs other shared leases may have */
    uint32_t reserved[4]; /* 0 */
    uint64_t seen[16];    /* those SMs: bit n % 64 of seen[n / 64] is SM n */
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
    uint64_t shared_by_all[16];  /* SMs of gcx_device_get_shared_sms that were seen beside others */
    char problems[4096];         /* in words, a line for each; the last says how many didn't fit */
} gcx_verification;
#define GCX_VERIFICATION_INIT GCX_STRUCT_INIT(gcx_verification)

/* Shows which SMs streams[0 .. count - 1] really run on, and whether that is what was promised:
 * probes each stream as gcx_stream_probe_sms does, one after the other, and compares.
 * results[0 .. count - 1] receives what was seen of each, in their order; it may be NULL. It is a
 * problem if a stream's kernels ran on more or fewer SMs than promised, if two streams share SMs,
 * unless both follow shared leases, and if all partitions share SMs because a module with dynamic
 * parallelism is loaded. The problems call the streams A, B, and so on. A problem is no error: the
 * result is GCX_SUCCESS, and verification->ok is 0. Simulated drivers prove nothing about a GPU.
 * Errors: GCX_ERROR_INVALID_VALUE count is 0, or the streams are of several devices; those of
 * gcx_stream_probe_sms. */
GCX_API gcx_result gcx_verify(const gcx_stream* streams, uint32_t count,
                              gcx_verified_stream* results, gcx_verification* verification);

/* The SMs that the resource holds, ascending, as gcx_device_map_sms found them. capacity as
 * above. None are of a resource of 0 SMs. Errors: GCX_ERROR_NOT_READY the family isn't mapped;
 * GCX_ERROR_NOT_SUPPORTED it is of a structured split, which can't be mapped: probe a stream of it;
 * GCX_ERROR_INVALID_RESOURCE_TYPE not an SM resource; GCX_ERROR_INVALID_VALUE capacity is too
 * small: *count then holds what is needed. */
GCX_API gcx_result gcx_resource_get_sm_ids(const gcx_resource* resource, uint32_t* sm_ids,
                                           uint32_t capacity, uint32_t* count);

/* The atom at an index, 0 to atom_count - 1 of gcx_resource_get_info, as a resource of its own.
 * Errors: GCX_ERROR_INVALID_VALUE no such atom; GCX_ERROR_INVALID_RESOURCE_TYPE not an SM resource.
 */
GCX_API gcx_result gcx_resource_get_atom(const gcx_resource* resource, uint32_t index,
                                         gcx_resource* atom);

/* ------------------------------------------------------------------------------------------
 * The driver
 * ---------------------------------------------------------------------------------------- */

/* Chooses the driver library, before anything opened another. driver is
 *   NULL or ""     the one that is open; else the environment's GCX_DRIVER, if that is set, read as
 *                  below; else libcuda.so.1
 *   "sim:SPEC"     the simulated driver, e.g. "sim:h100@13.0", "sim:2xh100@12.4" or
 *                  "sim:FILE" with what `gcx info --record` wrote
 *   anything else  a path or name for dlopen
 * and opens it, unless it is open already. Calling it is optional: the first function that needs
 * the driver opens it as with NULL. Nothing falls back in silence: without a driver each call says
 * so, and the next tries again.
 * Errors: GCX_ERROR_ALREADY_ACQUIRED another driver is open, for the rest of the process; those of
 * opening (top). */
GCX_API gcx_result gcx_driver_open(const char* driver);

typedef struct gcx_driver_info {
    uint32_t struct_size;
    int32_t version;        /* of the driver, as cuDriverGetVersion gives it: 13000 is CUDA 13.0 */
    int32_t header_version; /* CUDA_VERSION of the cuda.h that gcx was built with */
    int32_t simulated;      /* 1: no GPU is involved */
    char library[256];      /* what was opened */
} gcx_driver_info;
#define GCX_DRIVER_INFO_INIT GCX_STRUCT_INIT(gcx_driver_info)

/* Fills *info. Errors: those of opening. */
GCX_API gcx_result gcx_driver_get_info(gcx_driver_info* info);

/* What a driver can do. Where it makes no streams of green contexts, has no ids for them or tells
 * no details of resources, gcx has a way of its own or does without. What needs another one that
 * is lacking answers GCX_ERROR_NOT_SUPPORTED. */
typedef enum gcx_capability GCX_ENUM_OF_INT {
    GCX_CAPABILITY_GREEN_CONTEXTS = 0, /* 12.4: everything that isn't named here */
    GCX_CAPABILITY_STREAM_CREATE = 1,  /* 12.5: the driver makes a stream from a green context. gcx
                                          makes streams on every driver; before 12.5 by making
                                          the context current for a moment */
    GCX_CAPABILITY_CONTEXT_ID = 2,     /* 13.0: cuGreenCtxGetId */
    GCX_CAPABILITY_RESOURCE_DETAILS = 3, /* 13.0: the driver tells minimum and alignment of an SM
                                            resource. Before, gcx derives them */
    GCX_CAPABILITY_STRUCTURED_SPLIT = 4, /* 13.1: coscheduled counts in gcx_sm_request, backfill */
    GCX_CAPABILITY_WORKQUEUES = 5,       /* 13.1: workqueue resources */
    GCX_CAPABILITY_STREAM_RESOURCE = 6,  /* 13.1: the driver tells a stream's resources. gcx tells
                                            those of its own streams on every driver */
    GCX_CAPABILITY_LOCALITY_DOMAINS = 7, /* 13.4: locality domains in gcx_sm_request */
    GCX_CAPABILITY_COUNT = 8
} gcx_capability;

typedef struct gcx_capability_info {
    uint32_t struct_size;
    int32_t available;        /* 1: the open driver has it */
    int32_t required_version; /* of the driver: 13010 is CUDA 13.1 */
    const char* name;         /* "structured split"; lives as long as the library */
} gcx_capability_info;
#define GCX_CAPABILITY_INFO_INIT GCX_STRUCT_INIT(gcx_capability_info)

/* Fills *info. Errors: GCX_ERROR_INVALID_VALUE no such capability; those of opening. A driver
 * that is too old for green contexts is one of the latter. */
GCX_API gcx_result gcx_capability_get_info(gcx_capability capability, gcx_capability_info* info);

/* The path of the simulated driver that "sim:" opens, for programs that start others on it. The
 * string belongs to the thread and is valid until its next call of this. NULL if it isn't
 * installed; gcx_last_error_message() then says where it was looked for. Opens no driver. */
GCX_API const char* gcx_simulator_path(void);

/* ------------------------------------------------------------------------------------------
 * Counts
 *
 * CUDA tells a program the device's number of SMs whatever partition is current, so that
 * libraries plan for SMs that they don't have: inside 108 of an H200's 132 SMs a prefill took
 * 66.7 ms, and 57.8 with the right count (measured, a whole process in one partition). Inside
 * `gcx exec` that count is told anyway. A process that uses gcx itself asks for it:
 *
 *   - A thread in which a green context is current, by gcx_context_push or otherwise, is told that
 *     context's SMs as CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT of its device, and
 *     cuOccupancyMaxPotentialBlockSize answers the grid for them; by cudart's functions too. Any
 *     other thread is told what it was told before.
 *   - Libraries ask when they set something up, and keep the answer, cuBLAS that of the process's
 *     first handle for all handles (measured); cublasSetSmCountTarget is a handle's own. See
 *     docs/counts.md for what keeps it when.
 *   - A cuBLAS before 13.10 is told the device's count all the same: told a partition's, 13.1
 *     leaves parts of products unwritten (measured). With such a target it is right.
 *   - Nothing is moved: what a stream runs on is as before.
 * ---------------------------------------------------------------------------------------- */

/* Puts a library before libcuda in this process that answers as above, for every library that
 * opens libcuda.so.1 from now on and for all time. It must come before anything loads libcuda.so.1:
 * before the first call of gcx that opens the driver, before cudart's first call, from Python
 * before torch, cupy or jax is imported. Code that opens libcuda by a path gets it as it is.
 * Launches and copies don't pass through that library; the attribute above and cuGetProcAddress do.
 * Doing it twice does it once. To find libcuda's path it may start a child process for a moment.
 * Errors: GCX_ERROR_NOT_PERMITTED libcuda.so.1 is loaded already; GCX_ERROR_FILE_NOT_FOUND
 * libgcx-counts.so, or the simulated driver that GCX_DRIVER names, isn't installed;
 * GCX_ERROR_SHARED_OBJECT_INIT_FAILED there is no driver library, or it can't be loaded;
 * GCX_ERROR_OPERATING_SYSTEM no file can be made. */
GCX_API gcx_result gcx_driver_report_partition_counts(void);

/* *reporting is 1 once gcx_driver_report_partition_counts has succeeded in this process, else 0.
 * Opens no driver. */
GCX_API gcx_result gcx_driver_reports_partition_counts(int32_t* reporting);

/* ------------------------------------------------------------------------------------------
 * Version and messages
 * ---------------------------------------------------------------------------------------- */

/* The version of the library that runs, as GCX_VERSION is made: 10000 * major + 100 * minor +
 * patch. Compare with GCX_VERSION to tell a library older than the header. Opens no driver and
 * can't fail. */
GCX_API uint32_t gcx_version(void);

/* "GCX_ERROR_INVALID_VALUE" for GCX_ERROR_INVALID_VALUE; "GCX_ERROR_UNRECOGNIZED" for a number that
 * this version has no name for. The string lives as long as the library. Opens no driver. */
GCX_API const char* gcx_result_name(gcx_result result);

/* What the result means in general, in one sentence. Lifetime as above. */
GCX_API const char* gcx_result_string(gcx_result result);

/* What went wrong in the last gcx function that failed in the calling thread: what was wrong,
 * the values, what would work. Empty if none failed. The string belongs to the thread and is valid
 * until its next gcx function fails; success leaves it alone. Opens no driver. */
GCX_API const char* gcx_last_error_message(void);

/* ------------------------------------------------------------------------------------------
 * Diagnostics
 * ---------------------------------------------------------------------------------------- */

typedef enum gcx_log_level GCX_ENUM_OF_INT {
    GCX_LOG_NONE = 0,
    GCX_LOG_ERROR = 1,   /* something was lost or left behind */
    GCX_LOG_WARNING = 2, /* it works, but likely not as meant */
    GCX_LOG_INFO = 3,    /* which driver was opened, contexts made and given back */
    GCX_LOG_DEBUG = 4    /* every failed call and its message */
} gcx_log_level;

/* message is valid during the call only. It is called at the end of the function that has something
 * to say, in its thread, so from several threads at once. gcx holds no lock then, so that it may
 * take the application's, also those under which other threads call gcx. It must not call gcx. */
typedef void (*gcx_log_callback)(gcx_log_level level, const char* message, void* user_data);

/* Sends diagnostics up to level to callback. NULL goes back to the default: nothing is
 * printed, unless the environment's GCX_LOG is error, warning, info or debug, which prints to
 * standard error. When the call returns, the callback before is no longer running and won't be
 * called again: it waits for that. So the one rule: call it with no lock held that the callback
 * before takes. Other functions wait for no callback.
 * Errors: GCX_ERROR_INVALID_VALUE level is none of gcx_log_level; GCX_ERROR_NOT_PERMITTED called
 * from a log callback, whose end it would have to wait for. */
GCX_API gcx_result gcx_log_set_callback(gcx_log_level level, gcx_log_callback callback,
                                        void* user_data);

#ifdef __cplusplus
}
#endif

#endif

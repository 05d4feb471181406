/* gcx/diagnostics.h - driver, queues, reported counts, probes, published leases and the log. */
#ifndef GCX_DIAGNOSTICS_H
#define GCX_DIAGNOSTICS_H

#include "lease.h"

#ifdef __cplusplus
extern "C" {
#endif

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
 * Errors: the driver's from cuInit, and
 *   GCX_ERROR_DRIVER_ALREADY_OPEN             another driver is open, for the rest of the process
 *   GCX_ERROR_SHARED_OBJECT_INIT_FAILED       the library cannot be loaded: no driver is installed,
 *                                             or the path is wrong
 *   GCX_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND  the library is not a CUDA driver, or lacks a function
 *                                             of its version
 *   GCX_ERROR_NOT_SUPPORTED                   the driver is older than CUDA 12.4
 *   GCX_ERROR_NO_DEVICE                       the driver has no device, or CUDA_VISIBLE_DEVICES
 *                                             hides all
 *   GCX_ERROR_FILE_NOT_FOUND                  the simulated driver is not installed
 *   GCX_ERROR_INVALID_VALUE                   the SPEC or its FILE is invalid */
GCX_API gcx_result gcx_driver_open(const char* driver);

/* What a driver can do, each with the driver version that has it first. Functions that need a
 * missing capability fail with GCX_ERROR_NOT_SUPPORTED, except where gcx has a substitute. */
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

typedef struct gcx_driver_info {
    uint32_t struct_size;
    int32_t version;          /* of the driver, as from cuDriverGetVersion: 13000 is CUDA 13.0 */
    int32_t header_version;   /* CUDA_VERSION of the cuda.h that gcx was built with */
    int32_t simulated;        /* 1: the simulated driver */
    char library[256];        /* what was opened */
    uint8_t capabilities[32]; /* by gcx_capability; 1: the driver has it */
} gcx_driver_info;
#define GCX_DRIVER_INFO_INIT GCX_STRUCT_INIT(gcx_driver_info)

/* Returns the properties of the driver. */
GCX_API gcx_result gcx_driver_get_info(gcx_driver_info* info);

/* Returns the path of the simulated driver that "sim:" opens, for programs that start others on it;
 * NULL if it is not installed, with the searched places in gcx_last_error_message(). The string
 * belongs to the thread and is valid until the thread calls this again. Opens no driver. */
GCX_API const char* gcx_simulator_path(void);

/* ------------------------------------------------------------------------------------------
 * Queues
 *
 * All partitions of a process share its hardware queues. CUDA opens as many as
 * CUDA_DEVICE_MAX_CONNECTIONS in the environment says when it starts: the connections. A stream
 * occupies one while its first pending operation waits for the kernel ahead of it, an event, or a
 * branch of its graph. While all are occupied, every other launch of the process waits, whatever
 * SMs it has (measured; docs/explanation/concepts.md). [13.1+] Contexts can have workqueues of
 * their own.
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
    int32_t certain; /* 0: CUDA started before gcx looked, and the process has changed the variable:
                        connections is its present value */
    int32_t too_few; /* 1: there is one connection: all partitions wait as soon as one stream waits.
                        Creating a context then logs a GCX_LOG_WARNING, once */
} gcx_queue_info;
#define GCX_QUEUE_INFO_INIT GCX_STRUCT_INIT(gcx_queue_info)

/* Returns the number of connections. Opens no driver: if none is open, looks for a libcuda that the
 * process has loaded, and asks it whether cuInit was called. */
GCX_API gcx_result gcx_queue_get_info(gcx_queue_info* info);

/* Requests connections, 1 to GCX_MAX_CONNECTIONS, before CUDA starts: sets
 * CUDA_DEVICE_MAX_CONNECTIONS in the process's environment unless it is as large already. CUDA
 * reads it in cuInit and never again (measured on 13.0). Call it at the start of the program,
 * before other threads can read the environment. Child processes inherit the number. Opens no
 * driver. Succeeds after CUDA has started if there are enough connections.
 *
 * Errors:
 *   GCX_ERROR_TOO_LATE       CUDA has started with fewer, or certain is 0
 *   GCX_ERROR_INVALID_VALUE  connections is 0 or greater than GCX_MAX_CONNECTIONS */
GCX_API gcx_result gcx_queue_request_connections(uint32_t connections);

/* ------------------------------------------------------------------------------------------
 * Reported SM counts
 *
 * CUDA reports the device's SM count whatever partition is current, so libraries size their kernels
 * for SMs that they do not have. docs/explanation/counts.md has the figures, and says which
 * libraries keep the count that they read first. With gcx_driver_report_partition_counts(), in a
 * thread in which a green context is current, the device's SM count is that context's. cuBLAS
 * versions before 13.10 still see the full device, since they compute wrong results with a
 * partition's count (measured).
 * ---------------------------------------------------------------------------------------- */

/* Loads a library in front of libcuda that reports partition counts as described above, for every
 * library that opens libcuda.so.1 later, until the process ends. Call it before anything loads
 * libcuda.so.1: before gcx opens the driver, before cudart's first call, in Python before torch,
 * cupy or jax is imported. Code that opens libcuda by a path sees the device's count. Launches and
 * copies do not pass through that library. A second call does nothing. To find libcuda's path it
 * may start a short-lived child process.
 *
 * Errors:
 *   GCX_ERROR_TOO_LATE                   libcuda.so.1 is loaded already, or gcx has opened a driver
 *   GCX_ERROR_FILE_NOT_FOUND             libgcx-counts.so, or the simulated driver that GCX_DRIVER
 *                                        names, is not installed
 *   GCX_ERROR_SHARED_OBJECT_INIT_FAILED  there is no driver library, or it cannot be loaded
 *   GCX_ERROR_OPERATING_SYSTEM           a file cannot be created */
GCX_API gcx_result gcx_driver_report_partition_counts(void);

/* ------------------------------------------------------------------------------------------
 * Probing
 *
 * A probe is a kernel that records the number of each SM that a stream runs on (%smid), in well
 * under a millisecond, concurrently with other work. Numbers are below GCX_MAX_SMS. Under MPS they
 * are virtual, from 0 on in each context: they tell how many SMs a stream has, not which
 * (measured).
 * ---------------------------------------------------------------------------------------- */

#define GCX_MAX_SMS 1024u

/* Returns the SMs that the stream's kernels run on, ascending. A capacity of GCX_MAX_SMS is always
 * enough. Waits for the stream. If fewer SMs than promised were seen, probes again, a few times:
 * other work can occupy them. More SMs than promised are returned as seen; if they can be those of
 * gcx_device_find_shared_sms(), the log has a warning.
 *
 * Errors:
 *   GCX_ERROR_STREAM_CAPTURE_UNSUPPORTED  the stream captures a graph
 *   GCX_ERROR_TIMEOUT                     other threads resized the stream's lease continuously */
GCX_API gcx_result gcx_stream_probe_sms(gcx_stream stream, uint32_t* sm_ids, uint32_t capacity,
                                        uint32_t* count);

/* Reads which SMs each atom of a family has, for gcx_resource_get_sm_ids() and for overlaps across
 * families. Creates a few temporary contexts, each at the cost of a first context: 4 for an H100's
 * coscheduled atoms, 7 for its fine ones. Does so once in a process for each family; later calls
 * return at once.
 *
 * Errors: those of gcx_context_create, and
 *   GCX_ERROR_INVALID_DEVICE  there is no such device
 *   GCX_ERROR_INVALID_VALUE   family is not coscheduled, fine or max-cluster
 *   GCX_ERROR_NOT_SUPPORTED   under MPS, where the numbers are virtual; the device has no
 *                             max-cluster family
 *   GCX_ERROR_TIMEOUT         other work occupied SMs continuously: call it when the device is
 *                             idle, before a module with dynamic parallelism is loaded */
GCX_API gcx_result gcx_device_map_sms(int32_t device, gcx_sm_family family);

/* Finds the SMs that all partitions of this process share because a module with dynamic parallelism
 * is loaded, ascending. From then on kernels of every green context of the process also run there,
 * those created before included (compute capability 9.x; measured on an H200: 2 SMs of the
 * remainder atom, 124 and 125). Other compute capabilities have none.
 *
 * Returns what gcx_stream_probe_sms() has recognised in two disjoint partitions. If that is
 * nothing, creates contexts over two single atoms, at the cost of a first one each, caches them and
 * probes both. Once found, the SMs stay known, and later calls return at once. While none are found
 * *count is 0. Modules load lazily, so call this after a kernel of the module was launched.
 *
 * Errors: those of gcx_context_create, and
 *   GCX_ERROR_INVALID_DEVICE  there is no such device
 *   GCX_ERROR_NOT_SUPPORTED   compute capability 9.x under MPS, where the numbers are virtual */
GCX_API gcx_result gcx_device_find_shared_sms(int32_t device, uint32_t* sm_ids, uint32_t capacity,
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
    uint64_t shared_by_all[16];  /* SMs of gcx_device_find_shared_sms() that were seen */
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
 *   GCX_ERROR_SMS_NOT_MAPPED         the family is not mapped
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
 * Published leases
 *
 * A process can publish its leases for `gcx top` and for other processes of the same user: after
 * gcx_publish_start(), or if GCX_PUBLISH in the environment is 1 or a name when the driver is
 * opened. The lists open no driver, need no GPU and work in a forked child. The entries of one
 * process are a consistent snapshot. Invalid files are skipped with a warning in the log. The
 * files are in /dev/shm/gcx-UID (mode 700) or in user-UID below GCX_RESERVATION_DIR.
 * ---------------------------------------------------------------------------------------- */

#define GCX_MAX_PROCESS_NAME 64u /* bytes of a process's name, including the final 0 */

/* Publishes this process's leases, present and future, up to 512 at a time. name is for lists and
 * is copied; NULL: the program's name. If the process publishes already, changes the name. Opens
 * the driver.
 *
 * Errors:
 *   GCX_ERROR_UNSAFE_FOLDER     the folder is a link, belongs to another user or is open to others
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
    uint32_t library;        /* the process's gcx_version() */
    uint32_t context_count;  /* green contexts that exist, in use or cached */
    /* Since the process opened the driver. */
    uint64_t contexts_created; /* green contexts created */
    uint64_t contexts_evicted; /* of these, destroyed by the cache's limit and by gcx_cache_trim */
    uint64_t resize_count;     /* operations that changed the SMs of leases, without releases */
    uint64_t wait_count;       /* requests for leases that waited, including those that wait now */
    uint64_t waited_ns;        /* nanoseconds that requests waited, without those that wait now */
    uint32_t reserved[6];      /* 0 */
    char name[64];             /* any bytes: escape them for display */
} gcx_published_process;

/* Lists the processes that publish, including this one. Opens no driver. processes may be NULL if
 * capacity is 0. If the user's own folder is missing, the list is empty.
 *
 * Errors: those of gcx_publish_start about the folder. */
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
 *   GCX_ERROR_IN_CALLBACK    called from a log callback */
GCX_API gcx_result gcx_log_set_callback(gcx_log_level level, gcx_log_callback callback,
                                        void* user_data);

#ifdef __cplusplus
}
#endif

#endif

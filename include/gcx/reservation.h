/* gcx/reservation.h - SMs that no other process has. Included by gcx.h. */
#ifndef GCX_RESERVATION_H
#define GCX_RESERVATION_H

#include "lease.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------------------------------
 * Reservations
 *
 * A reservation is a set of SMs that no other process of the host has, among the processes that use
 * the same folder. It isolates under MPS; without MPS processes take turns on the whole device, the
 * reservation succeeds and the log has a warning. docs/explanation/reservations.md has the
 * guarantees.
 *
 * Lifetime. A reservation is a file that its processes keep locked. It ends when its last process
 *   has released it or ended, however that ended. A forked child and a program started by exec do
 *   not share it unless they join or GCX_RESERVATION_INHERIT is set.
 * Queue and placement. As for leases, for each device.
 * Leases. gcx_lease_params.reservation acquires a lease within the reservation's SMs.
 * Folder. gcx_reservation_params.folder; if that is NULL, GCX_RESERVATION_DIR in the environment;
 *   if that is not set, /dev/shm/gcx-UID, which gcx creates with mode 700. A named folder must
 *   exist and be the user's own with mode 700, or a group's with mode 2770 or 3770.
 * Inside gcx exec. A reservation that its programs acquire is a part of gcx exec's: within it, of
 *   its family and in its folder, disjoint from its other parts.
 * ---------------------------------------------------------------------------------------- */

#define GCX_MAX_RESERVATION_TOKEN 4096u /* bytes of a token, including the final 0 */

/* For launchers: forked children, and programs that they or this process start by exec, share the
 * reservation until they end or close its descriptor. */
#define GCX_RESERVATION_INHERIT 0x1u

typedef struct gcx_reservation_params {
    uint32_t struct_size;
    uint32_t flags;        /* GCX_RESERVATION_ */
    gcx_sm_family family;  /* GCX_SM_FAMILY_NONE: coscheduled, inside gcx exec the partition's; not
                              the structured family */
    uint32_t min_sm_count; /* smallest acceptable SM count; 0: the requested count, or one atom
                              with GCX_REST */
    uint32_t timeout_ms;   /* milliseconds to wait for the SMs; 0: do not wait; GCX_FOREVER */
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
 *   GCX_ERROR_ALREADY_ACQUIRED  other processes have the SMs or wait for them, and timeout_ms is
 *                               0; the message names them
 *   GCX_ERROR_TIMEOUT           the same, still after timeout_ms; or other processes had the folder
 *                               locked all that time, or, before the request was in the queue, for
 *                               5 s without a change, as when one was stopped in the middle of a
 *                               change
 *   GCX_ERROR_CANCELLED         gcx_cancel_signal() was called
 *   GCX_ERROR_UNSAFE_FOLDER     the folder belongs to another user or is open to others, or
 *                               /dev/shm/gcx-UID is a link
 *   GCX_ERROR_CORRUPT_FILE      a file cannot be read, or is invalid and a live process keeps it
 *                               locked, so the SMs of its reservation are not known
 *   GCX_ERROR_OPERATING_SYSTEM  the folder is missing, full or read-only; files in it were removed
 *                               during the call; /dev/shm/gcx-UID was removed while a process has a
 *                               reservation in it
 *   GCX_ERROR_INVALID_RESOURCE_CONFIGURATION  the device, or inside gcx exec the partition, has
 *                               fewer SMs or is of another family
 *   GCX_ERROR_NOT_SUPPORTED     the device has no max-cluster family; inside gcx exec, the driver
 *                               divides the partition into other atoms than the device
 *   GCX_ERROR_NOT_FOUND         inside gcx exec, the partition's reservation has ended
 *   GCX_ERROR_INVALID_DEVICE    there is no such device
 *   GCX_ERROR_INVALID_VALUE     sm_count is 0; the family has no reservations; the name or path is
 *                               too long; the path is not absolute; min_sm_count is greater than
 *                               sm_count; inside gcx exec, folder is not that of the partition */
GCX_API gcx_result gcx_reservation_acquire(int32_t device, uint32_t sm_count,
                                           const gcx_reservation_params* params,
                                           gcx_reservation* reservation);

/* Writes the token with which another process joins the reservation: text for its environment or
 * command line. It is the path of the reservation's file. capacity is the room in token, in bytes;
 * GCX_MAX_RESERVATION_TOKEN is always enough.
 *
 * Errors:
 *   GCX_ERROR_INSUFFICIENT_CAPACITY  capacity is too small */
GCX_API gcx_result gcx_reservation_get_token(gcx_reservation reservation, char* token,
                                             uint32_t capacity);

/* Joins a reservation of another process, or of this one. The reservation lasts until all that
 * joined it have released it. Opens no driver, and works in a forked child.
 *
 * Errors:
 *   GCX_ERROR_NOT_FOUND         the reservation has ended, never existed or still waits for its SMs
 *   GCX_ERROR_INVALID_VALUE     token is not a token
 *   GCX_ERROR_TIMEOUT           other processes had the folder locked for 5 s
 *   GCX_ERROR_CORRUPT_FILE      the reservation's file is invalid or cannot be read
 *   GCX_ERROR_UNSAFE_FOLDER, GCX_ERROR_OPERATING_SYSTEM  as for gcx_reservation_acquire */
GCX_API gcx_result gcx_reservation_join(const char* token, gcx_reservation* reservation);

/* Releases the reservation. If no other process joined it and no lease in it is left, other
 * processes can have its SMs at once. Then waits up to 300 ms for the folder, to remove the file. A
 * forked child has none of its parent's handles. */
GCX_API gcx_result gcx_reservation_release(gcx_reservation reservation);

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
    float mps_thread_percentage; /* the same, as in gcx_device_info */
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
 *                        CUDA_MPS_ACTIVE_THREAD_PERCENTAGE and that one was not; inside gcx exec,
 *                        the reservation has SMs outside of the partition */
GCX_API gcx_result gcx_reservation_get_resource(gcx_reservation reservation,
                                                gcx_resource* resource);

/* Describes a reservation of any process, or a request that waits for one. */
typedef struct gcx_live_reservation {
    uint64_t id;       /* a random number that identifies the reservation */
    uint64_t since_ms; /* milliseconds since 1970 when it was acquired or the wait began */
    uint64_t until_ms; /* of a waiting request: when it times out; 0: never */
    int32_t pid;       /* the process that acquired it, or, once that has ended, another one that
                          shares it; 0: none is visible, as from another container */
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
    float mps_thread_percentage; /* the same, as in gcx_device_info */
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
 * GPU. If a reservation with GCX_RESERVATION_INHERIT has no process, waits up to 100 ms for one that
 * is starting, and then removes the file; changes nothing else in the folder. Invalid files are
 * skipped with a warning in the log. If the user's own folder is missing, the list is empty.
 *
 * Errors:
 *   GCX_ERROR_UNSAFE_FOLDER, GCX_ERROR_OPERATING_SYSTEM  as for gcx_reservation_acquire
 *   GCX_ERROR_INVALID_VALUE  the folder's path is not absolute or too long */
GCX_API gcx_result gcx_reservation_list(const char* folder, gcx_live_reservation* reservations,
                                        uint32_t capacity, uint32_t* count);

#ifdef __cplusplus
}
#endif

#endif

/* gcx/common.h - results, versions, messages, and what every other header of gcx uses. */
#ifndef GCX_COMMON_H
#define GCX_COMMON_H

#include <stddef.h>
#include <stdint.h>

/* ------------------------------------------------------------------------------------------
 * Version
 * ---------------------------------------------------------------------------------------- */

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
 * and CUfunction are pointers to these. cudaStream_t and cudaEvent_t are the same pointers.
 * CUdevResource is a struct of 144 bytes. */
struct CUctx_st;
struct CUgreenCtx_st;
struct CUstream_st;
struct CUevent_st;
struct CUfunc_st;
struct CUdevResource_st;

/* ------------------------------------------------------------------------------------------
 * Results
 * ---------------------------------------------------------------------------------------- */

/* C lets a caller pass any int as an enum; so does C++ with this. */
#ifdef __cplusplus
#define GCX_ENUM_OF_INT : int
#else
#define GCX_ENUM_OF_INT
#endif

/* Below 10000, numbers and names are CUresult's. From 10000 on they are gcx's own, for conditions
 * that CUDA has no result for. */
typedef enum gcx_result GCX_ENUM_OF_INT {
    GCX_SUCCESS = 0,
    GCX_ERROR_INVALID_VALUE = 1,
    GCX_ERROR_OUT_OF_MEMORY = 2,
    GCX_ERROR_NOT_INITIALIZED = 3,
    GCX_ERROR_DEINITIALIZED = 4,
    GCX_ERROR_PROFILER_DISABLED = 5,
    GCX_ERROR_PROFILER_NOT_INITIALIZED = 6,
    GCX_ERROR_PROFILER_ALREADY_STARTED = 7,
    GCX_ERROR_PROFILER_ALREADY_STOPPED = 8,
    GCX_ERROR_STUB_LIBRARY = 34,
    GCX_ERROR_CALL_REQUIRES_NEWER_DRIVER = 36,
    GCX_ERROR_DEVICE_UNAVAILABLE = 46,
    GCX_ERROR_MULTICAST_RESOURCE_FULL = 47,
    GCX_ERROR_NO_DEVICE = 100,
    GCX_ERROR_INVALID_DEVICE = 101,
    GCX_ERROR_DEVICE_NOT_LICENSED = 102,
    GCX_ERROR_INVALID_IMAGE = 200,
    GCX_ERROR_INVALID_CONTEXT = 201,
    GCX_ERROR_CONTEXT_ALREADY_CURRENT = 202,
    GCX_ERROR_MAP_FAILED = 205,
    GCX_ERROR_UNMAP_FAILED = 206,
    GCX_ERROR_ARRAY_IS_MAPPED = 207,
    GCX_ERROR_ALREADY_MAPPED = 208,
    GCX_ERROR_NO_BINARY_FOR_GPU = 209,
    GCX_ERROR_ALREADY_ACQUIRED = 210,
    GCX_ERROR_NOT_MAPPED = 211,
    GCX_ERROR_NOT_MAPPED_AS_ARRAY = 212,
    GCX_ERROR_NOT_MAPPED_AS_POINTER = 213,
    GCX_ERROR_ECC_UNCORRECTABLE = 214,
    GCX_ERROR_UNSUPPORTED_LIMIT = 215,
    GCX_ERROR_CONTEXT_ALREADY_IN_USE = 216,
    GCX_ERROR_PEER_ACCESS_UNSUPPORTED = 217,
    GCX_ERROR_INVALID_PTX = 218,
    GCX_ERROR_INVALID_GRAPHICS_CONTEXT = 219,
    GCX_ERROR_NVLINK_UNCORRECTABLE = 220,
    GCX_ERROR_JIT_COMPILER_NOT_FOUND = 221,
    GCX_ERROR_UNSUPPORTED_PTX_VERSION = 222,
    GCX_ERROR_JIT_COMPILATION_DISABLED = 223,
    GCX_ERROR_UNSUPPORTED_EXEC_AFFINITY = 224,
    GCX_ERROR_UNSUPPORTED_DEVSIDE_SYNC = 225,
    GCX_ERROR_CONTAINED = 226,
    GCX_ERROR_INSUFFICIENT_LOADER_VERSION = 227,
    GCX_ERROR_INVALID_SOURCE = 300,
    GCX_ERROR_FILE_NOT_FOUND = 301,
    GCX_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND = 302,
    GCX_ERROR_SHARED_OBJECT_INIT_FAILED = 303,
    GCX_ERROR_OPERATING_SYSTEM = 304,
    GCX_ERROR_INVALID_HANDLE = 400,
    GCX_ERROR_ILLEGAL_STATE = 401,
    GCX_ERROR_LOSSY_QUERY = 402,
    GCX_ERROR_NOT_FOUND = 500,
    GCX_ERROR_NOT_READY = 600,
    GCX_ERROR_ILLEGAL_ADDRESS = 700,
    GCX_ERROR_LAUNCH_OUT_OF_RESOURCES = 701,
    GCX_ERROR_LAUNCH_TIMEOUT = 702,
    GCX_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING = 703,
    GCX_ERROR_PEER_ACCESS_ALREADY_ENABLED = 704,
    GCX_ERROR_PEER_ACCESS_NOT_ENABLED = 705,
    GCX_ERROR_PRIMARY_CONTEXT_ACTIVE = 708,
    GCX_ERROR_CONTEXT_IS_DESTROYED = 709,
    GCX_ERROR_ASSERT = 710,
    GCX_ERROR_TOO_MANY_PEERS = 711,
    GCX_ERROR_HOST_MEMORY_ALREADY_REGISTERED = 712,
    GCX_ERROR_HOST_MEMORY_NOT_REGISTERED = 713,
    GCX_ERROR_HARDWARE_STACK_ERROR = 714,
    GCX_ERROR_ILLEGAL_INSTRUCTION = 715,
    GCX_ERROR_MISALIGNED_ADDRESS = 716,
    GCX_ERROR_INVALID_ADDRESS_SPACE = 717,
    GCX_ERROR_INVALID_PC = 718,
    GCX_ERROR_LAUNCH_FAILED = 719,
    GCX_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE = 720,
    GCX_ERROR_TENSOR_MEMORY_LEAK = 721,
    GCX_ERROR_NOT_PERMITTED = 800,
    GCX_ERROR_NOT_SUPPORTED = 801,
    GCX_ERROR_SYSTEM_NOT_READY = 802,
    GCX_ERROR_SYSTEM_DRIVER_MISMATCH = 803,
    GCX_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE = 804,
    GCX_ERROR_MPS_CONNECTION_FAILED = 805,
    GCX_ERROR_MPS_RPC_FAILURE = 806,
    GCX_ERROR_MPS_SERVER_NOT_READY = 807,
    GCX_ERROR_MPS_MAX_CLIENTS_REACHED = 808,
    GCX_ERROR_MPS_MAX_CONNECTIONS_REACHED = 809,
    GCX_ERROR_MPS_CLIENT_TERMINATED = 810,
    GCX_ERROR_CDP_NOT_SUPPORTED = 811,
    GCX_ERROR_CDP_VERSION_MISMATCH = 812,
    GCX_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900,
    GCX_ERROR_STREAM_CAPTURE_INVALIDATED = 901,
    GCX_ERROR_STREAM_CAPTURE_MERGE = 902,
    GCX_ERROR_STREAM_CAPTURE_UNMATCHED = 903,
    GCX_ERROR_STREAM_CAPTURE_UNJOINED = 904,
    GCX_ERROR_STREAM_CAPTURE_ISOLATION = 905,
    GCX_ERROR_STREAM_CAPTURE_IMPLICIT = 906,
    GCX_ERROR_CAPTURED_EVENT = 907,
    GCX_ERROR_STREAM_CAPTURE_WRONG_THREAD = 908,
    GCX_ERROR_TIMEOUT = 909,
    GCX_ERROR_GRAPH_EXEC_UPDATE_FAILURE = 910,
    GCX_ERROR_EXTERNAL_DEVICE = 911,
    GCX_ERROR_INVALID_CLUSTER_SIZE = 912,
    GCX_ERROR_FUNCTION_NOT_LOADED = 913,
    GCX_ERROR_INVALID_RESOURCE_TYPE = 914,
    GCX_ERROR_INVALID_RESOURCE_CONFIGURATION = 915,
    GCX_ERROR_KEY_ROTATION = 916,
    GCX_ERROR_STREAM_DETACHED = 917,
    GCX_ERROR_GRAPH_RECAPTURE_FAILURE = 918,
    GCX_ERROR_FABRIC_NOT_READY = 919,
    GCX_ERROR_UNKNOWN = 999,
    /* gcx_cancel_signal() was called */
    GCX_ERROR_CANCELLED = 10000,
    /* the function must be called earlier: before CUDA starts, or before libcuda is loaded */
    GCX_ERROR_TOO_LATE = 10001,
    /* another driver is open, for the rest of the process */
    GCX_ERROR_DRIVER_ALREADY_OPEN = 10002,
    /* a folder is a link, belongs to another user or is open to others */
    GCX_ERROR_UNSAFE_FOLDER = 10003,
    /* the function was called from a callback that must not call it */
    GCX_ERROR_IN_CALLBACK = 10004,
    /* another copy of gcx in this process has leases */
    GCX_ERROR_DUPLICATE_LIBRARY = 10005,
    /* which SMs the atoms have is not known: call gcx_device_map_sms() first */
    GCX_ERROR_SMS_NOT_MAPPED = 10006,
    /* the shared SMs are not known: call gcx_device_find_shared_sms() first */
    GCX_ERROR_SHARED_SMS_UNKNOWN = 10007,
    /* a reservation's file is invalid or cannot be read; the message has its path */
    GCX_ERROR_CORRUPT_FILE = 10008,
    /* an array or a text is too small */
    GCX_ERROR_INSUFFICIENT_CAPACITY = 10009,
    /* the cache limit is below the number of contexts to prepare */
    GCX_ERROR_CACHE_LIMIT_EXCEEDED = 10010,
    /* the lease is parked and has no SMs: resize it first */
    GCX_ERROR_LEASE_PARKED = 10011
} gcx_result;

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

#ifdef __cplusplus
}
#endif

#endif

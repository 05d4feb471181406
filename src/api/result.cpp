#include "api/result.hpp"

#include "base/log.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace gcx {
namespace {

struct ResultRow {
    gcx_result result;
    const char* name;
    const char* text;
};

#define GCX_ROW(result, text) {result, #result, text}
constexpr ResultRow kResults[] = {
    GCX_ROW(GCX_SUCCESS, "no error"),
    GCX_ROW(GCX_ERROR_INVALID_VALUE, "an argument is outside its range, or a pointer is NULL"),
    GCX_ROW(GCX_ERROR_OUT_OF_MEMORY, "memory is exhausted, of the host or of the device"),
    GCX_ROW(GCX_ERROR_NOT_INITIALIZED,
            "CUDA is not initialized, or the process was forked after it was"),
    GCX_ROW(GCX_ERROR_DEINITIALIZED, "CUDA is shutting down"),
    GCX_ROW(GCX_ERROR_PROFILER_DISABLED, "the profiler is disabled"),
    GCX_ROW(GCX_ERROR_PROFILER_NOT_INITIALIZED, "the profiler is not initialized"),
    GCX_ROW(GCX_ERROR_PROFILER_ALREADY_STARTED, "the profiler runs already"),
    GCX_ROW(GCX_ERROR_PROFILER_ALREADY_STOPPED, "the profiler does not run"),
    GCX_ROW(GCX_ERROR_STUB_LIBRARY, "the driver library is the linker stub, not the driver"),
    GCX_ROW(GCX_ERROR_CALL_REQUIRES_NEWER_DRIVER, "the call needs a newer driver"),
    GCX_ROW(GCX_ERROR_DEVICE_UNAVAILABLE, "the device is in use or out of reach"),
    GCX_ROW(GCX_ERROR_MULTICAST_RESOURCE_FULL, "no multicast resource is left"),
    GCX_ROW(GCX_ERROR_NO_DEVICE, "there is no device"),
    GCX_ROW(GCX_ERROR_INVALID_DEVICE, "there is no such device"),
    GCX_ROW(GCX_ERROR_DEVICE_NOT_LICENSED, "the device has no licence for compute work"),
    GCX_ROW(GCX_ERROR_INVALID_IMAGE, "the kernel image is not valid"),
    GCX_ROW(GCX_ERROR_INVALID_CONTEXT, "there is no such context, or none is current"),
    GCX_ROW(GCX_ERROR_CONTEXT_ALREADY_CURRENT, "the context is current already"),
    GCX_ROW(GCX_ERROR_MAP_FAILED, "mapping failed"),
    GCX_ROW(GCX_ERROR_UNMAP_FAILED, "unmapping failed"),
    GCX_ROW(GCX_ERROR_ARRAY_IS_MAPPED, "the array is mapped"),
    GCX_ROW(GCX_ERROR_ALREADY_MAPPED, "it is mapped already"),
    GCX_ROW(GCX_ERROR_NO_BINARY_FOR_GPU, "there is no kernel image for this GPU"),
    GCX_ROW(GCX_ERROR_ALREADY_ACQUIRED, "it is acquired already"),
    GCX_ROW(GCX_ERROR_NOT_MAPPED, "it is not mapped"),
    GCX_ROW(GCX_ERROR_NOT_MAPPED_AS_ARRAY, "it is not mapped as an array"),
    GCX_ROW(GCX_ERROR_NOT_MAPPED_AS_POINTER, "it is not mapped as a pointer"),
    GCX_ROW(GCX_ERROR_ECC_UNCORRECTABLE, "the device met a memory error that ECC can not correct"),
    GCX_ROW(GCX_ERROR_UNSUPPORTED_LIMIT, "the device has no such limit"),
    GCX_ROW(GCX_ERROR_CONTEXT_ALREADY_IN_USE, "the context is in use"),
    GCX_ROW(GCX_ERROR_PEER_ACCESS_UNSUPPORTED, "the devices can not reach each other"),
    GCX_ROW(GCX_ERROR_INVALID_PTX, "the PTX does not compile"),
    GCX_ROW(GCX_ERROR_INVALID_GRAPHICS_CONTEXT, "the graphics context is not valid"),
    GCX_ROW(GCX_ERROR_NVLINK_UNCORRECTABLE, "NVLink met an error that it can not correct"),
    GCX_ROW(GCX_ERROR_JIT_COMPILER_NOT_FOUND, "the PTX compiler is not installed"),
    GCX_ROW(GCX_ERROR_UNSUPPORTED_PTX_VERSION, "the PTX is newer than the driver"),
    GCX_ROW(GCX_ERROR_JIT_COMPILATION_DISABLED, "compiling PTX is disabled"),
    GCX_ROW(GCX_ERROR_UNSUPPORTED_EXEC_AFFINITY, "the device has no such execution affinity"),
    GCX_ROW(GCX_ERROR_UNSUPPORTED_DEVSIDE_SYNC,
            "the code synchronizes on the device in a way that is gone"),
    GCX_ROW(GCX_ERROR_CONTAINED, "the device met an error that was contained"),
    GCX_ROW(GCX_ERROR_INSUFFICIENT_LOADER_VERSION, "the loader is too old"),
    GCX_ROW(GCX_ERROR_INVALID_SOURCE, "the kernel source is not valid"),
    GCX_ROW(GCX_ERROR_FILE_NOT_FOUND, "there is no such file"),
    GCX_ROW(GCX_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND, "a shared library lacks a symbol"),
    GCX_ROW(GCX_ERROR_SHARED_OBJECT_INIT_FAILED, "a shared library can not be loaded"),
    GCX_ROW(GCX_ERROR_OPERATING_SYSTEM, "an operating system call failed"),
    GCX_ROW(GCX_ERROR_INVALID_HANDLE, "the handle names nothing that is alive"),
    GCX_ROW(GCX_ERROR_ILLEGAL_STATE, "it is not in a state for this"),
    GCX_ROW(GCX_ERROR_LOSSY_QUERY, "the answer would lose information"),
    GCX_ROW(GCX_ERROR_NOT_FOUND, "there is no such thing"),
    GCX_ROW(GCX_ERROR_NOT_READY, "it has not finished yet"),
    GCX_ROW(GCX_ERROR_ILLEGAL_ADDRESS, "a kernel touched memory that it may not"),
    GCX_ROW(GCX_ERROR_LAUNCH_OUT_OF_RESOURCES, "the launch needs more than the device has"),
    GCX_ROW(GCX_ERROR_LAUNCH_TIMEOUT, "a kernel ran too long"),
    GCX_ROW(GCX_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING, "the launch uses another texturing mode"),
    GCX_ROW(GCX_ERROR_PEER_ACCESS_ALREADY_ENABLED, "peer access is enabled already"),
    GCX_ROW(GCX_ERROR_PEER_ACCESS_NOT_ENABLED, "peer access is not enabled"),
    GCX_ROW(GCX_ERROR_PRIMARY_CONTEXT_ACTIVE, "the primary context is active already"),
    GCX_ROW(GCX_ERROR_CONTEXT_IS_DESTROYED, "the context was destroyed"),
    GCX_ROW(GCX_ERROR_ASSERT, "an assertion in a kernel failed"),
    GCX_ROW(GCX_ERROR_TOO_MANY_PEERS, "there are too many peers"),
    GCX_ROW(GCX_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "the memory is registered already"),
    GCX_ROW(GCX_ERROR_HOST_MEMORY_NOT_REGISTERED, "the memory is not registered"),
    GCX_ROW(GCX_ERROR_HARDWARE_STACK_ERROR, "a kernel overran its stack"),
    GCX_ROW(GCX_ERROR_ILLEGAL_INSTRUCTION, "a kernel met an illegal instruction"),
    GCX_ROW(GCX_ERROR_MISALIGNED_ADDRESS, "a kernel used an address that is not aligned"),
    GCX_ROW(GCX_ERROR_INVALID_ADDRESS_SPACE, "a kernel used an address of the wrong space"),
    GCX_ROW(GCX_ERROR_INVALID_PC, "a kernel jumped out of its code"),
    GCX_ROW(GCX_ERROR_LAUNCH_FAILED, "a kernel failed"),
    GCX_ROW(GCX_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
            "the cooperative launch has more blocks than fit at once"),
    GCX_ROW(GCX_ERROR_TENSOR_MEMORY_LEAK, "a kernel left tensor memory allocated"),
    GCX_ROW(GCX_ERROR_NOT_PERMITTED, "it is not permitted"),
    GCX_ROW(GCX_ERROR_NOT_SUPPORTED, "the driver or the device lacks this"),
    GCX_ROW(GCX_ERROR_SYSTEM_NOT_READY, "the system is not ready for CUDA"),
    GCX_ROW(GCX_ERROR_SYSTEM_DRIVER_MISMATCH, "driver library and kernel driver do not match"),
    GCX_ROW(GCX_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, "the device has no forward compatibility"),
    GCX_ROW(GCX_ERROR_MPS_CONNECTION_FAILED, "MPS can not be reached"),
    GCX_ROW(GCX_ERROR_MPS_RPC_FAILURE, "a call to MPS failed"),
    GCX_ROW(GCX_ERROR_MPS_SERVER_NOT_READY, "MPS is not ready"),
    GCX_ROW(GCX_ERROR_MPS_MAX_CLIENTS_REACHED, "MPS has no room for another client"),
    GCX_ROW(GCX_ERROR_MPS_MAX_CONNECTIONS_REACHED, "MPS has no room for another connection"),
    GCX_ROW(GCX_ERROR_MPS_CLIENT_TERMINATED, "MPS ended this client"),
    GCX_ROW(GCX_ERROR_CDP_NOT_SUPPORTED, "the device has no dynamic parallelism"),
    GCX_ROW(GCX_ERROR_CDP_VERSION_MISMATCH, "the dynamic parallelism is of another version"),
    GCX_ROW(GCX_ERROR_STREAM_CAPTURE_UNSUPPORTED,
            "it is not possible while a stream captures a graph"),
    GCX_ROW(GCX_ERROR_STREAM_CAPTURE_INVALIDATED, "the capture was invalidated"),
    GCX_ROW(GCX_ERROR_STREAM_CAPTURE_MERGE, "two captures would merge"),
    GCX_ROW(GCX_ERROR_STREAM_CAPTURE_UNMATCHED, "the capture was not begun in this stream"),
    GCX_ROW(GCX_ERROR_STREAM_CAPTURE_UNJOINED, "a forked stream was not joined"),
    GCX_ROW(GCX_ERROR_STREAM_CAPTURE_ISOLATION, "a dependency crosses the capture"),
    GCX_ROW(GCX_ERROR_STREAM_CAPTURE_IMPLICIT, "the default stream can not be captured"),
    GCX_ROW(GCX_ERROR_CAPTURED_EVENT, "the event was recorded in a capture"),
    GCX_ROW(GCX_ERROR_STREAM_CAPTURE_WRONG_THREAD, "the capture belongs to another thread"),
    GCX_ROW(GCX_ERROR_TIMEOUT, "the wait timed out"),
    GCX_ROW(GCX_ERROR_GRAPH_EXEC_UPDATE_FAILURE, "the executable graph can not be updated so"),
    GCX_ROW(GCX_ERROR_EXTERNAL_DEVICE, "an external device failed"),
    GCX_ROW(GCX_ERROR_INVALID_CLUSTER_SIZE, "the partition does not allow clusters of this size"),
    GCX_ROW(GCX_ERROR_FUNCTION_NOT_LOADED, "the function is not loaded"),
    GCX_ROW(GCX_ERROR_INVALID_RESOURCE_TYPE, "the resource is not of a type for this"),
    GCX_ROW(GCX_ERROR_INVALID_RESOURCE_CONFIGURATION,
            "the resources can not be split or combined so"),
    GCX_ROW(GCX_ERROR_KEY_ROTATION, "keys are being rotated"),
    GCX_ROW(GCX_ERROR_STREAM_DETACHED, "the context of the stream was destroyed"),
    GCX_ROW(GCX_ERROR_GRAPH_RECAPTURE_FAILURE, "the graph can not be captured again so"),
    GCX_ROW(GCX_ERROR_FABRIC_NOT_READY, "the fabric is not ready"),
    GCX_ROW(GCX_ERROR_UNKNOWN, "an unknown error"),
    GCX_ROW(GCX_ERROR_CANCELLED, "the call was cancelled by gcx_cancel_signal"),
    GCX_ROW(GCX_ERROR_TOO_LATE, "the function must be called earlier in the process"),
    GCX_ROW(GCX_ERROR_DRIVER_ALREADY_OPEN, "another driver is open, and a process opens only one"),
    GCX_ROW(GCX_ERROR_UNSAFE_FOLDER,
            "the folder is a link, belongs to another user or is open to others"),
    GCX_ROW(GCX_ERROR_IN_CALLBACK, "the function must not be called from this callback"),
    GCX_ROW(GCX_ERROR_DUPLICATE_LIBRARY, "another copy of gcx in this process has leases"),
    GCX_ROW(GCX_ERROR_SMS_NOT_MAPPED,
            "which SMs the atoms have is not known before gcx_device_map_sms"),
    GCX_ROW(GCX_ERROR_SHARED_SMS_UNKNOWN,
            "the shared SMs are not known before gcx_device_find_shared_sms finds them"),
    GCX_ROW(GCX_ERROR_CORRUPT_FILE, "a reservation's file is invalid or cannot be read"),
    GCX_ROW(GCX_ERROR_INSUFFICIENT_CAPACITY, "an array or a text is too small for the output"),
    GCX_ROW(GCX_ERROR_CACHE_LIMIT_EXCEEDED,
            "the cache limit is below the number of contexts to prepare"),
    GCX_ROW(GCX_ERROR_LEASE_PARKED, "the lease is parked and has no SMs"),
};
#undef GCX_ROW

const ResultRow* find(gcx_result result) {
    const auto* row = std::find_if(std::begin(kResults), std::end(kResults),
                                   [&](const ResultRow& r) { return r.result == result; });
    return row == std::end(kResults) ? nullptr : row;
}

// A plain array has no destructor, which would keep the library from being unloaded.
thread_local char last_message[4096] = "";

// Cuts the middle of long messages: the function stands at the beginning, the advice at the end.
void keep_message(const char* function, const char* message) noexcept {
    const int length =
        std::snprintf(last_message, sizeof last_message, "%s: %s", function, message);
    if (length < static_cast<int>(sizeof last_message))
        return;
    constexpr char kGap[] = " ... ";
    constexpr std::size_t kTail = sizeof last_message / 2;
    const std::size_t whole = std::strlen(message);
    char* const tail = last_message + sizeof last_message - kTail;
    std::memcpy(tail, message + whole + 1 - kTail, kTail);
    std::memcpy(tail - sizeof kGap + 1, kGap, sizeof kGap - 1);
}

} // namespace

gcx_result record_error(const char* function, gcx_result result, const char* message) noexcept {
    keep_message(function, message);
    if (log::enabled(GCX_LOG_DEBUG)) {
        try {
            log::write(GCX_LOG_DEBUG, format("%s (%s)", last_message, gcx_result_name(result)));
        } catch (const std::bad_alloc&) {
            return result; // only this message is lost
        }
    }
    return result;
}

void deliver_log() noexcept {
    if (!log::pending())
        return;
    char saved[sizeof last_message];
    std::memcpy(saved, last_message, sizeof saved);
    log::deliver();
    std::memcpy(last_message, saved, sizeof saved);
}

} // namespace gcx

uint32_t gcx_version(void) {
    return GCX_VERSION;
}

const char* gcx_result_name(gcx_result result) {
    const gcx::ResultRow* row = gcx::find(result);
    return row != nullptr ? row->name : "GCX_ERROR_UNRECOGNIZED";
}

const char* gcx_result_string(gcx_result result) {
    const gcx::ResultRow* row = gcx::find(result);
    return row != nullptr ? row->text : "a result that this version of gcx has no name for";
}

const char* gcx_last_error_message(void) {
    return gcx::last_message;
}

gcx_result gcx_log_set_callback(gcx_log_level level, gcx_log_callback callback, void* user_data) {
    GCX_BODY({
        if (level < GCX_LOG_NONE || level > GCX_LOG_DEBUG)
            gcx::fail(GCX_ERROR_INVALID_VALUE,
                      gcx::format("level %d is none of gcx_log_level, 0 to 4", level));
        gcx::log::set_callback(level, callback, user_data);
    });
}

// The CUDA driver: a library opened by dlopen, the table of its functions, its capabilities, the
// hardware queues that CUDA uses, and scopes around driver calls.
#pragma once

#include "base/error.hpp"
#include "driver/cuda_api.h"

#include <cstdint>
#include <optional>
#include <string>

// The functions that gcx calls: name, driver version of the variant that is used, and type. gcx
// asks cuGetProcAddress for that version, so that newer drivers return the same variant. Drivers
// older than that lack the function.
#define GCX_DRIVER_FUNCTIONS(X)                                                                    \
    X(cuGetErrorName, 6000, decltype(&::cuGetErrorName))                                           \
    X(cuGetErrorString, 6000, decltype(&::cuGetErrorString))                                       \
    X(cuInit, 2000, decltype(&::cuInit))                                                           \
    X(cuDeviceGetCount, 2000, decltype(&::cuDeviceGetCount))                                       \
    X(cuDeviceGet, 2000, decltype(&::cuDeviceGet))                                                 \
    X(cuDeviceGetName, 2000, decltype(&::cuDeviceGetName))                                         \
    X(cuDeviceGetUuid, 11040, decltype(&::cuDeviceGetUuid_v2))                                     \
    X(cuDeviceGetAttribute, 2000, decltype(&::cuDeviceGetAttribute))                               \
    X(cuDevicePrimaryCtxRetain, 7000, decltype(&::cuDevicePrimaryCtxRetain))                       \
    X(cuDevicePrimaryCtxRelease, 11000, decltype(&::cuDevicePrimaryCtxRelease_v2))                 \
    X(cuCtxGetCurrent, 4000, decltype(&::cuCtxGetCurrent))                                         \
    X(cuCtxPushCurrent, 4000, decltype(&::cuCtxPushCurrent_v2))                                    \
    X(cuCtxPopCurrent, 4000, decltype(&::cuCtxPopCurrent_v2))                                      \
    X(cuCtxGetDevice, 2000, decltype(&::cuCtxGetDevice))                                           \
    X(cuCtxGetId, 12000, decltype(&::cuCtxGetId))                                                  \
    X(cuCtxSynchronize, 2000, decltype(&::cuCtxSynchronize))                                       \
    X(cuCtxGetStreamPriorityRange, 5050, decltype(&::cuCtxGetStreamPriorityRange))                 \
    X(cuCtxGetDevResource, 12040, decltype(&::cuCtxGetDevResource))                                \
    X(cuStreamCreateWithPriority, 5050, decltype(&::cuStreamCreateWithPriority))                   \
    X(cuStreamDestroy, 4000, decltype(&::cuStreamDestroy_v2))                                      \
    X(cuStreamSynchronize, 2000, decltype(&::cuStreamSynchronize))                                 \
    X(cuStreamQuery, 2000, decltype(&::cuStreamQuery))                                             \
    X(cuStreamGetPriority, 5050, decltype(&::cuStreamGetPriority))                                 \
    X(cuStreamGetCtx, 9020, decltype(&::cuStreamGetCtx))                                           \
    X(cuStreamIsCapturing, 10000, decltype(&::cuStreamIsCapturing))                                \
    X(cuStreamGetAttribute, 11000, decltype(&::cuStreamGetAttribute))                              \
    X(cuThreadExchangeStreamCaptureMode, 10010, decltype(&::cuThreadExchangeStreamCaptureMode))    \
    X(cuStreamWaitEvent, 3020, decltype(&::cuStreamWaitEvent))                                     \
    X(cuEventCreate, 2000, decltype(&::cuEventCreate))                                             \
    X(cuEventDestroy, 4000, decltype(&::cuEventDestroy_v2))                                        \
    X(cuEventRecord, 2000, decltype(&::cuEventRecord))                                             \
    X(cuEventSynchronize, 2000, decltype(&::cuEventSynchronize))                                   \
    X(cuEventQuery, 2000, decltype(&::cuEventQuery))                                               \
    X(cuEventElapsedTime, 2000, decltype(&::cuEventElapsedTime))                                   \
    X(cuMemGetInfo, 3020, decltype(&::cuMemGetInfo_v2))                                            \
    X(cuMemAllocAsync, 11020, decltype(&::cuMemAllocAsync))                                        \
    X(cuMemFreeAsync, 11020, decltype(&::cuMemFreeAsync))                                          \
    X(cuMemsetD32Async, 3020, decltype(&::cuMemsetD32Async))                                       \
    X(cuMemcpyDtoHAsync, 3020, decltype(&::cuMemcpyDtoHAsync_v2))                                  \
    X(cuLibraryLoadData, 12000, decltype(&::cuLibraryLoadData))                                    \
    X(cuLibraryUnload, 12000, decltype(&::cuLibraryUnload))                                        \
    X(cuLibraryGetKernel, 12000, decltype(&::cuLibraryGetKernel))                                  \
    X(cuKernelSetAttribute, 12000, decltype(&::cuKernelSetAttribute))                              \
    X(cuOccupancyMaxActiveBlocksPerMultiprocessor, 6050,                                           \
      decltype(&::cuOccupancyMaxActiveBlocksPerMultiprocessor))                                    \
    X(cuOccupancyMaxPotentialClusterSize, 11070, decltype(&::cuOccupancyMaxPotentialClusterSize))  \
    X(cuOccupancyMaxActiveClusters, 11070, decltype(&::cuOccupancyMaxActiveClusters))              \
    X(cuLaunchKernel, 4000, decltype(&::cuLaunchKernel))                                           \
    X(cuDeviceGetDevResource, 12040, decltype(&::cuDeviceGetDevResource))                          \
    X(cuDevSmResourceSplitByCount, 12040, decltype(&::cuDevSmResourceSplitByCount))                \
    X(cuDevResourceGenerateDesc, 12040, decltype(&::cuDevResourceGenerateDesc))                    \
    X(cuGreenCtxCreate, 12040, decltype(&::cuGreenCtxCreate))                                      \
    X(cuGreenCtxDestroy, 12040, decltype(&::cuGreenCtxDestroy))                                    \
    X(cuCtxFromGreenCtx, 12040, decltype(&::cuCtxFromGreenCtx))                                    \
    X(cuGreenCtxGetDevResource, 12040, decltype(&::cuGreenCtxGetDevResource))                      \
    X(cuGreenCtxRecordEvent, 12040, decltype(&::cuGreenCtxRecordEvent))                            \
    X(cuGreenCtxWaitEvent, 12040, decltype(&::cuGreenCtxWaitEvent))                                \
    X(cuGreenCtxStreamCreate, 12050, cu::GreenCtxStreamCreateFn)                                   \
    X(cuDevSmResourceSplit, 13010, cu::DevSmResourceSplitFn)                                       \
    X(cuStreamGetDevResource, 13010, cu::StreamGetDevResourceFn)                                   \
    X(cuGraphClone, 10000, decltype(&::cuGraphClone))                                              \
    X(cuGraphDestroy, 10000, decltype(&::cuGraphDestroy))                                          \
    X(cuGraphGetNodes, 10000, decltype(&::cuGraphGetNodes))                                        \
    X(cuGraphGetEdges, 12030, decltype(&::cuGraphGetEdges_v2))                                     \
    X(cuGraphNodeGetType, 10000, decltype(&::cuGraphNodeGetType))                                  \
    X(cuGraphNodeSetParams, 12020, decltype(&::cuGraphNodeSetParams))                              \
    X(cuGraphChildGraphNodeGetGraph, 10000, decltype(&::cuGraphChildGraphNodeGetGraph))            \
    X(cuGraphKernelNodeGetParams, 12000, decltype(&::cuGraphKernelNodeGetParams_v2))               \
    X(cuGraphKernelNodeSetParams, 12000, decltype(&::cuGraphKernelNodeSetParams_v2))               \
    X(cuGraphKernelNodeGetAttribute, 11000, decltype(&::cuGraphKernelNodeGetAttribute))            \
    X(cuGraphMemcpyNodeGetParams, 10000, decltype(&::cuGraphMemcpyNodeGetParams))                  \
    X(cuGraphMemsetNodeGetParams, 10000, decltype(&::cuGraphMemsetNodeGetParams))                  \
    X(cuGraphHostNodeGetParams, 10000, decltype(&::cuGraphHostNodeGetParams))                      \
    X(cuGraphInstantiateWithFlags, 11040, decltype(&::cuGraphInstantiateWithFlags))                \
    X(cuGraphExecDestroy, 10000, decltype(&::cuGraphExecDestroy))                                  \
    X(cuGraphExecKernelNodeSetParams, 12000, decltype(&::cuGraphExecKernelNodeSetParams_v2))       \
    X(cuGraphLaunch, 10000, decltype(&::cuGraphLaunch))                                            \
    X(cuFuncGetName, 12030, decltype(&::cuFuncGetName))                                            \
    X(cuFuncGetParamInfo, 12040, decltype(&::cuFuncGetParamInfo))                                  \
    X(cuKernelGetName, 12030, decltype(&::cuKernelGetName))                                        \
    X(cuKernelGetParamInfo, 12040, decltype(&::cuKernelGetParamInfo))                              \
    X(cuKernelGetFunction, 12000, decltype(&::cuKernelGetFunction))

// A driver call that throws if it fails: GCX_CALL(driver, cuInit, 0).
#define GCX_CALL(driver, function, ...) (driver).check((driver).function(__VA_ARGS__), #function)

namespace gcx {

// The only place that ties a feature to a driver version.
int required_version(gcx_capability capability);

// Returns "13.0" for 13000.
std::string version_text(int version);

class Driver {
  public:
    // Opens a library: a path or name for dlopen, or "sim:SPEC". Throws if the library, green
    // contexts or a device are missing.
    explicit Driver(const std::string& choice);
    ~Driver();
    Driver(const Driver&) = delete;
    Driver& operator=(const Driver&) = delete;

    int version() const { return version_; }
    bool simulated() const { return simulated_; }
    const std::string& library() const { return library_; }
    // Returns the argument of the constructor: "sim:SPEC", a path or a name.
    const std::string& choice() const { return choice_; }
    // Returns the handle of dlopen.
    void* handle() const { return handle_; }
    // Returns whether opening this choice would give the same driver.
    bool is(const std::string& choice) const;
    // Returns whether any Driver has initialized CUDA in this process.
    static bool started();
    bool has(gcx_capability capability) const { return version_ >= required_version(capability); }
    // Throws GCX_ERROR_NOT_SUPPORTED with the required version unless the driver has it.
    void require(gcx_capability capability, const char* what) const;

    // Throws unless the result is success.
    void check(CUresult result, const char* function) const {
        if (result != CUDA_SUCCESS)
            fail_with(result, function);
    }
    std::string describe(CUresult result, const char* function) const;

    // Returns whether a context still has this id: a reset destroys contexts, and the new primary
    // context has another id. Throws for other errors of the driver.
    bool context_has_id(CUcontext context, unsigned long long id) const;

    // Returns whether the driver has shut down, as it does while the process exits.
    bool ended() const;

#define GCX_DECLARE(name, since, type) type name = nullptr;
    GCX_DRIVER_FUNCTIONS(GCX_DECLARE)
#undef GCX_DECLARE

  private:
    [[noreturn]] void fail_with(CUresult result, const char* function) const;
    void load();
    void resolve();

    std::string choice_;
    void* handle_ = nullptr;
    int version_ = 0;
    bool simulated_ = false;
    std::string library_;
};

struct Mps {
    gcx_mps_state state = GCX_MPS_UNKNOWN;
    float thread_percentage = 0; // CUDA_MPS_ACTIVE_THREAD_PERCENTAGE; 0: not set or invalid
};
// Returns whether processes share a device through MPS, and the percentage that each process gets.
// Reads a device attribute that cuda.h has since 12.4; not measured on such a driver.
Mps mps_of(const Driver& driver, CUdevice device);

// Returns what limits the process to a part of the SMs under MPS, and what to do about it, as a
// sentence after a colon; empty if no variable does and the device has groups of SMs. Measured on an
// H200 with driver 580: the daemon's limit is in no variable, and a limited device has no groups.
std::string mps_limit_of(const Driver& driver, CUdevice device, bool has_groups);

// A library that is installed next to this one, such as the simulated driver.
struct CompanionLibrary {
    const char* what; // for messages: "the simulated driver"
    const char* file;
    const char* build_dir; // where a build puts it, relative to this library
    const char* hint;      // appended to the message if it is not found
};
// Returns the path of such a library. Throws if it is not installed.
std::string companion_path(const CompanionLibrary& companion);

// Returns the path of the simulated driver: the one that GCX_SIM_LIBRARY names, or the companion.
std::string find_simulator();

// Returns what went wrong in the last call of dlopen or dlsym.
const char* dl_reason();

inline constexpr char kDefaultLibrary[] = "libcuda.so.1";
// Returns the library to open for a choice: the default library if it is empty, the simulated
// driver for "sim:SPEC", otherwise the choice itself.
std::string library_of(const std::string& choice);
// Sets the name to open instead of kDefaultLibrary, once another library has that name. The name
// stays in effect until the process ends.
void set_default_library(const std::string& name);

// The number of hardware queues that CUDA uses. CUDA reads it from the environment when it starts.
struct Connections {
    uint32_t count = 0; // 0: unknown, the variable has a value that CUDA does not document
    bool from_environment = false;
    bool started = false; // CUDA has started, so that the number is final
    bool certain = false; // false if the process changed the variable after CUDA had started
};

// Returns what CUDA uses or, if it has not started, would use now. choice: the driver that gcx
// would open. Opens nothing.
Connections connections(const std::string& choice);

// Makes CUDA start with at least this many. Throws if it is too late.
void request_connections(const std::string& choice, uint32_t count);

// Warns once per process if there is only one queue, with which all partitions wait for each other.
void warn_of_few_connections();

// Repeats a release that failed, for destructors, whose caller cannot. What stays unreleased leaks,
// so a temporary failure, such as a lack of host memory, deserves a second try. Returns the last
// result.
template <class Call>
CUresult retry_once(Call&& call) {
    const CUresult result = call();
    return result == CUDA_SUCCESS ? result : call();
}

// Returns whether a destroy call succeeded or found nothing to destroy.
inline bool is_destroyed(CUresult result) {
    return result == CUDA_SUCCESS || result == CUDA_ERROR_CONTEXT_IS_DESTROYED ||
           result == CUDA_ERROR_DEINITIALIZED || result == CUDA_ERROR_INVALID_HANDLE;
}

// Makes a context current for the calling thread, for driver functions that use the current one.
class ScopedCurrent {
  public:
    ScopedCurrent(const Driver& driver, CUcontext context) : driver_(driver) {
        GCX_CALL(driver, cuCtxPushCurrent, context);
    }
    ~ScopedCurrent() {
        CUcontext popped = nullptr;
        retry_once([&] { return driver_.cuCtxPopCurrent(&popped); });
    }
    ScopedCurrent(const ScopedCurrent&) = delete;
    ScopedCurrent& operator=(const ScopedCurrent&) = delete;

  private:
    const Driver& driver_;
};

// Puts the calling thread into relaxed capture mode. Costs nothing inside another one.
//
// While a graph capture is in progress, CUDA forbids its thread, and in global mode all threads, to
// query, synchronize and allocate, and invalidates the capture if they do. In relaxed mode these
// calls are allowed, and are harmless on streams and events that take no part in a capture. On
// those that do, they invalidate it in any mode, so gcx refuses such calls itself.
// docs/measurements/log.md records which calls do what.
class RelaxedCapture {
  public:
    explicit RelaxedCapture(const Driver& driver) : driver_(driver) {
        if (depth_++ == 0)
            driver_.cuThreadExchangeStreamCaptureMode(&mode_);
    }
    ~RelaxedCapture() {
        if (--depth_ == 0)
            driver_.cuThreadExchangeStreamCaptureMode(&mode_);
    }
    RelaxedCapture(const RelaxedCapture&) = delete;
    RelaxedCapture& operator=(const RelaxedCapture&) = delete;

  private:
    static constinit inline thread_local uint32_t depth_ = 0;
    const Driver& driver_;
    CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

// Returns whether a stream takes part in a capture, including an invalidated one, or nothing if the
// driver reports an error. Invalidates no capture.
inline std::optional<bool> is_capturing(const Driver& driver, CUstream stream) {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    if (driver.cuStreamIsCapturing(stream, &status) != CUDA_SUCCESS)
        return std::nullopt;
    return status != CU_STREAM_CAPTURE_STATUS_NONE;
}

} // namespace gcx

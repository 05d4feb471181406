// Calls the CUDA driver directly, for what the GPU tests need in addition to gcx: kernels,
// occupancy, memory, resets.
#pragma once

#include "driver/cuda_api.h"

#include <cstdint>
#include <vector>

namespace raw {

#define RAW_FUNCTIONS(X)                                                                           \
    X(cuInit, cuInit)                                                                              \
    X(cuGetErrorName, cuGetErrorName)                                                              \
    X(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain)                                          \
    X(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2)                                     \
    X(cuDevicePrimaryCtxReset, cuDevicePrimaryCtxReset_v2)                                         \
    X(cuCtxGetCurrent, cuCtxGetCurrent)                                                            \
    X(cuCtxSetCurrent, cuCtxSetCurrent)                                                            \
    X(cuCtxPushCurrent, cuCtxPushCurrent_v2)                                                       \
    X(cuCtxPopCurrent, cuCtxPopCurrent_v2)                                                         \
    X(cuMemGetInfo, cuMemGetInfo_v2)                                                               \
    X(cuLibraryLoadData, cuLibraryLoadData)                                                        \
    X(cuLibraryGetKernel, cuLibraryGetKernel)                                                      \
    X(cuLibraryUnload, cuLibraryUnload)                                                            \
    X(cuModuleLoadData, cuModuleLoadData)                                                          \
    X(cuModuleGetFunction, cuModuleGetFunction)                                                    \
    X(cuModuleUnload, cuModuleUnload)                                                              \
    X(cuKernelGetFunction, cuKernelGetFunction)                                                    \
    X(cuFuncSetAttribute, cuFuncSetAttribute)                                                      \
    X(cuLaunchKernel, cuLaunchKernel)                                                              \
    X(cuLaunchKernelEx, cuLaunchKernelEx)                                                          \
    X(cuLaunchCooperativeKernel, cuLaunchCooperativeKernel)                                        \
    X(cuLaunchHostFunc, cuLaunchHostFunc)                                                          \
    X(cuOccupancyMaxActiveBlocksPerMultiprocessor, cuOccupancyMaxActiveBlocksPerMultiprocessor)    \
    X(cuOccupancyMaxPotentialClusterSize, cuOccupancyMaxPotentialClusterSize)                      \
    X(cuOccupancyMaxActiveClusters, cuOccupancyMaxActiveClusters)                                  \
    X(cuStreamCreate, cuStreamCreate)                                                              \
    X(cuStreamDestroy, cuStreamDestroy_v2)                                                         \
    X(cuStreamQuery, cuStreamQuery)                                                                \
    X(cuStreamSynchronize, cuStreamSynchronize)                                                    \
    X(cuStreamBeginCapture, cuStreamBeginCapture_v2)                                               \
    X(cuStreamEndCapture, cuStreamEndCapture)                                                      \
    X(cuStreamIsCapturing, cuStreamIsCapturing)                                                    \
    X(cuStreamGetCaptureInfo, cuStreamGetCaptureInfo_v2)                                           \
    X(cuGraphAddChildGraphNode, cuGraphAddChildGraphNode)                                          \
    X(cuStreamUpdateCaptureDependencies, cuStreamUpdateCaptureDependencies_v2)                     \
    X(cuStreamWaitEvent, cuStreamWaitEvent)                                                        \
    X(cuStreamGetAttribute, cuStreamGetAttribute)                                                  \
    X(cuStreamSetAttribute, cuStreamSetAttribute)                                                  \
    X(cuGraphDestroy, cuGraphDestroy)                                                              \
    X(cuGraphInstantiate, cuGraphInstantiateWithFlags)                                             \
    X(cuGraphLaunch, cuGraphLaunch)                                                                \
    X(cuGraphUpload, cuGraphUpload)                                                                \
    X(cuGraphExecDestroy, cuGraphExecDestroy)                                                      \
    X(cuEventCreate, cuEventCreate)                                                                \
    X(cuEventRecord, cuEventRecord)                                                                \
    X(cuEventQuery, cuEventQuery)                                                                  \
    X(cuEventSynchronize, cuEventSynchronize)                                                      \
    X(cuEventDestroy, cuEventDestroy_v2)                                                           \
    X(cuCtxSynchronize, cuCtxSynchronize)                                                          \
    X(cuMemAlloc, cuMemAlloc_v2)                                                                   \
    X(cuMemAllocAsync, cuMemAllocAsync)                                                            \
    X(cuMemFreeAsync, cuMemFreeAsync)                                                              \
    X(cuMemHostAlloc, cuMemHostAlloc)                                                              \
    X(cuMemFreeHost, cuMemFreeHost)                                                                \
    X(cuMemHostRegister, cuMemHostRegister_v2)                                                     \
    X(cuMemHostUnregister, cuMemHostUnregister)                                                    \
    X(cuDeviceGetDefaultMemPool, cuDeviceGetDefaultMemPool)                                        \
    X(cuMemPoolSetAttribute, cuMemPoolSetAttribute)                                                \
    X(cuMemFree, cuMemFree_v2)                                                                     \
    X(cuMemsetD32, cuMemsetD32_v2)                                                                 \
    X(cuMemsetD32Async, cuMemsetD32Async)                                                          \
    X(cuMemcpyDtoH, cuMemcpyDtoH_v2)                                                               \
    X(cuMemcpyHtoD, cuMemcpyHtoD_v2)                                                               \
    X(cuMemcpyHtoDAsync, cuMemcpyHtoDAsync_v2)                                                     \
    X(cuMemcpyDtoHAsync, cuMemcpyDtoHAsync_v2)                                                     \
    X(cuMemcpyPeerAsync, cuMemcpyPeerAsync)                                                        \
    X(cuDeviceCanAccessPeer, cuDeviceCanAccessPeer)                                                \
    X(cuCtxEnablePeerAccess, cuCtxEnablePeerAccess)                                                \
    X(cuCtxGetDevice, cuCtxGetDevice)                                                              \
    X(cuDeviceGetCount, cuDeviceGetCount)                                                          \
    X(cuMemcpyDtoDAsync, cuMemcpyDtoDAsync_v2)                                                     \
    X(cuMemsetD8, cuMemsetD8_v2)                                                                   \
    X(cuMemsetD8Async, cuMemsetD8Async)                                                            \
    X(cuDeviceGetDevResource, cuDeviceGetDevResource)                                              \
    X(cuDevSmResourceSplitByCount, cuDevSmResourceSplitByCount)                                    \
    X(cuDevResourceGenerateDesc, cuDevResourceGenerateDesc)                                        \
    X(cuGreenCtxCreate, cuGreenCtxCreate)                                                          \
    X(cuGreenCtxGetDevResource, cuGreenCtxGetDevResource)                                          \
    X(cuCtxFromGreenCtx, cuCtxFromGreenCtx)                                                        \
    X(cuGreenCtxDestroy, cuGreenCtxDestroy)

#define RAW_DECLARE(name, symbol) extern decltype(&::symbol) name;
RAW_FUNCTIONS(RAW_DECLARE)
#undef RAW_DECLARE

// Loads the functions of libcuda.so.1 and the kernels, and retains the device's primary context.
// Ends the program on failure.
void load();

// Returns the primary context of device 0, retained by load().
CUcontext primary();

// Makes the primary context current while it lives. Ends the program on failure.
class InPrimary {
  public:
    InPrimary();
    ~InPrimary();
    InPrimary(const InPrimary&) = delete;
    InPrimary& operator=(const InPrimary&) = delete;
};

// Returns "CUDA_ERROR_..." for a result.
const char* name_of(CUresult result);

// Launches a kernel with blocks that last this long.
constexpr uint64_t kMillisecond = 1'000'000; // nanoseconds
CUresult launch_spin(CUstream stream, uint64_t nanoseconds, unsigned blocks = 1,
                     unsigned threads = 1);
// Launches the same on the stream's device; the others are of device 0.
CUresult launch_spin_anywhere(CUstream stream, uint64_t nanoseconds);
// Launches a kernel that reads so many words, and writes none; also on any device.
CUresult launch_read(CUstream stream, CUdeviceptr words, uint32_t count, unsigned blocks);

// Describes a block of launch_note's kernel: its SM, its time by the device's clock, and its tag.
struct Note {
    uint64_t begin; // nanoseconds
    uint64_t end;
    uint32_t sm;
    uint32_t tag;
};

class Notes {
  public:
    explicit Notes(uint32_t capacity);
    ~Notes();
    Notes(const Notes&) = delete;
    Notes& operator=(const Notes&) = delete;

    // Launches a kernel with blocks that last so long and leave a note each. Each replaces its
    // value of data by 3 times that plus 1, so that the result shows how many such kernels ran in a
    // row.
    CUresult launch(CUstream stream, uint32_t blocks, uint32_t tag, uint64_t nanoseconds,
                    CUdeviceptr data);
    // Returns all notes. The kernels must have ended.
    std::vector<Note> read() const;

  private:
    CUdeviceptr notes_ = 0;
    CUdeviceptr count_ = 0;
    uint32_t capacity_;
    uint32_t expected_ = 0;
};

// Return an empty kernel, as a CUfunction and as a CUkernel cast to one; how many of its blocks fit
// an SM; and launch so many cooperatively.
CUfunction empty_function();
CUfunction empty_kernel();
int blocks_per_sm(CUfunction function, uint32_t threads, uint32_t shared_bytes);
CUresult launch_cooperative(CUstream stream, uint32_t blocks, uint32_t threads,
                            uint32_t shared_bytes);

// Return the largest cluster with which a kernel with blocks of 1024 threads could be launched in
// the stream, non-portable sizes allowed; how many clusters of a size are active at once; and
// launch one.
int max_cluster_size(CUstream stream);
int active_clusters(CUstream stream, unsigned size);
CUresult launch_cluster(CUstream stream, unsigned size);

} // namespace raw

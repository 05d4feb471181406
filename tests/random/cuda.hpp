// The driver as a plain program uses it: functions of libcuda.so.1, the context that is current,
// and kernels that write, read and change words of memory.
#pragma once

#include "driver/cuda_api.h"

#include <cstdint>
#include <string>

namespace random_programs {

// A function with a stream, or one that acts in the default stream, in both variants: for NULL as
// the legacy stream and as the thread's.
template <class Function>
struct Variants {
    Function legacy = nullptr;
    Function per_thread = nullptr;
    Function of(bool thread_variant) const { return thread_variant ? per_thread : legacy; }
};

// X(member, symbol), and X(member, symbol, suffix of the variant for the thread's stream).
#define RANDOM_FUNCTIONS(X)                                                                        \
    X(init, cuInit)                                                                                \
    X(error_name, cuGetErrorName)                                                                  \
    X(retain_primary, cuDevicePrimaryCtxRetain)                                                    \
    X(create_context, cuCtxCreate_v2)                                                              \
    X(set_current, cuCtxSetCurrent)                                                                \
    X(synchronize_context, cuCtxSynchronize)                                                       \
    X(load_module, cuModuleLoadData)                                                               \
    X(get_function, cuModuleGetFunction)                                                           \
    X(allocate, cuMemAlloc_v2)                                                                     \
    X(free_memory, cuMemFree_v2)                                                                   \
    X(allocate_host, cuMemHostAlloc)                                                               \
    X(allocate_managed, cuMemAllocManaged)                                                         \
    X(free_host, cuMemFreeHost)                                                                    \
    X(create_stream, cuStreamCreate)                                                               \
    X(create_stream_with_priority, cuStreamCreateWithPriority)                                     \
    X(destroy_stream, cuStreamDestroy_v2)                                                          \
    X(create_event, cuEventCreate)                                                                 \
    X(destroy_event, cuEventDestroy_v2)                                                            \
    X(query_event, cuEventQuery)                                                                   \
    X(synchronize_event, cuEventSynchronize)                                                       \
    X(instantiate, cuGraphInstantiateWithFlags)                                                    \
    X(update_executable, cuGraphExecUpdate_v2)                                                     \
    X(destroy_executable, cuGraphExecDestroy)                                                      \
    X(destroy_graph, cuGraphDestroy)                                                               \
    X(get_resource, cuDeviceGetDevResource)                                                        \
    X(split, cuDevSmResourceSplitByCount)                                                          \
    X(generate_descriptor, cuDevResourceGenerateDesc)                                              \
    X(create_green, cuGreenCtxCreate)                                                              \
    X(context_of_green, cuCtxFromGreenCtx)

#define RANDOM_STREAM_FUNCTIONS(X)                                                                 \
    X(launch, cuLaunchKernel, _ptsz)                                                               \
    X(launch_by_config, cuLaunchKernelEx, _ptsz)                                                   \
    X(launch_cooperative, cuLaunchCooperativeKernel, _ptsz)                                        \
    X(launch_host, cuLaunchHostFunc, _ptsz)                                                        \
    X(add_callback, cuStreamAddCallback, _ptsz)                                                    \
    X(fill, cuMemsetD32Async, _ptsz)                                                               \
    X(fill_bytes, cuMemsetD8Async, _ptsz)                                                          \
    X(fill_rows, cuMemsetD2D32Async, _ptsz)                                                        \
    X(copy_rows, cuMemcpy2DAsync_v2, _ptsz)                                                        \
    X(copy, cuMemcpyAsync, _ptsz)                                                                  \
    X(copy_to_device, cuMemcpyHtoDAsync_v2, _ptsz)                                                 \
    X(copy_to_host, cuMemcpyDtoHAsync_v2, _ptsz)                                                   \
    X(copy_on_device, cuMemcpyDtoDAsync_v2, _ptsz)                                                 \
    X(fill_now, cuMemsetD32_v2, _ptds)                                                             \
    X(fill_bytes_now, cuMemsetD8_v2, _ptds)                                                        \
    X(fill_rows_now, cuMemsetD2D32_v2, _ptds)                                                      \
    X(copy_rows_now, cuMemcpy2D_v2, _ptds)                                                         \
    X(copy_rows_unaligned_now, cuMemcpy2DUnaligned_v2, _ptds)                                      \
    X(copy_now, cuMemcpy, _ptds)                                                                   \
    X(copy_to_device_now, cuMemcpyHtoD_v2, _ptds)                                                  \
    X(copy_to_host_now, cuMemcpyDtoH_v2, _ptds)                                                    \
    X(copy_on_device_now, cuMemcpyDtoD_v2, _ptds)                                                  \
    X(allocate_in_order, cuMemAllocAsync, _ptsz)                                                   \
    X(free_in_order, cuMemFreeAsync, _ptsz)                                                        \
    X(record, cuEventRecord, _ptsz)                                                                \
    X(wait, cuStreamWaitEvent, _ptsz)                                                              \
    X(synchronize, cuStreamSynchronize, _ptsz)                                                     \
    X(query, cuStreamQuery, _ptsz)                                                                 \
    X(get_flags, cuStreamGetFlags, _ptsz)                                                          \
    X(begin_capture, cuStreamBeginCapture_v2, _ptsz)                                               \
    X(end_capture, cuStreamEndCapture, _ptsz)                                                      \
    X(is_capturing, cuStreamIsCapturing, _ptsz)                                                    \
    X(get_capture_info, cuStreamGetCaptureInfo_v2, _ptsz)                                          \
    X(launch_graph, cuGraphLaunch, _ptsz)                                                          \
    X(upload_graph, cuGraphUpload, _ptsz)

// Which context is current.
enum class Within {
    kPrimary,
    kGreen,   // a green context of some of the device's SMs
    kCreated, // one of cuCtxCreate
};

struct Cuda {
#define RANDOM_DECLARE(name, symbol) decltype(&::symbol) name = nullptr;
    RANDOM_FUNCTIONS(RANDOM_DECLARE)
#undef RANDOM_DECLARE
#define RANDOM_DECLARE(name, symbol, suffix) Variants<decltype(&::symbol)> name;
    RANDOM_STREAM_FUNCTIONS(RANDOM_DECLARE)
#undef RANDOM_DECLARE

    // The simulated driver has none: null.
    Variants<decltype(&::cuStreamWriteValue32_v2)> write_value;

    // Opens the driver, and makes the kernels in the context of device 0 that will be current.
    // Throws Wrong.
    Cuda(const std::string& library, Within within);

    // Makes the context current in this thread.
    void enter() const;
    // Throws Wrong, with the error's name, if the result isn't success.
    void check(CUresult result, const char* call) const;
    std::string name_of(CUresult result) const;

    CUcontext context = nullptr;
    CUfunction spin = nullptr;  // (u64 ns)
    CUfunction store = nullptr; // (u64 to, u32 value, u64 after_ns)
    CUfunction load = nullptr;  // (u64 to, u64 from)
    CUfunction add = nullptr;   // (u64 to, u32 value): *to = *to * 3 + value

  private:
    void open(const std::string& library);
    void use_green_context();
    void load_kernels();
    void run_kernels_once() const;
};

} // namespace random_programs

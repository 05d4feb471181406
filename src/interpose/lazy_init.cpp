// Hooks of the functions that a program calls before its first launch or question about launches.
// They make sure that the partition's green context is current, see enter_partition(). The
// functions themselves are the driver's.
#include "interpose/partition.hpp"
#include "interpose/real_driver.hpp"

#include <cstddef>

namespace gcx::interpose {

// Parameters and arguments include their parentheses. NOLINTBEGIN(bugprone-macro-parentheses)
#define GCX_LAZY_INIT(name, parameters, arguments)                                                 \
    extern "C" GCX_EXPORT CUresult CUDAAPI hook_##name parameters __asm__(#name);                  \
    CUresult CUDAAPI hook_##name parameters {                                                      \
        const CUresult entered = enter_partition();                                                \
        return entered == CUDA_SUCCESS ? GCX_REAL(name) arguments : entered;                       \
    }
// NOLINTEND(bugprone-macro-parentheses)

GCX_LAZY_INIT(cuStreamCreate, (CUstream * out, unsigned flags), (out, flags))
GCX_LAZY_INIT(cuStreamCreateWithPriority, (CUstream * out, unsigned flags, int priority),
              (out, flags, priority))
GCX_LAZY_INIT(cuEventCreate, (CUevent * out, unsigned flags), (out, flags))

GCX_LAZY_INIT(cuMemAlloc_v2, (CUdeviceptr * out, std::size_t bytes), (out, bytes))
GCX_LAZY_INIT(cuMemAllocPitch_v2,
              (CUdeviceptr * out, std::size_t* pitch, std::size_t width, std::size_t height,
               unsigned element),
              (out, pitch, width, height, element))
GCX_LAZY_INIT(cuMemAllocManaged, (CUdeviceptr * out, std::size_t bytes, unsigned flags),
              (out, bytes, flags))
GCX_LAZY_INIT(cuMemAllocHost_v2, (void** out, std::size_t bytes), (out, bytes))
GCX_LAZY_INIT(cuMemHostAlloc, (void** out, std::size_t bytes, unsigned flags), (out, bytes, flags))
GCX_LAZY_INIT(cuMemHostRegister_v2, (void* memory, std::size_t bytes, unsigned flags),
              (memory, bytes, flags))
GCX_LAZY_INIT(cuMemGetInfo_v2, (std::size_t* free, std::size_t* total), (free, total))

GCX_LAZY_INIT(cuModuleLoad, (CUmodule * out, const char* path), (out, path))
GCX_LAZY_INIT(cuModuleLoadData, (CUmodule * out, const void* image), (out, image))
GCX_LAZY_INIT(cuModuleLoadDataEx,
              (CUmodule * out, const void* image, unsigned count, CUjit_option* options,
               void** values),
              (out, image, count, options, values))
GCX_LAZY_INIT(cuModuleLoadFatBinary, (CUmodule * out, const void* image), (out, image))
GCX_LAZY_INIT(cuModuleGetFunction, (CUfunction * out, CUmodule module, const char* name),
              (out, module, name))
GCX_LAZY_INIT(cuLibraryLoadData,
              (CUlibrary * out, const void* image, CUjit_option* jit, void** jit_values,
               unsigned jit_count, CUlibraryOption* options, void** values, unsigned count),
              (out, image, jit, jit_values, jit_count, options, values, count))
GCX_LAZY_INIT(cuLibraryLoadFromFile,
              (CUlibrary * out, const char* path, CUjit_option* jit, void** jit_values,
               unsigned jit_count, CUlibraryOption* options, void** values, unsigned count),
              (out, path, jit, jit_values, jit_count, options, values, count))
GCX_LAZY_INIT(cuKernelGetFunction, (CUfunction * out, CUkernel kernel), (out, kernel))

GCX_LAZY_INIT(cuCtxGetDevice, (CUdevice * out), (out))
GCX_LAZY_INIT(cuCtxGetStreamPriorityRange, (int* least, int* greatest), (least, greatest))

} // namespace gcx::interpose

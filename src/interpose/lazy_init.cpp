// What a program does before it launches anything, or asks about launches: by then the partition's
// green context has to be in the primary context's place, see enter().
#include "interpose/partition.hpp"
#include "interpose/real_driver.hpp"

#include <cstddef>

namespace gcx::shim {

// The arguments come in parentheses of their own. NOLINTBEGIN(bugprone-macro-parentheses)
#define GCX_SHIM_ENTERING(name, parameters, arguments)                                             \
    extern "C" GCX_SHIM_EXPORT CUresult CUDAAPI shim_##name parameters __asm__(#name);             \
    CUresult CUDAAPI shim_##name parameters {                                                      \
        const CUresult entered = enter();                                                          \
        return entered == CUDA_SUCCESS ? GCX_REAL(name) arguments : entered;                       \
    }
// NOLINTEND(bugprone-macro-parentheses)

GCX_SHIM_ENTERING(cuStreamCreate, (CUstream * out, unsigned flags), (out, flags))
GCX_SHIM_ENTERING(cuStreamCreateWithPriority, (CUstream * out, unsigned flags, int priority),
                  (out, flags, priority))
GCX_SHIM_ENTERING(cuEventCreate, (CUevent * out, unsigned flags), (out, flags))

GCX_SHIM_ENTERING(cuMemAlloc_v2, (CUdeviceptr * out, std::size_t bytes), (out, bytes))
GCX_SHIM_ENTERING(cuMemAllocPitch_v2,
                  (CUdeviceptr * out, std::size_t* pitch, std::size_t width, std::size_t height,
                   unsigned element),
                  (out, pitch, width, height, element))
GCX_SHIM_ENTERING(cuMemAllocManaged, (CUdeviceptr * out, std::size_t bytes, unsigned flags),
                  (out, bytes, flags))
GCX_SHIM_ENTERING(cuMemAllocHost_v2, (void** out, std::size_t bytes), (out, bytes))
GCX_SHIM_ENTERING(cuMemHostAlloc, (void** out, std::size_t bytes, unsigned flags),
                  (out, bytes, flags))
GCX_SHIM_ENTERING(cuMemHostRegister_v2, (void* memory, std::size_t bytes, unsigned flags),
                  (memory, bytes, flags))
GCX_SHIM_ENTERING(cuMemGetInfo_v2, (std::size_t* free, std::size_t* total), (free, total))

GCX_SHIM_ENTERING(cuModuleLoad, (CUmodule * out, const char* path), (out, path))
GCX_SHIM_ENTERING(cuModuleLoadData, (CUmodule * out, const void* image), (out, image))
GCX_SHIM_ENTERING(cuModuleLoadDataEx,
                  (CUmodule * out, const void* image, unsigned count, CUjit_option* options,
                   void** values),
                  (out, image, count, options, values))
GCX_SHIM_ENTERING(cuModuleLoadFatBinary, (CUmodule * out, const void* image), (out, image))
GCX_SHIM_ENTERING(cuModuleGetFunction, (CUfunction * out, CUmodule module, const char* name),
                  (out, module, name))
GCX_SHIM_ENTERING(cuLibraryLoadData,
                  (CUlibrary * out, const void* image, CUjit_option* jit, void** jit_values,
                   unsigned jit_count, CUlibraryOption* options, void** values, unsigned count),
                  (out, image, jit, jit_values, jit_count, options, values, count))
GCX_SHIM_ENTERING(cuLibraryLoadFromFile,
                  (CUlibrary * out, const char* path, CUjit_option* jit, void** jit_values,
                   unsigned jit_count, CUlibraryOption* options, void** values, unsigned count),
                  (out, path, jit, jit_values, jit_count, options, values, count))
GCX_SHIM_ENTERING(cuKernelGetFunction, (CUfunction * out, CUkernel kernel), (out, kernel))

GCX_SHIM_ENTERING(cuCtxGetDevice, (CUdevice * out), (out))
GCX_SHIM_ENTERING(cuCtxGetStreamPriorityRange, (int* least, int* greatest), (least, greatest))

} // namespace gcx::shim

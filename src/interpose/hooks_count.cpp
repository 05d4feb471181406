// The SM count that programs see: hooks of the functions that return it or depend on it.
//
// Built into both shims. libgcx-shim (gcx exec, GCX_HOOK_CONTEXTS) reports the partition of the
// plan. libgcx-counts (gcx_driver_report_partition_counts) reports the green context that is
// current in the calling thread.
#include "interpose/real_driver.hpp"
#ifdef GCX_HOOK_CONTEXTS
#include "interpose/partition.hpp"
#endif

#include <dlfcn.h>
#include <link.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace gcx::interpose {
namespace {

// The library that calls a hook, for hooks that do not answer all callers alike.
enum class Caller {
    // A cuBLAS that leaves parts of products unwritten if it sees a partition's SM count, or a
    // cuBLAS of unknown version. docs/explanation/counts.md has the measurements.
    kOldCublas,
    kOther,
};

// cuBLAS 13.10. Measured: 13.10.0.20 is right, 13.1.0.3 is wrong. Versions between are unknown.
constexpr std::size_t kFirstRightCublas = 131000;

bool is_cublas(std::string_view file) {
    file.remove_prefix(file.rfind('/') + 1); // npos + 1 is 0
    return file.starts_with("libcublas");
}

// Returns the path of the library at the address, or "" for the program itself. Some libraries ask
// for the SM count at each launch, so dladdr is avoided: it also searches all symbols of the
// library, under the loader's lock.
const char* file_of(const void* address) {
#ifdef DLFO_STRUCT_HAS_EH_DBASE // built with glibc 2.35 or newer, but can run with an older one
    static const auto find =
        reinterpret_cast<decltype(&_dl_find_object)>(dlsym(RTLD_DEFAULT, "_dl_find_object"));
    dl_find_object object{};
    if (find != nullptr)
        return find(const_cast<void*>(address), &object) == 0 ? object.dlfo_link_map->l_name : "";
#endif
    Dl_info symbol{};
    return dladdr(address, &symbol) != 0 && symbol.dli_fname != nullptr ? symbol.dli_fname : "";
}

// Returns major * 10000 + minor * 100 + patch, as in cublasLt.h, or 0 if the version is unknown.
std::size_t cublas_version(const char* file) {
    void* const library = dlopen(file, RTLD_NOLOAD | RTLD_LAZY);
    if (library == nullptr)
        return 0;
    // In libcublas, dlsym finds the function of its dependency libcublasLt.
    const auto get = reinterpret_cast<std::size_t (*)()>(dlsym(library, "cublasLtGetVersion"));
    const std::size_t version = get != nullptr ? get() : 0;
    dlclose(library);
    return version;
}

// Identifies the caller of a function by the address that the function returns to. That works for
// cuBLAS, since its CUDA runtime is part of its library file.
Caller caller_at(const void* return_address) {
    const char* const file = file_of(return_address);
    return is_cublas(file) && cublas_version(file) < kFirstRightCublas ? Caller::kOldCublas
                                                                       : Caller::kOther;
}

// Returns the SM count of the current context if it is one of this device. Otherwise returns 0.
int count_of_current(CUdevice device) {
    CUcontext current = nullptr;
    CUdevice current_device = -1;
    CUdevResource sms{};
    if (GCX_DRIVER(cuCtxGetCurrent)(&current) != CUDA_SUCCESS || current == nullptr ||
        GCX_DRIVER(cuCtxGetDevice)(&current_device) != CUDA_SUCCESS || current_device != device ||
        GCX_DRIVER(cuCtxGetDevResource)(current, &sms, cu::kResourceSm) != CUDA_SUCCESS)
        return 0;
    return static_cast<int>(cu::get_fields<cu::SmFields>(sms).sm_count);
}

#ifdef GCX_HOOK_CONTEXTS

// Set if the program uses gcx itself and reports the counts of its own partitions.
constinit std::atomic<bool> reports_nested_partitions{false};

bool sees_device(Caller caller) {
    const ReportedCount count = plan()->reported_count;
    return count == ReportedCount::kDevice ||
           (count == ReportedCount::kAuto && caller == Caller::kOldCublas);
}

// Finds the count to report to the calling thread, or 0 to report the driver's.
CUresult find_reported_count(CUdevice device, Caller caller, int* count) {
    Partition* partition = nullptr;
    const CUresult result = find_partition(device, &partition);
    *count = 0;
    if (partition == nullptr || sees_device(caller))
        return result;
    if (reports_nested_partitions.load())
        *count = count_of_current(device);
    if (*count == 0)
        *count = static_cast<int>(partition->planned.sm_count);
    return result;
}

#else

// Set before the stub library is loaded. Never freed.
constinit std::atomic<const char*> path_of_driver{nullptr};

// A cuBLAS before 13.10 has to be given a partition's count by cublasSetSmCountTarget.
CUresult find_reported_count(CUdevice device, Caller caller, int* count) {
    *count = caller == Caller::kOldCublas ? 0 : count_of_current(device);
    return CUDA_SUCCESS;
}

#endif

// Returns whether one of the program's green contexts is current. The driver counts its SMs in
// grids.
bool is_in_own_green_context() {
#ifdef GCX_HOOK_CONTEXTS
    CUcontext current = nullptr;
    return GCX_DRIVER(cuCtxGetCurrent)(&current) == CUDA_SUCCESS && current != nullptr &&
           is_program_green_context(current);
#else
    return false;
#endif
}

// Replaces the grid with one that fills the reported number of SMs.
CUresult fit_grid(int* grid, const int* block, CUfunction function, CUoccupancyB2DSize shared_of,
                  std::size_t shared) {
    CUdevice device = -1;
    int sms = 0;
    int blocks = 0;
    if (is_in_own_green_context())
        return CUDA_SUCCESS;
    CUresult result = GCX_DRIVER(cuCtxGetDevice)(&device);
    if (result == CUDA_SUCCESS)
        result = find_reported_count(device, Caller::kOther, &sms);
    if (result != CUDA_SUCCESS || sms == 0)
        return result;
    result = GCX_DRIVER(cuOccupancyMaxActiveBlocksPerMultiprocessor)(
        &blocks, function, *block, shared_of != nullptr ? shared_of(*block) : shared);
    if (result == CUDA_SUCCESS)
        *grid = blocks * sms;
    return result;
}

} // namespace

#ifndef GCX_HOOK_CONTEXTS
const char* driver_path() {
    return path_of_driver.load(std::memory_order_acquire);
}
#endif

GCX_HOOK(cuDeviceGetAttribute, int* out, CUdevice_attribute attribute, CUdevice device) {
    CUresult result = GCX_REAL(cuDeviceGetAttribute)(out, attribute, device);
    if (result != CUDA_SUCCESS || attribute != CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
        return result;
    int sms = 0;
    result = find_reported_count(device, caller_at(__builtin_return_address(0)), &sms);
    if (result == CUDA_SUCCESS && sms != 0)
        *out = sms;
    return result;
}

GCX_HOOK(cuOccupancyMaxPotentialBlockSize, int* grid, int* block, CUfunction function,
         CUoccupancyB2DSize shared_of, std::size_t shared, int limit) {
    const CUresult result =
        GCX_REAL(cuOccupancyMaxPotentialBlockSize)(grid, block, function, shared_of, shared, limit);
    return result == CUDA_SUCCESS ? fit_grid(grid, block, function, shared_of, shared) : result;
}

GCX_HOOK(cuOccupancyMaxPotentialBlockSizeWithFlags, int* grid, int* block, CUfunction function,
         CUoccupancyB2DSize shared_of, std::size_t shared, int limit, unsigned flags) {
    const CUresult result = GCX_REAL(cuOccupancyMaxPotentialBlockSizeWithFlags)(
        grid, block, function, shared_of, shared, limit, flags);
    return result == CUDA_SUCCESS ? fit_grid(grid, block, function, shared_of, shared) : result;
}

} // namespace gcx::interpose

// Called by gcx only, see count_reporting.cpp.
#ifdef GCX_HOOK_CONTEXTS

// gcx keeps using the stub library here, so that its partitions are parts of this one.
extern "C" GCX_EXPORT const char* gcx_count_partitions(const char*) {
    gcx::interpose::reports_nested_partitions.store(true);
    return nullptr;
}

#else

// A process can have several copies of gcx. The first one sets the path, all others get it.
extern "C" GCX_EXPORT const char* gcx_count_partitions(const char* real_path) {
    const char* known = nullptr;
    if (real_path == nullptr)
        return gcx::interpose::path_of_driver.load(std::memory_order_acquire);
    char* const copy = strdup(real_path);
    if (gcx::interpose::path_of_driver.compare_exchange_strong(known, copy))
        return copy;
    free(copy);
    return known;
}

#endif

// The real driver, and cuGetProcAddress, by which cudart finds all driver functions, this one
// included. The real one applies CUDA's rules for versions and flags. If it returns a variant that
// has a hook, the hook is returned instead. A variant that gcx does not know is returned unchanged.
#include "interpose/real_driver.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>
#include <string_view>

// Declares all hooks by their symbols. Their types do not matter here.
#define E(base, symbol, since) extern "C" void entry_##symbol() __asm__(#symbol);
#define P(base, symbol, since, per_thread)                                                         \
    E(base, symbol, since)                                                                         \
    E(base, per_thread, since)
#define S(kind, base, symbol, since, ...) P(base, symbol, since, symbol##_ptsz)
#define B S
#define N(kind, base, symbol, since, ...) E(base, symbol, since)
#define NE(base, symbol, since, ...) E(base, symbol, since)
#define C N
#define R N
#define D(base, symbol, since, ...) P(base, symbol, since, symbol##_ptds)
#define L D
#define M NE
#include "interpose/entry_points.inc"

namespace gcx::interpose {
namespace {

constinit std::atomic<void*> handle_of_driver{nullptr};

// The first driver version with per-thread default streams.
[[maybe_unused]] constexpr int kPerThreadSince = 7000;

// A variant of a driver function, as cuGetProcAddress distinguishes them.
struct EntryPoint {
    const char* base;   // the name to ask cuGetProcAddress for
    const char* symbol; // of this variant
    int since;          // the first driver version with this variant
    bool per_thread;    // whether NULL means the per-thread default stream
    void (*hook)();
};

constexpr EntryPoint kEntryPoints[] = {
#define E(base, symbol, since) {#base, #symbol, since, false, &entry_##symbol},
#define P(base, symbol, since, per_thread)                                                         \
    E(base, symbol, since){#base, #per_thread, since, true, &entry_##per_thread},
#define S(kind, base, symbol, since, ...)                                                          \
    E(base, symbol, since){#base, #symbol "_ptsz", std::max(since, kPerThreadSince), true,         \
                           &entry_##symbol##_ptsz},
#define B S
#define N(kind, base, symbol, since, ...) E(base, symbol, since)
#define NE(base, symbol, since, ...) E(base, symbol, since)
#define C N
#define R N
#define D(base, symbol, since, ...)                                                                \
    E(base, symbol, since){#base, #symbol "_ptds", std::max(since, kPerThreadSince), true,         \
                           &entry_##symbol##_ptds},
#define L D
#define M NE
#include "interpose/entry_points.inc"
};
constexpr std::size_t kEntryPointCount = sizeof kEntryPoints / sizeof kEntryPoints[0];

constexpr cuuint64_t kPerThreadStream = 2; // CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM

using GetAddress = CUresult(CUDAAPI*)(const char*, void**, int, cuuint64_t, int*);

// The driver's addresses of a variant. dlsym and cuGetProcAddress need not return the same one.
struct Addresses {
    void* by_symbol = nullptr;
    void* by_query = nullptr;
};

Addresses find_addresses(const EntryPoint& entry, GetAddress query) {
    Addresses found;
    found.by_symbol = driver_symbol(entry.symbol);
    if (query != nullptr && query(entry.base, &found.by_query, entry.since,
                                  entry.per_thread ? kPerThreadStream : 0, nullptr) != CUDA_SUCCESS)
        found.by_query = nullptr;
    return found;
}

constinit std::atomic<const Addresses*> known_addresses{nullptr};

// Returns the addresses for each row of kEntryPoints, or null if there is no memory. The first
// caller collects them. Takes no lock: after a fork the child could find it locked.
const Addresses* driver_addresses() {
    const Addresses* found = known_addresses.load(std::memory_order_acquire);
    if (found != nullptr)
        return found;
    auto* const addresses = new (std::nothrow) Addresses[kEntryPointCount];
    if (addresses == nullptr)
        return nullptr;
    const auto query = reinterpret_cast<GetAddress>(driver_symbol("cuGetProcAddress_v2"));
    for (std::size_t i = 0; i < kEntryPointCount; i++)
        addresses[i] = find_addresses(kEntryPoints[i], query);
    if (known_addresses.compare_exchange_strong(found, addresses, std::memory_order_acq_rel))
        return addresses;
    delete[] addresses;
    return found;
}

// Replaces an address that the driver returned for a name with that of the hook, if there is one.
// The name must match too, since functions that a driver does not support can share an address.
CUresult replace_with_hook(const char* name, void** address) {
    if (name == nullptr || address == nullptr || *address == nullptr)
        return CUDA_SUCCESS;
    const Addresses* const addresses = driver_addresses();
    if (addresses == nullptr) {
        *address = nullptr;
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    for (std::size_t i = 0; i < kEntryPointCount; i++) {
        const bool same = *address == addresses[i].by_query || *address == addresses[i].by_symbol;
        if (same && std::string_view(name).starts_with(kEntryPoints[i].base)) {
            *address = reinterpret_cast<void*>(kEntryPoints[i].hook);
            return CUDA_SUCCESS;
        }
    }
    return CUDA_SUCCESS;
}

} // namespace

void* driver_library() {
    void* found = handle_of_driver.load(std::memory_order_acquire);
    if (found != nullptr || driver_path() == nullptr)
        return found;
    // If two threads get here, both find the same library.
    found = dlopen(driver_path(), RTLD_NOW | RTLD_LOCAL);
    handle_of_driver.store(found, std::memory_order_release);
    return found;
}

void* driver_symbol(const char* symbol) {
    void* const found = driver_library();
    return found != nullptr ? dlsym(found, symbol) : nullptr;
}

CUresult missing_function_result() {
    return driver_library() != nullptr ? CUDA_ERROR_NOT_SUPPORTED
                                       : CUDA_ERROR_SHARED_OBJECT_INIT_FAILED;
}

CUresult check_driver_usable() {
    int count = 0;
    return GCX_DRIVER(cuDeviceGetCount)(&count);
}

GCX_HOOK(cuGetProcAddress, const char* name, void** address, int version, cuuint64_t flags) {
    const CUresult result = GCX_REAL(cuGetProcAddress)(name, address, version, flags);
    return result == CUDA_SUCCESS ? replace_with_hook(name, address) : result;
}

GCX_HOOK(cuGetProcAddress_v2, const char* name, void** address, int version, cuuint64_t flags,
         int* status) {
    const CUresult result = GCX_REAL(cuGetProcAddress_v2)(name, address, version, flags, status);
    return result == CUDA_SUCCESS ? replace_with_hook(name, address) : result;
}

} // namespace gcx::interpose

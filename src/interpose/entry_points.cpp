// cuGetProcAddress, by which cudart asks for everything, and for this function too. The real one
// answers with CUDA's rules of versions and flags; if what it gives is a variant that is changed
// here, its place is taken by ours. So a variant that a newer driver has, and that this was not
// written for, passes as it is.
#include "interpose/functions.hpp"
#include "interpose/real_driver.hpp"

#include <atomic>
#include <cstring>
#include <new>
#include <string_view>

namespace gcx::shim {
namespace {

constexpr cuuint64_t kPerThreadStream = 2; // CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM

using GetAddress = CUresult(CUDAAPI*)(const char*, void**, int, cuuint64_t, int*);

// Where the real library has a variant: by its symbol, and as its cuGetProcAddress tells it, which
// need not be the same address.
struct Addresses {
    void* by_symbol = nullptr;
    void* by_query = nullptr;
};

Addresses find_real(const Changed& changed, GetAddress query) {
    Addresses found;
    found.by_symbol = real_symbol(changed.symbol);
    if (query != nullptr &&
        query(changed.base, &found.by_query, changed.since,
              changed.per_thread ? kPerThreadStream : 0, nullptr) != CUDA_SUCCESS)
        found.by_query = nullptr;
    return found;
}

constinit std::atomic<const Addresses*> known{nullptr};

// One for each row of kChanged; null without memory. Made once, by whoever comes first; no lock
// that a child of a fork could find held.
const Addresses* real_addresses() {
    const Addresses* found = known.load(std::memory_order_acquire);
    if (found != nullptr)
        return found;
    auto* const made = new (std::nothrow) Addresses[kChangedCount];
    if (made == nullptr)
        return nullptr;
    const auto query = reinterpret_cast<GetAddress>(real_symbol("cuGetProcAddress_v2"));
    for (std::size_t i = 0; i < kChangedCount; i++)
        made[i] = find_real(kChanged[i], query);
    if (known.compare_exchange_strong(found, made, std::memory_order_acq_rel))
        return made;
    delete[] made;
    return found;
}

// Ours in the place of what the real library gave for a name. The name has to fit as well:
// functions that a driver doesn't support may share one address.
CUresult put_ours(const char* name, void** address) {
    if (name == nullptr || address == nullptr || *address == nullptr)
        return CUDA_SUCCESS;
    const Addresses* const addresses = real_addresses();
    if (addresses == nullptr) {
        *address = nullptr;
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    for (std::size_t i = 0; i < kChangedCount; i++) {
        const bool same = *address == addresses[i].by_query || *address == addresses[i].by_symbol;
        if (same && std::string_view(name).starts_with(kChanged[i].base)) {
            *address = reinterpret_cast<void*>(kChanged[i].ours);
            return CUDA_SUCCESS;
        }
    }
    return CUDA_SUCCESS;
}

} // namespace

GCX_SHIM_API(cuGetProcAddress, const char* name, void** address, int version, cuuint64_t flags) {
    const CUresult result = GCX_REAL(cuGetProcAddress)(name, address, version, flags);
    return result == CUDA_SUCCESS ? put_ours(name, address) : result;
}

GCX_SHIM_API(cuGetProcAddress_v2, const char* name, void** address, int version, cuuint64_t flags,
             int* status) {
    const CUresult result = GCX_REAL(cuGetProcAddress_v2)(name, address, version, flags, status);
    return result == CUDA_SUCCESS ? put_ours(name, address) : result;
}

} // namespace gcx::shim

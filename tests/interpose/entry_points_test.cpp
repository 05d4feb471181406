// cuGetProcAddress inside a partition returns what it returns outside, or the hook instead.
#include "inside.hpp"

#include <dlfcn.h>

#include <string_view>

namespace {

using GetAddress = CUresult (*)(const char*, void**, int, cuuint64_t,
                                CUdriverProcAddressQueryResult*);

// All functions of the simulated driver, and names that do not exist.
const char* const kNames[] = {
#define F(base, symbol, since) #base,
#define P(base, symbol, since, per_thread) #base,
#include "sim/entry/functions.inc"
#undef F
#undef P
    "cuNobodyHasThis", "cuMemAlloc_v2", "cuLaunchKernel_ptsz", "", "cu",
};

bool is_hook(void* address) {
    Dl_info info{};
    return dladdr(address, &info) != 0 &&
           std::string_view(info.dli_fname) == std::getenv("GCX_TEST_SHIM");
}

struct Answer {
    CUresult result = CUDA_SUCCESS;
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
    void* address = nullptr;
};

Answer ask(GetAddress get, const char* name, int version, cuuint64_t flags) {
    Answer answer;
    answer.result = get(name, &answer.address, version, flags, &answer.status);
    return answer;
}

// Returns the variant at an address, or "" if no library exports it.
std::string symbol_of(void* address) {
    Dl_info info{};
    return dladdr(address, &info) != 0 && info.dli_sname != nullptr ? info.dli_sname : "";
}

void compare(const char* name, int version, cuuint64_t flags, int& hooks_found) {
    const auto get = inside::function<GetAddress>("cuGetProcAddress_v2");
    const auto real_get = support::sim_function<GetAddress>("cuGetProcAddress_v2");
    const Answer ours = ask(get, name, version, flags);
    const Answer real = ask(real_get, name, version, flags);
    CHECK_EQ(ours.result, real.result);
    CHECK_EQ(ours.status, real.status);
    CHECK_EQ(ours.address == nullptr, real.address == nullptr);
    if (real.address == nullptr)
        return;
    // The same variant, and the address that dlsym finds.
    const std::string symbol = symbol_of(real.address);
    CHECK_EQ(symbol_of(ours.address), symbol);
    CHECK_EQ(ours.address, inside::symbol(symbol.c_str()));
    CHECK(is_hook(ours.address) || ours.address == real.address);
    hooks_found += is_hook(ours.address) ? 1 : 0;
}

void entry_point_is_the_drivers_variant(const inside::Inside&) {
    int hooks_found = 0;
    for (const char* const name : kNames)
        for (const int version : {2000, 3020, 11000, 11030, 12000, 12040, 12050, 13000, 13050})
            for (cuuint64_t flags = 0; flags < 4; flags++)
                compare(name, version, flags, hooks_found);
    CHECK(hooks_found > 500);
}

// cudart looks up cuGetProcAddress itself. Its first variant has no status.
void entry_point_of_lookup_is_hook(const inside::Inside&) {
    void* address = nullptr;
    const auto get = inside::function<GetAddress>("cuGetProcAddress_v2");
    CHECK_EQ(get("cuGetProcAddress", &address, 12000, 0, nullptr), CUDA_SUCCESS);
    CHECK(address == reinterpret_cast<void*>(get));
    CHECK_EQ(get("cuGetProcAddress", &address, 11030, 0, nullptr), CUDA_SUCCESS);
    const auto old = reinterpret_cast<CUresult (*)(const char*, void**, int, cuuint64_t)>(address);
    CHECK(is_hook(address));
    CHECK_EQ(old("cuCtxSetCurrent", &address, 12000, 0), CUDA_SUCCESS);
    CHECK(is_hook(address));
    CHECK_EQ(old("cuNobodyHasThis", &address, 12000, 0), CUDA_ERROR_NOT_FOUND);
    CHECK_EQ(get(nullptr, &address, 12000, 0, nullptr), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(get("cuInit", nullptr, 12000, 0, nullptr), CUDA_ERROR_INVALID_VALUE);
    // Functions that use no stream and free nothing have no hook.
    for (const char* const name : {"cuEventQuery", "cuEventSynchronize", "cuMemGetAddressRange"}) {
        CHECK_EQ(get(name, &address, 12000, 0, nullptr), CUDA_SUCCESS);
        CHECK(address != nullptr && !is_hook(address));
    }
    for (const char* const name : {"cuEventQuery", "cuMemGetAddressRange_v2"})
        CHECK(!is_hook(inside::symbol(name)));
    for (const cuuint64_t flags : {0U, 2U})
        for (const char* const name : {"cuLaunchKernel", "cuMemcpyHtoDAsync", "cuEventRecord",
                                       "cuMemcpyHtoD", "cuMemsetD8", "cuStreamDestroy"}) {
            CHECK_EQ(get(name, &address, 12000, flags, nullptr), CUDA_SUCCESS);
            CHECK(is_hook(address));
        }
}

} // namespace

int main() {
    for (const std::string& driver : inside::kDrivers)
        inside::run({.spec = "h100@" + driver}, entry_point_is_the_drivers_variant);
    inside::run({}, entry_point_of_lookup_is_hook);
    return check::summary("lookups inside");
}

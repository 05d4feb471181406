// Wraps the simulated driver. A test blocks one of its functions, as a kernel blocks a call that
// waits for it.

#include <cuda.h>
#include <dlfcn.h>

#include <condition_variable>
#include <cstring>
#include <mutex>
#include <string>

namespace {

std::mutex mutex;
std::condition_variable changed;
std::string blocked;
int inside = 0;
int released = 0;

void pass(const char* function) {
    std::unique_lock lock(mutex);
    if (blocked != function)
        return;
    inside++;
    changed.notify_all();
    const int before = released;
    changed.wait(lock, [&] { return blocked != function || released != before; });
    if (released == before)
        inside--;
}

// Wraps one of the simulated driver's functions.
template <class Result, class... Args>
struct Stand {
    static inline Result (*real)(Args...) = nullptr;
    static inline const char* name = nullptr;

    static Result call(Args... args) {
        pass(name);
        return real(args...);
    }
};

template <class Result, class... Args>
void put_in_place(const char* wanted, const char* name, Result (*)(Args...), void** found) {
    using Its = Stand<Result, Args...>;
    if (std::strcmp(wanted, name) != 0)
        return;
    Its::name = name;
    Its::real = reinterpret_cast<Result (*)(Args...)>(*found);
    *found = reinterpret_cast<void*>(&Its::call);
}

} // namespace

extern "C" {

// Blocks calls of the function until another one, or null for none, is named.
__attribute__((visibility("default"))) void block_calls(const char* function) {
    const std::lock_guard lock(mutex);
    blocked = function == nullptr ? "" : function;
    changed.notify_all();
}

// Waits until a call is blocked.
__attribute__((visibility("default"))) void await_blocked_call() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [] { return inside != 0; });
}

// Lets the blocked call continue. The next call is blocked again.
__attribute__((visibility("default"))) void release_blocked_call() {
    const std::lock_guard lock(mutex);
    released++;
    inside--;
    changed.notify_all();
}

// The reference keeps the simulated driver linked; all other functions are found there.
[[gnu::used]] const void* simulated_driver = reinterpret_cast<const void*>(&cuDriverGetVersion);

#undef cuGetProcAddress
__attribute__((visibility("default"))) CUresult
cuGetProcAddress_v2(const char* name, void** found, int version, cuuint64_t flags,
                    CUdriverProcAddressQueryResult* status) {
    static const auto next = reinterpret_cast<CUresult (*)(const char*, void**, int, cuuint64_t,
                                                           CUdriverProcAddressQueryResult*)>(
        dlsym(RTLD_NEXT, "cuGetProcAddress_v2"));
    const CUresult result = next(name, found, version, flags, status);
    if (result != CUDA_SUCCESS || *found == nullptr)
        return result;
    put_in_place(name, "cuEventSynchronize", &cuEventSynchronize, found);
    put_in_place(name, "cuStreamWaitEvent", &cuStreamWaitEvent, found);
    put_in_place(name, "cuEventRecord", &cuEventRecord, found);
    put_in_place(name, "cuLaunchKernel", &cuLaunchKernel, found);
    put_in_place(name, "cuMemsetD32Async", &cuMemsetD32Async, found);
    return result;
}

} // extern "C"

#include "driver_wrapper.hpp"

#include "driver/driver.hpp"

#include <gcx_sim.h>

#include <dlfcn.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>

// Wraps the driver functions that gcx calls. Any other name gives the simulated driver's function.
namespace {

namespace cu = gcx::cu;

driver_wrapper::Thread& thread_state() {
    static thread_local driver_wrapper::Thread state;
    return state;
}

uint64_t next_random(driver_wrapper::Thread& thread) {
    thread.random ^= thread.random << 13;
    thread.random ^= thread.random >> 7;
    thread.random ^= thread.random << 17;
    return thread.random;
}

void lose_time(driver_wrapper::Thread& thread, bool waits) {
    if (thread.jitter == 0 || next_random(thread) % thread.jitter != 0)
        return;
    const uint64_t choice = next_random(thread) % 8;
    if (choice < 5)
        sched_yield();
    else
        usleep(static_cast<useconds_t>(next_random(thread) % (waits ? 2000 : 100)));
}

// Returns whether the function can take long on a GPU, because it waits for the device.
bool is_waiting(const char* name) {
    for (const char* waiting : {"cuStreamSynchronize", "cuEventSynchronize", "cuCtxSynchronize",
                                "cuGreenCtxCreate", "cuGraphInstantiateWithFlags"}) {
        if (std::strcmp(name, waiting) == 0)
            return true;
    }
    return false;
}

// Returns whether the function is never made to fail: those that describe errors or restore a
// thread's state; queries of a stream or an event, which fail permanently and then count as
// finished; those that list parameters, where a failure ends the list.
bool never_fails(const char* name) {
    for (const char* certain :
         {"cuGetErrorName", "cuGetErrorString", "cuCtxPopCurrent",
          "cuThreadExchangeStreamCaptureMode", "cuEventQuery", "cuStreamQuery",
          "cuStreamIsCapturing", "cuFuncGetParamInfo", "cuKernelGetParamInfo"}) {
        if (std::strcmp(name, certain) == 0)
            return true;
    }
    return false;
}

std::mutex mutex;
std::condition_variable changed;
std::string blocked;
std::atomic<bool> blocks{false};
int inside = 0;
int released = 0;

void wait_if_blocked(const char* name) {
    if (!blocks)
        return;
    std::unique_lock lock(mutex);
    if (blocked != name)
        return;
    inside++;
    changed.notify_all();
    const int before = released;
    changed.wait(lock, [&] { return blocked != name || released != before; });
    if (released == before)
        inside--;
}

// Returns whether the call is to fail, with the result in *result.
bool enter(const char* name, bool waits, CUresult* result) {
    driver_wrapper::Thread& thread = thread_state();
    thread.calls++;
    if (std::strcmp(name, "cuGreenCtxCreate") == 0)
        thread.contexts_created++;
    if (std::strcmp(name, "cuGreenCtxDestroy") == 0 || std::strcmp(name, "cuStreamDestroy") == 0)
        thread.evictions++;
    wait_if_blocked(name);
    lose_time(thread, waits);
    if (thread.fail_at == 0 || --thread.fail_at != 0)
        return false;
    if (never_fails(name)) {
        thread.fail_at = 1;
        return false;
    }
    thread.failed = name;
    *result = static_cast<CUresult>(thread.failure);
    return true;
}

std::atomic<const void*> replaced{nullptr};

void change_id(const void* context, unsigned long long* id) {
    if (context == replaced)
        *id += uint64_t{1} << 32;
}

enum Function {
#define WRAPPER_NUMBER(name, since, type) kNumberOf_##name,
    GCX_DRIVER_FUNCTIONS(WRAPPER_NUMBER)
#undef WRAPPER_NUMBER
        kFunctions
};
const char* const kNames[] = {
#define WRAPPER_NAME(name, since, type) #name,
    GCX_DRIVER_FUNCTIONS(WRAPPER_NAME)
#undef WRAPPER_NAME
};
void* real[kFunctions]; // written while gcx opens the driver, before it calls it

template <int number, class Type>
struct Wrapped;
template <int number, class... Arguments>
struct Wrapped<number, CUresult(CUDAAPI*)(Arguments...)> {
    static CUresult CUDAAPI call(Arguments... arguments) {
        static const bool waits = is_waiting(kNames[number]);
        CUresult result = CUDA_SUCCESS;
        if (enter(kNames[number], waits, &result))
            return result;
        result = reinterpret_cast<CUresult(CUDAAPI*)(Arguments...)>(real[number])(arguments...);
        if constexpr (number == kNumberOf_cuCtxGetId) {
            if (result == CUDA_SUCCESS)
                change_id(arguments...);
        }
        lose_time(thread_state(), false);
        return result;
    }
};

void* wrapper_of(const char* name, void* address) {
#define WRAPPER_WRAP(function, since, type)                                                        \
    if (std::strcmp(name, #function) == 0) {                                                       \
        real[kNumberOf_##function] = address;                                                      \
        return reinterpret_cast<void*>(&Wrapped<kNumberOf_##function, type>::call);                \
    }
    GCX_DRIVER_FUNCTIONS(WRAPPER_WRAP)
#undef WRAPPER_WRAP
    return address;
}

} // namespace

extern "C" {

__attribute__((visibility("default"))) driver_wrapper::Thread* driver_wrapper_thread();
driver_wrapper::Thread* driver_wrapper_thread() {
    return &thread_state();
}

__attribute__((visibility("default"))) driver_wrapper::BlockFunction block_calls;
void block_calls(const char* function) {
    const std::lock_guard lock(mutex);
    blocked = function == nullptr ? "" : function;
    blocks = function != nullptr;
    changed.notify_all();
}

__attribute__((visibility("default"))) driver_wrapper::BlockedFunction await_blocked_call;
void await_blocked_call() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [] { return inside != 0; });
}

__attribute__((visibility("default"))) driver_wrapper::BlockedFunction release_blocked_call;
void release_blocked_call() {
    const std::lock_guard lock(mutex);
    released++;
    inside--;
    changed.notify_all();
}

__attribute__((visibility("default"))) driver_wrapper::ReplaceFunction replace_context;
void replace_context(const void* context) {
    replaced = context;
}

__attribute__((visibility("default"))) CUresult CUDAAPI
cuGetProcAddress_v2(const char* name, void** address, int version, cuuint64_t flags,
                    CUdriverProcAddressQueryResult* status) {
    using Next =
        CUresult(CUDAAPI*)(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*);
    // The library that this one is linked to; its function of this name is hidden by this one.
    Dl_info simulator{};
    dladdr(reinterpret_cast<void*>(&gcx_sim_configure), &simulator);
    static void* const library = dlopen(simulator.dli_fname, RTLD_NOW | RTLD_LOCAL);
    const auto next = reinterpret_cast<Next>(dlsym(library, "cuGetProcAddress_v2"));
    const CUresult result = next(name, address, version, flags, status);
    if (const char* const lacking = std::getenv("DRIVER_WRAPPER_LACKS");
        result == CUDA_SUCCESS && lacking != nullptr && std::strcmp(name, lacking) == 0)
        *address = nullptr;
    if (result == CUDA_SUCCESS && address != nullptr && *address != nullptr)
        *address = wrapper_of(name, *address);
    return result;
}

} // extern "C"

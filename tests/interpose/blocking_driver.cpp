#include "blocking_driver.hpp"

#include <gcx_sim.h>

#include <dlfcn.h>

#include <chrono>
#include <condition_variable>
#include <mutex>

// dlsym with this library finds the simulated driver's functions too, except for those below.
namespace {

std::mutex mutex;
std::condition_variable changed;
CUstream full = nullptr;
bool waits_block = false;
int blocked = 0;

template <class Blocks>
void block_while(const Blocks& blocks) {
    std::unique_lock lock(mutex);
    if (!blocks())
        return;
    blocked++;
    changed.notify_all();
    changed.wait(lock, [&] { return !blocks(); });
    blocked--;
}

void block_if_full(CUstream stream) {
    block_while([=] { return full != nullptr && stream == full; });
}

void block_wait() {
    block_while([] { return waits_block; });
}

template <class Function>
Function next(const char* name) {
    // The simulated driver by itself, whose functions of the same names this library hides.
    Dl_info simulator{};
    dladdr(reinterpret_cast<void*>(&gcx_sim_configure), &simulator);
    static void* const library = dlopen(simulator.dli_fname, RTLD_NOW | RTLD_LOCAL);
    return reinterpret_cast<Function>(dlsym(library, name));
}

} // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))
#define DRIVER_FUNCTION(name, ...)                                                                 \
    EXPORT CUresult CUDAAPI name(__VA_ARGS__);                                                     \
    CUresult CUDAAPI name(__VA_ARGS__)
#define NEXT(name) next<decltype(&::name)>(#name)

DRIVER_FUNCTION(cuLaunchKernel, CUfunction function, unsigned x, unsigned y, unsigned z,
                unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                CUstream stream, void** arguments, void** extra) {
    block_if_full(stream);
    return NEXT(cuLaunchKernel)(function, x, y, z, block_x, block_y, block_z, shared, stream,
                                arguments, extra);
}

DRIVER_FUNCTION(cuEventRecord, CUevent event, CUstream stream) {
    block_if_full(stream);
    return NEXT(cuEventRecord)(event, stream);
}

DRIVER_FUNCTION(cuStreamSynchronize, CUstream stream) {
    block_wait();
    return NEXT(cuStreamSynchronize)(stream);
}

DRIVER_FUNCTION(cuMemcpyDtoH_v2, void* to, CUdeviceptr from, size_t bytes) {
    block_wait();
    return NEXT(cuMemcpyDtoH_v2)(to, from, bytes);
}

EXPORT blocking_driver::FillFunction blocking_driver_fill;
void blocking_driver_fill(CUstream stream) {
    const std::lock_guard lock(mutex);
    full = stream;
}

EXPORT blocking_driver::BlockWaitsFunction blocking_driver_block_waits;
void blocking_driver_block_waits() {
    const std::lock_guard lock(mutex);
    waits_block = true;
}

EXPORT blocking_driver::AwaitFunction blocking_driver_await;
bool blocking_driver_await(int calls) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, std::chrono::seconds(5), [&] { return blocked >= calls; });
}

EXPORT blocking_driver::OpenFunction blocking_driver_open;
void blocking_driver_open() {
    const std::lock_guard lock(mutex);
    full = nullptr;
    waits_block = false;
    changed.notify_all();
}

// Calls at the end of threads and of the process: destructors of thread_local objects and exit
// handlers have their current context, and calls after the library's destructors return
// CUDA_ERROR_DEINITIALIZED.
#include "driver/cuda_api.h"

#include <dlfcn.h>
#include <unistd.h>

#include <bit>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace {

template <class Function>
Function find(void* library, const char* name) {
    return std::bit_cast<Function>(dlsym(library, name));
}

CUresult (*g_get_count)(int*) = nullptr;
CUresult (*g_get_current)(CUcontext*) = nullptr;
CUresult (*g_set_current)(CUcontext) = nullptr;
CUcontext g_context = nullptr;

void expect_context(const char* where) {
    CUcontext current = nullptr;
    const CUresult result = g_get_current(&current);
    if (result == CUDA_SUCCESS && current == g_context)
        return;
    std::printf("%s: %d, context %p\n", where, static_cast<int>(result),
                static_cast<void*>(current));
    std::fflush(stdout);
    _exit(1);
}

// Registered first, so it runs last.
void last_handler() {
    int count = 0;
    const CUresult result = g_get_count(&count);
    std::printf("after the library's end: %d\n", static_cast<int>(result));
    std::fflush(stdout);
    if (result != CUDA_ERROR_DEINITIALIZED)
        _exit(1);
}

struct AtThreadEnd {
    AtThreadEnd() = default;
    AtThreadEnd(const AtThreadEnd&) = delete;
    AtThreadEnd& operator=(const AtThreadEnd&) = delete;
    ~AtThreadEnd() { expect_context("at a thread's end"); }
    bool used = false;
};

// Constructs the object before the thread's first call, so that it is destroyed last.
void use_in_thread() {
    thread_local AtThreadEnd at_end;
    at_end.used = true;
    if (g_set_current(g_context) != CUDA_SUCCESS)
        _exit(1);
}

} // namespace

int main(int argc, char** argv) {
    if (argc != 2 || std::atexit(last_handler) != 0)
        return 2;
    void* const library = dlopen(argv[1], RTLD_NOW);
    if (library == nullptr) {
        std::fprintf(stderr, "%s\n", dlerror());
        return 2;
    }
    g_get_count = find<CUresult (*)(int*)>(library, "cuDeviceGetCount");
    g_get_current = find<CUresult (*)(CUcontext*)>(library, "cuCtxGetCurrent");
    g_set_current = find<CUresult (*)(CUcontext)>(library, "cuCtxSetCurrent");
    const auto init = find<CUresult (*)(unsigned)>(library, "cuInit");
    const auto retain =
        find<CUresult (*)(CUcontext*, CUdevice)>(library, "cuDevicePrimaryCtxRetain");
    int count = 0;
    if (init(0) != CUDA_SUCCESS || g_get_count(&count) != CUDA_SUCCESS || count != 1 ||
        retain(&g_context, 0) != CUDA_SUCCESS || g_set_current(g_context) != CUDA_SUCCESS)
        return 1;
    std::thread(use_in_thread).join();
    return std::atexit([] { expect_context("in a handler"); });
}

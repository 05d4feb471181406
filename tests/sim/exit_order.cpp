// Calls after the library's destructors return CUDA_ERROR_DEINITIALIZED.
#include "driver/cuda_api.h"

#include <dlfcn.h>
#include <unistd.h>

#include <bit>
#include <cstdio>
#include <cstdlib>

namespace {

using GetCount = CUresult (*)(int*);
GetCount g_get_count = nullptr;

// Registered first, so it runs last.
void last_handler() {
    int count = 0;
    const CUresult result = g_get_count(&count);
    std::printf("after the library's end: %d\n", static_cast<int>(result));
    std::fflush(stdout);
    if (result != CUDA_ERROR_DEINITIALIZED)
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
    g_get_count = std::bit_cast<GetCount>(dlsym(library, "cuDeviceGetCount"));
    const auto init = std::bit_cast<CUresult (*)(unsigned)>(dlsym(library, "cuInit"));
    int count = 0;
    return init(0) == CUDA_SUCCESS && g_get_count(&count) == CUDA_SUCCESS && count == 1 ? 0 : 1;
}

/*
 * A driver that breaks its promises, to see that gcx verify notices: it changes the SMs that a
 * kernel recorded when they are copied back. BAD_DRIVER_LIBRARY is the path of the simulated
 * driver, which it wraps. BAD_DRIVER_FAULT is "fewer" to remove an SM, "none" to remove all,
 * "shared" to add SM 0.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef int (*copy_function)(void*, uint64_t, size_t, void*);
typedef int (*find_function)(const char*, void**, int, uint64_t, int*);

static copy_function real_copy;

static void* simulation(const char* name) {
    static void* library;
    if (library == NULL)
        library = dlopen(getenv("BAD_DRIVER_LIBRARY"), RTLD_NOW | RTLD_LOCAL);
    return dlsym(library, name);
}

static int faulty_copy(void* host, uint64_t device, size_t bytes, void* stream) {
    uint32_t* const blocks = host;
    const int result = real_copy(host, device, bytes, stream);
    if (result != 0)
        return result;
    if (strcmp(getenv("BAD_DRIVER_FAULT"), "shared") == 0)
        blocks[0] = 1;
    if (strcmp(getenv("BAD_DRIVER_FAULT"), "none") == 0)
        memset(blocks, 0, bytes);
    for (size_t sm = bytes / sizeof *blocks;
         strcmp(getenv("BAD_DRIVER_FAULT"), "fewer") == 0 && sm-- > 0;) {
        if (blocks[sm] != 0) {
            blocks[sm] = 0;
            break;
        }
    }
    return 0;
}

__attribute__((visibility("default"))) int
cuGetProcAddress_v2(const char* name, void** address, int version, uint64_t flags, int* status);

int cuGetProcAddress_v2(const char* name, void** address, int version, uint64_t flags,
                        int* status) {
    find_function find;
    copy_function copy = faulty_copy;
    void* const found = simulation("cuGetProcAddress_v2");
    memcpy(&find, &found, sizeof find);
    const int result = find(name, address, version, flags, status);
    if (result == 0 && strcmp(name, "cuMemcpyDtoHAsync") == 0) {
        memcpy(&real_copy, address, sizeof real_copy);
        memcpy(address, &copy, sizeof copy);
    }
    return result;
}

__attribute__((visibility("default"))) int cuDriverGetVersion(int* version);

int cuDriverGetVersion(int* version) {
    int (*get)(int*);
    void* const found = simulation("cuDriverGetVersion");
    memcpy(&get, &found, sizeof get);
    return get(version);
}

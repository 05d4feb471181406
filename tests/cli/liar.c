/*
 * A driver that breaks its promises, to see that gcx verify notices: the simulated driver, but
 * what a kernel noted of its SMs is changed on its way back. LIAR_LIBRARY is the path of the
 * simulated driver; LIAR says how to lie: "fewer" forgets an SM, "none" forgets
 * all, "shared" adds SM 0.
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
        library = dlopen(getenv("LIAR_LIBRARY"), RTLD_NOW | RTLD_LOCAL);
    return dlsym(library, name);
}

static int lying_copy(void* host, uint64_t device, size_t bytes, void* stream) {
    uint32_t* const blocks = host;
    const int result = real_copy(host, device, bytes, stream);
    if (result != 0)
        return result;
    if (strcmp(getenv("LIAR"), "shared") == 0)
        blocks[0] = 1;
    if (strcmp(getenv("LIAR"), "none") == 0)
        memset(blocks, 0, bytes);
    for (size_t sm = bytes / sizeof *blocks; strcmp(getenv("LIAR"), "fewer") == 0 && sm-- > 0;) {
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
    copy_function copy = lying_copy;
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

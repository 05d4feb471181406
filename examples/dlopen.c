/* The same library without linking to it and without any CUDA header: what a program in any
 * language does that can call C functions. Takes the path or name of libgcx, if not libgcx.so.1.
 *
 *     cc dlopen.c -o dlopen -ldl && ./dlopen
 */
#include <gcx.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Finds a function by its name, into a pointer of its type. */
static void find(void* library, const char* name, void* pointer) {
    void* const address = dlsym(library, name);
    if (address == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    memcpy(pointer, &address, sizeof address);
}

int main(int argc, char** argv) {
    void* const library = dlopen(argc > 1 ? argv[1] : "libgcx.so.1", RTLD_NOW);
    const char* (*result_name)(gcx_result);
    const char* (*last_error_message)(void);
    gcx_result (*get_resource)(int32_t, gcx_resource_type, gcx_resource*);
    gcx_result (*split)(const gcx_resource*, const gcx_sm_request*, uint32_t, uint32_t,
                        gcx_resource*, gcx_resource*, uint32_t*, uint32_t*);
    gcx_result (*driver_info)(gcx_driver_info*);
    gcx_driver_info driver = GCX_DRIVER_INFO_INIT;
    const gcx_sm_request want[2] = {{.sm_count = 7}, {.sm_count = GCX_REST}};
    gcx_resource device;
    uint32_t given[2] = {0, 0};
    gcx_result result;

    if (library == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    find(library, "gcx_result_name", &result_name);
    find(library, "gcx_last_error_message", &last_error_message);
    find(library, "gcx_device_get_resource", &get_resource);
    find(library, "gcx_sm_split", &split);
    find(library, "gcx_driver_get_info", &driver_info);

    result = driver_info(&driver);
    if (result == GCX_SUCCESS)
        result = get_resource(0, GCX_RESOURCE_SM, &device);
    if (result == GCX_SUCCESS)
        result = split(&device, want, 2, GCX_SPLIT_DEFAULT, NULL, NULL, given, NULL);
    if (result != GCX_SUCCESS) {
        fprintf(stderr, "%s: %s\n", result_name(result), last_error_message());
        return 1;
    }
    printf("%sCUDA %d.%d: 7 SMs are rounded up to %u and leave %u\n",
           driver.simulated ? "SIMULATED " : "", driver.version / 1000, driver.version % 1000 / 10,
           given[0], given[1]);
    return 0;
}

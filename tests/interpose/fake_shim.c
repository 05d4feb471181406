/* A shim with one hook: cuInit, which calls the driver's. */
#define _GNU_SOURCE
#include <dlfcn.h>

int cuInit(unsigned flags) {
    /* The stub library loads the driver by this name: the prefix and the plan's path. */
    void* const driver = dlopen(DRIVER, RTLD_LAZY | RTLD_NOLOAD);
    if (driver == 0)
        return -1;
    int (*real)(unsigned);
    *(void**)&real = dlsym(driver, "cuInit"); /* from dlsym(3), since ISO C forbids the cast */
    return real != 0 ? 500000 + real(flags) : -2;
}

/* What stands in for the shim: it changes cuInit, and calls the one behind it. */
#define _GNU_SOURCE
#include <dlfcn.h>

int cuInit(unsigned flags) {
    /* By the name that the facade loads it by: the path of the plan after the prefix. */
    void* const driver = dlopen(BEHIND, RTLD_LAZY | RTLD_NOLOAD);
    if (driver == 0)
        return -1;
    int (*real)(unsigned);
    *(void**)&real = dlsym(driver, "cuInit"); /* as dlsym's page has it: ISO C has no cast */
    return real != 0 ? 500000 + real(flags) : -2;
}

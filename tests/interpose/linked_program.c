/* A program that is linked with libcuda, which is in LD_LIBRARY_PATH or in the build folder. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

int cuInit(unsigned flags);
int cuLaunchKernel(int x);

/* From dlsym(3), since ISO C forbids the cast. */
static int of(void* library) {
    int (*function)(unsigned);
    *(void**)&function = dlsym(library, "cuInit");
    return function(1);
}

int main(int argc, char** argv) {
    void* const library = dlopen(argc > 1 ? argv[1] : "libcuda.so.1", RTLD_NOW);
    printf("%d %d %d %d\n", cuInit(1), cuLaunchKernel(1), of(RTLD_DEFAULT),
           library != 0 ? of(library) : cuInit(1));
    return 0;
}

/* A program that is linked with libcuda. It looks for it in LD_LIBRARY_PATH, or where it was built.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

int cuInit(unsigned flags);
int cuLaunchKernel(int x);

int main(int argc, char** argv) {
    int (*const found)(unsigned) = (int (*)(unsigned))dlsym(RTLD_DEFAULT, "cuInit");
    void* const library = dlopen(argc > 1 ? argv[1] : "libcuda.so.1", RTLD_NOW);
    int (*const opened)(unsigned) =
        library != 0 ? (int (*)(unsigned))dlsym(library, "cuInit") : cuInit;
    printf("%d %d %d %d\n", cuInit(1), cuLaunchKernel(1), found(1), opened(1));
    return 0;
}

/* A library that asks the driver by itself. Built as cuBLAS by its name, with the version of an old
 * one and of a new one, and without; and as another. */
#include <stddef.h>

#ifdef CUBLAS_VERSION
size_t cublasLtGetVersion(void) {
    return CUBLAS_VERSION;
}
#endif

int ask(int (*attribute)(int* value, int which, int device), int* value, int which) {
    const int result = attribute(value, which, 0);
    /* Not in the place of the return: who asks is told by where the answer goes. */
    return result == 0 ? 0 : -1;
}

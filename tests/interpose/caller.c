/* A library that calls cuDeviceGetAttribute. It is built under the name of cuBLAS with an old
 * version, a new one and none, and under another name. */
#include <stddef.h>

#ifdef CUBLAS_VERSION
size_t cublasLtGetVersion(void) {
    return CUBLAS_VERSION;
}
#endif

int get_attribute(int (*attribute)(int* value, int which, int device), int* value, int which) {
    const int result = attribute(value, which, 0);
    /* Not a tail call, since the hook identifies its caller by the return address. */
    return result == 0 ? 0 : -1;
}

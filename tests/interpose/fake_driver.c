/* A driver with a function that gcx does not know. */
int cuInit(unsigned flags) {
    return 1000 + (int)flags;
}

int cuLaunchKernel(int x) {
    return 2000 + x;
}

int cuInitOfItsOwn(unsigned flags) {
    return cuInit(flags);
}

int cuFunctionOfTheYear2031(void) {
    return 2031;
}

// The libcuda.so.1 of gcx-sim. A wheel can't contain links, so this library depends on the simulated
// driver, which has the functions. It names one, or the linker would drop the dependency.
extern "C" int cuInit(unsigned flags);
[[gnu::used]] static int (*const needed)(unsigned) = cuInit;

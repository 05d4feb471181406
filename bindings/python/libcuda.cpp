// The package's libcuda.so.1. A wheel can't hold links, so this is a library that needs the
// simulated driver: whoever opens it finds the functions there. A function has to be named, or the
// linker would leave the other library out.
extern "C" int cuInit(unsigned flags);
[[gnu::used]] static int (*const needed)(unsigned) = cuInit;

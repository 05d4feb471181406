// The facade: a shared object named libcuda.so.1 that has no code and no function of its own. It
// needs the shim first and the real libcuda second, so that whoever looks a function up in it finds
// the shim's, and where the shim has none, the driver's own: those that gcx has never heard of too,
// and at no cost when they are called.
//
// Nothing here needs the C++ runtime, for the auditor lives in a namespace without one.
#pragma once

#include "interpose/words.hpp"

#include <link.h>

namespace gcx::exec {

// Makes a facade and returns a descriptor of it, close-on-exec, to be opened as facade_path says;
// it isn't needed once that was opened. -1 with errno if the system refuses. Both paths are
// absolute and are written down, not opened. plan is what the shim is to read by facade_plan(), or
// null.
int make_facade(const char* shim, const char* driver, const char* plan = nullptr);

// The plan of a facade that was opened, by its dynamic section and where it was loaded. Null: it
// has none, or it is no facade.
const char* facade_plan(const ElfW(Dyn) * dynamic, ElfW(Addr) base);

// "/proc/self/fd/3" for dlopen.
struct FacadePath {
    char text[32];
};
FacadePath facade_path(int descriptor);

} // namespace gcx::exec

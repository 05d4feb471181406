// The stub library: a shared object named libcuda.so.1 that contains no code. It depends on the
// shim first and on the real libcuda second. So a lookup in it finds the shim's function, or, if
// the shim does not have it, the driver's. Those calls cost nothing, and functions of newer drivers
// are found too.
//
// Nothing here uses the C++ runtime, since the audit library has none.
#pragma once

#include "interpose/exec_plan.hpp"

#include <link.h>

namespace gcx::interpose {

// Creates a stub library in memory and returns its descriptor, which is close-on-exec. Load it by
// stub_library_path() and then close it. Returns -1 and sets errno on failure. Both paths are
// absolute; they are recorded and not opened. plan is text for stub_library_plan(), or null.
int make_stub_library(const char* shim, const char* driver, const char* plan = nullptr);

// Returns the plan in a loaded stub library, given its dynamic section and its base address.
// Returns null for a stub library without a plan, and for any other library.
const char* stub_library_plan(const ElfW(Dyn) * dynamic, ElfW(Addr) base);

// A path for dlopen, like "/proc/self/fd/3".
struct StubLibraryPath {
    char text[32];
};
StubLibraryPath stub_library_path(int descriptor);

} // namespace gcx::interpose

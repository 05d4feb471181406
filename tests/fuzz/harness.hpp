// The environment of one input, and the checks that every harness makes. gcx opens one driver in a
// process and keeps it; a fuzzer needs a new one for each input.
#pragma once

#include <gcx.h>

#include <string>

namespace fuzz {

// Restores the initial environment and sets GCX_DRIVER, the driver that gcx opens by default.
void begin_input(const std::string& driver);

// Closes the library like the end of the process, so that it can be opened again. The caller has
// released all objects.
void close_library();

// Aborts with a message, which the fuzzer reports as a find and stores the input.
[[noreturn]] void violated(const char* what, const char* detail);

inline void must(bool holds, const char* what, const char* detail = "") {
    if (!holds)
        violated(what, detail);
}

// Checks the result of any call: a failure has a text and a message and is no internal error.
gcx_result checked(gcx_result result, const char* call);
#define CALL(call) fuzz::checked((call), #call)

uint32_t sm_count_of(const gcx_resource& resource);

} // namespace fuzz

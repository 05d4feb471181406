// gcx opens one driver in a process and keeps it; a fuzzer wants a new one for each input.
#pragma once

#include <string>

namespace fuzz {

// Ends the open library as the process's end would, and leaves it to be opened anew. Whatever was
// made of it must have been given up.
void close_library();

// What gcx opens if nothing else is said: GCX_DRIVER. Restores the environment that the process
// began with, but for that.
void begin_input(const std::string& driver);

} // namespace fuzz

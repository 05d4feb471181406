// How many of the hardware's queues CUDA uses, which it reads from the environment when it starts.
#pragma once

#include <cstdint>
#include <string>

namespace gcx {

struct Connections {
    uint32_t count = 0; // 0: the environment has what CUDA's documentation doesn't know
    bool from_environment = false;
    bool started = false; // CUDA has: the number stays
    bool certain = false; // not if CUDA had started and the process has changed the variable
};

// Those that CUDA has or, if it hasn't started, would have now. choice: the driver that gcx would
// open. Opens nothing.
Connections connections(const std::string& choice);

// Sees to it that CUDA starts with at least so many. Throws if it is too late.
void request_connections(const std::string& choice, uint32_t count);

// Those that a library will start with, or has started with: asked before its cuInit, and kept
// once that has succeeded.
Connections connections_of(void* library);
void keep_connections(Connections found);

// Warns once in a process if there is one, with which all partitions wait for each other.
void warn_of_few_connections();

} // namespace gcx

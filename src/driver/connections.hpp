// The number of hardware queues that CUDA uses. CUDA reads it from the environment when it starts.
#pragma once

#include <cstdint>
#include <string>

namespace gcx {

struct Connections {
    uint32_t count = 0; // 0: unknown, the variable has a value that CUDA does not document
    bool from_environment = false;
    bool started = false; // CUDA has started, so that the number is final
    bool certain = false; // false if the process changed the variable after CUDA had started
};

// Returns what CUDA uses or, if it has not started, would use now. choice: the driver that gcx
// would open. Opens nothing.
Connections connections(const std::string& choice);

// Makes CUDA start with at least this many. Throws if it is too late.
void request_connections(const std::string& choice, uint32_t count);

// Returns what a driver will use or uses. Call it before cuInit, and pass the result to
// keep_connections() when cuInit has succeeded.
Connections connections_of(void* library);
void keep_connections(Connections found);

// Warns once per process if there is only one queue, with which all partitions wait for each other.
void warn_of_few_connections();

} // namespace gcx

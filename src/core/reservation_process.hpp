// Finds the process to name for a reservation. The one that took it may have become another program
// or have ended while others keep the reservation.
#pragma once

#include "core/reservation_record.hpp"

#include <cstdint>
#include <string>

namespace gcx::reservations {

struct Process {
    int32_t pid = 0; // 0: none that keeps the reservation is visible to this process
    std::string name;
};

// Returns the process that took the reservation while that keeps it, otherwise another one that
// does. Reads /proc; without it, or where it may not look, returns what the record says.
Process process_of(const Record& record);

// "process 12 (python)", or "a process that isn't visible here (python)".
std::string describe(const Process& process);

} // namespace gcx::reservations

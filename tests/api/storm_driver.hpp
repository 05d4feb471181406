// Wraps the simulated driver for tests with several threads: counts each thread's driver calls,
// makes one of them fail, and delays threads in the middle of an operation.
#pragma once

#include <cstdint>

namespace storm_driver {

// What a thread requests of its driver calls, and what they did.
struct Thread {
    uint64_t calls = 0;            // since the thread set it to 0
    uint64_t contexts_created = 0; // of these, green contexts created
    uint64_t evictions = 0;        // contexts and streams that were destroyed
    uint64_t fail_at = 0;          // the call that fails: 1 is the next; 0: none
    int failure = 0;               // the CUresult that it answers
    const char* failed = nullptr;  // the function that failed, since the thread set it to null
    uint32_t jitter = 0;           // one in so many calls is delayed; 0: none
    uint64_t random = 1;
};

// Type of the exported function storm_driver_thread, which returns the calling thread's state.
using ThreadFunction = Thread* (*)();

} // namespace storm_driver

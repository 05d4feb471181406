// A driver in front of the simulated one, for tests with several threads: it counts each thread's
// driver calls, makes one of them fail, and lets threads lose time in the middle of an operation.
#pragma once

#include <cstdint>

namespace storm_driver {

// What a thread wants of its driver calls, and what came of it.
struct Thread {
    uint64_t calls = 0;           // since the thread set it to 0
    uint64_t contexts_made = 0;   // of these, green contexts made
    uint64_t evictions = 0;       // contexts and streams that were destroyed
    uint64_t fail_at = 0;         // the call that fails: 1 is the next; 0: none
    int failure = 0;              // the CUresult that it answers
    const char* failed = nullptr; // the function that failed, since the thread set it to null
    uint32_t jitter = 0;          // one of so many calls loses time; 0: none
    uint64_t random = 1;
};

// The exported function storm_driver_thread: the state of the calling thread.
using ThreadFunction = Thread* (*)();

} // namespace storm_driver

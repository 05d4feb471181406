// Wraps the simulated driver for tests with several threads: counts each thread's driver calls,
// makes one of them fail, delays threads in the middle of an operation, and blocks calls of one
// function, as a kernel blocks a call that waits for it. It lacks the function that
// DRIVER_WRAPPER_LACKS names.
#pragma once

#include <cstdint>

namespace driver_wrapper {

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

// The types of the exported functions. driver_wrapper_thread returns the calling thread's state.
using ThreadFunction = Thread*();
// block_calls blocks calls of a function until another one, or null for none, is named.
using BlockFunction = void(const char* function);
// await_blocked_call waits until a call is blocked; release_blocked_call lets it continue, and the
// next call is blocked again.
using BlockedFunction = void();
// replace_context gives a context another id, as if it had been destroyed and another one had its
// address.
using ReplaceFunction = void(const void* context);

} // namespace driver_wrapper

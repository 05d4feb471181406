// Makes each driver call of an operation fail in turn.
#pragma once

#include "support.hpp"

#include <functional>
#include <string>

namespace faults {

// Each failing call runs in a child, which is slow under an emulator. The address sanitizer sees
// each call fail with one of the three driver versions.
inline const uint64_t kStep = check::slow_alone ? 29 : check::sanitized ? 3 : 1;

struct Operation {
    std::string name;
    std::function<void()> prepare; // doesn't fail
    std::function<gcx_result()> run;
    std::function<void()> cleanup; // destroys what the two have created
};

// Makes each driver call of the operation fail, as often as the operation makes it. Checks that the
// result is an error with a message or a correct success, that the operation then works, and that
// nothing is left after cleanup.
void every_call_fails(const Operation& operation, const std::string& spec);

// Destroys an object that the operation may have created.
template <class Handle>
void destroy(Handle& handle, gcx_result (*function)(Handle)) {
    if (handle != nullptr)
        CHECK_OK(function(handle));
    handle = nullptr;
}

// An operation on a State, which the functions create, use and destroy.
template <class State>
struct Named {
    const char* name;
    void (*prepare)(State&);
    gcx_result (*run)(State&);
};

// Tests all operations on the driver that is named by the first argument; returns main's result.
template <class State, std::size_t kCount>
int test_all(const char* name, int argc, char** argv, const Named<State> (&operations)[kCount],
             void (*destroy)(State&)) {
    const std::string driver = argc > 1 ? argv[1] : "13.0";
    for (const Named<State>& operation : operations) {
        State state;
        every_call_fails({operation.name, [&] { operation.prepare(state); },
                          [&] { return operation.run(state); }, [&] { destroy(state); }},
                         "h100@" + driver);
    }
    return support::summary((name + ("-" + driver)).c_str());
}

} // namespace faults

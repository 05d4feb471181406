// Every driver call of an operation made to fail in turn.
#pragma once

#include "support.hpp"

#include <functional>
#include <string>

namespace faults {

// Every failing call has a child of its own, which an emulator translates anew. The address
// sanitizer sees each call fail with one of the three drivers.
inline const uint64_t kStep = check::slow_alone ? 29 : check::sanitized ? 3 : 1;

struct Operation {
    std::string name;
    std::function<void()> prepare; // doesn't fail
    std::function<gcx_result()> run;
    std::function<void()> give_up; // all that the two have made
};

// For each driver call that the operation makes, as often as it makes it: an error with a message
// or a right success, after which the operation works; and once all was given up, nothing is left.
void every_call_fails(const Operation& operation, const std::string& spec);

} // namespace faults

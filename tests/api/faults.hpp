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

} // namespace faults

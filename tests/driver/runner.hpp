// Runs the checks in processes.
#pragma once

#include "driver.hpp"

namespace conformance {

// Runs each check in a process of its own, or those of a family in one, and reports the answers.
// Prepares so many processes at a time, lets one after the other go on, and ends them together, so
// that no check runs while another process creates or destroys contexts.
void run_checks(const std::vector<const Check*>& checks, std::size_t jobs,
                const std::function<void(const Check&, const std::string&)>& report);

// The process of checks: "--child", two descriptors and names.
bool is_child(int argc, char** argv);
[[noreturn]] void run_child(const Checks& checks, int argc, char** argv);

// For the head of a record.
extern const Check name_of_gpu;
extern const Check version_of_driver;

} // namespace conformance

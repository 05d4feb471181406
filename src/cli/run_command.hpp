// Becoming another command, as env(1) does.
#pragma once

#include "cli/report.hpp"

#include <string>
#include <vector>

namespace gcx::cli {

// Throws Failure.
void set_environment(const char* name, const std::string& value);

// The process becomes the command, looked for in PATH. Returns only if it can't be run: with exit
// status 127 if there is none of that name, else 126, as shells have it.
Report become(const std::vector<std::string>& words, bool on_simulation);

// What become reports of a command that can't be run, by the reason: ENOENT or another of errno.
Report cannot_run(const std::string& command, int reason, bool on_simulation);

} // namespace gcx::cli

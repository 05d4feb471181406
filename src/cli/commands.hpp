// What gcx can do: the table of its commands.
#pragma once

#include "cli/args.hpp"
#include "cli/report.hpp"

#include <span>

namespace gcx::cli {

extern const std::span<const Command> commands;

// gcx --version, gcx --help, and --help behind a command.
Report version_report();
Report overview_report();
Report help_report(const Command& command);

} // namespace gcx::cli
